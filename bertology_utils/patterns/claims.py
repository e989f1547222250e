"""The claims of §4.1, judged: can a network tell the patterns apart, do they repeat, how many maps are heterogeneous?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..claims import FAILS, HOLDS, Support, Verdict, above, all_of, judged, within
from ..claims.gates import unlearned
from ..claims.register import PAPER_HETEROGENEOUS, WEIGHT
from ..claims.words import counted, kept, least_of
from ..glue.tasks import Task
from ..statistics import Bootstrap
from ..statistics.estimate import Estimate, over_trainings
from ..statistics.resampling import lead
from .validation import PAPER_F1

SUBSTANTIAL = 0.6  # κ above it is commonly called substantial agreement
F1_APART = 0.05  # so far from the paper's F1 is another F1
LARGE = 1 - max(PAPER_HETEROGENEOUS.values())  # what the paper's largest heterogeneous share leaves


def judge_classifier(f1: Mapping[str, Mapping[tuple[str, str], Bootstrap]], natural: int) -> list[Verdict]:
    """The network's F1; and, a control of ours, whether it beats the transparent baseline.

    Args:
        f1: by who classified ("cnn", "baseline") and (part, metric), such as ("natural", "micro F1"); heads resampled.
        natural: labelled maps drawn at random.
    """
    micro, baseline = (over_trainings([f1[who]["natural", "micro F1"]]) for who in ("cnn", "baseline"))
    ahead = over_trainings([f1["cnn"]["natural", "micro F1"] - f1["baseline"]["natural", "micro F1"]])
    shown = f"{natural} maps of {micro.n} heads"
    return [
        judged(
            "classifier",
            within(micro, PAPER_F1 - F1_APART, PAPER_F1 + F1_APART),
            f"micro F1 {micro.text(1, 2)}; {shown} (logistic regression {baseline.value:.2f})",
        ),
        judged("beats-baseline", above(ahead), f"{ahead.text(100, 1, sign=True)} points; {shown}"),
    ]


def judge_constructed_maps(right: int, asked: int) -> list[Verdict]:
    """Control of ours: how many of the maps that ``controls`` constructed the network names as the guideline does."""
    return [judged("constructed-maps", HOLDS if right == asked else FAILS, f"{right} of {asked}")]


def judge_repeats_across_heads(
    coverage: Mapping[Task, Estimate], by_chance: Mapping[Task, float], learned: Mapping[Task, bool]
) -> list[Verdict]:
    """Do a few patterns cover more heads than by chance?

    Args:
        coverage: by task, from :func:`bertology_utils.patterns.repeats.coverage`.
        by_chance: by task, from :func:`bertology_utils.patterns.repeats.coverage_by_chance`.
        learned: by task, see :func:`bertology_utils.claims.gates.learned`.
    """
    fair = kept(coverage, learned)
    support = all_of(above(share, by_chance[task]) for task, share in fair.items())
    ours = f"share of heads {least_of(fair, 1, 2)}; by chance up to {max(by_chance.values()):.2f}"
    return [judged("repeat-heads", support, ours, unlearned(list(coverage), learned))]


def judge_repeats_across_tasks(
    tuned: Estimate | None, pretrained: Bootstrap | None, heads: int, tasks: int
) -> list[Verdict]:
    """Do heads keep their usual pattern from task to task?

    Args:
        tuned, pretrained: from :func:`bertology_utils.patterns.repeats.task_agreement`; None for fewer than two tasks.
        heads: how many.
        tasks: that were learned.
    """
    if tuned is None or pretrained is None:
        return [judged("repeat-tasks", Support(1, 1), "–", "two learned tasks")]
    ours = f"κ {tuned.text(1, 2)}; {heads} heads, {tasks} tasks, {counted(tuned)} (pre-trained {pretrained.value:.2f})"
    return [judged("repeat-tasks", above(tuned, SUBSTANTIAL), ours)]


def judge_first_three(shares: Mapping[Task, Estimate], learned: Mapping[Task, bool]) -> list[Verdict]:
    """Are vertical, diagonal and mixed maps a large portion of all? Corrected shares by task."""
    fair = kept(shares, learned)
    support = all_of(above(share, LARGE) for share in fair.values())
    return [judged("first-three", support, least_of(fair, 1, 2), unlearned(list(shares), learned))]


def judge_heterogeneous_shares(
    corrected: Mapping[Task, Estimate], by_label: Bootstrap, natural: int, learned: Mapping[Task, bool]
) -> list[Verdict]:
    """Does the heterogeneous share lie within the paper's range?

    Args:
        corrected: share of heterogeneous maps of each task, fine-tuned, corrected for the classifier's errors.
        by_label: their share among the natural part's labels; heads resampled.
        natural: labelled maps drawn at random.
        learned: by task.
    """
    fair, of_labels = kept(corrected, learned), over_trainings([by_label])
    low, high = PAPER_HETEROGENEOUS.values()
    return [
        judged(
            "heterogeneous",
            all_of(within(share, low, high) for share in fair.values()),
            least_of(fair, 1, 2),
            unlearned(list(corrected), learned),
        ),
        judged("heterogeneous-labels", within(of_labels, low, high), f"{of_labels.text(1, 2)}; {natural} maps"),
    ]


def judge_extremes(corrected: Mapping[Task, Sequence[Bootstrap]], learned: Mapping[Task, bool], real: bool) -> list[Verdict]:
    """Has MRPC the lowest corrected share, and QQP the highest?

    Args:
        corrected: by task, the share of every training.
        learned: by task.
        real: the data are GLUE's own.
    """
    fair = {task.name: shares for task, shares in kept(corrected, learned).items()}
    missing = "" if real and {"mrpc", "qqp"} <= set(fair) and len(fair) > 2 else "GLUE's own MRPC, QQP and a third task"
    if missing:
        return [judged("heterogeneous-extremes", Support(1, 1), "–", missing)]
    leads = []
    for name, sign in (("mrpc", -1), ("qqp", 1)):
        signed = {task: [share if sign > 0 else -share for share in shares] for task, shares in fair.items()}
        rivals = [shares for task, shares in signed.items() if task != name]
        of_trainings = [lead(own, others) for own, *others in zip(signed[name], *rivals, strict=False)]
        leads.append(over_trainings(of_trainings))
    ours = (
        f"MRPC below the rest by {leads[0].text(100, 0, sign=True)}, QQP above by {leads[1].text(100, 0, sign=True)} points"
    )
    return [judged("heterogeneous-extremes", all_of(map(above, leads)), ours)]


def judge_change(changed: Mapping[Task, Estimate], learned: Mapping[Task, bool]) -> list[Verdict]:
    """Does fine-tuning change the usual pattern of some heads? From ``repeats.changed_heads``, by task."""
    fair = kept(changed, learned)
    support = all_of(above(share, WEIGHT) for share in fair.values())
    return [judged("patterns-change", support, f"share of heads {least_of(fair, 1, 2)}", unlearned(list(changed), learned))]


def judge_random_weights(apart: Estimate, title: str, missing: str) -> list[Verdict]:
    """Control of ours: has a model with random weights more heterogeneous maps than the fine-tuned one?

    Args:
        apart: predicted share with random weights minus that of the fine-tuned models, on the same examples of a task.
        title: of the task.
        missing: the precondition that fails.
    """
    return [
        judged("random-heterogeneous", above(apart), f"{title} {apart.text(1, 2, sign=True)}; {counted(apart)}", missing)
    ]
