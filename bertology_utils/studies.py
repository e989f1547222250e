"""What a study is: an encoder, rows, sizes, a recipe and a seed, by name in ``studies.toml``.

Nothing heavy is imported, so that a wrong entry is refused at once.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from .cache import file_sha256
from .common import one_of
from .e5 import LAYERS
from .glue import EMBEDDED_TASKS, LEAST_ROWS, Task, get_task, parse_tasks

ALL = -1  # of a number of rows: as many as there are
KEPT = ("e5", "e5-again", "minilm")  # whose measurements are committed in results/
STUDIES = tomllib.loads(Path(__file__).with_name("studies.toml").read_text(encoding="utf-8"))


class Recipe(BaseModel):
    """How a classifier is fine-tuned: AdamW, linear warm-up and decay, gradients clipped at norm 1.

    The paper gives batch and passes (§3). Where processor or GPU have instructions for it, mixed
    precision is used.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    learning_rate: float = Field(default=1e-4, gt=0, le=0.1)
    epochs: int = Field(default=3, ge=1)
    batch_size: int = Field(default=32, ge=1)
    warmup: float = Field(default=0.1, ge=0, le=1)
    weight_decay: float = Field(default=0.01, ge=0)
    adam_epsilon: float = Field(default=1e-6, gt=0)
    max_length: int = Field(default=128, ge=8)


class StudySettings(BaseModel):
    """The entries of one study.

    Attributes:
        name: in ``studies.toml``, or of one's own.
        model: encoder: e5, embedded (MiniLM), a folder, or a Hub name.
        data: rows: hub, embedded (synthetic) or folder:PATH in GLUE's layout.
        tasks: all, or names with commas between.
        seed: of rows that are drawn, and of the first run of each task; the next run has the next.
        runs: fine-tuning runs of each task; ``runs_by_task`` where it is another number.
        learned_nothing: task → numbers of its runs that gave all rows the same answer, which pages leave
            out and name.
        train_rows: training rows of each task; likewise.
        held_back: training rows on which the study is measured instead of dev rows; no run trains on
            them.
        rows: on which maps are looked at.
        disabled_rows: on which heads are disabled by 1/L; likewise by task.
        compared_rows: on which they are disabled in other ways, and weights are reset.
        several_rows: on which several heads are disabled together.
        pruned_rows: on which classifiers with fewer heads or frozen layers are compared.
        sentences, frames: of the treebank, and of FrameNet by either rules of extraction.
        trees: sentences of the treebank whose dependency trees are looked for.
        annotation: what tells words their parts of speech and dependencies: gold (of the synthetic
            rows), spacy:NAME, or conllu:PATH.
        treebank: a CoNLL-U file of sentences; embedded: the synthetic rows.
        framenet: embedded (a miniature), nltk (release 1.7), folder:PATH or zip:PATH.
        after: task → the task whose fine-tuned encoder its own fine-tuning begins with.
        checkpoint: task → a folder with a classifier, instead of fine-tuning.
        recipe: of fine-tuning.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    name: str
    model: str
    data: str
    tasks: str = "all"
    seed: int = Field(1, ge=0, lt=2**31)
    runs: int = Field(2, ge=1)
    runs_by_task: dict[str, int] = {}
    learned_nothing: dict[str, list[int]] = {}
    train_rows: int = Field(ALL, ge=ALL)
    train_rows_by_task: dict[str, int] = {}
    held_back: int = Field(0, ge=0)
    rows: int = Field(400, ge=ALL)
    disabled_rows: int = Field(1500, ge=ALL)
    disabled_rows_by_task: dict[str, int] = {}
    compared_rows: int = Field(300, ge=ALL)
    several_rows: int = Field(200, ge=1)
    pruned_rows: int = Field(1000, ge=ALL)
    sentences: int = Field(ALL, ge=ALL)
    frames: int = Field(ALL, ge=ALL)
    trees: int = Field(ALL, ge=ALL)
    annotation: str = "spacy:en_core_web_sm"
    treebank: str = "embedded"
    framenet: str = "embedded"
    after: dict[str, str] = {}
    checkpoint: dict[str, str] = {}
    recipe: Recipe = Recipe()

    @classmethod
    def of(cls, name: str, **entries: Any) -> StudySettings:
        """A study by its name, some of its entries overridden; entries that are empty are the study's own.

        Raises:
            ValueError: an unknown study or entry, or a value that is not allowed.
        """
        one_of("study", name, STUDIES)
        for entry in entries:
            one_of("entry", entry, set(cls.model_fields) - {"name"})
        given = {entry: value for entry, value in entries.items() if value not in ("", None)}
        if isinstance(given.get("checkpoint"), str):
            from .settings import parse_pairs

            pairs = parse_pairs("checkpoint", given["checkpoint"])
            given["checkpoint"] = dict(pairs)
            named = [task for task, _ in pairs]
            if twice := next((task for task in named if named.count(task) > 1), ""):
                raise ValueError(
                    f"checkpoint: {twice} is given twice; there is one classifier per task"
                )
        for task, place in given.get("checkpoint", {}).items():
            if not Path(place).expanduser().is_dir():
                raise ValueError(
                    f"checkpoint: there is no folder {place} for {get_task(task).title}; save_pretrained writes one"
                )
        entries = _overridden(STUDIES[name], given)
        if given.get("data") == "embedded" and "annotation" not in given:
            entries["annotation"] = "gold"  # which these rows bring with them
        try:
            settings = cls(name=name, **entries)
        except ValidationError as error:
            first = error.errors()[0]
            entry = ".".join(map(str, first["loc"]))
            raise ValueError(
                f"study {name!r}, {entry}={first['input']!r}: {first['msg']}"
            ) from None
        for entry in ("rows", "disabled_rows", "compared_rows", "pruned_rows"):
            several = {entry: getattr(settings, entry), **getattr(settings, f"{entry}_by_task", {})}
            if few := [count for count in several.values() if count != ALL and count < LEAST_ROWS]:
                raise ValueError(
                    f"study {name!r}, {entry}={few[0]}: too few rows; at least {LEAST_ROWS} are needed"
                )
        if settings.annotation == "gold" and settings.data != "embedded":
            raise ValueError(
                "annotation='gold' goes with data='embedded' only; else give spacy:NAME or conllu:PATH"
            )
        asked = [task.name for task in parse_tasks(settings.tasks)]
        missing = [task for task in asked if task not in EMBEDDED_TASKS]
        if missing and settings.data == "embedded":
            raise ValueError(
                f"tasks={','.join(missing)}: the embedded data has {', '.join(EMBEDDED_TASKS)} only; choose from these, or"
                " give data='hub' or data='folder:PATH'"
            )
        for task in settings.checkpoint:
            if task not in asked:
                raise ValueError(
                    f"checkpoint: {task} is none of the tasks {', '.join(asked)}; name it in tasks, or leave it out"
                )
        return settings

    @field_validator(
        "runs_by_task",
        "learned_nothing",
        "train_rows_by_task",
        "disabled_rows_by_task",
        "after",
        "checkpoint",
    )
    @classmethod
    def _names(cls, by_task: dict[str, Any]) -> dict[str, Any]:
        """Tasks by the names that the rest of the package uses."""
        return {get_task(task).name: value for task, value in by_task.items()}

    @property
    def is_own(self) -> bool:
        """True if an entry other than the tasks is not as in ``studies.toml``."""
        published = type(self)(name=self.name, **STUDIES[self.name])
        return self.model_copy(update={"tasks": published.tasks}) != published

    @property
    def is_kept(self) -> bool:
        """True if its measurements are those of ``results/``."""
        return self.name in KEPT and not self.is_own

    @property
    def digest(self) -> str:
        """Eight digits that change with any entry but the tasks."""
        content = self.model_dump_json(exclude={"tasks"})
        return hashlib.sha256(content.encode()).hexdigest()[:8]

    def of_task(self, entry: str, task: Task) -> int:
        """An entry that may differ by task, such as "runs"."""
        return int(getattr(self, f"{entry}_by_task", {}).get(task.name, getattr(self, entry)))

    def deciding(self, task: Task) -> dict[str, Any]:
        """All entries that decide what is measured of a task, but for the number of rows.

        A folder is named by its last part, and told by a hash of its files.
        """
        entries = {
            "model": _told(self.model),
            "data": _data(self.data, task),
            "task": task.title,
            "seed": self.seed,
            "train_rows": self.of_task("train_rows", task),
            "held_back": self.held_back,
            "recipe": self.recipe.model_dump(),
        }
        if before := self.after.get(task.name):
            entries["after"] = self.deciding(get_task(before))
        if checkpoint := self.checkpoint.get(task.name):
            entries["checkpoint"] = _told(checkpoint)
        return json.loads(json.dumps(entries))

    def deciding_sentences(self, of: str) -> dict[str, Any]:
        """The same of what is measured on sentences of the "treebank" or of "framenet"."""
        return {"model": _told(self.model), of: getattr(self, of), "seed": self.seed}


def _overridden(study: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """A study's entries with those that are given; a number for all tasks replaces those by task, a recipe is completed."""
    entries = {
        name: value for name, value in study.items() if name.removesuffix("_by_task") not in given
    }
    recipe = {"recipe": study.get("recipe", {}) | given["recipe"]} if "recipe" in given else {}
    return entries | given | recipe


def _told(model: str) -> str:
    """A model's name; of a folder its last part, and what changes with its files."""
    folder = Path(model).expanduser()
    if model == "embedded" or model in LAYERS or not folder.is_dir():
        return model
    from .settings import parse_model

    return f"{folder.name} ({parse_model(model).fingerprint[:16]})"


def _data(data: str, task: Task) -> str:
    """A source of rows; of a folder its last part, and what changes with the task's files."""
    from .settings import parse_data

    folder = parse_data(data)
    if folder is None or data == "embedded":
        return data
    hashes = [file_sha256(file)[:8] for file in sorted((folder / task.folder).glob("*.tsv*"))]
    return f"folder:{folder.name} ({' '.join(hashes)})"
