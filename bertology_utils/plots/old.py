"""Figures of several runs beside each other: goes whole once every section's figures take one table."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize, to_rgb
from matplotlib.figure import Figure

from ..common import Head, axis_numbers
from ..glue import TASKS
from ..results import Entry, Results
from ..statistics import Bootstrap, Estimate
from .maps import attention_lines, draw_map, map_picture, token_maps
from .style import COLOURS, FLOW_COLOURS, GAIN, MAP, panel_grid

attention_map, line_panels = draw_map, attention_lines
# What a number is of, wherever several stand beside each other; told apart by lightness, too.
SOURCE_COLOURS = {
    "the paper": "#1a1a1a",
    "bert-base, published figure": "#1a1a1a",
    "MiniLM, real GLUE": COLOURS["green"],
    "MiniLM, real text": COLOURS["green"],
    "MiniLM, FrameNet 1.5": COLOURS["green"],
    "FrameNet 1.5": COLOURS["green"],
    "this run": COLOURS["blue"],
    "random weights": COLOURS["grey"],
}
# Their shapes, for those who do not see the colours; without an interval they are hollow.
SOURCE_MARKERS = {
    name: "D" if name in ("the paper", "bert-base, published figure") else "s"
    for name in SOURCE_COLOURS
} | {
    "this run": "o",
    "random weights": "^",
}


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


def heatmap(
    ax: Axes,
    values: np.ndarray,
    label: str = "",
    limits: tuple[float, float] | Normalize | None = None,
    cmap: str | Colormap = MAP,
    colour_bar: bool = True,
) -> Axes:
    """Layers × heads in the paper's orientation: layer 1 at the top, head 1 at the left.

    Args:
        ax: matplotlib axes.
        values: shape (layers, heads).
        label: what the colours mean, with the unit.
        limits: values at the two ends of the colour scale, or matplotlib's norm; the data's own
            range by default.
        cmap: colour map.
        colour_bar: draw the scale beside the map.

    Raises:
        ValueError: ``values`` is not two-dimensional.
    """
    if np.ndim(values) != 2:
        raise ValueError(f"a heatmap wants (layers, heads), not shape {np.shape(values)}")
    layers, heads = np.shape(values)
    norm = (
        limits
        if isinstance(limits, Normalize)
        else Normalize(*(limits or (np.nanmin(values), np.nanmax(values))))
    )
    # As seaborn's heatmap, which draws the whole figure once more for each, to see whether labels
    # overlap.
    sns.despine(ax=ax, left=True, bottom=True)
    there = np.ma.masked_invalid(values)
    edge = "#d5d8dc" if cmap is GAIN else "white"  # white squares end somewhere
    mesh = ax.pcolormesh(there, cmap=cmap, norm=norm, linewidths=0.4, edgecolor=edge)
    ax.set(xlim=(0, heads), ylim=(layers, 0))
    if colour_bar:
        ax.figure.colorbar(mesh, ax=ax, label=label).outline.set_linewidth(0)
    ax.set_xticks(np.arange(heads) + 0.5, [str(number) for number in axis_numbers(heads)])
    ax.set_yticks(
        np.arange(layers) + 0.5, [str(number) for number in axis_numbers(layers)], va="center"
    )
    ax.set(xlabel="head", ylabel="layer")
    ax.tick_params(length=0, rotation=0, labelsize=7)
    return ax


def heatmap_grid(
    values: Mapping[Any, np.ndarray | None],
    label: str,
    limits: tuple[float, float] | Normalize,
    cmap: str | Colormap = MAP,
    columns: int = 4,
    panel: tuple[float, float] = (2.9, 2.5),
    extend: Literal["neither", "both", "min", "max"] = "neither",
) -> Figure:
    """Several heatmaps on one scale, each under its title; or in named rows and columns.

    Args:
        values: by title, or by (row, column), each of shape (layers, heads); None for what was not
            measured.
        label: what the colours mean, with the unit; short, since it stands beside the scale.
        limits: values at the two ends of the scale, or matplotlib's norm.
        cmap: colour map.
        columns: panels in a row, where rows have no names.
        panel: width and height of a panel in inches.
        extend: at which ends of the scale an arrow says that there are values beyond it.

    Returns:
        The figure; its axes are in the order of the values, the scale's last.
    """
    in_rows = isinstance(next(iter(values)), tuple)
    if in_rows:
        columns = len({column for _, column in values})
    width, rows = min(columns, len(values)), -(-len(values) // columns)
    size = panel[0] * width + 0.8 + 0.4 * in_rows, panel[1] * rows + 0.2
    figure, axes = plt.subplots(rows, width, figsize=size, squeeze=False)
    shapes = [None if heads is None else heads.shape for heads in values.values()]
    for index, (ax, (name, heads)) in enumerate(zip(axes.flat, values.items(), strict=False)):
        row, title = name if in_rows else ("", name)
        if heads is None:
            ax.text(0.5, 0.5, "not measured", ha="center", va="center", color=COLOURS["grey"])
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        else:
            heatmap(ax, heads, limits=limits, cmap=cmap, colour_bar=False)
            ax.set_xticks(
                ax.get_xticks()[:: 1 if panel[0] > 2 else 3]
            )  # labels of a narrow panel would touch
            ax.set_xticklabels([str(int(place + 0.5)) for place in ax.get_xticks()])
        if not in_rows or index < width:
            ax.set_title(title, fontsize=9)
        if index % width:
            ax.set_ylabel("")
            if shapes[index] == shapes[index - 1]:
                ax.set_yticks([])
        elif row:
            ax.set_ylabel(f"{row}\n\nlayer")
        if (
            index + width < len(values) and shapes[index] and shapes[index + width]
        ):  # another panel stands below
            ax.set(xlabel="")
            if shapes[index][1] == shapes[index + width][1]:  # type: ignore[index]
                ax.set_xticks([])
    for ax in axes.flat[len(values) :]:
        ax.set_axis_off()
    drawn = next(ax for ax in axes.flat if ax.collections).collections[0]
    figure.colorbar(
        drawn, ax=axes, label=label, shrink=0.8, aspect=15 * rows, pad=0.01, extend=extend
    ).outline.set_visible(False)
    return figure


def token_map(weights: np.ndarray, tokens: Sequence[str], title: str = "") -> Figure:
    """:func:`token_maps` of one map."""
    return token_maps({title: weights}, tokens)


def frame(
    ax: Axes,
    rows: Sequence[int],
    columns: Sequence[int],
    colour: str = "orange",
    line: str = "-",
    thick: float = 1.8,
    inset: float = 0.0,
) -> None:
    """A frame around the cells of some rows and columns of an :func:`attention_map`, inset by so much of a cell.

    Its colour is one of :data:`COLOURS`.
    """
    corner = min(columns) - 0.5 + inset, min(rows) - 0.5 + inset
    size = np.ptp(columns) + 1 - 2 * inset, np.ptp(rows) + 1 - 2 * inset
    ax.add_patch(
        plt.Rectangle(
            corner, *size, fill=False, edgecolor=COLOURS[colour], linestyle=line, linewidth=thick
        )
    )


def frame_annotation(
    text: str, spans: Iterable[tuple[str, int, int, str]], title: str = ""
) -> Figure:
    """A sentence with its predicate and frame elements marked (Fig 4).

    Args:
        text: the sentence.
        spans: (name, start, end, colour) of each mark, characters with ``end`` excluded.
        title: above it.

    Returns:
        The figure.
    """
    width = 0.105  # inches of one character of the monospaced font below
    figure, ax = plt.subplots(figsize=(width * len(text) + 0.6, 1.1))
    ax.set(xlim=(-0.5, len(text) + 0.5), ylim=(-1.5, 1.4))
    ax.set_axis_off()
    ax.set_title(title, loc="left")
    for position, character in enumerate(text):
        ax.text(
            position + 0.5,
            0.4,
            character,
            family="DejaVu Sans Mono",
            fontsize=11,
            ha="center",
            va="center",
        )
    for name, start, end, colour in spans:
        ax.add_patch(
            plt.Rectangle(
                (start - 0.1, -0.2), end - start + 0.2, 1.2, color=colour, alpha=0.25, lw=0
            )
        )
        ax.text(
            (start + end) / 2,
            -0.75,
            name,
            fontsize=8,
            ha="center",
            va="center",
            color=colour,
            fontweight="bold",
        )
    return figure


def gallery(
    weights: np.ndarray,
    separators: Sequence[int],
    shares: np.ndarray,
    similarity: np.ndarray,
    gains: np.ndarray,
    by_layer: Sequence[np.ndarray],
    head: Head,
) -> Figure:
    """Five panels, lettered A to E: a map, a share, drift, gain, and dots with intervals.

    Args:
        weights: of one head, shape (tokens, tokens).
        separators: positions of [SEP].
        shares: what each head gives some token, from 0 to 1, shape (layers, heads).
        similarity: of each head's maps before and after fine-tuning, from 0 to 1, same shape.
        gains: score without each head minus the score with it, from −1 to 1, same shape.
        by_layer: the same for whole layers, and the lower and upper ends of their intervals, each
            of shape (layers,).
        head: the map's, (layer, head) from 0; it has a frame in the panels of heads.

    Returns:
        The figure.
    """
    figure, axes = plt.subplot_mosaic([["A", "B", "C"], ["D", "E", "E"]], figsize=(10.5, 6.2))
    map_picture(axes["A"], weights, separators)
    axes["A"].set(xlabel="to token", ylabel="from token")
    heatmap(axes["B"], shares, "share of attention", (0, 1))
    heatmap(
        axes["C"], similarity, "similarity", (min(0.5, np.nanmin(similarity)), 1), "mako"
    )  # dark is more change
    most = max(
        100 * float(np.nanmax(np.abs(gains))), 1.0
    )  # a point at least: no change at all is white
    heatmap(axes["D"], 100 * gains, "gain, points", (-most, most), GAIN)
    for letter in "BCD":
        axes[letter].add_patch(
            plt.Rectangle(
                head[::-1], 1, 1, fill=False, edgecolor=COLOURS["orange"], lw=2, clip_on=False
            )
        )
    values, low, high = (100 * np.asarray(part) for part in by_layer)
    layers = axis_numbers(len(values))
    axes["E"].axvline(0, color=COLOURS["orange"], lw=1.5, zorder=0)
    axes["E"].hlines(layers, low, high, color=COLOURS["blue"], lw=1.5)
    axes["E"].plot(values, layers, "o", ms=5, color=COLOURS["blue"])
    axes["E"].set(
        ylabel="layer", yticks=layers, xlabel="gain, points", ylim=(len(values) + 0.5, 0.5)
    )
    titles = {"A": "map", "B": "heads", "C": "drift", "D": "gain", "E": "dots with intervals"}
    for letter, title in titles.items():
        axes[letter].set_title(f"{letter} · {title}", loc="left", fontsize=10, fontweight="bold")
    return figure
