"""The figures of notebook 10, from rows of results: ``runs`` are tables by whose they are, as :attr:`Lab.runs` gives them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .. import plots
from ..common import one_based
from ..glue import TASKS
from ..patterns.labels import PATTERNS
from ..results import Results
from .pairs import Pairs

Runs = Mapping[str, Results]
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
    """A figure of one layer's interactions: a square for every pair of heads, the heads in the order of their patterns.

    Args:
        pairs: of one training.
        patterns: usual pattern of each head, shape (layers, heads).
        layer: from 0.
    """
    order = np.argsort(patterns[layer], kind="stable")
    square = np.zeros((pairs.heads, pairs.heads))
    a, b = pairs.pairs.T
    square[a, b] = square[b, a] = pairs.interactions[layer].mean(axis=1)
    square = 1000 * square[np.ix_(order, order)]
    limit = max(float(np.abs(square).max()), 1e-3)
    figure, (ax,) = plots.panel_grid(1, 6.2, 4.6)
    plots.heatmap(ax, square, limits=(-limit, limit), cmap=plots.GAIN.reversed())
    names = [f"{PATTERNS[patterns[layer, head]]} {one_based(int(head))}" for head in order]
    ax.set_xticks(np.arange(pairs.heads) + 0.5, [name.split()[-1] for name in names])
    ax.set_yticks(np.arange(pairs.heads) + 0.5, names, rotation=0)
    ax.set(xlabel="head", ylabel="", title=f"interaction in layer {one_based(layer)}, thousandths of the loss")
    return figure


def changes(runs: Runs, what: str, across: str, names: Mapping[str, str], border: float = -0.01) -> Figure:
    """A figure of what the score changes by, in points, a panel for each task and run, a line for each name.

    Args:
        runs: each with rows of ``what``, with a state, and a kind that is a number.
        what: kind of number.
        across: label of the horizontal axis, with the unit.
        names: of the lines, by state.
        border: change at which a claim is decided.
    """
    tasks = [(name, run, task) for name, run in runs.items() for task in dict.fromkeys(e["task"] for e in run.find(what))]
    figure, axes = plots.panel_grid(len(tasks), 3.9, 3.1, columns=3)
    for ax, (name, run, task) in zip(axes, tasks, strict=True):
        for look, colour, (state, label) in zip(_LOOKS, plots.COLOURS.values(), names.items(), strict=False):
            found = sorted(run.find(what, task=task, state=state), key=lambda entry: float(entry["kind"]))
            if found:
                x = [float(entry["kind"]) for entry in found]
                parts = [[e.get(part, e["value"]) for e in found] for part in ("value", "low", "high")]
                value, low, high = 100 * np.array(parts, dtype=float)
                ax.errorbar(
                    x, value, [value - low, high - value], fmt=look, color=colour, ms=4, lw=1.4, elinewidth=0.8, label=label
                )
        shown = 100 * np.array(
            [entry["value"] for entry in run.find(what, task=task) if entry["state"] in names], dtype=float
        )
        room = max(0.25 * float(np.ptp(shown)), 4.0)
        ax.set_ylim(shown.min() - room, max(float(shown.max()), 0.0) + room)  # intervals may go on beyond
        ax.axhline(100 * border, color="black", lw=1, ls=":")
        ax.axhline(0, color=plots.COLOURS["grey"], lw=0.8, zorder=0)
        ax.set(title=f"{TASKS[task].title}, {name}", xlabel=across)
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes[0].set_ylabel("change of the score, points")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(names))
    return figure


def beyond(runs: Runs) -> Figure:
    """A figure of how much more pairs of one pattern, and pairs of like maps, interact than matched ones."""
    return plots.dot_panels(plots.panels_of(runs, BEYOND, "run", "task", "kind"), "thousandths of the loss",
                            1000, {"one pattern": plots.COLOURS["blue"], "maps most alike": plots.COLOURS["orange"]})  # fmt: skip


def halves(runs: Runs) -> Figure:
    """A figure of the scores of halves of the heads, and of what they are compared with."""
    return plots.dot_panels(plots.panels_of(runs, HALVES, ("task", "run"), "kind", "state"), "score", 100,
                            {"trained": plots.COLOURS["blue"], "compared with": plots.COLOURS["grey"]}, columns=3)  # fmt: skip
