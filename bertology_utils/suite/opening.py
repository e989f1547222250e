"""The first screen of a notebook: its result figure and what came out, written by the run that they are of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module

from ..claims.register import NOTEBOOKS
from ..common import one_of
from .markdown import plain

_MODELS = {"embedded": "MiniLM, a small BERT that was trained to compare sentences"}  # others by their own names
_DATA = {"embedded": "sentences that a grammar made for this project", "hub": "GLUE"}
TAG = "result"  # of the Markdown cell
SECTIONS = {
    1: "patterns",
    2: "framenet",
    3: "drift",
    4: "features",
    5: "links",
    6: "disabling",
    7: "weighing",
    8: "pretrained",
}  # by notebook: where its findings are
_MARKS = re.compile(r"<!-- findings -->.*?<!-- end -->", re.DOTALL)
_PICTURE = re.compile(r"\]\([^)]*?([\w-]+/[\w-]+\.png)\)")


def sentences(results: Mapping) -> list[str]:
    """What came out of a run, in at most three sentences, as Markdown.

    Args:
        results: a notebook's ``results.json``, parsed.

    Raises:
        ValueError: of a notebook that has no findings, or of another version; names what is missing.
    """
    numbers = {name: number for number, name in NOTEBOOKS.items()}
    section = SECTIONS[numbers[one_of("notebook with findings", results.get("notebook"), numbers)]]
    try:
        found = import_module(f"..{section}.findings", __package__).findings(results)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"results of another version (no {error}); run the notebook anew") from error
    return [plain(sentence) for sentence in found]


def measured(results: Mapping) -> str:
    """What a run is of: model and data, in a sentence.

    Args:
        results: a notebook's ``results.json``, parsed.
    """
    model, data = results["settings"]["model"], results["settings"]["data"]
    on = _DATA.get(data, f"the data in the folder {data.removeprefix('folder:')}")
    return plain(f"This run: {_MODELS.get(model, model)}, on {on}.")


def opened(content: dict, results: Mapping, figures: str) -> dict:
    """Write what came out of a run into the notebook's first screen, in place; one without such a cell stays as it is.

    Args:
        content: the notebook as parsed JSON.
        results: its ``results.json``, parsed.
        figures: the folder of the run's figures, as seen from the notebook.
    """
    for cell in content["cells"]:
        if TAG in cell["metadata"].get("tags", []):
            lines = [f"{number}. {sentence}" for number, sentence in enumerate(sentences(results), start=1)]
            block = "\n".join(["<!-- findings -->", measured(results), "", *lines, "<!-- end -->"])
            text = _MARKS.sub(lambda _: block, "".join(cell["source"]))
            text = _PICTURE.sub(lambda match: f"]({figures}/{match[1]})", text)
            cell["source"] = text.splitlines(keepends=True)
    return content
