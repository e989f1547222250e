"""The command ``bert``: what bert-base itself says, from forward passes alone, into the column of the pages that is its own."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from ..common.hub import hub_errors
from ..common.profiles import BERT_BASE as MODEL
from . import looking
from .check import Checked, check_call
from .committed import BERT_BASE
from .execute import in_words
from .looking import NUMBER, say
from .notebooks import Notebook, find_notebooks, select
from .results import RESULTS, project_root
from .run_command import refused, terminable


def add_bert(parser: argparse.ArgumentParser) -> None:
    """Options of ``bert``."""
    model = "bert-base-uncased in a folder: config.json, tokenizer and model.safetensors; else from the Hub"
    parser.add_argument("--model", default="", metavar="FOLDER", help=model)
    looking.add_data(parser)


def run(options: argparse.Namespace) -> int:
    """``python -m bertology_utils bert``; returns the exit code."""
    try:
        (notebook,) = select(find_notebooks(), str(NUMBER))
        checked = check_call([notebook], looking.parameters(options, options.model))
        say(look_ahead(notebook, checked))
    except (ValueError, TypeError, OSError, ImportError) as error:
        return refused(error)
    try:
        with terminable():
            return _run(notebook, checked)
    except (BlockingIOError, ValueError) as error:
        return refused(error, code=1)
    except OSError as error:
        return refused(in_words(error), code=1)


def look_ahead(notebook: Notebook, checked: Checked) -> str:
    """Open all that will be read, so that what is missing is said before any long work; returns what it will cost.

    Raises:
        ValueError: the model is not bert-base-uncased, or does not fit its architecture; or data that are damaged.
        FileNotFoundError, ConnectionError, OSError: what cannot be had.
    """
    from ..pretrained import bert_base
    from .experiment import Experiment
    from .quiet import quiet

    quiet()
    lab = Experiment(notebook.name, **(notebook.parameters | notebook.declared(checked.values)))
    name = lab.settings.model.name
    if not lab.settings.model.is_local and lab.settings.model.location != MODEL:
        raise ValueError(f"model {name!r} is not {MODEL}; leave it out, or give the folder in which that model is")
    if difference := bert_base.differs(lab.config, lab.tokenizer):
        raise ValueError(
            f"model {name!r} is not bert-base-uncased: {difference}. The column bert-base is of {MODEL} alone; another"
            f" encoder is measured by: python -m bertology_utils run --only {NUMBER} -p model {name}"
        )
    read = looking.open_data(lab)
    with hub_errors("model", name, lab.settings.model.revision):
        lab.encoder()  # fetched, and every tensor there
    return f"bert-base: {read.text}; {looking.told([read.work(lab.config)])}"


def _run(notebook: Notebook, checked: Checked) -> int:
    from .pages import update
    from .staging import output_folder

    root, output = project_root(), output_folder(checked.values)
    outcome = looking.run(notebook, checked, output)
    if outcome.error:
        return refused(f"{outcome.error}; see {outcome.executed}", code=1)
    kept = keep(root, output / looking.FIGURES / notebook.name / RESULTS)
    renewed = [path.name for path in update(root)]
    gigabytes = outcome.memory / 2**30
    say(f"done in {outcome.seconds / 60:.1f} minutes with {gigabytes:.1f} GiB; executed notebook: {outcome.executed}")
    say(f"results: {kept.relative_to(root)}; renewed: {', '.join(renewed) or 'no page'}")
    return 0


def keep(root: Path, results: Path) -> Path:
    """Copy a run's results to where the column bert-base is made from; returns the place."""
    place = root / BERT_BASE.folder / results.parent.name / RESULTS
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(results, place)
    return place
