"""The claims of §4.3, judged: what pre-training and fine-tuning are worth, and which layers change."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..glue.tasks import Task
from ..statistics import Bootstrap, mean_of
from ..statistics.verdicts import Verdict, every, outcome
from .table1 import paper_gain

CLEARLY = 2  # times the change that another seed makes; our threshold


def judge_gains(tuning: Mapping[Task, Bootstrap], pretraining: Mapping[Task, Bootstrap]) -> list[Verdict]:
    """Claims 2 and 3: is each task's gain above zero?

    Args:
        tuning: score of the fine-tuned classifier minus that of the pre-trained one.
        pretraining: the same minus that of the fine-tuned random start.
    """
    verdicts = []
    for claim, gains, worse in (
        ("Fine-tuned beats pre-trained on every task", tuning, "pretrained"),
        ("Fine-tuned from pre-trained beats fine-tuned from random weights on every task", pretraining, "normal"),
    ):
        theirs, mean = [paper_gain(task, "finetuned", worse) for task in gains], mean_of(list(gains.values()))
        shares = [gain.share_above(0) for gain in gains.values()]
        verdicts.append(
            Verdict(
                claim,
                f"{sum(gain > 0 for gain in theirs)} of {len(theirs)} tasks, {np.mean(theirs):+.1f} on average",
                f"{sum(outcome(share) == 'agrees' for share in shares)} of {len(gains)} tasks,"
                f" {mean.text(100, sign=True)} on average, n={mean.n} dev examples",
                every(shares),
                "paired bootstrap over dev examples, per task",
            )
        )
    return verdicts


def judge_random_start_behind(differences: Mapping[Task, Bootstrap]) -> list[Verdict]:
    """Claim 4, of STS-B and QNLI where they were run: fine-tuned random start minus pre-trained without fine-tuning."""
    differences = {task: difference for task, difference in differences.items() if task.name in ("stsb", "qnli")}
    if not differences:
        return []
    return [
        Verdict(
            "On STS-B and QNLI, fine-tuned from random weights scores below pre-trained without fine-tuning",
            ", ".join(f"{task.title} {paper_gain(task, 'normal', 'pretrained'):+.1f}" for task in differences),
            ", ".join(f"{task.title} {difference.text(100, sign=True)}" for task, difference in differences.items()),
            every((-difference).share_above(0) for difference in differences.values()),
            "paired bootstrap over dev examples, both tasks",
        )
    ]


def judge_last_layers(sure: Mapping[Task, float]) -> list[Verdict]:
    """Claim 1, from each task's :func:`bertology_utils.drift.measure.last_layers_change_most`; QQP is the exception."""
    verdicts = []
    others = {task: share for task, share in sure.items() if task.name != "qqp"}
    if others:
        held = [task.title for task, share in others.items() if outcome(share) == "agrees"]
        verdicts.append(
            Verdict(
                "The last two layers change most, for every task but QQP",
                f"{len(others)} of {len(others)} tasks",
                f"{len(held)} of {len(others)} tasks ({', '.join(held) or 'none'})",
                every(others.values()),
                "bootstrap over dev examples and two trainings, per task",
            )
        )
    verdicts += [
        Verdict(
            "QQP is the exception",
            "not the last two layers",
            f"the last two in {share:.0%} of resamples",
            outcome(1 - share),
            "bootstrap over dev examples and two trainings",
        )
        for task, share in sure.items()
        if task.name == "qqp"
    ]
    return verdicts


def judge_another_seed(tuned: Bootstrap, reseeded: Bootstrap) -> list[Verdict]:
    """Control of ours: does fine-tuning change maps clearly more than another seed, by ``controls.mean_change``?"""
    ratio = tuned / reseeded
    return [
        Verdict(
            "Control: fine-tuning changes maps at least twice as much as another seed does",
            "not in the paper",
            f"{tuned.value:.3f} against {reseeded.value:.3f}: {ratio.text(1, 2)} times, n={ratio.n} dev examples",
            outcome(ratio.share_above(CLEARLY)),
            "paired bootstrap over dev examples, mean of the tasks",
        )
    ]


def judge_random_start(sure: Mapping[Task, float], tasks: int) -> list[Verdict]:
    """Control of ours: does a random start that learned its task change most in other layers?

    Args:
        sure: of the tasks that it learned, how surely the last two layers change most.
        tasks: all that were run.
    """
    return [
        Verdict(
            "Control: in a randomly initialised model that learns its task other layers change most",
            "not in the paper",
            f"learned {len(sure)} of {tasks} tasks"
            + "".join(f"; {task.title}: the last two in {share:.0%}" for task, share in sure.items()),
            every([1 - share for share in sure.values()]),
            "bootstrap over dev examples, per task that it learned",
        )
    ]
