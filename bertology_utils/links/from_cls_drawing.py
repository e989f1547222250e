"""What [CLS] looks at in the last layer, drawn: one input, and Figure 7 (§4.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .. import figures
from ..annotation.token_types import TOKEN_TYPES
from ..figures import COLOURS

NAMED: dict[str, Any] = {"fill": False, "edgecolor": COLOURS["orange"], "linestyle": ":", "linewidth": 1.8}
FRAMED = "fine-tuned"  # the state that the paper's text is about
Table = Mapping[str, np.ndarray]  # by task's title what [CLS] gives each type, shape (types,), NaN where there is none


def from_cls(tokens: Sequence[str], weights: np.ndarray, title: str) -> Figure:
    """What [CLS] gives every token of one input, a bar each; the dotted line is an even share.

    Args:
        tokens: the wordpieces.
        weights: shape (tokens,), summing to 1.
        title: above.

    Returns:
        The figure.
    """
    figure, ax = plt.subplots(figsize=(1.5 + 0.45 * len(tokens), 2.4))
    ax.bar(range(len(tokens)), weights, color=COLOURS["blue"])
    ax.axhline(1 / len(tokens), color=COLOURS["grey"], ls=":")
    ax.set_xticks(range(len(tokens)), tokens, rotation=40, ha="right", fontsize=8)
    ax.set(ylabel="weight from [CLS]", title=title)
    return figure


def tables(rows: Mapping[str, Mapping[str, Table]], named: Mapping[str, str] | None = None) -> Figure:
    """What [CLS] gives each type of token in the last layer: a row of tables for each source, all on one scale (Fig 7).

    Args:
        rows: by source (titles at the left of the titles) and state of the model, a table.
        named: by task's title the type that the paper says is first, in a dotted frame.

    Returns:
        The figure.
    """
    heights = [max(len(table) for table in states.values()) for states in rows.values()]
    width = max(map(len, rows.values()))
    size = 1.5 + 4.8 * width, 0.34 * sum(heights) + 0.55 * len(rows) + 1.0
    figure, axes = plt.subplots(len(rows), width, figsize=size, squeeze=False, height_ratios=heights, sharex=True)
    cells = [values for states in rows.values() for table in states.values() for values in table.values()]
    most = float(np.nanmax(cells))
    for across, (source, states) in zip(axes, rows.items(), strict=True):
        for at, (ax, (state, table)) in enumerate(zip(across, states.items(), strict=False)):
            figures.table_map(ax, np.array(list(table.values())), list(table), TOKEN_TYPES, (0, most), f"{source}, {state}")
            if at:
                ax.set_yticks([])
            for row, kind in enumerate((named or {}).get(title, "") for title in table if state == FRAMED):
                if kind:
                    corner = TOKEN_TYPES.index(kind), row
                    ax.add_patch(plt.Rectangle((corner[0] + 0.06, corner[1] + 0.1), 0.88, 0.8, **NAMED))
    if named:
        figure.legend([plt.Rectangle((0, 0), 1, 1, **NAMED)], ["what the paper's text names"], loc="outside lower center")
    return figure
