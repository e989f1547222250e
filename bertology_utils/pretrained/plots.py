"""The figures of notebook 8: published panels beside MiniLM's and a run's own, and heads along dependencies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from .. import plots
from ..annotation.annotators import Word
from ..framenet.figures import links_in_maps
from ..links.dependencies import CLARK, FOUND
from ..norms.plots import KIND_COLOURS, mixing
from ..plots import SOURCE_COLOURS, dot_panels, token_map
from ..plots.old import SOURCE_MARKERS
from ..published import published_panel
from ..results import Runs
from ..verdicts import PRETRAINED, THIS_RUN
from .measure import MEANINGS

__all__ = [
    "arcs_in_map",
    "by_depth",
    "links_in_maps",
    "mixing",
    "panels",
    "pointing",
    "published_panel",
    "token_map",
]
PUBLISHED = "bert-base, published"
PANEL = "weight on a panel"  # row of results.json, by kind
MARKS = ("[CLS]", "[SEP]")
_PANELS = {
    "frame-semantic links": "framenet"
}  # kinds of which the published panel has another name
UD = "MiniLM, UD English"  # where the run on real data had a treebank


def _panels(runs: Runs, kind: str) -> dict[str, np.ndarray]:
    """The published panel of a kind and each run's, by title, shape (layers, heads)."""
    found = {PUBLISHED: published_panel(_PANELS.get(kind, kind))}
    for name, run in runs.items():
        if run.find(PANEL, kind=kind):
            title = "MiniLM, FrameNet" if kind in _PANELS and name != THIS_RUN else name
            found[title] = run.array(PANEL, kind=kind)
    return found


def panels(runs: Runs, kinds: Sequence[str] = MARKS) -> Figure:
    """Published panels and each run's, a row for each kind, on one scale; a square is a head.

    Args:
        runs: by title.
        kinds: of token, or "frame-semantic links".
    """
    found = {(kind, title): panel for kind in kinds for title, panel in _panels(runs, kind).items()}
    most = max(float(panel.max()) for panel in found.values())
    return plots.heatmap_grid(found, "mean weight", (0, most), panel=(3.1, 2.8))


def arcs_in_map(weights: np.ndarray, words: Sequence[Word], title: str) -> Figure:
    """One head's map of words, with an orange frame where a word's row meets the column of the word that it depends on.

    Args:
        weights: shape (words, words).
        words: of one sentence, annotated.
        title: above.
    """
    figure = token_map(weights, [word.form for word in words], title)
    for at, word in enumerate(words):
        if word.head >= 0:
            plots.frame(figure.axes[0], [at], [word.head])
    figure.axes[0].set(xlabel="to word", ylabel="from word")
    return figure


def by_depth(runs: Runs) -> Figure:
    """What one [CLS] and one [SEP] get, by layer, mean over heads: as published, and a panel for each run, on one scale."""
    lines: dict[str, dict[str, np.ndarray]] = {}
    for kind in MARKS:
        for title, panel in _panels(runs, kind).items():
            lines.setdefault(title, {})[kind] = panel.mean(axis=1)
    figure = plots.layer_lines(lines, "mean weight", KIND_COLOURS)
    for ax, of_run in zip(figure.axes, lines.values(), strict=True):
        ax.axvline(len(of_run[MARKS[0]]) / 2 + 0.5, color=plots.COLOURS["grey"], ls=":", lw=1)
    return figure


def pointing(runs: Runs) -> Figure:
    """How many arcs the best head and the best fixed distance find, by dependency; beside Clark et al.'s, and random weights."""
    clark, drawn, random_here = "bert-base, Clark et al.", "random weights", f"{THIS_RUN}, random"
    real = {
        name: UD
        for name, run in runs.items()
        if name != THIS_RUN and "treebank" in run.content["settings"]
    }
    names = {name: real.get(name, name) for name in runs}
    what = dict(zip(FOUND, ("the best head", "the best fixed distance"), strict=True))
    meanings = {
        "kind": {relation: f"{relation}, {MEANINGS[relation]}" for relation in CLARK},
        "what": what,
    }
    shown = plots.panels_of(
        runs, FOUND, "what", "kind", names=meanings | {"run": names}, state=PRETRAINED
    )
    of_random = plots.panels_of(
        {random_here: runs[THIS_RUN]}, FOUND, "what", "kind", names=meanings, state=drawn
    )
    for title, part in zip(shown, ("accuracy", "offset"), strict=True):
        for relation, row in meanings["kind"].items():
            known = {clark: getattr(CLARK[relation], part) / 100} | of_random.get(title, {}).get(
                row, {}
            )
            shown[title][row] = known | shown[title].get(row, {})
    styles = {
        clark: "the paper",
        **{told: name for name, told in names.items()},
        random_here: drawn,
    }
    colours, markers = (
        {name: of[one] for name, one in styles.items()} for of in (SOURCE_COLOURS, SOURCE_MARKERS)
    )
    return dot_panels(
        shown, "finds the other word, % of arcs", 100, colours, columns=2, markers=markers
    )
