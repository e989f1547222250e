"""Encoders and classifiers: where they come from and how they are initialised.

Three initialisations: pre-trained; "normal", the paper's control (§4.3); and a
checkpoint, which is a folder like any other.
"""

from contextlib import nullcontext

import torch
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from .attention import register_attention
from .choices import one_of
from .hub import hub_errors
from .sources import ModelSource
from .tasks import Task

INITS = ("pretrained", "normal")
NORMAL_STD = 0.02  # BERT's own initializer_range
# Heads of the pre-training objectives: in a published checkpoint, not in an encoder.
_PRETRAINING_HEADS = ("cls.", "lm_head.", "discriminator_predictions.", "generator_predictions.", "generator_lm_head.")


def _fetching(source: ModelSource):
    """Context in which a failure to reach the Hub becomes one readable error."""
    return nullcontext() if source.is_local else hub_errors("model", source.location, source.revision)


def load_tokenizer(source: ModelSource):
    """The model's fast tokenizer (offsets are needed to find words).

    Raises:
        ValueError: the model has no fast tokenizer.
        ConnectionError: the Hub cannot be reached.
    """
    with _fetching(source):
        tokenizer = AutoTokenizer.from_pretrained(source.location, revision=source.revision or "main")
    if not tokenizer.is_fast:
        raise ValueError(f"model {source.name!r} has no fast tokenizer, so words cannot be aligned to wordpieces")
    return tokenizer


def load_encoder(source: ModelSource, init: str = "pretrained", seed: int = 0):
    """The bare encoder, in evaluation mode; see :func:`load_classifier`."""
    return _load(AutoModel, source, init, seed)


def load_classifier(source: ModelSource, task: Task, init: str = "pretrained", seed: int = 0):
    """The encoder with a classifier of ``task.num_labels`` outputs, in evaluation mode.

    The classifier of a source that has none is drawn by ``seed``. Attention
    goes through :mod:`bertology_utils.attention`, which can show its maps.

    Args:
        source: from :func:`bertology_utils.sources.parse_model`.
        task: the task.
        init: "pretrained", or "normal" (see :func:`draw_normal`).
        seed: of everything drawn.

    Raises:
        ValueError: unknown ``init``, or an encoder tensor that the checkpoint
            lacks, has in excess, or has in another shape.
        ConnectionError: the Hub cannot be reached.
    """
    return _load(AutoModelForSequenceClassification, source, init, seed, num_labels=task.num_labels)


def _load(auto_class, source: ModelSource, init: str, seed: int, **config_changes):
    one_of("init", init, INITS)
    register_attention()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        with _fetching(source):
            model, loading = auto_class.from_pretrained(
                source.location,
                revision=source.revision or "main",
                use_safetensors=True,
                output_loading_info=True,
                dtype=torch.float32,
                attn_implementation="eager",
                ignore_mismatched_sizes=True,  # reported below, by name
                **config_changes,
            )
        _refuse_incomplete(model, loading, source)
        if init == "normal":
            draw_normal(model)
    return model.eval()


def _refuse_incomplete(model, loading: dict, source: ModelSource) -> None:
    """Transformers only warns of tensors left random; here that is an error."""
    prefix = model.base_model_prefix + "."
    is_bare = model.base_model is model
    missing = [key for key in loading["missing_keys"] if is_bare or key.startswith(prefix)]
    # A bare encoder's pooler feeds the classifier only; no map depends on it.
    missing = [key for key in missing if not (is_bare and key.startswith("pooler."))]
    unexpected = [key for key in loading["unexpected_keys"] if not key.startswith(_PRETRAINING_HEADS)]
    unexpected = [key for key in unexpected if not (is_bare and key.startswith(("classifier.", "pooler.")))]
    problems = {"missing": missing, "unexpected": unexpected, "misshapen": list(loading.get("mismatched_keys") or [])}
    found = [f"{len(keys)} {kind} ({', '.join(map(str, sorted(keys)[:3]))}…)" for kind, keys in problems.items() if keys]
    if found:
        raise ValueError(
            f"model {source.name!r} does not fit {type(model).__name__}: {'; '.join(found)}."
            " Every tensor of the encoder must come from the checkpoint"
        )


def draw_normal(model, std: float = NORMAL_STD) -> None:
    """Redraw every weight matrix and embedding from N(0, ``std``²), in place.

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
