"""Do heads point along dependencies, as Clark et al. (2019, §4) ask it? The §4.5 question for whole relations.

Maps of wordpieces become maps of words: attention to a word is the sum over
its pieces, attention from a word the mean. A head points from a word at the
other word of the sentence to which it attends most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..annotation.annotators import RELATIONS, Annotator, Treebank, sentences_of, too_few_arcs
from ..annotation.inputs import NOUNS, AnnotatedInput, PlacedSentence, annotate_inputs
from ..attention import Batch, observe
from ..attention.batches import batches_of
from ..common import Head, head_name
from ..statistics import ONE_SIDED, Bootstrap, Seed, bootstrap, largest, many_test, mean_over_seeds
from ..verdicts import MIN_EXAMPLES, WEIGHT, Support

if TYPE_CHECKING:
    import pandas as pd
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


WAYS = ("dependent → head", "head → dependent")
ROWS = (  # of results.json: what, the part of a RelationTest, its unit
    ("share of arcs that the best head finds", "accuracy", "share"),
    ("share of arcs that the best fixed distance finds", "baseline", "share"),
    ("share of arcs that the nearest word of a kind finds", "by_rule", "share"),
    ("best head above the best fixed distance", "difference", "gain"),
    ("best head above the nearest word of a kind", "above_rule", "gain"),
    ("arcs", "arcs", "count"),
)
FOUND = tuple(what for what, *_ in ROWS[:3])
FURTHEST = 10  # words; how far the fixed offsets reach
# A rule points from a word at the nearest word of one part of speech, as Universal Dependencies has
# them ("NOUN" with proper nouns), on one side or on either.
TAGS = tuple("NOUN VERB AUX ADJ ADV PRON DET ADP NUM CCONJ SCONJ PART INTJ SYM X PUNCT".split())
SIDES = ("before", "after", "on either side")
RULES = tuple(f"{tag} {side}" for tag in TAGS for side in SIDES)
MAX_LENGTH = 128  # wordpieces of a treebank's sentence; longer ones are left out


@dataclass(frozen=True)
class Published:
    """A row of Clark et al.'s Table 1: bert-base-uncased on the Wall Street Journal part of the Penn Treebank.

    Attributes:
        at: the best head, (layer, head) from 0.
        accuracy: its share of right arcs, in percent.
        offset: that of the best fixed distance, in percent.
    """

    at: Head
    accuracy: float
    offset: float


CLARK = {  # from dependent to head; there "8-2", "8-10", "4-10" and "8-11": counted from 1
    "nsubj": Published((7, 1), 58.5, 45.5),
    "obj": Published((7, 9), 86.8, 40.0),
    "amod": Published((3, 9), 75.6, 68.3),
    "det": Published((7, 10), 94.3, 51.7),
}


# Where heads point.


@dataclass(frozen=True)
class Arcs:
    """All dependencies of one relation, and where they and the heads point.

    Attributes:
        example: which example each arc is in, shape (arcs,); its sentences share a map.
        offset: head minus dependent in words, shape (arcs,).
        hits: True where an attention head points right, shape (ways, arcs, layers, heads).
        by_rule: True where each of :data:`RULES` points right, shape (ways, arcs, rules).
    """

    example: np.ndarray
    offset: np.ndarray
    hits: np.ndarray
    by_rule: np.ndarray


class Pointing:
    """Measurement: does each head point along the arcs of each relation?

    Args:
        inputs: per example of the data.
        relations: by name the labels of a relation's arcs.
    """

    def __init__(
        self, inputs: Sequence[AnnotatedInput], relations: Mapping[str, set[str]] = RELATIONS
    ):
        self._inputs, self._relations = inputs, relations
        wanted = set().union(*relations.values())
        self._sentences = [
            [
                _Sentence(sentence, wanted)
                for sentence in annotated.sentences
                if all(sentence.pieces) and len(set(sentence.written)) > 1
            ]
            for annotated in inputs
        ]
        self._hits: dict[int, list[list[np.ndarray]]] = {}

    def depends_on(self) -> tuple[object, ...]:
        """What decides its result; see :func:`bertology_utils.digest.fingerprint`."""
        return self._inputs, dict(self._relations)

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        for index, own in zip(batch.index, maps.cpu(), strict=True):
            self._hits.setdefault(index, []).append(
                [sentence.hits(own) for sentence in self._sentences[index]]
            )

    def compute(self) -> dict[str, Arcs]:
        """Arcs of each relation."""
        return {name: self._arcs_of(labels) for name, labels in self._relations.items()}

    def _arcs_of(self, labels: set[str]) -> Arcs:
        numbers, offsets, hits = [], [], [np.zeros((len(WAYS), 0, 0, 0), dtype=bool)]
        by_rule = [np.zeros((len(WAYS), 0, len(RULES)), dtype=bool)]
        for index in sorted(self._hits):
            for at, sentence in enumerate(self._sentences[index]):
                chosen = [arc for arc, label in enumerate(sentence.labels) if label in labels]
                numbers += [index] * len(chosen)
                offsets += (sentence.heads - sentence.dependents)[chosen].tolist()
                # (ways, arcs, layers, heads)
                hits.append(np.stack([layer[at][:, chosen] for layer in self._hits[index]], axis=2))
                by_rule.append(sentence.by_rule[:, chosen])
        whole, rules = np.concatenate(hits[1:] or hits, axis=1), np.concatenate(by_rule, axis=1)
        return Arcs(np.array(numbers, int), np.array(offsets, int), whole, rules)


def points_at(maps: torch.Tensor, sentence: PlacedSentence) -> np.ndarray:
    """The written word of a sentence, from 0, at which each head points from every one: to which it attends most, itself apart.

    Args:
        maps: of the input, shape (…, tokens, tokens).
        sentence: with all of its wordpieces.

    Returns:
        Shape (…, written words).
    """
    first, last = sentence.span
    own = slice(first, last + 1)
    member = torch.zeros(max(sentence.written) + 1, last + 1 - first, dtype=maps.dtype)
    for word, pieces in zip(sentence.written, sentence.pieces, strict=True):
        member[word, [at - first for at in pieces]] = 1  # (written words, wordpieces)
    words = member / member.sum(dim=1, keepdim=True) @ maps[..., own, own] @ member.T
    words.diagonal(dim1=-2, dim2=-1).fill_(-1)
    return words.argmax(dim=-1).numpy()


class _Sentence:
    """What a whole sentence needs to be scored: words to wordpieces, and its arcs."""

    def __init__(self, sentence: PlacedSentence, wanted: set[str]):
        arcs = [arc for arc in sentence.arcs if arc[2] in wanted]
        self.dependents = np.array([dependent for dependent, _, _ in arcs], dtype=int)
        self.heads = np.array([head for _, head, _ in arcs], dtype=int)
        self.labels = [label for *_, label in arcs]
        self.sentence = sentence
        self.by_rule = self._right(nearest_words(sentence))

    def hits(self, maps: torch.Tensor) -> np.ndarray:
        """Shape (ways, arcs, heads), for one layer's maps of the example, (heads, tokens, tokens)."""
        return self._right(points_at(maps, self.sentence))

    def _right(self, points_at: np.ndarray) -> np.ndarray:
        """Which arcs are found, (ways, arcs, pointers), by the word at which each one points, (pointers, words)."""
        to_heads = self.heads[:, None] == points_at[:, self.dependents].T
        to_dependents = self.dependents[:, None] == points_at[:, self.heads].T
        return np.stack([to_heads, to_dependents])


def nearest_words(sentence: PlacedSentence) -> np.ndarray:
    """The written word at which each of :data:`RULES` points from every one, -1 for none: shape (rules, written words)."""
    numbers, written = np.arange(max(sentence.written) + 1), sentence.written
    points_at = []
    for tag in TAGS:
        of_tag = NOUNS if tag == "NOUN" else {tag}
        both = zip(written, sentence.words, strict=True)
        there = np.array(sorted({at for at, word in both if word.upos in of_tag}), dtype=int)
        # With a place on either side that stands for none.
        padded = np.concatenate([[-1], there, [-1]])
        before = padded[np.searchsorted(there, numbers, "left")]
        after = padded[np.searchsorted(there, numbers, "right") + 1]
        is_nearer = (after >= 0) & ((before < 0) | (after - numbers < numbers - before))
        points_at += [before, after, np.where(is_nearer, after, before)]
    return np.stack(points_at)


def joined(parts: Sequence[Arcs]) -> Arcs:
    """The arcs of several data sets as one, examples numbered through."""
    ends = np.cumsum([0, *(part.example.max(initial=-1) + 1 for part in parts)])
    hits = [part.hits for part in parts if len(part.offset)]
    return Arcs(
        np.concatenate([part.example + at for part, at in zip(parts, ends, strict=False)]),
        np.concatenate([part.offset for part in parts]),
        np.concatenate(hits, axis=1) if hits else parts[0].hits,
        np.concatenate([part.by_rule for part in parts], axis=1),
    )


# The best head against the best fixed distance, and against the nearest word of a kind.


@dataclass(frozen=True)
class RelationTest:
    """One relation's best head against the best fixed offset and the best rule, on examples that chose none of them.

    Attributes:
        arcs: how many were measured.
        way: the direction in which heads do best.
        offset, baseline: the best fixed offset from the attending word, and its accuracy.
        head: (layer, head) from 0 of the highest accuracy.
        accuracy: its accuracy.
        difference: accuracy minus baseline.
        beats: heads that beat the offset, corrected over all heads and both ways.
        p: of the best head beating the offset, so corrected.
        rule, by_rule: the best of :data:`RULES`, and its accuracy.
        above_rule, p_rule: accuracy minus the rule's; and p of the best head beating the rule.
    """

    arcs: int
    way: str
    offset: int
    baseline: Bootstrap
    head: Head
    accuracy: Bootstrap
    difference: Bootstrap
    beats: tuple[Head, ...]
    p: float
    rule: str
    by_rule: Bootstrap
    above_rule: Bootstrap
    p_rule: float

    @property
    def support(self) -> Support:
        """Support for some head that beats the offset; against it, that the best one is significantly less than 0.02 ahead."""
        below = (-mean_over_seeds([self.difference])).p_above(-WEIGHT)
        points = f"{self.difference.text(100, 1, sign=True)} points"
        number = f"{head_name(*self.head)} {points}; n={self.difference.n}"
        return Support(0.0 if self.beats else 1.0, below, number, self.difference.value)


def best_offset(offsets: np.ndarray) -> int:
    """The most frequent offset (nearest first among equals), of at most ten words either way."""
    candidates = [sign * distance for distance in range(1, FURTHEST + 1) for sign in (-1, 1)]
    return max(candidates, key=lambda offset: np.count_nonzero(offsets == offset))


def relation_test(arcs: Arcs, seed: Seed, ways: Sequence[int] = (0, 1)) -> RelationTest:
    """Which heads point along a relation more often than the best fixed offset and the best rule do?

    Head, offset and rule are chosen on one half of the examples and measured on the other, so that
    no luck of the choice is in the numbers. Examples are resampled, since their arcs share a map.
    In the tests the sign of an example's difference is exchanged.

    Args:
        arcs: from :class:`Pointing`, in two examples at least.
        seed: of halving, resampling and permutations.
        ways: the directions to choose from, places in :data:`WAYS`.
    """
    examples, of_arcs = np.unique(arcs.example, return_inverse=True)
    drawn = np.random.default_rng(seed).permutation(len(examples))
    chooses = (drawn < len(examples) // 2)[of_arcs]  # True at arcs of the one half
    hits = arcs.hits[list(ways)].astype(float)  # (ways, arcs, layers, heads)
    best, *place = largest(hits[:, chooses].mean(axis=1))
    head = place[0], place[1]
    offsets = np.stack([-arcs.offset if way else arcs.offset for way in ways])  # (ways, arcs)
    chosen = [best_offset(each[chooses]) for each in offsets]
    by_offset = (offsets == np.array(chosen)[:, None]).astype(float)
    rules = arcs.by_rule[list(ways)].astype(float)  # (ways, arcs, rules)
    rule = rules[:, chooses].mean(axis=1).argmax(axis=1)  # of each way
    by_rule = np.stack([of_way[:, at] for of_way, at in zip(rules, rule, strict=True)])
    _, groups = np.unique(arcs.example[~chooses], return_inverse=True)
    p, p_rule = (
        many_test(sums_of_examples(differences.swapaxes(0, 1), groups), 0.0, seed).above
        for differences in (
            (hits - of[..., None, None])[:, ~chooses] for of in (by_offset, by_rule)
        )
    )  # each (ways, layers, heads)
    beats = [tuple((int(at), int(of)) for at, of in np.argwhere(each < ONE_SIDED)) for each in p]
    own, other, ruled = (
        values[best, ~chooses] for values in (hits[:, :, *head], by_offset, by_rule)
    )
    accuracy, baseline, difference, of_rule, above_rule = (
        _mean_over_arcs(values, groups, seed)
        for values in (own, other, own - other, ruled, own - ruled)
    )
    return RelationTest(
        arcs=len(own),
        way=WAYS[ways[best]],
        offset=chosen[best],
        baseline=baseline,
        head=head,
        accuracy=accuracy,
        difference=difference,
        beats=beats[best],
        p=float(p[(best, *head)]),
        rule=RULES[rule[best]],
        by_rule=of_rule,
        above_rule=above_rule,
        p_rule=float(p_rule[(best, *head)]),
    )


def chosen_and_measured(name: str, arcs: Arcs, seed: Seed) -> list[dict[str, object]]:
    """:func:`relation_test` of either direction of a relation: a row for each of :data:`WAYS`; see :func:`head_dependencies`."""
    rows = []
    for way in range(len(WAYS)):
        test = relation_test(arcs, seed, [way])
        row: dict[str, object] = {"relation": name, "direction": test.way, "arcs": test.arcs}
        row["best head"] = head_name(*test.head)
        shares = {"head": test.accuracy, "distance": test.baseline, "rule": test.by_rule}
        for title, share in shares.items():
            row[f"{title}: share of arcs"] = share.value
            row[f"{title}: low"], row[f"{title}: high"] = share.interval
        row |= {"best fixed distance": test.offset, "p": test.p}
        rows.append(row | {"best rule": test.rule, "p, rule": test.p_rule})
    return rows


def sums_of_examples(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Sums over the arcs of each example: (arcs, …) to (examples, …)."""
    sums = np.zeros((groups.max() + 1, *values.shape[1:]))
    np.add.at(sums, groups, values)
    return sums


def _mean_over_arcs(values: np.ndarray, groups: np.ndarray, seed: Seed) -> Bootstrap:
    """Mean over arcs, the examples that they are grouped by resampled."""
    sums, sizes = sums_of_examples(values, groups), np.bincount(groups)
    return bootstrap(lambda rows: sums[rows].sum() / sizes[rows].sum(), len(sizes), seed)


# Any encoder on any treebank.


def head_dependencies(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    treebank: str | Path,
    relations: Collection[str] = (),
    seed: int = 1,
) -> pd.DataFrame:
    """The head that points best along each dependency of a treebank, beside the best fixed distance (Clark et al., 2019).

    A head points from a word at the word of its sentence to which it attends most. Words that
    share one written word, such as "de" and "le" in "du", share its wordpieces: they count as one
    word, and arcs between them are left out. Head, distance and rule ("the nearest verb") are
    chosen on one half of the sentences and measured on the other, so that no luck of the choice is
    in the numbers. Sentences of more than :data:`MAX_LENGTH` wordpieces are left out.

    Args:
        model: encoder or classifier in evaluation mode.
        tokenizer: its own, a fast one.
        treebank: a CoNLL-U file, plain or packed (.conllu.gz). Of a sentence that stands there
            twice, one counts.
        relations: labels, such as "nsubj"; by default all that enough sentences of either half
            have, but no punctuation.
        seed: of the halving, of resampling and permutations.

    Returns:
        A row for each relation and direction ("dependent → head", "head → dependent"), in the order
        of their arcs: the measured arcs; the best head, "(layer, head)" from 1; the shares of arcs
        that it, the best fixed distance and the best of :data:`RULES` find, with 95 % intervals over
        sentences; that distance in words, and that rule; and the p of the head beating either,
        corrected over all heads.
        ``attrs["left out"]`` says by reason how many sentences, or arcs, are not measured.

    Raises:
        FileNotFoundError, ValueError: no such file, or it is not CoNLL-U; a relation that too few
            of its sentences have.
    """
    import pandas as pd

    bank = sentences_of(treebank)
    inputs, left_out = inputs_of(bank, tokenizer)
    counts = Counter(label for one in inputs.values() for label in set(_labels(one)))
    most = sorted(counts, key=lambda label: (-counts[label], label))
    enough = [label for label in most if counts[label] >= 2 * MIN_EXAMPLES]
    if not enough:
        reason = f"no relation is in {2 * MIN_EXAMPLES} of its sentences"
        raise ValueError(_too_small(bank, left_out, reason))
    if few := [label for label in relations if label not in enough]:
        raise ValueError(
            f"{few[0]!r} is in {counts[few[0]]} sentences of {bank.name}, and {2 * MIN_EXAMPLES} are"
            f" wanted; choose of: {', '.join(enough)}"
        )
    chosen = [label for label in enough if label in (relations or {*enough} - {"punct"})]
    pointing = Pointing(list(inputs.values()), {name: {name} for name in chosen})
    batches = batches_of(list(inputs), tokenizer, max_length=MAX_LENGTH)
    arcs = observe(model, batches, {"pointing": pointing})["pointing"]
    table = pd.DataFrame(
        [row for name in chosen for row in chosen_and_measured(name, arcs[name], seed)]
    )
    table.attrs["left out"] = left_out
    return table


def inputs_of(
    bank: Treebank, tokenizer: PreTrainedTokenizerBase, least: int = 0
) -> tuple[dict[str, AnnotatedInput], dict[str, int]]:
    """A treebank's sentences as inputs of a model, by their text, and what is left out.

    Args:
        bank: from :func:`bertology_utils.annotation.annotators.sentences_of`.
        tokenizer: the model's, a fast one.
        least: arcs that one of :data:`bertology_utils.annotation.annotators.RELATIONS` must have.

    Returns:
        The inputs; and by reason, how many sentences or arcs are left out.

    Raises:
        ValueError: too few arcs are left.
    """
    sentences = bank.sentences
    known = Annotator(bank.name, False, lambda texts: [sentences[text] for text in texts])
    placed = annotate_inputs({"text": list(sentences)}, ["text"], tokenizer, None, known)
    left_out, inputs = Counter(bank.left_out), {}
    for text, one in zip(sentences, placed, strict=True):
        if one.length > MAX_LENGTH:
            left_out[_TOO_LONG] += 1
        elif one.lost:
            left_out["a word of which the tokenizer keeps nothing"] += 1
        else:
            inputs[text] = one
            heads = sum(word.head >= 0 for word, _ in one.words)
            if inside := heads - len(_labels(one)):
                left_out["arcs inside a written word"] += inside
    labels = (label for one in inputs.values() for label in _labels(one))
    if counted := too_few_arcs(labels, least):
        reason = f"left are {counted} dependencies, and {least} of one of them are wanted"
        raise ValueError(_too_small(bank, left_out, reason))
    return inputs, dict(left_out)


_TOO_LONG = f"longer than {MAX_LENGTH} wordpieces"


def _labels(annotated: AnnotatedInput) -> list[str]:
    return [label for sentence in annotated.sentences for *_, label in sentence.arcs]


def _too_small(bank: Treebank, left_out: Mapping[str, int], reason: str) -> str:
    """The message about a treebank that leaves too little."""
    total = len(bank.sentences) + len(bank.faults)
    parts = [bank.faults_in_words(), reason]
    if count := left_out.get(_TOO_LONG):
        parts.insert(0, f"of its {total} sentences {count} are {_TOO_LONG}")
    return f"{bank.name} is too small: {'; '.join(filter(None, parts))}"
