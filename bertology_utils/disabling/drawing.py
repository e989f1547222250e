"""The figures of §4.6 that are made for it alone: a head on and off, every head's gain (Fig 8), more and more heads off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.patches import Rectangle

from .. import figures
from ..attention import Batch, attention_maps
from ..common import Head, head_name
from ..glue.tasks import Task
from ..statistics.permutation import ONE_SIDED
from .cases import Case
from .gain_dots import PAPER_BEST
from .summary import THIS_RUN, Models, firsts
from .switch import disable_heads

REACH = 3.0  # points; the scale of gains ends here
_WHITE_AT_ZERO = figures.GAIN.resampled(255)  # an odd number of colours: the middle one is pure white


def head_on_and_off(model, example: Batch, tokens: Sequence[str], case: Case, answer: str):
    """A head's attention as lines, and the same with the head disabled.

    Args:
        model: classifier in evaluation mode.
        example: the case's, alone in its batch.
        tokens: its wordpieces.
        case: which head, and what it does to the answer.
        answer: that label's name.

    Returns:
        The figure.
    """
    layer, head = case.head
    as_it_is = attention_maps(model, example)[layer][0, head]
    with disable_heads(model, [case.head]):
        disabled = attention_maps(model, example)[layer][0, head]
    panels = {
        f"head {head_name(*case.head)}\n“{answer}”: {case.whole:.2f}": as_it_is.cpu().numpy(),
        f"disabled\n“{answer}”: {case.without:.2f}": disabled.cpu().numpy(),
    }
    return figures.line_panels(panels, tokens)


def map_on_and_off(model, example: Batch, tokens: Sequence[str], head: Head):
    """A head's map with the tokens on its axes, and the same with the head disabled.

    Args:
        model: classifier in evaluation mode.
        example: one, alone in its batch.
        tokens: its wordpieces.
        head: (layer, head) from 0.

    Returns:
        The figure.
    """
    layer, number = head
    as_it_is = attention_maps(model, example)[layer][0, number]
    with disable_heads(model, [head]):
        disabled = attention_maps(model, example)[layer][0, number]
    side = 1.3 + 0.16 * len(tokens)  # inches
    figure, axes = plt.subplots(1, 2, figsize=(2 * side + 0.8, side), sharey=True)
    for ax, weights, title in zip(axes, (as_it_is, disabled), (f"head {head_name(*head)}", "disabled"), strict=True):
        image = figures.attention_map(ax, weights.cpu().numpy(), tokens, title)
    axes[1].set_ylabel("")
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.7)
    return figure


def layer_maps(model, example: Batch, layer: int, separators: Sequence[int]):
    """The maps of all heads of a layer, small, as they are with no head disabled.

    Args:
        model: classifier in evaluation mode.
        example: one, alone in its batch.
        layer: from 0.
        separators: positions of [SEP].

    Returns:
        The figure.
    """
    maps = attention_maps(model, example)[layer][0].cpu().numpy()  # (heads, tokens, tokens)
    shown = [SimpleNamespace(weights=weights, separators=separators) for weights in maps]
    figure = figures.map_grid(shown, [head_name(layer, head) for head in range(len(maps))], columns=6)[0]
    figure.supxlabel("token attended to", fontsize=8)
    figure.supylabel("token", fontsize=8)
    return figure


def gain_maps(models: Mapping[str, Models]):
    """The gain of every head, first training of each task: a row for each run, one scale for all (Fig 8).

    Args:
        models: runs by whose they are, see :func:`bertology_utils.disabling.summary.beside`.

    Red is a gain, blue a loss, white no change; what is beyond the scale is hatched. ▲ is a gain and ▼ a loss that is
    more than chance. The paper's best heads are marked on the scale.

    Returns:
        The figure.
    """
    runs = {name: firsts(of_run) for name, of_run in models.items()}
    tasks = list(dict.fromkeys([*runs[THIS_RUN], *(task for run in runs.values() for task in run)]))
    layers = np.shape(next(iter(runs[THIS_RUN].values()))["heads"]["values"])[0]
    size = 2.7 * len(tasks) + 1.6, (0.2 * layers + 0.75) * len(runs) + 0.3
    figure, axes = plt.subplots(len(runs), len(tasks), figsize=size, squeeze=False)
    for row, (name, run) in zip(axes, runs.items(), strict=True):
        for ax, task in zip(row, tasks, strict=True):
            if task in run:
                _gain_map(ax, run[task]["heads"])
            else:
                ax.set_axis_off()
                ax.text(0.5, 0.5, "not measured", ha="center", va="center", color=figures.COLOURS["grey"])
            ax.set(ylabel="", xlabel="")
        row[0].set_ylabel(f"{name}\n\nlayer")
    for ax, task in zip(axes[0], tasks, strict=True):
        ax.set_title(task.title)
    for ax in axes[-1]:
        ax.set_xlabel("head")
    _scale(figure, axes)
    return figure


def _gain_map(ax, heads: Mapping) -> None:
    gains = 100 * np.asarray(heads["values"])
    figures.heatmap(ax, gains, limits=(-REACH, REACH), cmap=_WHITE_AT_ZERO, colour_bar=False)
    ax.collections[0].set_edgecolor("#d5d8dc")  # white squares end somewhere
    for layer, head in np.argwhere(np.abs(gains) > REACH):
        ax.add_patch(Rectangle((head, layer), 1, 1, fill=False, hatch="////", edgecolor="white", lw=0))
    for side, marker in (("better", "^"), ("worse", "v")):
        for layer, head in np.argwhere(np.asarray(heads[side]) < ONE_SIDED):
            ax.plot(head + 0.5, layer + 0.5, marker, ms=6.5, color="black", mec="white", mew=0.8)


def _scale(figure, axes: np.ndarray) -> None:
    """The one scale of gains, its ends and the paper's range marked."""
    drawn = next(ax for ax in axes.flat if ax.collections)
    bar = figure.colorbar(drawn.collections[0], ax=axes, aspect=12 * len(axes), pad=0.07, label="gain, points")
    ends = [f"−{REACH:.0f} or less\n(hatched)", "−1", "0", "+1", f"+{REACH:.0f} or more\n(hatched)"]
    bar.set_ticks([-REACH, -1, 0, 1, REACH], labels=ends, fontsize=7)
    low, high = (100 * side(PAPER_BEST.values()) for side in (min, max))
    bar.ax.plot([-0.35, -0.35], [low, high], color="black", lw=3, clip_on=False, solid_capstyle="butt")
    bar.ax.annotate(
        "the paper's\nbest heads", (-0.45, (low + high) / 2), ha="right", va="center", fontsize=7, annotation_clip=False
    )


def curves_of_scores(
    curves: Mapping[Task, Mapping[int, float]],
    spared: Mapping[Task, int],
    examples: Mapping[Task, int],
    at_random: Mapping[Task, Sequence[Mapping[int, float]]] | None = None,
):
    """Scores with more and more heads disabled, and the line a point below the whole model.

    Args:
        curves: by task, number of disabled heads → score, from 0 to 1; the last number is that of all heads.
        spared: by task, how many heads can go, which an orange line marks.
        examples: by task, how many each score is of.
        at_random: by task, for some of them, the same in random orders.

    Returns:
        The figure.
    """
    figure, axes = figures.panel_grid(len(curves), 3.2, 2.8)
    grey, blue, orange = (figures.COLOURS[name] for name in ("grey", "blue", "orange"))
    handles: dict[str, Artist] = {}
    for ax, (task, curve) in zip(axes, curves.items(), strict=True):
        for drawn in (at_random or {}).get(task, ()):
            ax.plot(list(drawn), [100 * score for score in drawn.values()], lw=0.8, color=grey, label="a random order")
        ax.plot(list(curve), [100 * score for score in curve.values()], "o-", ms=3, color=blue, label="ordered by gain")
        ax.axhline(100 * (curve[0] - 0.01), color=grey, ls=":", label="a point below the whole model")
        ax.axvline(spared[task], color=orange, lw=2, label="so many can go")
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
        title = f"{task.title}: {spared[task]} of {max(curve)} can go, n={examples[task]}"
        ax.set(xlabel="heads disabled", ylabel="score, points")
        ax.set_title(title, fontsize=9)
    figure.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=len(handles))
    return figure
