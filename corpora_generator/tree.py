"""Ordered dependency trees and their linearisation."""

from __future__ import annotations

from dataclasses import dataclass, field

from bertology_utils.annotation.annotators import Sentence, Word

from .inflection import article

NEGATIONS = frozenset("no not never none neither nor nothing nowhere hardly".split())


@dataclass
class Node:
    """A word with its dependents, those before it and those after it.

    Keeping dependents in order on either side makes every tree projective and
    gives each word exactly one head, whatever is built.

    Args:
        form: The inflected word; ``"a"`` becomes "an" where the next word asks for it.
        lemma: Its lemma.
        upos: Universal part of speech.
        deprel: Relation to its head.
        before: Dependents to the left, in order.
        after: Dependents to the right, in order.
        mark: A name by which a pronoun can refer to this word.
        refers: The ``mark`` of a pronoun's antecedent.
    """

    form: str
    lemma: str
    upos: str
    deprel: str = "root"
    before: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)
    mark: str = ""
    refers: str = ""


def _in_order(node: Node, head: Node | None) -> list[tuple[Node, Node | None]]:
    left = [pair for child in node.before for pair in _in_order(child, node)]
    right = [pair for child in node.after for pair in _in_order(child, node)]
    return [*left, (node, head), *right]


def _spell(nodes: list[Node]) -> list[str]:
    forms = [
        article(nodes[i + 1].form) if node.form == "a" else node.form
        for i, node in enumerate(nodes)
    ]
    forms[0] = forms[0][0].upper() + forms[0][1:]
    return forms


def _antecedent(nodes: list[Node], at: int) -> int | None:
    """The nearest word before a pronoun with the mark it refers to, or the first after it."""
    bearers = [i for i, node in enumerate(nodes) if node.mark and node.mark == nodes[at].refers]
    before = [i for i in bearers if i < at]
    return before[-1] if before else bearers[0] if bearers else None


def linearise(root: Node) -> Sentence:
    """Read a tree from left to right.

    Args:
        root: The tree, its final punctuation included.

    Returns:
        The sentence, with one word per node.
    """
    pairs = _in_order(root, None)
    nodes = [node for node, _ in pairs]
    position = {id(node): i for i, node in enumerate(nodes)}
    text, words = "", []
    for at, ((node, head), form) in enumerate(zip(pairs, _spell(nodes), strict=True)):
        if text and node.upos != "PUNCT":
            text += " "
        start = len(text)
        text += form
        words.append(
            Word(
                form,
                node.lemma,
                start,
                len(text),
                node.upos,
                -1 if head is None else position[id(head)],
                node.deprel,
                node.form.lower() in NEGATIONS or node.form.endswith("n't"),
                _antecedent(nodes, at),
            )
        )
    return Sentence(text, tuple(words))
