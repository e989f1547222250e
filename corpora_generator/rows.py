"""Rows of text with their annotation, and how a task's splits are filled with them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from bertology_utils.annotation.annotators import Annotated
from bertology_utils.glue import Task

from .clauses import Clause, Linked
from .compose import Composer
from .lexicon import HELD_OUT
from .realise import realise

SIZES = {"train": 960, "validation": 320}
# The derivations of a row's texts, its label, and what sets them apart; None if none fits.
Made = tuple[tuple[Clause | Linked, ...], float, str] | None
# A held-out word counts where it says who does what to whom, or what somebody is like.
CORE = {"root", "nsubj", "nsubj:pass", "obj", "iobj", "obl:agent", "conj", "amod"}


@dataclass(frozen=True)
class Row:
    """One example: its texts by field, the label, and what an edit changed in a pair.

    A contracted negation ("didn't") is one word, so that no word ends inside a wordpiece.
    """

    sentences: dict[str, Annotated]
    label: float
    change: str

    @property
    def text(self) -> dict[str, str]:
        """The texts by field."""
        return {field: sentence.text for field, (sentence,) in self.sentences.items()}


def fill(task: Task, make: Callable[[Composer, int], Made], labels: int) -> dict[str, list[Row]]:
    """The rows of both splits, in shuffled order, without duplicates.

    Args:
        task: The task.
        make: Makes a row for a wanted label, or None, and is then called again.
        labels: The number of labels; rows take them in turn, so they are balanced.
    """
    seen: set[tuple[str, ...]] = set()
    splits = {}
    for split, size in SIZES.items():
        rng = random.Random(f"{task.name}-0-{split}")
        composer = Composer(rng, dev=split == "validation")
        rows: list[Row] = []
        while len(rows) < size:
            if (made := make(composer, len(rows) % labels)) is None:
                continue
            derivations, label, change = made
            sentences = [realise(derivation) for derivation in derivations]
            key = tuple(sentence.text for sentence in sentences)
            words = [word for sentence in sentences for word in sentence.words]
            held_out = {word.deprel for word in words if word.lemma in HELD_OUT}
            fits = held_out & CORE if composer.dev else not held_out
            if fits and key not in seen:
                seen.add(key)
                annotated = [(sentence,) for sentence in sentences]
                rows.append(Row(dict(zip(task.fields, annotated, strict=True)), label, change))
        rng.shuffle(rows)
        splits[split] = rows
    return splits
