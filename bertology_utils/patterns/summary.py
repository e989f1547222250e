"""Notebook 1 in sentences: what came out of each section, filled from its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..claims.register import PAPER_HETEROGENEOUS
from ..glue.tasks import Task
from ..statistics import Bootstrap
from ..statistics.estimate import Estimate
from .pictures import Shown
from .repeats import two_commonest

Scores = Mapping[str, Mapping[tuple[str, str], Bootstrap]]  # by judge and (part, name), from evidence.f1_by_part
OTHER = "one labelling against the other"


def trusted(f1: Scores) -> str:
    """How far the network can be trusted: on maps drawn at random, beside the baseline and beside a second labelling.

    Args:
        f1: from :func:`bertology_utils.patterns.evidence.f1_by_part`.
    """
    right = {who: f"{100 * scores['natural', 'micro F1'].value:.0f} %" for who, scores in f1.items()}
    loose = {who: f"{scores['natural', 'heterogeneous'].value:.2f}" for who, scores in f1.items()}
    return (
        f"On maps drawn at random the network gives {right['cnn']} the settled label, logistic regression"
        f" {right['baseline']}; two independent labellings agree on {right[OTHER]}.\n"
        f"On heterogeneous maps, the class that the paper's point depends on, F1 is {loose['cnn']} for the network,"
        f" {loose['baseline']} for logistic regression and {loose[OTHER]} between the labellings."
    )


def how_often(network: Mapping[Task, Estimate], regression: Mapping[Task, Estimate]) -> str:
    """The heterogeneous share by both counts, beside the paper's.

    Args:
        network, regression: corrected, by task.
    """
    low, high = PAPER_HETEROGENEOUS.values()
    return (
        f"After fine-tuning {_span(network)} of a task's maps are heterogeneous by the network's corrected count, and"
        f" {_span(regression)} by that of logistic regression; in the paper {100 * low:.0f} to {100 * high:.0f} %."
    )


def lesson_of_random_weights(share: float, title: str) -> str:
    """What the share of heterogeneous maps of a model that has learned nothing says of the class.

    Args:
        share: of heterogeneous maps with random weights, as predicted.
        title: of the task.
    """
    told = f"With random weights {100 * share:.0f} % of the maps are heterogeneous ({title})."
    if share > 0.5:
        return f"{told} So a heterogeneous map need not hold information: a model that has learned nothing shows them, too."
    return f"{told} So this model shows patterns before it has learned anything."


def rows_alike(rows: Mapping[str, Sequence[Shown]]) -> str:
    """In which rows of maps all have the same name, in words.

    Args:
        rows: by head's name, maps whose title ends in the pattern's name.
    """
    kinds = {name: {one.title.splitlines()[-1] for one in row} for name, row in rows.items()}
    told = [f"head {name}: {', '.join(sorted(names))}" for name, names in kinds.items()]
    return f"{len(rows)} heads in rows, {len(next(iter(rows.values())))} tasks in columns. {'; '.join(told)}."


def commonest(usual: Mapping[Task, np.ndarray]) -> str:
    """Which two patterns are usual for most heads, on how many tasks, and for how many heads.

    Args:
        usual: by task, from ``repeats.usual_patterns``.
    """
    pairs = {task.title: frozenset(two_commonest(of_task)) for task, of_task in usual.items()}
    first = frozenset(two_commonest(next(iter(usual.values()))))
    same = sum(pair == first for pair in pairs.values())
    names = " and ".join(two_commonest(next(iter(usual.values()))))
    return f"The two commonest usual patterns are {names} on {same} of {len(pairs)} tasks."


def inherited(tuned: Estimate | None, pretrained: Bootstrap | None) -> str:
    """Do tasks share patterns because they share a start?

    Args:
        tuned, pretrained: agreement between tasks after and before fine-tuning; None for fewer than two tasks.
    """
    if tuned is None or pretrained is None:
        return "Agreement between tasks needs two learned tasks."
    lower = "more" if pretrained.value > tuned.value else "less"
    return (
        f"Before any fine-tuning κ between tasks is {pretrained.value:.2f}, {lower} than the {tuned.value:.2f} afterwards:"
        f" fine-tuning {'adds nothing to' if lower == 'more' else 'raises'} what the tasks share."
    )


def changed(after: Mapping[Task, Estimate], by_examples: Mapping[Task, Estimate]) -> str:
    """How many heads fine-tuning changes, beside how many other examples change.

    Args:
        after: share of heads beyond what other examples change, by task.
        by_examples: what other examples change.
    """
    most = max(by_examples.values(), key=lambda one: one.value)
    return (
        f"Fine-tuning gives {_span(after)} of the heads another usual pattern, beyond what other examples do; these alone"
        f" change {100 * most.value:.0f} % at most."
    )


def by_norm(weight: Mapping[str, Sequence[float]], norm: Mapping[str, Sequence[float]]) -> str:
    """How the vertical and the heterogeneous share differ by norm, mean of the tasks.

    Args:
        weight, norm: by task's title, the corrected share of every pattern.
    """
    means = [100 * np.mean(list(shares.values()), axis=0) for shares in (weight, norm)]
    return (
        f"By norm {means[1][0]:.0f} % of the maps are vertical instead of {means[0][0]:.0f} %, and {means[1][-1]:.0f} %"
        f" heterogeneous instead of {means[0][-1]:.0f} % (mean of {len(weight)} tasks, corrected)."
    )


def _span(shares: Mapping[Task, Estimate]) -> str:
    """ "1 % (MNLI-m) to 12 % (QNLI)"."""
    ends = [choose(shares.items(), key=lambda item: item[1].value) for choose in (min, max)]
    texts = [f"{100 * one.value:.0f} % ({task.title})" for task, one in ends]
    return " to ".join(dict.fromkeys(texts))
