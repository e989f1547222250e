"""What came out of notebook 2, in sentences and as numbers for the results file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from textwrap import fill

import numpy as np

from ..claims import FAILS, HOLDS, UNDECIDED, UNTESTABLE, Verdict
from ..claims.register import WEIGHT
from ..claims.verdict import THIS_RUN
from ..common import head_name
from ..statistics import Seed, bootstrap_mean
from ..statistics.ties import count_of
from .claims import EVEN_SHARES
from .controls import MatchedTest, top_heads
from .examples import PAPERS, Seen
from .frame_links import Difference, Rules, Step
from .measure import ELSEWHERE, FrameLinkScores
from .release import Release

TOLD = ("frame-count", "frame-two-heads", "frame-example", "frame-links")
WIDTH = 110  # characters


def wrapped(text: str) -> str:
    """The text in lines that fit a page."""
    return "\n".join(fill(line, WIDTH, subsequent_indent="  ") for line in text.splitlines())


def told_example(seen: Sequence[Seen], length: int, best: Sequence[Seen], shares: Sequence[float], text: str) -> str:
    """Do the two highest heads look along the link of the paper's sentence, and of which sentence do they?

    Args:
        seen: the paper's sentence, or what stands for it, as either head sees it.
        length: its tokens.
        best: for either head the sentence in which it gives a link most.
        shares: of sentences in which either gives a link more than twice an even share.
        text: the sentence.
    """
    fails = sum(one.weight <= EVEN_SHARES / length for one in seen)
    outcome = {0: "both heads look along its link", 1: "one of the two heads does not look along its link"}
    came_out = outcome.get(fails, "neither head looks along its link")
    what = f"The paper's example {'fails' if fails else 'holds'} here"
    what = what if text == PAPERS else f"This release lacks the paper's example; in “{text}” instead"
    lines = [f"{what}: {came_out}. An even share is {1 / length:.3f}."]
    for one, other, share in zip(seen, best, shares, strict=True):
        lines.append(
            f"{head_name(*one.head)}: {one.text}; in the sentence where it gives a link most: {other.text}."
            f" More than twice an even share in {100 * share:.0f} % of sentences."
        )
    return "\n".join(lines)


def told_top(actual: np.ndarray, lengths: Sequence[int], real: Mapping) -> str:
    """How many heads the 99th percentile lets through, how far apart the highest are, and what even attention gives.

    Args:
        actual: link scores, shape (sentences, layers, heads).
        lengths: tokens of every sentence.
        real: the committed run's results; empty if there is none.
    """
    means, even = actual.mean(axis=0), float(np.mean(1 / np.array(lengths)))
    beyond = int((means > np.percentile(means, 99)).sum())
    first, second, third = (float(means[head]) for head in top_heads(means, 3))
    elsewhere = f" On FrameNet 1.5 random weights reach {np.max(real['random_weights']):.3f}." if real else ""
    return (
        f"Of {means.size} heads {beyond} {'is' if beyond == 1 else 'are'} above the 99th percentile, as must be."
        f" The highest is above the second by {first - second:.3f}, the second above the third by {second - third:.3f}."
        f" An even share is {even:.3f} on average; {count_of(means < even)} heads score less.{elsewhere}"
    )


def data_name(source: Release, kind: str) -> str:
    """What people read for a release; ``kind`` as in the parameters."""
    return "the mini-FrameNet" if kind == "embedded" else source.name


def answer(verdicts: Sequence[Verdict], real: Mapping) -> str:
    """The answer to the notebook's question in short, here and in the committed run.

    Args:
        verdicts: this run's.
        real: results of the committed run on FrameNet 1.5; empty if there are none.
    """
    words = {HOLDS: "at least one head does", FAILS: "no head does", UNDECIDED: "it stays open whether a head does"}
    ours = {one.id: one.outcome for one in verdicts if one.model == THIS_RUN}
    theirs = {one["id"]: one["outcome"] for one in real.get("verdicts", []) if one["model"] == THIS_RUN}
    told = f"More attention along links than place explains: here {words[ours['frame-links']]}"
    if words.get(theirs.get("frame-links", "")):
        told += f", on FrameNet 1.5 {words[theirs['frame-links']]}{_but(real)}"
    two = {HOLDS: "Two heads stand out here.", FAILS: "No two heads stand out here."}
    return f"{told}. {two.get(ours['frame-two-heads'], 'Whether two stand out here is undecided, too.')}"


def _but(real: Mapping) -> str:
    """For which kinds of elements the committed run's head of the largest excess has none that counts."""
    (head,) = top_heads(np.array(real["compared"][ELSEWHERE["borrowed"]]["excess"]), 1)
    kinds = {role: np.array(one["excess"])[head] for role, one in real.get("by_role_excess", {}).items()}
    less = ", ".join(f"{role} {value:+.3f}" for role, value in kinds.items() if value <= WEIGHT)
    return f" ({head_name(*head)}{f', but not for every kind of element: {less}' if less else ''})"


def sentences(verdicts: Sequence[Verdict], real: Mapping) -> list[str]:
    """A sentence for each of the paper's claims: here, and in the committed run.

    Args:
        verdicts: this run's.
        real: results of the committed run on FrameNet 1.5; empty if there are none.
    """
    found = []
    for name in TOLD:
        ours = [one for one in verdicts if one.id == name]
        parts = [(one.model, one.outcome, one.ours, one.why) for one in ours]
        theirs = [one for one in real.get("verdicts", []) if one["id"] == name and one["model"] == THIS_RUN]
        parts += [("MiniLM on FrameNet 1.5", one["outcome"], one["ours"], one["why"]) for one in theirs]
        told = [f"{model}: {outcome}; {why if outcome == UNTESTABLE else number}." for model, outcome, number, why in parts]
        found.append(f"{ours[0].claim}? {' '.join(told).replace(f'{THIS_RUN}:', 'This run:')}")
    return found


def of_data(
    source: Release, kind: str, rules: Rules, direction: str, steps: Sequence[Step], differences: Sequence[Difference]
) -> dict[str, object]:
    """The release, the rules, and what they leave."""
    release = {"source": kind.partition(":")[0], "name": source.name, "units": source.units}
    release |= {"exemplars": len(source.exemplars), "problems": len(source.problems)}
    return {
        "release": release,
        "rules": asdict(rules),
        "direction": direction,
        "funnel": [asdict(step) for step in steps],
        "differences": [asdict(difference) for difference in differences],
    }


def of_heads(
    scores: FrameLinkScores,
    random: FrameLinkScores,
    tests: Mapping[str, MatchedTest],
    by_role: Mapping[str, np.ndarray],
    seed: Seed,
) -> dict[str, object]:
    """Every head's numbers, each of shape (layers, heads), and the highest head's with their intervals.

    Args:
        scores, random: of the run's model and of one with random weights.
        tests: by kind of places.
        by_role: from :func:`bertology_utils.framenet.breakdown.excess_by_role`.
        seed: of the resampling of sentences.
    """
    means = scores.actual.mean(axis=0)
    return {
        "sentences": len(scores.places),
        "scores": means,
        "random_weights": random.actual.mean(axis=0),
        "pointing": scores.hits.mean(axis=0),
        "compared": {
            ELSEWHERE[kind]: {"excess": test.excess, "above": test.above, "below": test.below, "sentences": test.sentences}
            for kind, test in tests.items()
        },
        "highest": [
            {"head": head_name(*head), "score": bootstrap_mean(scores.actual[:, *head], seed).summary()}
            for head in top_heads(means, 4)
        ],
        "by_role_excess": {role: {"n": len(part), "excess": part.mean(axis=0)} for role, part in by_role.items()},
    }
