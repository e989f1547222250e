"""Annotated words among the wordpieces of a model's inputs, and the token types of §4.4.

Words are found through the tokenizer's offsets, never by searching for strings.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .annotation import Annotated, Annotator, Word
from .batches import encode

if TYPE_CHECKING:
    from datasets import Dataset
    from tokenizers import Encoding
    from transformers import PreTrainedTokenizerBase

Positions = tuple[int, ...]
LONGEST = 128  # wordpieces of a sentence of a treebank
# Why one is left out.
TOO_LONG = f"longer than {LONGEST} wordpieces"
NOTHING_KEPT = "a word of which the tokenizer keeps nothing"
# Footnote 6 of the paper, with both apostrophes, and the spaces with which tokenised data sets write
# contractions ("do n't", "don 't"). An apostrophe joins a word to the next letter ("not's" is another
# word), and quotes it otherwise ("'not'").
_NEGATION = re.compile(
    r"(?<!\w)(?<!\w['’])(?:neither|nor|not|never|none|nothing|nowhere"
    r"|(?:do|wo|did|had|have|ca|is|was|should|could)\s?n\s?['’]\s?t)(?!\w|['’]\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class PlacedSentence:
    """A sentence, and the wordpieces of each of its words.

    Attributes:
        words: the words; their heads count words of this sentence.
        pieces: per word its positions in the input; empty for a word that the
            length limit took away, in whole or in part.
    """

    words: tuple[Word, ...]
    pieces: tuple[Positions, ...]

    @property
    def written(self) -> tuple[int, ...]:
        """Per word the number of its written word: words that share a wordpiece have one, as "de" and "le" in "du", "can" and "not"."""
        apart = (set(one).isdisjoint(other) for one, other in itertools.pairwise(self.pieces))
        return tuple(itertools.accumulate(apart, initial=0))

    @property
    def arcs(self) -> list[tuple[int, int, str]]:
        """Dependencies as (dependent, head, label), words by their written ones; none inside of one of these."""
        written = self.written
        arcs = [
            (written[at], written[word.head], word.deprel)
            for at, word in enumerate(self.words)
            if word.head >= 0
        ]
        return [(dependent, head, label) for dependent, head, label in arcs if dependent != head]

    @property
    def written_pieces(self) -> list[Positions]:
        """Per written word its positions in the input."""
        both = zip(self.written, self.pieces, strict=True)
        groups = itertools.groupby(both, lambda pair: pair[0])
        return [tuple({at for _, own in several for at in own}) for _, several in groups]


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
    def unusable(self) -> str:
        """Why it is left out where each word must be there; empty if each is."""
        return TOO_LONG if self.length > LONGEST else NOTHING_KEPT if self.lost else ""

    @property
    def words(self) -> list[tuple[Word, Positions]]:
        """Every word that is in the input, with its positions."""
        return [
            pair
            for sentence in self.sentences
            for pair in zip(sentence.words, sentence.pieces, strict=True)
            if pair[1]
        ]


def annotate_inputs(
    rows: Dataset | Mapping[str, Sequence[str]],
    fields: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int | None,
    annotator: Annotator,
) -> list[AnnotatedInput]:
    """Annotate rows, and place their words in what :func:`bertology_utils.batches.tokenize` makes of them.

    Args:
        rows: a Dataset, or columns by name.
        fields: the text columns, one or two.
        tokenizer: a fast tokenizer.
        max_length: wordpieces per input; None cuts nothing.
        annotator: see :mod:`bertology_utils.annotation`.

    Returns:
        One per row, in order.
    """
    texts = [list(rows[field]) for field in fields]
    if not texts[0]:
        return []
    annotated = map(annotator, texts)
    encoded = encode(tokenizer, *texts, max_length=max_length, return_offsets_mapping=True)
    both = zip(zip(*texts, strict=True), zip(*annotated, strict=True), strict=True)
    return [_placed(encoded[at], *one, tokenizer) for at, one in enumerate(both)]


def place_sentences(
    sentences: Mapping[str, Annotated], tokenizer: PreTrainedTokenizerBase
) -> dict[str, AnnotatedInput]:
    """Annotated sentences by their text, among their wordpieces."""
    rows, known = {"text": [*sentences]}, [*sentences.values()]
    placed = annotate_inputs(rows, ["text"], tokenizer, None, lambda texts: known)
    return dict(zip(sentences, placed, strict=True))


def _placed(
    encoding: Encoding,
    texts: Sequence[str],
    annotated: Sequence[Annotated],
    tokenizer: PreTrainedTokenizerBase,
) -> AnnotatedInput:
    sentences, negation, lost = [], [], 0
    for field, (text, parsed) in enumerate(zip(texts, annotated, strict=True)):
        # Offsets start at 0 in either text, so the other text's are blanked.
        offsets = [
            span if owner == field else (0, 0)
            for span, owner in zip(encoding.offsets, encoding.sequence_ids, strict=True)
        ]
        whole = offsets
        if encoding.overflowing:  # some of the row was cut off
            alone = encode(tokenizer, [text], return_offsets_mapping=True, add_special_tokens=False)
            (whole,) = alone["offset_mapping"]

        def place(start: int, stop: int) -> Positions:
            pieces = wordpieces(offsets, start, stop)
            return tuple(pieces if len(pieces) == len(wordpieces(whole, start, stop)) else ())

        for words in parsed:
            pieces = tuple(place(word.start, word.end) for word in words)
            sentences.append(PlacedSentence(words, pieces))
            lost += sum(not positions for positions in pieces)
        negation += [place(*match.span()) for match in _NEGATION.finditer(text)]
    ids = tuple(encoding.ids)
    return AnnotatedInput(
        ids,
        tuple(encoding.tokens),
        tuple(at for at, one in enumerate(ids) if one == tokenizer.cls_token_id),
        tuple(at for at, one in enumerate(ids) if one == tokenizer.sep_token_id),
        tuple(sentences),
        tuple(positions for positions in negation if positions),
        lost,
    )


def wordpieces(offsets: Sequence[tuple[int, int]], start: int, end: int) -> list[int]:
    """Positions of the wordpieces that share a character with a stretch of text.

    Args:
        offsets: per wordpiece, its characters (start, end) with ``end``
            excluded; (0, 0) for special tokens, as fast tokenizers give them.
        start, end: the stretch, ``end`` excluded.

    Returns:
        Positions in order; empty if the stretch was cut off or holds nothing
        that the tokenizer keeps.
    """
    return [index for index, (a, b) in enumerate(offsets) if a < b and a < end and start < b]


# Labels of Universal Dependencies, and ClearNLP's where it has another.
NOUNS = {"NOUN", "PROPN"}
SUBJECTS = {"nsubj", "nsubj:pass", "nsubjpass"}

_WORDS: dict[str, Callable[[Word], bool]] = {
    "nouns": lambda word: word.upos in NOUNS,
    "verbs": lambda word: word.upos == "VERB",
    "pronouns": lambda word: word.upos == "PRON",
    "subjects": lambda word: word.deprel in SUBJECTS,
    "objects": lambda word: word.deprel in ("obj", "dobj"),
    "punctuation": lambda word: word.upos == "PUNCT",
}
LINGUISTIC = ("nouns", "verbs", "pronouns", "subjects", "objects", "negation")
MARKS = ("[CLS]", "[SEP]", "punctuation")
TOKEN_TYPES = LINGUISTIC + MARKS


def token_types(annotated: AnnotatedInput) -> np.ndarray:
    """Which wordpieces of an input are of which type (§4.4).

    Every wordpiece of a word counts. Nouns include proper nouns, verbs exclude auxiliaries, subjects
    and objects are the words that head them.

    Returns:
        Shape (types, wordpieces), True where a wordpiece is of the type; types in the order of
        :data:`TOKEN_TYPES`.
    """
    places = {
        kind: [at for word, pieces in annotated.words if wanted(word) for at in pieces]
        for kind, wanted in _WORDS.items()
    }
    places["negation"] = [at for pieces in annotated.negation for at in pieces]
    places |= {"[CLS]": [*annotated.cls], "[SEP]": [*annotated.separators]}
    return np.stack([np.isin(range(annotated.length), places[kind]) for kind in TOKEN_TYPES])
