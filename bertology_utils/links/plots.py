"""The figures of §4.5: links on one map, links and neighbours, heads above places, and what [CLS] looks at (Fig 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import plots
from ..annotation.inputs import TOKEN_TYPES
from ..common import head_name
from ..glue import TASKS
from ..plots import COLOURS, SOURCE_COLOURS
from ..plots.old import SOURCE_MARKERS
from ..results import Runs
from ..statistics.permutation import heads_by_size, largest
from ..verdicts import CLAIMS, THIS_RUN, WEIGHT
from .measure import (
    ABOVE_RIVALS,
    AS_IS,
    BEFORE,
    EXCESS,
    FROM_CLS,
    LINK_TYPES,
    NEIGHBOURS,
    RANDOM,
    SCORES,
    TUNED,
    TokenLink,
)

NAMED = 2  # heads of each kind that carry their names
_PUNCTUATION = CLAIMS[
    "cls-reads-punctuation"
].tasks  # of which the paper's text says so; of the others it names [SEP]
_LEAST = -0.2  # of the scale of what is above a yardstick; what is less stands there
_FRAME: dict[str, Any] = {
    "fill": False,
    "edgecolor": COLOURS["orange"],
    "linestyle": ":",
    "linewidth": 1.8,
}
STATES = (BEFORE, TUNED)  # that Figure 7 shows


def one_head(
    weights: np.ndarray,
    tokens: Sequence[str],
    links: Sequence[TokenLink],
    title: str,
    places: bool = False,
) -> Figure:
    """One map, with an orange frame around each link, and other frames around what links are compared with.

    Args:
        weights: shape (tokens, tokens), rows summing to 1.
        tokens: the wordpieces.
        links: of the input.
        title: above the map.
        places: True to draw other inputs' places (dashed, grey) and rivals (dotted, blue), too.
    """
    figure = plots.token_map(weights, tokens, title)
    ways: list[tuple[str, str, str]] = (
        [("places", "grey", "--"), ("rivals", "blue", ":")] if places else []
    )
    compared = [
        (*cells, *look) for what, *look in ways for link in links for cells in getattr(link, what)
    ]
    for rows, columns, *look in [
        *compared,
        *((link.rows, link.columns, "orange", "-") for link in links),
    ]:
        plots.frame(figure.axes[0], np.ravel(rows).tolist(), np.ravel(columns).tolist(), *look)
    return figure


def beside_neighbours(runs: Runs) -> Figure:
    """Attention along links beside attention to neighbours, pre-trained: a row of panels for each run, a point for each head.

    Orange heads give the link 0.02 more than other inputs' places and, where there are any, than
    rivals, as it is and with each word's popularity off.

    Args:
        runs: tables of results by whose they are.
    """
    kinds = [
        kind for kind in LINK_TYPES if any(run.find(SCORES, kind=kind) for run in runs.values())
    ]
    size = 2.6 * len(kinds) + 0.8, 2.5 * len(runs) + 0.7
    figure, axes = plt.subplots(
        len(runs), len(kinds), figsize=size, sharex=True, sharey=True, squeeze=False
    )
    yardsticks = (*EXCESS.values(), ABOVE_RIVALS)
    for across, (name, run) in zip(axes, runs.items(), strict=True):
        for ax, kind in zip(across, kinds, strict=True):
            of = {"kind": kind, "state": STATES[0]}
            if run.find(SCORES, **of):
                above = [
                    run.array(what, **of) > WEIGHT for what in yardsticks if run.find(what, **of)
                ]
                label = "0.02 more than position and popularity explain, and, where there are any, rivals"
                _beside(
                    ax,
                    run.array(SCORES, **of),
                    np.all(above, axis=0),
                    run.array(NEIGHBOURS, **of),
                    label,
                )
            else:
                ax.text(0.5, 0.5, "no such links", ha="center", va="center", transform=ax.transAxes)
        across[0].set_ylabel(f"{name}\n\nattention along links")
    for ax, kind in zip(axes[0], kinds, strict=True):
        ax.set_title(kind)
    for ax in axes[-1]:
        ax.set_xlabel("to the neighbour (log scale)")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _beside(
    ax: Axes, score: np.ndarray, above: np.ndarray, neighbours: np.ndarray, label: str
) -> None:
    """One panel: a point for each head, orange where it is above. Heads that give neighbours less than 0.01 stand at 0.01."""
    beside = np.maximum(neighbours, 0.01)
    for those, colour, marker, name in (
        (~above, "grey", "o", "other heads"),
        (above, "orange", "D", label),
    ):
        look: dict[str, Any] = {
            "s": 18,
            "alpha": 0.7,
            "color": COLOURS[colour],
            "marker": marker,
            "lw": 0,
        }
        ax.scatter(beside[those], score[those], label=name, **look)
    ax.set(xscale="log")
    ax.set_xticks([0.01, 0.03, 0.1, 0.3, 1], ["≤ 0.01", "0.03", "0.1", "0.3", "1"], minor=False)
    ax.minorticks_off()
    order = heads_by_size(score)
    chosen = sorted({*order[:NAMED], *[at for at in order if above[at]][:NAMED]})
    points = {head_name(*at): (beside[at], score[at]) for at in chosen}
    _name_heads(ax, points, np.stack([beside.ravel(), score.ravel()], axis=1))


def _name_heads(ax: Axes, points: Mapping[str, tuple[float, float]], dots: np.ndarray) -> None:
    """Write each name beside its point, where the fewest of the dots, shape (dots, 2), and of the other names are."""
    places = {
        name: ax.transData.transform(point) * 72 / ax.figure.dpi for name, point in points.items()
    }  # in points
    all_dots = ax.transData.transform(dots) * 72 / ax.figure.dpi
    shifts = np.array(
        [
            (5, -3),
            (5, 4),
            (5, -9),
            (-29, -3),
            (-29, 4),
            (-29, -9),
            (-12, 6),
            (-12, 14),
            (5, 14),
            (-29, 14),
        ]
    )
    taken: list[np.ndarray] = []  # lower left corners of names
    for name, point in points.items():

        def covered(shift: np.ndarray, at: np.ndarray) -> int:
            corner = at + shift
            dotted = (np.abs(all_dots - corner - (12, 3)) < (14, 6)).all(axis=1).sum()
            return int(
                dotted + 5 * sum((np.abs(corner - other) < (26, 8)).all() for other in taken)
            )

        shift = shifts[int(np.argmin([covered(shift, places[name]) for shift in shifts]))]
        taken.append(places[name] + shift)
        ax.annotate(
            name, point, textcoords="offset points", xytext=tuple(shift.tolist()), fontsize=7
        )


def beyond(runs: Runs) -> Figure:
    """Every head's weight along links above the two yardsticks, a dot each: other inputs' places, and rivals.

    A row for each type of link and source; the largest carries its name, and in the right panel the
    left one's, too, where it is to the right of the orange line, the least effect.

    Args:
        runs: tables of results by whose they are; this run's also has a model with random weights.
    """
    sources = {name: (run, STATES[0]) for name, run in runs.items()} | {
        RANDOM: (runs[THIS_RUN], RANDOM)
    }
    kinds = [
        kind for kind in LINK_TYPES if any(run.find(SCORES, kind=kind) for run in runs.values())
    ]
    panels = {"other sentences' places": EXCESS[AS_IS], "rivals": ABOVE_RIVALS}
    highest_heads: dict[
        tuple[str, str], list[tuple[int, ...]]
    ] = {}  # by source and type, one in each panel
    figure, axes = plt.subplots(
        1, 2, figsize=(10, 0.9 + 0.8 * len(kinds)), sharex=True, sharey=True
    )
    for ax, (label, what) in zip(axes, panels.items(), strict=True):
        for place, (source, (run, state)) in enumerate(sources.items()):
            look: dict[str, Any] = {
                "color": SOURCE_COLOURS[source],
                "marker": SOURCE_MARKERS[source],
                "ls": "",
            }
            for kind, entry in run.by("kind", what, state=state).items():
                values, height = (
                    np.array(entry["value"], dtype=float),
                    kinds.index(kind) + 0.26 * (place - 1),
                )
                if not np.isfinite(values).any():
                    continue
                values = np.maximum(values, _LEAST)
                ax.plot(
                    values.ravel(), np.full(values.size, height), ms=4, alpha=0.5, mew=0, **look
                )
                told = highest_heads.setdefault((source, kind), [])
                told.append(largest(values))
                names = dict.fromkeys(
                    head_name(*at) for at in reversed(told) if values[at] > WEIGHT
                )
                right = (float(np.nanmax(values)), height)
                ax.annotate(
                    ", ".join(names), right, textcoords="offset points", xytext=(5, -3), fontsize=7
                )
            ax.plot([], [], label=source, **look)
        ax.axvline(WEIGHT, color=COLOURS["orange"], lw=1.5, zorder=0)
        ax.axvline(0, color=COLOURS["grey"], ls=":", lw=1, zorder=0)
        ax.set(xlabel=f"weight along the link minus {label}", ylim=(len(kinds) - 0.5, -0.5))
        ax.set_xticks(
            [_LEAST, -0.1, 0, 0.1, 0.2],
            [f"≤ {_LEAST}".replace("-", "−"), "−0.1", "0", "0.1", "0.2"],
        )
    axes[0].set_yticks(range(len(kinds)), kinds)
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(sources)
    )
    return figure


def from_cls(tokens: Sequence[str], weights: np.ndarray, title: str) -> Figure:
    """What [CLS] gives every token of one input, a bar each; the dotted line is an even share.

    Args:
        tokens: the wordpieces.
        weights: shape (tokens,), summing to 1.
        title: above.
    """
    figure, ax = plt.subplots(figsize=(1.5 + 0.45 * len(tokens), 2.4))
    ax.bar(range(len(tokens)), weights, color=COLOURS["blue"])
    ax.axhline(1 / len(tokens), color=COLOURS["grey"], ls=":")
    ax.set_xticks(range(len(tokens)), tokens, rotation=40, ha="right", fontsize=8)
    ax.set(ylabel="weight from [CLS]", title=title)
    return figure


def last_layer(runs: Runs) -> Figure:
    """What [CLS] gives each type of token in the last layer, pre-trained and fine-tuned, a row of tables for each run (Fig 7).

    In tables of fine-tuned models a frame is around the type that the paper says is first.

    Args:
        runs: tables of results by whose they are.
    """
    found = {
        (name, state): run.by("task", FROM_CLS, state=state)
        for name, run in runs.items()
        for state in STATES
    }
    rows = {
        key: {task: np.array(one["value"], dtype=float) for task, one in of.items()}
        for key, of in found.items()
    }
    heights = [len(rows[name, STATES[0]]) for name in runs]
    size = 1.5 + 4.8 * len(STATES), 0.34 * sum(heights) + 0.55 * len(runs) + 1.0
    figure, axes = plt.subplots(
        len(runs), len(STATES), figsize=size, squeeze=False, height_ratios=heights, sharex=True
    )
    most = float(
        np.nanmax(np.concatenate([values for table in rows.values() for values in table.values()]))
    )
    for ax, ((name, state), table) in zip(axes.flat, rows.items(), strict=True):
        titles = [TASKS[task].title for task in table]
        plots.table_map(
            ax,
            pd.DataFrame(list(table.values()), titles, TOKEN_TYPES),
            (0, most),
            f"{name}, {state}",
        )
        if state != STATES[0]:
            ax.set_yticks([])
            for row, task in enumerate(table):
                corner = (
                    TOKEN_TYPES.index("punctuation" if task in _PUNCTUATION else "[SEP]") + 0.06,
                    row + 0.1,
                )
                ax.add_patch(plt.Rectangle(corner, 0.88, 0.8, **_FRAME))
    figure.legend(
        [plt.Rectangle((0, 0), 1, 1, **_FRAME)],
        ["what the paper's text names"],
        loc="outside lower center",
    )
    return figure
