"""Numbers with their intervals as dots, lines, scatters and stacked bars, drawn from one tidy table."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn.objects as so
from matplotlib.artist import Artist
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from .style import COLOURS

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SERIES = (*COLOURS.values(), "#7c5c8e", "#1a1a1a")
BORDER: dict[str, Any] = {"color": "black", "lw": 1.2, "ls": ":", "zorder": 0}
WIDEST = 10.0  # inches of a figure, the width of a page
Limits = tuple[float | None, float | None]


def dots(
    table: pd.DataFrame,
    *,
    x: str = "value",
    y: str = "task",
    colour: str | None = None,
    panel: str | None = None,
    label: str = "",
    colours: Mapping[str, str] | Sequence[str] = SERIES,
    marks: Mapping[str, str] | None = None,
    border: Mapping[str, float] | None = None,
    limits: Limits = (None, None),
    columns: int = 4,
    jitter: bool = False,
    name: str | None = None,
) -> Figure:
    """A dot for each row of a table, with the interval from "low" to "high"; hollow without one.

    Zero is marked where numbers lie on both sides of it. Values and intervals that go on beyond
    ``limits`` end in an arrowhead, and a value is written beside its arrowhead.

    Args:
        table: from :meth:`bertology_utils.results.Results.table`.
        x: column of the numbers.
        y: column that tells the rows of the figure apart; they stand in the order of its
            categories, else of the table.
        colour, panel: columns that tell apart what stands in one row, and what stands in panels.
        label: of the horizontal axis, with the unit.
        colours: by value of ``colour``, whose other values are left out, or one after the other.
        marks: columns of other numbers to compare with, one for each row and panel, each with a
            marker: ``{"the paper": "D"}``. They are black, and the legend has the columns' names.
        border: where a claim begins to hold, by what the legend says of it.
        limits: ends of the axis; by default those of the dots, with some room.
        columns: panels in a row.
        jitter: True for many dots in one row, such as every head.
        name: column of names that are written beside their dots; empty for most.

    Raises:
        ValueError: several dots would stand in one place, and ``jitter`` is False.
    """
    if table.empty:
        return _nothing()
    table, levels, palette = _prepared(table, y, colour, panel, colours)
    places = [y, "_colour", "_panel"]
    if not jitter and table.duplicated(places).any():
        twice = table[table.duplicated(places)].iloc[0]
        where = ", ".join(f"{one}={twice[one]!r}" for one in (y, colour, panel) if one)
        raise ValueError(
            f"several numbers stand at {where}: select one kind of them, tell them apart by colour="
            " or panel=, or set jitter=True"
        )
    marks, border = dict(marks or {}), dict(border or {})
    others = table.drop_duplicates([y, "_panel"])[[y, "_panel", *marks]]
    others = others.melt([y, "_panel"], marks, "_colour", x).dropna(subset=x)
    levels["_colour"] += [one for one in marks if one in set(others._colour)]
    palette |= dict.fromkeys(marks, "#1a1a1a")
    table = pd.concat([table, others] if len(others) else [table], ignore_index=True)
    for end in ("low", "high"):
        table[end] = table.get(end, pd.Series(np.nan, table.index)).astype(float)
    hollow = table.low.isna() | (table.low == table.high)

    low, high = _limits([table[x], *([value] for value in border.values())], limits)
    # Intervals are seen whole unless they are much longer than the values lie apart.
    ends = [end.clip(1.5 * low - high / 2, 1.5 * high - low / 2) for end in (table.low, table.high)]
    low, high = _limits([[low, high], *ends], limits)
    far = ~table[x].between(low, high)
    shown = table.assign(
        **{x: table[x].clip(low, high)},
        **{end: table[end].clip(low, high).mask(far) for end in ("low", "high")},
        _low=low,
        _high=high,
        _number=[f"  {value:.0f}  ".replace("-", "−") for value in table[x].fillna(0)],
    )
    dodge = so.Dodge(by=["color"])
    names = so.Text(fontsize=7, halign="left", offset=4, color="black")
    layers = [
        (so.Dot(pointsize=5), ~hollow & ~far, {}),
        (so.Dot(pointsize=5, fill=False), hollow & ~far, {}),
        (so.Dot(pointsize=5, marker="<"), table[[x, "low"]].min(axis=1) < low, {"x": "_low"}),
        (so.Dot(pointsize=5, marker=">"), table[[x, "high"]].max(axis=1) > high, {"x": "_high"}),
        (so.Text(fontsize=8, halign="left"), table[x] < low, {"text": "_number"}),
        (so.Text(fontsize=8, halign="right"), table[x] > high, {"text": "_number"}),
    ]
    plot = so.Plot(shown, x=x, y=y, color="_colour", marker="_colour")
    more: dict[str, Any] = {"orient": "y", "legend": False}
    if jitter:
        layers = []
        plot = plot.add(so.Dots(pointsize=3), dodge, so.Jitter(0.5, seed=0), **more)
    else:
        plot = plot.add(so.Range(linewidth=1.3), dodge, xmin="low", xmax="high", **more)
    if name:
        layers.append((names, table[name].fillna("") != "", {"text": name}))
    for mark, those, others in layers:
        if those.any():
            plot = plot.add(mark, dodge, data=shown[those], **more, **others)
    plot = plot.scale(y=so.Nominal(order=levels[y])).limit(
        x=(low - 0.02 * (high - low), high + (0.12 if name else 0.02) * (high - low))
    )
    plot = plot.label(x=label, y="" if y == "task" else y)
    height = 0.13 + max(0.13, 0.1 * len(levels["_colour"])) + 0.15 * jitter
    height = height * len(levels[y]) + 0.7
    figure = _drawn(plot, levels, palette, 3.4, height, columns, marks)
    for ax in figure.axes:
        ax.tick_params(axis="y", which="both", length=0)
        ax.set_yticks(np.arange(len(levels[y]) - 1) + 0.5, minor=True)  # borders of the rows
        ax.grid(axis="y", which="minor", color="#e6e8eb", lw=0.6)
        if low < 0 < high:
            ax.axvline(0, color=COLOURS["grey"], lw=0.8, zorder=0)
        for value in border.values():
            ax.axvline(value, **BORDER)
    handles = _handles(levels, palette, marks=marks)
    for one, handle in handles.items():
        if not jitter and hollow[table._colour == one].all():
            handle.set_markerfacecolor("none")
    handles |= {one: Line2D([], [], **BORDER) for one in border}
    return _legend(figure, handles)


def lines(
    table: pd.DataFrame,
    *,
    x: str = "layer",
    y: str = "value",
    colour: str | None = None,
    panel: str | None = None,
    each: str | None = None,
    label: str = "",
    xlabel: str | None = None,
    colours: Mapping[str, str] | Sequence[str] = SERIES,
    border: Mapping[str, float] | None = None,
    limits: Limits = (None, None),
    columns: int = 4,
    share: bool = True,
) -> Figure:
    """Lines of numbers by layer, or by another number, with a band from "low" to "high" if there is one.

    Several numbers at one place are averaged; with ``each`` a thin line stands for each of them.

    Args:
        table: from :meth:`bertology_utils.results.Results.table`.
        x: column of the layers, or of other numbers.
        y: column of the numbers drawn.
        colour, panel: columns that tell lines apart, and panels.
        each: column that tells apart what is averaged.
        label, xlabel: of the axes, with the unit; the horizontal one is called ``x`` by default.
        colours: by value of ``colour``, whose other values are left out, or one after the other.
        border: where a claim begins to hold, by what the legend says of it.
        limits: ends of the upright axis.
        columns: panels in a row.
        share: False where panels have axes of their own.
    """
    if table.empty:
        return _nothing()
    table, levels, palette = _prepared(table, x, colour, panel, colours, numbers=True)
    plot = so.Plot(table, x=x, y=y, color="_colour", marker="_colour")
    if each:
        plot = plot.add(so.Line(linewidth=0.8, alpha=0.45, marker=""), group=each, legend=False)
    elif table.get("low", pd.Series(dtype=float)).notna().any():
        plot = plot.add(so.Band(alpha=0.16), so.Agg(), ymin="low", ymax="high", legend=False)
    plot = plot.add(so.Line(linewidth=1.8, pointsize=5), so.Agg(), legend=False)
    plot = plot.limit(y=limits).share(x=share, y=share).label(x=xlabel or x, y=label)
    figure = _drawn(plot, levels, palette, 3.2, 2.6, columns)
    for ax in figure.axes:
        numbers = ax.get_title() if panel else ""
        at = sorted(table.loc[table._panel == numbers, x].unique())
        if len(at) <= 13:
            ax.set_xticks(at, [f"{one:g}" for one in at])
        if ax.get_ylim()[0] < 0 < ax.get_ylim()[1]:
            ax.axhline(0, color=COLOURS["grey"], lw=0.8, zorder=0)
        for value in (border or {}).values():
            ax.axhline(value, **BORDER)
    handles = _handles(levels, palette, "-")
    if each:
        thin, mean = Line2D([], [], color=COLOURS["grey"], lw=0.8), Line2D([], [], marker="o", ms=5)
        mean.set_color(next(iter(palette.values())))
        handles = {f"each {each}": thin} | (handles or {"their mean": mean})
    handles |= {one: Line2D([], [], **BORDER) for one in border or {}}
    return _legend(figure, handles)


def scatter(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    colour: str | None = None,
    panel: str | None = None,
    label: tuple[str, str] = ("", ""),
    colours: Mapping[str, str] | Sequence[str] = SERIES,
    name: str | None = None,
    diagonal: bool = False,
    columns: int = 4,
) -> Figure:
    """A dot for each row of a table, such as each head, at two of its numbers.

    Args:
        table: with the two numbers as columns, such as
            ``table.pivot(index=["layer", "head"], columns="what", values="value")``.
        x, y: these columns.
        colour, panel: columns that tell dots apart, and panels.
        label: of the two axes, with the units.
        colours: by value of ``colour``, whose other values are left out, or one after the other.
        name: column of names that are written beside their dots; empty for most.
        diagonal: True for one scale on both axes and a line where the two numbers are equal.
        columns: panels in a row.
    """
    if table.empty:
        return _nothing()
    table, levels, palette = _prepared(table, x, colour, panel, colours, numbers=True)
    plot = so.Plot(table, x=x, y=y, color="_colour", marker="_colour")
    plot = plot.add(so.Dots(pointsize=4), legend=False)
    if name:
        texts = so.Text(fontsize=7, halign="left", offset=4, color="black")
        plot = plot.add(texts, data=table[table[name].fillna("") != ""], text=name, legend=False)
    plot = plot.label(x=label[0], y=label[1])
    figure = _drawn(plot, levels, palette, 3.0, 3.0, columns)
    for ax in figure.axes if diagonal else []:
        ends = min(ax.get_xlim()[0], ax.get_ylim()[0]), max(ax.get_xlim()[1], ax.get_ylim()[1])
        ax.plot(ends, ends, color=COLOURS["grey"], lw=0.8, zorder=0)
        ax.set(xlim=ends, ylim=ends, aspect="equal")
    if name:  # the axes share their limits
        ax = figure.axes[0]
        ax.set_xlim(right=ax.get_xlim()[1] + 0.12 * np.ptp(ax.get_xlim()))
    return _legend(figure, _handles(levels, palette))


def stacked(
    table: pd.DataFrame,
    *,
    x: str = "value",
    y: str = "layer",
    colour: str = "kind",
    panel: str | None = None,
    label: str = "",
    colours: Mapping[str, str] | Sequence[str] = SERIES,
    columns: int = 3,
) -> Figure:
    """Bars divided into parts that sum to 100 %, with the number in each part that has room for it.

    Args:
        table: from :meth:`bertology_utils.results.Results.table`.
        x: column of the percentages.
        y: column that tells bars apart, from top to bottom, such as layers (notebook 4) or tasks
            (Fig 2).
        colour: column that tells parts apart, from left to right.
        panel: column that tells panels apart.
        label: of the horizontal axis, with the unit.
        colours: by value of ``colour``, or one after the other, such as :data:`FLOW_COLOURS`.
        columns: panels in a row.
    """
    if table.empty:
        return _nothing()
    table, levels, palette = _prepared(table, y, colour, panel, colours)
    table = table.sort_values("_colour", key=lambda names: names.map(levels["_colour"].index))
    before = table.groupby([y, "_panel"], observed=True)[x].cumsum() - table[x]
    table = table.assign(
        _centre=before + table[x] / 2, _text=[f"{one:.0f}" for one in table[x].fillna(0)]
    )
    dark = table._colour.map(lambda one: np.dot(to_rgb(palette[one]), (0.299, 0.587, 0.114)) < 0.55)
    more: dict[str, Any] = {"orient": "y", "legend": False}
    plot = so.Plot(table, x=x, y=y, color="_colour")
    plot = plot.add(so.Bar(width=0.86, edgewidth=0, alpha=1), so.Stack(), **more)
    for those, ink in ((dark, "white"), (~dark, "black")):
        inside = table[those & (table[x] >= 5.5)]
        texts = so.Text(color=ink, fontsize=7)
        plot = plot.add(texts, data=inside, x="_centre", text="_text", **more)
    plot = plot.scale(y=so.Nominal(order=levels[y])).limit(x=(0, 100))
    plot = plot.label(x=label, y="" if y == "task" else y)
    figure = _drawn(plot, levels, palette, 3.6, 0.27 * len(levels[y]) + 0.9, columns)
    for ax in figure.axes:
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    return _legend(figure, {one: Patch(color=palette[one]) for one in levels["_colour"]})


def _prepared(
    table: pd.DataFrame,
    place: str,
    colour: str | None,
    panel: str | None,
    colours: Mapping[str, str] | Sequence[str],
    numbers: bool = False,
) -> tuple[pd.DataFrame, dict[str, list[str]], dict[str, str]]:
    """The table with columns of text, "_colour" and "_panel" among them, the order of their values, and a colour for each."""
    columns = {"_colour": colour, "_panel": panel} | ({} if numbers else {place: place})
    table, levels = table.reset_index(drop=True), {}
    for new, column in columns.items():
        values = table[column] if column else pd.Series("", index=table.index)
        there = values.dropna().unique()
        if isinstance(values.dtype, pd.CategoricalDtype):
            there = [one for one in values.cat.categories if one in set(there)]
        table[new], levels[new] = values.astype(str), [str(one) for one in there]
    if isinstance(colours, Mapping):
        levels["_colour"] = [one for one in colours if one in levels["_colour"]]
        table = table[table._colour.isin(levels["_colour"])].copy()
    else:
        colours = dict(zip(levels["_colour"], colours, strict=False))
    return table, levels, dict(colours)


def _limits(values: Iterable[Sequence[float]], limits: Limits) -> tuple[float, float]:
    """The ends of an axis, by default with a twentieth of room."""
    everything = np.concatenate([np.asarray(one, dtype=float) for one in values])
    low, high = np.nanmin(everything), np.nanmax(everything)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    first, last = limits
    return low - room if first is None else first, high + room if last is None else last


def _drawn(
    plot: so.Plot,
    levels: Mapping[str, Sequence[str]],
    palette: Mapping[str, str],
    width: float,
    height: float,
    columns: int,
    marks: Mapping[str, str] | None = None,
) -> Figure:
    """The plot in a figure with a panel for each value of "_panel", each of at most this width and of this height in inches."""
    panels = levels["_panel"]
    across = min(columns, len(panels))
    rows = -(-len(panels) // across)
    size = min(WIDEST, max(6.2, width * across)), height * rows + 0.3
    figure = plt.figure(figsize=size)
    if panels != [""]:
        plot = plot.facet("_panel", order=panels, wrap=across)
    order, shapes = levels["_colour"], _markers(levels, marks)
    plot = plot.scale(
        color=so.Nominal(dict(palette), order=order), marker=so.Nominal(shapes, order=order)
    )
    plot.on(figure).plot()
    for ax in figure.axes:
        ax.title.set_fontsize(9)
    return figure


def _markers(
    levels: Mapping[str, Sequence[str]], marks: Mapping[str, str] | None = None
) -> dict[str, str]:
    """A marker for each series, for those who do not see the colours."""
    return dict(zip(levels["_colour"], MARKERS, strict=False)) | dict(marks or {})


def _handles(
    levels: Mapping[str, Sequence[str]],
    palette: Mapping[str, str],
    line: str = "",
    marks: Mapping[str, str] | None = None,
) -> dict[str, Line2D]:
    """A sample of every series for the legend; none of a single one without a name."""
    markers = _markers(levels, marks)
    return {
        one: Line2D([], [], ls=line, marker=markers[one], ms=5, color=palette[one])
        for one in levels["_colour"]
        if one
    }


def _legend(figure: Figure, handles: Mapping[str, Artist]) -> Figure:
    if handles:
        characters = sum(len(name) + 6 for name in handles)  # with a sample and spaces
        rows = math.ceil(characters / (11 * figure.get_figwidth()))
        ncols = math.ceil(len(handles) / rows)
        figure.legend(
            list(handles.values()), list(handles), loc="outside upper center", ncols=ncols
        )
    return figure


def _nothing() -> Figure:
    """A figure that says that a run has no such numbers."""
    figure, ax = plt.subplots(figsize=(6.2, 1.0))
    ax.text(0.5, 0.5, "not measured in this run", ha="center", va="center", color=COLOURS["grey"])
    ax.set_axis_off()
    return figure
