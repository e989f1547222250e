"""The figures of §4.5: links on one map, links and neighbours, heads above places and rivals, and [CLS] (Fig 7).

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from .. import plots
from ..annotation.inputs import TOKEN_TYPES
from ..common import head_name
from ..glue import TASKS
from ..plots import COLOURS
from ..plots.charts import BORDER
from ..results import Results
from ..verdicts import CLAIMS, WEIGHT
from .measure import LINK_TYPES, TokenLink
from .record import (
    ABOVE_PLACES,
    ABOVE_RIVALS,
    ALONG,
    BEFORE,
    CENTRED,
    FROM_CLS,
    NEIGHBOURS,
    RANDOM,
    TUNED,
)

LOWEST = 0.01  # where the scale of attention to neighbours begins
# The tasks on which [CLS] attends most to punctuation, says the paper; on the others to [SEP].
PUNCTUATION = [TASKS[name].title for name in CLAIMS["cls-reads-punctuation"].tasks]


def links_on_map(
    weights: np.ndarray,
    tokens: Sequence[str],
    links: Sequence[TokenLink],
    title: str,
    compared: bool = False,
) -> Figure:
    """One map, with an orange outline around each link.

    Args:
        weights: shape (tokens, tokens), rows summing to 1.
        tokens: the wordpieces.
        links: of the input.
        title: above the map.
        compared: True to outline other inputs' places (dashed, grey) and rivals (dotted, blue), too.
    """
    figure = plots.token_maps({title: weights}, tokens)

    def outline(cells: tuple[np.ndarray, np.ndarray], colour: str, line: str) -> None:
        pairs = [(int(row), int(column)) for row, column in zip(*cells, strict=True)]
        plots.outline(figure.axes[0], pairs, colour, linestyle=line)

    for link in links:
        for places, colour, line in ((link.places, "grey", "--"), (link.rivals, "blue", ":")):
            for cells in places if compared else ():
                outline(cells, colour, line)
        outline((link.rows, link.columns), "orange", "-")
    return figure


def _heads(results: Results, state: str = BEFORE) -> pd.DataFrame:
    """A row for each type of link and head, with its name and a column for each kind of number."""
    numbers = [ALONG, NEIGHBOURS, ABOVE_PLACES, CENTRED, ABOVE_RIVALS]
    table = results.table(numbers, state=state)
    table = table.pivot(index=["kind", "layer", "head"], columns="what", values="value")
    table = table.reindex(columns=numbers).reset_index()
    table["kind"] = pd.Categorical(table["kind"], LINK_TYPES)
    table["head"] = [head_name(row.layer - 1, row.head - 1) for row in table.itertuples()]
    return table.assign(name="").sort_values("kind")


def links_and_neighbours(results: Results) -> Figure:
    """Attention along links against attention to neighbours, pre-trained: a dot for each head.

    Orange heads attend 0.02 more to the link than to other inputs' places, also with each word's
    popularity off, and than to rivals, where there are any. The two highest heads carry their
    names, and the two highest of the orange ones. Heads that attend less than 0.01 to neighbours are drawn at 0.01.
    """
    table = _heads(results)
    above = (table[[ABOVE_PLACES, CENTRED]] > WEIGHT).all(axis=1)
    above &= ~(table[ABOVE_RIVALS] <= WEIGHT)
    passes = f"{WEIGHT} above places and rivals"
    table["passes"] = np.where(above, passes, "other heads")
    for _, heads in table.groupby("kind", observed=True):
        order = heads.sort_values(ALONG, ascending=False)
        top = [*order.index[:2], *order.index[order["passes"] == passes][:2]]
        table.loc[top, "name"] = table["head"]
    table[NEIGHBOURS] = table[NEIGHBOURS].clip(lower=LOWEST)
    axes = {NEIGHBOURS: "attention to the neighbour", ALONG: "attention along the link"}
    figure = plots.scatter(
        table.rename(columns=axes),
        x=axes[NEIGHBOURS],
        y=axes[ALONG],
        colour="passes",
        panel="kind",
        colours={"other heads": COLOURS["grey"], passes: COLOURS["orange"]},
        name="name",
    )
    for ax in figure.axes:
        ax.set(xscale="log", xlim=(0.9 * LOWEST, 3))
        ax.set_xticks([0.01, 0.03, 0.1, 0.3, 1], ["≤ 0.01", "0.03", "0.1", "0.3", "1"])
        ax.minorticks_off()
    return figure


def above_controls(results: Results, kinds: Sequence[str], other: str) -> Figure:
    """How much more every head attends to links than to other inputs' places, against a second control.

    Dotted lines are at the least effect, 0.02: a head that follows the link is above and to the
    right of both. The pre-trained head that is farthest to the right and the one that comes nearest
    to passing both carry their names.

    Args:
        results: the rows.
        kinds: types of link, a panel each.
        other: the second control, :data:`.record.ABOVE_RIVALS` or :data:`.record.CENTRED`.
    """
    axes = {
        ABOVE_PLACES: "above other sentences' places",
        ABOVE_RIVALS: "above rivals",
        CENTRED: "above other sentences' places,\npopularity off",
    }
    tables = []
    for state in (BEFORE, RANDOM):
        table = _heads(results, state)
        table = table[table["kind"].isin(kinds)].dropna(subset=[ABOVE_PLACES, other])
        tables.append(table.assign(state=state))
    for _, heads in tables[0].groupby("kind", observed=True):
        top = [heads[ABOVE_PLACES].idxmax(), heads[[ABOVE_PLACES, other]].min(axis=1).idxmax()]
        tables[0].loc[top, "name"] = heads["head"]
    figure = plots.scatter(
        pd.concat(tables, ignore_index=True).rename(columns=axes),
        x=axes[ABOVE_PLACES],
        y=axes[other],
        colour="state",
        panel="kind",
        colours={BEFORE: COLOURS["blue"], RANDOM: COLOURS["orange"]},
        name="name",
        columns=2,
    )
    for ax in figure.axes:
        ax.axvline(WEIGHT, **BORDER)
        ax.axhline(WEIGHT, **BORDER)
    return figure


def highest_heads(results: Results, kinds: Sequence[str]) -> Figure:
    """The five highest heads along links of each type: how far above other inputs' places and above rivals.

    Args:
        results: see above.
        kinds: of link.
    """
    above = {ABOVE_PLACES: "other inputs' places", ABOVE_RIVALS: "rivals"}
    tables = [
        results.table(f"{what}, highest heads").assign(above=name) for what, name in above.items()
    ]
    table = pd.concat(tables, ignore_index=True)
    both = table.kind.astype(str).str.rsplit(", (", n=1)
    table = table.assign(links=both.str[0], head="head (" + both.str[1])
    table = table[table.links.isin(kinds)]
    table["links"] = pd.Categorical(table.links, list(kinds))
    return plots.dots(
        table,
        y="head",
        colour="above",
        panel="links",
        label="weight along links, above …",
        border={"least effect": WEIGHT},
        columns=1,
    )


def from_cls(tokens: Sequence[str], weights: np.ndarray, title: str) -> Figure:
    """What [CLS] gives every token of one input, a bar each; the dotted line is a uniform weight.

    Args:
        tokens: the wordpieces.
        weights: shape (tokens,), summing to 1.
        title: above.
    """
    figure, ax = plt.subplots(figsize=(1.5 + 0.45 * len(tokens), 2.4))
    ax.bar(range(len(tokens)), weights, color=COLOURS["blue"])
    ax.axhline(1 / len(tokens), color=COLOURS["grey"], ls=":")
    ax.set_xticks(range(len(tokens)), tokens, rotation=40, ha="right", fontsize=8)
    ax.set(ylabel="weight from [CLS]", title=title)
    return figure


def last_layer(results: Results) -> Figure:
    """What [CLS] gives each type of token in the last layer, pre-trained and fine-tuned (Fig 7).

    Of fine-tuned models, the type that the paper's text names is outlined.
    """
    table = results.table(FROM_CLS, state=[BEFORE, TUNED])
    tables = {
        state: rows.pivot(index="task", columns="kind", values="value").reindex(
            index=list(table.task.cat.categories), columns=list(TOKEN_TYPES)
        )
        for state, rows in table.groupby("state", sort=False)
    }
    size = 10.5, 0.34 * len(table.task.cat.categories) + 1.4
    figure, axes = plt.subplots(1, len(tables), figsize=size, sharey=True, squeeze=False)
    for ax, (state, values) in zip(axes.flat, tables.items(), strict=True):
        plots.table_map(ax, values, (0, float(table.value.max())), state)
        for row, title in enumerate(values.index if state == TUNED else ()):
            column = TOKEN_TYPES.index("punctuation" if title in PUNCTUATION else "[SEP]")
            corner = column + 0.06, row + 0.1
            look = {"fill": False, "edgecolor": COLOURS["orange"], "ls": ":", "lw": 1.8}
            ax.add_patch(plt.Rectangle(corner, 0.88, 0.8, label="named by the paper", **look))
    if axes.flat[-1].patches:
        figure.legend(handles=axes.flat[-1].patches[:1], loc="outside lower center")
    return figure
