"""Choices and levels that hold on any machine: what rounding could exchange is a tie, and a tie is said.

Another processor changes a measurement in its fourth digit at most, a p value
or a share of resamples by a few draws. Whatever is chosen or decided by less
than that would differ from machine to machine.
"""

from __future__ import annotations

import numpy as np

from ..common import Head, head_name, to_people

MARGIN = 0.0005  # of a score, a weight or a similarity, each a fraction of 1
DRAWS_MARGIN = 0.005  # of a p value, or of a share of resamples


def by_size(values: np.ndarray, margin: float = MARGIN) -> np.ndarray:
    """Flat indices, the largest value first; values within ``margin`` of a larger one count as equal to it.

    Equal ones keep their order, so that it does not hang on their last digits.

    Args:
        values: of any shape; NaN comes last.
        margin: what counts as equal.
    """
    flat = np.nan_to_num(np.asarray(values, dtype=float).ravel(), nan=-np.inf)
    order, leader = np.argsort(-flat, kind="stable"), np.inf
    groups: list[list[int]] = []
    for index in order:
        if flat[index] < leader - margin or not groups:
            leader = flat[index]
            groups.append([])
        groups[-1].append(int(index))
    return np.array([index for group in groups for index in sorted(group)], dtype=int)


def heads_by_size(values: np.ndarray) -> list[Head]:
    """Every (layer, head) from 0, that of the largest value first; see :func:`by_size`.

    Args:
        values: shape (layers, heads).
    """
    return [divmod(int(index), values.shape[1]) for index in by_size(values)]


def ranks(values: np.ndarray, margin: float = MARGIN) -> np.ndarray:
    """Rank of every value, 1 for the largest, in the shape of ``values``; see :func:`by_size`."""
    found = np.empty(np.size(values), dtype=int)
    found[by_size(values, margin)] = np.arange(1, np.size(values) + 1)
    return found.reshape(np.shape(values))


def largest(values: np.ndarray, margin: float = MARGIN) -> tuple[int, ...]:
    """Index of the largest value, the first of those that tie with it."""
    return tuple(int(index) for index in np.unravel_index(by_size(values, margin)[0], np.shape(values)))


def name_of_largest(values: np.ndarray, margin: float = MARGIN) -> str:
    """The head, or the layer, of the largest value as people read it, and how many tie with it.

    Args:
        values: shape (layers, heads) or (layers,).
        margin: what counts as a tie.
    """
    at = largest(values, margin)
    others = int((np.asarray(values) >= values[at] - margin).sum()) - 1
    name = head_name(*at) if len(at) == 2 else str(to_people(*at))
    return f"{name} (tied with {others})" if others > 0 else name


def p_text(p: float) -> str:
    """A p value as it is printed: two digits, since a thousand draws do not give more."""
    return "< 0.01" if p < 0.01 else f"{p:.2f}"


def p_is(p: float) -> str:
    """ "p < 0.01" or "p = 0.03"."""
    return f"p {p_text(p)}" if p < 0.01 else f"p = {p_text(p)}"


def count_of(mask: np.ndarray) -> str:
    """ "7 of 72": how many are true, as counts are printed that one of many on a border may change."""
    return f"{np.count_nonzero(mask)} of {np.size(mask)}"
