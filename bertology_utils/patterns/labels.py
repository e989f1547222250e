"""Labelled self-attention maps (§4.1).

The data card, ``labelled_maps/README.md``, says where the maps come from, by what guideline they
were labelled, and how far two readers agree. No text is stored, only weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

FOLDER = Path(__file__).parent / "labelled_maps"
# Whose maps are labelled: folders by a study's entry ``model``.
ENCODERS = {"e5": "e5", "embedded": "minilm"}
# The paper's five classes (§4.1, Figure 1).
PATTERNS = ("vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous")
SHORTEST = 4  # wordpieces; in shorter maps every pattern looks alike


@cache
def load_maps() -> pd.DataFrame:
    """All labelled maps, one a row.

    Returns:
        "encoder", as a study's entry ``model`` names it; "pattern", the label; "first", "second"
        and "third", what single readings said; "part", "natural" (drawn at random) or "enriched"
        (drawn for rare patterns); "state", "pre-trained" or "fine-tuned"; "task", where the input
        comes from, and "example", its row; "layer" and "head", from 0; "fold", in which a head's
        maps are held out together; "network", what a network called the map that was trained on
        the other folds; "weights", the map, of shape (tokens, tokens) and with rows that sum to 1;
        "separators", the positions of [SEP].
    """
    import pandas as pd
    from safetensors.numpy import load_file

    parts = []
    for encoder, folder in ENCODERS.items():
        weights = load_file(FOLDER / folder / "maps.safetensors")
        maps = pd.read_csv(FOLDER / folder / "labels.csv", dtype={"id": str, "separators": str})
        singles = [weights[name].astype(np.float32) for name in maps.pop("id")]  # of half precision
        maps["weights"] = [one / one.sum(axis=1, keepdims=True) for one in singles]
        maps["separators"] = [tuple(map(int, text.split())) for text in maps["separators"]]
        parts.append(maps.drop(columns="length").assign(encoder=encoder))
    return pd.concat(parts, ignore_index=True)


Picture = tuple[np.ndarray, np.ndarray]  # a map, (tokens, tokens), and True at [SEP], (tokens,)


def pictures(maps: pd.DataFrame) -> list[Picture]:
    """Maps as classifiers read them: weights, and where [SEP] stands."""
    return [
        (weights, np.isin(np.arange(len(weights)), separators))
        for weights, separators in zip(maps["weights"], maps["separators"], strict=True)
    ]


def indices(labels: Iterable[str]) -> np.ndarray:
    """Labels as indices into :data:`PATTERNS`, shape (maps,)."""
    return np.array([PATTERNS.index(label) for label in labels])
