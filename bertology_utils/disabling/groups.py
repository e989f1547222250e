"""Inputs of one length side by side, without padding: for the fast sweep, and for heads that exchange their outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch

from ..attention import Batch

PARTNERS = 8  # fewest inputs that exchange among each other, where there are as many of one length


@dataclass(frozen=True)
class Group:
    """Examples of one length.

    Attributes:
        index: their positions in the data.
        inputs: the model's, without padding, each of shape (examples, tokens).
    """

    index: list[int]
    inputs: dict[str, torch.Tensor]


_Example = tuple[int, int, dict[str, torch.Tensor]]  # length, index, inputs without padding


def by_length(batches: Sequence[Batch], variants: int, tokens_at_once: int) -> list[Group]:
    """The examples anew, in groups small enough that all variants of a layer make one stack.

    Args:
        batches: the data.
        variants: of every example in a stack.
        tokens_at_once: bound on variants × examples × length.
    """
    groups: list[list[_Example]] = []
    for example in sorted(_examples(batches), key=lambda example: example[:2]):
        length = example[0]
        room = groups and groups[-1][0][0] == length and (len(groups[-1]) + 1) * length * variants <= tokens_at_once
        if room:
            groups[-1].append(example)
        else:
            groups.append([example])
    return [_group(group) for group in groups]


def partners(batches: Sequence[Batch]) -> list[Group]:
    """The examples anew: in a group each one's partner is the next, and the last one's the first.

    Groups have 2 to 15 examples, whatever the batches were; one whose length no other has is alone.

    Args:
        batches: the data.
    """
    found = []
    for _, of_length in groupby(sorted(_examples(batches), key=lambda example: example[:2]), key=lambda example: example[0]):
        same = list(of_length)
        parts = np.array_split(np.arange(len(same)), max(1, len(same) // PARTNERS))
        found += [_group([same[at] for at in places]) for places in parts]
    return found


def partner_batches(batches: Sequence[Batch]) -> list[Batch]:
    """The same data in batches of :func:`partners`.

    Args:
        batches: the data, with labels or without.
    """
    rows = ((batch, row, index) for batch in batches for row, index in enumerate(batch.index))
    labels = {index: batch.labels[row] for batch, row, index in rows if batch.labels is not None}
    return [
        Batch(group.inputs, group.index, torch.stack([labels[index] for index in group.index]) if labels else None)
        for group in partners(batches)
    ]


def without_partner(batches: Sequence[Batch]) -> int:
    """How many inputs there are whose length no other has."""
    return list(Counter(int(length) for batch in batches for length in batch.lengths).values()).count(1)


def _examples(batches: Sequence[Batch]) -> Iterator[_Example]:
    for batch in batches:
        for row, index in enumerate(batch.index):
            real = batch.mask[row]
            yield int(real.sum()), index, {name: ids[row][real] for name, ids in batch.inputs.items()}


def _group(examples: Sequence[_Example]) -> Group:
    return Group(
        [index for _, index, _ in examples],
        {name: torch.stack([inputs[name] for *_, inputs in examples]) for name in examples[0][2]},
    )
