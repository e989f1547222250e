"""Maps whose pattern is known by construction, to see whether the network is to be trusted."""

import numpy as np

from .augment import Picture, sentence_numbers

LENGTHS = (8, 16, 32, 64, 100)
# What the labelling guideline calls each.
EXPECTED = {
    "uniform": "heterogeneous",
    "to itself": "diagonal",
    "to the previous token": "diagonal",
    "to [CLS]": "vertical",
    "half to [CLS], half to itself": "vertical+diagonal",
    "within its own sentence": "block",
}


def constructed_maps(length: int) -> dict[str, Picture]:
    """Exact maps of two sentences of equal length, named as in :data:`EXPECTED`.

    Args:
        length: wordpieces, [CLS] and both [SEP] included.
    """
    separators = np.zeros(length, dtype=bool)
    separators[[length // 2, length - 1]] = True
    itself = np.eye(length)
    first = np.zeros((length, length))
    first[:, 0] = 1
    sentence = sentence_numbers(separators)
    same = (sentence[:, None] == sentence).astype(float)
    maps = {
        "uniform": np.full((length, length), 1 / length),
        "to itself": itself,
        "to the previous token": np.vstack([itself[:1], itself[:-1]]),
        "to [CLS]": first,
        "half to [CLS], half to itself": (first + itself) / 2,
        "within its own sentence": same / same.sum(axis=1, keepdims=True),
    }
    return {name: Picture(weights, separators) for name, weights in maps.items()}
