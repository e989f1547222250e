"""A model's files before it is made of them: fetched with patience, and none of its code is run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..common.hub import hub_errors
from ..common.retries import with_retries
from .sources import ModelSource

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedTokenizerFast

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def load_config(source: ModelSource) -> PreTrainedConfig:
    """The model's configuration, as transformers reads it.

    Raises:
        ValueError: only code of the repository could read it; such code is not run.
        ConnectionError: the Hub cannot be reached; see :func:`bertology_utils.common.hub.hub_errors` for others.
    """
    from transformers import AutoConfig

    with _own_code_refused(source), _hub(source):
        return with_retries(lambda: AutoConfig.from_pretrained(source.location, **_from(source)), _what(source))


def fetch_tokenizer(source: ModelSource) -> PreTrainedTokenizerFast:
    """The model's tokenizer, whatever its kind; raises as :func:`load_config`."""
    from transformers import AutoTokenizer

    with _own_code_refused(source), _hub(source):
        return with_retries(lambda: AutoTokenizer.from_pretrained(source.location, **_from(source)), _what(source))


def commit_of(source: ModelSource) -> str:
    """The commit that a Hub model's revision means now: a branch moves, and what is kept or told by its name would not.

    Raises:
        ConnectionError: as :func:`load_config`.
    """
    from huggingface_hub import hf_hub_download

    with _hub(source):
        config = with_retries(lambda: hf_hub_download(source.location, CONFIG, revision=source.revision), _what(source))
    return Path(config).parent.name  # of a snapshot in the Hub's cache, which is named by its commit, also offline


@contextmanager
def fetching(source: ModelSource) -> Iterator[None]:
    """A context in which a model is made of its files: what needs its own code is refused, the Hub's weights are there.

    Raises:
        ValueError, ConnectionError: as :func:`load_config`.
    """
    load_config(source)
    with _own_code_refused(source), _hub(source):
        if not source.is_local:
            with_retries(lambda: _fetch_weights(source), _what(source))
        yield


def _fetch_weights(source: ModelSource) -> None:
    """Into the Hub's cache, where transformers finds them."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import RemoteEntryNotFoundError

    with suppress(RemoteEntryNotFoundError):  # they are in several files, which transformers fetches, or it says: in none
        hf_hub_download(source.location, WEIGHTS, revision=source.revision)


def _from(source: ModelSource) -> dict[str, str | bool]:
    return {"revision": source.revision or "main", "trust_remote_code": False}


def _what(source: ModelSource) -> str:
    return f"the model {source.location}"


@contextmanager
def _hub(source: ModelSource) -> Iterator[None]:
    """A failure to reach the Hub becomes one readable error."""
    if source.is_local:
        yield
    else:
        with hub_errors("model", source.location, source.revision):
            yield


@contextmanager
def _own_code_refused(source: ModelSource) -> Iterator[None]:
    """What transformers could only load by running code of the repository is refused, and nobody is asked to allow it."""
    from transformers import dynamic_module_utils

    before = dynamic_module_utils.TIME_OUT_REMOTE_CODE
    dynamic_module_utils.TIME_OUT_REMOTE_CODE = 0  # seconds that transformers waits for a "yes"
    try:
        yield
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        raise ValueError(
            f"model {source.name!r} can be loaded only by running code from its repository (auto_map in its files), which"
            " is never done here; choose a model whose architecture transformers has"
        ) from None
    finally:
        dynamic_module_utils.TIME_OUT_REMOTE_CODE = before
