"""The Hub: what is pinned, patience with it, and its errors in words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from .common import is_full, note

BERT_BASE = "google-bert/bert-base-uncased"
GLUE = "nyu-mll/glue"
# Pinned commits of what the Hub serves, so that a re-run sees the same bytes.
HUB_REVISIONS = {
    BERT_BASE: "86b5e0934494bd15c9632b12f734a8a67f723594",
    GLUE: "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c",
}
T = TypeVar("T")
WAITS = (2, 8, 20)  # seconds before each further attempt
LONGEST = 120  # seconds that the Hub's own wish (Retry-After) is followed


def with_retries(fetch: Callable[[], T], what: str) -> T:
    """What ``fetch`` gives, which is called anew after a failure that may have passed by then.

    The libraries ask again after most failures of a single request. What they give up at once is
    tried again here, as a whole: a fault of the Hub while it sends a file, a list of files that it
    refuses, a connection that is reset. Files that came whole are in their caches by then.

    Args:
        fetch: fetches something; nothing half-made may be left when it fails.
        what: it is, for the message.

    Raises:
        Exception: what ``fetch`` raises, at once if waiting does not help, else at its last call.
    """
    for attempt, wait in enumerate(WAITS, start=2):
        try:
            return fetch()
        except Exception as error:  # of four libraries, with no common class
            found = passing(error)
            if found is None:
                raise
            reason, wish = found
            wait = max(wait, min(wish, LONGEST))
        note(
            f"{what}: {reason}; asking again in {wait} s ({attempt}/{len(WAITS) + 1})"
        )  # "2 of 4" would be progress
        time.sleep(wait)
    return fetch()


@contextmanager
def hub_errors(kind: str, name: str, revision: str | None) -> Iterator[None]:
    """Turn a failure to fetch from the Hub into one readable error; other errors pass as they are.

    Args:
        kind: "model" or "data set", for the message.
        name: repository.
        revision: pinned commit or branch; None for the default branch.

    Raises:
        PermissionError: the Hub wants to know who asks (401), or refuses (403).
        FileNotFoundError: there is no such repository, revision or file (404).
        TimeoutError: it did not answer in time.
        ConnectionError: it cannot be reached, the libraries are set to offline work, it limits
            the rate (429), has a fault of its own (5xx), or breaks off.
        ValueError: what came is damaged.
        OSError: the disk is full.
    """
    try:
        yield
    except Exception as error:  # of four libraries, with no common class
        chain = _chain(error)
        found = next(
            (meaning for look in _LOOKS for part in chain if (meaning := look(part))), None
        )
        if found is None:
            raise
        raised, text = found
        what = f"the {kind} {name!r} at revision {revision or 'main'} could not be loaded from the Hub: {text}"
        full = raised is OSError  # nothing to do with where the data come from
        damaged = f" (its folder there: {_cached(kind, name)})" if raised is ValueError else ""
        raise raised(
            what + damaged + ("" if full else f". Or work offline: {_OFFLINE[kind]}")
        ) from error


def passing(error: BaseException) -> tuple[str, int] | None:
    """Why something failed that may work a little later, and after how many seconds the Hub wants to be asked again.

    Args:
        error: what a library raised.

    Returns:
        None if waiting does not help. Timeouts and addresses without an answer are not among them:
        the libraries have asked for long by then, and who is offline is to learn it soon.
    """
    for part in _chain(error):
        response = getattr(part, "response", None)
        status = getattr(response, "status_code", None)
        if status in (408, 429) or (status or 0) >= 500:
            wish = str(getattr(response, "headers", {}).get("Retry-After", ""))
            return f"the Hub answered with status {status}", int(wish) if wish.isdecimal() else 0
        if _broken_off(part):
            return "the connection broke off", 0
    return None


def _cached(kind: str, name: str) -> str:
    """The folder of a repository in the Hub's cache."""
    from huggingface_hub import constants

    return str(
        Path(constants.HF_HUB_CACHE) / f"{kind.replace(' ', '')}s--{name.replace('/', '--')}"
    )


_Meaning = tuple[type[Exception], str]  # what to raise, and what to say

_OFFLINE = {
    "model": "model='embedded', or model='PATH' of a folder with config.json and model.safetensors.",
    "data set": "data='embedded', or data='folder:PATH' of GLUE's own .tsv files.",
}
_STATUS: dict[int, _Meaning] = {
    401: (
        PermissionError,
        "it does not exist, or is private (401); check the name, or log in with: hf auth login",
    ),
    403: (
        PermissionError,
        "access is refused (403); ask for it on the repository's page, and log in with: hf auth login",
    ),
    404: (FileNotFoundError, "there is nothing of this name (404); check the name"),
    429: (
        ConnectionError,
        "the Hub limits how often one may ask (429); wait some minutes, or log in",
    ),
}
# By the name of the class, so that none of the libraries has to be imported for it.
_CLASSES: dict[str, _Meaning] = {
    "GatedRepoError": (
        PermissionError,
        "access to it must be asked for on its page; then log in with: hf auth login",
    ),
    "RevisionNotFoundError": (
        FileNotFoundError,
        "the repository has no such revision; check it, or leave it away",
    ),
    "RemoteEntryNotFoundError": (
        FileNotFoundError,
        "the repository lacks a file that is needed (config or tokenizer)",
    ),
    "SafetensorError": (
        ValueError,
        "its weights are damaged; delete them from the Hub's cache and fetch them again",
    ),
    "ArrowInvalid": (
        ValueError,
        "a file is damaged; delete it from the Hub's cache and fetch it again",
    ),
    "JSONDecodeError": (
        ValueError,
        "a file is damaged (no JSON); delete it from the Hub's cache and fetch it again",
    ),
}


def _chain(error: BaseException | None) -> list[BaseException]:
    """An error and what led to it: libraries wrap the telling one."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def _names(error: BaseException) -> list[str]:
    return [base.__name__ for base in type(error).__mro__]


def _known(error: BaseException) -> _Meaning | None:
    """What the error's class or, of a full disk, its number says."""
    if is_full(error):
        return (
            OSError,
            "the disk is full; free some space, or set HF_HOME to a folder on another disk",
        )
    return next((_CLASSES[name] for name in _names(error) if name in _CLASSES), None)


def _status(error: BaseException) -> _Meaning | None:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is None:
        return None
    if status >= 500:
        return ConnectionError, f"the Hub has a fault of its own ({status}); try again later"
    return _STATUS.get(status, (ConnectionError, f"the Hub answered with status {status}"))


def _broken_off(error: BaseException) -> _Meaning | None:
    """In the middle of an answer: of httpx and requests by name, and what huggingface_hub says of a file that is too short."""
    broken = {
        "ReadError",
        "WriteError",
        "RemoteProtocolError",
        "ChunkedEncodingError",
        "ConnectionResetError",
    } & set(_names(error))
    if broken or (isinstance(error, OSError) and str(error).startswith("Consistency check failed")):
        return ConnectionError, "the connection broke off; what came whole is kept, so try again"
    return None


def _network(error: BaseException) -> _Meaning | None:
    if isinstance(error, TimeoutError) or any("Timeout" in name for name in _names(error)):
        return TimeoutError, "the Hub did not answer in time; try again"
    away = {"TransportError", "RequestException", "ClientError", "LocalEntryNotFoundError"} & set(
        _names(error)
    )
    if not away and not isinstance(error, ConnectionError):
        return None
    from huggingface_hub import constants

    reason = (
        "offline work is set (HF_HUB_OFFLINE)"
        if constants.HF_HUB_OFFLINE
        else "the Hub cannot be reached"
    )
    return ConnectionError, f"{reason}, and it is not in the local cache"


def _library(error: BaseException) -> _Meaning | None:
    if "DatasetNotFoundError" in _names(error):
        lacks = (
            "the repository has no such revision"
            if "evision" in str(error)
            else "it does not exist, or is private"
        )
        return FileNotFoundError, f"{lacks}; check the name and the revision"
    if isinstance(error, OSError) and "does not appear to have a file named" in str(
        error
    ):  # transformers' own, no class
        return (
            FileNotFoundError,
            "the repository lacks a file that is needed; pickled weights are not loaded",
        )
    return None


_LOOKS = (_known, _status, _broken_off, _network, _library)  # the surest sign first
