"""The figures of §4.5 that are made for it alone: links and neighbours, one head with its links, heads above places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import figures
from ..common import Head, head_name
from ..figures import COLOURS, SOURCE_COLOURS
from ..figures.style import SOURCE_MARKERS
from ..statistics import Bootstrap, bootstrap_mean, ties
from .claims import Clear
from .pooled import AS_IS, POPULARITY_OFF
from .token_links import Cells, TokenLink

CLARK_SOURCE = "Clark et al., bert-base"
NAMED = 3  # heads of each kind that carry their names


def one_head(
    weights: np.ndarray, tokens: Sequence[str], links: Sequence[TokenLink], title: str, places: bool = False
) -> Figure:
    """One map, with an orange frame around each link and dashed ones around the places that links are compared with.

    Args:
        weights: shape (tokens, tokens), rows summing to 1.
        tokens: the wordpieces.
        links: of the input.
        title: above the map.
        places: draw the places, too.

    Returns:
        The figure.
    """
    figure = figures.token_map(weights, tokens, title)
    for link in links:
        for cells in link.places if places else ():
            _frame(figure.axes[0], cells, COLOURS["grey"], "--")
    for link in links:
        _frame(figure.axes[0], (link.rows, link.columns), COLOURS["orange"], "-")
    return figure


def _frame(ax: Axes, cells: Cells, colour: str, style: str) -> None:
    rows, columns = cells
    size = np.ptp(columns) + 1, np.ptp(rows) + 1
    corner = columns.min() - 0.5, rows.min() - 0.5
    ax.add_patch(plt.Rectangle(corner, *size, fill=False, edgecolor=colour, linestyle=style, linewidth=1.6))


def links_and_neighbours(
    scores: Mapping[str, np.ndarray], clear: Mapping[str, Clear], neighbours: np.ndarray, even: float
) -> Figure:
    """Attention along links beside attention to neighbours, a panel for each type of link and a point for each head.

    Orange heads are surely above other inputs' places; the highest of all, and of these, carry their names.

    Args:
        scores: by type of link, the weight along it, shape (layers, heads).
        clear: by type of link, the tests of every head's excess.
        neighbours: attention to the previous or next token, shape (layers, heads).
        even: what an even head gives any token.

    Returns:
        The figure.
    """
    figure, axes = plt.subplots(1, len(scores), figsize=(3.3 * len(scores), 3.4), sharey=True, squeeze=False)
    for ax, (kind, score) in zip(axes.flat, scores.items(), strict=True):
        above = clear[kind].heads
        for chosen, colour, marker, label in (
            (~above, "grey", "o", "other heads"),
            (above, "orange", "D", "surely 0.02 more along links than at other inputs' places"),
        ):
            ax.scatter(
                neighbours[chosen], score[chosen], s=18, alpha=0.7, color=COLOURS[colour], marker=marker, label=label, lw=0
            )
        ax.axhline(even, color=COLOURS["grey"], ls=":", lw=1)
        ax.set(title=kind, xlabel="to previous or next token (log scale)", xscale="log")
        ax.set_xticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"], minor=False)
        ax.minorticks_off()
        _name_heads(
            ax,
            {head_name(*at): (neighbours[at], score[at]) for at in _named(score, above)},
            np.stack([neighbours.ravel(), score.ravel()], 1),
        )
    axes.flat[0].set_ylabel("attention along links")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _name_heads(ax: Axes, points: Mapping[str, tuple[float, float]], dots: np.ndarray) -> None:
    """Write each name beside its point, where the fewest of the dots, shape (dots, 2), and of the other names are."""
    places = {name: ax.transData.transform(point) * 72 / ax.figure.dpi for name, point in points.items()}  # in points
    all_dots = ax.transData.transform(dots) * 72 / ax.figure.dpi
    taken: list[np.ndarray] = []  # lower left corners of names
    for name, point in points.items():
        shifts = np.array(
            [(5, -3), (5, 4), (5, -9), (-29, -3), (-29, 4), (-29, -9), (-12, 6), (-12, 14), (5, 14), (-29, 14)]
        )

        def covered(shift: np.ndarray) -> int:
            corner = places[name] + shift
            dotted = (np.abs(all_dots - corner - (12, 3)) < (14, 6)).all(axis=1).sum()
            return int(dotted + 5 * sum((np.abs(corner - other) < (26, 8)).all() for other in taken))

        shift = shifts[int(np.argmin([covered(shift) for shift in shifts]))]
        taken.append(places[name] + shift)
        ax.annotate(name, point, textcoords="offset points", xytext=tuple(shift.tolist()), fontsize=7)


def _named(score: np.ndarray, above: np.ndarray) -> list[Head]:
    """The highest heads, and the highest of those above."""
    order = ties.heads_by_size(score)
    return sorted({*order[:NAMED], *[at for at in order if above[at]][:NAMED]})


def excess_strips(sources: Mapping[str, Mapping[str, np.ndarray]], least: float) -> Figure:
    """The excess of every head, a dot each, in a row for each type of link and source; the largest carries its name.

    Args:
        sources: by source, one of :data:`bertology_utils.figures.SOURCE_COLOURS`, and type of link, shape (layers, heads).
        least: the least effect, an orange line.

    Returns:
        The figure.
    """
    kinds = list(dict.fromkeys(kind for of_source in sources.values() for kind in of_source))
    figure, ax = plt.subplots(figsize=(9, 0.3 + 0.85 * max(1, len(kinds))))
    for place, (source, of_source) in enumerate(sources.items()):
        for kind, values in of_source.items():
            height = kinds.index(kind) + 0.26 * (place - (len(sources) - 1) / 2)
            heights, look = np.full(values.size, height), {"ms": 4, "alpha": 0.5, "mew": 0, "color": SOURCE_COLOURS[source]}
            ax.plot(values.ravel(), heights, SOURCE_MARKERS[source], **look)
            at = ties.largest(values)
            if values[at] > least:
                ax.annotate(head_name(*at), (values[at], height), textcoords="offset points", xytext=(5, -3), fontsize=7)
        ax.plot([], [], SOURCE_MARKERS[source], color=SOURCE_COLOURS[source], label=source)
    ax.axvline(least, color=COLOURS["orange"], lw=1.5, zorder=0)
    ax.axvline(0, color=COLOURS["grey"], ls=":", lw=1, zorder=0)
    ax.set_yticks(range(len(kinds)), kinds)
    ax.set(xlabel="weight along links minus weight at other inputs' places", ylim=(len(kinds) - 0.5, -0.5))
    figure.legend(loc="outside upper center", ncols=len(sources))
    return figure


def highest(
    scores: Mapping[str, np.ndarray], differences: Mapping[str, Mapping[str, np.ndarray]], seed: int, count: int = 5
) -> Figure:
    """The excess of the heads with the highest scores, with intervals over examples: as it is, and popularity taken off.

    Args:
        scores: by type of link, shape (layers, heads).
        differences: by way ("links", "centred") and type, shape (examples, layers, heads).
        seed: of the resampling.
        count: heads of each type.

    Returns:
        The figure.
    """
    colours = {"as it is": COLOURS["blue"], "with each word's popularity taken off": COLOURS["orange"]}
    panels: dict[str, dict[str, dict[str, Bootstrap]]] = {}
    for kind, score in scores.items():
        panels[kind] = {}
        for layer, head in ties.heads_by_size(score)[:count]:
            by_way = (differences[way][kind][:, layer, head] for way in (AS_IS, POPULARITY_OFF))
            there = (values[np.isfinite(values)] for values in by_way)
            panels[kind][head_name(layer, head)] = {
                label: bootstrap_mean(values, seed) for label, values in zip(colours, there, strict=True) if len(values)
            }
    markers = dict(zip(colours, "os", strict=True))
    return figures.dot_panels(panels, "excess of the weight", colours=colours, markers=markers)


def pointing(sources: Mapping[str, Mapping[str, Mapping]], clark: Mapping[str, tuple | None]) -> Figure:
    """How often the best head, and the best fixed distance, find the other word of an arc, beside Clark et al.'s.

    Args:
        sources: by source and relation, :func:`bertology_utils.links.dependencies.summary`.
        clark: by relation head, accuracy and that of the best distance, in points; None where there is none.

    Returns:
        The figure.
    """
    colours = {CLARK_SOURCE: SOURCE_COLOURS["the paper"], **{name: SOURCE_COLOURS[name] for name in sources}}
    panels: dict[str, dict[str, dict]] = {}
    for place, (title, part) in enumerate({"the best head": "accuracy", "the best fixed distance": "baseline"}.items(), 1):
        panels[title] = {}
        for relation, theirs in clark.items():
            row = {name: of_source[relation][part] for name, of_source in sources.items() if relation in of_source}
            if theirs and theirs[place] is not None:
                row[CLARK_SOURCE] = theirs[place] / 100
            panels[title][relation] = row
    markers = {**SOURCE_MARKERS, CLARK_SOURCE: SOURCE_MARKERS["the paper"]}
    return figures.dot_panels(panels, "finds the other word, %", scale=100, colours=colours, columns=2, markers=markers)
