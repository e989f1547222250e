"""Attention along links between two words, beside the same cells at other inputs' places and beside neighbours (§4.5)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

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
from ..attention import Batch, attention_maps, received
from ..common import Head, head_name
from ..glue import Task
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
from ..verdicts import WEIGHT, Support, all_of

PREDICATES = {
    "VERB",
    "AUX",
}  # ClearNLP makes the copula the subject's head, UD the adjective or noun beside it
BORROWED = 8  # places from other inputs
TOKENS = 14  # of an input whose map is legible on a page
LINK_TYPES = ("verb → subject", "subject → verb", "noun → pronoun", "pronoun → noun")
PAIRS = {"verbs": LINK_TYPES[:2], "pronouns": LINK_TYPES[2:]}  # by the pair of words, both ways
# claims about heads above the yardsticks, by name; of verbs the paper speaks of the first way only
INDISTINCT = {
    "verbs-indistinct": LINK_TYPES[:1],
    "subjects-indistinct": LINK_TYPES[1:2],
    "pronouns-indistinct": PAIRS["pronouns"],
}
Cells = tuple[np.ndarray, np.ndarray]  # rows and columns of a map, each of shape (pairs,)
Found = Mapping[str, Any]  # what one pass over one task's inputs found, by measurement
AS_IS, POPULARITY_OFF = "links", "centred"  # the two ways in which links are measured
WAYS = (AS_IS, POPULARITY_OFF)
PLACES, RIVALS = (
    "places",
    "rivals",
)  # the two yardsticks that the weight along a link is compared with
# Names of rows in results.json; of every head, by state of the model and type of link.
BEFORE, TUNED, RANDOM = "pre-trained", "fine-tuned", "random weights"  # states of a model
FROM_CLS = "weight from [CLS], last layer"  # row of results.json, by state, task and type of token
SCORES, NEIGHBOURS = "weight along links", "weight on the neighbour on the links' side"
EXCESS = {
    AS_IS: "weight along links above other inputs' places",
    POPULARITY_OFF: "the same with each word's popularity off",
}
ABOVE_RIVALS = "weight along links above rivals"
ALONG, ABOVE = (
    "attention along links",
    "above other inputs' places",
)  # what goes with attention to neighbours, or not
RHO = "ρ with attention to neighbours, {}"


@dataclass(frozen=True)
class TokenLinkScores:
    """Result of :class:`TokenLinkAttention`. An example's value is the mean over its links; NaN where it has none.

    Attributes:
        actual: largest weight among a link's cells, shape (examples, types, layers, heads).
        matched: the same of the links that have places to compare them with.
        elsewhere: mean over these places.
        rivalled: the same of the links that have rivals.
        rivals: mean over these words.
        counts: links per type, how many of them have such places, how many rivals, and in how many
            the second word stands behind the first, shape (types, 4).
    """

    actual: np.ndarray
    matched: np.ndarray
    elsewhere: np.ndarray
    rivalled: np.ndarray
    rivals: np.ndarray
    counts: np.ndarray


class TokenLinkAttention:
    """Measurement: the weight along every link, at other inputs' places, and to its rivals.

    Args:
        links: per example of the data, from :func:`bertology_utils.links.measure.borrow`.
        centred: subtract from every weight what the token gets from the
            average token, so that a head's preference for certain words,
            whoever is looking, does not count.
    """

    def __init__(self, links: Sequence[OfInput], centred: bool = False):
        self._links = links
        self._centred = centred
        self._rows: dict[int, list[np.ndarray]] = {}
        self._cells = torch.empty(
            0, dtype=torch.long
        )  # of the batch's links, places and rivals, in its flattened maps
        self._sizes = np.empty(
            0, dtype=int
        )  # cells of each of them: first all links, then their places, then their rivals
        self._counts = [self._sizes] * 2  # of each link how many places, and how many rivals
        self._groups = self._sizes  # of each link its example and type as one

    def start(self, batch: Batch) -> None:
        """List the cells of the batch's links."""
        tokens, starts, types = (
            batch.mask.shape[1],
            batch.starts.tolist(),
            list(enumerate(LINK_TYPES)),
        )
        links = [
            (row, kind, link)
            for row, index in enumerate(batch.index)
            for kind, name in types
            for link in self._links[index][name]
        ]
        compared = [[link.places for *_, link in links], [link.rivals for *_, link in links]]
        own = [(row, (link.rows, link.columns)) for row, _, link in links]
        others = [
            (row, one)
            for each in compared
            for (row, *_), of in zip(links, each, strict=True)
            for one in of
        ]
        cells = [
            (row * tokens + rows + starts[row]) * tokens + columns + starts[row]
            for row, (rows, columns) in own + others
        ]
        self._cells = torch.from_numpy(np.concatenate([np.empty(0, dtype=int), *cells]))
        self._sizes = np.array(list(map(len, cells)), dtype=int)
        self._counts = [np.array(list(map(len, each)), dtype=int) for each in compared]
        self._groups = np.array([row * len(types) + kind for row, kind, _ in links], dtype=int)
        self._rows |= {index: [] for index in batch.index}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        if self._centred:
            maps = maps - received(maps, batch)[:, :, None]
        values = self._means(maps)  # (5, examples, types, heads)
        for row, index in enumerate(batch.index):
            self._rows[index].append(values[:, row])

    def _means(self, maps: torch.Tensor) -> np.ndarray:
        """Means over links of all but the counts in :class:`TokenLinkScores`, shape (5, examples, types, heads)."""
        examples, heads = maps.shape[:2]
        by_head = maps.transpose(0, 1).reshape(heads, -1)  # (heads, examples · tokens · tokens)
        weights = by_head[:, self._cells.to(maps.device)].cpu().double().numpy()
        highest = np.maximum.reduceat(
            weights, _starts(self._sizes), axis=1
        )  # (heads, links, places and rivals)
        actual, *compared = np.split(
            highest, np.cumsum([len(self._groups), self._counts[0].sum()]), axis=1
        )
        found = [(actual, self._groups)]
        for values, counts in zip(compared, self._counts, strict=True):
            there = counts > 0
            others = np.add.reduceat(values, _starts(counts[there]), axis=1) / counts[there]
            found += [(actual[:, there], self._groups[there]), (others, self._groups[there])]
        means = np.full((len(found), examples * len(LINK_TYPES), heads), np.nan)
        for into, (values, groups) in zip(means, found, strict=True):
            own, counts = np.unique(groups, return_counts=True)  # links stand group by group
            into[own] = (np.add.reduceat(values, _starts(counts), axis=1) / counts).T
        return means.reshape(len(found), examples, len(LINK_TYPES), heads)

    def compute(self) -> TokenLinkScores:
        """The values of all examples, in the order of the data."""
        values = np.stack(
            [np.stack(self._rows[index], axis=2) for index in sorted(self._rows)], axis=1
        )
        all_links = [
            [link for by_type in self._links for link in by_type[name]] for name in LINK_TYPES
        ]
        flags = [
            [(True, bool(one.places), bool(one.rivals), one.forwards) for one in of_type]
            for of_type in all_links
        ]
        counts = np.array(
            [np.reshape(of_type, (-1, 4)).sum(axis=0) for of_type in flags], dtype=int
        )
        actual, matched, elsewhere, rivalled, rivals = values
        return TokenLinkScores(actual, matched, elsewhere, rivalled, rivals, counts)


def _starts(counts: np.ndarray) -> np.ndarray:
    """Start offsets of consecutive runs of the given lengths."""
    return np.cumsum(counts) - counts


# Over the examples of all tasks together, every example attention the same. ---


@dataclass(frozen=True)
class Clear:
    """Do heads attend more along one type of link than at other inputs' places, and than to rivals?

    Attributes:
        plain, centred: the tests of all heads against the least effect at other inputs' places, as
            it is and with each word's popularity off, shape (layers, heads).
        rivals: the same against rivals, both ways; () where there can be none, as in parsed text,
            where every noun of the sentence is linked with its pronouns.
    """

    plain: ManyTest
    centred: ManyTest
    rivals: tuple[ManyTest, ...] = ()

    @property
    def _all(self) -> tuple[ManyTest, ...]:
        return self.plain, self.centred, *self.rivals

    @property
    def _p_above(self) -> np.ndarray:
        return np.max([test.above for test in self._all], axis=0)

    @property
    def heads(self) -> np.ndarray:
        """Heads for which all of them say so, shape (layers, heads)."""
        return self._p_above <= ONE_SIDED

    @property
    def support(self) -> Support:
        """Support for some head that does: each test of it, or for every head one at least speaks against (Bonferroni).

        The number is of the head whose least excess is the largest.
        """
        below = np.minimum(
            1, len(self._all) * np.min([test.below_alone for test in self._all], axis=0)
        )
        at = largest(
            np.fmin.reduce([test.means for test in self._all])
        )  # NaN where no link has a rival
        number, sizes = (
            f"head {head_name(*at)} {self.plain.means[at]:+.3f}",
            f"n={int(self.plain.n[at])}",
        )
        for test in self.rivals[:1]:
            number += f", {test.means[at]:+.3f} above rivals" if test.n[at] else ""
            sizes += f", {int(test.n[at])} with rivals"
        return Support(float(self._p_above.min()), float(below.max()), f"{number}; {sizes}")


@dataclass(frozen=True)
class LinkHeads:
    """What every head of one model gives to links and to neighbours, means over examples, each of shape (layers, heads).

    Attributes:
        scores: by type of link, the weight along it.
        excess: by way and type, how much more that is than at other inputs' places.
        neighbours: by type, the weight on the neighbour on the links' side: that of the token
            before and of the token after, as often as the second word stands there. A verb's
            subject mostly comes before it, and a head that attends to the token after gives it
            nothing, however diagonal it is.
    """

    scores: Mapping[str, np.ndarray]
    excess: Mapping[str, Mapping[str, np.ndarray]]
    neighbours: Mapping[str, np.ndarray]


def examples(found: Iterable[Found]) -> dict[str, int]:
    """Number of examples with a link of each type, for the types that the data have."""
    counts = np.isfinite(_of_links(found, "actual")[:, :, 0, 0]).sum(axis=0)
    return {name: int(n) for name, n in zip(LINK_TYPES, counts, strict=True) if n}


def differences(
    found: Iterable[Found], kind: str, way: str = AS_IS, yardstick: str = PLACES
) -> np.ndarray:
    """Along links of a type minus at a yardstick, shape (examples, layers, heads); NaN without one.

    Args:
        found: of every task.
        kind: of link.
        way: "links" as they are, or "centred", with each word's popularity taken off.
        yardstick: other inputs' "places", or "rivals".
    """
    found, at = list(found), LINK_TYPES.index(kind)
    own, others = ("matched", "elsewhere") if yardstick == PLACES else ("rivalled", "rivals")
    return _of_links(found, own, way)[:, at] - _of_links(found, others, way)[:, at]


def clear(found: Iterable[Found], kinds: Iterable[str], seed: Seed) -> dict[str, Clear]:
    """Tests of every head's excess against the least effect by type of link: both yardsticks, both ways."""
    found = list(found)

    def tests(kind: str, yardstick: str) -> list[ManyTest]:
        return [many_test(differences(found, kind, way, yardstick), WEIGHT, seed) for way in WAYS]

    made = {}
    for kind in kinds:
        plain, centred = tests(kind, PLACES)
        rivals = [test for test in tests(kind, RIVALS) if kind in PAIRS["verbs"] or test.n.any()]
        made[kind] = Clear(plain, centred, tuple(rivals))
    return made


def of_heads(found: Iterable[Found], tests: Mapping[str, Clear]) -> LinkHeads:
    """Means over the examples of all tasks.

    Args:
        found: of every task: links, links centred and flow.
        tests: from :func:`clear`.
    """
    found = list(found)
    actual, beside = _of_links(found, "actual"), _beside(found).mean(axis=0)
    return LinkHeads(
        {name: np.nanmean(actual[:, LINK_TYPES.index(name)], axis=0) for name in tests},
        {
            AS_IS: {name: one.plain.means for name, one in tests.items()},
            POPULARITY_OFF: {name: one.centred.means for name, one in tests.items()},
        },
        {name: beside[LINK_TYPES.index(name)] for name in tests},
    )


def _beside(found: Iterable[Found]) -> np.ndarray:
    """Weight on the neighbour on the links' side, see :class:`LinkHeads`; shape (examples, types, layers, heads)."""
    found = list(found)
    links, *_, forwards = sum(of_task[AS_IS].counts for of_task in found).T
    after = np.divide(forwards, links, out=np.zeros(len(links)), where=links > 0)[
        :, None, None
    ]  # (types, 1, 1)
    weights = np.concatenate([of_task["flow"].neighbours for of_task in found])[
        :, None
    ]  # (examples, 1, layers, heads, 3)
    return (1 - after) * weights[..., 0] + after * weights[..., 2]


def correlations(
    found: Iterable[Found], kinds: Iterable[str], seed: Seed
) -> dict[str, dict[str, Bootstrap]]:
    """Spearman's ρ over heads with the weight on the neighbour on the links' side, by what and type of link.

    A model's heads are all that there are, so not they but the examples are resampled: the interval
    says what other sentences would give, of the same heads. ``n`` counts the examples with such
    links.

    Args:
        found: of every task: links and flow.
        kinds: of link.
        seed: of the resampling.
    """
    found = list(found)
    actual, beside = _of_links(found, "actual"), _beside(found)

    def means(values: np.ndarray) -> np.ndarray:
        return means_with_gaps(values.reshape(len(values), -1), seed)  # (1 + resamples, all heads)

    rho: dict[str, dict[str, Bootstrap]] = {ALONG: {}, ABOVE: {}}
    for kind in kinds:
        at = LINK_TYPES.index(kind)
        neighbours = means(beside[:, at])
        for label, values in ((ALONG, actual[:, at]), (ABOVE, differences(found, kind))):
            n = int(np.isfinite(values[:, 0, 0]).sum())
            rho[label][kind] = Bootstrap.of(rank_correlations(means(values), neighbours), n, seed)
    return rho


def some_head(tests: Mapping[str, Mapping[str, Clear]], kinds: Iterable[str]) -> dict[str, Support]:
    """Support for some head that is above both yardsticks, by type of link and model; the largest excess first.

    Args:
        tests: by model and type of link.
        kinds: of link.
    """
    each = [
        (f"{kind}, {model}", of_model[kind])
        for kind in kinds
        for model, of_model in tests.items()
        if kind in of_model
    ]
    return {
        name: one.support
        for name, one in sorted(each, key=lambda item: -np.nanmax(item[1].plain.means))
    }


def _of_links(found: Iterable[Found], part: str, way: str = AS_IS) -> np.ndarray:
    """One part of :class:`TokenLinkScores`, shape (examples, types, layers, heads)."""
    return np.concatenate([getattr(of_task[way], part) for of_task in found])


def furthest(values: Mapping[str, np.ndarray], kinds: Sequence[str]) -> tuple[str, Head]:
    """The type of link with the largest value of any head, and that head; the first type's first head if there are none.

    Args:
        values: by type, shape (layers, heads).
        kinds: to choose from.
    """
    there = [kind for kind in kinds if kind in values]
    if not there:
        return kinds[0], (0, 0)
    kind = max(there, key=lambda name: np.nanmax(values[name]))
    layer, head = largest(values[kind])
    return kind, (layer, head)


def surely(shares: Sequence[float], number: str) -> Support:
    """Support for what comes out in these shares of resamples, or of random draws, in each of them.

    Args:
        shares: one for each training, or one alone.
        number: the shares in words.
    """
    return replace(all_of(Support(1 - share, share) for share in shares), number=number)


@dataclass(frozen=True)
class TokenLink:
    """A pair of words, the first attending to the second.

    Attributes:
        rows, columns: the map's cells that belong to the pair, each of shape (pairs,).
        sentence: its number in the input from 0, its first position, and its wordpieces.
        places: other inputs' cells to compare it with, (rows, columns) each; see :func:`borrow`.
        rivals: cells from its first word to others, (rows, columns) each; see :func:`find_links`.
    """

    rows: np.ndarray
    columns: np.ndarray
    sentence: tuple[int, int, int]
    places: tuple[Cells, ...] = ()
    rivals: tuple[Cells, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all of it, for keys of the cache: measurements of every model ask for it."""
        cells = [(self.rows, self.columns), *self.places, *self.rivals]
        told = self.sentence, len(self.places), [[of.tolist() for of in pair] for pair in cells]
        return hashlib.sha256(repr(told).encode()).hexdigest()

    @property
    def distance(self) -> int:
        """Distance between the two words in wordpieces; 1 if they stand side by side."""
        return int(np.abs(self.rows - self.columns).min())

    @property
    def forwards(self) -> bool:
        """True if the second word stands behind the first."""
        return bool(self.columns.mean() > self.rows.mean())

    @property
    def adjacent(self) -> bool:
        """True if the two words stand side by side."""
        return self.distance == 1


OfInput = Mapping[str, Sequence[TokenLink]]  # the links of one input by type


def find_links(annotated: AnnotatedInput, antecedents: bool) -> dict[str, list[TokenLink]]:
    """The links of an input, by type, each with its rivals.

    A link's *rivals* are the words between its two that have the second word's part of speech
    (proper nouns are nouns) and no such link with the first: in "the dog that chased the cat
    sleeps", *cat* is one of *dog* for the verb *sleeps*. So a head that attends to any noun on that
    side, or to the nearest, gives a rival as much as the subject. Nouns farther away would not show
    that, as the subject is mostly the nearer one; nor would those on the other side. What rivals
    cannot show: whether a head goes by the order of words (the first noun of a sentence), or by
    number.

    Args:
        annotated: the input.
        antecedents: True to link a pronoun with the word it refers to; False,
            the paper's reading for parsed text, with every noun of its sentence.

    Returns:
        A list for each of :data:`LINK_TYPES`; words that the length limit took away are in none.
    """
    found: dict[str, list[TokenLink]] = {name: [] for name in LINK_TYPES}
    for number, sentence in enumerate(annotated.sentences):
        first, last = sentence.span
        subjects, nouns = _verbs_and_subjects(sentence), _nouns_and_pronouns(sentence, antecedents)
        both_ways = (subjects, [(b, a) for a, b in subjects], nouns, [(b, a) for a, b in nouns])
        # A parser can call a punctuation mark a subject, a limit on length can take a word away,
        # and words that share a written word share its wordpieces.
        whole = [
            bool(own) and not is_punctuation(word)
            for word, own in zip(sentence.words, sentence.pieces, strict=True)
        ]
        written = sentence.written
        for name, pairs in zip(LINK_TYPES, both_ways, strict=True):
            found[name] += [
                TokenLink(
                    *_between(sentence, a, b),
                    (number, first, last - first + 1),
                    (),
                    _rivals(sentence, a, b, pairs),
                )
                for a, b in pairs
                if whole[a] and whole[b] and written[a] != written[b]
            ]
    return found


def _between(sentence: PlacedSentence, a: int, b: int) -> Cells:
    """The map's cells from one word to another."""
    own, other = sentence.pieces[a], sentence.pieces[b]
    return np.repeat(own, len(other)), np.tile(other, len(own))


def _rivals(
    sentence: PlacedSentence, a: int, b: int, pairs: Sequence[tuple[int, int]]
) -> tuple[Cells, ...]:
    def kind(word: Word) -> str:
        return "NOUN" if word.upos in NOUNS else word.upos

    inner, wanted = range(min(a, b) + 1, max(a, b)), kind(sentence.words[b])
    written = sentence.written
    chosen = [
        at
        for at in inner
        if sentence.pieces[at]
        and kind(sentence.words[at]) == wanted
        and (a, at) not in pairs
        and written[at] not in (written[a], written[b])
    ]
    return tuple(_between(sentence, a, at) for at in chosen)


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


def borrow(
    inputs: Sequence[OfInput], seed: Seed, count: int = BORROWED
) -> list[dict[str, list[TokenLink]]]:
    """The same links with places to compare them with, borrowed from other inputs as §4.2's control does.

    A place is where a link of the same type stands in a sentence of the same
    length that is the same one (first or second) of its own input. So what a
    head does at that distance, and at those positions of a sentence, is in the
    comparison. Places that are themselves links of the type are left out.

    Args:
        inputs: per input, from :func:`find_links`.
        seed: of the draw, where there are more than ``count``.
        count: places per link at most.
    """
    rng = np.random.default_rng(seed)
    groups: dict[
        tuple[str, int, int], list[tuple[int, Cells]]
    ] = {}  # cells relative to their sentence's start
    for row, by_type in enumerate(inputs):
        for name, links in by_type.items():
            for link in links:
                number, start, length = link.sentence
                groups.setdefault((name, number, length), []).append(
                    (row, (link.rows - start, link.columns - start))
                )

    def places(row: int, name: str, link: TokenLink, own: set[tuple[int, int]]) -> Iterator[Cells]:
        number, start, length = link.sentence
        group = groups[name, number, length]
        for at in rng.permutation(len(group)):
            other, (rows, columns) = group[at]
            if other != row and own.isdisjoint(_cells(rows + start, columns + start)):
                yield rows + start, columns + start

    found = []
    for row, by_type in enumerate(inputs):
        with_places = {}
        for name, links in by_type.items():
            own = {cell for link in links for cell in _cells(link.rows, link.columns)}
            with_places[name] = [
                replace(link, places=tuple(islice(places(row, name, link, own), count)))
                for link in links
            ]
        found.append(with_places)
    return found


def _cells(rows: np.ndarray, columns: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def distances(inputs: Sequence[OfInput], names: Sequence[str]) -> np.ndarray:
    """Distance in wordpieces between the words of each link of some types, 1 for neighbours, shape (links,)."""
    return np.array(
        [link.distance for by_type in inputs for name in names for link in by_type[name]], dtype=int
    )


def share_adjacent(inputs: Sequence[OfInput], names: Sequence[str]) -> float:
    """Share of the links of some types whose words stand side by side; NaN where there are none."""
    apart = distances(inputs, names)
    return float((apart == 1).mean()) if apart.size else float("nan")


# One input to look at before any statistic. -----------------------------


def pick(
    inputs: Mapping[Task, Sequence[AnnotatedInput]],
    links: Mapping[Task, Sequence[OfInput]],
    kind: str,
    adjacent: bool,
) -> tuple[Task, int]:
    """Task and number of the input of about fourteen tokens in which every link of a type is between neighbours, or none is.

    Chosen without a look at any map; one with rivals may be six tokens longer or shorter. If no
    input is so, one that has such links; if none has, any.

    Args:
        inputs: by task.
        links: by task, of every input; see :func:`borrow`.
        kind: one of :data:`LINK_TYPES`.
        adjacent: True for neighbours only, False for no neighbours.
    """

    def badness(item: tuple[Task, int]) -> tuple[int, int]:
        task, index = item
        of_type = links[task][index][kind]
        fits = all(link.adjacent == adjacent and link.places for link in of_type)
        off = abs(inputs[task][index].length - TOKENS) - 6 * any(link.rivals for link in of_type)
        return (0 if of_type and fits else 1 if of_type else 2), off

    return min(
        ((task, index) for task, of_task in inputs.items() for index in range(len(of_task))),
        key=badness,
    )


def short_single(inputs: Mapping[Task, Sequence[AnnotatedInput]]) -> tuple[Task, int]:
    """Task and number of an input of about fourteen tokens, of the first task whose inputs are one sentence, or of the first."""
    task = next((task for task in inputs if len(task.fields) == 1), next(iter(inputs)))
    return task, min(
        range(len(inputs[task])), key=lambda index: abs(inputs[task][index].length - TOKENS)
    )


def maps_of(model, batches: Sequence[Batch], index: int, attention: str = "weight") -> np.ndarray:
    """All maps of one input, shape (layers, heads, tokens, tokens).

    Args:
        model: encoder or classifier.
        batches: of the data.
        index: of the input in the data.
        attention: see :func:`bertology_utils.attention.attention_maps`.

    Raises:
        ValueError: no batch has it.
    """
    batch = next((batch for batch in batches if index in batch.index), None)
    if batch is None:
        raise ValueError(
            f"no input {index} in these batches; give one from 0 to {sum(len(b.index) for b in batches) - 1}"
        )
    row = batch.index.index(index)
    real = slice(int(batch.starts[row]), int(batch.starts[row] + batch.lengths[row]))
    maps = attention_maps(
        model, batch.to(model.device), attention
    )  # by layer: (inputs, heads, tokens, tokens)
    return np.stack([of_layer[row, :, real, real].cpu().numpy() for of_layer in maps])
