"""What a notebook runs with: profiles, every parameter declared once, and the settings made of both.

A parameter stands in its notebook's cell and in :class:`Parameters`, nowhere else: the comments of
the cell, ``list``, the help and the check are made from there. Nothing heavy is imported, so that
what is wrong is refused at once.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .common import DIRECTIONS, PROTOCOLS, WEIGHINGS, one_based, one_of, zero_based
from .glue import DataSource, Task, get_task, parse_tasks
from .hub import BERT_BASE, GLUE, HUB_REVISIONS
from .sources import (
    ModelSource,
    parse_checkpoints,
    parse_data,
    parse_model,
    parse_source,
    parse_treebank,
)

ALL = -1  # of a number of rows: as many as there are


@dataclass(frozen=True)
class Recipe:
    """How a classifier is fine-tuned.

    AdamW with linear decay after a linear warm-up, gradients clipped at norm 1,
    batches of similar length; mixed precision on a GPU.

    Attributes:
        learning_rate: peak rate.
        epochs: passes over the training rows.
        batch_size: rows per step (32 in the paper, §3).
        warmup: share of the steps that warm up.
        weight_decay: AdamW's decoupled decay.
        adam_epsilon: AdamW's ε.
        max_length: wordpieces per input, [CLS] and [SEP] included; longer inputs are cut.
        on_cpu: number format on a CPU, "float32" or "bf16" (mixed).
    """

    learning_rate: float
    epochs: int = 3
    batch_size: int = 32
    warmup: float = 0.1
    weight_decay: float = 0.01
    adam_epsilon: float = 1e-6
    max_length: int = 128
    on_cpu: str = "float32"


@dataclass(frozen=True)
class Profile:
    """A named set of defaults; a parameter of the same name overrides its part.

    Attributes:
        name: how it is called on the command line.
        model: "embedded", a Hub name or a folder.
        data: "embedded", "hub" or "folder:PATH".
        recipe: how classifiers are fine-tuned.
        train_examples: training rows per task, drawn by seed; or ALL.
        max_examples: dev rows whose attention maps are measured, drawn by seed (1000 in the paper,
            footnote 5); or ALL.
        framenet: the FrameNet release of §4.2.
        annotation: where parts of speech and dependencies of data other than the embedded come
            from.
        tasks: those that "all" stands for; "all", or names with commas between.
        trainings: fine-tuned models per task, which differ in their seed.
        random_starts: models per task that are fine-tuned from random weights (§4.3), at most as
            many.
        random_tasks: the tasks that they are trained on; "all", or names with commas between.
        random_epochs: passes over the training rows that they take; 0 for those of the recipe.
        trainings_by_task: (task, number) where it is another.
        after: (task, task before): whose fine-tuned encoder a task's own fine-tuning begins with.
        sweep_examples: dev rows on which heads are disabled (§4.6), drawn by seed; or ALL.
    """

    name: str
    model: str
    data: str
    recipe: Recipe
    train_examples: int = ALL
    max_examples: int = 1000
    framenet: str = "nltk"
    annotation: str = "spacy:en_core_web_sm"
    tasks: str = "all"
    trainings: int = 2  # fewer say nothing of how trainings differ
    random_starts: int = 1
    random_tasks: str = "all"
    random_epochs: int = 0
    trainings_by_task: tuple[tuple[str, int], ...] = ()
    after: tuple[tuple[str, str], ...] = ()
    sweep_examples: int = ALL

    def recipe_of(self, init: str) -> Recipe:
        """How classifiers are fine-tuned from "pretrained" or from "normal" weights."""
        epochs = self.random_epochs if init == "normal" else 0
        return replace(self.recipe, epochs=epochs or self.recipe.epochs)


_PROFILES = (
    Profile(
        name="embedded",
        model="embedded",
        data="embedded",
        framenet="embedded",
        recipe=Recipe(learning_rate=2e-4, epochs=2, max_length=64),
        # In two passes it learns nothing. Of what it learns in five (corpora_generator/README.md)
        # these are the quickest.
        random_tasks="stsb,sst2,mnli",
        random_epochs=5,
    ),
    Profile(
        name="minilm",
        model="embedded",
        data="hub",
        tasks="mrpc,stsb,sst2,qqp,rte,mnli",
        train_examples=10_000,
        max_examples=200,
        sweep_examples=400,
        # Those of the other three take as long as half of all trainings from the pre-trained start.
        random_tasks="mrpc,stsb,sst2",
        trainings_by_task=(("mrpc", 5), ("rte", 5), ("stsb", 3), ("sst2", 3)),
        # A small model wants a higher rate than BERT; at 2e-4 MRPC fell to 0.73 accuracy. RTE
        # alone, in three passes or in ten, it does not learn; after MNLI it does, as held-out
        # training rows said (0.53, 0.56 and 0.63).
        after=(("rte", "mnli"),),
        # Where the processor has instructions for it (AVX-512 BF16), bf16 takes 0.6 of float32's
        # time for each step.
        recipe=Recipe(learning_rate=1e-4, on_cpu="bf16"),
    ),
    # The paper gives batch and epochs (§3) and no rate; 2e-5 is the middle of Devlin et al.'s
    # three, and what Prasanna et al. (2020) used.
    Profile(
        name="paper",
        model=BERT_BASE,
        data="hub",
        recipe=Recipe(learning_rate=2e-5),
        trainings=5,
        random_starts=5,
    ),
    # What a T4, the GPU that Colab lends for nothing, does in two hours (the arithmetic:
    # docs/own_data.md).
    Profile(
        name="colab",
        model=BERT_BASE,
        data="hub",
        tasks="mrpc,stsb,sst2,rte",
        train_examples=10_000,
        max_examples=300,
        sweep_examples=400,
        trainings=3,
        recipe=Recipe(learning_rate=2e-5),
    ),
    # What needs no fine-tuned model (notebooks 2 and 8): on a CPU in minutes.
    Profile(
        name="bert-forward",
        model=BERT_BASE,
        data="hub",
        max_examples=200,
        recipe=Recipe(learning_rate=2e-5),
    ),
)
PROFILES = {profile.name: profile for profile in _PROFILES}


def _number(meaning: str, default: int = 0, least: int = 0) -> Any:
    return Field(default, description=meaning, ge=least, le=2**31 - 1)


def _text(meaning: str, default: str = "") -> Any:
    return Field(default, description=meaning)


class Parameters(BaseModel):
    """All that a notebook may declare, as a person writes it, each with its default and its meaning."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    profile: Literal[*PROFILES] = _text("model, data, sizes and recipe", "embedded")  # type: ignore[valid-type]
    model: str = _text("encoder: embedded, a folder, or a Hub name; empty: the profile's")
    checkpoint: str = _text("own classifiers instead of trainings: TASK=FOLDER,TASK=FOLDER")
    data: str = _text("rows: embedded, hub or folder:PATH; empty: the profile's")
    train_files: str = _text("with a folder, training files of other names: TASK=FILE,TASK=FILE")
    tasks: str = _text("all, or names with commas between", "all")
    annotation: str = _text(
        "gold (with embedded data), spacy:NAME or conllu:PATH; empty: the profile's"
    )
    treebank: str = _text("a CoNLL-U file to measure dependencies on; empty: the tasks' rows")
    framenet: str = _text("embedded, nltk, folder:PATH or zip:PATH; empty: the profile's")
    protocol: Literal[*PROTOCOLS] = _text("the paper's text or its published code", "paper")  # type: ignore[valid-type]
    weighing: Literal[*WEIGHINGS] = _text(
        "what maps are of: attention weights, or what they carry", "weight"
    )  # type: ignore[valid-type]
    direction: Literal[*DIRECTIONS] = _text("who attends", "predicate to element")  # type: ignore[valid-type]
    sentence_tokens: int = _number("most tokens of a sentence; 0: the protocol's (the paper: 12)")
    element_tokens: int = _number("most tokens of an element; 0: the protocol's (the paper: 3)")
    nearest: int = _number(
        "fewest tokens from predicate to element; 0: the protocol's (the paper: 2)"
    )
    seed: int = _number("of every random draw", default=1)
    max_examples: int = _number(
        "dev rows whose maps are measured; 0: the profile's; -1: all", least=ALL
    )
    train_examples: int = _number("training rows per task; 0: the profile's; -1: all", least=ALL)
    sweep_examples: int = _number(
        "dev rows on which heads are disabled; 0: the profile's; -1: all", least=ALL
    )
    trainings: int = _number("fine-tuned models per task; 0: the profile's")
    layer: int = _number("of the head that is drawn, from 1; 0: the notebook chooses")
    head: int = _number("of the head that is drawn, from 1; 0: the notebook chooses")


PARAMETERS = Parameters.model_fields
_ROWS = ("max_examples", "train_examples", "sweep_examples")
_OF_PROFILE = ("model", "data", "annotation", "framenet", *_ROWS, "trainings")
# Of single notebooks; the results name them where they are not what they are by default.
_SPECIAL = ("weighing", "direction", "sentence_tokens", "element_tokens", "nearest")


def choices(name: str) -> tuple[str, ...]:
    """All values that a parameter may have, where they can be listed; else ()."""
    return get_args(PARAMETERS[name].annotation)


def describe(name: str, value: object = None) -> str:
    """A parameter in a line: type, value if one is given, meaning, choices, and what it is in each profile."""
    field = PARAMETERS[name]
    kind = "int" if field.annotation is int else "str"
    told = f"{name} ({kind}){'' if value is None else f' = {value!r}'}: {field.description}"
    told += f": {', '.join(choices(name))}" if choices(name) else ""
    values = (
        {profile.name: getattr(profile, name) for profile in PROFILES.values()}
        if name in _OF_PROFILE
        else {}
    )
    if name == "annotation":
        values["embedded"] = "gold"  # the embedded corpora bring their own
    listed = ", ".join(f"{profile} {'all' if of == ALL else of}" for profile, of in values.items())
    return f"{told} ({listed})" if listed else told


def parameters_cell(values: dict[str, object]) -> str:
    """Source of a notebook's parameters cell, with the comments by which Colab makes a form of it.

    Args:
        values: the notebook's own defaults, by name.

    Raises:
        ValueError: for an unknown name.
    """
    lines = []
    for name, value in values.items():
        field = PARAMETERS[one_of("parameter", name, PARAMETERS)]
        of_kind = '{type:"integer"}' if field.annotation is int else '{type:"string"}'
        form = f"# @param {json.dumps(choices(name)) if choices(name) else of_kind}"
        assigned = f"{name} = {json.dumps(value, ensure_ascii=False)}"
        lines.append(f"{assigned:<20}  {form:<25}  # {field.description}")
    return "\n".join(lines)


def convert(name: str, text: str) -> str | int:
    """A value from the command line, in the parameter's type; "all" stands for -1.

    Raises:
        ValueError: unknown name, or text that is not of the type.
    """
    if PARAMETERS[one_of("parameter", name, PARAMETERS)].annotation is not int:
        return text
    try:
        return ALL if text.strip().lower() == "all" else int(text)
    except ValueError:
        raise ValueError(f"{name}={text!r} is not of type int") from None


def _in_words(error: ValidationError) -> Exception:
    """The first of pydantic's errors in a line, with what is allowed."""
    first = error.errors()[0]
    name, value, kind = str(first["loc"][0]), first["input"], first["type"]
    if kind in ("extra_forbidden", "literal_error"):
        what, wrong, allowed = (
            (name, value, choices(name))
            if kind == "literal_error"
            else ("parameter", name, PARAMETERS)
        )
        return ValueError(f"unknown {what} {wrong!r}; choose one of: {', '.join(allowed)}")
    if wanted := {"string_type": "str", "int_type": "int"}.get(kind):
        return TypeError(f"{name}={value!r} is of type {type(value).__name__}, {wanted} is wanted")
    least = first["ctx"].get("ge", 0)
    means_all = f" ({ALL} means all)" if least == ALL else ""
    return ValueError(
        f"{name}={value!r} is out of range; it is a whole number from {least}{means_all} to 2**31 - 1"
    )


@dataclass(frozen=True)
class Settings:
    """Settings of one notebook's run; meanings stand in :class:`Parameters`.

    Attributes:
        given: the parameters as they were given.
        profile, model, data, tasks, framenet, seed, protocol, weighing: parsed, the profile's where
            none was given.
        annotation: not checked unless given, since not every notebook needs it.
        treebank: path of the CoNLL-U file on whose sentences dependencies are measured; "" for the
            tasks' rows.
        checkpoints: (task name, classifier) that stand for trainings.
        max_examples, train_examples, sweep_examples: rows; 0 for all.
        trainings: of every task, but for the profile's exceptions; one if a checkpoint stands for
            those of some task.
        repeats: of a task without a checkpoint.
        head: (layer, head) from 0, or None where the notebook chooses.
    """

    given: Parameters
    profile: Profile
    model: ModelSource
    checkpoints: tuple[tuple[str, ModelSource], ...]
    data: DataSource
    tasks: tuple[Task, ...]
    annotation: str
    treebank: str
    framenet: str
    seed: int
    protocol: str
    weighing: str
    max_examples: int
    train_examples: int
    sweep_examples: int
    trainings: int
    repeats: int
    head: tuple[int, int] | None

    def trainings_of(self, task: Task) -> int:
        """Number of the task's fine-tuned models."""
        if task.name in dict(self.checkpoints):
            return 1
        return self.given.trainings or dict(self.profile.trainings_by_task).get(
            task.name, self.repeats
        )

    def before(self, task: Task, number: int = 0) -> tuple[Task, int] | None:
        """The task, and the number of its training, with whose encoder this task's training of a number begins.

        There are fewer of them, so they take turns.
        """
        name = dict(self.profile.after).get(task.name)
        return (get_task(name), number % self.trainings_of(get_task(name))) if name else None

    def random_starts_of(self, task: Task) -> int:
        """Number of the task's models that start from random weights."""
        trained = task in parse_tasks(self.profile.random_tasks)
        return min(self.profile.random_starts, self.repeats) if trained else 0

    def as_json(self) -> dict[str, Any]:
        """All that decides what comes out, as plain values; of a path only its last part, the rest says nothing to others."""
        own_folder = self.model.is_local and self.model.name != "embedded"
        special = {name: getattr(self.given, name) for name in _SPECIAL}
        differ = self.given.trainings == 0 and self.profile.trainings_by_task
        # told where there are some: a run that trains its classifiers says so by its recipe
        only_some = {
            "treebank": Path(self.treebank).name,
            "trainings_by_task": {task.name: self.trainings_of(task) for task in self.tasks}
            if differ
            else {},
            "after": dict(self.profile.after),
            "checkpoints": {task: source.fingerprint for task, source in self.checkpoints},
        }
        return {
            "profile": self.profile.name,
            "model": Path(self.model.location).name if own_folder else self.model.name,
            "model_fingerprint": self.model.fingerprint,
            "data": f"folder:{self.data.path.name}" if self.data.path else self.data.kind,
            "data_revision": HUB_REVISIONS[GLUE] if self.data.kind == "hub" else None,
            "train_files": {task: Path(file).name for task, file in self.data.train_files},
            "tasks": [task.name for task in self.tasks],
            **{name: _without_folders(getattr(self, name)) for name in ("annotation", "framenet")},
            **{name: getattr(self, name) for name in (*_ROWS, "trainings", "seed", "protocol")},
            "head": self.head and [one_based(index) for index in self.head],
            "recipe": asdict(self.profile.recipe),
            **{name: value for name, value in special.items() if value != PARAMETERS[name].default},
            **{name: value for name, value in only_some.items() if value},
        }


def _without_folders(source: str) -> str:
    kind, colon, place = source.partition(":")
    return f"{kind}{colon}{Path(place).name}"


def resolve(**given: Any) -> Settings:
    """Settings of the parameters that are given, with the profile's values for all others; made once for the same.

    Raises:
        ValueError, TypeError, FileNotFoundError: naming the parameter, its
            value and what is allowed.
    """
    try:
        parameters = Parameters(**given)
    except ValidationError as error:
        raise _in_words(error) from None
    profile = PROFILES[parameters.profile]
    if parameters.checkpoint or (parameters.model and Path(parameters.model).expanduser().is_dir()):
        return _resolve(
            parameters, profile
        )  # what is in a folder of one's own may have changed since
    return _resolve_once(parameters, profile)


def _resolve(given: Parameters, profile: Profile) -> Settings:
    values = {name: getattr(given, name) or getattr(profile, name) for name in _OF_PROFILE}
    model = parse_model(values["model"])
    data = parse_data(values["data"], given.train_files)
    checkpoints = parse_checkpoints(given.checkpoint, model)
    if checkpoints and given.trainings > 1:
        raise ValueError(
            f"trainings={given.trainings} with a checkpoint: there is one training only; leave trainings 0"
        )
    if not given.annotation and data.kind == "embedded":
        values["annotation"] = "gold"
    elif (
        given.annotation
        and parse_source("annotation", given.annotation)[0] == "gold"
        and data.kind != "embedded"
    ):
        raise ValueError(
            "annotation='gold' goes with data='embedded' only; for other texts give annotation='spacy:NAME', such as"
            " spacy:en_core_web_sm, or annotation='conllu:PATH'"
        )
    return Settings(
        given=given,
        profile=profile,
        model=model,
        checkpoints=checkpoints,
        data=data,
        tasks=parse_tasks(profile.tasks if given.tasks == "all" else given.tasks),
        annotation=values["annotation"],
        treebank=parse_treebank(given.treebank),
        framenet=":".join(filter(None, parse_source("framenet", values["framenet"]))),
        **{name: getattr(given, name) for name in ("seed", "protocol", "weighing")},
        # What draws rows takes 0 for all.
        **{name: max(0, values[name]) for name in _ROWS},
        trainings=1 if checkpoints else values["trainings"],
        repeats=values["trainings"],
        head=_head(given.layer, given.head, model),
    )


_resolve_once = cache(_resolve)


def _head(layer: int, head: int, model: ModelSource) -> tuple[int, int] | None:
    if layer == head == 0:
        return None
    if 0 in (layer, head):
        given, missing = ("layer", "head") if layer else ("head", "layer")
        raise ValueError(
            f"{given}={layer or head} without {missing}: give both, counted from 1, or neither"
        )
    # Where only the Hub knows the model's shape, Experiment looks again.
    layers, heads = (
        model.config.get("num_hidden_layers", layer),
        model.config.get("num_attention_heads", head),
    )
    return zero_based(layer, layers, "layer"), zero_based(head, heads, "head")
