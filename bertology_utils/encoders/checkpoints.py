"""A person's own fine-tuned classifiers, taken instead of training: the parameter ``checkpoint``."""

from pathlib import Path

from ..common.safetensors_header import tensor_shapes
from ..glue.sources import task_pairs
from ..glue.tasks import Task, get_task
from .sources import ModelSource, parse_model

# What a classifier must share with the model that it is compared with, under the names of BERT's configuration.
_SHARED = ("model_type", "num_hidden_layers", "num_attention_heads", "hidden_size", "vocab_size")
_LAST_LAYERS = ("classifier", "classifier.out_proj", "classifier.dense", "score")


def parse_checkpoints(text: str, model: ModelSource) -> tuple[tuple[str, ModelSource], ...]:
    """Read "sst2=FOLDER,mrpc=FOLDER": (task name, checkpoint) for each task, every one looked into.

    Args:
        text: the parameter; "" for none.
        model: the encoder that the classifiers were fine-tuned from; as far as its shape is known without the
            Hub, theirs must be the same.

    Raises:
        ValueError: not of that form, a task twice, no folder, or a classifier that does not fit its task or the model.
    """
    found: dict[str, ModelSource] = {}
    for name, place in task_pairs("checkpoint", text, "sst2=PATH/TO/FOLDER"):
        if name in found:
            raise ValueError(f"checkpoint: {name} is given twice; there is one classifier per task")
        found[name] = _checked(get_task(name), place, model)
    return tuple(found.items())


def _checked(task: Task, place: str, model: ModelSource) -> ModelSource:
    if not Path(place).expanduser().is_dir():
        raise ValueError(f"checkpoint: there is no folder {place} for {task.title}; save_pretrained(FOLDER) writes one")
    source = parse_model(place)
    labels = _labels(source)
    if labels != task.num_labels:
        wanted = "1, the score" if task.is_regression else f"{task.num_labels}: {', '.join(task.labels)}"
        raise ValueError(f"checkpoint {place}: its classifier has {labels} outputs; {task.title} wants {wanted}")
    theirs, ours = source.config, model.config if model.is_local else _as_config(model.shape())
    for name in _SHARED:
        if name in ours and theirs.get(name) != ours[name]:
            raise ValueError(
                f"checkpoint {place}: its {name} is {theirs.get(name)!r}, that of the model {model.name!r} is"
                f" {ours[name]!r}; name the model that it was fine-tuned from as model"
            )
    return source


def _labels(source: ModelSource) -> int:
    """Outputs of a checkpoint's classification layer."""
    shapes = tensor_shapes(Path(source.location))
    last = [shapes[f"{name}.weight"][0] for name in _LAST_LAYERS if f"{name}.weight" in shapes]
    named = [name for name in source.config.get("architectures") or [] if name.endswith("ForSequenceClassification")]
    if not last or not named:
        there = ", ".join(source.config.get("architectures") or ["none"])
        raise ValueError(
            f"checkpoint {source.name}: it has no classification layer (architecture: {there});"
            " wanted is what AutoModelForSequenceClassification saves"
        )
    return last[0]


def _as_config(shape: tuple[int, int] | None) -> dict[str, int]:
    return dict(zip(("num_hidden_layers", "num_attention_heads"), shape, strict=True)) if shape else {}
