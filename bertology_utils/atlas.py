"""The atlas of heads: one page, without a server, on which every head's numbers and maps are looked up.

Bokeh draws and links the pictures. All show one table of heads, so that a head chosen in one is
chosen in all; the page's own script only puts another measure into that table, and the chosen
head's numbers into another.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .cache import write_atomically
from .common import axis_numbers, head_name, one_based
from .plots.style import COLOURS, MAP
from .results import LABELS, read_results, text_of, title_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Subjects, objects, pronouns and a negation.
SENTENCE = "She gave him the book, but he did not read it."
EDGE, UNMEASURED = "#b9bec6", "#d5d8dc"
PARTS = ("value", "low", "high")
_WIDE: dict[str, Any] = {"sizing_mode": "stretch_width"}
# By (topic, name): the numbers of all heads, as "value", "low" and "high" of shape (layers, heads),
# and their "unit".
Measures = Mapping[tuple[str, str], Mapping[str, Any]]
# Run where a list is changed or a head is chosen. Texts reach the page as data of Bokeh's, never as
# HTML.
_SCRIPT = """\
const lists = { x: list_x, y: list_y, head: list_head }
const parts = ["x", "y"].map((axis) => catalogue[lists[axis].value])
for (const [place, axis] of ["x", "y"].entries()) {
  heads.data[axis] = parts[place].values.map((value) => value ?? NaN)
  heads.data[axis + "_text"] = parts[place].texts
}
const measured = parts[0].values.filter((value) => value != null)
const reach = Math.max(...measured.map(Math.abs), 1e-9)
const signed = Math.min(...measured) < 0 && Math.max(...measured) > 0
colours.palette = palettes[signed ? 1 : 0]
colours.low = signed ? -reach : Math.min(...measured)
colours.high = signed ? reach : Math.max(...measured, colours.low + 1e-9)
const wanted = Number(lists.head.value)
if (cb_obj === lists.head && wanted !== heads.selected.indices[0]) heads.selected.indices = [wanted]
const at = heads.selected.indices[0] ?? 0
lists.head.value = String(at)
const of_topic = catalogue.filter((one) => one.topic === parts[0].topic)
card.data = { name: of_topic.map((one) => one.name), value: of_topic.map((one) => one.texts[at]) }
if (maps) {
  const size = maps.tokens.length
  cells.data.weight = maps.weights.slice(at * size * size, (at + 1) * size * size)
  cells.change.emit()
}
heads.change.emit()
"""
_PAGE = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body>{body}</body></html>\n'


@dataclass(frozen=True)
class ExampleMaps:
    """One sentence, or one pair, as all heads see it.

    Attributes:
        text: the sentence; of a pair both.
        model: whose heads, as people read it.
        tokens: its wordpieces.
        weights: shape (layers, heads, tokens, tokens); rows sum to 1.
    """

    text: str
    model: str
    tokens: list[str]
    weights: np.ndarray


@dataclass(frozen=True)
class Page:
    """A page that needs no server and no network.

    Attributes:
        body: its content, to stand in another page.
        title: of the page, as plain text.
    """

    body: str
    title: str

    @property
    def html(self) -> str:
        """The whole page."""
        return _PAGE.format(title=html.escape(self.title), body=self.body)

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, whole or not at all."""
        write_atomically(Path(path), self.html.encode())
        return Path(path)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:1100px;border:0"></iframe>'


def example_maps(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: str | tuple[str, str] = SENTENCE,
    name: str = "the model",
) -> ExampleMaps:
    """Every head's attention map of one sentence, or of a pair.

    Args:
        model: encoder or classifier in evaluation mode.
        tokenizer: its own.
        text: a sentence, or a pair; up to about 30 wordpieces stay legible.
        name: of the model, as people read it.

    Raises:
        ValueError, TypeError: see :func:`bertology_utils.attention_maps` and
            :func:`bertology_utils.batches_of`.
    """
    import torch

    from .attention import attention_maps
    from .attention.batches import batches_of

    texts: list[Any] = [text]
    (batch,) = batches_of(texts, tokenizer)
    batch = batch.to(next(model.parameters()).device)
    with torch.inference_mode():
        maps = attention_maps(model, batch)
    tokens = tokenizer.convert_ids_to_tokens(batch.inputs["input_ids"][0].tolist())
    shown = text if isinstance(text, str) else " / ".join(text)
    return ExampleMaps(shown, name, tokens, np.stack([layer[0].cpu().numpy() for layer in maps]))


def measures_of(path: str | Path) -> Measures:
    """All numbers that a run has for single heads.

    Args:
        path: a file of results, or a folder with several below it, such as ``results/glue``.

    Raises:
        ValueError: no such file, one that cannot be read, or nothing per head in any; says what to
            run.
    """
    path, measures = Path(path), {}
    for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
        run = read_results(file)
        for entry in run.entries:
            axes = entry.get("over", [])
            if not {"layer", "head"} <= set(axes) <= {"layer", "head", "kind"}:
                continue
            labels = [title_of(label, entry[label]) for label in LABELS if label in entry]
            order = [axes.index(axis) for axis in ("kind", "layer", "head") if axis in axes]
            parts = {
                part: np.asarray(entry[part], dtype=float).transpose(order)
                for part in PARTS
                if part in entry
            }
            for place, kind in enumerate(entry.get("kinds", [""])):
                name = ", ".join(filter(None, [entry["what"], kind, *labels]))
                own = {part: of[place] if kind else of for part, of in parts.items()}
                measures[run.content["notebook"], name] = own | {"unit": entry.get("unit", "")}
    if not measures:
        run_one = "run a notebook of this version: python -m bertology_utils run --only 3"
        raise ValueError(f"nothing was measured for single heads in {path.name}; {run_one}")
    return measures


def head_atlas(
    measures: str | Path | Mapping[str, Any],
    maps: ExampleMaps | None = None,
    title: str = "Atlas of heads",
) -> Page:
    """A page on which heads are coloured by any measure, compared by two, and looked up one by one.

    In a notebook the page shows itself; ``save`` writes it to a file.

    Args:
        measures: a file of results, or a folder with several below it; or name → values of shape
            (layers, heads), or (values, low, high) with the ends of 95 % intervals.
        maps: each head's map of a sentence or pair, from :func:`example_maps`.
        title: of the page.

    Raises:
        ValueError: no measure, shapes that differ, or no results.
        ModuleNotFoundError: Bokeh is not installed.
    """
    if isinstance(measures, (str, Path)):
        return Page(_draw(measures_of(measures), maps), title)
    named = {}
    for name, values in measures.items():
        parts = values if isinstance(values, tuple) else (values,)
        if len(parts) not in (1, 3):
            raise ValueError(
                f"{name!r}: give values or (values, low, high), not {len(parts)} parts"
            )
        named["measures", name] = dict(zip(PARTS, parts, strict=False))
    return Page(_draw(named, maps), title)


def _check_shapes(measures: Measures, maps: ExampleMaps | None) -> tuple[int, int]:
    """Layers and heads, which all measures and maps must have."""
    shapes = {
        np.shape(parts[part]) for parts in measures.values() for part in PARTS if part in parts
    }
    if len(shapes) != 1 or len(next(iter(shapes))) != 2:
        raise ValueError(
            f"measures need values of one shape, (layers, heads), not {shapes or None}"
        )
    ((layers, heads),) = shapes
    wanted = (layers, heads, *2 * (len(maps.tokens),)) if maps else ()
    if maps and maps.weights.shape != wanted:
        raise ValueError(f"the maps have shape {maps.weights.shape}; these measures need {wanted}")
    return layers, heads


def _texts(parts: Mapping[str, Any]) -> list[str]:
    """Every head's number with its interval, as people read it."""
    flat = {part: _numbers(parts[part]) for part in PARTS if part in parts}
    rows = (dict(zip(flat, one, strict=True)) for one in zip(*flat.values(), strict=True))
    return [text_of(row | {"unit": parts.get("unit", "")}) for row in rows]


def _draw(measures: Measures, maps: ExampleMaps | None) -> str:
    """The page's body: Bokeh's scripts, lists, pictures and card."""
    from bokeh import document, embed, layouts, models, resources

    layers, count = _check_shapes(measures, maps)
    places = [(layer, head) for layer in range(layers) for head in range(count)]
    columns = {name: [0.0] * len(places) for name in ("x", "y", "x_text", "y_text")}  # to fill
    columns["layer"] = [one_based(layer) for layer, _ in places]
    columns["head"] = [one_based(head) for _, head in places]
    heads = models.ColumnDataSource(columns)
    heads.selected.indices = [0]
    card = models.ColumnDataSource({"name": [], "value": []})
    colours = models.LinearColorMapper(palette=_palette(MAP), nan_color=UNMEASURED)
    tokens = axis_numbers(len(maps.tokens) if maps else 0)
    pairs = {"row": np.repeat(tokens, len(tokens)), "column": np.tile(tokens, len(tokens))}
    cells = models.ColumnDataSource(pairs | {"weight": np.zeros(len(tokens) ** 2)})

    by_topic: dict[str, list[tuple[str, str]]] = {}
    for number, (topic, name) in enumerate(measures):
        by_topic.setdefault(_plain(topic), []).append((str(number), _plain(name)))
    names = [(str(index), head_name(*place)) for index, place in enumerate(places)]
    second = str(min(1, len(measures) - 1))
    make_list = partial(models.Select, max_width=350)
    lists = {
        "x": make_list(title="Colour, and across", options=by_topic, value="0"),
        "y": make_list(title="Up, in the second picture", options=by_topic, value=second),
        "head": make_list(title="Head (layer, head)", options=names, value="0"),
    }
    catalogue = [
        {"topic": topic, "name": _plain(name)}
        | {"values": _numbers(parts["value"]), "texts": _texts(parts)}
        for (topic, name), parts in measures.items()
    ]
    shown = maps and {"tokens": maps.tokens, "weights": _numbers(np.round(maps.weights, 3))}
    data = f"const catalogue = JSON.parse({json.dumps(json.dumps(catalogue))}), maps = JSON.parse({json.dumps(json.dumps(shown))})\n"
    args = {"heads": heads, "card": card, "cells": cells, "colours": colours}
    args |= {f"list_{name}": one for name, one in lists.items()}
    args["palettes"] = [_palette(MAP), _palette("RdBu_r")]
    choose = models.CustomJS(args=args, code=data.replace("</", "<\\/") + _SCRIPT)
    for one in lists.values():
        one.js_on_change("value", choose)
    heads.selected.js_on_change("indices", choose)

    titles = {"name": "measure", "value": "of the head"}
    table = [models.TableColumn(field=field, title=title) for field, title in titles.items()]
    layout = layouts.column(
        layouts.row(*lists.values(), **_WIDE),
        layouts.row(_grid(heads, colours, layers, count), _scatter(heads), **_WIDE),
        *([_map(cells, maps)] if maps else []),
        models.DataTable(source=card, columns=table, name="card", **_WIDE),
        **_WIDE,
    )
    page = document.Document()
    page.add_root(layout)
    page.js_on_event("document_ready", choose)
    script, place = embed.components(layout)
    parts = ["bokeh", "bokeh-widgets", "bokeh-tables"]
    return f"{resources.Resources(mode='inline', components=parts).render()}\n{place}\n{script}\n"


def _figure(name: str, tools: str, rows: int = 0, columns: int = 0, **options: Any) -> Any:
    """An empty figure; with rows and columns these are counted from 1 at the upper left."""
    from bokeh import models, plotting

    if rows:
        options["x_range"] = models.Range1d(0.5, columns + 0.5)
        options["y_range"] = models.Range1d(rows + 0.5, 0.5)
    one = plotting.figure(name=name, tools=tools, toolbar_location="above", **_WIDE, **options)
    one.toolbar.logo, one.grid.visible, one.outline_line_color = None, False, None
    if rows:
        one.xaxis.ticker, one.yaxis.ticker = axis_numbers(columns), axis_numbers(rows)
    return one


def _grid(heads: Any, colours: Any, layers: int, count: int) -> Any:
    """Layer 1 at the top, head 1 at the left, as in the paper; chosen heads have another edge."""
    from bokeh import models

    tips = [("layer, head", "@layer, @head"), ("value", "@x_text")]
    one = _figure("grid", "tap", layers, count, height=130 + 30 * layers, tooltips=tips)
    one.xaxis.axis_label, one.yaxis.axis_label = "head", "layer"
    style: dict[str, Any] = {"line_color": EDGE, "selection_line_color": COLOURS["orange"]}
    style |= {"selection_line_width": 4, "nonselection_fill_alpha": 1}
    colour = {"field": "x", "transform": colours}
    one.rect("head", "layer", 0.92, 0.92, source=heads, fill_color=colour, **style)
    one.add_layout(models.ColorBar(color_mapper=colours, height=10), "below")
    return one


def _scatter(heads: Any) -> Any:
    """A dot for each head: the colour's measure across, the other one up."""
    tips = [("layer, head", "@layer, @head"), ("across", "@x_text"), ("up", "@y_text")]
    one = _figure("scatter", "tap,box_select,lasso_select,reset", height=320, tooltips=tips)
    style: dict[str, Any] = {"fill_color": COLOURS["blue"], "line_color": "white", "size": 9}
    style |= {"selection_fill_color": COLOURS["orange"], "nonselection_fill_alpha": 0.6}
    one.scatter("x", "y", source=heads, **style)
    return one


def _map(cells: Any, maps: ExampleMaps) -> Any:
    """The chosen head's map: queries from top to bottom, keys from left to right, dark for more."""
    from bokeh import models

    size, tips = len(maps.tokens), [("weight", "@weight{0.000}")]
    title = _plain(f"The head's attention map in {maps.model}: “{maps.text}”")
    one = _figure("map", "", size, size, height=150 + 18 * size, tooltips=tips, title=title)
    one.xaxis.axis_label, one.yaxis.axis_label = "to token", "from token"
    blues = models.LinearColorMapper(palette=_palette("Blues"), low=0, high=1)
    colour = {"field": "weight", "transform": blues}
    one.rect("column", "row", 1, 1, source=cells, fill_color=colour, line_color="#e4e6e9")
    for axis in (one.xaxis, one.yaxis):
        # Plain: text between dollar signs would be mathematics, for which Bokeh fetches a script.
        axis.major_label_overrides = {
            one_based(place): models.PlainText(text=token[:16])
            for place, token in enumerate(maps.tokens)
        }
    one.xaxis.major_label_orientation = "vertical"
    return one


def _plain(text: str) -> str:
    """A text in which Bokeh finds no mathematics: a sign that is not seen keeps its signs apart."""
    for sign in ("$$", "\\(", "\\["):
        text = text.replace(sign, f"{sign[0]}\u2060{sign[1]}")
    return text


def _palette(name: str) -> list[str]:
    import seaborn

    return seaborn.color_palette(name, 255).as_hex()


def _numbers(values: Any) -> list[float | None]:
    """Flat, rounded to significant digits; None for NaN and infinity."""
    flat = np.ravel(np.asarray(values, dtype=float)).tolist()
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in flat]
