"""The figures of notebook 10, from rows of results: ``runs`` are tables by whose they are, as :attr:`Lab.runs` gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sized

import numpy as np
from matplotlib.figure import Figure

from .. import plots
from ..common import one_based
from ..glue import TITLES
from ..patterns.labels import PATTERNS
from ..results import Runs
from ..verdicts import THIS_RUN
from .pairs import Pairs

PUT_BACK, GONE, WEIGHTS, HALVES, BEYOND, ONE_LEFT = (
    "gain with layers not fine-tuned",
    "gain with heads gone",
    "gain with weights gone",
    "score of half of the heads, trained again",
    "interaction above matched pairs",
    "gain with one head left in a layer",
)
_LOOKS = ("o-", "s--", "^:", "D-.")


def interactions(pairs: Pairs, patterns: np.ndarray, layer: int) -> Figure:
    """A figure of one layer's interactions: a square for each pair of heads, the heads in the order of their patterns.

    Lines part the patterns.

    Args:
        pairs: of one training.
        patterns: usual pattern of each head, shape (layers, heads).
        layer: from 0.
    """
    order = np.argsort(patterns[layer], kind="stable")
    square = np.full((pairs.heads, pairs.heads), np.nan)
    a, b = pairs.pairs.T
    square[a, b] = square[b, a] = pairs.interactions[layer].mean(axis=1)
    square = np.where(np.tri(pairs.heads, dtype=bool), 1000 * square[np.ix_(order, order)], np.nan)
    limit = max(float(np.nanmax(np.abs(square))), 1e-3)
    figure, (ax,) = plots.panel_grid(1, 6.2, 4.6)
    plots.heatmap(ax, square, limits=(-limit, limit), cmap=plots.GAIN.reversed())
    names = [f"{PATTERNS[patterns[layer, head]]} {one_based(int(head))}" for head in order]
    ax.set_xticks(np.arange(pairs.heads) + 0.5, [name.split()[-1] for name in names])
    ax.set_yticks(np.arange(pairs.heads) + 0.5, names, rotation=0)
    for border in (1 + np.flatnonzero(np.diff(patterns[layer, order]))).tolist():
        ax.plot(
            [0, border, border], [border, border, pairs.heads], color=plots.COLOURS["grey"], lw=1.2
        )
    ax.set(xlabel="head", ylabel="pattern and head")
    ax.set_title(f"interaction in layer {one_based(layer)}, thousandths of the loss")
    return figure


def changes(
    runs: Runs,
    titles: Mapping[str, str],
    what: str,
    across: str,
    names: Mapping[str, str],
    border: float = -0.01,
) -> Figure:
    """A figure of what the score changes by, in points, a panel for each task and run, a line for each name.

    Args:
        runs: each with rows of ``what``, with a state, and a kind that is a number.
        titles: what this run's tasks are called, by name.
        what: kind of number.
        across: label of the horizontal axis, with the unit.
        names: of the lines, by state.
        border: change at which a claim is decided.
    """
    there = [
        (name, run, task)
        for name, run in runs.items()
        for task in dict.fromkeys(e["task"] for e in run.find(what))
    ]
    columns = _columns(there)
    figure, axes = plots.panel_grid(len(there), 3.3, 3.1, columns=columns, sharey=True)
    shown = []
    for ax, (name, run, task) in zip(axes, there, strict=True):
        for at, (look, colour, (state, label)) in enumerate(
            zip(_LOOKS, plots.COLOURS.values(), names.items(), strict=False)
        ):
            found = sorted(
                run.find(what, task=task, state=state), key=lambda entry: float(entry["kind"])
            )
            if found:
                x = np.array([float(entry["kind"]) for entry in found])
                parts = [
                    [e.get(part, e["value"]) for e in found] for part in ("value", "low", "high")
                ]
                value, low, high = 100 * np.array(parts, dtype=float)
                beside = x + 0.012 * x.max() * (
                    at - (len(names) - 1) / 2
                )  # intervals at one place would hide each other
                ax.plot(beside, value, look, color=colour, ms=4, lw=1.4, label=label)
                ax.vlines(beside, low, high, color=colour, lw=1)
                shown += value.tolist()
        ax.axhline(100 * border, color="black", lw=1, ls=":", label="limit of the claim")
        ax.axhline(0, color=plots.COLOURS["grey"], lw=0.8, zorder=0)
        ax.set(title=f"{(titles if name == THIS_RUN else TITLES)[task]}, {name}", xlabel=across)
        ax.set_xticks(sorted({float(entry["kind"]) for entry in run.find(what, task=task)}))
    room = max(0.25 * float(np.ptp(shown)), 4.0)
    axes[0].set_ylim(min(shown) - room, max(*shown, 0.0) + room)  # intervals may go on beyond
    for ax in axes[::columns]:
        ax.set_ylabel("change of the score, points")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=columns)
    return figure


def _columns(panels: Sized) -> int:
    return 2 if len(panels) == 4 else 3


def beyond(runs: Runs) -> Figure:
    """A figure of how much more pairs of one pattern, and pairs of like maps, interact than matched ones."""
    return plots.dot_panels(
        plots.panels_of(runs, BEYOND, "run", "task", "kind"),
        "thousandths of the loss",
        1000,
        {"one pattern": plots.COLOURS["blue"], "maps most alike": plots.COLOURS["orange"]},
    )


def halves(runs: Runs) -> Figure:
    """A figure of the scores of halves of the heads, and of what they are compared with; an interval may go on beyond it."""
    lowest = 100 * min(entry["value"] for run in runs.values() for entry in run.find(HALVES))
    panels = plots.panels_of(runs, HALVES, ("task", "run"), "kind", "state")
    panels = dict(
        sorted(panels.items(), key=lambda panel: panel[0].endswith(THIS_RUN))
    )  # the others first
    looks = {"trained": plots.COLOURS["blue"], "compared with": plots.COLOURS["grey"]}
    return plots.dot_panels(
        panels, "score × 100", 100, looks, columns=_columns(panels), limits=(lowest - 6, 103)
    )
