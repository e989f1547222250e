"""The notebooks' runs on real data as pages: settings, what came out, figures and verdicts, out of the committed results.

Executed notebooks would hold sentences of data that this project does not
hand on. What is not there, or is of another version, is named with what makes it.
"""

from __future__ import annotations

from pathlib import Path

from ..claims.companions import COMPANIONS
from ..claims.entries import OURS
from ..claims.register import CLAIMS, NOTEBOOKS
from ..claims.verdict import THIS_RUN
from ..glue.tasks import TASKS
from .committed import FRAMENET, GLUE, Committed, read_one
from .descriptions import DESCRIPTIONS
from .notebooks import Notebook
from .opening import sentences
from .pages import numbers_beside, shown
from .tables import table

FOLDER = "real"  # of the pages, in the site


def real_pages(root: Path, notebooks: list[Notebook]) -> dict[str, str]:
    """Name → Markdown: a page for each notebook that judges claims, and one that leads to them.

    Args:
        root: the checkout.
        notebooks: those of the checkout.
    """
    titles = {int(one.number): one.title for one in notebooks}
    runs = [read_one(root, FRAMENET if number in FRAMENET.notebooks else GLUE, number) for number in NOTEBOOKS]
    pages = {f"{FOLDER}/{NOTEBOOKS[run.notebook]}": _page(root, run, titles[run.notebook]) for run in runs}
    lines = [f"- [{titles[run.notebook]}, on {run.place.data}]({NOTEBOOKS[run.notebook]}.md){_state(run)}" for run in runs]
    about = (
        "The default of every notebook is the project's own, embedded data. These pages tell what MiniLM did on real data."
    )
    tree = "\n".join(["```{toctree}", ":hidden:", "", *(NOTEBOOKS[run.notebook] for run in runs), "```"])
    return {f"{FOLDER}/index": "\n".join(["# On real data", "", about, "", *lines, "", tree, ""]), **pages}


def _state(run: Committed) -> str:
    return f": {run.problem.split(':')[0]}" if run.problem else ""


def _page(root: Path, run: Committed, title: str) -> str:
    name = NOTEBOOKS[run.notebook]
    parts = [
        f"# {title}, on {run.place.data}",
        "",
        f"The notebook on the embedded data: [{title}](../notebooks/{name}.ipynb).",
        "",
    ]
    if run.problem:
        return "\n".join([*parts, f"{run.missing}.", ""])
    told = [f"{number}. {sentence}" for number, sentence in enumerate(sentences(run.content), start=1)]
    pictures = sorted((root / run.file).parent.glob("*.png"))
    return "\n".join(
        [
            *parts,
            "## What came out",
            "",
            *(told or ["Nothing was measured."]),
            "",
            "## Settings",
            "",
            *table(["setting", "value"], _settings(run.content)),
            "",
            "## Figures",
            "",
            *(line for picture in pictures for line in _figure(run, picture)),
            "## Verdicts",
            "",
            *_verdicts(run),
            "",
        ]
    )


def _settings(content: dict) -> list[list]:
    """What the numbers depend on, and the versions."""
    told, recipe, versions = content["settings"], content["settings"]["recipe"], content["versions"]
    tasks = ", ".join(TASKS[task].title if task in TASKS else task for task in told["tasks"])
    rows = [
        ["model", "all-MiniLM-L6-v2, 6 layers × 12 heads" if told["model"] == "embedded" else told["model"]],
        ["tasks", tasks],
        ["examples of each task", f"at most {told['max_examples']}"],
        ["rows trained on", f"at most {told['train_examples']} of each task" if told["train_examples"] > 0 else "all"],
        [
            "recipe",
            f"{recipe['epochs']} epochs, batches of {recipe['batch_size']}, learning rate {recipe['learning_rate']:g}",
        ],
        ["first seed", told["seed"]],
    ]
    if content["notebook"] in {NOTEBOOKS[number] for number in FRAMENET.notebooks}:  # no task, no training
        rows = [rows[0], ["release", content["release"]["name"]], ["sentences that were kept", content["sentences"]]]
    return [*rows, ["versions", ", ".join(f"{name} {version}" for name, version in versions.items())]]


def _figure(run: Committed, picture: Path) -> list[str]:
    words = DESCRIPTIONS.get((run.notebook, picture.stem))
    address = f"../{run.place.folder}/{NOTEBOOKS[run.notebook]}/{picture.name}"
    return [f"[![{words}]({address})]({address})", "", f"*{words}*", ""] if words else [f"[{picture.stem}]({address})", ""]


def _verdicts(run: Committed) -> list[str]:
    """One estimate in a cell; what stands beside it follows below."""
    verdicts = {one["id"]: one for one in run.content["verdicts"] if one["model"] == THIS_RUN}
    entries = [entry for entry in (*CLAIMS, *COMPANIONS, *OURS) if entry.id in verdicts]
    claims = [entry for entry in entries if entry not in OURS]
    head = f"MiniLM, {run.place.data}"
    rows = [[entry.section, entry.claim, entry.paper, shown(verdicts[entry.id])] for entry in claims]
    controls = [[entry.claim, shown(verdicts[entry.id])] for entry in entries if entry in OURS]
    return [
        *(table(["§", "claim", "the paper", head], rows) if rows else []),
        "",
        *(table(["control of ours", head], controls) if controls else []),
        *numbers_beside(entries, {head: verdicts}),
    ]
