"""Dots with intervals, bars by layer, and lines from token to token."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from ..common import axis_numbers
from ..glue import TASKS
from ..results import Entry, Results
from ..statistics import Bootstrap, Estimate
from .style import COLOURS, FLOW_COLOURS, SOURCE_COLOURS, SOURCE_MARKERS, panel_grid

FAINTEST = 0.4  # of an equal share: lines of smaller weights would only grey the picture


Dot = float | tuple[float, float, float] | Mapping[str, float] | Bootstrap | Estimate

_POSSIBLE = {
    "share": (0.0, 1.0),
    "weight": (0.0, 1.0),
    "difference of shares": (-1.0, 1.0),
    "correlation": (-1.0, 1.0),
}
_INTERVAL = "interval"  # how the lines of intervals are known again


def cut(ax: Axes, low: float, high: float) -> None:
    """Limit the horizontal axis of :func:`dots`; an interval that goes on beyond it ends in an arrowhead."""
    ax.set_xlim(low, high)
    for line in [line for line in ax.lines if line.get_gid() == _INTERVAL]:
        (left, right), (height, _) = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        for beyond, edge, head in ((left < low, low, "<"), (right > high, high, ">")):
            if beyond:
                ax.plot(edge, height, head, color=line.get_color(), ms=6, clip_on=False)


def dots(
    ax: Axes,
    rows: Mapping[str, Mapping[str, Dot]],
    label: str,
    scale: float = 1.0,
    colours: Mapping[str, str] = SOURCE_COLOURS,
    border: float | None = None,
    markers: Mapping[str, str] = SOURCE_MARKERS,
    within: tuple[float, float] | None = None,
) -> None:
    """A row for each title, a dot with its interval for each source.

    Args:
        ax: matplotlib axes.
        rows: by title from top to bottom, and then by source: an estimate, its summary in a results
            file ("value", "low", "high"; without these it has no interval), those three, or a
            number that has no interval, drawn hollow.
        label: of the axis, with the unit.
        scale: factor of every number, such as 100 for percent.
        colours: by source.
        border: where a claim would begin to hold, drawn as an orange line.
        markers: by source, matplotlib's names of shapes.
        within: where intervals are cut, since a symmetric one may go on to what cannot be; by
            default as the unit says.
    """
    sources = [name for name in colours if any(name in row for row in rows.values())]
    for at, row in enumerate(rows.values()):
        for place, source in enumerate(sources):
            if source in row:
                value, low, high = (scale * part for part in _parts(row[source], within))
                height = at + 0.22 * (place - (len(sources) - 1) / 2)
                ax.plot([low, high], [height] * 2, color=colours[source], lw=1.3, gid=_INTERVAL)
                inside = "white" if low == high else colours[source]
                ax.plot(
                    value, height, markers.get(source, "o"), color=colours[source], mfc=inside, ms=5
                )
    for source in sources:
        found = [_parts(row[source], within) for row in rows.values() if source in row]
        inside = "white" if all(low == high for _, low, high in found) else colours[source]
        ax.plot(
            [], [], markers.get(source, "o"), color=colours[source], mfc=inside, ms=5, label=source
        )
    if border is not None:
        ax.axvline(scale * border, color=COLOURS["orange"], lw=1.5, zorder=0)
    ax.set(xlabel=label, ylim=(len(rows) - 0.5, -0.5))
    ax.set_yticks(range(len(rows)), list(rows))


def dot_panels(
    panels: Mapping[str, Mapping[str, Mapping[str, Dot]]],
    label: str,
    scale: float = 1.0,
    colours: Mapping[str, str] = SOURCE_COLOURS,
    columns: int = 4,
    limits: tuple[float | None, float | None] = (None, None),
    **options: Any,
) -> Figure:
    """Several :func:`dots` under one legend, on one scale; 0 is marked where numbers lie on both sides.

    Args:
        panels: by title, each as ``rows`` of :func:`dots`.
        label, scale, colours: as there.
        columns: panels in a row.
        limits: ends of the axis; see :func:`cut`.
        options: the others of :func:`dots`.

    Returns:
        The figure.
    """
    titles = [list(rows) for rows in panels.values()]
    width = 6.2 if len(panels) == 1 else 3.4
    figure, axes = panel_grid(
        len(panels), width, 0.36 * max(map(len, titles)) + 1.2, columns=columns
    )
    handles: dict[str, Artist] = {}
    for at, (ax, (title, rows)) in enumerate(zip(axes, panels.items(), strict=True)):
        dots(ax, rows, label, scale, colours, **options)
        ax.set_title(title)
        if at % columns and titles[at] == titles[at - 1]:
            ax.set_yticklabels([])
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    own = np.array([ax.get_xlim() for ax in axes])
    low, high = (
        given if given is not None else end
        for given, end in zip(limits, (own.min(), own.max()), strict=True)
    )
    for ax in axes:
        cut(ax, low, high)
        if low < 0 < high:
            ax.axvline(0, color=COLOURS["grey"], lw=0.8, zorder=0)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside upper center",
        ncols=min(4, len(handles)),
    )
    return figure


def panels_of(
    runs: Mapping[str, Results],
    what: str | Sequence[str],
    panel: str | Sequence[str],
    row: str | Sequence[str],
    source: str = "run",
    names: Mapping[str, Mapping[Any, str]] | None = None,
    **labels: object,
) -> dict[str, dict[str, dict[str, Entry]]]:
    """Recorded numbers of several runs as :func:`dot_panels` draws them; all panels have the same rows.

    Args:
        runs: tables of results by whose they are.
        what: a kind of number, or several.
        panel, row, source: which label, or labels, tell panels, rows and sources apart: "run",
            "what", "task", "kind" …
        names: by label, what its values are called, in their order; what has another value is left
            out.
        labels: that all numbers have.
    """
    titles = {"task": {name: task.title for name, task in TASKS.items()}} | dict(names or {})
    found = [
        entry | {"run": name}
        for name, run in runs.items()
        for one in ([what] if isinstance(what, str) else what)
        for entry in run.find(one, **labels)
    ]
    for label, known in titles.items():
        found = [entry for entry in found if label not in entry or entry[label] in known]
        order = {value: at for at, value in enumerate(known)}
        found.sort(key=lambda entry, label=label, order=order: order.get(entry.get(label), 0))  # type: ignore[misc]

    def called(entry: Entry, label: str | Sequence[str], between: str = ", ") -> str:
        parts = [label] if isinstance(label, str) else label
        told = (titles[part][entry[part]] if part in titles else entry[part] for part in parts)
        return between.join(
            f"training {one}" if part == "training" else one
            for part, one in zip(parts, told, strict=True)
        )

    rows = list(dict.fromkeys(called(entry, row) for entry in found))
    panels: dict[str, dict[str, dict[str, Entry]]] = {}
    for entry in found:
        of_panel = panels.setdefault(called(entry, panel, "\n"), {title: {} for title in rows})
        if entry["value"] is not None:
            of_panel[called(entry, row)][called(entry, source)] = entry
    return panels


def layer_lines(
    panels: Mapping[str, Mapping[str, np.ndarray]],
    label: str,
    colours: Mapping[str, str],
    limits: tuple[float, float | None] = (0, None),
) -> Figure:
    """Numbers by layer: a panel for each title, a line for each name, one scale.

    Args:
        panels: by title and name, each of shape (layers,).
        label: of the upright axis.
        colours: by name.
        limits: of that axis.
    """
    figure, axes = panel_grid(len(panels), 3.2, 2.9, sharey=True)
    for ax, (title, lines) in zip(axes, panels.items(), strict=True):
        for (name, values), marker in zip(lines.items(), "osD^", strict=False):
            layers = axis_numbers(len(values))
            ax.plot(layers, values, f"{marker}-", color=colours[name], ms=4, lw=1.6, label=name)
        ax.set(title=title, xlabel="layer", xticks=layers)
    axes[0].set(ylabel=label, ylim=limits)  # of all, which share it; once all lines are drawn
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def _parts(of: Dot, within: tuple[float, float] | None) -> tuple[float, float, float]:
    """Value and the two ends of its interval; of a plain number thrice the number."""
    if isinstance(of, (int, float)):
        return of, of, of
    if isinstance(of, Mapping):
        found = [of.get(part, of["value"]) for part in ("value", "low", "high")]
        value, low, high = (np.nan if one is None else one for one in found)  # not measurable
        unit = str(of.get("unit"))
        within = within or _POSSIBLE.get(unit)
    else:
        value, low, high = of if isinstance(of, tuple) else (of.value, *of.interval)
    least, most = within or (-np.inf, np.inf)
    return value, max(low, least), min(high, most)


def flow(ax: Axes, shares: np.ndarray, names: Sequence[str], title: str = "") -> None:
    """Where each layer's attention goes: one bar per layer, layer 1 at the top, its parts in percent.

    Args:
        ax: matplotlib axes.
        shares: shape (layers, destinations), rows summing to 1.
        names: of the destinations, in order.
        title: above it.
    """
    left = np.zeros(len(shares))
    layers = axis_numbers(len(shares))
    for share, name, colour in zip(shares.T, names, FLOW_COLOURS, strict=True):
        ax.barh(layers, share, left=left, color=colour, label=name, height=0.86)
        dark = np.dot(to_rgb(colour), (0.299, 0.587, 0.114)) < 0.55
        look: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "fontsize": 7,
            "color": "white" if dark else "black",
        }
        for layer, width, start in zip(layers, share, left, strict=True):
            if width >= 0.055:
                ax.text(start + width / 2, layer, f"{100 * width:.0f}", **look)
        left += share
    # Limits, not an inversion: panels that share the axis would each turn it over again.
    ax.set(
        title=title,
        xlim=(0, 1),
        ylim=(len(shares) + 0.5, 0.5),
        yticks=layers,
        xlabel="share of attention, %",
    )
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def flow_grid(panels: dict[str, np.ndarray], names: Sequence[str], columns: int = 3) -> Figure:
    """Several :func:`flow` side by side under one legend.

    Args:
        panels: by title, each of shape (layers, destinations).
        names: of the destinations.
        columns: panels in a row.

    Returns:
        The figure.
    """
    columns = min(columns, len(panels))
    layers, rows = max(len(shares) for shares in panels.values()), -(-len(panels) // columns)
    size = 3.6 * columns, (0.34 * layers + 0.9) * rows + 0.4
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, sharey=True)
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    for ax, (title, shares) in zip(axes.flat, panels.items(), strict=False):
        flow(ax, shares, names, title)
    for ax in axes[:, 0]:
        ax.set_ylabel("layer")
    for ax in axes[:-1].flat:
        ax.set_xlabel("")
    figure.legend(
        *axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(names)
    )
    return figure


def attention_lines(ax: Axes, weights: np.ndarray, tokens: Sequence[str], title: str = "") -> None:
    """One self-attention map as lines: who attends at the left, to whom at the right; thick and dark is a large weight.

    Args:
        ax: matplotlib axes.
        weights: shape (tokens, tokens), rows summing to 1.
        tokens: the wordpieces, drawn from top to bottom.
        title: above.
    """
    drawn = np.argwhere(weights >= FAINTEST / len(tokens))
    drawn = drawn[np.argsort(weights[tuple(drawn.T)], kind="stable")]  # the darkest last, on top
    sizes = weights[tuple(drawn.T)]
    lines = [[(0, query), (1, key)] for query, key in drawn]
    # Mixed with white instead of transparent: crossings of faint lines stay faint.
    colours = 1 - np.minimum(1, 0.15 + sizes)[:, None] * (1 - np.array(to_rgb(COLOURS["blue"])))
    ax.add_collection(LineCollection(lines, colors=colours, linewidths=0.4 + 3 * sizes))
    for place, token in enumerate(tokens):
        ax.text(-0.03, place, token, ha="right", va="center", fontsize=8)
        ax.text(1.03, place, token, ha="left", va="center", fontsize=8)
    for name, x, side in (("from", -0.03, "right"), ("to", 1.03, "left")):
        ax.text(
            x, -1.1, name, ha=side, va="center", fontsize=8, color=COLOURS["grey"], style="italic"
        )
    ax.set(xlim=(-0.75, 1.75), ylim=(len(tokens) - 0.4, -1.6), title=title)
    ax.set_axis_off()


def line_panels(panels: dict[str, np.ndarray], tokens: Sequence[str]) -> Figure:
    """Several :func:`attention_lines` of one input side by side.

    Args:
        panels: by title, each of shape (tokens, tokens).
        tokens: the wordpieces.

    Returns:
        The figure.
    """
    figure, axes = plt.subplots(
        1, len(panels), figsize=(4.2 * len(panels), 0.19 * len(tokens) + 1), squeeze=False
    )
    for ax, (title, weights) in zip(axes.flat, panels.items(), strict=True):
        attention_lines(ax, weights, tokens, title)
    return figure
