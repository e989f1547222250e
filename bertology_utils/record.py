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
from .glue import Task
from .results import FORM, RESULTS, Entry, Results, entries_of, place_of, plain, read_results
from .statistics import pooled
from .verdicts import CLAIMS, THIS_RUN, Verdict, read_confirmed

if TYPE_CHECKING:
    from IPython.display import Markdown

    from .settings import Settings

OUTPUT_VARIABLE = "BERTOLOGY_OUTPUT"  # the runner's staging folder
_VERSIONS = "bertology-utils torch transformers datasets numpy scikit-learn scipy spacy".split()
# The folder below results/ with a notebook's evidence, by its number, where that is not GLUE.
EVIDENCE = {"2": "framenet15", "11": "ud"}
OWN_RUN = "Figures, tables and verdicts show this run; the text tells the committed evidence."


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

    def judge(
        self,
        name: str,
        estimates: Mapping[Any, Any] | None = None,
        *,
        unmet: str = "",
        unit: str | None = None,
        model: str = THIS_RUN,
    ) -> None:
        """Judge a claim; see :func:`bertology_utils.verdicts.judge`. The small run judges none: it is no evidence.

        Args:
            name: of the claim.
            estimates: by task (or by what else they are of), if they are not those recorded under
                the name in the claim's ``estimate``.
            unmet: the precondition that fails, if one does.
            unit: of the estimates; by default that of the recorded ones.
            model: what the verdict is about, if not this run's model. Of this run's, only learned
                tasks count where a claim needs it.
        """
        claim = CLAIMS[name]
        if self.settings.is_small:
            return
        given = self._recorded.get(claim.estimate, {}) if estimates is None else estimates
        # Pooled before tasks are left out, so that a verdict has the interval that the row has.
        values: dict[Any, Any] = pooled(given) if isinstance(given, Mapping) else {"": given}
        if claim.tasks:
            values = {task: value for task, value in values.items() if task.name in claim.tasks}
        asked = [one for one in self.settings.tasks if not claim.tasks or one.name in claim.tasks]
        if verdicts.LEARNED in claim.needs:
            known = self.learned if model == THIS_RUN else dict.fromkeys(asked, True)
            tasks = [task for task in values if isinstance(task, Task)]
            # Values by anything but tasks leave out already what was not learned.
            if tasks or not values:
                unmet = unmet or verdicts.unlearned(tasks or asked, known)
            values = {task: value for task, value in values.items() if known.get(task, True)}
            asked = [task for task in asked if known.get(task, True)]
        if claim.runs:
            runs = {task: self.settings.trainings_of(task) for task in asked}
            most, of_what = max(runs.values(), default=0), "fine-tuning runs of a task"
            unmet = unmet or verdicts.too_few(most, claim.runs, of_what)
            values = {
                at: one for at, one in values.items() if runs.get(at, claim.runs) >= claim.runs
            }
        unit = self._units.get(claim.estimate, "") if unit is None else unit
        self.verdicts.append(verdicts.judge(name, values, unmet, unit, model))

    @property
    def learned(self) -> Mapping[Task, bool]:
        """Which tasks were learned; a lab knows."""
        return {}

    @property
    def evidence(self) -> Results:
        """The rows that the page tells: the committed evidence, or this run's own on another model or data.

        Raises:
            ValueError: there is no committed evidence, or it is of an older form; says which
                command renews it.
        """
        return self.committed_evidence if self.settings.is_small else self.own_results

    @property
    def own_results(self) -> Results:
        """This run's rows so far, on whatever data; to look at a number that the evidence does not have yet."""
        return Results(self.content)

    @cached_property
    def committed_evidence(self) -> Results:
        """The committed results of this notebook on real data."""
        run = EVIDENCE.get(self.notebook.split("_")[0], "glue")
        return read_results(results_folder() / run / f"{self.notebook}.json")

    def show_verdicts(self, *names: str) -> Markdown:
        """Verdicts of the evidence, a line for each claim; all of them if no claim is named."""
        from IPython.display import Markdown

        return Markdown(
            verdicts.lines_of_verdicts(self.evidence.verdicts, names, self.confirmatory)
        )

    @cached_property
    def confirmatory(self) -> verdicts.Verdicts | None:
        """The committed confirmatory study's verdicts; None where it did not run this notebook, or for a run of one's own."""
        if not self.settings.is_small:
            return None
        return read_confirmed(results_folder(), self.notebook.split("_")[0])

    def figure(self, figure, name: str, alt: str) -> None:
        """Save a matplotlib figure as PNG and PDF, and show it.

        Args:
            figure: the figure.
            name: of the files, without suffix.
            alt: what the picture shows, in words, for those who do not see it. It stands in the
                output's metadata (``image/png``, ``alt``), where pages read it.
        """
        from .plots import show

        show(figure, self.folder, name, alt)
        self.written += [f"{name}.png", f"{name}.pdf"]

    @property
    def content(self) -> dict[str, Any]:
        """Numbers, verdicts, settings, versions and device, as ``results.json`` has them."""
        return {
            "notebook": self.notebook,
            "form": FORM,
            "settings": self.settings.as_json(),
            "versions": {name: metadata.version(name) for name in _VERSIONS},
            "device": device_name(),
            "precision": precision(self.settings.profile.recipe.on_cpu),
            "facts": self.facts,
            "verdicts": [dataclasses.asdict(verdict) for verdict in self.verdicts],
            "rows": self.entries,
        }

    def write(self) -> None:
        """Write the results as JSON; the notebook's last act."""
        write_atomically(self.folder / RESULTS, as_text(self.content).encode())
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


def results_folder() -> Path:
    """The folder of the committed evidence: the checkout's, or where the package was installed the one that it brought."""
    checkout = project_root() / "results"
    if checkout.is_dir():
        return checkout
    # Installers put it where their platform keeps data, which need not be below sys.prefix.
    with contextlib.suppress(metadata.PackageNotFoundError):
        for file in metadata.files("bertology-utils") or ():
            if file.match("share/bertology_utils/results/*/*.json"):
                return Path(str(file.locate())).resolve().parents[1]
    return checkout
