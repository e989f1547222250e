"""The atlas of heads: one page, without a server, on which every head's numbers and maps are looked up.

Bokeh draws and links the pictures: all show one table of heads, so that a head chosen in one is
    chosen in all. The page's own script only puts another measure into that table, and the chosen
    head's numbers into another.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .cache import write_atomically
from .common import axis_numbers, head_name, one_based
from .glue import TITLES
from .plots.style import COLOURS, MAP
from .results import LABELS, RESULTS, Results, read_results, text_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SENTENCE = (
    "She gave him the book, but he did not read it."  # subjects, objects, pronouns, a negation
)
_UNMEASURED = "#d5d8dc"
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
const signed = parts[0].signed
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
class Measure:
    """One number per head.

    Attributes:
        name: what is measured, and of which task, state and training.
        values: shape (layers, heads); NaN where it was not measured.
        topic: heading under which it is found, such as a notebook.
        low: lower ends of the 95 % intervals, of the same shape; None without.
        high: their upper ends.
        unit: see :func:`bertology_utils.results.text_of`.
    """

    name: str
    values: np.ndarray
    topic: str = "measures"
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    unit: str = ""

    @property
    def signed(self) -> bool:
        """True if values fall on both sides of 0, which is white."""
        return bool(np.nanmin(self.values, initial=0) < 0 < np.nanmax(self.values, initial=0))

    def texts(self) -> list[str]:
        """Every head's number in words, with its interval."""
        parts = {"value": self.values, "low": self.low, "high": self.high}
        flat = {name: _numbers(part) for name, part in parts.items() if part is not None}
        return [
            text_of(dict(zip(flat, one, strict=True)) | {"unit": self.unit})
            for one in zip(*flat.values(), strict=True)
        ]


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
        text: a sentence of one's own, or a pair; up to about 30 wordpieces stay legible.
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
    return ExampleMaps(
        text if isinstance(text, str) else " / ".join(text),
        name,
        tokens,
        np.stack([layer[0].cpu().numpy() for layer in maps]),
    )


def measures_of(path: str | Path) -> list[Measure]:
    """The numbers per head of a run: all that are recorded over layers and heads.

    Args:
        path: a notebook's ``results.json``, or a folder with several below it.

    Raises:
        ValueError: no such file, one that cannot be read or is no notebook's, or nothing per head
            in any; says what to run.
    """
    path = Path(path)
    files = sorted(path.rglob(RESULTS)) if path.is_dir() else [path]
    measures: list[Measure] = []
    for file in files:  # what a page and its appendix both record stands once
        own = _per_head(read_results(file), file.parent.parent.name)
        known = {(one.name, one.values.tobytes()) for one in measures}
        measures += [one for one in own if (one.name, one.values.tobytes()) not in known]
    if not measures:
        run = "run a notebook of this version: python -m bertology_utils run --only 3"
        raise ValueError(f"nothing was measured for single heads in {path.name}; {run}")
    return measures


def _per_head(results: Results, run: str) -> Iterator[Measure]:
    """A measure for each entry over layers and heads, and for each kind where it is over kinds, too."""
    topic = (
        results.content["notebook"]
        if run in ("figures", "")
        else f"{results.content['notebook']}, {run}"
    )
    for entry in results.entries:
        over = entry.get("over", [])
        if not {"layer", "head"} <= set(over) <= {"layer", "head", "kind"}:
            continue
        labels = [
            TITLES.get(entry[name], str(entry[name]))
            for name in LABELS
            if name in entry and name != "training"
        ]
        labels += [f"training {entry['training']}"] if "training" in entry else []
        order = [over.index(axis) for axis in ("layer", "head", "kind") if axis in over]
        parts = {
            name: np.array(entry[name], dtype=float).transpose(order)
            for name in ("value", "low", "high")
            if name in entry
        }
        for place, kind in enumerate(entry.get("kinds", [None])):
            name = ", ".join([entry["what"], *([] if kind is None else [kind]), *labels])
            of_kind = (
                parts
                if kind is None
                else {part: array[..., place] for part, array in parts.items()}
            )
            yield Measure(
                name,
                of_kind["value"],
                topic,
                of_kind.get("low"),
                of_kind.get("high"),
                entry.get("unit", ""),
            )


def head_atlas(
    measures: str | Path | Mapping[str, Any] | Sequence[Measure],
    maps: ExampleMaps | None = None,
    title: str = "Atlas of heads",
) -> Page:
    """A page on which heads are coloured by any measure, compared by two, and looked up one by one.

    In a notebook the page shows itself; ``save`` writes it to a file.

    Args:
        measures: a notebook's ``results.json``, or a folder with several below it; or name → values
            of shape (layers, heads), or (values, low, high) with the ends of 95 % intervals; or
            :class:`Measure` s.
        maps: each head's map of a sentence or pair of one's own, from :func:`example_maps`.
        title: of the page.

    Raises:
        ValueError: no measure, shapes that differ, an interval without its end, two measures of one
            name, or no results.
        ModuleNotFoundError: Bokeh is not installed.
    """
    if isinstance(measures, (str, Path)):
        measures = measures_of(measures)
    elif isinstance(measures, Mapping):
        measures = [_named(name, values) for name, values in measures.items()]
    _check(measures, maps)
    return Page(_drawn(measures, maps), title)


def _named(name: str, values: Any) -> Measure:
    parts = values if isinstance(values, tuple) else (values,)
    if len(parts) not in (1, 3):
        raise ValueError(
            f"measure {name!r}: give values, or (values, low, high), not {len(parts)} parts"
        )
    given, *ends = (np.asarray(part, dtype=float) for part in parts)
    low, high = ends or (None, None)
    return Measure(name, given, low=low, high=high)


def _check(measures: Sequence[Measure], maps: ExampleMaps | None) -> None:
    """Raise ValueError unless all measures and maps have the same layers and heads."""
    if not measures:
        raise ValueError(
            "the atlas wants one measure at least: a name with values of shape (layers, heads)"
        )
    shape = np.shape(measures[0].values)
    for one in measures:
        for part in (one.values, one.low, one.high):
            if part is not None and (np.shape(part) != shape or len(shape) != 2):
                raise ValueError(
                    f"measure {one.name!r} has shape {np.shape(part)}; all want one shape, (layers, heads)"
                )
        if (one.low is None) != (one.high is None):
            raise ValueError(
                f"measure {one.name!r} has one end of its intervals; give both, or none"
            )
    names = [(one.topic, one.name) for one in measures]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two measures are called {twice[0][1]!r}; give each its own name")
    wanted = (*shape, len(maps.tokens), len(maps.tokens)) if maps else None
    if maps and maps.weights.shape != wanted:
        raise ValueError(
            f"the maps have shape {maps.weights.shape}; with these measures and tokens {wanted} is wanted"
        )


def _drawn(measures: Sequence[Measure], maps: ExampleMaps | None) -> str:
    """The page's body: Bokeh's scripts, lists, pictures and card."""
    from bokeh.document import Document
    from bokeh.embed import components
    from bokeh.layouts import column, row
    from bokeh.models import (
        ColumnDataSource,
        CustomJS,
        DataTable,
        LinearColorMapper,
        Select,
        TableColumn,
    )
    from bokeh.resources import Resources

    shape = measures[0].values.shape
    at = np.indices(shape).reshape(2, -1)
    blank = np.zeros(at.shape[1])  # until the script has run
    heads = ColumnDataSource(
        {
            "layer": one_based(at[0]),
            "head": one_based(at[1]),
            "x": blank,
            "y": blank,
            "x_text": blank,
            "y_text": blank,
        }
    )
    heads.selected.indices = [0]
    colours = LinearColorMapper(palette=_palette(MAP), nan_color=_UNMEASURED)
    size = len(maps.tokens) if maps else 0
    places = [one_based(place) for place in range(size)]
    cells = ColumnDataSource(
        {
            "row": np.repeat(places, size),
            "column": np.tile(places, size),
            "weight": np.zeros(size * size),
        }
    )
    card = ColumnDataSource({"name": [], "value": []})
    options: dict[str, list[tuple[str, str]]] = {}
    for number, one in enumerate(measures):
        options.setdefault(_plain(one.topic), []).append((str(number), _plain(one.name)))
    all_heads = [
        (str(index), head_name(*place))
        for index, place in enumerate(zip(*at.tolist(), strict=True))
    ]
    lists = {
        "x": Select(title="Colour, and across", options=options, value="0", max_width=350),
        "y": Select(
            title="Up, in the second picture",
            options=options,
            value=str(min(1, len(measures) - 1)),
            max_width=350,
        ),
        "head": Select(title="Head (layer, head)", options=all_heads, value="0", max_width=200),
    }
    catalogue = [
        {
            "name": _plain(one.name),
            "topic": one.topic,
            "values": _numbers(one.values),
            "texts": one.texts(),
            "signed": one.signed,
        }
        for one in measures
    ]
    shown = maps and {"tokens": maps.tokens, "weights": _numbers(np.round(maps.weights, 3))}
    args = {f"list_{name}": one for name, one in lists.items()} | {
        "heads": heads,
        "card": card,
        "cells": cells,
    }
    args |= {"colours": colours, "palettes": [_palette(MAP), _palette("RdBu_r")]}
    given = f"const catalogue = JSON.parse({json.dumps(json.dumps(catalogue))}), maps = JSON.parse({json.dumps(json.dumps(shown))})\n"
    choose = CustomJS(args=args, code=given.replace("</", "<\\/") + _SCRIPT)
    for one in lists.values():
        one.js_on_change("value", choose)
    heads.selected.js_on_change("indices", choose)
    table = [
        TableColumn(field="name", title="measure"),
        TableColumn(field="value", title="of the head"),
    ]
    pictures = row(_grid(heads, colours, shape), _scatter(heads), sizing_mode="stretch_width")
    below = [
        *([_map(cells, maps)] if maps else []),
        DataTable(source=card, columns=table, name="card", sizing_mode="stretch_width"),
    ]
    layout = column(
        row(*lists.values(), sizing_mode="stretch_width"),
        pictures,
        *below,
        sizing_mode="stretch_width",
    )
    document = Document()
    document.add_root(layout)
    document.js_on_event("document_ready", choose)
    script, place = components(layout)
    return f"{Resources(mode='inline', components=['bokeh', 'bokeh-widgets', 'bokeh-tables']).render()}\n{place}\n{script}\n"


def _figure(label: str, tools: str, **options: Any) -> Any:
    from bokeh.plotting import figure

    one = figure(sizing_mode="stretch_width", toolbar_location="above", tools=tools, **options)
    one.toolbar.logo, one.name, one.grid.visible, one.outline_line_color = None, label, False, None
    return one


def _grid(heads: Any, colours: Any, shape: Sequence[int]) -> Any:
    """Layer 1 at the top, head 1 at the left, as in the paper; chosen heads have another edge."""
    from bokeh.models import ColorBar, FixedTicker, Range1d

    layers, count = shape
    one = _figure(
        "grid",
        "tap",
        height=130 + 30 * layers,
        x_axis_label="head",
        y_axis_label="layer",
        x_range=Range1d(0.5, count + 0.5),
        y_range=Range1d(layers + 0.5, 0.5),
        tooltips=[("layer, head", "@layer, @head"), ("value", "@x_text")],
    )
    one.rect(
        "head",
        "layer",
        0.92,
        0.92,
        source=heads,
        fill_color={"field": "x", "transform": colours},
        line_color="#b9bec6",
        selection_line_color=COLOURS["orange"],
        selection_line_width=4,
        nonselection_fill_alpha=1,
    )
    one.xaxis.ticker, one.yaxis.ticker = (
        FixedTicker(ticks=axis_numbers(count)),
        FixedTicker(ticks=axis_numbers(layers)),
    )
    one.add_layout(ColorBar(color_mapper=colours, height=10), "below")
    return one


def _scatter(heads: Any) -> Any:
    """A dot for each head: the colour's measure across, the other one up."""
    one = _figure(
        "scatter",
        "tap,box_select,lasso_select,reset",
        height=320,
        tooltips=[("layer, head", "@layer, @head"), ("across", "@x_text"), ("up", "@y_text")],
    )
    one.scatter(
        "x",
        "y",
        source=heads,
        size=9,
        fill_color=COLOURS["blue"],
        line_color="white",
        selection_fill_color=COLOURS["orange"],
        nonselection_fill_alpha=0.6,
    )
    return one


def _map(cells: Any, maps: ExampleMaps) -> Any:
    """The chosen head's map: queries from top to bottom, keys from left to right, dark for more."""
    from bokeh.models import FixedTicker, LinearColorMapper, PlainText, Range1d

    ends = len(maps.tokens) + 0.5
    one = _figure(
        "map",
        "",
        height=150 + 18 * len(maps.tokens),
        x_axis_label="to token",
        y_axis_label="from token",
        title=_plain(f"The head's attention map in {maps.model}: “{maps.text}”"),
        x_range=Range1d(0.5, ends),
        y_range=Range1d(ends, 0.5),
        tooltips=[("weight", "@weight{0.000}")],
    )
    colours = LinearColorMapper(palette=_palette("Blues"), low=0, high=1)
    one.rect(
        "column",
        "row",
        1,
        1,
        source=cells,
        fill_color={"field": "weight", "transform": colours},
        line_color="#e4e6e9",
    )
    for axis in (one.xaxis, one.yaxis):
        axis.ticker = FixedTicker(ticks=[one_based(place) for place in range(len(maps.tokens))])
        # Plain: text between dollar signs would be mathematics, for which Bokeh fetches a script.
        axis.major_label_overrides = {
            one_based(place): PlainText(text=token[:16]) for place, token in enumerate(maps.tokens)
        }
    one.xaxis.major_label_orientation = "vertical"
    return one


def _plain(text: str) -> str:
    """A text in which Bokeh finds no mathematics: its signs are kept apart by one that is not seen."""
    for sign in ("$$", "\\(", "\\["):
        text = text.replace(sign, f"{sign[0]}\u2060{sign[1]}")
    return text


def _palette(name: str) -> list[str]:
    import seaborn
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in seaborn.color_palette(name, 255)]


def _numbers(values: np.ndarray) -> list[float | None]:
    """Flat, rounded to significant digits; None for NaN and infinity."""
    return [
        float(f"{value:.4g}") if np.isfinite(value) else None for value in np.ravel(values).tolist()
    ]
