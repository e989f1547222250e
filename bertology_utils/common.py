"""Small things that every other module may use, and that use none of them.

Layers and heads are counted from 0 in code and from 1 for people, as in the paper; this is where
the two meet.
"""

from __future__ import annotations

import errno
import gzip
import io
import logging
import os
import platform
import re
import sys
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

if TYPE_CHECKING:
    import torch


def one_of(kind: str, value: object, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``allowed``.

    Args:
        kind: what the value is, for the message ("task", "study", …).
        value: what the person gave.
        allowed: the valid values, in the order in which to list them.

    Raises:
        ValueError: naming the value and every choice.
    """
    allowed = list(allowed)
    if value in allowed:
        return value
    raise ValueError(f"unknown {kind} {value!r}; choose one of: {', '.join(allowed)}")


T = TypeVar("T")


def listed(what: str, given: Iterable[T]) -> list[T]:
    """The entries of a list, of which a single text is one; TypeError for a mapping or a table, which would give its keys."""
    if isinstance(given, Mapping) or hasattr(given, "columns"):
        raise TypeError(f"{what} are a {type(given).__name__}, which has names; give a list")
    return [given] if isinstance(given, str) else list(given)  # type: ignore[list-item]


Head = tuple[int, int]  # (layer, head), both from 0


def head_name(layer: int, head: int) -> str:
    """Name of a head, "(layer, head)" counted from 1, for indices from 0."""
    return f"({layer + 1}, {head + 1})"


SILENT = "TQDM_DISABLE"  # in an executed notebook, whose outputs are committed


def track(items: Iterable[T], label: str) -> Iterable[T]:
    """The items, with a bar of progress on standard error."""
    from tqdm import tqdm

    return tqdm(items, desc=label, leave=False)


def note(line: str) -> None:
    """Say one line of progress where bars are shown."""
    from tqdm import tqdm

    if not os.environ.get(SILENT):
        tqdm.write(line, file=sys.stderr)


DEVICE_VARIABLE = "BERTOLOGY_DEVICE"


def device() -> torch.device:
    """Where models compute: what the variable BERTOLOGY_DEVICE names, else a GPU of CUDA, else the CPU.

    Raises:
        ValueError: there is no such device here, or statistics cannot be computed on it.
    """
    import torch

    there = torch.cuda.is_available()
    named = os.environ.get(DEVICE_VARIABLE)
    if not named:  # the usual case, asked for with every key of the cache
        return torch.device("cuda" if there else "cpu")
    with suppress(RuntimeError, AssertionError, NotImplementedError, TypeError):
        if ":" not in named and torch.ones(1, dtype=torch.float64, device=named).item():
            return torch.device(named)
    raise ValueError(
        f"{DEVICE_VARIABLE}={named!r} cannot be used. Choose"
        f" {'cpu or cuda' if there else 'cpu (no GPU is seen here)'}; which of several GPUs is taken,"
        " CUDA_VISIBLE_DEVICES says, and Apple's have no float64, in which statistics are computed"
    )


def device_name() -> str:
    """The kind of GPU, or of processor where there is none."""
    import torch

    kind = device().type
    return {"cuda": torch.cuda.get_device_name, "cpu": platform.machine}.get(kind, lambda: kind)()


def precision(on_cpu: str = "float32") -> str:
    """Number format of trainings: on a GPU of CUDA "bf16" where the hardware has it, else "fp16"; on a CPU ``on_cpu``.

    A processor without instructions for bf16 takes ten times as long with it, and gets float32, as
    every other device does.
    """
    import torch

    if device().type != "cuda":
        has_bf16 = torch.cpu.get_capabilities().get("avx512_bf16", False)
        return on_cpu if has_bf16 and device().type == "cpu" else "float32"
    return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"


LARGEST = 2**30  # bytes of an unpacked file, more than any of GLUE's


class _Limited(gzip.GzipFile):
    """An unpacked file that ends with an error where it grows too large: a few bytes can unpack to any number."""

    def read1(self, size: int = -1) -> bytes:
        content = super().read1(size)
        if self.tell() > LARGEST:
            raise ValueError(
                f"{self.name} is refused: it unpacks to more than {LARGEST / 2**30:g} GiB; unpack it yourself"
            )
        return content


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """A UTF-8 file, open for reading; a name in ".gz" is unpacked.

    A byte-order mark is dropped. Only a line feed ends a line: stray carriage
    returns and Unicode's other line breaks stay inside it.

    Raises:
        ValueError: no UTF-8 text, a damaged .gz, or one that unpacks to too much; the message names
            the file.
    """
    try:
        content = _Limited(path) if path.suffix == ".gz" else path.open("rb")
        with io.TextIOWrapper(content, encoding="utf-8-sig", newline="\n") as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is no gzip file, or a damaged one: {error}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8: {error}") from None


# How libraries in Rust (safetensors) and C++ (torch.save, as seen on a full disk) say it: they give
# no number.
_SAID = re.compile(
    r"No space left on device|PytorchStreamWriter failed writing|inline_container\.cc:\d+\] \. unexpected pos"
)


def is_full(error: BaseException) -> bool:
    """True if there was no room for something that was written."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return full or bool(_SAID.search(str(error)))


def describe_error(error: BaseException) -> str:
    """Say in one line what an error means for a run."""
    if is_full(error):
        where = getattr(error, "filename", None) or "nothing more can be written"
        again = "what was finished is kept, and a new run goes on from there"
        return f"the disk is full ({where}); free some space and run again: {again}"
    worded = isinstance(error, (ConnectionError, RuntimeError)) or (
        isinstance(error, OSError) and error.errno is None
    )
    return str(error) if worded else f"{type(error).__name__}: {error}"


def on_colab() -> bool:
    """True in a notebook on Colab."""
    try:
        return find_spec("google.colab") is not None
    except ModuleNotFoundError:  # there is no package "google"
        return False


def quiet() -> None:
    """Silence transformers' and datasets' bars and notices; this package's warnings stay.

    What transformers would warn of and what matters here, tensors left random,
    is an error in :mod:`bertology_utils.models`.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    warnings.filterwarnings("ignore", message="IProgress not found")  # tqdm without ipywidgets
    import datasets
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    datasets.utils.logging.set_verbosity_error()
    datasets.disable_progress_bars()
    logging.getLogger("filelock").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=FutureWarning)
    import pandas as pd
    import xarray as xr

    # Its HTML has other names in each run.
    xr.set_options(display_style="text")  # type: ignore[no-untyped-call]
    pd.set_option(
        "display.max_colwidth", None, "display.width", 10_000, "display.max_columns", None
    )


# The Hugging Face Hub: what is pinned, and a failure to fetch in one sentence.

BERT_BASE = "google-bert/bert-base-uncased"
HUB_GLUE = "nyu-mll/glue"
# Pinned commits of what the Hub serves, so that a re-run sees the same bytes.
HUB_REVISIONS = {
    BERT_BASE: "86b5e0934494bd15c9632b12f734a8a67f723594",
    HUB_GLUE: "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c",
}
CHECK = "Check its name, its revision and your access (hf auth login), or try again later"


@contextmanager
def hub_errors(what: str, instead: str) -> Iterator[None]:
    """Say in one sentence why something could not be fetched, and what to do.

    huggingface_hub repeats failed requests by itself, and files that came whole stay in its cache.

    Args:
        what: is fetched: a model or data set, with its revision.
        instead: what works without the Hub.

    Raises:
        ConnectionError: a library could not fetch it, or cannot read what it fetched.
        OSError: the disk is full.
    """
    try:
        yield
    except Exception as error:  # of five libraries; they wrap the error that tells most
        if type(error).__module__ == "builtins" and not isinstance(error, OSError):
            raise  # a fault of the code
        chain: list[BaseException] = [error]
        while cause := chain[-1].__cause__ or chain[-1].__context__:
            chain.append(cause)
        if any(map(is_full, chain)):
            full = "free some space, or set HF_HOME to a folder on another disk"
            raise OSError(f"no room to fetch {what}, the disk is full; {full}") from error
        from huggingface_hub.constants import HF_HUB_CACHE

        said = [re.split(r"\n|\.(?:\s|$)", str(part))[0].rstrip(":") for part in chain]
        why = ": ".join(dict.fromkeys((said[0], said[-1])))
        damaged = {"SafetensorError", "JSONDecodeError", "ArrowInvalid"}
        todo = f"A file is damaged: delete its folder in {HF_HUB_CACHE}, and it is fetched again"
        advice = todo if damaged & {type(part).__name__ for part in chain} else CHECK
        raise ConnectionError(
            f"{what} could not be loaded from the Hub: {why}. {advice}; or work offline: {instead}"
        ) from error
