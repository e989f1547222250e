"""The rows' annotation as CoNLL-U (https://universaldependencies.org/format.html).

A row is a document, each of its texts a paragraph. Negative words have
``Polarity=Neg`` in FEATS; a pronoun's antecedent, the number of a word of the
same sentence, stands in MISC as ``Antecedent``; what a pair's derivation
changed, in the comment ``change``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bertology_utils.annotation.annotators import Sentence

from .rows import Row


def treebank(rows: Sequence[Row]) -> str:
    """The text of a .conllu file."""
    return "".join(f"{line}\n" for number, row in enumerate(rows) for line in _row(number, row))


def _row(number: int, row: Row) -> Iterator[str]:
    yield f"# newdoc id = {number}"
    if row.change:
        yield f"# change = {row.change}"
    for field, sentences in row.sentences.items():
        yield f"# newpar id = {number}-{field}"
        for place, sentence in enumerate(sentences, start=1):
            yield f"# sent_id = {number}-{field}-{place}"
            yield f"# text = {sentence.text}"
            yield from _words(sentence)
            yield ""


def _words(sentence: Sentence) -> Iterator[str]:
    for number, word in enumerate(sentence.words, start=1):
        after = sentence.words[number : number + 1]
        misc = [] if word.antecedent is None else [f"Antecedent={word.antecedent + 1}"]
        misc += ["SpaceAfter=No"] if after and after[0].start == word.end else []
        yield "\t".join(
            [
                str(number),
                word.form,
                word.lemma,
                word.upos,
                "_",
                "Polarity=Neg" if word.negation else "_",
                str(word.head + 1),
                word.deprel,
                "_",
                "|".join(misc) or "_",
            ]
        )
