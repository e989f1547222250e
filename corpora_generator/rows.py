"""What the generator makes: rows of text with their gold annotation."""

from __future__ import annotations

from dataclasses import dataclass

from bertology_utils.annotation.annotators import Annotated


@dataclass(frozen=True)
class Row:
    """One example: texts by field name, a label, the gold, and what was changed.

    ``change`` names what the derivation of a pair altered ("role swap"); it is
    empty for tasks of a single sentence. Contracted negations ("didn't") are one
    word, so that a word never ends inside a wordpiece.
    """

    text: dict[str, str]
    label: int | float
    sentences: dict[str, Annotated]
    change: str = ""
