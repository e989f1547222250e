"""Keep the libraries' progress bars and notices out of executed notebooks, and their tables whole."""

import logging
import os
import warnings


def quiet() -> None:
    """Silence transformers' and datasets' bars and notices; this package's warnings stay.

    What transformers would warn of and what matters here, tensors left random,
    is an error in :mod:`bertology_utils.encoders.models`.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    warnings.filterwarnings("ignore", message="IProgress not found")  # tqdm, where ipywidgets is missing
    import datasets
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    datasets.utils.logging.set_verbosity_error()
    datasets.disable_progress_bars()
    logging.getLogger("filelock").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=FutureWarning)
    import pandas as pd

    pd.set_option("display.max_colwidth", None, "display.width", 10_000, "display.max_columns", None)
