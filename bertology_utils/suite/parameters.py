"""Notebook parameters: what each may be, checked before a kernel starts and again in the notebook."""

from collections.abc import Callable
from dataclasses import dataclass

from ..common import DIRECTIONS, PROTOCOLS, one_of, to_code
from ..common.profiles import PROFILES, Profile, get_profile
from ..glue.sources import DataSource, ModelSource, check_framenet, parse_annotation, parse_data, parse_model
from ..glue.tasks import Task, parse_tasks


@dataclass(frozen=True)
class Settings:
    """Parameters with a profile's defaults filled in and names resolved.

    Attributes:
        profile, model, data, tasks: what is run on what.
        seed: of every random draw.
        max_examples: dev rows whose maps are measured, per task.
        train_examples: training rows per task; 0 for all.
        sweep_examples: dev rows on which heads are disabled; 0 for all.
        protocol: "paper" or "official".
        head: (layer, head) from 0, or None where the notebook chooses.
        framenet: the FrameNet release.
        annotation: where parts of speech and dependencies come from; not
            checked unless given, since not every notebook needs them.
    """

    profile: Profile
    model: ModelSource
    data: DataSource
    tasks: tuple[Task, ...]
    seed: int
    max_examples: int
    train_examples: int
    sweep_examples: int
    protocol: str
    head: tuple[int, int] | None
    framenet: str
    annotation: str


def _at_least(low: int) -> Callable[[str, int], None]:
    def check(name: str, value: int) -> None:
        if not low <= value < 2**31:
            raise ValueError(f"{name}={value!r} is out of range; it is a whole number from {low} to 2**31 - 1")

    return check


def _any(name: str, value: object) -> None:
    """Checked where it is resolved."""


# Every parameter that a notebook may declare: its type, and what it may be.
KNOWN: dict[str, tuple[type, Callable]] = {
    "profile": (str, lambda name, value: one_of(name, value, PROFILES)),
    "model": (str, _any),
    "data": (str, _any),
    "train_files": (str, _any),
    "tasks": (str, lambda name, value: parse_tasks(value)),
    "seed": (int, _at_least(0)),
    "max_examples": (int, _at_least(0)),
    "train_examples": (int, _at_least(0)),
    "protocol": (str, lambda name, value: one_of(name, value, PROTOCOLS)),
    "framenet": (str, lambda name, value: check_framenet(value) if value else None),
    "annotation": (str, lambda name, value: parse_annotation(value) if value else None),
    "direction": (str, lambda name, value: one_of("direction", value, DIRECTIONS)),
    "sentence_tokens": (int, _at_least(0)),
    "element_tokens": (int, _at_least(0)),
    "nearest": (int, _at_least(0)),
    "sweep_examples": (int, _at_least(0)),
    "trainings": (int, _at_least(0)),
    "layer": (int, _at_least(0)),
    "head": (int, _at_least(0)),
}


def convert(name: str, text: str) -> object:
    """A value from the command line, in the parameter's type.

    Raises:
        ValueError: unknown name, or text that is not of the type.
    """
    kind, _ = KNOWN[one_of("parameter", name, KNOWN)]
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{name}={text!r} is not of type {kind.__name__}") from None


def resolve(**given) -> Settings:
    """Check parameters and fill in the profile's defaults; empty text and 0 mean "the profile's".

    Raises:
        ValueError, TypeError, FileNotFoundError: naming the parameter, its
            value and what is allowed.
    """
    for name, value in given.items():
        kind, check = KNOWN[one_of("parameter", name, KNOWN)]
        if type(value) is not kind:
            raise TypeError(f"{name}={value!r} is of type {type(value).__name__}, {kind.__name__} is wanted")
        check(name, value)
    profile = get_profile(given.get("profile", "embedded"))
    model = parse_model(given.get("model") or profile.model)
    data = parse_data(given.get("data") or profile.data, given.get("train_files", ""))
    return Settings(
        profile=profile,
        model=model,
        data=data,
        tasks=parse_tasks(given.get("tasks", "all")),
        seed=given.get("seed", 1),
        max_examples=given.get("max_examples") or profile.max_examples,
        train_examples=given.get("train_examples") or profile.train_examples,
        sweep_examples=given.get("sweep_examples") or profile.sweep_examples,
        protocol=given.get("protocol", "paper"),
        head=_head(given.get("layer", 0), given.get("head", 0), model),
        framenet=given.get("framenet") or profile.framenet,
        annotation=given.get("annotation") or ("gold" if data.kind == "embedded" else profile.annotation),
    )


def _head(layer: int, head: int, model: ModelSource) -> tuple[int, int] | None:
    if layer == head == 0:
        return None
    # Where only the Hub knows the model's shape, Experiment looks again.
    layers, heads = model.shape() or (max(layer, 1), max(head, 1))
    return to_code(layer, layers, "layer"), to_code(head, heads, "head")
