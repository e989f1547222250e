"""The transparent alternative to the network: a few statistics of a map, and logistic regression."""

import numpy as np

from .augment import sentence_numbers

STATISTICS = (
    "strongest column",
    "three strongest columns",
    "attention to itself",
    "to the previous token",
    "to the next token",
    "strongest parallel to the diagonal",
    "band of five",
    "same sentence, above chance",
    "other sentence, above chance",
    "two sentences",
    "entropy",
)


def map_statistics(weights: np.ndarray, separators: np.ndarray) -> np.ndarray:
    """What a reader would measure to tell the five patterns apart; all but the blocks' from 0 to 1.

    Args:
        weights: shape (tokens, tokens), rows sum to 1.
        separators: True at [SEP], shape (tokens,).

    Returns:
        Shape (statistics,), in the order of :data:`STATISTICS`.
    """
    length = len(weights)
    columns = np.sort(weights.mean(axis=0))[::-1]
    offset = np.subtract.outer(np.arange(length), np.arange(length))  # row minus column
    parallels = {shift: weights[offset == shift].mean() for shift in range(-(length // 2), length // 2 + 1)}
    band = np.where(abs(offset) <= 2, weights, 0).sum(axis=1).mean()
    sentence = sentence_numbers(separators)
    inside = np.arange(length) > 0
    inside &= ~separators
    same = (sentence[:, None] == sentence) & inside  # columns of words in the row's own sentence
    other = (sentence[:, None] != sentence) & inside
    entropy = -np.sum(weights * np.log(np.maximum(weights, 1e-12)), axis=1).mean() / np.log(length)
    two = float(separators.sum() > 1)
    return np.array(
        [
            columns[0],
            columns[:3].sum(),
            parallels[0],
            parallels[1],
            parallels[-1],
            max(parallels.values()),
            band,
            *(two * _above_chance(weights, chosen) for chosen in (same, other)),
            two,
            entropy,
        ]
    )


def _above_chance(weights: np.ndarray, chosen: np.ndarray) -> float:
    """Attention to the chosen cells minus what uniform attention would give them, mean over rows."""
    return float(np.where(chosen, weights, 0).sum(axis=1).mean() - chosen.mean())
