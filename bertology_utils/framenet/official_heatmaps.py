"""Heatmaps of the paper's published notebook, read off its figures, to compare bert-base with.

Source: the notebook in the repository text-machine-lab/dark-secrets-of-BERT,
whose figures were digitised; values are good to about ±0.02.  "framenet":
mean of the largest weight along a link over 473 sentences (§4.2, Fig 3).
"[SEP]" and "[CLS]": attention to these tokens on 1000 dev pairs of QQP (§4.4).
All are of the pre-trained bert-base-uncased.
"""

import csv
from functools import cache
from pathlib import Path

import numpy as np

from ..common import one_of, to_code

FILE = Path(__file__).with_suffix(".csv")
PANELS = ("framenet", "[SEP]", "[CLS]")
LAYERS, HEADS = 12, 12
READING_ERROR = 0.02


@cache
def panel(name: str) -> np.ndarray:
    """One heatmap, shape (12, 12): (layers, heads).

    Raises:
        ValueError: there is no such panel.
    """
    one_of("panel", name, PANELS)
    values = np.full((LAYERS, HEADS), np.nan)
    with FILE.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["panel"] == name:
                at = to_code(int(row["layer"]), LAYERS), to_code(int(row["head"]), HEADS, "head")
                values[at] = float(row["value"])
    return values
