"""The figures of §4.6 that are made for it alone: one head on and off, gains beside chance, more and more heads disabled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import figures
from ..attention import Batch, attention_maps
from ..common import head_name
from ..glue.tasks import Task
from .cases import Case
from .measure import Effects
from .switch import disable_heads


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
        f"switched off\n“{answer}”: {case.without:.2f}": disabled.cpu().numpy(),
    }
    return figures.line_panels(panels, tokens)


def gains_and_chance(effects: Mapping[Task, Effects]):
    """The best gain of a head: by chance (grey), observed (orange), and on examples that had no say in the choice (blue).

    Args:
        effects: of one sweep for each task, a panel each.

    Returns:
        The figure.
    """
    figure, axes = figures.panel_grid(len(effects), 3.2, 2.8)
    grey, orange, blue = (figures.COLOURS[name] for name in ("grey", "orange", "blue"))
    for ax, (task, effect) in zip(axes, effects.items(), strict=True):
        heads = effect.heads
        ax.hist(100 * heads.test.best_by_chance, bins=15, color=grey, label="best by chance", density=True)
        ax.axvline(100 * heads.values.max(), color=orange, lw=2.5, label="best observed")
        ax.axvline(100 * heads.selected.honest.mean(), color=blue, lw=2.5, ls="--", label="on other examples")
        ax.set(title=task.title, xlabel="gain, points", yticks=[])
    axes[0].set_ylabel("density")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def curves_of_scores(
    curves: Mapping[Task, Mapping[int, float]],
    spared: Mapping[Task, int],
    examples: Mapping[Task, int],
    at_random: Mapping[Task, Sequence[Mapping[int, float]]] | None = None,
):
    """Scores with more and more heads disabled; the dotted line is a point below the whole model.

    Args:
        curves: by task, number of disabled heads → score, from 0 to 1; the last number is that of all heads.
        spared: by task, how many heads can go, which an orange line marks.
        examples: by task, how many each score is of.
        at_random: by task, for some of them, the same in random orders.

    Returns:
        The figure.
    """
    figure, axes = figures.panel_grid(len(curves), 3.2, 2.8)
    for ax, (task, curve) in zip(axes, curves.items(), strict=True):
        for drawn in (at_random or {}).get(task, ()):
            ax.plot(list(drawn), [100 * score for score in drawn.values()], lw=0.8, color=figures.COLOURS["grey"])
        ax.plot(list(curve), [100 * score for score in curve.values()], marker="o", ms=3, color=figures.COLOURS["blue"])
        ax.axhline(100 * (curve[0] - 0.01), color=figures.COLOURS["grey"], ls=":")
        ax.axvline(spared[task], color=figures.COLOURS["orange"], lw=2)
        title = f"{task.title}: {spared[task]} of {max(curve)} to spare, n={examples[task]}"
        ax.set(xlabel="heads disabled", ylabel="score, points")
        ax.set_title(title, fontsize=9)
    return figure
