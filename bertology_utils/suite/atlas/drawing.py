"""The atlas's three figures in Bokeh: heads as a grid, heads as a scatter, one head's map."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from bokeh.document import Document
from bokeh.embed import components
from bokeh.models import ColorBar, ColumnDataSource, CustomJS, FixedTicker, HoverTool, LinearColorMapper, PlainText, Range1d
from bokeh.plotting import figure
from bokeh.resources import Resources

from ...common import axis_numbers, to_people
from ...figures.style import COLOURS, MAP

UNMEASURED = "#d5d8dc"


def panels(catalogue: dict[str, Any], script: str) -> tuple[str, dict[str, str]]:
    """Bokeh's scripts, and the page's parts by name: "grid", "scatter" and "map" (their places), "drawing" (their content).

    Args:
        catalogue: what the script reads; see ``page._catalogue``.
        script: run when all is drawn, with the figures' sources and colours.
    """
    layers, heads, maps = catalogue["layers"], catalogue["heads"], catalogue["maps"]
    at = np.indices((layers, heads)).reshape(2, -1)
    nothing = np.zeros(layers * heads)
    source = ColumnDataSource(
        {"layer": to_people(at[0]), "head": to_people(at[1]), "x": nothing, "y": nothing, "x_text": [""] * len(nothing),
         "y_text": [""] * len(nothing)}
    )  # fmt: skip
    focus = ColumnDataSource({"layer": [], "head": []})
    cells = ColumnDataSource({"row": [], "column": [], "weight": [], "from": [], "to": []})
    colours = LinearColorMapper(palette=_sequential(), nan_color=UNMEASURED)
    drawn = {
        "grid": _grid(source, focus, colours, layers, heads),
        "scatter": _scatter(source),
        "map": _map(cells, maps["tokens"] if maps else []),
    }
    ready = CustomJS(
        args={"source": source, "focus": focus, "cells": cells, "colours": colours, "scatter": drawn["scatter"],
              "palettes": [_sequential(), _diverging()], "catalogue": json.dumps(catalogue)},
        code=script,
    )  # fmt: skip
    document = Document()
    for one in drawn.values():
        document.add_root(one)
    document.js_on_event("document_ready", ready)
    content, places = components(drawn)
    return Resources(mode="inline", components=["bokeh"]).render(), {**places, "drawing": content}


def _figure(label: str, **options: Any) -> figure:
    one = figure(sizing_mode="stretch_width", toolbar_location="above", active_drag=None, active_scroll=None, **options)
    one.toolbar.logo = None
    one.name = label
    one.axis.minor_tick_line_color = None
    one.grid.visible = False
    one.outline_line_color = None
    return one


def _hover(*tooltips: tuple[str, str]) -> HoverTool:
    return HoverTool(tooltips=list(tooltips))


def _grid(source: ColumnDataSource, focus: ColumnDataSource, colours: LinearColorMapper, layers: int, heads: int) -> figure:
    """Layer 1 at the top, head 1 at the left, as in the paper; where the keyboard is has a broken edge."""
    ranges = {"x_range": Range1d(0.5, heads + 0.5), "y_range": Range1d(layers + 0.5, 0.5)}
    one = _figure("grid", height=100 + 30 * layers, tools="tap", x_axis_label="head", y_axis_label="layer", **ranges)
    one.add_tools(_hover(("layer, head", "@layer, @head"), ("value", "@x_text")))
    fill = {"field": "x", "transform": colours}
    drawn = one.rect("head", "layer", 0.94, 0.94, source=source, fill_color=fill, line_color="#b9bec6", line_width=0.5)
    _mark_chosen(drawn, fill, COLOURS["orange"], 3.5)  # to be seen on the darkest cells
    one.rect("head", "layer", 0.9, 0.9, source=focus, fill_color=None, line_color="white", line_width=4)
    one.rect("head", "layer", 0.9, 0.9, source=focus, fill_color=None, line_color="black", line_width=2, line_dash=[5, 3])
    one.xaxis.ticker, one.yaxis.ticker = FixedTicker(ticks=axis_numbers(heads)), FixedTicker(ticks=axis_numbers(layers))
    one.add_layout(ColorBar(color_mapper=colours, height=10, padding=4, title=None), "below")
    return one


def _scatter(source: ColumnDataSource) -> figure:
    one = _figure("scatter", height=320, tools="tap,box_select,lasso_select,reset")
    one.add_tools(_hover(("layer, head", "@layer, @head"), ("across", "@x_text"), ("up", "@y_text")))
    drawn = one.scatter("x", "y", source=source, size=9, fill_color=COLOURS["blue"], fill_alpha=0.7, line_color="white")
    _mark_chosen(drawn, COLOURS["orange"], "black", 2)
    return one


def _mark_chosen(drawn: Any, fill: Any, edge: str, width: float) -> None:
    """Chosen heads have another edge; the others stay as they are."""
    drawn.selection_glyph = drawn.glyph.clone(fill_color=fill, fill_alpha=1, line_color=edge, line_width=width)
    drawn.nonselection_glyph = drawn.glyph.clone()


def _map(cells: ColumnDataSource, tokens: list[str]) -> figure:
    """Queries from top to bottom, keys from left to right, dark for more."""
    ends = len(tokens) + 0.5
    ranges = {"x_range": Range1d(0.5, ends), "y_range": Range1d(ends, 0.5)}
    one = _figure(
        "map", height=120 + 18 * len(tokens), tools="", x_axis_label="to token", y_axis_label="from token", **ranges
    )
    one.add_tools(_hover(("from", "@from"), ("to", "@to"), ("weight", "@weight{0.000}")))
    colours = LinearColorMapper(palette=_blend("#ffffff", COLOURS["blue"], "#12263a"), low=0, high=1)
    one.rect("column", "row", 1, 1, source=cells, fill_color={"field": "weight", "transform": colours}, line_color="#e4e6e9")
    for axis in (one.xaxis, one.yaxis):
        axis.ticker = FixedTicker(ticks=[to_people(place) for place in range(len(tokens))])
        # Plain: text between dollar signs would be mathematics, for which Bokeh fetches a script.
        axis.major_label_overrides = {to_people(place): PlainText(text=_short(token)) for place, token in enumerate(tokens)}
    one.xaxis.major_label_orientation = "vertical"
    return one


def _short(token: str) -> str:
    """A label leaves room for the map."""
    return token if len(token) <= 16 else f"{token[:15]}…"


def _sequential() -> list[str]:
    """The suite's palette: dark is more."""
    import seaborn
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in seaborn.color_palette(MAP, 255)]


def _diverging() -> list[str]:
    """Blue is less, white is nothing, red is more."""
    return _blend(COLOURS["blue"], "#ffffff", COLOURS["red"])


def _blend(*colours: str) -> list[str]:
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    blend = LinearSegmentedColormap.from_list("", colours, N=255)
    return [to_hex(blend(step)) for step in range(255)]
