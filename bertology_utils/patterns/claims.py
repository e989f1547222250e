"""The claims of §4.1, judged: can a network tell the patterns apart, do they repeat, how many maps are heterogeneous?"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from ..glue.tasks import Task
from ..statistics import Bootstrap
from ..statistics.verdicts import Verdict, every, outcome
from .shares import PAPER_HETEROGENEOUS
from .validation import PAPER_F1

SUBSTANTIAL = 0.6  # κ above it is commonly called substantial agreement


def judge_classifier(f1: Mapping[str, Mapping[tuple[str, str], Bootstrap]], natural: int, labelled: int) -> list[Verdict]:
    """Claim 1, the network's F1; and whether it beats the transparent baseline.

    Args:
        f1: by who classified ("cnn", "baseline") and (part, metric), such as ("natural", "micro F1"); heads resampled.
        natural: labelled maps drawn at random.
        labelled: all labelled maps.
    """
    micro, macro = (f1["cnn"]["natural", metric] for metric in ("micro F1", "macro F1"))
    baseline = f1["baseline"]["natural", "micro F1"]
    ahead = micro - baseline
    low, high = micro.interval
    return [
        Verdict(
            "A network of 8 convolutional layers tells the patterns apart",
            f"F1 {PAPER_F1}",
            f"micro F1 {micro.text(1, 2)}, macro F1 {macro.text(1, 2)}, n={natural} natural maps of {micro.n} heads;"
            f" all {labelled} maps: {f1['cnn']['all', 'micro F1'].text(1, 2)}",
            "agrees" if low <= PAPER_F1 <= high else "disagrees",
            "0.86 lies in the interval of micro F1, natural maps",
        ),
        Verdict(
            "Control: the network beats logistic regression on map statistics",
            "not in the paper",
            f"micro F1 of the baseline {baseline.text(1, 2)}; difference {ahead.text(100, 1, sign=True)} points,"
            f" n={natural} natural maps",
            outcome(ahead.share_above(0)),
            "paired bootstrap over heads",
        ),
    ]


def judge_constructed_maps(right: int, asked: int) -> list[Verdict]:
    """Control of ours: how many of the maps that ``controls`` constructed the network names as the guideline does."""
    return [
        Verdict(
            "Control: the network names maps of known pattern",
            "not in the paper",
            f"{right} of {asked}",
            "agrees" if right == asked else "disagrees",
            "all of them",
        )
    ]


def judge_repeats_across_heads(repeating: Collection[float]) -> list[Verdict]:
    """Claim 2, from each task's :func:`bertology_utils.patterns.repeats.repeat_share`."""
    outcomes = [outcome(share) for share in repeating]
    tally = {word: outcomes.count(word) for word in ("agrees", "undecided", "disagrees")}
    return [
        Verdict(
            "Each pattern is the usual one of two heads or more, in every task",
            "repeated across heads",
            ", ".join(f"{word} in {count}" for word, count in tally.items()) + f" of {len(repeating)} tasks",
            every(repeating),
            "bootstrap over dev examples, per task; block only where there are two sentences",
        )
    ]


def judge_repeats_across_tasks(tuned: Bootstrap, pretrained: Bootstrap, tasks: int) -> list[Verdict]:
    """Claim 3, from :func:`bertology_utils.patterns.repeats.task_agreement` of fine-tuned models and before fine-tuning."""
    return [
        Verdict(
            "Heads keep their usual pattern across tasks",
            "repeated across tasks",
            f"κ = {tuned.text(1, 2)}, n={tuned.n} heads, {tasks} tasks (pre-trained: {pretrained.text(1, 2)})",
            outcome(tuned.share_above(SUBSTANTIAL)),
            "mean κ over pairs of tasks above 0.6; bootstrap over heads",
        )
    ]


def judge_heterogeneous_shares(corrected: Collection[Bootstrap], by_hand: Bootstrap, natural: int) -> list[Verdict]:
    """Claim 4: does the heterogeneous share lie within the paper's range?

    Args:
        corrected: share of heterogeneous maps of each task, fine-tuned, corrected for the classifier's errors.
        by_hand: their share among the natural part's labels; heads resampled.
        natural: labelled maps drawn at random.
    """
    within = [_share_within(share) for share in corrected]
    values = [share.value for share in corrected]
    claim = "Between {:.0%} and {:.0%} of maps are heterogeneous".format(*PAPER_HETEROGENEOUS.values())
    return [
        Verdict(
            f"{claim}, for every task",
            "all tasks",
            f"{[outcome(share) for share in within].count('agrees')} of {len(values)} tasks;"
            f" {min(values):.0%} to {max(values):.0%}; n={sum(share.n for share in corrected)} dev examples",
            every(within),
            "corrected share; bootstrap over dev examples and labelled heads, per task",
        ),
        Verdict(
            f"{claim}, by hand",
            "all tasks",
            f"{by_hand.text(100, 0)} %, n={natural} natural maps",
            outcome(_share_within(by_hand)),
            "labels of MiniLM's maps on real GLUE; bootstrap over heads",
        ),
    ]


def judge_extremes(corrected: Mapping[Task, Bootstrap]) -> list[Verdict]:
    """The rest of claim 4: has MRPC the lowest corrected share, and QQP the highest? None for tasks that are not there."""
    if len(corrected) < 2:
        return []
    draws = np.stack([share.draws for share in corrected.values()])  # (tasks, resamples)
    verdicts = []
    for name, extremes, word in (("mrpc", draws.argmin(axis=0), "lowest"), ("qqp", draws.argmax(axis=0), "highest")):
        for row, task in enumerate(corrected):
            if task.name == name:
                share = float(np.mean(extremes == row))
                verdicts.append(
                    Verdict(
                        f"{task.title} has the {word} heterogeneous share",
                        f"{PAPER_HETEROGENEOUS[name]:.0%}",
                        f"{corrected[task].text(100, 0)} %; the {word} of {len(corrected)} tasks in {share:.0%} of resamples",
                        outcome(share),
                        "corrected shares; bootstrap over dev examples and labelled heads",
                    )
                )
    return verdicts


def judge_random_weights(random: Bootstrap, tuned: Bootstrap, title: str) -> list[Verdict]:
    """Control of ours: has a model with random weights more heterogeneous maps than the fine-tuned one?

    Args:
        random, tuned: predicted shares on the same examples of a task.
        title: of the task.
    """
    return [
        Verdict(
            "Control: a model with random weights has more heterogeneous maps",
            "not in the paper",
            f"{random.text(100, 0)} % against {tuned.text(100, 0)} % ({title}), n={random.n} dev examples",
            outcome((random - tuned).share_above(0)),
            "paired bootstrap over dev examples; predicted shares",
        )
    ]


def _share_within(share: Bootstrap) -> float:
    """Share of the resamples within the paper's range."""
    low, high = PAPER_HETEROGENEOUS.values()
    return float(np.mean((share.draws >= low) & (share.draws <= high)))
