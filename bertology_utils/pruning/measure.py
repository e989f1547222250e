"""What the score loses without heads, layers' fine-tuning or weights, recorded and judged.

Every change is paired with the whole model's answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attention import Batch
from ..cache import cached
from ..common import Head, track
from ..disabling.effects import gains, scores_of
from ..disabling.masking import all_heads, disabled, logits_without, replacement
from ..drift.measure import EMBEDDINGS, gain, logits_with_reset, score_task
from ..glue import Task, plain_metric, predictions, scale_of
from ..models import predict_logits
from ..statistics import Bootstrap, Estimate, mean_of, mean_over_seeds
from ..verdicts import constant_score
from . import pairs, spec
from .spec import ANY, BAD, FROZEN, GOOD, RANDOM, SMALLEST, THIRD, Pruning, prunings_of, runs_of

if TYPE_CHECKING:
    from ..lab import Lab

STEPS = 8  # measurements on the way to a model without heads; the fourth is without half of them
RANDOM_ORDERS = 3
# How far scores move from one machine to another, which trains another model.
GAIN: dict[str, Any] = {"by": ("task", "state", "kind"), "unit": "gain", "tolerance": 0.005}


def run(lab: Lab) -> None:
    """Pairs of heads of one pattern, and how many layers, heads and weights can go (§5)."""
    tasks = lab.learned_tasks
    pairs.record(lab, tasks)
    record_layers(lab, tasks)
    record_heads_gone(lab, tasks)
    record_weights(lab, tasks)
    record_halves(lab, tasks)


def change(lab: Lab, task: Task, pruned: np.ndarray, whole: np.ndarray) -> Estimate:
    """Change of the score, from −1 to 1, mean over runs.

    Args:
        lab: its lab.
        task: the task.
        pruned: answers of the first runs, shape (runs, dev rows).
        whole: those of the whole models, of as many runs or more.
    """
    labels, seed, whole = lab.labels(task), lab.resampling_seed(task), whole[: len(pruned)]
    parts = [
        gains(task, before, after[None], labels, seed)[0]
        for after, before in zip(pruned, whole, strict=True)
    ]
    return mean_over_seeds(parts, scale_of(task, float(scores_of(task, whole, labels).mean())))


# Layers that are not fine-tuned


def record_layers(lab: Lab, tasks: Sequence[Task]) -> None:
    """Change of the score with layers reset to their pre-trained weights, or frozen.

    They are reset from below (with the embeddings) and from above, and frozen from below.
    """
    layers, changes = lab.config.num_hidden_layers, {}
    counts, third = range(1, layers + 1), Pruning(FROZEN, THIRD).count(layers)
    groups = [tuple(range(EMBEDDINGS, count)) for count in counts]
    groups += [tuple(range(layers - count, layers)) for count in counts]
    for task in track(tasks, "resetting layers"):
        logits = [logits_with_reset(lab, task, groups, number) for number in runs_of(lab, task)]
        # (1 + groups, runs, dev rows)
        whole, *reset = predictions(task, np.stack(logits, axis=1))
        by_group = [change(lab, task, answers, whole) for answers in reset]
        frozen = {
            pruning.count(layers): change(lab, task, pruned_answers(lab, task, pruning), whole)
            for pruning in prunings_of(lab, 0)
            if pruning.kind == FROZEN
        }
        below, above = by_group[:layers], by_group[layers:]
        changes[task] = {
            "from below": dict(zip(counts, below, strict=True)),
            "from above": dict(zip(counts, above, strict=True)),
            "frozen from below": frozen,
        }
    lab.record("gain with layers not fine-tuned", changes, **GAIN)
    for claim, state in ("third-put-back", "from below"), ("third-frozen", "frozen from below"):
        lab.judge(claim, {task: one[state][third] for task, one in changes.items()}, unit="gain")


def pruned_answers(lab: Lab, task: Task, pruning: Pruning) -> np.ndarray:
    """Answers of the runs that are repeated with a pruning, shape (runs, dev rows)."""
    numbers = [at for at in lab.trainings(task) if pruning in prunings_of(lab, at)]
    return np.stack([lab.answers(task, seed_offset=number, cut=pruning) for number in numbers])


# Heads that go, one after the other


def record_heads_gone(lab: Lab, tasks: Sequence[Task]) -> None:
    """Change of the score with ever more heads gone, by order; of the first two runs."""
    heads = lab.config.num_hidden_layers * lab.config.num_attention_heads
    changes = {task: changes_by_order(lab, task, heads) for task in track(tasks, "removing heads")}
    lab.record("gain with heads gone", changes, **GAIN)
    three = heads_after(3, heads)
    eighths = {task: by_order["ranked anew"][three] for task, by_order in changes.items()}
    lab.judge("heads-gone", eighths, unit="gain")


def heads_after(steps: int, heads: int) -> int:
    """How many of a model's heads are gone after so many of the :data:`STEPS`, rounded."""
    return round(heads * steps / STEPS)


def changes_by_order(lab: Lab, task: Task, heads: int) -> dict[str, dict[int, Estimate]]:
    """Change of the score by order and by how many of the heads are gone.

    And "ranked above random": how much less is lost by rank than in random orders, of the same
    examples.
    """
    labels, seed = lab.labels(task, "swept"), lab.resampling_seed(task)
    counts = sorted({heads_after(step, heads) for step in range(STEPS + 1)})
    changes: dict[str, dict[int, list[Bootstrap]]] = {}
    zeros = replacement(lab.encoder(), (), "zero")
    inputs = lab.lazy_batches(task, lab.rows(task, "swept"))
    for number in runs_of(lab, task)[:2]:
        tuned = lab.lazy_classifier(task, seed_offset=number)

        def answers(gone: Sequence[Head], tuned=tuned) -> np.ndarray:
            return predictions(task, cached(logits_without, tuned, inputs, sorted(gone), zeros))

        whole = answers([])
        for name, orders in orders_of(lab, task, number, -(-heads // STEPS)).items():
            for count in counts:
                pruned = np.stack([answers(order[:count]) for order in orders])
                mean = mean_of(gains(task, whole, pruned, labels, seed))
                changes.setdefault(name, {}).setdefault(count, []).append(mean)
    changes["ranked above random"] = {
        count: [one - other for one, other in zip(ranked, changes["random"][count], strict=True)]
        for count, ranked in changes["ranked anew"].items()
    }
    return {
        name: {count: mean_over_seeds(parts) for count, parts in by_count.items()}
        for name, by_count in changes.items()
    }


def orders_of(lab: Lab, task: Task, number: int, step: int) -> dict[str, list[list[Head]]]:
    """Orders in which a run's heads can go, by name: several only where they are drawn at random.

    Args:
        lab: its lab.
        task: the task.
        number: of the run.
        step: see :func:`pruning_order`.
    """
    settings, heads = lab.settings, lab.config.num_attention_heads
    train, length = lab.rows(task, "train"), settings.profile.recipe.max_length
    rows = spec.ranking_batches(task, train, lab.tokenizer, length, settings.seed)

    def ranked(at: int) -> list[Head]:
        tuned = lab.lazy_classifier(task, seed_offset=at)
        return [tuple(head) for head in cached(pruning_order, tuned, rows, step)]

    def drawn(at: int) -> list[Head]:
        rng = np.random.default_rng((settings.seed, number, at))
        every = rng.permutation(lab.config.num_hidden_layers * heads)
        return [divmod(int(one), heads) for one in every]

    others = [at for at in lab.trainings(task) if at != number]
    orders = {"ranked anew": [ranked(number)], "random": [drawn(at) for at in range(RANDOM_ORDERS)]}
    return orders | ({"another training's": [ranked(others[0])]} if others else {})


def pruning_order(model, batches: Sequence[Batch], step: int) -> list[Head]:
    """All heads in the order in which they go, the least important first.

    So many go at a time, then those that are left are ranked again. Importance is by
    gradients, each layer's in its own scale (Michel et al., 2019, §4.1).

    Args:
        model: classifier in evaluation mode.
        batches: with gold labels, not those on which the order is tried.
        step: heads that go at a time; as many as there are for one ranking of all.
    """
    gone: list[Head] = []
    zeros = replacement(model, batches, "zero")
    while left := [head for head in all_heads(model) if head not in gone]:
        with disabled(model, gone, zeros):
            importance = spec.importance(model, batches)
        gone += sorted(left, key=lambda head: importance[head])[:step]
    return gone


# Weights that go


def record_weights(lab: Lab, tasks: Sequence[Task]) -> None:
    """Change of the score without weights, by which and when they went, and how many."""
    weights = [one for one in prunings_of(lab, 0) if one.kind in (SMALLEST, ANY)]
    answers, changes = {"before": pruned_answers, "after": answers_pruned_after}, {}
    for task in track(tasks, "pruning weights"):
        whole = lab.answers_of_runs(task)
        changes[task] = {
            f"{kind}, {when}": {
                f"{100 * one.size:.0f}": change(lab, task, pruned(lab, task, one), whole)
                for one in weights
                if one.kind == kind
            }
            for kind in (SMALLEST, ANY)
            for when, pruned in answers.items()
        }
    lab.record("gain with weights gone", changes, **GAIN)
    smallest = {task: by_state[f"{SMALLEST}, before"] for task, by_state in changes.items()}
    claimed = {
        task: {f"{size} %": one for size, one in by_size.items() if size in ("30", "40")}
        for task, by_size in smallest.items()
    }
    lab.judge("weights-gone", claimed, unit="gain")


def answers_pruned_after(lab: Lab, task: Task, pruning: Pruning) -> np.ndarray:
    """Answers of fine-tuned models whose weights are pruned afterwards, (runs, dev rows)."""
    inputs, seed = lab.lazy_batches(task, lab.rows(task, "dev")), lab.settings.seed
    models = [lab.lazy_classifier(task, seed_offset=number) for number in runs_of(lab, task)[:2]]
    logits = [
        cached(logits_pruned, model, inputs, pruning, seed + number)
        for number, model in enumerate(models)
    ]
    return predictions(task, np.stack(logits))


def logits_pruned(model, batches: Sequence[Batch], pruning: Pruning, seed: int) -> np.ndarray:
    """Outputs of a classifier without the weights that a pruning takes, shape (examples, labels).

    The model is changed for good; ``seed`` draws random weights.
    """
    masks = spec.weight_masks(model, pruning.size, None if pruning.kind == SMALLEST else seed)
    spec.keep_zero(model, masks)
    return predict_logits(model, batches)


# Halves of the heads, trained again


def record_halves(lab: Lab, tasks: Sequence[Task]) -> None:
    """Scores of runs with half of the heads, and of their controls.

    These are trained without any head, on shuffled labels, or from a random start.
    """
    scores, over, good, shuffled = {}, {}, {}, {}
    for task in tasks:
        labels, seed, metric = lab.labels(task), lab.resampling_seed(task), plain_metric(task)
        made = prunings_of(lab, 0)
        answers = {"all heads": lab.answers_of_runs(task)} | {
            name: pruned_answers(lab, task, pruning)
            for name, pruning in (spec.HALVES | spec.CONTROLS).items()
            if pruning in made
        }
        if task in lab.random_tasks:
            answers["random start"] = lab.random_starts(task)
            worse = score_task(task, answers["random start"], labels, seed)[metric]
            kinds = [kind for kind in (BAD, RANDOM) if kind in answers]
            over[task] = {kind: gain(task, answers[kind], worse, labels, seed) for kind in kinds}
        good[task] = change(lab, task, answers[GOOD], answers[BAD])
        trained = {
            name: mean_over_seeds(
                [score_task(task, one[None], labels, seed)[metric] for one in several]
            )
            for name, several in answers.items()
        }
        constant = constant_score(task, labels)
        scores[task] = {"trained": trained, "compared with": {"always one answer": constant}}
        if "labels shuffled" in trained:
            shuffled[task] = trained["labels shuffled"] - constant
    what = "score of half of the heads, trained again"
    lab.record(what, scores, **GAIN | {"unit": "score"})
    what = "shuffled labels above always one answer"
    lab.record(what, shuffled, **GAIN | {"by": ("task",)})
    lab.judge("halves-learn", over, unit="gain")
    lab.judge("good-half", good, unit="gain")
    lab.judge("shuffled-labels")
