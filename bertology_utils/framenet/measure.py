"""How much every head attends along links, at other places and from the other end, and what decides the claims (§4.2)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..annotation.inputs import wordpieces
from ..attention import Batch, attention_maps, make_batches, observe, observe_cached
from ..attention.batches import batches_of, encode
from ..attention.cells import BORROWED, Cells, StrongestCells, as_set, borrow_places, cells_between
from ..common import Head, head_name
from ..lab import Lab, kept
from ..published import MODEL, READING_ERROR, published_panel
from ..statistics import (
    ONE_SIDED,
    Bootstrap,
    Estimate,
    ManyTest,
    Seed,
    bootstrap_mean,
    heads_by_size,
    in_both,
    many_test,
    mean_over_seeds,
    p_is,
)
from ..verdicts import CLAIMS, WEIGHT, Support, some_head, too_few
from .release import RULES, FrameSentence, Span, extract, load_release, only_complements

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel

EXAMPLE = "He was becoming agitated ."  # of §4.2
PAPER_SENTENCES, PAPER_UNITS = 473, 13_572  # §4.2; lexical units of release 1.7
# Who attends: the predicate, as the paper's text says, or the element, as its code has it.
DIRECTIONS = FORWARD, BACK = "predicate to element", "element to predicate"
# What a weight is beyond: nothing; its place; its place, and what its words give and receive anyway.
BEYOND = ("nothing", "place", "place and words")
# What the links are compared with, and what people read for it.
PLACES = {"moved": "shifted places", "borrowed": "other sentences' places"}
EVEN_SHARES = 2  # so many times 1/L is a high weight, as in §4.4's stripes
# Rows of the results.
SCORE, EXCESS = "score along frame links", "excess along frame links"
P_OF_EXCESS = "p of the excess beyond place and word"
WEIGHT_ALONE, BOTH = "weight", "smaller of both"  # states of the excess: without popularity, too
PUBLISHED = "bert-base, published figure"
# The same score where there is no link, or no learned head; and what the paper's criterion says of each.
ELSEWHERE = "score of heads without links or training"
LINKS, OTHER_PLACES, RANDOM = "links", PLACES["borrowed"], "random weights"
BEYOND_99TH = "heads beyond the 99th percentile of all heads"


# Where links are among wordpieces


@dataclass(frozen=True)
class FramePlaces:
    """Where a sentence's links stand among its wordpieces.

    Attributes:
        sentence: the sentence.
        predicate: positions of the predicate's wordpieces.
        elements: positions of each linked element's.
        length: wordpieces, special tokens included.
        words: positions of all but the special tokens.
    """

    sentence: FrameSentence
    predicate: tuple[int, ...]
    elements: tuple[tuple[int, ...], ...]
    length: int
    words: range

    def pairs(self, direction: str, pairing: str = "product") -> Cells:
        """The map's cells that belong to the links.

        Args:
            direction: one of :data:`DIRECTIONS`.
            pairing: "product" pairs every wordpiece of the predicate with every one of an element;
                "zip" the first with the first and so on, as the published code does.
        """
        if pairing == "zip":
            pairs = [zip(self.predicate, element, strict=False) for element in self.elements]
            cells = [np.array([*several]).T for several in pairs]
        else:
            cells = [cells_between(self.predicate, element) for element in self.elements]
        predicate_first = np.hstack(cells)
        return predicate_first if direction == FORWARD else predicate_first[::-1]


def place(
    sentences: Sequence[FrameSentence], tokenizer: Any, max_length: int = 128
) -> tuple[list[FramePlaces], Dataset]:
    """Sentences with the wordpieces of their links, and the model's inputs.

    Args:
        sentences: from :func:`bertology_utils.framenet.release.extract`.
        tokenizer: a fast tokenizer.
        max_length: wordpieces per input.

    Returns:
        The placed sentences, and the model's inputs in the same order. Sentences are left out whose
        predicate, or an element of which, has no wordpiece within ``max_length``.
    """
    from datasets import Dataset

    texts = [sentence.exemplar.text for sentence in sentences]
    inputs = encode(tokenizer, texts, max_length=max_length, return_offsets_mapping=True)
    all_offsets = inputs.pop("offset_mapping")

    def positions(row: int, spans: Sequence[Span]) -> tuple[int, ...]:
        pieces = (wordpieces(all_offsets[row], span.start, span.end) for span in spans)
        return tuple(sorted({index for several in pieces for index in several}))

    placed, rows = [], []
    for row, sentence in enumerate(sentences):
        predicate = positions(row, sentence.target)
        elements = tuple(positions(row, spans) for spans in sentence.elements)
        if predicate and all(elements):
            owners = inputs.sequence_ids(row)  # None for a special token
            pieces = [position for position, owner in enumerate(owners) if owner is not None]
            words = range(pieces[0], pieces[-1] + 1)
            placed.append(FramePlaces(sentence, predicate, elements, len(owners), words))
            rows.append(row)
    return placed, Dataset.from_dict(dict(inputs)).select(rows)


@kept
def frame_sentences(lab: Lab) -> tuple[list[FramePlaces], list[Batch]]:
    """The sentences that the lab's protocol keeps of its release, with their model inputs."""
    sentences = extract(load_release(lab.settings.framenet), RULES[lab.settings.protocol])
    placed, inputs = place(sentences, lab.tokenizer)
    return placed, make_batches(inputs, lab.tokenizer)


# Attention along links


@dataclass(frozen=True)
class FrameLinkScores:
    """Scores of every sentence and head, as :class:`FrameLinkAttention` computes them.

    Attributes:
        places: per sentence, shape (places, layers, heads): the score of its links first, then
            those of the cells that they are compared with.
    """

    places: tuple[np.ndarray, ...]

    @property
    def actual(self) -> np.ndarray:
        """Scores of the annotated links, shape (sentences, layers, heads)."""
        return np.stack([scores[0] for scores in self.places])

    @property
    def compared(self) -> np.ndarray:
        """True for sentences with other places, shape (sentences,)."""
        return np.array([len(scores) > 1 for scores in self.places])

    @property
    def elsewhere(self) -> np.ndarray:
        """Mean score of the other places, over the sentences that have some, shape (layers, heads)."""
        others = [scores[1:].mean(axis=0) for scores in self.places if len(scores) > 1]
        return np.mean(others, axis=0)

    @property
    def excess(self) -> np.ndarray:
        """Links minus the mean of the other places, shape (sentences that have others, layers, heads)."""
        others = [scores[1:].mean(axis=0) for scores in self.places if len(scores) > 1]
        return self.actual[self.compared] - np.stack(others)


Scores = Mapping[str, FrameLinkScores]  # by direction


class FrameLinkAttention(StrongestCells):
    """Measurement: the largest weight among the cells of a sentence's links, for every head, and at other places.

    Args:
        places: per sentence the cells of its links, then those of each place that they are compared
            with; see :func:`borrowed_places` and :func:`moved_places`.
        centred: see :class:`bertology_utils.attention.cells.StrongestCells`.
    """

    def __init__(self, places: Sequence[Sequence[Cells]], centred: bool = False):
        super().__init__(places, centred)
        self._places = places

    def others(self, index: int) -> list[set[tuple[int, int]]]:
        """The cells, (row, column), of every place that a sentence's links are compared with."""
        return [as_set(cells) for cells in self._places[index][1:]]

    def compute(self) -> FrameLinkScores:
        """The scores of all sentences, in order."""
        return FrameLinkScores(tuple(super().compute()))


def borrowed_places(placed: Sequence[FramePlaces], direction: str, seed: int) -> list[list[Cells]]:
    """For each sentence the cells of its own links, then those where other sentences of its length have theirs.

    So positions and distances are the same, but there is no link. Of many, some are drawn by the
    seed.
    """
    rng, by_length = np.random.default_rng(seed), defaultdict[int, list[Cells]](list)
    links = [(by_length[sentence.length], sentence.pairs(direction)) for sentence in placed]
    for same, cells in links:
        same.append(cells)
    return [[cells, *borrow_places(same, as_set(cells), rng)] for same, cells in links]


def partners(placed: Sequence[FramePlaces], seed: int) -> list[list[int]]:
    """For each sentence up to eight others, drawn by the seed, in which the place of its links is looked at as well.

    They have as many wordpieces, and none of its links' cells is a link's there. Each is a partner
    of its partners, so that all maps are looked at equally often.

    Returns:
        Positions in ``placed``.
    """
    rng, cells = np.random.default_rng(seed), [as_set(one.pairs(FORWARD)) for one in placed]
    others: list[list[int]] = [[] for _ in placed]
    by_length = defaultdict[int, list[int]](list)
    for at, sentence in enumerate(placed):
        by_length[sentence.length].append(at)
    for same in by_length.values():
        for _ in range(BORROWED):
            single: list[int] = []
            for own in rng.permutation(same).tolist():
                fitting = (
                    at
                    for at in single
                    if at not in others[own] and cells[own].isdisjoint(cells[at])
                )
                if (partner := next(fitting, None)) is None:
                    single.append(own)
                    continue
                single.remove(partner)
                others[own].append(partner)
                others[partner].append(own)
    return others


class BeyondWords(StrongestCells):
    """Measurement: the largest weight in each set of cells, beyond what the two words give and receive anyway.

    From every weight the mean of its row and that of its column are subtracted, and the mean of all
    is added; the means are over words, without special tokens.

    Args:
        sets: see :class:`bertology_utils.attention.cells.StrongestCells`.
        words: per example the positions of its words.
    """

    def __init__(self, sets: Sequence[Sequence[Cells]], words: Sequence[range]):
        super().__init__(sets)
        self._words = words

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        share = torch.zeros(batch.mask.shape, dtype=maps.dtype, device=maps.device)
        for row, index in enumerate(batch.index):
            share[row, list(self._words[index])] = 1 / len(self._words[index])
        given = torch.einsum("ehij,ej->ehi", maps, share)
        received = torch.einsum("ehij,ei->ehj", maps, share)
        mean = torch.einsum("ehi,ei->eh", given, share)
        anyway = given[..., None] + received[:, :, None] - mean[..., None, None]
        super().update(layer, maps - anyway, batch)


def link_weights(
    model: PreTrainedModel,
    placed: Sequence[FramePlaces],
    batches: Sequence[Batch],
    pairing: str = "product",
    seed: int = 1,
) -> np.ndarray:
    """The largest weight along each sentence's links in every head, and how much larger it is than elsewhere.

    Beyond nothing, as in the paper; beyond the mean of what it is at the same place in the sentence's
    :func:`partners`; and the same after :class:`BeyondWords`.

    Args:
        model: an encoder.
        placed: from :func:`place`.
        batches: model inputs of the same sentences.
        pairing: see :meth:`FramePlaces.pairs`.
        seed: of the draw of partners.

    Returns:
        Shape (directions, :data:`BEYOND`, sentences, layers, heads); NaN where a sentence has no
        partner.
    """
    others, measures = partners(placed, seed), {}
    for direction in DIRECTIONS:
        cells = [one.pairs(direction, pairing) for one in placed]
        sets = [[cells[at] for at in (own, *others[own])] for own in range(len(placed))]
        measures[direction] = StrongestCells(sets)
        measures[f"{direction}, words"] = BeyondWords(sets, [one.words for one in placed])
    seen = observe(model, batches, measures)  # of each sentence at its own place, then at others'

    def beyond_place(values: Sequence[np.ndarray]) -> list[np.ndarray]:
        there = (
            [values[at][1 + others[at].index(own)] for at in others[own]]
            for own in range(len(placed))
        )
        return [
            one[0] - (np.mean(several, axis=0) if several else np.nan)
            for one, several in zip(values, there, strict=True)
        ]

    return np.array(
        [
            [[one[0] for one in seen[way]]]
            + [beyond_place(seen[name]) for name in (way, f"{way}, words")]
            for way in DIRECTIONS
        ]
    )


def moved_places(placed: Sequence[FramePlaces], direction: str) -> list[list[Cells]]:
    """Links, and their cells moved along the sentence together, wherever all are on words and none is a link's."""
    places = []
    for sentence in placed:
        links, words = sentence.pairs(direction), sentence.words
        shifts, own = range(words.start - links.min(), words.stop - links.max()), as_set(links)
        moved = [links + shift for shift in shifts]
        places.append([links, *(cells for cells in moved if own.isdisjoint(as_set(cells)))])
    return places


def pointing(placed: Sequence[FramePlaces], direction: str) -> StrongestCells:
    """A measurement for :func:`hits`: by linked row of a sentence the cells of its link, then all of the row on words."""
    sets = []
    for sentence in placed:
        (rows, columns), cells = sentence.pairs(direction), []
        for row in np.unique(rows):
            cells += [cells_between([row], to) for to in (columns[rows == row], sentence.words)]
        sets.append(cells)
    return StrongestCells(sets)


def hits(weights: Sequence[np.ndarray]) -> np.ndarray:
    """True where the word to which some linked row attends most belongs to its link, shape (sentences, layers, heads).

    Args:
        weights: what :func:`pointing` measured.
    """
    return np.stack([(one[::2] == one[1::2]).any(axis=0) for one in weights])


@dataclass(frozen=True)
class Seen:
    """One head's map of a sentence.

    Attributes:
        head: (layer, head) from 0.
        tokens: the wordpieces.
        weights: the map, shape (tokens, tokens).
        cells: (row, column) of the links' cells in it.
        link: the cell of these with the largest weight.
    """

    head: Head
    tokens: list[str]
    weights: np.ndarray
    cells: list[tuple[int, int]]
    link: tuple[int, int]

    @property
    def text(self) -> str:
        """ "from “agitated” to “he” 0.032"."""
        looking, seen = (self.tokens[place] for place in self.link)
        return f"from “{looking}” to “{seen}” {self.weights[self.link]:.3f}"


def seen(encoder: Any, tokenizer: Any, sentence: FramePlaces, head: Head, direction: str) -> Seen:
    """One head's map of a sentence.

    Args:
        encoder, tokenizer: the model.
        sentence: from :func:`place`.
        head: (layer, head) from 0.
        direction: one of :data:`DIRECTIONS`.
    """
    (batch,) = batches_of([sentence.sentence.exemplar.text], tokenizer)
    tokens = tokenizer.convert_ids_to_tokens(batch.inputs["input_ids"][0])
    layer, index = head
    weights = attention_maps(encoder, batch.to(encoder.device))[layer][0, index].cpu().numpy()
    cells = sorted(as_set(sentence.pairs(direction)))
    return Seen(head, tokens, weights, cells, max(cells, key=lambda cell: weights[cell]))


def most_special(scores: FrameLinkScores, head: Head) -> int:
    """Index of the sentence whose links a head prefers most to at least two other places."""
    excess = [
        one[0][head] - one[1:].mean(axis=0)[head] if len(one) > 2 else -1.0 for one in scores.places
    ]
    return int(np.argmax(excess))


# What decides


def p_of_following(test: ManyTest, random_bar: float) -> np.ndarray:
    """Every head's p value that its excess is above the least effect; 1 where a head with random weights has as much.

    Args:
        test: of every head's excess, with and without popularity.
        random_bar: the largest excess of a head with random weights.
    """
    return np.where(test.means > random_bar, test.above, 1.0)


def largest_excess(test: ManyTest, random_bar: float) -> Support:
    """Support for some head whose excess is above the least effect and above that of any head with random weights.

    Arguments as of :func:`p_of_following`.
    """
    head = heads_by_size(test.means)[0]
    p = p_of_following(test, random_bar)
    above = f"{np.count_nonzero(p <= ONE_SIDED)} of {p.size}"
    number = f"{head_name(*head)} {test.means[head]:+.3f}, {p_is(p[head])}, {above}"
    number += f" heads above (random weights {random_bar:+.3f}); n={test.n[head]}"
    return Support(float(p.min()), some_head(test).fails, number)


def tested_head(test: ManyTest, head: Head) -> Support:
    """Support for one head's mean above the test's least effect, corrected over all heads."""
    number = f"{head_name(*head)} {test.means[head]:+.3f}; n={test.n[head]}"
    return Support(float(test.above[head]), float(test.below[head]), number)


def second_above_third(scores: np.ndarray, seed: Seed) -> Estimate:
    """The second highest head's score minus the third's, mean over sentences.

    Args:
        scores: shape (sentences, layers, heads).
        seed: of the resampling of sentences.
    """
    _, second, third, *_ = heads_by_size(scores.mean(axis=0))
    return mean_over_seeds([bootstrap_mean(scores[:, *second] - scores[:, *third], seed)])


def published_second_above_third() -> Estimate:
    """As :func:`second_above_third`, of the published panel; its error is that of reading two cells off."""
    panel = published_panel("framenet")
    _, second, third, *_ = heads_by_size(panel)
    # Of one cell, if all readings within the error are as likely.
    error = READING_ERROR / np.sqrt(3)
    return Estimate(panel[second] - panel[third], error * np.sqrt(2), PAPER_SENTENCES)


def best_fixed_distance(
    placed: Sequence[FramePlaces], direction: str, seed: Seed
) -> tuple[int, Bootstrap]:
    """Share of links that a head would hit if it always pointed the same number of wordpieces away.

    To be compared with :func:`hits`.

    Returns:
        The best distance (column minus row), and the share of sentences in which it hits.
    """
    distances = [
        set((cells[1] - cells[0]).tolist()) for cells in (s.pairs(direction) for s in placed)
    ]
    counts = Counter(distance for several in distances for distance in several)
    best = max(counts, key=lambda distance: (counts[distance], -abs(distance)))
    return best, bootstrap_mean(np.array([float(best in several) for several in distances]), seed)


# All that §4.2 measures


def run(lab: Lab) -> None:
    """Record the scores of every head in both directions, the controls, and the verdicts of §4.2."""
    record_sentences(lab)
    placed, batches = frame_sentences(lab)
    measurements = {direction: borrowing(lab, placed, direction) for direction in DIRECTIONS}
    random = observe_cached(lab.encoder("normal"), batches, measurements)
    scores, tests = scores_and_tests(lab, placed, batches)
    record_highest_heads(lab, scores, random[FORWARD])
    record_percentile(lab, scores, random)

    bars = {direction: float(one.excess.mean(axis=0).max()) for direction, one in random.items()}
    excess = {
        direction: {
            WEIGHT_ALONE: scores[direction].excess.mean(axis=0),
            BOTH: tests[direction].means,
        }
        for direction in DIRECTIONS
    }
    lab.record(EXCESS, excess, by=("kind", "state"), unit="difference")
    p = {direction: p_of_following(test, bars[direction]) for direction, test in tests.items()}
    lab.record(P_OF_EXCESS, p, by=("kind",), unit="p", tolerance=0.01)
    record_following(lab, "frame links", tests, bars, {"frame-links": FORWARD, "frame-back": BACK})
    record_complements(lab, bars)
    record_pointing(lab, scores[FORWARD])


def borrowing(
    lab: Lab, placed: Sequence[FramePlaces], direction: str, centred: bool = False
) -> FrameLinkAttention:
    """Links of a direction beside other sentences' places."""
    return FrameLinkAttention(borrowed_places(placed, direction, lab.settings.seed), centred)


def scores_and_tests(
    lab: Lab, placed: Sequence[FramePlaces], batches: Sequence[Batch]
) -> tuple[dict[str, FrameLinkScores], dict[str, ManyTest]]:
    """Scores of the pre-trained heads, and tests of their excess, by direction.

    The test says of every head whether its excess along frame links, as it is and with popularity
    off, is above the least effect that counts.
    """
    measurements = {
        f"{direction}{how}": borrowing(lab, placed, direction, centred=bool(how))
        for direction in DIRECTIONS
        for how in ("", ", centred")
    }
    measured = observe_cached(lab.encoder(), batches, measurements)
    tests = {
        name: many_test(one.excess, WEIGHT, lab.settings.seed) for name, one in measured.items()
    }
    return (
        {direction: measured[direction] for direction in DIRECTIONS},
        {one: in_both(tests[one], tests[f"{one}, centred"]) for one in DIRECTIONS},
    )


def record_sentences(lab: Lab) -> None:
    """How many sentences the paper's rules leave, and those of its code."""
    release = load_release(lab.settings.framenet)
    if release.problems:
        print(f"left out of {release.name}: {len(release.problems)}, first {release.problems[0]}")
    lab.fact(release=release.name)
    sentences = {name: len(extract(release, rules)) for name, rules in RULES.items()}
    lab.record("sentences kept", sentences, by=("kind",), unit="count")
    unmet = f"release 1.7 with {PAPER_UNITS} lexical units; here {release.units}"
    unmet = "" if release.units == PAPER_UNITS else unmet
    lab.judge("frame-count", {release.name: sentences[lab.settings.protocol]}, unmet=unmet)


def record_highest_heads(lab: Lab, scores: Scores, random: FrameLinkScores) -> None:
    """Every head's score; whether two stand out, score above random weights, and follow the paper's example.

    Args:
        lab: takes the numbers.
        scores: by direction.
        random: of random weights, from predicate to element.
    """
    seed, (placed, _) = lab.settings.seed, frame_sentences(lab)
    means = {direction: one.actual.mean(axis=0) for direction, one in scores.items()}
    lab.record(SCORE, means, by=("kind",), unit="weight", n=len(placed))
    apart = {direction: second_above_third(one.actual, seed) for direction, one in scores.items()}
    apart[PUBLISHED] = published_second_above_third()
    lab.record("second head above the third", apart, by=("kind",), unit="difference")
    lab.judge("frame-two-heads", {FORWARD: apart[FORWARD]})
    lab.judge("frame-two-heads", {"": apart[PUBLISHED]}, model=MODEL)

    actual = scores[FORWARD].actual
    first, second = heads_by_size(means[FORWARD])[:2]
    rival = heads_by_size(random.actual.mean(axis=0))[0]
    rival_score = bootstrap_mean(random.actual[:, *rival], seed)
    gain = mean_over_seeds([bootstrap_mean(actual[:, *first], seed) - rival_score])
    lab.record("highest head above random weights", gain, unit="difference")
    lab.judge("frame-random", {head_name(*first): gain})

    texts = [one.sentence.exemplar.text for one in placed]
    unmet = "" if EXAMPLE in texts else "the paper's sentence in this release"
    if lab.settings.framenet == "embedded":
        unmet = "a FrameNet release: other sentences chose these heads"
    supports = {}
    for head in () if unmet else (first, second):
        at = texts.index(EXAMPLE)
        weight, even = float(actual[at, *head]), 1 / placed[at].length
        is_high = weight > EVEN_SHARES * even
        number = f"{weight:.3f}, an even share {even:.3f}; one sentence"
        supports[head_name(*head)] = Support(float(not is_high), float(is_high), number)
    lab.judge("frame-example", supports, unmet=unmet)


def record_percentile(lab: Lab, scores: Scores, random: Scores) -> None:
    """The paper's criterion, a score beyond the 99th percentile of all heads, on links, on no links and with random weights.

    Args:
        lab: takes the numbers.
        scores, random: of the encoder and of random weights, by direction.
    """
    without = {
        direction: {OTHER_PLACES: one.elsewhere, RANDOM: random[direction].actual.mean(axis=0)}
        for direction, one in scores.items()
    }
    lab.record(ELSEWHERE, without, by=("kind", "state"), unit="weight")
    of_links = {direction: {LINKS: one.actual.mean(axis=0)} for direction, one in scores.items()}
    all_scores = {direction: of_links[direction] | without[direction] for direction in scores}
    all_scores[PUBLISHED] = {LINKS: published_panel("framenet")}
    # Of 144 heads always two, whatever the scores are, but for ties.
    counts = {
        kind: {state: int((one > np.percentile(one, 99)).sum()) for state, one in states.items()}
        for kind, states in all_scores.items()
    }
    lab.record(BEYOND_99TH, counts, by=("kind", "state"), unit="count")


def record_following(
    lab: Lab,
    links: str,
    tests: Mapping[str, ManyTest],
    bars: Mapping[str, float],
    claims: Mapping[str, str],
) -> None:
    """How many heads follow links, and the verdict on some head.

    Args:
        lab: takes the numbers.
        links: what they are called.
        tests, bars: by direction, the tests of :func:`scores_and_tests` and the largest excess with random weights.
        claims: the direction of each.
    """
    p = {direction: p_of_following(test, bars[direction]) for direction, test in tests.items()}
    following = {direction: int((one <= ONE_SIDED).sum()) for direction, one in p.items()}
    lab.record(f"heads that follow {links}", following, by=("kind",), unit="count")
    for claim, direction in claims.items():
        lab.judge(claim, {direction: largest_excess(tests[direction], bars[direction])})


def record_complements(lab: Lab, bars: Mapping[str, float]) -> None:
    """The same along links to elements that are neither subjects nor objects, where the release says which are."""
    rest = only_complements([one.sentence for one in frame_sentences(lab)[0]])
    if unmet := too_few(len(rest)) if rest else CLAIMS["frame-functions"].needs[0]:
        lab.judge("frame-functions", {}, unmet=unmet)
        return
    placed, inputs = place(rest, lab.tokenizer)
    _, tests = scores_and_tests(lab, placed, make_batches(inputs, lab.tokenizer))
    excess = {direction: test.means for direction, test in tests.items()}
    name = "links to other elements"
    lab.record(f"excess along {name}", excess, by=("kind",), unit="difference", n=len(rest))
    record_following(lab, name, tests, bars, {"frame-functions": FORWARD})


def record_pointing(lab: Lab, borrowed: FrameLinkScores) -> None:
    """The highest head at both kinds of other places, and the one that points at links most against a fixed distance."""
    seed, (placed, batches) = lab.settings.seed, frame_sentences(lab)
    measurements = {
        "moved": FrameLinkAttention(moved_places(placed, FORWARD)),
        "pointing": pointing(placed, FORWARD),
    }
    measured = observe_cached(lab.encoder(), batches, measurements)
    top = heads_by_size(borrowed.actual.mean(axis=0))[0]
    tests = {
        f"over {PLACES[kind]}": tested_head(many_test(one.excess, WEIGHT, seed), top)
        for kind, one in (("moved", measured["moved"]), ("borrowed", borrowed))
    }
    lab.judge("frame-moved", tests)

    pointed = hits(measured["pointing"])
    pointer = heads_by_size(pointed.mean(axis=0))[0]
    distance, fixed = best_fixed_distance(placed, FORWARD, seed)
    lab.fact(best_distance=distance)
    lab.record("pointing by the best fixed distance", fixed, unit="share")
    ahead = mean_over_seeds([bootstrap_mean(pointed[:, *pointer].astype(float), seed) - fixed])
    lab.record("pointing above the best fixed distance", ahead, unit="gain")
    lab.judge("frame-pointing", {f"{head_name(*pointer)} against {distance:+d} wordpieces": ahead})
