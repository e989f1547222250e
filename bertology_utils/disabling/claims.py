"""The claims of §4.6 and §5, judged: which gains are real, what do layers cost, and are the same heads needed?

Below, ``effects`` holds those of every training, by task and number of the
training; see :func:`bertology_utils.disabling.measure.effects`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..common import Head, head_name
from ..glue.tasks import Task
from ..statistics.ties import MARGIN, clearly_below, p_is
from ..statistics.verdicts import Verdict, every
from .measure import Effects, Variants, mean_of_trainings, need_others, shared_heads

EffectsByTraining = Mapping[tuple[Task, int], Effects]
WORST_LAYER = -0.002  # of the score, from 0 to 1: the paper's largest loss on QNLI and MNLI
HARMLESS = -0.01  # a loss of a point


def judge_gains(effects: EffectsByTraining) -> list[Verdict]:
    """Claims 1 and 3: does disabling some head, or layer, raise the score on every task; and is some such gain real?"""
    verdicts = []
    for part, variant, papers in (("heads", "head", "+0.1 (STS-B) to +1.2 (MRPC)"), ("layers", "layer", "up to +3.2 (RTE)")):
        trainings = _trainings(effects, part)
        largest = {task: [100 * variants.values.max() for variants in several] for task, several in trainings.items()}
        shown = "; ".join(f"{task.title} {', '.join(f'{value:+.2f}' for value in gains)}" for task, gains in largest.items())
        verdicts.append(
            Verdict(
                f"On every task disabling some {variant} raises the score",
                papers,
                f"{shown} points",
                "agrees" if all(min(gains) > 100 * MARGIN for gains in largest.values()) else "disagrees",
                "largest gain of every training above zero (0.05 points); says nothing of chance",
            )
        )
        models = [variants for several in trainings.values() for variants in several]
        sure = [clearly_below(variants.test.better).any() for variants in models]
        gone = [variants.selected.interval[1] <= 0 for variants in models]
        others = "; ".join(
            f"{task.title} {', '.join(variants.selected.text() for variants in several)}"
            for task, several in trainings.items()
        )
        verdicts.append(
            Verdict(
                f"Some {variant}'s gain is real, on every task",
                "not tested",
                f"significant in {sum(sure)} of {len(sure)} models; the best on other examples: {others} points",
                "agrees" if all(sure) else "disagrees" if any(gone) else "undecided",
                "permutation test corrected over all; chosen on one half",
            )
        )
    return verdicts


def judge_random_head(effects: EffectsByTraining) -> list[Verdict]:
    """Claim 2: does disabling a head drawn at random raise the score, on the two tasks that the paper names?"""
    means = {task: mean_of_trainings(several) for task, several in _trainings(effects, "heads", ("mrpc", "rte")).items()}
    return [
        Verdict(
            "On MRPC and RTE disabling a random head raises the score on average",
            "both",
            "; ".join(f"{task.title} {mean.text(100, 2, sign=True)}, n={mean.n}" for task, mean in means.items())
            or "no such task",
            every((mean.share_above(0) for mean in means.values()), sure=0.975),
            "mean gain over heads and trainings",
        )
    ]


def judge_layers(effects: EffectsByTraining) -> list[Verdict]:
    """Claim 3 in numbers: does the first layer's disabling help on RTE, and the worst one's cost little on QNLI and MNLI?"""
    first, worst = (
        [layers for several in _trainings(effects, "layers", names).values() for layers in several]
        for names in (("rte",), ("qnli", "mnli"))
    )
    helps = [clearly_below(layers.test.better[0]) for layers in first]
    costs = [clearly_below(layers.test.worse[0]) for layers in first]
    far = [
        clearly_below(layers.test.worse[layers.least]) and layers.gains[layers.least].interval[1] < WORST_LAYER
        for layers in worst
    ]
    return [
        Verdict(
            "Disabling the first layer raises the score on RTE",
            "+3.2",
            "; ".join(layers.gains[0].text(100, 2, sign=True) for layers in first) or "no such task",
            "agrees" if first and all(helps) else "disagrees" if any(costs) else "undecided",
            "permutation test",
        ),
        Verdict(
            "Disabling the worst layer costs at most 0.2 points on QNLI and MNLI",
            "-0.2",
            "; ".join(layers.gains[layers.least].text(100, 2, sign=True) for layers in worst) or "no such task",
            "disagrees" if any(far) else "undecided",
            "permutation test and interval, any training; cannot agree",
        ),
    ]


def judge_frame_heads(effects: EffectsByTraining, heads: Sequence[Head]) -> list[Verdict]:
    """Claim 4: are heads that attend along frame-semantic links dispensable?

    Args:
        effects: of every training.
        heads: those heads, (layer, head) from 0.
    """
    losses = []
    for (task, _), effect in effects.items():
        for layer, head in heads:
            at = layer * effect.heads.shape[1] + head
            losses.append((effect.heads.gains[at], effect.heads.test.worse[at], f"{head_name(layer, head)} on {task.title}"))
    gain, p, where = min(losses, key=lambda loss: loss[1])
    harmless = all(loss.interval[0] > HARMLESS for loss, *_ in losses)
    return [
        Verdict(
            "Heads that attend along frame-semantic links are not needed",
            "no drop in accuracy",
            f"{where}: {gain.text(100, 2, sign=True)} points, corrected {p_is(p)}, n={gain.n}; the least p of {len(losses)}",
            "disagrees" if clearly_below(p) else "agrees" if harmless else "undecided",
            "permutation test corrected over all heads",
        )
    ]


def judge_shared_heads(effects: EffectsByTraining) -> list[Verdict]:
    """Claim 5: do STS-B and RTE need the same heads?"""
    of_tasks = {task.name: several for task, several in _trainings(effects, "heads", ("stsb", "rte")).items()}
    pairs = list(zip(of_tasks["stsb"], of_tasks["rte"], strict=True)) if len(of_tasks) == 2 else []
    common = [shared_heads(stsb.values, rte.values) for stsb, rte in pairs]
    return [
        Verdict(
            "STS-B and RTE need the same heads",
            "(4, 1) and (2, 12)",
            "shared of five: " + ", ".join(f"{count} ({p_is(p)})" for count, p in common) if pairs else "no such tasks",
            "undecided"
            if not pairs
            else "agrees"
            if all(p < 0.05 for _, p in common)
            else "disagrees"
            if all(need_others(stsb, rte) for stsb, rte in pairs)
            else "undecided",
            "hypergeometric test, every training",
        )
    ]


def judge_trainings(
    effects: EffectsByTraining, between: Mapping[Task, Sequence[tuple[float, tuple[int, float]]]]
) -> list[Verdict]:
    """Control of ours: do two trainings on one task need the same heads?

    Only tasks count on which every training has a head whose disabling costs at a corrected p.

    Args:
        effects: of every training.
        between: by task, for each pair of trainings the rank correlation of what disabling does, and how many of the five
            most needed heads they share with the probability of as many by chance.
    """
    trainings = _trainings(effects, "heads")
    needing = {
        task: pairs for task, pairs in between.items() if all(heads.significant("worse").any() for heads in trainings[task])
    }
    probabilities = [p for pairs in needing.values() for _, (_, p) in pairs]
    return [
        Verdict(
            "Control: two trainings need the same heads",
            "not in the paper",
            "; ".join(
                f"{task.title} {', '.join(f'{count} of 5 ({p_is(p)}), ρ = {rank:+.2f}' for rank, (count, p) in pairs)}"
                for task, pairs in needing.items()
            )
            or "–",
            "agrees" if probabilities and max(probabilities) < 0.05 else "undecided",
            "hypergeometric test, every pair of trainings",
        )
    ]


def _trainings(effects: EffectsByTraining, part: str, names: Sequence[str] = ()) -> dict[Task, list[Variants]]:
    """Heads or layers of every training, by task, of some tasks or of all."""
    found: dict[Task, list[Variants]] = {}
    for (task, _), effect in effects.items():
        if not names or task.name in names:
            found.setdefault(task, []).append(getattr(effect, part))
    return found
