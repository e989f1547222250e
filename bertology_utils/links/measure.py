"""Attention along links between two words, beside the same cells at other inputs' places and beside neighbours (§4.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch

from ..annotation.inputs import NOUNS, PRONOUNS, SUBJECTS, AnnotatedInput, PlacedSentence, Positions, is_punctuation
from ..attention import Batch, attention_maps, received
from ..claims import WEIGHT
from ..common import Head, head_name
from ..glue import Task
from ..judge import Support, all_of
from ..results import Results
from ..statistics import ONE_SIDED, Bootstrap, ManyTest, Seed, many_test, rank_correlation
from ..statistics.permutation import by_size, largest, ranks

PREDICATES = {"VERB", "AUX"}  # ClearNLP makes the copula the subject's head, UD the adjective or noun beside it
BORROWED = 8  # places from other inputs
TOKENS = 14  # of an input whose map is legible on a page
LINK_TYPES = ("verb → subject", "subject → verb", "noun → pronoun", "pronoun → noun")
PAIRS = {"verbs": LINK_TYPES[:2], "pronouns": LINK_TYPES[2:]}  # by the pair of words, both ways
Cells = tuple[np.ndarray, np.ndarray]  # rows and columns of a map, each of shape (pairs,)
Found = Mapping[str, Any]  # what one pass over one task's inputs found, by measurement
AS_IS, POPULARITY_OFF = "links", "centred"  # the two ways in which links are measured
WAYS = (AS_IS, POPULARITY_OFF)
# Names of rows in results.json; of every head, by state of the model and type of link.
SCORES, NEIGHBOURS = "weight along links", "weight on the token before or after, the larger"
EXCESS = {AS_IS: "weight along links above other inputs' places", POPULARITY_OFF: "the same with each word's popularity off"}
ALONG, ABOVE = "attention along links", "above other inputs' places"  # what goes with attention to neighbours, or not


@dataclass(frozen=True)
class TokenLinkScores:
    """Result of :class:`TokenLinkAttention`. An example's value is the mean over its links; NaN where it has none.

    Attributes:
        actual: largest weight among a link's cells, shape (examples, types, layers, heads).
        matched: the same of the links that have places to compare them with.
        elsewhere: mean over these places.
        counts: links per type, and how many of them have such places, shape (types, 2).
    """

    actual: np.ndarray
    matched: np.ndarray
    elsewhere: np.ndarray
    counts: np.ndarray


class TokenLinkAttention:
    """Measurement: the weight along every link, and at the places it is compared with.

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
        self._cells = torch.empty(0, dtype=torch.long)  # of the batch's links and their places, in its flattened maps
        self._sizes: list[int] = []  # cells of each place, the link's own first
        self._places = self._groups = np.empty(0, dtype=int)  # of each link how many places, and example and type as one

    def start(self, batch: Batch) -> None:
        """List the cells of the batch's links."""
        tokens, starts, types = batch.mask.shape[1], batch.starts.tolist(), list(enumerate(LINK_TYPES))
        links = [
            (row, kind, link)
            for row, index in enumerate(batch.index)
            for kind, name in types
            for link in self._links[index][name]
        ]
        cells = [
            (row * tokens + rows + starts[row]) * tokens + columns + starts[row]
            for row, _, link in links
            for rows, columns in ((link.rows, link.columns), *link.places)
        ]
        self._cells = torch.from_numpy(np.concatenate([np.empty(0, dtype=int), *cells]))
        self._sizes = list(map(len, cells))
        self._places = np.array([1 + len(link.places) for *_, link in links], dtype=int)
        self._groups = np.array([row * len(types) + kind for row, kind, _ in links], dtype=int)
        self._rows |= {index: [] for index in batch.index}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        if self._centred:
            maps = maps - received(maps, batch)[:, :, None]
        values = self._means(maps)  # (3, examples, types, heads)
        for row, index in enumerate(batch.index):
            self._rows[index].append(values[:, row])

    def _means(self, maps: torch.Tensor) -> np.ndarray:
        """Means over links of (actual, matched, elsewhere), shape (3, examples, types, heads)."""
        examples, heads = maps.shape[:2]
        found = np.full((3, examples * len(LINK_TYPES), heads), np.nan)
        if len(self._cells):
            by_head = maps.transpose(0, 1).reshape(heads, -1)  # (heads, examples · tokens · tokens)
            weights = by_head[:, self._cells.to(maps.device)].cpu().double().numpy()
            first_cells, first_places = (np.cumsum(counts) - counts for counts in (np.array(self._sizes), self._places))
            highest = np.maximum.reduceat(weights, first_cells, axis=1)  # (heads, places)
            actual = highest[:, first_places]  # (heads, links)
            movable = self._places > 1
            others = (np.add.reduceat(highest, first_places, axis=1) - actual)[:, movable] / (self._places[movable] - 1)
            for into, values, groups in zip(
                found,
                (actual, actual[:, movable], others),
                (self._groups, self._groups[movable], self._groups[movable]),
                strict=True,
            ):
                if len(groups):  # links stand group by group
                    own, starts, counts = np.unique(groups, return_index=True, return_counts=True)
                    into[own] = (np.add.reduceat(values, starts, axis=1) / counts).T
        return found.reshape(3, examples, len(LINK_TYPES), heads)

    def compute(self) -> TokenLinkScores:
        """The values of all examples, in the order of the data."""
        values = np.stack([np.stack(self._rows[index], axis=2) for index in sorted(self._rows)], axis=1)
        all_links = [[link for by_type in self._links for link in by_type[name]] for name in LINK_TYPES]
        counts = np.array([[len(of_type), sum(len(link.places) > 0 for link in of_type)] for of_type in all_links])
        actual, matched, elsewhere = values
        return TokenLinkScores(actual, matched, elsewhere, counts)


# Over the examples of all tasks together, every example weighing the same. ---


@dataclass(frozen=True)
class Clear:
    """Do heads attend more along one type of link than at other inputs' places, as it is and centred?

    Attributes:
        plain, centred: the tests of all heads against the least effect, shape (layers, heads).
    """

    plain: ManyTest
    centred: ManyTest

    @property
    def heads(self) -> np.ndarray:
        """Heads for which both say so, shape (layers, heads)."""
        return np.maximum(self.plain.above, self.centred.above) <= ONE_SIDED

    @property
    def support(self) -> Support:
        """Support for some head that does: both tests of it, or for every head at least one speaks against."""
        both = np.maximum(self.plain.above, self.centred.above)
        either = np.minimum(1, 2 * np.minimum(self.plain.below, self.centred.below))
        at = largest(self.plain.means)
        number = f"head {head_name(*at)} {self.plain.means[at]:+.3f}; n={int(self.plain.n[at])}"
        return Support(float(both.min()), float(either.max()), number)


@dataclass(frozen=True)
class LinkHeads:
    """What every head of one model gives to links and to neighbours, means over examples, each of shape (layers, heads).

    Attributes:
        scores: by type of link, the weight along it.
        excess: by way and type, how much more that is than at other inputs' places.
        neighbours: weight on the token before or the token after, the larger of the two.
    """

    scores: Mapping[str, np.ndarray]
    excess: Mapping[str, Mapping[str, np.ndarray]]
    neighbours: np.ndarray


def examples(found: Iterable[Found]) -> dict[str, int]:
    """Number of examples with a link of each type, for the types that the data have."""
    counts = np.isfinite(_of_links(found, "actual")[:, :, 0, 0]).sum(axis=0)
    return {name: int(n) for name, n in zip(LINK_TYPES, counts, strict=True) if n}


def differences(found: Iterable[Found], kind: str, way: str = AS_IS) -> np.ndarray:
    """Along links of a type minus at other inputs' places, shape (examples, layers, heads); NaN without such places.

    Args:
        found: of every task.
        kind: of link.
        way: "links" as they are, or "centred", with each word's popularity taken off.
    """
    found, at = list(found), LINK_TYPES.index(kind)
    return _of_links(found, "matched", way)[:, at] - _of_links(found, "elsewhere", way)[:, at]


def clear(found: Iterable[Found], kinds: Iterable[str], seed: Seed) -> dict[str, Clear]:
    """Tests of every head's excess against the least effect by type of link, as it is and without popularity."""
    found = list(found)
    return {name: Clear(*(many_test(differences(found, name, way), WEIGHT, seed) for way in WAYS)) for name in kinds}


def of_heads(found: Iterable[Found], tests: Mapping[str, Clear]) -> LinkHeads:
    """Means over the examples of all tasks.

    Args:
        found: of every task: links, links centred and flow.
        tests: from :func:`clear`.
    """
    found = list(found)
    actual = _of_links(found, "actual")
    shares = np.concatenate([of_task["flow"].neighbours for of_task in found]).mean(axis=0)  # before, itself, after
    return LinkHeads(
        {name: np.nanmean(actual[:, LINK_TYPES.index(name)], axis=0) for name in tests},
        {AS_IS: {name: one.plain.means for name, one in tests.items()},
         POPULARITY_OFF: {name: one.centred.means for name, one in tests.items()}},
        shares[..., [0, 2]].max(axis=-1),
    )  # fmt: skip


def read_heads(results: Results, state: str = "pre-trained") -> LinkHeads:
    """The same numbers of one state of the model, read from a run's results.json."""
    scores, *excess = (
        {kind: np.array(entry["value"], dtype=float) for kind, entry in results.by("kind", what, state=state).items()}
        for what in (SCORES, *EXCESS.values())
    )
    return LinkHeads(scores, dict(zip(WAYS, excess, strict=True)), results.array(NEIGHBOURS, state=state))


def correlations(sources: Mapping[str, LinkHeads], seed: Seed) -> dict[str, dict[str, dict[str, Bootstrap]]]:
    """Spearman's ρ over heads, resampled, with the weight on neighbours: by what, type of link and source.

    Args:
        sources: by title.
        seed: of the resampling of heads.
    """
    found: dict[str, dict[str, dict[str, Bootstrap]]] = {ALONG: {}, ABOVE: {}}
    for title, heads in sources.items():
        for label, values in ((ALONG, heads.scores), (ABOVE, heads.excess[AS_IS])):
            for kind, of_type in values.items():
                rho = rank_correlation(of_type.ravel(), heads.neighbours.ravel(), seed)
                found[label].setdefault(kind, {})[title] = rho
    return found


def some_head(tests: Mapping[str, Mapping[str, Clear]], kinds: Iterable[str]) -> dict[str, Support]:
    """Support for some head that is above other inputs' places, by type of link and model; the largest excess first.

    Args:
        tests: by model and type of link.
        kinds: of link.
    """
    each = [(f"{kind}, {model}", of_model[kind]) for kind in kinds for model, of_model in tests.items() if kind in of_model]
    return {name: one.support for name, one in sorted(each, key=lambda item: -np.nanmax(item[1].plain.means))}


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


def highest_five(
    scores: np.ndarray, neighbours: np.ndarray, seed: Seed, count: int = 5, draws: int = 10_000
) -> tuple[float, float]:
    """How much the heads with the highest scores attend to neighbours, beside random sets of as many heads (§4.5).

    Args:
        scores: along links, shape (layers, heads).
        neighbours: attention to the previous or next token, same shape.
        seed: of the draws.
        count: how many heads are candidates.
        draws: random sets of heads to compare with.

    Returns:
        The share of random sets that attend to neighbours less, by mean rank;
        and the candidates' mean rank, 1 for the head that does so most.
    """
    by_rank = ranks(neighbours.ravel())
    candidates = by_rank[by_size(scores)[:count]].mean()
    rng = np.random.default_rng(seed)
    drawn = np.array([by_rank[rng.choice(by_rank.size, count, replace=False)].mean() for _ in range(draws)])
    return float(np.mean(drawn > candidates)), float(candidates)


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
        places: cells to compare it with, (rows, columns) each; see :func:`borrow`.
    """

    rows: np.ndarray
    columns: np.ndarray
    sentence: tuple[int, int, int]
    places: tuple[Cells, ...] = ()

    @property
    def distance(self) -> int:
        """Distance between the two words in wordpieces; 1 if they stand side by side."""
        return int(np.abs(self.rows - self.columns).min())

    @property
    def adjacent(self) -> bool:
        """True if the two words stand side by side."""
        return self.distance == 1


OfInput = Mapping[str, Sequence[TokenLink]]  # the links of one input by type


def find_links(annotated: AnnotatedInput, antecedents: bool) -> dict[str, list[TokenLink]]:
    """The links of an input, by type.

    Args:
        annotated: the input.
        antecedents: True to link a pronoun with the word it refers to; False,
            the paper's reading for parsed text, with every noun of its sentence.

    Returns:
        A list for each of :data:`LINK_TYPES`; words that the length limit took away are in none.
    """
    found: dict[str, list[TokenLink]] = {name: [] for name in LINK_TYPES}
    for number, sentence in enumerate(annotated.sentences):
        positions = [at for pieces in sentence.pieces for at in pieces]
        if not positions:
            continue
        subjects, nouns = _verbs_and_subjects(sentence), _nouns_and_pronouns(sentence, antecedents)
        both_ways = (subjects, [(b, a) for a, b in subjects], nouns, [(b, a) for a, b in nouns])
        placed = zip(sentence.words, sentence.pieces, strict=True)
        words = {at for word, pieces in placed if not is_punctuation(word) for at in pieces}
        extent = number, min(positions), max(positions) - min(positions) + 1
        for name, pairs in zip(LINK_TYPES, both_ways, strict=True):
            # A parser can call a punctuation mark a subject, and a limit on length can take a word away.
            whole = [(a, b) for a, b in pairs if a and b and words.issuperset(a + b)]
            found[name] += [TokenLink(np.repeat(a, len(b)), np.tile(b, len(a)), extent) for a, b in whole]
    return found


def _verbs_and_subjects(sentence: PlacedSentence) -> list[tuple[Positions, Positions]]:
    return [
        (sentence.pieces[word.head], pieces)
        for word, pieces in zip(sentence.words, sentence.pieces, strict=True)
        if word.deprel in SUBJECTS and word.head >= 0 and sentence.words[word.head].upos in PREDICATES
    ]


def _nouns_and_pronouns(sentence: PlacedSentence, antecedents: bool) -> list[tuple[Positions, Positions]]:
    placed = list(zip(sentence.words, sentence.pieces, strict=True))
    pronouns = [(word, own) for word, own in placed if word.upos in PRONOUNS]
    if antecedents:
        return [(sentence.pieces[word.antecedent], own) for word, own in pronouns if word.antecedent is not None]
    return [(noun, own) for _, own in pronouns for word, noun in placed if word.upos in NOUNS]


def borrow(inputs: Sequence[OfInput], seed: Seed, count: int = BORROWED) -> list[dict[str, list[TokenLink]]]:
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
    groups: dict[tuple[str, int, int], list[tuple[int, Cells]]] = {}  # cells relative to their sentence's start
    for row, by_type in enumerate(inputs):
        for name, links in by_type.items():
            for link in links:
                number, start, length = link.sentence
                groups.setdefault((name, number, length), []).append((row, (link.rows - start, link.columns - start)))

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
            with_places[name] = [replace(link, places=tuple(islice(places(row, name, link, own), count))) for link in links]
        found.append(with_places)
    return found


def _cells(rows: np.ndarray, columns: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def distances(inputs: Sequence[OfInput], names: Sequence[str]) -> np.ndarray:
    """Distance in wordpieces between the words of each link of some types, 1 for neighbours, shape (links,)."""
    return np.array([link.distance for by_type in inputs for name in names for link in by_type[name]], dtype=int)


def share_adjacent(inputs: Sequence[OfInput], names: Sequence[str]) -> float:
    """Share of the links of some types whose words stand side by side; NaN where there are none."""
    apart = distances(inputs, names)
    return float((apart == 1).mean()) if apart.size else float("nan")


# One input to look at before any statistic. -----------------------------


def pick(
    inputs: Mapping[Task, Sequence[AnnotatedInput]], links: Mapping[Task, Sequence[OfInput]], kind: str, adjacent: bool
) -> tuple[Task, int]:
    """Task and number of the input of about fourteen tokens in which every link of a type is between neighbours, or none is.

    Chosen without a look at any map. If no input is so, one that has such links; if none has, any.

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
        return (0 if of_type and fits else 1 if of_type else 2), abs(inputs[task][index].length - TOKENS)

    return min(((task, index) for task, of_task in inputs.items() for index in range(len(of_task))), key=badness)


def short_single(inputs: Mapping[Task, Sequence[AnnotatedInput]]) -> tuple[Task, int]:
    """Task and number of an input of about fourteen tokens, of the first task whose inputs are one sentence, or of the first."""
    task = next((task for task in inputs if len(task.fields) == 1), next(iter(inputs)))
    return task, min(range(len(inputs[task])), key=lambda index: abs(inputs[task][index].length - TOKENS))


def maps_of(model, batches: Sequence[Batch], index: int, weighing: str = "weight") -> np.ndarray:
    """All maps of one input, shape (layers, heads, tokens, tokens).

    Args:
        model: encoder or classifier.
        batches: of the data.
        index: of the input in the data.
        weighing: see :func:`bertology_utils.attention.attention_maps`.

    Raises:
        ValueError: no batch has it.
    """
    batch = next((batch for batch in batches if index in batch.index), None)
    if batch is None:
        raise ValueError(f"no input {index} in these batches; give one from 0 to {sum(len(b.index) for b in batches) - 1}")
    row = batch.index.index(index)
    real = slice(int(batch.starts[row]), int(batch.starts[row] + batch.lengths[row]))
    maps = attention_maps(model, batch.to(model.device), weighing)  # by layer: (inputs, heads, tokens, tokens)
    return np.stack([of_layer[row, :, real, real].cpu().numpy() for of_layer in maps])
