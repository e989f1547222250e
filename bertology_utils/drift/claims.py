"""The claims of §4.3, judged: what pre-training and fine-tuning are worth, which layers change, and which matter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ..claims import Verdict, above, all_of, judged
from ..claims.gates import unlearned
from ..claims.register import SCORE, WEIGHT
from ..claims.words import counted, kept, least_of
from ..glue.tasks import Task
from ..statistics.estimate import Estimate, average

SAME_WAY = 0.5  # two independent displacements have a cosine of 0 and two equal ones of 1
ENOUGH_TASKS = 3  # learned from random weights, before anything is said about that start
NO_RANDOM_START = "a random start that was trained on one of these tasks"


def judge_gains(
    tuning: Mapping[Task, Estimate], pretraining: Mapping[Task, Estimate], learned: Mapping[Task, bool]
) -> list[Verdict]:
    """Is each task's gain above a point?

    Args:
        tuning: score of the fine-tuned classifiers minus that of random ones on the pre-trained encoder.
        pretraining: the same minus that of the fine-tuned random start, of the tasks that one was trained on.
        learned: by task, see :func:`bertology_utils.claims.gates.learned`.
    """
    fair = kept(pretraining, learned)
    return [
        judged(
            "tuned-above-untuned",
            all_of(above(gain, SCORE) for gain in tuning.values()),
            _on_average(tuning.values(), len(tuning)),
        ),
        judged(
            "pretraining-helps",
            all_of(above(gain, SCORE) for gain in fair.values()),
            _on_average([-gain for gain in fair.values()], len(tuning)),  # as the paper's: what the random start lacks
            unlearned(list(pretraining), learned) if pretraining else NO_RANDOM_START,
        ),
    ]


def _on_average(gains: Iterable[Estimate], tasks: int) -> str:
    """ "+41.1 [+39.2, +43.0] points on average; n=2240, 2 trainings"; of how many tasks, if not of all."""
    if not (several := list(gains)):
        return "–"
    mean, over = average(several), f" over {len(several)} of {tasks} tasks" if len(several) < tasks else ""
    return f"{mean.text(100, sign=True)} points on average{over}; {counted(mean)}"


def judge_random_start_behind(differences: Mapping[Task, Estimate]) -> list[Verdict]:
    """Of STS-B and QNLI where they were run: the untuned model's score minus the tuned random start's."""
    named = {task: difference for task, difference in differences.items() if task.name in ("stsb", "qnli")}
    support = all_of(above(difference) for difference in named.values())
    ours = least_of({task: -difference for task, difference in named.items()}, 100, 1, most=True)  # signs as the paper's
    return [judged("random-start-behind", support, ours, "" if named else "STS-B or QNLI")]


def judge_last_layers(leads: Mapping[Task, Estimate], learned: Mapping[Task, bool], real: bool) -> list[Verdict]:
    """Do the last two layers change most, and is QQP the exception?

    Args:
        leads: by task, from :func:`bertology_utils.drift.measure.last_layers_lead`.
        learned: by task.
        real: the data are GLUE's own.
    """
    others = {task: lead for task, lead in leads.items() if task.name != "qqp"}
    qqp = {task: lead for task, lead in leads.items() if task.name == "qqp"}
    fair, fair_qqp = kept(others, learned), kept(qqp, learned)
    return [
        judged(
            "last-layers",
            all_of(above(lead) for lead in fair.values()),
            least_of(fair, against=0),
            unlearned(list(others), learned),
        ),
        judged(
            "qqp-exception",
            ~all_of(above(lead) for lead in fair_qqp.values()),
            least_of(fair_qqp),
            unlearned(list(qqp), learned) if real else "GLUE's own QQP",
        ),
    ]


def judge_grafts(leads: Mapping[Task, Estimate], learned: Mapping[Task, bool]) -> list[Verdict]:
    """Does putting back the last two layers cost more than putting back any other two neighbours?

    Args:
        leads: by task, the loss with the last two put back minus the largest loss with any other two.
        learned: by task.
    """
    fair = kept(leads, learned)
    support = all_of(above(lead, SCORE) for lead in fair.values())
    missing = unlearned(list(leads), learned)
    if any(np.isnan(lead.value) for lead in fair.values()):
        missing = "more than two layers, each with weights of its own"
    return [judged("last-layers-gain", support, least_of(fair, 100, 1, against=SCORE), missing)]


def judge_movement(
    same: Mapping[Task, Estimate], other: Mapping[Task, Estimate], learned: Mapping[Task, bool]
) -> list[Verdict]:
    """Controls of ours: do two trainings move maps the same way, and more so than trainings on different tasks?

    Args:
        same: by task, cosine between the displacements of its two trainings.
        other: by task, that cosine minus the one with a training on another task.
        learned: by task.
    """
    fair, fair_other = kept(same, learned), kept(other, learned)
    return [
        judged(
            "same-movement",
            all_of(above(cosine, SAME_WAY) for cosine in fair.values()),
            least_of(fair, 1, 2),
            unlearned(list(same), learned),
        ),
        judged(
            "task-movement",
            all_of(above(difference, WEIGHT) for difference in fair_other.values()),
            least_of(fair_other, 1, 2),
            "" if len(fair_other) > 1 else "two learned tasks",
        ),
    ]


def judge_random_start(leads: Mapping[Task, Estimate], tasks: int) -> list[Verdict]:
    """Control of ours: does a random start that learned its task change other layers most?

    Args:
        leads: of the tasks that it learned, as for :func:`judge_last_layers`.
        tasks: how many it was trained on.
    """
    missing = f"{ENOUGH_TASKS} tasks learned from random weights: {len(leads)} of {tasks} were"
    support = all_of(~above(lead) for lead in leads.values())
    backwards = {task: -lead for task, lead in leads.items()}
    return [judged("random-start-layers", support, least_of(backwards), "" if len(leads) >= ENOUGH_TASKS else missing)]
