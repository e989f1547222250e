"""What scores along links are compared with: other places, kinds of elements, a fixed distance, the published figure (§4.2)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..attention import make_batches, observe_cached
from ..common import Head, head_name
from ..published import MODEL as PUBLISHED  # noqa: F401 (appendix 2a)
from ..published import PANELS, READING_ERROR, published_panel  # noqa: F401
from ..statistics.estimates import Bootstrap, Estimate, Seed, bootstrap_mean, mean_over_seeds
from ..statistics.permutation import (
    ONE_SIDED,
    ManyTest,
    corrected_p,
    count_of,
    heads_by_size,
    in_both,
    many_test,
    p_is,
)
from ..verdicts import CLAIMS, WEIGHT, Support, some_head, too_few
from .frame_links import PAPER_SENTENCES, FrameSentence
from .measure import FrameLinkAttention, FrameLinkScores, FramePlaces, Seen, place

DRAWS = 1000
EVEN_SHARES = 2  # so many times 1/L is a high weight, as in §4.4's stripes
# FrameNet's grammatical function of what is no subject ("Ext"), object ("Obj") or noun modified
# ("Head")
COMPLEMENT = "Dep"
PRONOUN_FORMS = frozenset(
    "i you he she it we they who me him her us them this that these those".split()
)
ROLES = ("pronoun before", "other before", "after")
FEWEST = 10  # sentences for an interval


@dataclass(frozen=True)
class MatchedTest:
    """Scores of links and of other places, with p values, for every head.

    Attributes:
        links: mean score of the links, shape (layers, heads).
        others: mean score of the other places, shape (layers, heads).
        above, below: permutation p-values of links > others and links < others,
            corrected over all heads by the maximum statistic, shape (layers, heads).
        sentences: sentences with at least one other place.
    """

    links: np.ndarray
    others: np.ndarray
    above: np.ndarray
    below: np.ndarray
    sentences: int

    @property
    def excess(self) -> np.ndarray:
        """Links minus others, shape (layers, heads)."""
        return self.links - self.others


def matched_test(scores: FrameLinkScores, seed: Seed, draws: int = DRAWS) -> MatchedTest:
    """A test of whether the annotated place is special among all the places it is compared with.

    If a head follows position alone, it scores as high on a sentence's other
    places. Under that hypothesis the annotated place is a random one among
    them, which gives the test: draw a place for every sentence, standardise
    every head's mean by its mean and standard deviation over such draws, and
    compare with the largest (and the smallest) over all heads in each draw
    (Westfall and Young, 1993).

    Args:
        scores: from :class:`bertology_utils.framenet.measure.FrameLinkAttention`.
        seed: of the permutations.
        draws: how many.

    Raises:
        ValueError: no sentence has a second place.
    """
    places = [
        sentence.reshape(len(sentence), -1).astype(np.float64)
        for sentence in scores.places
        if len(sentence) > 1
    ]
    if not places:
        raise ValueError(
            "no sentence has a second place for its links, so there is nothing to compare with"
        )
    shape = scores.places[0].shape[1:]
    flat, counts = (
        np.concatenate(places),
        np.array([len(sentence) for sentence in places]),
    )  # flat: (all places, all heads)
    starts = np.cumsum(counts) - counts
    expected = np.mean(
        [sentence.mean(axis=0) for sentence in places], axis=0
    )  # under the hypothesis, (all heads,)
    error = np.maximum(
        np.sqrt(np.sum([sentence.var(axis=0) for sentence in places], axis=0)) / len(places), 1e-12
    )

    def standardised(rows: np.ndarray) -> np.ndarray:
        return (flat[rows].mean(axis=0) - expected) / error

    rng = np.random.default_rng(seed)
    drawn = np.array(
        [
            (z.max(), z.min())
            for z in (standardised(starts + rng.integers(0, counts)) for _ in range(draws))
        ]
    )
    above, below = corrected_p(standardised(starts), *drawn.T)
    others = np.mean([sentence[1:].mean(axis=0) for sentence in places], axis=0)
    links = flat[starts].mean(axis=0)
    links, others, above, below = (part.reshape(shape) for part in (links, others, above, below))
    return MatchedTest(links, others, above, below, len(places))


def largest_excess(over_others: ManyTest, random_bar: float) -> Support:
    """Support for some head whose excess is above the least effect and above that of any head with random weights.

    Args:
        over_others: of the links' excess over other sentences, every head, against the least
            effect; as it is and with each word's popularity off together, see
            :func:`bertology_utils.statistics.in_both`.
        random_bar: the largest excess of a head with random weights.
    """
    head = heads_by_size(over_others.means)[0]
    allowed = p_of_following(over_others, random_bar)
    number = f"{head_name(*head)} {over_others.means[head]:+.3f}, {p_is(allowed[head])},"
    number += f" {count_of(allowed <= ONE_SIDED)} heads above (random weights {random_bar:+.3f}); n={over_others.n[head]}"
    return Support(float(allowed.min()), some_head(over_others).fails, number)


def p_of_following(over_others: ManyTest, random_bar: float) -> np.ndarray:
    """Every head's p value that its excess is above the least effect; 1 where a head with random weights has as much.

    Args:
        over_others, random_bar: see :func:`largest_excess`.
    """
    return np.where(over_others.means > random_bar, over_others.above, 1.0)


def excess_test(scores: FrameLinkScores, centred: FrameLinkScores, seed: Seed) -> ManyTest:
    """Every head's excess along frame links, as it is and with popularity off, both above the least effect that counts."""
    return in_both(*(many_test(one.excess, WEIGHT, seed) for one in (scores, centred)))


def tested_head(test: ManyTest, head: Head) -> Support:
    """Support for one head's mean above the test's least effect, corrected over all heads.

    Args:
        test: of every head.
        head: (layer, head) from 0.
    """
    number = f"{head_name(*head)} {test.means[head]:+.3f}; n={test.n[head]}"
    return Support(float(test.above[head]), float(test.below[head]), number)


def looks_along(one: Seen) -> Support:
    """Support for a high weight along a link of one sentence: above :data:`EVEN_SHARES` even shares of its tokens."""
    number = f"{one.weight:.3f}, an even share {1 / len(one.tokens):.3f}; one sentence"
    return (
        Support(0.0, 1.0, number)
        if one.weight * len(one.tokens) > EVEN_SHARES
        else Support(1.0, 0.0, number)
    )


def second_above_third(scores: np.ndarray, seed: Seed) -> Estimate:
    """The second highest head's score minus the third's, mean over sentences.

    Args:
        scores: link scores, shape (sentences, layers, heads).
        seed: of the resampling of sentences.
    """
    _, second, third, *_ = heads_by_size(scores.mean(axis=0))
    return mean_over_seeds([bootstrap_mean(scores[:, *second] - scores[:, *third], seed)])


def published_second_above_third() -> Estimate:
    """As :func:`second_above_third`, of the published panel; its error is that of reading two cells off."""
    panel = published_panel("framenet")
    _, second, third, *_ = heads_by_size(panel)
    error = READING_ERROR / np.sqrt(
        3
    )  # of one cell, if all readings within the error are as likely
    return Estimate(panel[second] - panel[third], error * np.sqrt(2), PAPER_SENTENCES)


def best_fixed_distance(
    placed: Sequence[FramePlaces], direction: str, seed: Seed
) -> tuple[int, Bootstrap]:
    """Share of links that a head would hit if it always pointed the same number of wordpieces away.

    To be compared with :attr:`bertology_utils.framenet.measure.FrameLinkScores.hits`.

    Args:
        placed: the sentences.
        direction: see :meth:`bertology_utils.framenet.measure.FramePlaces.pairs`.
        seed: of the resampling of sentences.

    Returns:
        The best distance (column minus row), and the share of sentences in which it hits.
    """
    distances = [
        {int(one) for one in np.subtract(*sentence.pairs(direction)[::-1])} for sentence in placed
    ]
    best, _ = max(
        Counter(one for of_sentence in distances for one in of_sentence).items(),
        key=lambda item: (item[1], -abs(item[0])),
    )
    return best, bootstrap_mean(
        np.array([float(best in of_sentence) for of_sentence in distances]), seed
    )


def role(sentence: FramePlaces) -> str:
    """Of the first linked element "pronoun before" the predicate, "other before" it, or "after" it."""
    spans = sentence.sentence.elements[0]
    before = spans[0].start < sentence.sentence.target[0].start
    words = " ".join(sentence.sentence.exemplar.text[span.start : span.end] for span in spans)
    return (
        "after"
        if not before
        else "pronoun before"
        if words.lower() in PRONOUN_FORMS
        else "other before"
    )


def by_role(placed: Sequence[FramePlaces], scores: FrameLinkScores) -> dict[str, FrameLinkScores]:
    """Scores of the sentences with one link by :func:`role`; with several the largest weight may be another link's."""
    rows = defaultdict(list)
    for row, sentence in enumerate(placed):
        if len(sentence.elements) == 1:
            rows[role(sentence)].append(row)
    return {name: scores.of(rows[name]) for name in ROLES}


def excess_by_role(parts: dict[str, FrameLinkScores]) -> dict[str, np.ndarray]:
    """Excess of the sentences of each kind with at least :data:`FEWEST` that have other places.

    Args:
        parts: from :func:`by_role`.

    Returns:
        By kind, each of shape (sentences, layers, heads).
    """
    enough = {
        name: sum(len(places) > 1 for places in part.places) >= FEWEST
        for name, part in parts.items()
    }
    return {name: part.excess for name, part in parts.items() if enough[name]}


def only_complements(sentences: Sequence[FrameSentence]) -> list[FrameSentence]:
    """Sentences whose linked elements are all complements: neither subjects nor objects of their predicate.

    By FrameNet's own grammatical functions; a release without these, as the mini-FrameNet, leaves
    none.
    """

    def functions(sentence: FrameSentence) -> set[str]:
        exemplar = sentence.exemplar
        by_name = {
            span.name: function
            for span, function in zip(exemplar.elements, exemplar.functions, strict=True)
        }
        return {by_name[spans[0].name] for spans in sentence.elements}

    return [sentence for sentence in sentences if functions(sentence) == {COMPLEMENT}]


def few_complements(sentences: Sequence[FrameSentence]) -> str:
    """What is missing to test :func:`only_complements`; "" if nothing is."""
    return too_few(len(sentences)) if sentences else CLAIMS["frame-functions"].needs[0]


def excess_test_on(
    sentences: Sequence[FrameSentence], encoder, tokenizer, direction: str, seed: Seed
) -> ManyTest:
    """:func:`excess_test` of sentences by themselves, compared with one another's places; arguments as of :func:`scores_on`."""
    plain, centred = (
        scores_on(
            sentences, encoder, tokenizer, direction, elsewhere="borrowed", seed=seed, centred=off
        )
        for off in (False, True)
    )
    return excess_test(plain, centred, seed)


def scores_on(
    sentences: Sequence[FrameSentence], encoder, tokenizer, direction: str, **options
) -> FrameLinkScores:
    """Link scores on sentences by themselves.

    Args:
        sentences: from :func:`bertology_utils.framenet.frame_links.extract`.
        encoder, tokenizer: the model.
        direction, options: of :class:`bertology_utils.framenet.measure.FrameLinkAttention`.
    """
    placed, inputs, _ = place(sentences, tokenizer)
    links = FrameLinkAttention(placed, direction, **options)
    return observe_cached(encoder, make_batches(inputs, tokenizer), {"links": links})["links"]
