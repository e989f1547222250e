"""The numbers of §4.5 that are drawn beside those of other runs: this run's and a results file's in one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..glue.tasks import TASKS
from ..statistics import Bootstrap, Seed
from . import pooled
from .claims import PUNCTUATION_FIRST, Clear
from .controls import with_neighbours

ALONG, ABOVE = "attention along links", "above other inputs' places"  # the panels of the correlations
# What the paper's text says of Figure 7, which shows no numbers.
NAMED_BY_PAPER = {task.title: "punctuation" if name in PUNCTUATION_FIRST else "[SEP]" for name, task in TASKS.items()}


def from_cls_table(by_task: Mapping[str, Sequence[float | None]]) -> dict[str, np.ndarray]:
    """A state's ``from_cls`` of a results file, by the tasks' titles; NaN for what was not measured."""
    return {TASKS[name].title: np.array(values, dtype=float) for name, values in by_task.items()}


def from_cls_tables(sources: Mapping[str, Mapping]) -> dict[str, dict[str, dict[str, np.ndarray]]]:
    """Figure 7's tables by source and state, pre-trained and fine-tuned.

    Args:
        sources: by title, a results file or what will be one; those without the numbers are left out.
    """
    return {
        title: {state: from_cls_table(results["from_cls"][state]) for state in ("pre-trained", "fine-tuned")}
        for title, results in sources.items()
        if "from_cls" in results
    }


def of_heads(
    scores: Mapping[str, Mapping[str, np.ndarray]],
    clear: Mapping[str, Mapping[str, Clear]],
    neighbours: Mapping[str, np.ndarray],
) -> dict[str, Mapping]:
    """Every head's numbers for the results file, each of shape (layers, heads).

    Args:
        scores: by state of the model and type of link.
        clear: the same of the tests of the excess.
        neighbours: by state.
    """
    excess = {f"{state}, {way}": pooled.excess(found, way) for state, found in clear.items() for way in pooled.WAYS}
    return {"scores": scores, "excess": excess, "neighbours": neighbours}


def correlations(sources: Mapping[str, Mapping], seed: Seed) -> dict[str, dict[str, dict[str, Bootstrap]]]:
    """Do scores, and excesses, go with attention to neighbours? Of pre-trained models, by what, type of link and source.

    Args:
        sources: by title, a results file or what will be one; those without the numbers are left out.
        seed: of the resampling of heads.
    """
    parts = {ALONG: ("scores", "pre-trained"), ABOVE: ("excess", "pre-trained, links")}
    panels: dict[str, dict[str, dict[str, Bootstrap]]] = {label: {} for label in parts}
    for title, results in sources.items():
        for label, (part, state) in parts.items():
            if part in results:
                neighbours = np.array(results["neighbours"]["pre-trained"], dtype=float)
                values = {kind: np.array(heads, dtype=float) for kind, heads in results[part][state].items()}
                for kind, found in with_neighbours(values, neighbours, seed).items():
                    panels[label].setdefault(kind, {})[title] = found
    return panels


def excesses(sources: Mapping[str, Mapping]) -> dict[str, dict[str, np.ndarray]]:
    """The excess of every head of pre-trained models by source and type of link, and of this run's random weights."""
    found = {
        title: _arrays(results["excess"]["pre-trained, links"]) for title, results in sources.items() if "excess" in results
    }
    return found | {"random weights": _arrays(sources["this run"]["excess"]["random weights, links"])}


def _arrays(by_type: Mapping[str, Sequence]) -> dict[str, np.ndarray]:
    return {kind: np.array(heads, dtype=float) for kind, heads in by_type.items()}
