"""The figures of §4.5: links on one map, links and neighbours, heads above places, and what [CLS] looks at (Fig 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..annotation.inputs import TOKEN_TYPES
from ..claims import CLAIMS, RANKED, WEIGHT
from ..common import head_name
from ..glue import TASKS
from ..judge import THIS_RUN
from ..plots import COLOURS, SOURCE_COLOURS, dot_panels, table_map, token_map
from ..plots.dots import Dot
from ..plots.style import SOURCE_MARKERS
from ..results import Results
from ..statistics import bootstrap_mean
from ..statistics.permutation import heads_by_size, largest
from .dependencies import CLARK, FOUND
from .looks import BEFORE, FROM_CLS, RANDOM, TUNED
from .measure import (
    ABOVE,
    ABOVE_RIVALS,
    ALONG,
    AS_IS,
    EXCESS,
    LINK_TYPES,
    NEIGHBOURS,
    RHO,
    RIVALS,
    SCORES,
    WAYS,
    Clear,
    TokenLink,
)

NAMED = 3  # heads of each kind that carry their names
_LEAST = -0.2  # of the scale of what is above a yardstick; what is less stands there
# What the paper's text says of Figure 7, which shows no numbers: the type that gets most, by the task's title.
_PUNCTUATION = CLAIMS["cls-reads-punctuation"].tasks
NAMED_BY_PAPER = {task.title: "punctuation" if name in _PUNCTUATION else "[SEP]" for name, task in TASKS.items()}
_FRAME: dict[str, Any] = {"fill": False, "edgecolor": COLOURS["orange"], "linestyle": ":", "linewidth": 1.8}
STATES = (BEFORE, TUNED)  # that Figure 7 shows
Runs = Mapping[str, Results]
Table = Mapping[str, np.ndarray]  # by task's title what [CLS] gives each type, shape (types,), NaN where there is none


def one_head(
    weights: np.ndarray, tokens: Sequence[str], links: Sequence[TokenLink], title: str, places: bool = False
) -> Figure:
    """One map, with an orange frame around each link, and other frames around what links are compared with.

    Args:
        weights: shape (tokens, tokens), rows summing to 1.
        tokens: the wordpieces.
        links: of the input.
        title: above the map.
        places: True to draw other inputs' places (dashed, grey) and rivals (dotted, blue), too.
    """
    figure = token_map(weights, tokens, title)
    compared = [(cells, "grey", "--") for link in links for cells in link.places if places]
    compared += [(cells, "blue", ":") for link in links for cells in link.rivals if places]
    for (rows, columns), colour, style in [*compared, *(((link.rows, link.columns), "orange", "-") for link in links)]:
        corner, size = (columns.min() - 0.5, rows.min() - 0.5), (np.ptp(columns) + 1, np.ptp(rows) + 1)
        frame = plt.Rectangle(corner, *size, fill=False, edgecolor=COLOURS[colour], linestyle=style, linewidth=1.6)
        figure.axes[0].add_patch(frame)
    return figure


def links_and_neighbours(
    scores: Mapping[str, np.ndarray], clear: Mapping[str, Clear], neighbours: Mapping[str, np.ndarray], even: float
) -> Figure:
    """Attention along links beside attention to neighbours, a panel for each type of link and a point for each head.

    Orange heads are surely above other inputs' places and rivals; the highest of all, and of these, carry their names.

    Args:
        scores: by type of link, the weight along it, shape (layers, heads).
        clear: by type of link, the tests of every head's excess.
        neighbours: by type of link, the weight on the neighbour on the links' side, shape (layers, heads).
        even: what an even head gives any token.
    """
    figure, axes = plt.subplots(1, len(scores), figsize=(3.3 * len(scores), 3.4), sharey=True, squeeze=False)
    sure = "surely 0.02 more along links than at other inputs' places and to rivals"
    for ax, (kind, score) in zip(axes.flat, scores.items(), strict=True):
        _beside(ax, score, clear[kind].heads, neighbours[kind], sure)
        ax.axhline(even, color=COLOURS["grey"], ls=":", lw=1)
        ax.set(title=kind, xlabel="to the neighbour on that side (log scale)")
    axes.flat[0].set_ylabel("attention along links")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def beside_neighbours(runs: Runs) -> Figure:
    """The same of the pre-trained heads of several runs: a row of panels for each, from their rows.

    Orange heads give the link 0.02 more than other inputs' places and, where there are any, than rivals, as it is and
    with each word's popularity off.

    Args:
        runs: tables of results by whose they are.
    """
    kinds = [kind for kind in LINK_TYPES if any(run.find(SCORES, kind=kind) for run in runs.values())]
    size = 2.6 * len(kinds) + 0.8, 2.5 * len(runs) + 0.7
    figure, axes = plt.subplots(len(runs), len(kinds), figsize=size, sharex=True, sharey=True, squeeze=False)
    yardsticks = (*EXCESS.values(), ABOVE_RIVALS)
    for across, (name, run) in zip(axes, runs.items(), strict=True):
        for ax, kind in zip(across, kinds, strict=True):
            of = {"kind": kind, "state": STATES[0]}
            if run.find(SCORES, **of):
                above = [run.array(what, **of) > WEIGHT for what in yardsticks if run.find(what, **of)]
                label = "0.02 more than position and popularity explain, and, where there are any, rivals"
                _beside(ax, run.array(SCORES, **of), np.all(above, axis=0), run.array(NEIGHBOURS, **of), label, named=2)
            else:
                ax.text(0.5, 0.5, "no such links", ha="center", va="center", transform=ax.transAxes)
        across[0].set_ylabel(f"{name}\n\nattention along links")
    for ax, kind in zip(axes[0], kinds, strict=True):
        ax.set_title(kind)
    for ax in axes[-1]:
        ax.set_xlabel("to the neighbour (log scale)")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _beside(ax: Axes, score: np.ndarray, above: np.ndarray, neighbours: np.ndarray, label: str, named: int = NAMED) -> None:
    """One panel: a point for each head, orange where it is above. Heads that give neighbours less than 0.01 stand at 0.01."""
    beside = np.maximum(neighbours, 0.01)
    for those, colour, marker, name in ((~above, "grey", "o", "other heads"), (above, "orange", "D", label)):
        look: dict[str, Any] = {"s": 18, "alpha": 0.7, "color": COLOURS[colour], "marker": marker, "lw": 0}
        ax.scatter(beside[those], score[those], label=name, **look)
    ax.set(xscale="log")
    ax.set_xticks([0.01, 0.03, 0.1, 0.3, 1], ["≤ 0.01", "0.03", "0.1", "0.3", "1"], minor=False)
    ax.minorticks_off()
    order = heads_by_size(score)
    chosen = sorted({*order[:named], *[at for at in order if above[at]][:named]})
    points = {head_name(*at): (beside[at], score[at]) for at in chosen}
    _name_heads(ax, points, np.stack([beside.ravel(), score.ravel()], axis=1))


def _name_heads(ax: Axes, points: Mapping[str, tuple[float, float]], dots: np.ndarray) -> None:
    """Write each name beside its point, where the fewest of the dots, shape (dots, 2), and of the other names are."""
    places = {name: ax.transData.transform(point) * 72 / ax.figure.dpi for name, point in points.items()}  # in points
    all_dots = ax.transData.transform(dots) * 72 / ax.figure.dpi
    shifts = np.array([(5, -3), (5, 4), (5, -9), (-29, -3), (-29, 4), (-29, -9), (-12, 6), (-12, 14), (5, 14), (-29, 14)])
    taken: list[np.ndarray] = []  # lower left corners of names
    for name, point in points.items():

        def covered(shift: np.ndarray, at: np.ndarray) -> int:
            corner = at + shift
            dotted = (np.abs(all_dots - corner - (12, 3)) < (14, 6)).all(axis=1).sum()
            return int(dotted + 5 * sum((np.abs(corner - other) < (26, 8)).all() for other in taken))

        shift = shifts[int(np.argmin([covered(shift, places[name]) for shift in shifts]))]
        taken.append(places[name] + shift)
        ax.annotate(name, point, textcoords="offset points", xytext=tuple(shift.tolist()), fontsize=7)


def beyond(runs: Runs) -> Figure:
    """Every head's weight along links above the two yardsticks, a dot each: other inputs' places, and rivals.

    A row for each type of link and source; the largest carries its name, and in the right panel the left one's, too, where
    it is to the right of the orange line, the least effect.

    Args:
        runs: tables of results by whose they are; this run's also has a model with random weights.
    """
    sources = {name: (run, STATES[0]) for name, run in runs.items()} | {RANDOM: (runs[THIS_RUN], RANDOM)}
    kinds = [kind for kind in LINK_TYPES if any(run.find(SCORES, kind=kind) for run in runs.values())]
    panels = {"other sentences' places": EXCESS[AS_IS], "rivals": ABOVE_RIVALS}
    highest_heads: dict[tuple[str, str], list[tuple[int, ...]]] = {}  # by source and type, one in each panel
    figure, axes = plt.subplots(1, 2, figsize=(10, 0.9 + 0.8 * len(kinds)), sharex=True, sharey=True)
    for ax, (label, what) in zip(axes, panels.items(), strict=True):
        for place, (source, (run, state)) in enumerate(sources.items()):
            look: dict[str, Any] = {"color": SOURCE_COLOURS[source], "marker": SOURCE_MARKERS[source], "ls": ""}
            for kind, entry in run.by("kind", what, state=state).items():
                values, height = np.array(entry["value"], dtype=float), kinds.index(kind) + 0.26 * (place - 1)
                if not np.isfinite(values).any():
                    continue
                values = np.maximum(values, _LEAST)
                ax.plot(values.ravel(), np.full(values.size, height), ms=4, alpha=0.5, mew=0, **look)
                told = highest_heads.setdefault((source, kind), [])
                told.append(largest(values))
                names = dict.fromkeys(head_name(*at) for at in reversed(told) if values[at] > WEIGHT)
                right = (float(np.nanmax(values)), height)
                ax.annotate(", ".join(names), right, textcoords="offset points", xytext=(5, -3), fontsize=7)
            ax.plot([], [], label=source, **look)
        ax.axvline(WEIGHT, color=COLOURS["orange"], lw=1.5, zorder=0)
        ax.axvline(0, color=COLOURS["grey"], ls=":", lw=1, zorder=0)
        ax.set(xlabel=f"weight along the link minus {label}", ylim=(len(kinds) - 0.5, -0.5))
        ax.set_xticks([_LEAST, -0.1, 0, 0.1, 0.2], [f"≤ {_LEAST}".replace("-", "−"), "−0.1", "0", "0.1", "0.2"])
    axes[0].set_yticks(range(len(kinds)), kinds)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(sources))
    return figure


def correlations(runs: Runs) -> Figure:
    """Rank correlations over heads with attention to neighbours: of attention along links, and of what is above places.

    Args:
        runs: tables of results by whose they are.
    """
    panels: dict[str, dict[str, dict[str, Dot]]] = {}
    for label in (ALONG, ABOVE):
        of_runs = {name: run.by("kind", RHO.format(label)) for name, run in runs.items()}
        panels[label] = {
            kind: {name: found[kind] for name, found in of_runs.items() if kind in found}
            for kind in LINK_TYPES
            if any(kind in found for found in of_runs.values())
        }
    return dot_panels(panels, "ρ with attention to neighbours", border=RANKED, columns=2)


def highest(
    scores: Mapping[str, np.ndarray], differences: Mapping[str, Mapping[str, np.ndarray]], seed: int, count: int = 5
) -> Figure:
    """The excess of the heads with the highest scores, with intervals over examples: over places, both ways, and rivals.

    Args:
        scores: by type of link, shape (layers, heads).
        differences: by what ("links" and "centred", above other inputs' places; "rivals") and type of link, shape
            (examples, layers, heads).
        seed: of the resampling.
        count: heads of each type.
    """
    above = ("above other inputs' places", "the same with each word's popularity off", "above rivals")
    labels = dict(zip((*WAYS, RIVALS), above, strict=True))
    panels: dict[str, dict[str, dict[str, Dot]]] = {}
    for kind, score in scores.items():
        panels[kind] = {}
        for layer, head in heads_by_size(score)[:count]:
            by_way = {label: differences[way][kind][:, layer, head] for way, label in labels.items()}
            there = {label: values[np.isfinite(values)] for label, values in by_way.items()}
            panels[kind][head_name(layer, head)] = {
                label: bootstrap_mean(values, seed) for label, values in there.items() if len(values)
            }
    colours = dict(zip(above, (COLOURS["blue"], COLOURS["orange"], COLOURS["green"]), strict=True))
    return dot_panels(panels, "excess of the weight", colours=colours, markers=dict(zip(colours, "osD", strict=True)))


def pointing(runs: Runs) -> Figure:
    """How often the best head, and the best fixed distance, find the other word of an arc, beside Clark et al.'s.

    Args:
        runs: tables of results by whose they are.
    """
    clark = "Clark et al., bert-base"
    panels: dict[str, dict[str, dict[str, Dot]]] = {}
    for title, what, of_clark in zip(
        ("the best head", "the best fixed distance"), FOUND, ("accuracy", "offset"), strict=True
    ):
        shown = {name: run.by("kind", what) for name, run in runs.items()}
        panels[title] = {
            relation: {name: found[relation] for name, found in shown.items() if relation in found}
            | {clark: getattr(theirs, of_clark) / 100}
            for relation, theirs in CLARK.items()
        }
    colours = {clark: SOURCE_COLOURS["the paper"], **{name: SOURCE_COLOURS[name] for name in runs}}
    markers = {**SOURCE_MARKERS, clark: SOURCE_MARKERS["the paper"]}
    return dot_panels(panels, "finds the other word, %", scale=100, colours=colours, columns=2, markers=markers)


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

    Args:
        runs: tables of results by whose they are.
    """
    return tables({name: {state: _table(run, state) for state in STATES} for name, run in runs.items()})


def _table(run: Results, state: str) -> Table:
    rows = run.by("task", FROM_CLS, state=state)
    return {TASKS[name].title: np.array(entry["value"], dtype=float) for name, entry in rows.items()}


def tables(rows: Mapping[str, Mapping[str, Table]], named: bool = True) -> Figure:
    """What [CLS] gives each type of token in the last layer: a row of tables for each source, all on one scale (Fig 7).

    Args:
        rows: by source (titles at the left of the titles) and state of the model, a table.
        named: True to frame, in tables of fine-tuned models, the type that the paper says is first.
    """
    heights = [max(len(table) for table in states.values()) for states in rows.values()]
    width = max(map(len, rows.values()))
    size = 1.5 + 4.8 * width, 0.34 * sum(heights) + 0.55 * len(rows) + 1.0
    figure, axes = plt.subplots(len(rows), width, figsize=size, squeeze=False, height_ratios=heights, sharex=True)
    most = float(np.nanmax([values for states in rows.values() for table in states.values() for values in table.values()]))
    for across, (source, states) in zip(axes, rows.items(), strict=True):
        for at, (ax, (state, table)) in enumerate(zip(across, states.items(), strict=False)):
            table_map(ax, np.array(list(table.values())), list(table), TOKEN_TYPES, (0, most), f"{source}, {state}")
            if at:
                ax.set_yticks([])
            for row, title in enumerate(table if named and state == "fine-tuned" else ()):
                corner = TOKEN_TYPES.index(NAMED_BY_PAPER[title]) + 0.06, row + 0.1
                ax.add_patch(plt.Rectangle(corner, 0.88, 0.8, **_FRAME))
    if named:
        figure.legend([plt.Rectangle((0, 0), 1, 1, **_FRAME)], ["what the paper's text names"], loc="outside lower center")
    return figure
