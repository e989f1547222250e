"""Numbers with their intervals as dots, lines, scatters and stacked bars, drawn from one tidy table.

Of every function ``table`` is from :meth:`bertology_utils.results.Results.table`, ``colour`` and
``panel`` are columns that tell series and panels apart, ``colours`` are those of the series, by
value (other values are left out) or one after the other, ``label`` is of the axis of the numbers,
with the unit, and ``columns`` is how many panels stand in a row.
"""

import math
from collections.abc import Mapping, Sequence
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

MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # for those who do not see the colours
INK = "#1a1a1a"
SERIES = (*COLOURS.values(), "#7c5c8e", INK)
BORDER: dict[str, Any] = {"color": "black", "lw": 1.2, "ls": ":", "zorder": 0}
ZERO: dict[str, Any] = {"color": COLOURS["grey"], "lw": 0.8, "zorder": 0}
WIDEST = 10.0  # inches of a figure, the width of a page
Colours = Mapping[str, str] | Sequence[str]
Series = dict[str, tuple[str, str]]  # colour and marker of each, in their order


def dots(
    table: pd.DataFrame,
    *,
    y: str = "task",
    colour: str = "",
    panel: str = "",
    label: str = "",
    colours: Colours = SERIES,
    marks: Mapping[str, str] | None = None,
    limits: tuple[float | None, float | None] = (None, None),
    columns: int = 4,
) -> Figure:
    """A dot for each row of a table, with the interval from "low" to "high" if there is one.

    Zero is marked where numbers lie on both sides of it. Values and intervals that go on beyond
    ``limits`` end in an arrowhead, and a value is written beside its arrowhead.

    Args:
        table, colour, panel, label, colours, columns: see above.
        y: column that tells the rows of the figure apart.
        marks: columns of other numbers to compare with, one for each row and panel, each with a
            marker: ``{"the paper": "D"}``. They are black, and the legend has the columns' names.
        limits: ends of the axis; by default those of the dots, with some room for intervals.

    Raises:
        ValueError: several dots would stand in one place.
    """
    table, series, panels, rows = _prepared(table, colour, panel, colours, y)
    if table.empty:
        return _nothing()
    places = list(dict.fromkeys([y, colour, panel]))
    if table.duplicated(places).any():
        advice = "select one kind of them, or tell them apart by colour= or panel="
        raise ValueError(f"several numbers would stand in one place; {advice}")
    for one, marker in (marks or {}).items():
        others = table.drop_duplicates([y, panel]).dropna(subset=one)
        others = others.assign(**{"value": others[one].astype(float), colour: one})
        others[["low", "high"]] = np.nan
        table, series[one] = pd.concat([table, others], ignore_index=True), (INK, marker)
    for end in ("low", "high"):
        table[end] = table.get(end, table.value).fillna(table.value)

    reach = 0.5 * np.ptp(table.value)  # intervals much longer than the values lie apart are cut
    ends = np.concatenate([table.value, table.low, table.high])
    ends = ends.clip(table.value.min() - reach, table.value.max() + reach)
    low = ends.min() if limits[0] is None else limits[0]
    high = ends.max() if limits[1] is None else limits[1]
    shown = table.assign(_number=table.value.map("  {:.0f}  ".format).str.replace("-", "−"))
    shown[["value", "low", "high"]] = shown[["value", "low", "high"]].clip(low, high)
    near = shown[table.value.between(low, high)]
    layers: list[tuple[so.Mark, pd.DataFrame, dict[str, str]]] = [
        (so.Range(linewidth=1.3), near, {"xmin": "low", "xmax": "high"}),
        (so.Dot(pointsize=5), near, {}),
        (so.Dot(pointsize=5, marker="<"), shown[table.low < low].assign(value=low), {}),
        (so.Dot(pointsize=5, marker=">"), shown[table.high > high].assign(value=high), {}),
        (so.Text(fontsize=8, halign="left"), shown[table.value < low], {"text": "_number"}),
        (so.Text(fontsize=8, halign="right"), shown[table.value > high], {"text": "_number"}),
    ]
    plot = _plot(shown, colour, series, x="value", y=y)
    for mark, data, variables in layers:
        if len(data):  # "x" is named, or it would be that of the whole table
            variables = {"x": "value", **variables}
            dodge = so.Dodge(by=["color"])
            plot = plot.add(mark, dodge, data=data, orient="y", legend=False, **variables)
    room = 0.03 * (high - low or 1)
    plot = plot.limit(x=(low - room, high + room))
    plot = plot.scale(y=so.Nominal(order=rows)).label(x=label, y="" if y == "task" else y)
    height = 0.13 + max(0.13, 0.1 * len(series))
    figure = _figure(plot, panel, panels, columns, 3.4, height * len(rows) + 0.7)
    for ax in figure.axes:
        ax.tick_params(axis="y", which="both", length=0)
        ax.set_yticks(np.arange(len(rows) - 1) + 0.5, minor=True)  # borders of the rows
        ax.grid(axis="y", which="minor", color="#e6e8eb", lw=0.6)
        if low < 0 < high:
            ax.axvline(0, **ZERO)
    return _legend(figure, _handles(series))


def lines(
    table: pd.DataFrame,
    *,
    x: str = "layer",
    colour: str = "",
    panel: str = "",
    each: str = "",
    label: str = "",
    colours: Colours = SERIES,
    border: Mapping[str, float] | None = None,
    columns: int = 4,
    share: bool = True,
) -> Figure:
    """Lines of numbers by layer, or by another number, with a band from "low" to "high" if there is one.

    Several numbers at one place are averaged; with ``each`` a thin line stands for each of them.

    Args:
        table, colour, panel, label, colours, columns: see above.
        x: column of the layers, or of other numbers; the axis is called like it.
        each: column that tells apart what is averaged.
        border: where a claim begins to hold, by what the legend says of it.
        share: False where panels have axes of their own.
    """
    table, series, panels, _ = _prepared(table, colour, panel, colours)
    if table.empty:
        return _nothing()
    plot = _plot(table, colour, series, x=x, y="value").label(y=label).share(x=share, y=share)
    if each:
        plot = plot.add(so.Line(linewidth=0.8, alpha=0.45, marker=""), group=each, legend=False)
    elif "low" in table and table.low.notna().any():
        plot = plot.add(so.Band(alpha=0.16), so.Agg(), ymin="low", ymax="high", legend=False)
    plot = plot.add(so.Line(linewidth=1.8, pointsize=5), so.Agg(), legend=False)
    figure = _figure(plot, panel, panels, columns, 3.2, 2.6)
    for ax, one in zip(figure.axes, panels, strict=True):
        at = sorted(table.loc[table[panel] == one, x].unique())
        if len(at) <= 13:
            ax.set_xticks(at, [f"{number:g}" for number in at])
        if ax.get_ylim()[0] < 0 < ax.get_ylim()[1]:
            ax.axhline(0, **ZERO)
        for value in (border or {}).values():
            ax.axhline(value, **BORDER)
    handles = _handles(series, ls="-")
    if each:
        mean = Line2D([], [], color=next(iter(series.values()))[0], marker="o", ms=5)
        thin = Line2D([], [], color=COLOURS["grey"], lw=0.8)
        handles = {f"each {each}": thin} | (handles or {"their mean": mean})
    return _legend(figure, handles, border)


def scatter(table: pd.DataFrame, *, x: str, y: str, panel: str, name: str) -> Figure:
    """A dot for each row of a table, such as each head, at two of its numbers, on one scale; a line where they are equal.

    Args:
        table: with the two numbers as columns, such as
            ``table.pivot(index=["layer", "head"], columns="what", values="value").reset_index()``.
        x, y: these columns; the axes are called like them.
        panel: see above.
        name: column of names that are written beside their dots; empty for most.
    """
    table, series, panels, _ = _prepared(table, "", panel, SERIES)
    if table.empty:
        return _nothing()
    plot = _plot(table, "", series, x=x, y=y).add(so.Dots(pointsize=4), legend=False)
    text = so.Text(fontsize=7, halign="left", offset=4, color="black")
    plot = plot.add(text, data=table[table[name] != ""], text=name, legend=False)
    figure = _figure(plot, panel, panels, 4, 3.0, 3.0)
    ends = *figure.axes[0].get_xlim(), *figure.axes[0].get_ylim()
    low, high = min(ends), max(ends)
    for ax in figure.axes:
        ax.plot([low, high], [low, high], **ZERO)
        ax.set(xlim=(low, high + 0.12 * (high - low)), ylim=(low, high), aspect="equal")
    return figure


def stacked(
    table: pd.DataFrame,
    *,
    y: str = "layer",
    colour: str = "kind",
    panel: str = "",
    label: str = "",
    colours: Colours = SERIES,
) -> Figure:
    """Bars divided into parts that sum to 100 %, with the number in each part that has room for it.

    Args:
        table, colour, panel, label, colours: see above; parts stand from left to right.
        y: column that tells bars apart, from top to bottom, such as layers or tasks (Fig 2).
    """
    table, series, panels, rows = _prepared(table, colour, panel, colours, y)
    if table.empty:
        return _nothing()
    table = table.sort_values(colour, key=lambda values: values.map(list(series).index))
    end = table.groupby([*dict.fromkeys([y, panel])], observed=True).value.cumsum()
    table = table.assign(_centre=end - table.value / 2, _text=table.value.map("{:.0f}".format))
    colour_of = table[colour].map(lambda one: to_rgb(series[one][0]))
    dark = colour_of.map(lambda rgb: rgb @ np.array([0.299, 0.587, 0.114])) < 0.55
    options: dict[str, Any] = {"orient": "y", "legend": False}
    plot = _plot(table, colour, series, x="value", y=y)
    plot = plot.add(so.Bar(width=0.86, edgewidth=0, alpha=1), so.Stack(), **options)
    for ink, those in (("white", dark), ("black", ~dark)):
        wide, text = table[those & (table.value >= 5.5)], so.Text(color=ink, fontsize=7)
        plot = plot.add(text, data=wide, x="_centre", text="_text", **options)
    plot = plot.scale(y=so.Nominal(order=rows)).limit(x=(0, 100))
    plot = plot.label(x=label, y="" if y == "task" else y)
    figure = _figure(plot, panel, panels, 3, 3.6, 0.27 * len(rows) + 0.9)
    for ax in figure.axes:
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    return _legend(figure, {one: Patch(color=look[0]) for one, look in series.items()})


def _prepared(
    table: pd.DataFrame, colour: str, panel: str, colours: Colours, y: str = ""
) -> tuple[pd.DataFrame, Series, list[str], list[str]]:
    """The table with names as text, its series, panels and rows; a column "" stands for the one that has no name.

    They stand in the order of a column's categories, else of the table.
    """
    table, orders = table.reset_index(drop=True).assign(**{"": ""}), {}
    for column in (colour, panel, y):
        values, there = table[column], list(table[column].dropna().unique())
        if isinstance(values.dtype, pd.CategoricalDtype):
            there.sort(key=list(values.cat.categories).index)
        if column not in orders:
            table[column], orders[column] = values.astype(str), [str(one) for one in there]
    named = colours if isinstance(colours, Mapping) else zip(orders[colour], colours, strict=False)
    known = {str(one): of for one, of in dict(named).items() if str(one) in orders[colour]}
    series = {one: (of, at) for (one, of), at in zip(known.items(), MARKERS, strict=False)}
    table = table[table[colour].isin(list(series))].reset_index(drop=True)
    return table, series, orders[panel], orders[y]


def _plot(table: pd.DataFrame, colour: str, series: Series, **variables: str) -> so.Plot:
    """A plot without layers, with the colour and the marker of each series."""
    order = list(series)
    colours = so.Nominal({one: look[0] for one, look in series.items()}, order=order)
    markers = so.Nominal({one: look[1] for one, look in series.items()}, order=order)
    plot = so.Plot(table, color=colour, marker=colour, **variables)
    return plot.scale(color=colours, marker=markers)


def _figure(
    plot: so.Plot, panel: str, panels: list[str], columns: int, width: float, height: float
) -> Figure:
    """The plot as a figure, each panel at most so wide and just so high, in inches."""
    across = min(columns, len(panels))
    size = min(WIDEST, max(6.2, width * across)), height * math.ceil(len(panels) / across) + 0.3
    figure = plt.figure(figsize=size)
    if panel:
        plot = plot.facet(panel, order=panels, wrap=across)
    plot.on(figure).plot()
    for ax in figure.axes:
        ax.title.set_fontsize(9)
    return figure


def _handles(series: Series, ls: str = "") -> dict[str, Line2D]:
    """A sample of every series; none of a single one without a name."""
    return {
        one: Line2D([], [], ls=ls, marker=marker, ms=5, color=colour)
        for one, (colour, marker) in series.items()
        if one != ""
    }


def _legend(
    figure: Figure, handles: Mapping[str, Artist], border: Mapping[str, float] | None = None
) -> Figure:
    handles = dict(handles) | {one: Line2D([], [], **BORDER) for one in border or {}}
    if handles:
        characters = sum(len(name) + 6 for name in handles)  # with a sample and spaces
        rows = math.ceil(characters / (11 * figure.get_figwidth()))
        ncols, names = math.ceil(len(handles) / rows), list(handles)
        figure.legend([*handles.values()], names, loc="outside upper center", ncols=ncols)
    return figure


def _nothing() -> Figure:
    """A figure that says that a run has no such numbers."""
    figure, ax = plt.subplots(figsize=(6.2, 1.0))
    ax.text(0.5, 0.5, "not measured in this run", ha="center", va="center", color=COLOURS["grey"])
    ax.set_axis_off()
    return figure
