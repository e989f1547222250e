"""The committed run of a notebook on real data, to draw beside the run at hand."""

from dataclasses import dataclass

from .committed import FRAMENET, GLUE, read_one
from .results import project_root

TITLES = {GLUE: "MiniLM, real GLUE", FRAMENET: "MiniLM, FrameNet 1.5"}


@dataclass(frozen=True)
class Beside:
    """A committed run.

    Attributes:
        title: model and data, as figures name them.
        results: its ``results.json``, parsed; empty where it is not there or of another version.
        missing: what is missing and how to make it, for people; empty if nothing is.
    """

    title: str
    results: dict
    missing: str


def real_run(notebook: int) -> Beside:
    """The committed run of a notebook on real data: FrameNet 1.5 for notebook 2, GLUE for the others.

    An installed package comes without it; figures then do without its panel, and ``missing`` says so.

    Args:
        notebook: its number.
    """
    place = FRAMENET if notebook in FRAMENET.notebooks else GLUE
    found = read_one(project_root(), place, notebook)
    return Beside(TITLES[place], found.content, found.missing if found.problem else "")
