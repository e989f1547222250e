"""The claims of §4.5, judged: do heads follow links or positions, and what does [CLS] look at in the last layer?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..claims import Support, Verdict, all_of, judged
from ..claims.gates import never_adjacent, unlearned
from ..claims.register import WEIGHT
from ..claims.support import DECIDED
from ..claims.words import counted, kept
from ..common import head_name
from ..glue.tasks import Task
from ..statistics.estimate import over_trainings
from ..statistics.permutation import ManyTest
from ..statistics.ties import heads_by_size
from .dependencies import RelationTest
from .token_links import LINK_TYPES

# The tasks on which [CLS] attends most to punctuation in the last layer, according to the paper; to [SEP] on the others.
PUNCTUATION_FIRST = ("stsb", "rte", "qnli")
PAIRS = {"verbs": LINK_TYPES[:2], "pronouns": LINK_TYPES[2:]}


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
        return np.maximum(self.plain.above, self.centred.above) <= DECIDED

    @property
    def support(self) -> Support:
        """Some head does: both tests of it, or for every head at least one speaks against."""
        both = np.maximum(self.plain.above, self.centred.above)
        either = np.minimum(1, 2 * np.minimum(self.plain.below, self.centred.below))
        return Support(float(both.min()), float(either.max()))


def judge_diagonals(
    lower_by_chance: Mapping[str, float], examples: Mapping[str, int], adjacent: Mapping[str, float]
) -> list[Verdict]:
    """Are the highest heads for links those that attend to neighbours?

    Args:
        lower_by_chance: by type of link that the data have, the share of random sets of heads that attend to neighbours
            less than the five highest heads, pre-trained; see
            :func:`bertology_utils.links.controls.candidates_are_diagonal`.
        examples: that have such links, by type.
        adjacent: by pair of words ("verbs", "pronouns"), the share of links between neighbours.
    """
    verdicts = []
    for words, names in PAIRS.items():
        shares = {name: lower_by_chance[name] for name in names if name in lower_by_chance}
        support = all_of(Support(1 - share, share) for share in shares.values())
        least = min(shares, key=lambda name: shares[name], default=None)
        ours = f"{least}: above {shares[least]:.0%} of random sets of five heads; n={examples[least]}" if least else "–"
        verdicts.append(judged(f"{words}-diagonal", support, ours, never_adjacent(adjacent[words])))
    return verdicts


def judge_indistinct(clear: Mapping[str, Mapping[str, Sequence[Clear]]], adjacent: Mapping[str, float]) -> list[Verdict]:
    """Is there no head that follows links beyond their positions, before and after fine-tuning?

    Args:
        clear: by model ("pre-trained", "fine-tuned") and type of link, of every training.
        adjacent: as for :func:`judge_diagonals`.
    """
    verdicts = []
    for words, names in PAIRS.items():
        many = [(name, one) for of_model in clear.values() for name in names for one in of_model.get(name, ())]
        name, most = max(many, key=lambda item: np.nanmax(item[1].plain.means), default=("", None))
        ours = "–"
        if most is not None:
            (best, *_) = heads_by_size(most.plain.means)
            ours = f"{name}: {head_name(*best)} {most.plain.means[best]:+.3f}; n={int(most.plain.n[best])}"
        support = all_of(~one.support for _, one in many)
        verdicts.append(judged(f"{words}-indistinct", support, ours, never_adjacent(adjacent[words])))
    return verdicts


def judge_pointing(subjects: RelationTest | None) -> list[Verdict]:
    """Control: does no head point from verb to subject, or back, more often than the best fixed distance?

    Args:
        subjects: the test of the relation nsubj; None if the data have no such arc.
    """
    if subjects is None:
        return [judged("subjects-distance", Support(1, 1), "–", "such arcs")]
    ahead = over_trainings([subjects.difference])
    beaten = 0.0 if subjects.beats else 1.0
    ours = f"{head_name(*subjects.head)} {subjects.difference.text(100, 1, sign=True)} points; {counted(ahead)}"
    return [judged("subjects-distance", Support((-ahead).p_above(-WEIGHT), beaten), ours)]


def judge_last_layer(
    first: Mapping[Task, Mapping[str, Sequence[float]]], learned: Mapping[Task, bool], missing: str
) -> list[Verdict]:
    """Does [CLS] attend most to [SEP] in the last layer, but to punctuation on three tasks?

    Args:
        first: by task, the share of the resamples in which "[SEP]", and "punctuation", gets more than every other type
            of token but [CLS], fine-tuned, in every training; see :func:`bertology_utils.features.ahead`.
        learned: by task.
        missing: the precondition that fails: a [SEP] sink.
    """
    verdicts = []
    for kind, name, inside in (("[SEP]", "cls-reads-sep", False), ("punctuation", "cls-reads-punctuation", True)):
        named = {task: by_type[kind] for task, by_type in first.items() if (task.name in PUNCTUATION_FIRST) == inside}
        fair = kept(named, learned)
        support = all_of(all_of(Support(1 - share, share) for share in shares) for shares in fair.values())
        least = min(fair, key=lambda task: min(fair[task]), default=None)
        ours = (
            f"{least.title} first in {min(fair[least]):.0%} of resamples, the least of {len(fair)} tasks" if least else "–"
        )
        verdicts.append(judged(name, support, ours, missing or unlearned(list(named), learned)))
    return verdicts
