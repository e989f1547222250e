"""Filling a split with rows: balance, held-out words, no duplicates."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from bertology_utils.annotation.annotators import Sentence

from .compose import Composer
from .lexicon import held_out_lemmas
from .rows import Row
from .vocabulary import Vocabulary

Made = tuple[dict[str, Sequence[Sentence]], float, str] | None
LONGEST, SHORTEST = 26, 4
# A held-out word counts where it says who does what to whom, or what somebody is like.
CORE = (
    "root",
    "nsubj",
    "nsubj:pass",
    "obj",
    "iobj",
    "obl:agent",
    "ccomp",
    "conj",
    "acl",
    "csubj",
    "amod",
)


def fill(
    task: str, seed: int, sizes: dict[str, int], labels: int, make: Callable[[Composer, int], Made]
) -> dict[str, list[Row]]:
    """Make the rows of every split.

    Args:
        task: Name of the task, part of the seed.
        seed: Seed.
        sizes: Rows per split, by split name.
        labels: Number of classes; rows take them in turn, so they balance.
        make: Makes the sentences of one row for a wanted label, with the gold
            label and the name of the change; or None, to be asked again.

    Returns:
        The rows by split name, in shuffled order.
    """
    seen: set[tuple[str, ...]] = set()
    splits = {}
    for split, size in sizes.items():
        rng = random.Random(f"{task}-{seed}-{split}")
        composer = Composer(Vocabulary(rng, split == "validation"))
        rows: list[Row] = []
        while len(rows) < size:
            row = _row(make(composer, len(rows) % labels))
            if row and _fits(row, split) and (key := tuple(row.text.values())) not in seen:
                seen.add(key)
                rows.append(row)
        rng.shuffle(rows)
        splits[split] = rows
    return splits


def _row(made: Made) -> Row | None:
    if made is None:
        return None
    fields, label, change = made
    sentences = {name: tuple(items) for name, items in fields.items()}
    text = {name: " ".join(item.text for item in items) for name, items in sentences.items()}
    return Row(text, label, sentences, change)


def _fits(row: Row, split: str) -> bool:
    if len(row.text) == 2 and len(set(row.text.values())) == 1:
        return False
    sentences = [sentence for items in row.sentences.values() for sentence in items]
    if not all(SHORTEST <= len(sentence.words) <= LONGEST for sentence in sentences):
        return False
    held = [
        word.deprel
        for sentence in sentences
        for word in sentence.words
        if word.lemma in held_out_lemmas()
    ]
    return any(relation in CORE for relation in held) if split == "validation" else not held
