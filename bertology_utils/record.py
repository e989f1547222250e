"""What a notebook writes: numbers as rows of one table, verdicts on claims, figures, and results.json as its last act."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import verdicts
from .cache import write_atomically
from .common import device_name, precision
from .corpora import GENERATED
from .glue import TASKS, Task
from .results import RESULTS, Entry, Results, entries_of, place_of, plain, read_results, table_of
from .statistics import pooled
from .verdicts import CLAIMS, PRETRAINED, THIS_RUN, UNTESTABLE, Verdict

if TYPE_CHECKING:
    import pandas as pd

    from .settings import Settings

OUTPUT_VARIABLE = "BERTOLOGY_OUTPUT"  # the runner's staging folder
_VERSIONS = "bertology-utils torch transformers datasets numpy scikit-learn scipy spacy".split()
TITLES = {name: task.title for name, task in TASKS.items()}
# The committed runs on real data, and what they are called, where notebooks differ from the others.
REAL = {
    "2": ("benchmarks/minilm_framenet15", "MiniLM, FrameNet 1.5"),
    "8": ("benchmarks/minilm_glue", "MiniLM, real text"),
}
REAL_GLUE = ("benchmarks/minilm_glue", "MiniLM, real GLUE")
# Settings that decide what a notebook measures; with others its numbers mean something else.
MEASURED_BY = ("protocol", "weighing", "direction", "sentence_tokens", "element_tokens", "nearest")


class Record:
    """Collects a notebook's numbers, verdicts and figures.

    Without the runner everything goes to ``runs/interactive/NOTEBOOK``; under it to a staging
    folder, which the runner publishes when the notebook succeeded.

    Args:
        notebook: the notebook's name without suffix.
        settings: what it ran with.
    """

    def __init__(self, notebook: str, settings: Settings):
        self.notebook = notebook
        self.settings = settings
        root = os.environ.get(OUTPUT_VARIABLE) or project_root() / "runs" / "interactive"
        self.folder = Path(root) / notebook
        # Of the committed run on real data, and how figures name its model and data.
        self._real_folder, self.real_title = REAL.get(notebook.split("_")[0].rstrip("a"), REAL_GLUE)
        self.entries: list[Entry] = []
        self.verdicts: list[Verdict] = []
        self.facts: dict[str, Any] = {}
        self.written: list[str] = []
        # As recorded, with what rules need and files do not hold.
        self._recorded: dict[str, Any] = {}
        self._units: dict[str, str] = {}

    def record(
        self, what: str, values: Any, by: Sequence[str] = (), *, unit: str = "", **options: Any
    ) -> Any:
        """Add numbers to the table of results; options and labels are those of :func:`bertology_utils.results.entries_of`.

        Returns:
            ``values``, so that a cell can go on with them; those of several tasks with pooled
            errors, see :func:`bertology_utils.statistics.pooled`.

        Raises:
            ValueError: as there; or these numbers are in the table already.
        """
        if isinstance(values, Mapping):
            values = pooled(values)
        entries = entries_of(what, values, by, unit=unit, **options)
        known_places = {place_of(entry) for entry in self.entries}
        if twice := [place for place in map(place_of, entries) if place in known_places]:
            advice = "give it another name, or restart the notebook"
            raise ValueError(f"already recorded: {twice[0]}; {advice}")
        self.entries += entries
        known = self._recorded.get(what)
        joined = isinstance(known, dict) and isinstance(values, Mapping)  # such as a task at a time
        self._recorded[what] = dict(known or {}) | dict(values) if joined else values
        self._units[what] = unit
        return values

    def fact(self, **facts: Any) -> None:
        """Keep what is no measurement, such as the head that was chosen or which tasks were learned."""
        self.facts |= {name: plain(value) for name, value in facts.items()}

    def show(
        self,
        what: str | Sequence[str],
        rows: Sequence[str] = ("task",),
        columns: Sequence[str] = (),
        **labels: object,
    ) -> pd.DataFrame:
        """Numbers that were recorded as a table for a reader, a cell for each with its interval.

        Args:
            what: one kind of number, or several.
            rows, columns: labels; see :func:`bertology_utils.results.table_of`.
            labels: that the numbers have.
        """
        names = [what] if isinstance(what, str) else list(what)
        chosen = [
            entry
            for entry in self.entries
            if entry["what"] in names and labels.items() <= entry.items()
        ]
        if len(names) > 1 and "what" not in (*rows, *columns):
            columns = ("what", *columns)
        return table_of(chosen, rows, columns, self.titles)

    def judge(
        self,
        name: str,
        found: Mapping[Any, Any] | None = None,
        *,
        unmet: str = "",
        learned: Mapping[Task, bool] | None = None,
        unit: str | None = None,
        model: str = THIS_RUN,
    ) -> Verdict:
        """Judge a claim on the numbers that it names; see :func:`bertology_utils.verdicts.judge`.

        Args:
            name: of the claim.
            found: its estimates by task (or by what else they are of), if they are not those
                recorded under the name in the claim's ``estimate``.
            unmet: the precondition that fails, if one does.
            learned: by task; of a claim that needs it, only learned tasks count. By default the
                lab's own.
            unit: of the estimates; by default that of the recorded ones.
            model: what the verdict is about, if not this run's model.
        """
        claim = CLAIMS[name]
        given = self._recorded.get(claim.estimate, {}) if found is None else found
        values: dict[Any, Any] = dict(given) if isinstance(given, Mapping) else {"": given}
        if claim.tasks:
            values = {task: value for task, value in values.items() if task.name in claim.tasks}
        if verdicts.LEARNED in claim.needs:
            known = self.learned if learned is None else learned
            tasks = [task for task in values if isinstance(task, Task)]
            # Values by anything but tasks leave out already what was not learned.
            if tasks or not values:
                unmet = unmet or verdicts.unlearned(tasks, known)
            values = {task: value for task, value in values.items() if known.get(task, True)}
        if verdicts.GLUE_DATA in claim.needs and not self.real_data:
            unmet = verdicts.GLUE_DATA
        titles = self.titles if model in (THIS_RUN, PRETRAINED) else TITLES
        unit = self._units.get(claim.estimate, "") if unit is None else unit
        self.verdicts.append(verdicts.judge(name, values, unmet, unit, model, titles))
        return self.verdicts[-1]

    @property
    def real_data(self) -> bool:
        """True if the rows are GLUE's own, not the project's corpora under GLUE's names."""
        data = self.settings.data
        generated = data.path is not None and (data.path / GENERATED).exists()
        return data.kind != "embedded" and not generated

    @property
    def titles(self) -> Mapping[str, str]:
        """What tasks are called where this run's numbers are told, by name: "MRPC-like" on the embedded corpora."""
        like = "" if self.real_data else "-like"
        return {name: f"{title}{like}" for name, title in TITLES.items()}

    @property
    def learned(self) -> Mapping[Task, bool]:
        """Which tasks were learned; a lab knows."""
        return {}

    @cached_property
    def real(self) -> Results | None:
        """The committed run of this notebook on real data; None where it is missing or measured by other settings."""
        try:
            run = read_results(project_root() / self._real_folder / self.notebook / RESULTS)
        except ValueError:
            return None
        own, settings = self.settings.as_json(), run.content["settings"]
        if differ := [name for name in MEASURED_BY if own.get(name) != settings.get(name)]:
            print(f"Not shown: {self.real_title}, which was measured with another {differ[0]}.")
            return None
        return run

    @property
    def runs(self) -> dict[str, Results]:
        """Whose numbers a figure shows: the committed run on real data, where there is one, and this run's so far."""
        own = Results({"notebook": self.notebook, "rows": self.entries})
        return ({self.real_title: self.real} if self.real else {}) | {THIS_RUN: own}

    def show_verdicts(self, *names: str) -> pd.DataFrame:
        """Verdicts as a table for a reader: claim, the paper's number, and what this run and the one on real data say.

        Args:
            names: of claims; all that were judged if none is given.
        """
        import pandas as pd

        real, rows = self.real.verdicts if self.real else {}, []
        for one in (one for one in self.verdicts if not names or one.id in names):
            both = [(THIS_RUN, one)]
            if (one.id, one.model) in real:
                both.insert(0, (self.real_title, Verdict(**real[one.id, one.model])))
            if one.model not in (THIS_RUN, PRETRAINED):
                # A published figure is the same for both runs; the one that can be judged is told.
                both = [min(both, key=lambda run: run[1].outcome == UNTESTABLE)]
            for run, verdict in both:
                claim, runs = CLAIMS[one.id], {THIS_RUN: run, PRETRAINED: f"{run}, {PRETRAINED}"}
                about = claim.text, claim.paper or "(control)", runs.get(one.model, one.model)
                number = verdict.why if verdict.outcome == UNTESTABLE else verdict.number
                rows.append((*about, number, verdicts.in_words(verdict.outcome, verdict.tally)))
        about_which = ["claim", "the paper", "measured on"]
        return pd.DataFrame(rows, columns=[*about_which, "number", "verdict"]).set_index(
            about_which
        )

    def figure(self, figure, name: str, alt: str) -> None:
        """Save a matplotlib figure as PNG and PDF, and show it.

        Args:
            figure: the figure.
            name: of the files, without suffix.
            alt: what the picture shows, in words, for those who do not see it. It stands in the
                output's metadata (``image/png``, ``alt``), where pages read it.
        """
        import matplotlib.pyplot as plt
        from IPython.display import display

        from .plots import save

        save(figure, self.folder, name)
        self.written += [f"{name}.png", f"{name}.pdf"]
        display(figure, metadata={"image/png": {"alt": alt}})
        plt.close(figure)  # or the notebook would show it once more

    def write(self) -> None:
        """Write numbers, verdicts, settings, versions and device as JSON; the notebook's last act."""
        content = {
            "notebook": self.notebook,
            "settings": self.settings.as_json(),
            "versions": {name: metadata.version(name) for name in _VERSIONS},
            "device": device_name(),
            "precision": precision(self.settings.profile.recipe.on_cpu),
            "facts": self.facts,
            "verdicts": [dataclasses.asdict(verdict) for verdict in self.verdicts],
            "rows": self.entries,
        }
        write_atomically(self.folder / RESULTS, as_text(content).encode())
        self.written.append(RESULTS)
        figures = [Path(name).stem for name in self.written if name.endswith(".png")]
        print(f"in the folder {self.notebook}: {', '.join(figures)} (PNG and PDF), {RESULTS}")


def as_text(content: Mapping[str, Any]) -> str:
    """A results file: one line for each number or array, so that a changed one is a changed line."""

    def encoded(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    texts = {name: encoded(value) for name, value in content.items()}
    for name in ("rows", "verdicts"):
        if lines := list(map(encoded, content.get(name, ()))):
            texts[name] = "[\n  " + ",\n  ".join(lines) + "\n ]"
    return "{\n" + ",\n".join(f' "{name}": {text}' for name, text in texts.items()) + "\n}\n"


def project_root() -> Path:
    """The suite's checkout, seen from the working folder; else the working folder."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        with contextlib.suppress(OSError, ValueError):
            file = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
            name = file.get("project", {}).get("name")
            if name == "bertology-utils" and (folder / "notebooks").is_dir():
                return folder
    return Path.cwd()
