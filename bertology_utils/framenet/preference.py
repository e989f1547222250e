"""What the comparison of links with other places says, in sentences (§4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..claims.register import WEIGHT
from ..claims.verdict import THIS_RUN
from ..common import Head, head_name
from ..statistics import ONE_SIDED, Seed, bootstrap_mean
from ..statistics.estimate import Estimate
from ..statistics.permutation import ManyTest
from ..statistics.ties import count_of, largest, p_is
from .controls import MatchedTest, top_heads
from .findings import excess_and_p
from .measure import ELSEWHERE, PLACES, FrameLinkScores

FEW_PRONOUNS = 0.1  # of the sentences: leaving out fewer cannot change much


def largest_excess(effects: ManyTest, test: MatchedTest, scores: FrameLinkScores, bar: float, seed: Seed) -> dict:
    """The head that prefers links most to other sentences' places, as numbers for the results file.

    Args:
        effects: of every head's excess against the least effect.
        test: of the annotated cells among all places.
        scores: of either.
        bar: the largest excess with random weights.
        seed: of the resampling of sentences.
    """
    (head,) = top_heads(effects.means, 1)
    ps = {"p_above_0": float(test.above[head]), "p_above_least": float(effects.above[head])}
    estimate = bootstrap_mean(scores.excess[:, *head], seed).summary()
    return {"head": head_name(*head), **estimate, **ps, "heads": effects.means.size, "random_weights": bar}


def told_links(one: Mapping, real: Mapping) -> str:
    """Is the largest excess surely above 0, and above the least effect? And what the committed run found.

    Args:
        one: from :func:`largest_excess`.
        real: results of the committed run on FrameNet 1.5; empty if there are none.
    """
    zero = f"{'' if one['p_above_0'] < ONE_SIDED else 'not '}surely above 0 ({p_is(one['p_above_0'])})"
    theirs = [each for each in real.get("verdicts", []) if (each["id"], each["model"]) == ("frame-links", THIS_RUN)]
    told = "".join(f" On FrameNet 1.5: {each['outcome']}; {each['ours']}." for each in theirs)
    return f"Largest excess over other sentences' places: {excess_and_p(one)}; {zero}.{told}"


def told_committed(heads: Sequence[Head], real: Mapping) -> str:
    """Which of the heads keep an excess that counts in the committed run; nothing without one of the same shape."""
    if not real:
        return ""
    excess = np.array(real["compared"][ELSEWHERE["borrowed"]]["excess"])
    if not all(at < size for head in heads for at, size in zip(head, excess.shape, strict=True)):
        return ""
    stay = " ".join(f"{head_name(*head)} {excess[head]:+.3f}" for head in heads if excess[head] > WEIGHT)
    below = " ".join(f"{head_name(*head)} {excess[head]:+.3f}" for head in heads if excess[head] < 0)
    text = f"On FrameNet 1.5, of these {len(heads)} heads above {WEIGHT}: {stay or 'none'}"
    return f"{text}; below 0: {below or 'none'}."


def told_back(back: FrameLinkScores, forth: np.ndarray, ways: tuple[str, str], seed: Seed) -> str:
    """The largest excess over other sentences' places the other way round, and that head's this way.

    Args:
        back: scores the other way.
        forth: excess of every head this way, shape (layers, heads).
        ways: this way and the other.
        seed: of the resampling of sentences.
    """
    (head,) = top_heads(back.excess.mean(axis=0), 1)
    estimate = bootstrap_mean(back.excess[:, *head], seed)
    size = "larger" if estimate.value > forth.max() else "not larger"
    return (
        f"The other way round, {ways[1]}, the largest excess is {size}: {head_name(*head)}"
        f" {estimate.text(1, 3, sign=True)}, n={estimate.n}; {ways[0]} this head has {forth[head]:+.3f}."
    )


def told_both_ways(back: FrameLinkScores, forth: np.ndarray) -> str:
    """How many heads have an excess that counts both ways."""
    both = (back.excess.mean(axis=0) > WEIGHT) & (forth > WEIGHT)
    return f"An excess above {WEIGHT} both ways: {count_of(both)} heads."


def told_strongest(tests: Mapping[str, MatchedTest]) -> str:
    """The square of this run that is farthest from 0, over either kind of places."""
    at = {kind: largest(np.abs(test.excess)) for kind, test in tests.items()}
    parts = [f"over {PLACES[kind]} {head_name(*at[kind])} {test.excess[at[kind]]:+.3f}" for kind, test in tests.items()]
    return f"Strongest colour in this run: {'; '.join(parts)}."


def told_random(tests: Mapping[str, MatchedTest], random: Mapping[str, MatchedTest]) -> str:
    """A small p value may be of a tiny effect: heads of random weights above shifted places."""
    counts = [count_of(of["moved"].above < ONE_SIDED) for of in (random, tests)]
    return (
        f"Surely above shifted places: with random weights {counts[0]} heads, pre-trained {counts[1]};"
        f" but random weights by {random['moved'].excess.max():+.3f} at most."
    )


def told_roles(panels: Mapping[str, Mapping[str, Mapping]]) -> str:
    """For each head, for which kinds of elements its excess is surely above or below 0, and on FrameNet 1.5.

    Args:
        panels: from :func:`bertology_utils.framenet.beside.role_panels`.
    """
    lines = []
    for head, rows in panels.items():
        parts = []
        for role, row in rows.items():
            if "this run" in row:
                low, high = row["this run"].interval
                side = "above 0" if low > 0 else "below 0" if high < 0 else "not surely above 0"
                parts.append(f"{role} {side} (n={row['this run'].n})")
        text = ", ".join(parts) or "too few sentences of any kind"
        theirs = [f"{role} {row[name]:+.3f}" for role, row in rows.items() for name in row if name != "this run"]
        lines.append(f"{head}: {text}." + (f" On FrameNet 1.5: {', '.join(theirs)}." if theirs else ""))
    return "\n".join(lines)


def told_pronouns(all_of: int, without: int, excess: Estimate, head: Head) -> str:
    """Does it matter to leave out pronouns, and can it?

    Args:
        all_of: sentences that have other sentences' places.
        without: of these, where no linked element is a pronoun before the predicate.
        excess: of the head in these.
        head: (layer, head) from 0.
    """
    fewer = all_of - without
    text = f"Without the {fewer} of {all_of} sentences with a pronoun before the predicate {head_name(*head)} has"
    weak = " Leaving out so few can hardly change a mean: on these data the control is weak."
    return f"{text} {excess.text(1, 3, sign=True)}, n={without}.{weak if fewer < FEW_PRONOUNS * all_of else ''}"
