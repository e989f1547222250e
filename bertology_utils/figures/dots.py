"""Estimates beside each other, as dots with intervals: the paper's, those on real data, this run's."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import SOURCE_COLOURS, SOURCE_MARKERS, panel_grid


class _Estimate(Protocol):
    @property
    def value(self) -> float: ...
    @property
    def interval(self) -> tuple[float, float]: ...


Dot = float | tuple[float, float, float] | Mapping[str, float] | _Estimate

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
) -> None:
    """A row for each title, a dot with its interval for each source.

    Args:
        ax: matplotlib axes.
        rows: by title from top to bottom, and then by source: an estimate, its summary in a results file ("value",
            "low", "high"), those three, or a number that has no interval, drawn hollow.
        label: of the axis, with the unit.
        scale: factor of every number, such as 100 for percent.
        colours: by source.
        border: where a claim would begin to hold, drawn as an orange line.
        markers: by source, matplotlib's names of shapes.
    """
    sources = [name for name in colours if any(name in row for row in rows.values())]
    for at, row in enumerate(rows.values()):
        for place, source in enumerate(sources):
            if source in row:
                value, low, high = (scale * part for part in _parts(row[source]))
                height = at + 0.22 * (place - (len(sources) - 1) / 2)
                ax.plot([low, high], [height] * 2, color=colours[source], lw=1.3, gid=_INTERVAL)
                inside = "white" if low == high else colours[source]
                ax.plot(value, height, markers.get(source, "o"), color=colours[source], mfc=inside, ms=5)
    for source in sources:
        ax.plot([], [], markers.get(source, "o"), color=colours[source], ms=5, label=source)
    if border is not None:
        ax.axvline(scale * border, color="#d9822b", lw=1.5, zorder=0)
    ax.set(xlabel=label, ylim=(len(rows) - 0.5, -0.5))
    ax.set_yticks(range(len(rows)), list(rows))


def dot_panels(
    panels: Mapping[str, Mapping[str, Mapping[str, Dot]]],
    label: str,
    scale: float = 1.0,
    colours: Mapping[str, str] = SOURCE_COLOURS,
    border: float | None = None,
    columns: int = 4,
    markers: Mapping[str, str] = SOURCE_MARKERS,
) -> Figure:
    """Several :func:`dots` under one legend, on one scale.

    Args:
        panels: by title, each as ``rows`` of :func:`dots`.
        label, scale, colours, border, markers: as there.
        columns: panels in a row.

    Returns:
        The figure.
    """
    tallest = max(map(len, panels.values()))
    width = 6.2 if len(panels) == 1 else 3.4
    figure, axes = panel_grid(len(panels), width, 0.36 * tallest + 1.2, columns=columns)
    for ax, (title, rows) in zip(axes, panels.items(), strict=True):
        dots(ax, rows, label, scale, colours, border, markers)
        ax.set_title(title)
    limits = [ax.get_xlim() for ax in axes]
    handles: dict[str, Artist] = {}
    for ax in axes:
        ax.set_xlim(min(low for low, _ in limits), max(high for _, high in limits))
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=len(handles))
    return figure


def _parts(of: Dot) -> tuple[float, float, float]:
    """Value and the two ends of its interval; of a plain number thrice the number."""
    if isinstance(of, (int, float)):
        return of, of, of
    if isinstance(of, Mapping):
        return of["value"], of["low"], of["high"]
    if isinstance(of, tuple):
        return of
    return of.value, *of.interval
