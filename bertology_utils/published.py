"""Heatmaps of the paper that are published as pictures only, read off by eye."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np

from .common import one_of

PANELS = ("framenet", "[SEP]", "[CLS]")


@cache
def published_panel(name: str) -> np.ndarray:
    """A heatmap of the pre-trained bert-base-uncased from the paper's published notebook, shape (12, 12).

    The notebook is in the repository text-machine-lab/dark-secrets-of-BERT; a value is good to about 0.02.

    Args:
        name: "framenet": mean of the largest weight along a link over 473 sentences (§4.2, Fig 3);
            "[SEP]" or "[CLS]": attention to these tokens on 1000 dev pairs of QQP (§4.4).

    Raises:
        ValueError: there is no such panel.
    """
    one_of("panel", name, PANELS)
    with Path(__file__).with_name("published_heatmaps.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))  # by layer, then head
    values = [float(row["value"]) for row in rows if row["panel"] == name]
    return np.array(values).reshape(12, 12)
