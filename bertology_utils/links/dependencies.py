"""Do heads point along dependencies, as Clark et al. (2019, §4) ask it? The §4.5 question for whole relations.

Maps of wordpieces become maps of words: attention to a word is the sum over
its pieces, attention from a word the mean. A head points from a word at the
other word of the sentence to which it attends most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..annotation.annotators import RELATIONS
from ..annotation.inputs import AnnotatedInput, PlacedSentence
from ..attention import Batch
from ..common import Head, head_name
from ..statistics import Bootstrap, Seed, bootstrap, many_test, mean_over_seeds
from ..statistics.permutation import ONE_SIDED, largest
from ..verdicts import WEIGHT, Support

WAYS = ("dependent → head", "head → dependent")
ROWS = (  # of results.json: what, the part of a RelationTest, its unit
    ("share of arcs that the best head finds", "accuracy", "share"),
    ("share of arcs that the best fixed distance finds", "baseline", "share"),
    ("best head above the best fixed distance", "difference", "gain"),
    ("the same, chosen on other examples", "held_out", "gain"),
    ("arcs", "arcs", "count"),
)
FOUND = tuple(what for what, *_ in ROWS[:2])
FURTHEST = 10  # words; how far the fixed offsets reach


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


@dataclass(frozen=True)
class Arcs:
    """All dependencies of one relation, and where they and the heads point.

    Attributes:
        example: which example each arc is in, shape (arcs,); its sentences share a map.
        offset: head minus dependent in words, shape (arcs,).
        hits: True where an attention head points right, shape (ways, arcs, layers, heads).
        examples: how many there are, with or without such arcs.
    """

    example: np.ndarray
    offset: np.ndarray
    hits: np.ndarray
    examples: int


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
        weights = maps.cpu()
        for row, (index, first) in enumerate(zip(batch.index, batch.starts.tolist(), strict=True)):
            own = weights[row, :, first:, first:]
            self._hits.setdefault(index, []).append(
                [sentence.hits(own) for sentence in self._sentences[index]]
            )

    def compute(self) -> dict[str, Arcs]:
        """Arcs of each relation."""
        sentences = [
            (index, sentence, np.stack([layer[number] for layer in self._hits[index]], axis=2))
            for index in sorted(self._hits)
            for number, sentence in enumerate(self._sentences[index])
        ]
        return {
            name: self._arcs(sentences, labels, len(self._inputs))
            for name, labels in self._relations.items()
        }

    @staticmethod
    def _arcs(sentences, labels: set[str], examples: int) -> Arcs:
        number, offsets, hits = [], [], []
        for at, sentence, found in sentences:  # found: (ways, arcs, layers, heads)
            chosen = [arc for arc, label in enumerate(sentence.labels) if label in labels]
            number += [at] * len(chosen)
            offsets += [int(sentence.heads[arc] - sentence.dependents[arc]) for arc in chosen]
            hits.append(found[:, chosen])
        whole = np.concatenate(hits, axis=1) if hits else np.zeros((len(WAYS), 0, 0, 0), dtype=bool)
        return Arcs(np.array(number, dtype=int), np.array(offsets, dtype=int), whole, examples)


class _Sentence:
    """What a whole sentence needs to be scored: words to wordpieces, and its arcs."""

    def __init__(self, sentence: PlacedSentence, wanted: set[str]):
        arcs = [arc for arc in sentence.arcs if arc[2] in wanted]
        self.dependents = np.array([dependent for dependent, _, _ in arcs], dtype=int)
        self.heads = np.array([head for _, head, _ in arcs], dtype=int)
        self.labels = [label for *_, label in arcs]
        self.start, last = sentence.span
        self.stop = last + 1
        written = sentence.written
        # (written words, wordpieces of the sentence)
        self.member = torch.zeros(max(written) + 1, self.stop - self.start)
        for word, pieces in zip(written, sentence.pieces, strict=True):
            self.member[word, [at - self.start for at in pieces]] = 1

    def hits(self, maps: torch.Tensor) -> np.ndarray:
        """Shape (ways, arcs, heads), for one layer's maps of the example, (heads, tokens, tokens)."""
        own = maps[:, self.start : self.stop, self.start : self.stop]
        from_words = (self.member / self.member.sum(dim=1, keepdim=True)).to(own.dtype)
        words = from_words @ own @ self.member.T.to(own.dtype)  # (heads, words, words)
        words.diagonal(dim1=1, dim2=2).fill_(-1)  # a word does not point at itself
        points_at = words.argmax(dim=2).numpy()  # (heads, words)
        return np.stack(
            [
                self.heads[:, None] == points_at[:, self.dependents].T,
                self.dependents[:, None] == points_at[:, self.heads].T,
            ]
        )


@dataclass(frozen=True)
class RelationTest:
    """One relation's best head against the best fixed offset.

    Attributes:
        relation: its name.
        arcs: how many.
        way: the direction in which heads do best.
        offset, baseline: the best fixed offset from the attending word, and its accuracy.
        head: (layer, head) from 0 of the highest accuracy.
        accuracy: its accuracy.
        difference: accuracy minus baseline.
        beats: heads that beat the offset, corrected over all heads and both ways.
        towards_heads: heads that do so from dependent to head, whichever way is the better one.
        held_out: accuracy minus baseline where head and offset were chosen on the other half of the
            examples.
    """

    relation: str
    arcs: int
    way: str
    offset: int
    baseline: Bootstrap
    head: tuple[int, int]
    accuracy: Bootstrap
    difference: Bootstrap
    beats: tuple[Head, ...]
    held_out: float
    towards_heads: tuple[Head, ...] = ()

    @property
    def support(self) -> Support:
        """Support for some head that beats the offset; against it, that the best one is surely less than 0.02 ahead."""
        ahead = mean_over_seeds([self.difference])
        number = (
            f"{head_name(*self.head)} {self.difference.text(100, 1, sign=True)} points; n={ahead.n}"
        )
        return Support(0.0 if self.beats else 1.0, (-ahead).p_above(-WEIGHT), number)


def best_offset(offsets: np.ndarray) -> int:
    """The most frequent offset (nearest first among equals), of at most ten words either way."""
    candidates = [sign * distance for distance in range(1, FURTHEST + 1) for sign in (-1, 1)]
    return max(candidates, key=lambda offset: np.count_nonzero(offsets == offset))


def relation_test(name: str, arcs: Arcs, seed: Seed) -> RelationTest:
    """Which heads point along a relation more often than the best fixed offset does?

    Examples are resampled, since their arcs share a map. In the test the sign
    of an example's difference is exchanged.

    Args:
        name: of the relation.
        arcs: from :class:`Pointing`.
        seed: of resampling and permutations.

    Raises:
        ValueError: no arcs of the relation.
    """
    if not len(arcs.offset):
        raise ValueError(f"no {name} arc in the data")
    means = arcs.hits.mean(axis=1)  # (ways, layers, heads)
    way, *head = largest(means)
    offset, right = _offset_hits(arcs, way)
    hits = arcs.hits[way, :, head[0], head[1]].astype(float)
    _, groups = np.unique(arcs.example, return_inverse=True)
    by_offset = np.stack(
        [_offset_hits(arcs, number)[1] for number in range(len(WAYS))]
    )  # (ways, arcs)
    differences = np.moveaxis(
        arcs.hits - by_offset[:, :, None, None], 0, 1
    )  # (arcs, ways, layers, heads)
    above = many_test(
        sums_of_examples(differences, groups), 0.0, seed
    ).above  # (ways, layers, heads)
    beats = [
        tuple((layer, head) for layer, head in np.argwhere(p < ONE_SIDED).tolist()) for p in above
    ]
    return RelationTest(
        name,
        len(hits),
        WAYS[way],
        offset,
        _mean_over_arcs(right, groups, seed),
        (int(head[0]), int(head[1])),
        _mean_over_arcs(hits, groups, seed),
        _mean_over_arcs(hits - right, groups, seed),
        beats[way],
        _held_out(arcs, groups, seed),
        beats[0],
    )


def _offset_hits(
    arcs: Arcs, way: int, chosen_on: np.ndarray | None = None
) -> tuple[int, np.ndarray]:
    """The best fixed offset from the attending word, chosen on some arcs, and which arcs it gets right."""
    offsets = arcs.offset if way == 0 else -arcs.offset
    best = best_offset(offsets if chosen_on is None else offsets[chosen_on])
    return best, (offsets == best).astype(float)


def _held_out(arcs: Arcs, groups: np.ndarray, seed: Seed) -> float:
    """Mean over 50 random halvings of the examples: choose way, head and offset on one half, score on the other."""
    rng = np.random.default_rng(seed)
    scores = []
    for _ in range(50):
        first = (rng.random(groups.max() + 1) < 0.5)[groups]
        if first.all() or not first.any():
            continue
        means = arcs.hits[:, first].mean(axis=1)
        way, layer, head = np.unravel_index(means.argmax(), means.shape)
        _, right = _offset_hits(arcs, way, first)
        scores.append(float((arcs.hits[way, ~first, layer, head] - right[~first]).mean()))
    return float(np.mean(scores)) if scores else float("nan")


def chosen_and_measured(name: str, arcs: Arcs, seed: Seed) -> list[dict[str, object]]:
    """Either direction of a relation: head and fixed distance chosen on half of the examples, both measured on the rest.

    Args:
        name: of the relation.
        arcs: from :class:`Pointing`, of two examples at least.
        seed: of the halving, resampling and permutations.

    Returns:
        A row for each of :data:`WAYS`: names, shares of arcs with their intervals over examples,
        and the p of the head beating the distance, corrected over all heads.
    """
    examples, groups = np.unique(arcs.example, return_inverse=True)
    half = np.random.default_rng(seed).permutation(len(examples)) < len(examples) // 2
    chooses = half[groups]  # by arc
    _, rest = np.unique(groups[~chooses], return_inverse=True)
    rows = []
    for way, direction in enumerate(WAYS):
        at = largest(arcs.hits[way, chooses].mean(axis=0))
        offset, right = _offset_hits(arcs, way, chooses)
        hits, right = (
            arcs.hits[way, ~chooses].astype(float),
            right[~chooses],
        )  # (arcs, layers, heads) and (arcs,)
        found, by_distance = (
            _mean_over_arcs(values, rest, seed) for values in (hits[:, *at], right)
        )
        above = many_test(sums_of_examples(hits - right[:, None, None], rest), 0.0, seed).above
        row: dict[str, object] = {
            "relation": name,
            "direction": direction,
            "arcs": len(hits),
            "best head": head_name(*at),
        }
        for title, one in (("head", found), ("distance", by_distance)):
            row |= {
                f"{title}: share of arcs": one.value,
                f"{title}: low": one.interval[0],
                f"{title}: high": one.interval[1],
            }
        rows.append(row | {"best fixed distance": offset, "p": float(above[at])})
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


def joined(parts: Sequence[Arcs]) -> Arcs:
    """The arcs of several data sets as one, examples numbered through."""
    starts = np.cumsum([0, *(part.examples for part in parts[:-1])])
    numbers = np.concatenate(
        [part.example + start for part, start in zip(parts, starts, strict=True)]
    )
    offsets, hits = (
        np.concatenate([part.offset for part in parts]),
        [part.hits for part in parts if len(part.offset)],
    )
    return Arcs(
        numbers,
        offsets,
        np.concatenate(hits, axis=1) if hits else parts[0].hits,
        sum(part.examples for part in parts),
    )


def chosen(test: RelationTest) -> dict[str, object]:
    """What was chosen for a relation, for the facts of a results file; heads from 1."""
    beats = [head_name(*head) for head in test.beats]
    return {"way": test.way, "head": head_name(*test.head), "offset": test.offset, "beats": beats}
