"""What the score loses without layers' fine-tuning, weights or heads; every number paired with the whole model's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attention import Batch, observe_cached
from ..cache import cached
from ..common import Head
from ..disabling.effects import gains, losses, scores_of
from ..disabling.masking import (
    all_heads,
    disabled,
    logits_without,
    random_order,
    replacement,
)
from ..drift.measure import EMBEDDINGS, answers_of_task, gain, logits_with_reset, score_task
from ..glue import Task, plain_metric, predictions, scale_of
from ..models import predict_logits
from ..patterns.classifiers import load_network
from ..patterns.measure import Patterns, usual_patterns
from ..statistics import Bootstrap, Estimate, Seed, bootstrap_mean, mean_of, mean_over_seeds
from . import cuts
from .cuts import ANY, BAD, FROZEN, GOOD, NONE, RANDOM, SMALLEST, Cut
from .pairs import (
    HeadDistances,
    Pairs,
    alike_and_other,
    nearest,
    paired_rows,
    sets_call,
    with_copy,
)

if TYPE_CHECKING:
    from ..lab import Lab

HALVES = {kind: Cut(kind, 0.5) for kind in (GOOD, RANDOM, BAD)}
CONTROLS = {NONE: Cut(NONE, 1.0), "labels shuffled": Cut(GOOD, 0.5, shuffled=True)}
STEPS = 8  # measurements on the way to a model without heads; the fourth is without half of them
RANDOM_ORDERS = 3


def change(lab: Lab, task: Task, one: np.ndarray, other: np.ndarray) -> Estimate:
    """Score of one set of answers minus that of another, from −1 to 1, mean over trainings; each (trainings, dev rows)."""
    labels, seed = lab.labels(task), lab.resampling_seed(task)
    parts = [
        gains(task, before, after[None], labels, seed)[0]
        for after, before in zip(one, other, strict=True)
    ]
    return mean_over_seeds(parts, scale_of(task, float(scores_of(task, other, labels).mean())))


def after_cut(lab: Lab, task: Task, cut: Cut) -> np.ndarray:
    """Answers of the trainings that had to do without something, shape (trainings that have this cut, dev rows)."""
    return np.stack(
        [
            lab.answers(task, seed_offset=at, cut=cut)
            for at in lab.trainings(task)
            if cut in cuts.cuts_of(at)
        ]
    )


def cut_afterwards(lab: Lab, task: Task, cut: Cut, count: int = 2) -> np.ndarray:
    """Answers after weights were taken from fine-tuned models, which are not trained again.

    Args:
        lab: whose task it is.
        task: the task.
        cut: of weights.
        count: of how many trainings.

    Returns:
        Shape (trainings, dev rows).
    """
    found = [
        cached(
            logits_cut,
            lab.lazy_classifier(task, seed_offset=at),
            lab.lazy_batches(task, lab.rows(task, "dev")),
            cut,
            lab.settings.seed + at,
        )
        for at in lab.trainings(task)[:count]
    ]
    return np.stack([predictions(task, logits) for logits in found])


def logits_cut(model, batches: Sequence[Batch], cut: Cut, seed: int) -> np.ndarray:
    """Outputs of a classifier, shape (examples, labels), from which weights are taken, here and for good; ``seed`` draws them."""
    cuts.zero(model, cuts.weight_masks(model, cut.size, None if cut.kind == SMALLEST else seed))
    return predict_logits(model, batches)


def by_setting(
    found: Mapping[Task, Mapping[str, Mapping[Any, Any]]],
) -> Iterator[tuple[str, Any, dict[Task, Any]]]:
    """Numbers by task, state and kind as (state, kind, numbers by task): what differs between trainings is told for each."""
    settings = dict.fromkeys(
        (state, kind)
        for of_task in found.values()
        for state, some in of_task.items()
        for kind in some
    )
    for state, kind in settings:
        yield (
            state,
            kind,
            {
                task: each[state][kind]
                for task, each in found.items()
                if kind in each.get(state, {})
            },
        )


def weights_gone(lab: Lab, task: Task) -> dict[str, dict[str, Estimate]]:
    """Changes of the score without weights, by which and when they went, and by how many in percent."""
    whole, found = answers_of_task(lab, task), dict[str, dict[str, Estimate]]()
    for cut in cuts.cuts_of(0):
        if cut.kind in (SMALLEST, ANY):
            said = {"before": after_cut(lab, task, cut), "after": cut_afterwards(lab, task, cut)}
            for when, one in said.items():
                changed = change(lab, task, one, whole[: len(one)])
                found.setdefault(f"{cut.kind}, {when}", {})[f"{cut.size:.0%}".rstrip("%")] = changed
    return found


def frozen(lab: Lab, task: Task) -> dict[int, Estimate]:
    """Change of the score with the lowest layers frozen in fine-tuning, by how many."""
    layers, whole = lab.config.num_hidden_layers, answers_of_task(lab, task)
    found = {cut: after_cut(lab, task, cut) for cut in cuts.cuts_of(0) if cut.kind == FROZEN}
    return {
        cut.count(layers): change(lab, task, said, whole[: len(said)])
        for cut, said in found.items()
    }


def halves(lab: Lab, task: Task) -> dict[str, np.ndarray]:
    """Answers of trainings whole, with half of the heads, and of the controls, shape (trainings, dev rows), by name.

    The controls: without any head, on shuffled labels, and from a random start.
    """
    found = {"all heads": answers_of_task(lab, task)}
    found |= {name: after_cut(lab, task, cut) for name, cut in (HALVES | CONTROLS).items()}
    return found | ({"random start": lab.random_starts(task)} if task in lab.random_tasks else {})


def scores(lab: Lab, task: Task, answered: Mapping[str, np.ndarray]) -> dict[str, Estimate]:
    """Scores over trainings, by name; each of ``answered`` has shape (trainings, dev rows)."""
    labels, seed, metric = lab.labels(task), lab.resampling_seed(task), plain_metric(task)
    return {
        name: mean_over_seeds([score_task(task, one[None], labels, seed)[metric] for one in said])
        for name, said in answered.items()
    }


def over_random_start(
    lab: Lab, task: Task, answered: Mapping[str, np.ndarray]
) -> dict[str, Estimate]:
    """What the bad and the random half gain over a random start, by name."""
    labels, seed = lab.labels(task), lab.resampling_seed(task)
    worse = score_task(task, answered["random start"], labels, seed)[plain_metric(task)]
    return {kind: gain(task, answered[kind], worse, labels, seed) for kind in (BAD, RANDOM)}


def restored(lab: Lab, task: Task) -> dict[str, dict[int, Estimate]]:
    """Change of the score with layers as they were before fine-tuning: "from below", with the embeddings, and "from above".

    By how many layers are put back.
    """
    layers = lab.config.num_hidden_layers
    groups = {
        "from below": {count: tuple(range(EMBEDDINGS, count)) for count in range(1, layers + 1)},
        "from above": {
            count: tuple(range(layers - count, layers)) for count in range(1, layers + 1)
        },
    }
    every = [group for of_side in groups.values() for group in of_side.values()]
    logits = [
        logits_with_reset(lab, task, every, at) for at in lab.trainings(task)
    ]  # the first is the model as it is
    said = [
        np.stack([predictions(task, of_training[at]) for of_training in logits])
        for at in range(1 + len(every))
    ]
    changes = iter([change(lab, task, one, said[0]) for one in said[1:]])
    return {side: {count: next(changes) for count in of_side} for side, of_side in groups.items()}


def pruning_order(model, batches: Sequence[Batch], step: int) -> list[Head]:
    """All heads in the order in which they go: so many at a time, the least important first, which is asked anew each time.

    Importance is by gradients, each layer's in its own scale (Michel et al., 2019, §4.1).

    Args:
        model: classifier in evaluation mode.
        batches: with gold labels, not those on which the order is tried.
        step: heads that go at a time; as many as there are for one ranking of all.
    """
    gone: list[Head] = []
    zeros = replacement(model, batches, "zero")
    while left := [head for head in all_heads(model) if head not in gone]:
        with disabled(model, gone, zeros):
            weight = cuts.importance(model, batches)
        gone += sorted(left, key=lambda head: weight[head])[:step]
    return gone


def orders(lab: Lab, task: Task, at: int, step: int) -> dict[str, list[list[Head]]]:
    """Orders in which a training's heads can go, by name: several only where they are drawn at random."""
    settings, shape = lab.settings, (lab.config.num_hidden_layers, lab.config.num_attention_heads)
    rows = cuts.weighting_batches(
        task,
        lab.rows(task, "train"),
        lab.tokenizer,
        settings.profile.recipe.max_length,
        settings.seed,
    )

    def ranked(number: int) -> list[Head]:
        return [
            tuple(head)
            for head in cached(pruning_order, lab.finetuned(task, seed_offset=number), rows, step)
        ]

    drawn = [random_order(shape, (settings.seed, at, number)) for number in range(RANDOM_ORDERS)]
    others = [number for number in lab.trainings(task) if number != at]
    found = {
        "ranked anew": [ranked(at)],
        "another training's": [ranked(number) for number in others[:1]],
        "random": drawn,
    }
    return {name: several for name, several in found.items() if several}


def heads_after(steps: int, heads: int) -> int:
    """How many of a model's heads are gone after so many of the :data:`STEPS`: the nearest whole number."""
    return round(heads * steps / STEPS)


def heads_gone(lab: Lab, task: Task) -> dict[str, dict[int, Estimate]]:
    """Change of the score with heads gone one after the other, by order and by how many; over the first two trainings.

    And "ranked above random": how much less is lost by rank than in random orders, of the same
    examples.
    """
    labels, seed = lab.labels(task, "swept"), lab.resampling_seed(task)
    heads = lab.config.num_hidden_layers * lab.config.num_attention_heads
    step, counts = -(-heads // STEPS), sorted({heads_after(at, heads) for at in range(STEPS + 1)})
    found: dict[str, dict[int, list[Bootstrap]]] = {}
    for at in lab.trainings(task)[:2]:
        model, batches = lab.finetuned(task, seed_offset=at), lab.batches(task, "swept")
        whole = predictions(task, without(model, batches, []))
        for name, several in orders(lab, task, at, step).items():
            for count in counts:
                said = [
                    predictions(task, without(model, batches, order[:count])) for order in several
                ]
                gained = mean_of(gains(task, whole, np.stack(said), labels, seed))
                found.setdefault(name, {}).setdefault(count, []).append(gained)
    found["ranked above random"] = {
        count: [one - other for one, other in zip(ranked, found["random"][count], strict=True)]
        for count, ranked in found["ranked anew"].items()
    }
    return {
        name: {count: mean_over_seeds(some) for count, some in of_order.items()}
        for name, of_order in found.items()
    }


def without(model, batches: Sequence[Batch], heads: Sequence[Head]) -> np.ndarray:
    """Outputs of a classifier in which these heads give zero, from the cache, shape (examples, labels)."""
    return cached(
        logits_without, model, batches, sorted(heads), replacement(model, batches, "zero")
    )


def one_head_left(pairs: Pairs, seed: Seed) -> list[Bootstrap]:
    """Change of the score with all but one head of a layer gone, by layer: the head that stays is chosen on other examples.

    Each half of the examples is answered with the head that the other half chose.

    Args:
        pairs: of one training.
        seed: of the halves and of the resampling of examples.
    """
    said = predictions(pairs.task, pairs.outputs[:, -pairs.heads :])  # (layers, heads, examples)
    own = predictions(pairs.task, pairs.outputs[0, 0])
    half = np.random.default_rng(seed).permutation(len(own)) < len(own) // 2
    best = np.empty_like(said[:, 0])  # (layers, examples)
    for chooses, answered in ((half, ~half), (~half, half)):
        for layer, of_layer in enumerate(said):
            score = scores_of(pairs.task, of_layer[:, chooses], pairs.labels[chooses])
            best[layer, answered] = of_layer[score.argmax(), answered]
    return gains(pairs.task, own, best, pairs.labels, seed)


def pairs_of(lab: Lab, task: Task) -> list[tuple[Pairs, np.ndarray, np.ndarray]]:
    """Of every training what removing sets of heads gives, each head's usual pattern, and the distances between maps.

    Shapes (layers, heads) and (examples, layers, heads, layers, heads).
    """
    network, separator = load_network().to(lab.device), lab.tokenizer.sep_token_id
    labels, found = np.asarray(paired_rows(lab, task)["label"]), []
    for at in lab.trainings(task):
        looks = {
            "patterns": Patterns(network, separator),
            "distances": HeadDistances(lab.config.num_hidden_layers),
        }
        seen = observe_cached(
            lab.finetuned(task, seed_offset=at),
            lab.make_batches(task, paired_rows(lab, task)),
            looks,
        )
        pairs = Pairs(
            task, cached(*sets_call(lab, task, at)), labels, lab.config.num_attention_heads
        )
        found.append((pairs, usual_patterns(seen["patterns"].one_hot), seen["distances"]))
    return found


def beyond_matched(
    lab: Lab, task: Task, found: Sequence[tuple[Pairs, np.ndarray, np.ndarray]]
) -> dict[str, Estimate]:
    """How much more pairs of "one pattern", and those whose "maps are most alike", interact than matched others.

    Matched for the layer and for what each head costs alone. NaN where there is no such pair.

    Args:
        lab: whose task it is.
        task: the task.
        found: of :func:`pairs_of`.
    """
    parts: dict[str, list[Bootstrap]] = {}
    for pairs, patterns, distances in found:
        near = nearest(distances.mean(axis=0), pairs.pairs)
        for kind, (chosen, among) in {
            "one pattern": alike_and_other(patterns, pairs.pairs),
            "maps most alike": (near, ~near),
        }.items():
            parts.setdefault(kind, []).append(
                pairs.beyond_matched(chosen, among, lab.resampling_seed(task))
            )
    return {kind: mean_over_seeds(several) for kind, several in parts.items()}


def planted(lab: Lab, task: Task, pairs: Pairs) -> dict[str, Bootstrap]:
    """Interactions of heads of the first training with copies of them, which take their layers' least needed places.

    Of "the most needed head", and the mean over layers of "typical heads": those of the median rise
    of the loss.

    Args:
        lab: whose task it is.
        task: the task.
        pairs: of that training.
    """
    rises = pairs.rises[:, 1 : 1 + pairs.heads].mean(axis=2)
    ranked = rises.argsort(axis=1)  # the most needed last
    layer = int(rises.max(axis=1).argmax())
    chosen = {
        "the most needed head": [(layer, int(ranked[layer, -1]))],
        "typical heads": [(at, int(ranked[at, pairs.heads // 2])) for at in range(len(rises))],
    }
    tuned, batches, labels = (
        lab.finetuned(task),
        lab.batches(task, "swept"),
        lab.labels(task, "swept"),
    )
    found = {}
    for kind, heads in chosen.items():
        outputs = [_with_copy(tuned, batches, head, int(ranked[head[0], 0])) for head in heads]
        whole, one, other, both = np.mean([losses(task, each, labels) for each in outputs], axis=0)
        found[kind] = bootstrap_mean(both - one - other + whole, lab.resampling_seed(task))
    return found


def _with_copy(model, batches: Sequence[Batch], head: Head, place: int) -> np.ndarray:
    """Outputs with a copy planted: as it is, without the head, its copy, and both, shape (4, examples, labels)."""
    planted, copied = with_copy(model, head, place), (head[0], place)
    return np.stack(
        [without(planted, batches, heads) for heads in ([], [head], [copied], [head, copied])]
    )
