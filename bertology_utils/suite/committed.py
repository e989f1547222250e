"""The committed results.json files: those that are there and of this version, and what is missing and how to make it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..claims.entries import ENTRIES
from ..claims.register import NOTEBOOKS
from ..claims.verdict import THIS_RUN
from .results import RESULTS
from .tables import read


@dataclass(frozen=True)
class Place:
    """A folder of results, one folder per notebook.

    Attributes:
        data: what was measured on, as people read it.
        folder: below the checkout.
        notebooks: those that belong there, by number.
        options: of the run that makes them.
        maker: a command that makes them all, where there is one.
    """

    data: str
    folder: str
    notebooks: tuple[int, ...]
    options: str
    maker: str = ""

    def command(self, *notebooks: int) -> str:
        """How to make some notebooks' results."""
        return self.maker or f"python -m bertology_utils run {self.options} --only {','.join(map(str, notebooks))}"

    def verdicts(self, root: Path, about: str = THIS_RUN) -> dict[str, Mapping]:
        """Of its runs on claims and controls, by claim.

        Args:
            root: the checkout.
            about: how the model begins that they are about: this run's, its encoder before fine-tuning, or one that
                published figures are of.

        Raises:
            ValueError: a damaged file; names what to run.
        """
        found: dict[str, Mapping] = {}
        for path in sorted((root / self.folder).glob(f"*/{RESULTS}")):
            verdicts = read(path).get("verdicts", [])
            if _known(verdicts):
                found |= {one["id"]: one for one in verdicts if one["model"].startswith(about)}
        return found

    def missing(self, root: Path) -> list[int]:
        """Its notebooks without results of this version."""
        paths = {number: root / self.folder / NOTEBOOKS[number] / RESULTS for number in self.notebooks}
        return [n for n, path in paths.items() if not path.exists() or not _known(read(path).get("verdicts", []))]


def _known(verdicts: list[Mapping]) -> bool:
    """Are there verdicts, all on claims of the present register?"""
    return bool(verdicts) and all(one.get("id") in ENTRIES for one in verdicts)


EMBEDDED = Place("embedded data", "figures", tuple(NOTEBOOKS), "--in-place")
GLUE = Place(
    "GLUE", "benchmarks/minilm_glue", tuple(n for n in NOTEBOOKS if n not in (2, 8)), "--profile minilm -p data folder:PATH"
)
FRAMENET = Place("FrameNet 1.5", "benchmarks/minilm_framenet15", (2,), "--profile minilm -p framenet folder:PATH")
BERT_BASE = Place("bert-base", "benchmarks/bert_base", (8,), "--profile bert-forward", "make bert")
PLACES = (EMBEDDED, GLUE, FRAMENET, BERT_BASE)
# QQP's dev rows were not at hand: rows of its training file, and others of them to measure on.
_QQP = "--profile minilm -p data folder:PATH -p tasks qqp"
BY_NORM = (
    Place("embedded data", "benchmarks/minilm_norm", (1, 3, 4, 5), "-p weighing norm"),
    Place("GLUE", "benchmarks/minilm_glue_norm", (1, 4, 5), f"{GLUE.options} -p weighing norm"),
    Place("QQP's training rows", "benchmarks/minilm_qqp", (1, 4, 5), _QQP),
    Place("QQP's training rows", "benchmarks/minilm_qqp_norm", (1, 4, 5), f"{_QQP} -p weighing norm"),
)  # beside those that pages judge by


@dataclass(frozen=True)
class Committed:
    """One results.json.

    Attributes:
        place: where it is.
        notebook: whose it is, by number.
        content: the file, parsed; empty if it cannot be used.
        problem: why it cannot be used; empty if it can.
    """

    place: Place
    notebook: int
    content: dict
    problem: str

    @property
    def file(self) -> str:
        """Where it stands, or should, below the checkout."""
        return f"{self.place.folder}/{NOTEBOOKS[self.notebook]}/{RESULTS}"

    @property
    def missing(self) -> str:
        """What is missing and how to make it; files and commands stand between backticks."""
        copy = "" if self.place.folder == "figures" or self.place.maker else f", and copy its `{RESULTS}` there"
        return f"`{self.file}` {self.problem}. To make it: `{self.place.command(self.notebook)}`{copy}"


def read_committed(root: Path) -> list[Committed]:
    """Every results.json that there should be, in the order of :data:`PLACES`.

    Args:
        root: the checkout.
    """
    return [read_one(root, place, number) for place in PLACES for number in place.notebooks]


def read_one(root: Path, place: Place, number: int) -> Committed:
    """The results.json of one notebook in one place."""
    path = root / place.folder / NOTEBOOKS[number] / RESULTS
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        known = _known(content["verdicts"])
    except OSError:
        return Committed(place, number, {}, "is missing")
    except (ValueError, KeyError, TypeError, AttributeError):
        return Committed(place, number, {}, "cannot be read")
    if not known:
        return Committed(place, number, {}, "is of another version: it has verdicts that the register does not know")
    return Committed(place, number, content, "")
