"""The atlas as a page: Bokeh draws, ``atlas.js`` fills the lists and the card; every script stands inside the page."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...common.cache import write_atomically
from .example import ExampleMaps
from .measures import Measure, measures_of

_HERE = Path(__file__).parent
_BODY = """\
<style>{style}</style>
{scripts}
<div class="atlas" id="atlas">
{missing}
<div class="atlas-choices">
{choices}
<fieldset><legend>Card</legend><label>Head (layer, head) <select id="atlas-head"></select></label></fieldset>
</div>
<div class="atlas-panels">
<figure><figcaption id="atlas-x-title"></figcaption>
<div id="atlas-keys" tabindex="0" role="application" aria-roledescription="grid of heads" aria-describedby="atlas-at"
 aria-label="Heads: arrow keys move from head to head, Enter opens a head's card">{grid}</div>
<p id="atlas-at" class="atlas-note" aria-live="polite">With the keyboard: arrow keys, then Enter.</p></figure>
<section id="atlas-card" aria-live="polite" aria-label="card of the chosen head"></section>
<figure{no_maps}><figcaption id="atlas-map-title"></figcaption>{map}</figure>
<figure><figcaption id="atlas-y-title"></figcaption>{scatter}</figure>
</div>
<details><summary>The colours as a table</summary>
<div class="atlas-wide" tabindex="0" role="region" aria-label="the colours as a table"><table id="atlas-table"></table></div>
</details>
</div>
{drawing}
"""
_CHOICES = """\
<fieldset><legend>{title}</legend>
<label>Measure <select id="atlas-{axis}"></select></label>
<label>Data <select id="atlas-{axis}-data"></select></label>
<label>Task <select id="atlas-{axis}-task"></select></label>
</fieldset>
"""
_PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title></head><body style="margin:1rem auto;max-width:75rem;padding:0 1rem">
<h1 style="font:bold 1.5rem system-ui,sans-serif;overflow-wrap:anywhere">{title}</h1>
{body}</body></html>
"""


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


def head_atlas(
    measures: str | Path | Mapping[str, Any] | Sequence[Measure],
    maps: ExampleMaps | None = None,
    title: str = "Atlas of heads",
    missing: Sequence[str] = (),
    first: Sequence[str] = (),
) -> Page:
    """A page on which heads are coloured by any measure, compared by two, and looked up one by one.

    In a notebook the page shows itself; ``save`` writes it to a file.

    Args:
        measures: a notebook's ``results.json``, or a folder with several below it; or name → values of shape
            (layers, heads), or (values, low, high) with the ends of 95 % intervals; or :class:`Measure` s.
        maps: each head's map of one sentence, from :func:`bertology_utils.suite.atlas.example_maps`.
        title: of the page.
        missing: what is not shown and how to make it, a line each; stands at the top. Between backticks it is code.
        first: names of the measures that colour and scatter begin with; those that are not there are passed over.

    Raises:
        ValueError: no measure, shapes that differ, an interval without its end, two measures of one name, or no results.
        ModuleNotFoundError: Bokeh is not installed.
    """
    if isinstance(measures, (str, Path)):
        measures = measures_of(measures)
    elif isinstance(measures, Mapping):
        measures = [_named(name, values) for name, values in measures.items()]
    if not measures and missing:
        return Page(f'<style>{_style()}</style><div class="atlas">{_missing(missing, " open")}</div>', title)
    layers, heads = _checked(measures, maps)
    try:
        from . import drawing
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"the atlas is drawn by Bokeh; install it with: pip install bokeh ({error})") from None
    catalogue = _catalogue(measures, maps, layers, heads) | {"first": list(first)}
    scripts, parts = drawing.panels(catalogue, (_HERE / "atlas.js").read_text(encoding="utf-8"))
    axes = {"x": "Colour", "y": "Against it, in the second picture"}
    body = _BODY.format(
        style=_style(),
        choices="".join(_CHOICES.format(axis=axis, title=name) for axis, name in axes.items()),
        scripts=scripts,
        missing=_missing(missing) if missing else "",
        no_maps="" if maps else " hidden",
        **parts,
    )
    return Page(body, title)


def _style() -> str:
    return (_HERE / "atlas.css").read_text(encoding="utf-8")


def _missing(missing: Sequence[str], state: str = "") -> str:
    lines = "".join(f"<li>{_with_code(line)}</li>" for line in missing)
    return f"<details{state}><summary>Not shown here, and how to make it: {len(missing)}</summary><ul>{lines}</ul></details>"


def _with_code(line: str) -> str:
    """Plain text as HTML, code where there are backticks."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(line))


def _named(name: str, values: Any) -> Measure:
    parts = values if isinstance(values, tuple) else (values,)
    if len(parts) not in (1, 3):
        raise ValueError(f"measure {name!r}: give values, or (values, low, high), not {len(parts)} parts")
    given, *ends = (np.asarray(part, dtype=float) for part in parts)
    low, high = ends or (None, None)
    return Measure(name, given, low=low, high=high, signed=bool((given < 0).any()))


def _checked(measures: Sequence[Measure], maps: ExampleMaps | None) -> tuple[int, int]:
    """Layers and heads, if all measures and maps have the same."""
    if not measures:
        raise ValueError("the atlas wants one measure at least: a name with values of shape (layers, heads)")
    shape = np.shape(measures[0].values)
    for one in measures:
        for part in (one.values, one.low, one.high):
            if part is not None and (np.shape(part) != shape or len(shape) != 2):
                raise ValueError(f"measure {one.name!r} has shape {np.shape(part)}; all want one shape, (layers, heads)")
        if (one.low is None) != (one.high is None):
            raise ValueError(f"measure {one.name!r} has one end of its intervals; give both, or none")
    names = [(one.name, one.data, one.task) for one in measures]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two measures are called {twice[0]}; give each its own name")
    wanted = (*shape, len(maps.tokens), len(maps.tokens)) if maps else None
    if maps and maps.weights.shape != wanted:
        raise ValueError(f"the maps have shape {maps.weights.shape}; with these measures and tokens {wanted} is wanted")
    return shape[0], shape[1]


def _catalogue(measures: Sequence[Measure], maps: ExampleMaps | None, layers: int, heads: int) -> dict[str, Any]:
    """What the page's script reads, as JSON values."""
    rows = [
        {
            "name": one.name,
            "topic": one.topic,
            "data": one.data,
            "task": one.task,
            "lacks": one.lacks,
            "signed": one.signed,
            "n": one.n,
            **{part: _numbers(getattr(one, part)) for part in ("values", "low", "high") if getattr(one, part) is not None},
        }
        for one in measures
    ]
    shown = maps and {"text": maps.text, "model": maps.model, "tokens": maps.tokens, "weights": _numbers(maps.weights, 3)}
    return json.loads(json.dumps({"layers": layers, "heads": heads, "measures": rows, "maps": shown}))


def _numbers(values: np.ndarray, digits: int = 4) -> list[float | None]:
    """Flat, rounded to significant digits; None for NaN and infinity."""
    flat = np.ravel(values).tolist()
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in flat]
