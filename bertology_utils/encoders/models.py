"""Encoders and classifiers: where they come from and how they are initialised.

Three initialisations: "pretrained", with a new classification layer; "normal",
the paper's control (§4.3); "finetuned", a checkpoint with its own
classification layer.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

import torch

from ..common import one_of
from ..glue.tasks import Task, get_task
from .fetching import commit_of, fetch_tokenizer, load_config
from .fetching import fetching as _fetching
from .sources import ModelSource, parse_model

if TYPE_CHECKING:
    from transformers import AutoModel, AutoModelForSequenceClassification, PreTrainedModel, PreTrainedTokenizerFast

INITS = ("pretrained", "normal", "finetuned")
NORMAL_STD = 0.02  # BERT's own initializer_range
# In training and prediction; measuring switches to its own. "sdpa" is faster and
# rounds differently, so that trainings end in other last digits.
ATTENTION = "eager"


def _source(model: ModelSource | str) -> ModelSource:
    return parse_model(model) if isinstance(model, str) else model


def load_tokenizer(source: ModelSource | str) -> PreTrainedTokenizerFast:
    """The model's fast tokenizer (offsets are needed to find words); see :func:`load_classifier`.

    Raises:
        ValueError: the model has no fast tokenizer.
        ConnectionError: the Hub cannot be reached.
    """
    source = _source(source)
    tokenizer = fetch_tokenizer(source)
    if not tokenizer.is_fast:
        raise ValueError(f"model {source.name!r} has no fast tokenizer, so words cannot be aligned to wordpieces")
    return tokenizer


def load_encoder(source: ModelSource | str, init: str = "pretrained", seed: int = 0) -> PreTrainedModel:
    """The bare encoder, in evaluation mode; see :func:`load_classifier`."""
    from transformers import AutoModel

    return _load(AutoModel, _source(source), init, seed)


def load_classifier(source: ModelSource | str, task: Task | str, init: str = "pretrained", seed: int = 0) -> PreTrainedModel:
    """The encoder with a classifier of ``task.num_labels`` outputs, in evaluation mode.

    Args:
        source: from :func:`bertology_utils.encoders.sources.parse_model`, or what that reads.
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
    layers, heads = (getattr(config, name, None) for name in ("num_hidden_layers", "num_attention_heads"))
    if not (isinstance(layers, int) and isinstance(heads, int)):
        raise ValueError(f"model {source.name!r} ({config.model_type}) has no layers of attention heads of BERT's kind")
    return (source if source.is_local else replace(source, revision=commit_of(source))), (layers, heads)


def _load(
    auto_class: type[AutoModel | AutoModelForSequenceClassification],
    source: ModelSource,
    init: str,
    seed: int,
    **config_changes: int,
) -> PreTrainedModel:
    one_of("init", init, INITS)
    with torch.random.fork_rng(devices=[]):
        with _fetching(source):
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


class _Loading(TypedDict):
    """What transformers says of a checkpoint's tensors, by name."""

    missing_keys: Collection[str]
    unexpected_keys: Collection[str]
    mismatched_keys: Collection[str | tuple[str, torch.Size, torch.Size]]


def _refuse_incomplete(model: PreTrainedModel, loading: _Loading, source: ModelSource, init: str) -> None:
    """Transformers only warns of tensors left random; here that is an error."""
    is_bare = model.base_model is model
    parts = {name for name, _ in model.base_model.named_children()}

    def of_encoder(key: str) -> bool:
        part = key.removeprefix(f"{model.base_model_prefix}.").split(".")[0]
        # A pooler feeds the classifier alone; no map depends on it.
        return part in parts and not (is_bare and part == "pooler")

    misshapen = [key if isinstance(key, str) else key[0] for key in loading.get("mismatched_keys") or []]
    problems: dict[str, Collection[str]] = {
        "missing": loading["missing_keys"],
        "unexpected": loading["unexpected_keys"],
        "misshapen": misshapen,
    }
    if init != "finetuned":  # the classification layer is drawn anew; heads of pre-training are dropped
        problems = {kind: [key for key in keys if of_encoder(key)] for kind, keys in problems.items()}
    found = [f"{len(keys)} {kind} ({', '.join(sorted(keys)[:3])}…)" for kind, keys in problems.items() if keys]
    if found:
        raise ValueError(
            f"model {source.name!r} does not fit {type(model).__name__}: {'; '.join(found)}."
            " Every tensor of the encoder must come from the checkpoint"
        )


def _draw_head(model: PreTrainedModel) -> None:
    """Draw the layers above the encoder as BERT's own code does: matrices from N(0, 0.02²), biases 0."""
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
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() >= 2:
                parameter.normal_(0.0, std)
            else:
                is_scale = "norm" in name.lower() and name.endswith("weight")
                parameter.fill_(1.0 if is_scale else 0.0)
