"""Attention along links between two words, against other inputs' places, rivals and neighbours (§4.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..annotation.annotators import Word
from ..annotation.inputs import (
    NOUNS,
    PRONOUNS,
    SUBJECTS,
    AnnotatedInput,
    PlacedSentence,
    is_punctuation,
)
from ..attention import Batch, attention_maps, one_example, received
from ..common import head_name
from ..statistics import (
    ONE_SIDED,
    Bootstrap,
    ManyTest,
    Seed,
    largest,
    many_test,
    means_with_gaps,
    rank_correlations,
)
from ..verdicts import WEIGHT, Support

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# ClearNLP makes the copula the subject's head, UD the adjective or noun that it belongs to.
PREDICATES = {"VERB", "AUX"}
BORROWED = 8  # places from other inputs, for each link at most
LINK_TYPES = ("verb → subject", "subject → verb", "noun → pronoun", "pronoun → noun")
PAIRS = {"verbs": LINK_TYPES[:2], "pronouns": LINK_TYPES[2:]}  # by the words that are linked
Cells = tuple[np.ndarray, np.ndarray]  # rows and columns of a map, each of shape (pairs,)


# The links of an input.


@dataclass(frozen=True)
class TokenLink:
    """A pair of words, the first attending to the second.

    Attributes:
        rows, columns: the map's cells that belong to the pair, each of shape (pairs,).
        sentence: its number in the input from 0, its first position, and its wordpieces.
        places: cells in which other inputs have such links, (rows, columns) each; see
            :func:`borrow`.
        rivals: cells from the first word to its rivals, (rows, columns) each; see
            :func:`find_links`.
    """

    rows: np.ndarray
    columns: np.ndarray
    sentence: tuple[int, int, int]
    places: tuple[Cells, ...] = ()
    rivals: tuple[Cells, ...] = ()

    @property
    def adjacent(self) -> bool:
        """True if the two words are neighbours."""
        return bool(np.abs(self.rows - self.columns).min() == 1)

    @property
    def forwards(self) -> bool:
        """True if the second word comes after the first."""
        return bool(self.columns.mean() > self.rows.mean())


InputLinks = Mapping[str, Sequence[TokenLink]]  # the links of one input, by type


def find_links(annotated: AnnotatedInput, antecedents: bool) -> dict[str, list[TokenLink]]:
    """The links of an input, by type, each with its rivals.

    A link's *rivals* are the words between its two that have the second word's part of speech
    (proper nouns are nouns) and no such link with the first: in "the dog that chased the cat
    sleeps", *cat* is a rival of *dog* for the verb *sleeps*. So a head that attends to any noun on
    that side, or to the nearest, attends to a rival as much as to the subject. Nouns farther away
    would not show that, as the subject is mostly the nearer one; nor would those on the other side.
    Rivals cannot show whether a head goes by the order of words (the first noun of a sentence), or
    by number.

    Args:
        annotated: the input.
        antecedents: True to link a pronoun with the word it refers to; False,
            the paper's reading for parsed text, with every noun of its sentence.

    Returns:
        A list for each of :data:`LINK_TYPES`; words that the length limit took away are in none.
    """
    links: dict[str, list[TokenLink]] = {name: [] for name in LINK_TYPES}
    for number, sentence in enumerate(annotated.sentences):
        first, last = sentence.span
        subjects, nouns = _verbs_and_subjects(sentence), _nouns_and_pronouns(sentence, antecedents)
        directed = (subjects, [(b, a) for a, b in subjects], nouns, [(b, a) for a, b in nouns])
        # A parser can call a punctuation mark a subject, a limit on length can take a word away,
        # and words that share a written word share its wordpieces.
        whole = [
            bool(own) and not is_punctuation(word)
            for word, own in zip(sentence.words, sentence.pieces, strict=True)
        ]
        written, place = sentence.written, (number, first, last - first + 1)
        for name, pairs in zip(LINK_TYPES, directed, strict=True):
            links[name] += [
                TokenLink(*_between(sentence, a, b), place, (), _rivals(sentence, a, b, pairs))
                for a, b in pairs
                if whole[a] and whole[b] and written[a] != written[b]
            ]
    return links


def _between(sentence: PlacedSentence, a: int, b: int) -> Cells:
    """The map's cells from one word to another."""
    own, other = sentence.pieces[a], sentence.pieces[b]
    return np.repeat(own, len(other)), np.tile(other, len(own))


def _rivals(
    sentence: PlacedSentence, a: int, b: int, pairs: Sequence[tuple[int, int]]
) -> tuple[Cells, ...]:
    def kind(word: Word) -> str:
        return "NOUN" if word.upos in NOUNS else word.upos

    wanted, written = kind(sentence.words[b]), sentence.written
    return tuple(
        _between(sentence, a, at)
        for at in range(min(a, b) + 1, max(a, b))
        if sentence.pieces[at]
        and kind(sentence.words[at]) == wanted
        and (a, at) not in pairs
        and written[at] not in (written[a], written[b])
    )


def _verbs_and_subjects(sentence: PlacedSentence) -> list[tuple[int, int]]:
    """Pairs of a verb and its subject, as indices of the sentence's words."""
    return [
        (word.head, at)
        for at, word in enumerate(sentence.words)
        if word.deprel in SUBJECTS
        and word.head >= 0
        and sentence.words[word.head].upos in PREDICATES
    ]


def _nouns_and_pronouns(sentence: PlacedSentence, antecedents: bool) -> list[tuple[int, int]]:
    pronouns = [(word, at) for at, word in enumerate(sentence.words) if word.upos in PRONOUNS]
    if antecedents:
        return [(word.antecedent, at) for word, at in pronouns if word.antecedent is not None]
    nouns = [at for at, word in enumerate(sentence.words) if word.upos in NOUNS]
    return [(noun, at) for _, at in pronouns for noun in nouns]


def borrow(inputs: Sequence[InputLinks], seed: Seed) -> list[dict[str, list[TokenLink]]]:
    """The same links with places to compare them with, borrowed from other inputs as §4.2's control does.

    A place is where a link of the same type is in a sentence of the same length that is the same
    one (first or second) of its own input. So what a head does at that distance, and at those
    positions of a sentence, is in the comparison. Places that are themselves links of the type are
    left out.

    Args:
        inputs: per input, from :func:`find_links`.
        seed: of the draw, where there are more than :data:`BORROWED`.
    """
    rng = np.random.default_rng(seed)
    # Cells relative to their sentence's start, by type, sentence and length.
    groups: dict[tuple[str, int, int], list[tuple[int, Cells]]] = {}
    for row, by_type in enumerate(inputs):
        for name, links in by_type.items():
            for link in links:
                number, start, length = link.sentence
                cells = link.rows - start, link.columns - start
                groups.setdefault((name, number, length), []).append((row, cells))

    def places(row: int, name: str, link: TokenLink, own: set[tuple[int, int]]) -> Iterator[Cells]:
        number, start, length = link.sentence
        group = groups[name, number, length]
        for at in rng.permutation(len(group)):
            other, (rows, columns) = group[at]
            if other != row and own.isdisjoint(_pairs(rows + start, columns + start)):
                yield rows + start, columns + start

    compared: list[dict[str, list[TokenLink]]] = []
    for row, by_type in enumerate(inputs):
        compared.append({})
        for name, links in by_type.items():
            own = {cell for link in links for cell in _pairs(link.rows, link.columns)}
            compared[row][name] = [
                replace(link, places=tuple(islice(places(row, name, link, own), BORROWED)))
                for link in links
            ]
    return compared


def _pairs(rows: np.ndarray, columns: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def share_adjacent(inputs: Iterable[InputLinks]) -> dict[str, float]:
    """The share of links whose words are neighbours, by pair of words; NaN where there are none."""
    inputs, shares = list(inputs), {}
    for words, names in PAIRS.items():
        near = [link.adjacent for by_type in inputs for name in names for link in by_type[name]]
        shares[words] = float(np.mean(near)) if near else float("nan")
    return shares


def ahead_by_chance(inputs: Iterable[InputLinks]) -> dict[str, float]:
    """In what share of links a head that does not tell a word from its rivals would give the word most.

    By type of link, mean over the links of an input and over inputs as in :class:`LinkScores`;
    types without rivals are left out.
    """
    shares: dict[str, list[float]] = {}
    for by_type in inputs:
        for name, links in by_type.items():
            if even := [1 / (1 + len(link.rivals)) for link in links if link.rivals]:
                shares.setdefault(name, []).append(float(np.mean(even)))
    return {name: float(np.mean(of_inputs)) for name, of_inputs in shares.items()}


# What every head gives them.


@dataclass(frozen=True)
class LinkScores:
    """Result of :class:`TokenLinkAttention`; each of shape (examples, types, layers, heads).

    An example's value is the mean over its links; NaN where it has none to compare.

    Attributes:
        along: largest weight among a link's cells.
        above_places: the same minus its mean over other inputs' places.
        above_rivals: the same minus its mean over the link's rivals.
        ahead: share of links that get more than each of their rivals.
    """

    along: np.ndarray
    above_places: np.ndarray
    above_rivals: np.ndarray
    ahead: np.ndarray


class TokenLinkAttention:
    """Measurement: the weight along every link, and how much more that is than at other places.

    Args:
        links: per example of the data, from :func:`borrow`.
        centred: subtract from every weight what the token gets from the
            average token, so that a head's preference for certain words,
            whoever attends, does not count.
    """

    def __init__(self, links: Sequence[InputLinks], centred: bool = False):
        self._centred = centred
        self._plans = [_Plan(by_type) for by_type in links]
        self._values: dict[int, list[np.ndarray]] = {}
        self._cells = torch.empty(0)

    def start(self, batch: Batch) -> None:
        """Lay the cells of the batch's examples side by side: shape (3, cells), of example, row and column."""
        cells = [
            np.insert(self._plans[index].cells + first, 0, row, axis=0)
            for row, (index, first) in enumerate(
                zip(batch.index, batch.starts.tolist(), strict=True)
            )
        ]
        self._cells = torch.from_numpy(np.concatenate(cells, axis=1)).to(batch.mask.device)

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        if self._centred:
            maps = maps - received(maps, batch)[:, :, None]
        example, row, column = self._cells
        weights = maps[example, :, row, column].cpu().double().numpy()  # (cells, heads)
        plans = [self._plans[index] for index in batch.index]
        ends = np.cumsum([plan.cells.shape[1] for plan in plans])
        for index, plan, own in zip(batch.index, plans, np.split(weights, ends[:-1]), strict=True):
            self._values.setdefault(index, []).append(plan.values(own))

    def compute(self) -> LinkScores:
        """The values of all examples, in the order of the data."""
        values = [np.stack(self._values[index], axis=2) for index in sorted(self._values)]
        return LinkScores(*np.stack(values, axis=1, dtype=np.float32))


class _Plan:
    """What to read off an input's maps, and what to make of it.

    The cells of its links, of their places and of their rivals are *sets*, whose largest weights
    count.

    Attributes:
        cells: of all sets, shape (2, cells).
    """

    def __init__(self, by_type: InputLinks):
        sets: list[Cells] = []
        factors: dict[tuple[int, int, int], float] = {}
        counts = np.zeros((3, len(LINK_TYPES)))
        # By link its type and set, and where the sets of its rivals begin and end.
        self._rivals: list[tuple[int, int, int, int]] = []
        for kind, name in enumerate(LINK_TYPES):
            links = by_type[name]
            compared = [(True, bool(link.places), bool(link.rivals)) for link in links]
            counts[:, kind] = np.sum(compared, axis=0) if links else 0
            for link in links:
                own = len(sets)
                sets.append((link.rows, link.columns))
                factors[0, kind, own] = 1 / counts[0, kind]
                for part, others in enumerate((link.places, link.rivals), start=1):
                    first = len(sets)
                    sets += others
                    if others:
                        factors[part, kind, own] = 1 / counts[part, kind]
                    for other in range(first, len(sets)):
                        factors[part, kind, other] = -1 / counts[part, kind] / len(others)
                if link.rivals:
                    self._rivals.append((kind, own, first, len(sets)))
        # By what the sets' largest weights are multiplied, (3, types, sets); NaN for what is missing.
        self._factors = np.zeros((*counts.shape, len(sets)))
        for place, factor in factors.items():
            self._factors[place] = factor
        self._missing = counts == 0
        sizes = np.array([len(rows) for rows, _ in sets], dtype=int)
        self._starts = np.cumsum(sizes) - sizes  # where each set begins among the cells
        self.cells = np.concatenate([np.empty((2, 0), dtype=int), *map(np.stack, sets)], axis=1)

    def values(self, weights: np.ndarray) -> np.ndarray:
        """The parts of :class:`LinkScores`, shape (4, types, heads), of the cells' weights, (cells, heads)."""
        values = np.full((4, len(LINK_TYPES), weights.shape[1]), np.nan)
        if not len(self._starts):
            return values
        largest_weights = np.maximum.reduceat(weights, self._starts, axis=0)  # (sets, heads)
        values[:3] = self._factors @ largest_weights
        values[:3][self._missing] = np.nan
        wins: dict[int, list[np.ndarray]] = {}
        for kind, own, first, stop in self._rivals:
            ahead = largest_weights[own] > largest_weights[first:stop].max(axis=0)
            wins.setdefault(kind, []).append(ahead)
        for kind, each in wins.items():
            values[3, kind] = np.mean(each, axis=0)
        return values


def joined_scores(parts: Iterable[LinkScores]) -> LinkScores:
    """The scores of several tasks as one; every example counts the same."""
    fields = zip(*(vars(part).values() for part in parts), strict=True)
    return LinkScores(*map(np.concatenate, fields))


def neighbour_weights(around: np.ndarray, inputs: Iterable[InputLinks], kind: str) -> np.ndarray:
    """Weight on the neighbour on the links' side, shape (examples, layers, heads).

    It is that of the token before and of the token after, as often as the second word of a link
    comes before and after the first. A verb's subject mostly comes before it, and a head that
    attends to the token after does not attend to it, however diagonal it is.

    Args:
        around: weights on the token before, the token itself and the one after, shape (examples,
            layers, heads, 3).
        inputs: the links of every input.
        kind: of link.
    """
    after = np.mean([link.forwards for by_type in inputs for link in by_type[kind]])
    return (1 - after) * around[..., 0] + after * around[..., 2]


def diagonal_correlation(along: np.ndarray, beside: np.ndarray, seed: Seed) -> Bootstrap:
    """Spearman's ρ over heads of the weight along links with that on the neighbour on their side.

    A model's heads are all that there are, so not they but the examples are resampled: the interval
    says what other sentences would give, of the same heads. ``n`` counts the examples with such
    links.

    Args:
        along, beside: shape (examples, layers, heads).
        seed: of the resampling.
    """
    means = [
        means_with_gaps(values.reshape(len(values), -1), seed)  # (1 + resamples, all heads)
        for values in (along, beside)
    ]
    n = int(np.isfinite(along[:, 0, 0]).sum())
    return Bootstrap.of(rank_correlations(*means), n, seed)


# Does some head follow a link?


def link_tests(scores: Sequence[LinkScores], kind: str, seed: Seed) -> list[ManyTest]:
    """Tests of every head's excess along one type of link against the least effect.

    Args:
        scores: over all tasks, as they are and with each word's popularity off.
        kind: of link.
        seed: of the permutations.

    Returns:
        Against other inputs' places, plain and centred; then against rivals, plain and centred, but
        not where pronouns have none, as in parsed text, in which every noun of the sentence is
        linked with its pronouns.
    """
    at = LINK_TYPES.index(kind)
    places = [many_test(one.above_places[:, at], WEIGHT, seed) for one in scores]
    rivals = [many_test(one.above_rivals[:, at], WEIGHT, seed) for one in scores]
    return places + [one for one in rivals if kind in PAIRS["verbs"] or one.n.any()]


def passes_all(tests: Sequence[ManyTest]) -> np.ndarray:
    """Heads that are significantly above the least effect in each test, shape (layers, heads)."""
    return np.max([test.above for test in tests], axis=0) <= ONE_SIDED


def some_head_passes(tests: Sequence[ManyTest]) -> Support:
    """Support for some head that passes all tests; against it, for every head one test at least (Bonferroni).

    The number is of the head whose least excess is the largest.

    Args:
        tests: from :func:`link_tests`.
    """
    holds = np.max([test.above for test in tests], axis=0).min()
    below = np.minimum(1, len(tests) * np.min([test.below_alone for test in tests], axis=0))
    at = largest(np.fmin.reduce([test.means for test in tests]))  # NaN where no link has a rival
    plain, _, *rivals = tests
    number, sizes = f"head {head_name(*at)} {plain.means[at]:+.3f}", f"n={int(plain.n[at])}"
    if rivals:
        number += f", {rivals[0].means[at]:+.3f} above rivals" if rivals[0].n[at] else ""
        sizes += f", {int(rivals[0].n[at])} with rivals"
    return Support(float(holds), float(below.max()), f"{number}; {sizes}")


def maps_of(
    model: PreTrainedModel, batches: Sequence[Batch], index: int, attention: str = "weight"
) -> np.ndarray:
    """All maps of one input, to look at: shape (layers, heads, tokens, tokens).

    Args:
        model: encoder or classifier.
        batches: of the data.
        index: of the input in the data.
        attention: see :func:`bertology_utils.attention.attention_maps`.
    """
    batch = one_example(batches, index).to(model.device)
    return np.stack([maps[0].cpu().numpy() for maps in attention_maps(model, batch, attention)])
