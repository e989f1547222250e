"""The claims of §4.5, judged: do heads follow links or distance, and what does [CLS] look at in the last layer?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..common import head_name
from ..glue.tasks import Task
from ..statistics.ties import count_of
from ..statistics.verdicts import Verdict, every
from .dependencies import RelationTest
from .token_links import LINK_TYPES

# The tasks on which [CLS] attends most to punctuation in the last layer, according to the paper; to [SEP] on the others.
PUNCTUATION_FIRST = ("stsb", "rte", "qnli")


def judge_links(
    lower_by_chance: Mapping[int, float],
    examples: Sequence[int],
    excess: Mapping[str, np.ndarray],
    clear: Mapping[str, np.ndarray],
    least: float,
) -> list[Verdict]:
    """Claims 1 and 2: are the heads for verb–subject and noun–pronoun links diagonal ones, which nothing tells from these?

    Args:
        lower_by_chance: by type of link that the data have (index into :data:`LINK_TYPES`), the share of random sets of
            heads that attend to neighbours less than the five highest heads, pre-trained; see
            :func:`bertology_utils.links.controls.candidates_are_diagonal`.
        examples: that have such links, shape (types,).
        excess: by model, the weight along links minus that elsewhere, shape (types, layers, heads).
        clear: by model, where it is above ``least``, above any head with random weights, and more than chance, as it is
            and centred; same shape.
        least: what a clear excess is at least.
    """
    verdicts = []
    for pair in (LINK_TYPES[:2], LINK_TYPES[2:]):
        kinds = [kind for kind in lower_by_chance if LINK_TYPES[kind] in pair]
        heads = next(iter(clear.values()))[0].size
        verdicts.append(
            Verdict(
                f"The highest heads for {' and '.join(pair)} are those that attend to neighbours",
                "they coincide",
                "; ".join(
                    f"{LINK_TYPES[kind]}: lower in {lower_by_chance[kind]:.1%} of random sets, n={examples[kind]} examples"
                    for kind in kinds
                )
                or "–",
                every(lower_by_chance[kind] for kind in kinds),
                f"five of {heads} heads, pre-trained",
            )
        )
        for name, of_model in clear.items():
            verdicts.append(
                Verdict(
                    f"No {name} head clearly attends more along {' or '.join(pair)} than at the same distances",
                    "difficult to distinguish",
                    "; ".join(
                        f"{LINK_TYPES[kind]} {count_of(of_model[kind])} heads, up to {excess[name][kind].max():+.3f}"
                        for kind in kinds
                    )
                    or "–",
                    "disagrees" if any(of_model[kind].any() for kind in kinds) else "undecided",
                    f"excess above {least} and any random head, corrected p below 0.05, as it is and centred",
                )
            )
    return verdicts


def judge_pointing(subjects: RelationTest | None) -> list[Verdict]:
    """Claim 2 once more: does no head point from verb to subject, or back, more often than the best fixed distance?

    Args:
        subjects: the test of the relation nsubj; None if the data have no such arc.
    """
    shown = (
        "–"
        if subjects is None
        else (
            f"{head_name(*subjects.head)} {subjects.accuracy.text(100)} % against {subjects.baseline.text(100)} %;"
            f" {len(subjects.beats)} heads; n={subjects.arcs} arcs"
        )
    )
    return [
        Verdict(
            "No head points from verb to subject, or back, more often than the best fixed distance",
            "difficult to distinguish",
            shown,
            "disagrees" if subjects and subjects.beats else "undecided",
            "permutation test over examples, corrected over heads and directions",
        )
    ]


def judge_last_layer(first: Mapping[Task, Mapping[str, float]]) -> list[Verdict]:
    """Claims 3 and 4: does [CLS] attend most to [SEP] in the last layer, but to punctuation on three tasks?

    Args:
        first: by task, the share of the resamples in which "[SEP]", and "punctuation", gets more than every other type
            of token but [CLS], fine-tuned; see :func:`bertology_utils.features.ahead`.
    """
    verdicts = []
    for kind, claim, inside in (
        ("[SEP]", "[CLS] attends most to [SEP] in the last layer, on all tasks but STS-B, RTE, QNLI", False),
        ("punctuation", "[CLS] attends most to punctuation there, on STS-B, RTE, QNLI", True),
    ):
        shares = {task: by_type[kind] for task, by_type in first.items() if (task.name in PUNCTUATION_FIRST) == inside}
        verdicts.append(
            Verdict(
                claim,
                "all of them",
                "; ".join(f"{task.title} {share:.0%} of resamples" for task, share in shares.items()) or "no such task",
                every(shares.values()),
                f"{kind} first of all types but [CLS], fine-tuned",
            )
        )
    return verdicts
