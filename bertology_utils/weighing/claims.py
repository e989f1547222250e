"""The companions' claims, judged: what do special tokens, heads and mixing look like by norm?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..claims import Support, Verdict, above, all_of, judged, some_head, within
from ..claims.gates import unlearned
from ..claims.register import WEIGHT
from ..claims.words import kept, least_of
from ..common import head_name
from ..glue.tasks import Task
from ..statistics.estimate import Estimate, over_trainings
from ..statistics.permutation import ManyTest
from ..statistics.ties import heads_by_size
from .heads import Agreement

RANK = 0.8  # Spearman's correlation from which heads keep their rank
BEFORE, AFTER = "pre-trained", "fine-tuned"
ByTask = Mapping[Task, Estimate]
Learned = Mapping[Task, bool]


def both(before: ByTask, after: ByTask, learned: Learned) -> dict[str, Estimate]:
    """Of every task before fine-tuning, and after it where the task was learned; by what people call it."""
    if not after:
        return {task.title: estimate for task, estimate in before.items()}
    found = {f"{task.title}, {BEFORE}": estimate for task, estimate in before.items()}
    return found | {f"{task.title}, {AFTER}": estimate for task, estimate in kept(after, learned).items()}


def _unlearned(after: ByTask, learned: Learned) -> str:
    """What is missing of the fine-tuned models; nothing where there are none."""
    return unlearned(list(after), learned) if after else ""


def _every(estimates: Mapping[str, Estimate], least: float) -> Support:
    return all_of(above(estimate, least) for estimate in estimates.values())


def judge_fall(kind: str, before: ByTask, after: ByTask, learned: Learned, missing: str = "") -> Verdict:
    """Does a kind of token get less by norm?

    Args:
        kind: one of :data:`bertology_utils.weighing.falls.MARKS`.
        before, after: by task, its share by weight minus its share by norm; no ``after``: before fine-tuning alone.
        learned: by task.
        missing: the precondition that fails, such as a [SEP] sink.
    """
    fair = both(before, after, learned)
    name = f"norm-{kind.strip('[]').lower()}"
    return judged(
        name, _every(fair, WEIGHT), least_of(fair, of="cases", border=WEIGHT), missing or _unlearned(after, learned)
    )


def judge_fall_controls(
    random: Estimate, title: str, spared: ByTask, heads: Mapping[Task, Sequence[ManyTest]], learned: Learned
) -> list[Verdict]:
    """Is the fall of [CLS] learned, due to its own vectors, and in every head?

    Args:
        random: its fall with random weights.
        title: on which task.
        spared: by task, its fall minus the fall with lengths exchanged among tokens.
        heads: by task and training, its share by norm minus by weight, of every head.
        learned: by task.
    """
    missing, fair = unlearned(list(spared), learned), kept(spared, learned)
    tests = [test for of_task in kept(heads, learned).values() for test in of_task]
    most = max(tests, key=lambda test: float(test.means.max()), default=None)
    ours = "–" if most is None else f"{head_name(*heads_by_size(most.means)[0])} {most.means.max():+.3f}; n={most.n.max()}"
    return [
        judged("norm-random", within(random, -WEIGHT, WEIGHT), f"{title} {random.text(1, 3, sign=True)}; n={random.n}"),
        judged(
            "norm-exchanged", all_of(above(part, WEIGHT) for part in fair.values()), least_of(fair, border=WEIGHT), missing
        ),
        judged("norm-heads", all_of(~some_head(test) for test in tests), ours, missing),
    ]


def judge_noop(spared: ByTask, gradients: ByTask, learned: Learned) -> list[Verdict]:
    """Is attention to the most attended token a no-op?

    Args:
        spared: by task, how far answers move without as much attention to words, minus without that to the token.
        gradients: by task, gradient for a weight on a word minus that for one on the token, as a part of the former.
        learned: by task.
    """
    missing = unlearned(list(spared), learned)
    fair, slopes = kept(spared, learned), kept(gradients, learned)
    return [
        judged("sink-noop", all_of(map(above, fair.values())), f"less by {least_of(fair, border=0)}", missing),
        judged(
            "sink-gradient",
            all_of(map(above, slopes.values())),
            f"smaller by {least_of(slopes, 100, 0, border=0, unit=' %')}",
            missing,
        ),
    ]


def no_sink(kind: str, in_even_shares: float) -> str:
    """What is missing if one token of a kind gets no more than an even share, pre-trained and by weight."""
    if in_even_shares > 1:
        return ""
    return f"a sink: pre-trained, one {kind} gets {in_even_shares:.1f} of an even share"


def judge_heads(name: str, agreements: Mapping[str, Sequence[Agreement]], unit: float, missing: str = "") -> list[Verdict]:
    """Do heads keep their rank, and is the best one as good when chosen by norm?

    Args:
        name: "relations" or "frames".
        agreements: of every training, by what they are called, weights first.
        unit: 100 where held-out differences are put in points.
        missing: what is missing, if there are none.
    """
    ranks = {title: over_trainings([one.rank for one in found]) for title, found in agreements.items()}
    behind = {title: over_trainings([one.held_out for one in found]) for title, found in agreements.items()}
    missing = missing or ("" if agreements else "such links")
    return [
        judged(
            f"{name}-rank",
            _every(ranks, RANK),
            f"ρ {least_of(ranks, 1, 2, of='comparisons', border=RANK, counts='heads')}",
            missing,
        ),
        judged(
            f"{name}-best",
            _every(behind, -WEIGHT),
            least_of(behind, unit, 3 if unit == 1 else 1, of="comparisons", border=-WEIGHT),
            missing,
        ),
    ]


def judge_needed(clearer: ByTask, learned: Learned) -> Verdict:
    """Do the heads that matter most show a clearer pattern by norm? Share of their maps with one, by norm minus by weight."""
    fair = kept(clearer, learned)
    support = all_of(~above(part, WEIGHT) for part in fair.values())
    return judged(
        "needed-unclear", support, least_of(fair, 1, 2, most=True, border=WEIGHT), unlearned(list(clearer), learned)
    )


def judge_mixing(
    steps: Sequence[tuple[ByTask, ByTask]], kept_shares: tuple[ByTask, ByTask], learned: Learned
) -> list[Verdict]:
    """Do tokens mix less, the more is counted, and do they mostly keep themselves?

    Args:
        steps: from weights to norms, and from norms to norms with residual and LayerNorm: by how much the ratio falls,
            before and after fine-tuning, by task; nothing after: before fine-tuning alone.
        kept_shares: one minus the last ratio, in the same form.
        learned: by task.
    """
    missing = _unlearned(kept_shares[1], learned)
    falls = [both(before, after, learned) for before, after in steps]
    steps_by_name = {f"{title}, step {number}": part for number, step in enumerate(falls, 1) for title, part in step.items()}
    shares = both(*kept_shares, learned)
    ratios = {title: Estimate(1 - s.value, s.error, s.n, s.trainings, s.degrees) for title, s in shares.items()}
    return [
        judged(
            "mixing-order",
            all_of(_every(step, WEIGHT) for step in falls),
            least_of(steps_by_name, of="cases", border=WEIGHT),
            missing,
        ),
        judged(
            "mixing-kept", _every(shares, 0.5), f"ratio {least_of(ratios, 1, 2, most=True, of='cases', border=0.5)}", missing
        ),
    ]
