"""The figures of §4.6: every head's gain (Fig 8), the best head's beside chance, and every layer's (Fig 9).

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .. import plots
from ..common import Head
from ..results import Results
from ..statistics import ONE_SIDED

REACH = 3.0  # points; the scale of single heads ends here
FURTHEST = -17.0  # points; a layer that costs more is drawn at the border
GAIN = "gain, points"
# §4.6: the largest and the smallest best gain over all tasks, and the best layer.
PAPER, PAPER_BEST, PAPER_LAYER = "the paper", {"MRPC": 1.2, "STS-B": 0.1}, {("RTE", 1): 3.2}
# Means over runs: rows, and how they are labelled.
ACROSS = "gain without a head, mean over runs"
P_ACROSS, P_EVERY = (
    f"p of the gain without a head, {which}" for which in ("mean over runs", "in every run")
)
RUNS = {"score": "gain without a head", "loss": "gain without a head, by loss"}
REACH_LOSS = 10.0  # percent of the loss
LABELS = {
    "score": GAIN,
    "loss": "gain, % of the loss",
    "loss, recalibrated": "gain, % of the loss, recalibrated",
}
DESCRIBED = (
    "weight on [CLS]",
    "weight on [SEP]",
    "weight on itself",
    "norm of its output",
    "norm of its change by 1/L",
)
# From 0. In earlier runs (4, 8) gained in all runs of STS-B, (2, 11) lowered the loss on six tasks,
# (3, 5) raised it, and (3, 10) stood out with them.
NAMED: tuple[Head, ...] = ((1, 10), (2, 4), (2, 9), (3, 7))
LAYERS_BY = {"uniform": "1/L", "zero": "zero", "mean": "mean"}
BEST = {
    "largest gain without a head by chance": ("the best by luck, median to 95 %", "grey"),
    "largest gain without a head": ("the best head", "orange"),
    "gain without the chosen head, on other examples": (
        "chosen on one half, measured on the other",
        "blue",
    ),
}


def heads_figure(results: Results) -> Figure:
    """The gain without every head in the first run of each task (Fig 8).

    Red is a gain, blue a loss; what is beyond the scale is hatched. ▲ is a gain and ▼ a loss that
    is significant, corrected over all heads.
    """
    arrays = plots.head_arrays(results.table("gain without a head", training=1))
    figure = plots.head_grid(arrays, GAIN, (-REACH, REACH), plots.GAIN)
    p = results.table("p of the gain without a head", training=1)
    for ax, (title, gains) in zip(figure.axes, arrays.items(), strict=False):
        for layer, head in np.argwhere(np.abs(gains) > REACH):
            place = head - 0.5, layer - 0.5
            ax.add_patch(Rectangle(place, 1, 1, fill=False, hatch="////", edgecolor="white", lw=0))
        for side, marker in (("better", "^"), ("worse", "v")):
            sure = p[(p.task == title) & (p.kind == side) & (p.value < ONE_SIDED)]
            at = sure["head"] - 1, sure["layer"] - 1
            ax.plot(*at, marker, ms=6, color="black", mec="white", mew=0.8)
    return figure


def heads_across(results: Results, measure: str = "loss") -> Figure:
    """The gain without every head, mean over the runs of each task, as a map; ▲ and ▼ as in :func:`heads_figure`.

    Args:
        results: rows.
        measure: one of :data:`bertology_utils.disabling.across.LEAST`.
    """
    table = results.table(ACROSS, state=measure)
    reach = REACH if measure == "score" else REACH_LOSS
    figure = plots.head_grid(plots.head_arrays(table), LABELS[measure], (-reach, reach), plots.GAIN)
    p = results.table(P_ACROSS, state=measure)
    for ax, title in zip(figure.axes, table.task.cat.categories, strict=False):
        for side, marker in (("better", "^"), ("worse", "v")):
            sure = p[(p.task == title) & (p.kind == side) & (p.value < ONE_SIDED)]
            at = sure["head"] - 1, sure["layer"] - 1
            ax.plot(*at, marker, ms=6, color="black", mec="white", mew=0.8)
    return figure


def ranked_heads(results: Results, measure: str = "loss", named: int = 6) -> Figure:
    """All heads of each task in the order of their mean gain over runs, with 95 % intervals.

    Those whose disabling helps significantly (corrected over all heads) are orange, those that are
    needed blue. The best of the former have names, and a small dot for each run; an orange diamond is
    one that is significant in every run. By score, black diamonds are the paper's best heads.

    Args:
        results: rows.
        measure: one of :data:`bertology_utils.disabling.across.LEAST`.
        named: how many heads of a task have names at most.
    """
    keys = ["task", "layer", "head"]
    table = results.table(ACROSS, state=measure).set_index(keys)
    for kind in ("better", "worse"):
        p = results.table(P_ACROSS, state=measure, kind=kind).set_index(keys).value
        table[kind] = p.reindex(table.index) < ONE_SIDED
    every = results.table(P_EVERY, state=measure, kind="better").set_index(keys).value
    table["every"] = every.reindex(table.index) < ONE_SIDED
    runs = results.table(RUNS[measure]) if measure in RUNS else table[:0].reset_index()
    tasks = table.index.get_level_values("task").unique()
    figure, axes = plots.panel_grid(len(tasks), 2.5, 3.4)
    for ax, task in zip(axes, tasks, strict=True):
        heads = table.loc[task].sort_values("value", ascending=False)
        colours = np.select(
            [heads.better, heads.worse], [plots.COLOURS["orange"], plots.COLOURS["blue"]], "#b8bdc3"
        )
        ranks = np.arange(len(heads))
        ax.hlines(ranks, heads.low, heads.high, colors=colours, lw=0.8)
        ax.scatter(heads.value, ranks, s=7, c=colours, zorder=3)
        room = len(heads) / 16  # a name's height, in heads
        place = -room
        every = heads.every.to_numpy()
        ax.scatter(
            heads.value[every], ranks[every], s=18, c=plots.COLOURS["orange"], marker="D", zorder=3
        )
        for at, head in heads[heads.better].head(named).iterrows():
            rank = heads.index.get_loc(at)
            own = runs[(runs.task == task) & (runs.layer == at[0]) & (runs["head"] == at[1])]
            ax.scatter(own.value, [rank] * len(own), s=5, c="black", zorder=4, linewidths=0)
            place = max(rank, place + room)
            end = max(head.high, own.value.max() if len(own) else head.high)
            ax.annotate(
                f"({at[0]}, {at[1]})",
                (end, rank),
                (0.98, place),
                textcoords=("axes fraction", "data"),
                fontsize=7,
                ha="right",
                va="center",
                arrowprops={"arrowstyle": "-", "lw": 0.4, "color": "#b8bdc3"},
            )
        ax.axvline(0, color="black", lw=0.6)
        if measure == "score" and task in PAPER_BEST:
            ax.scatter(PAPER_BEST[task], -2, s=16, c="black", marker="D", clip_on=False)
        low, high = heads.low.min(), heads.high.max()
        best = heads.high.iloc[0]
        ax.set_xlim(max(low, -3 * max(best, -heads.value.median(), 1e-9)), high * 2.4)
        ax.set(title=str(task), xlabel=LABELS[measure], yticks=[], ylim=(len(heads), -3))
        ax.title.set_fontsize(9)
    axes[0].set_ylabel("heads, the best to disable on top")
    return figure


def head_table(results: Results, heads: Sequence[Head] = NAMED) -> pd.DataFrame:
    """Some heads as a table: their mean gain on every task by each measure, and what they attend to and add.

    Args:
        results: rows.
        heads: (layer, head) from 0.

    Returns:
        A row for each head and task.
    """
    columns = {f"gain by {name}": results.table(ACROSS, state=name) for name in LABELS}
    by_ablation = "gain without a head by loss, by ablation"
    columns |= {
        f"gain by loss, {name}": results.table(by_ablation, state=state)
        for state, name in LAYERS_BY.items()
    }
    columns |= {name: results.table(name) for name in DESCRIBED}
    keys, rows = ["layer", "head", "task"], {}
    for name, table in columns.items():
        values = table.set_index(keys)[["value", "low", "high"]]
        rows[name] = values.apply(
            lambda one: (
                f"{one.value:+.1f} [{one.low:+.1f}, {one.high:+.1f}]"
                if np.isfinite(one.low)
                else f"{one.value:.2f}"
            ),
            axis=1,
        )
    wanted = {(layer + 1, head + 1) for layer, head in heads}
    whole = pd.DataFrame(rows)
    chosen = whole[[at[:2] in wanted for at in whole.index]].sort_index()
    names = [(f"({layer}, {head})", str(task)) for layer, head, task in chosen.index]
    return chosen.set_index(pd.MultiIndex.from_tuples(names, names=["head", "task"]))


def best_heads(results: Results) -> Figure:
    """Of every run the best head's gain, the largest by chance, and the gain on examples without a say in the choice."""
    table = results.table(list(BEST))
    places = ["task", "training"]
    chance = table[table.kind.notna()].set_index([*places, "kind"]).value.unstack("kind")
    luck = chance.assign(value=chance["median"], low=chance["median"], high=chance["95 %"])
    luck = luck.reset_index().assign(what=next(iter(BEST)))
    table = pd.concat([luck, table[table.kind.isna()]], ignore_index=True)
    # Of the best of many an interval says nothing.
    table.loc[table.what == "largest gain without a head", ["low", "high"]] = np.nan
    table = table.sort_values(places, kind="stable")
    table[PAPER] = table.task.astype(str).map(PAPER_BEST).where(table.training == 1)
    return plots.dots(
        table.assign(
            run=table.training.astype(int),
            what=table.what.map({what: name for what, (name, _) in BEST.items()}),
        ),
        y="run",
        colour="what",
        panel="task",
        label=GAIN,
        colours={name: plots.COLOURS[colour] for name, colour in BEST.values()},
        marks={PAPER: "D"},
    )


def layers_figure(results: Results) -> Figure:
    """The gain without every layer in the first run of each task (Fig 9)."""
    table = results.table("gain without a layer", training=1)
    table[PAPER] = [PAPER_LAYER.get(at, np.nan) for at in zip(table.task, table.layer, strict=True)]
    return plots.dots(
        table, y="layer", panel="task", label=GAIN, marks={PAPER: "D"}, limits=(FURTHEST, None)
    )


def layers_by_ablation(results: Results) -> Figure:
    """The gain without every layer by three ablations, mean over runs, as a share of the model's skill.

    The skill is the score above always the same answer. At −100 % all of it is lost; below, the
    model is driven to worse answers than that.
    """
    table = results.table("gain without a layer, by ablation", state=list(LAYERS_BY))
    whole = results.table("score of the whole model").groupby("task", observed=True).value.mean()
    skill = whole - results.table("score of always the same answer").set_index("task").value
    for name in ("value", "low", "high"):
        table[name] *= 100 / table.task.map(skill).astype(float)
    return plots.dots(
        table.assign(ablation=table.state.map(LAYERS_BY)),
        y="layer",
        colour="ablation",
        panel="task",
        label="gain, % of the skill",
        border={"always the same answer": -100.0},
        limits=(-150.0, None),
    )


def sink_without_layers(results: Results) -> Figure:
    """How much weight [CLS] gets in the layers above one whose heads are uniform, and with none."""
    table = results.table("weight on [CLS] with a layer off", state="uniform")
    off = table.kind.str.removeprefix("layer ").where(table.kind != "no layer", 0).astype(int)
    above = table[table.layer > off]  # below nothing changes, and in that layer it is 1/L
    above = above.assign(off=above.kind + " off")
    return plots.lines(above, colour="off", panel="task", label="weight on [CLS]")
