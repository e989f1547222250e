"""The Hugging Face Hub: what is pinned, and a failure to fetch in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from .common import is_full

BERT_BASE = "google-bert/bert-base-uncased"
GLUE = "nyu-mll/glue"
# Pinned commits of what the Hub serves, so that a re-run sees the same bytes.
HUB_REVISIONS = {
    BERT_BASE: "86b5e0934494bd15c9632b12f734a8a67f723594",
    GLUE: "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c",
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
