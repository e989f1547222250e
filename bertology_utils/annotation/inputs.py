"""Where annotated words stand among the wordpieces of a model's inputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .alignment import wordpieces
from .base import Annotated, Annotator, Word

if TYPE_CHECKING:
    from datasets import Dataset
    from tokenizers import Encoding
    from transformers import PreTrainedTokenizerBase

Positions = tuple[int, ...]
# Footnote 6 of the paper.
NEGATION_WORDS = (
    "neither nor not never none don't won't didn't hadn't haven't can't isn't wasn't shouldn't couldn't nothing nowhere"
).split()


def _pattern(word: str) -> str:
    # Both apostrophes, and the spaces with which tokenised data sets write contractions ("do n't", "don 't").
    return word if "'" not in word else word.removesuffix("n't") + r"\s?n\s?['’]\s?t"


# An apostrophe joins a word to the next letter ("not's" is another word), and quotes it otherwise ("'not'").
_NEGATION = re.compile(rf"(?<!\w)(?<!\w['’])(?:{'|'.join(map(_pattern, NEGATION_WORDS))})(?!\w|['’]\w)", re.IGNORECASE)


@dataclass(frozen=True)
class PlacedSentence:
    """A sentence, and the wordpieces of each of its words.

    Attributes:
        words: the words; their heads and antecedents count words of this sentence.
        pieces: per word its positions in the input; empty for a word that the
            length limit took away, in whole or in part.
    """

    words: tuple[Word, ...]
    pieces: tuple[Positions, ...]

    @property
    def span(self) -> tuple[int, int]:
        """First and last position of the sentence's words in the input; (0, -1) if nothing of it is left."""
        there = [position for positions in self.pieces for position in positions]
        return (min(there), max(there)) if there else (0, -1)


@dataclass(frozen=True)
class AnnotatedInput:
    """One model input with its annotation.

    Attributes:
        ids: the wordpieces, special tokens included.
        pieces: the same as strings.
        cls: positions of the tokenizer's ``cls_token``, such as [CLS] or <s>.
        separators: positions of its ``sep_token``, such as [SEP] or </s>.
        sentences: of the first text, then of the second.
        negation: per negation word (footnote 6) its positions.
        lost: words that the length limit took away.
    """

    ids: Positions
    pieces: tuple[str, ...]
    cls: Positions
    separators: Positions
    sentences: tuple[PlacedSentence, ...]
    negation: tuple[Positions, ...]
    lost: int

    @property
    def length(self) -> int:
        """Wordpieces, special tokens included."""
        return len(self.ids)

    @property
    def special(self) -> Positions:
        """Positions of :attr:`cls` and :attr:`separators`."""
        return self.cls + self.separators

    @property
    def words(self) -> list[tuple[Word, Positions]]:
        """Every word that is in the input, with its positions."""
        return [pair for sentence in self.sentences for pair in zip(sentence.words, sentence.pieces, strict=True) if pair[1]]


def annotate_inputs(
    rows: Dataset | Mapping[str, Sequence[str]],
    fields: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    annotator: Annotator,
) -> list[AnnotatedInput]:
    """Annotate rows, and place their words in what :func:`bertology_utils.attention.batches.tokenize` makes of them.

    Args:
        rows: a Dataset, or columns by name.
        fields: the text columns, one or two.
        tokenizer: a fast tokenizer.
        max_length: wordpieces per input.
        annotator: see :mod:`bertology_utils.annotation.annotators`.

    Returns:
        One per row, in order.
    """
    texts = [list(rows[field]) for field in fields]
    if not texts[0]:
        return []
    annotated = annotator.annotate([text for column in texts for text in column])
    count = len(texts[0])
    by_field = [annotated[start : start + count] for start in range(0, len(annotated), count)]
    encoded = tokenizer(*texts, truncation=True, max_length=max_length, return_offsets_mapping=True)
    return [
        _placed(encoded[row], [column[row] for column in texts], [column[row] for column in by_field], tokenizer)
        for row in range(count)
    ]


def _placed(
    encoding: Encoding, texts: Sequence[str], annotated: Sequence[Annotated], tokenizer: PreTrainedTokenizerBase
) -> AnnotatedInput:
    sentences, negation, lost = [], [], 0
    for field, (text, parsed) in enumerate(zip(texts, annotated, strict=True)):
        # Offsets start at 0 in either text, so the other text's are blanked.
        offsets = [
            span if owner == field else (0, 0) for span, owner in zip(encoding.offsets, encoding.sequence_ids, strict=True)
        ]
        limit = _first_cut_off(encoding, field, offsets)

        def place(start: int, stop: int) -> Positions:
            return () if stop > limit else tuple(wordpieces(offsets, start, stop))

        for sentence in parsed:
            pieces = tuple(place(word.start, word.end) for word in sentence.words)
            sentences.append(PlacedSentence(sentence.words, pieces))
            lost += sum(not positions for positions in pieces)
        negation += [place(*match.span()) for match in _NEGATION.finditer(text)]
    ids = tuple(encoding.ids)
    return AnnotatedInput(
        ids,
        tuple(encoding.tokens),
        _where(ids, tokenizer.cls_token_id),
        _where(ids, tokenizer.sep_token_id),
        tuple(sentences),
        tuple(positions for positions in negation if positions),
        lost,
    )


def _first_cut_off(encoding: Encoding, field: int, offsets: Sequence[tuple[int, int]]) -> float:
    """Where in its text the first wordpiece starts that the length limit took away; infinite if there is none."""
    end = max((stop for _, stop in offsets), default=0)
    # An overflowing part repeats what it has in common with the input.
    starts = [
        start
        for part in encoding.overflowing
        for (start, stop), owner in zip(part.offsets, part.sequence_ids, strict=True)
        if owner == field and start < stop and start >= end
    ]
    return min(starts, default=float("inf"))


def _where(ids: Positions, wanted: int | None) -> Positions:
    return tuple(position for position, number in enumerate(ids) if number == wanted)


def mask(length: int, positions: Iterable[int]) -> np.ndarray:
    """True at the given positions, shape (length,)."""
    chosen = np.zeros(length, dtype=bool)
    chosen[list(positions)] = True
    return chosen
