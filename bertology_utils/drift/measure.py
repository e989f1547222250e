"""§4.3: maps before and after fine-tuning (Figure 5), Table 1, and which layers hold the gain."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.stats import rankdata
from torch import nn

from ..attention import Batch, attention_maps
from ..attention.hooks import shape_of
from ..cache import cached
from ..common import one_based, track
from ..glue import Task, plain_metric, predictions, scale_of
from ..models import NORMAL_STD, classifier_inputs, predict_logits
from ..statistics import (
    Bootstrap,
    Estimate,
    Seed,
    bootstrap_mean,
    mean_over_seeds,
    means_with_gaps,
    resampled_scores,
    weighted_scores,
    whole_and_resampled,
)
from ..verdicts import WEIGHT, constant_score, learned

if TYPE_CHECKING:
    from datasets import Dataset

    from ..lab import Lab

# The columns of Table 1, in the paper's order and words.
COLUMNS = {
    "pretrained": "pre-trained, not fine-tuned",
    "normal": "normal distr., fine-tuned",
    "finetuned": "pre-trained, fine-tuned",
}
RANDOM_CLASSIFIERS = 1000
PUBLISHED_LENGTH = 200  # tokens to which the published code pads every input
PUBLISHED_ROWS = 40  # rows of a task on which it is compared with the paper's definition
EMBEDDINGS = -1  # in place of a layer's number
RESET_ROWS = 2000  # with so many a score is known to 2 points, and its difference to less


def run(lab: Lab) -> None:
    """Measure, record and judge all of §4.3, controls included."""
    epochs = lab.settings.profile.recipe_of("normal").epochs
    lab.fact(rows=lab.rows_used(), learned=lab.learned, random_start_epochs=epochs)
    record_maps(lab)
    record_padding(lab)
    record_scores(lab)
    record_resets(lab)


# How alike maps are before and after (Figure 5)


def map_similarity(model: nn.Module, reference: nn.Module, batches: Iterable[Batch]) -> np.ndarray:
    """Cosine similarity of two models' maps, shape (examples, layers, heads); see :func:`compare_maps`."""
    return compare_maps({"": (model, reference)}, batches)[""]


def compare_maps(
    comparisons: Mapping[str, Sequence[nn.Module]], batches: Iterable[Batch], padding: bool = False
) -> dict[str, np.ndarray]:
    """Cosine similarities of flattened attention maps, from one pass of each model (§4.3).

    The maps of all models are held for one batch.

    Args:
        comparisons: by name two models, whose maps are compared; or three, a start and two ends:
            the cosine between the changes of the start's maps, from −1 to 1, which is 0 if two runs
            changed them independently, and NaN where a map did not change.
        batches: inputs.
        padding: whether rows of padding count, as in the published code; columns of padding are 0.

    Returns:
        By name, shape (examples, layers, heads), examples in the order of the data.

    Raises:
        ValueError: models of different shapes, or no inputs.
    """
    models = list({id(one): one for several in comparisons.values() for one in several}.values())
    if len(shapes := {shape_of(model) for model in models}) > 1:
        raise ValueError(
            "maps are compared head by head, and these models have (layers, heads) of"
            f" {sorted(shapes)}; compare models of the same shape"
        )
    cosines: dict[str, list[np.ndarray]] = {name: [] for name in comparisons}
    order: list[int] = []
    for batch in batches:
        batch = batch.to(next(models[0].parameters()).device)
        rows = (torch.ones_like(batch.mask) if padding else batch.mask)[:, None, :, None]
        by_layer: dict[str, list[torch.Tensor]] = {name: [] for name in comparisons}
        for maps in zip(*(attention_maps(model, batch) for model in models), strict=True):
            flat = [(of_model * rows).double().flatten(2) for of_model in maps]
            by_model = dict(zip(map(id, models), flat, strict=True))  # (examples, heads, tokens²)
            for name, several in comparisons.items():
                compare = cosine if len(several) == 2 else cosine_of_changes
                by_layer[name].append(compare(*(by_model[id(one)] for one in several)))
        for name, layers in by_layer.items():
            cosines[name].append(torch.stack(layers, dim=1).cpu().numpy())
        order += batch.index
    if not order:
        raise ValueError("there are no inputs to compare maps on; give at least one batch")
    return {name: np.concatenate(parts)[np.argsort(order)] for name, parts in cosines.items()}


def cosine(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Cosine of two vectors, shapes (…, numbers) to (…)."""
    lengths = one.square().sum(dim=-1) * other.square().sum(dim=-1)
    return (one * other).sum(dim=-1) / lengths.clamp(min=1e-300).sqrt()


def cosine_of_changes(start: torch.Tensor, end: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Cosine between two changes of the same maps, end − start and other − start.

    Args:
        start, end, other: of each model the flattened maps, shape (…, numbers).

    Returns:
        Shape (…), NaN where a map did not change.
    """
    changes = end - start, other - start
    # A change below one part in a million is the rounding of single precision.
    least = 1e-12 * start.square().sum(dim=-1)
    first, second = (change.square().sum(dim=-1) <= least for change in changes)
    return cosine(*changes).masked_fill(first | second, torch.nan)


def compare_runs(lab: Lab, task: Task) -> dict[str, np.ndarray]:
    """What :func:`compare_maps` says of a task's models, from the cache.

    "fine-tuning" and its like compare the pre-trained model with each run, "another seed" two runs,
    "random start" random weights with what fine-tuning made of them. "same way" and "other task"
    compare the changes of two runs, the latter of runs on two tasks.
    """
    start, runs = lab.lazy_untrained(task), lab.lazy_classifiers(task)
    names = ["fine-tuning", "fine-tuning again"]
    names += [f"fine-tuning {number}" for number in range(3, len(runs) + 1)]
    comparisons = {name: [start, tuned] for name, tuned in zip(names, runs, strict=True)}
    comparisons["another seed"] = runs[:2]
    if task in lab.random_tasks:
        random = lab.lazy_untrained(task, "normal"), lab.lazy_classifier(task, "normal")
        comparisons["random start"] = list(random)
    comparisons["same way"] = [start, *runs[:2]]
    if (following := next_task(lab, task)) != task:
        comparisons["other task"] = [start, runs[0], lab.lazy_classifier(following)]
    inputs = lab.lazy_batches(task, lab.rows(task, "measured"))
    return cached(compare_maps, comparisons, inputs)


def next_task(lab: Lab, task: Task) -> Task:
    """The task after a task in the lab's list, whose end meets its beginning."""
    return lab.tasks[(lab.tasks.index(task) + 1) % len(lab.tasks)]


def last_layers_lead(similarities: Sequence[np.ndarray], seed: Seed) -> dict[str, Estimate]:
    """By how much each of the last two layers changes more than each other layer, mean over runs.

    For every pair of an earlier layer and one of the last two ("layer 6 above 2"), the similarity of
    the earlier minus that of the later, which is above 0 if the later changed more. Layers are
    compared pair by pair, since the least of several leads is biased towards failing.

    Args:
        similarities: of each run, shape (examples, layers, heads).
        seed: of the resampling of examples.
    """
    by_layer = np.stack(similarities).mean(axis=3)  # (runs, examples, layers)
    means = [means_with_gaps(of_run, seed) for of_run in by_layer]  # each (1 + resamples, layers)

    def lead(last: int, other: int) -> Estimate:
        leads = [of_run[:, other] - of_run[:, last] for of_run in means]  # each (1 + resamples,)
        return mean_over_seeds([Bootstrap.of(one, by_layer.shape[1], seed) for one in leads])

    layers = by_layer.shape[2]
    return {
        f"layer {one_based(last)} above {one_based(other)}": lead(last, other)
        for last in range(max(0, layers - 2), layers)
        for other in range(layers - 2)
    }


def record_maps(lab: Lab) -> None:
    """Similarity before and after fine-tuning, the last layers' lead, and whether runs agree."""
    leads, at_random, changes = {}, {}, dict[str, dict[Task, Bootstrap]]()
    kinds = {"same way": "a second training", "other task": "a training on another task"}
    for task in track(lab.tasks, "comparing maps"):
        compared, seed = compare_runs(lab, task), lab.resampling_seed(task)
        for name, kind in kinds.items():
            if name in compared:
                by_example = np.nanmean(compared.pop(name), axis=(1, 2))
                mean = bootstrap_mean(by_example[np.isfinite(by_example)], seed)
                changes.setdefault(kind, {})[task] = mean
        by_head = {name: values.mean(axis=0) for name, values in compared.items()}
        n = len(compared["fine-tuning"])
        lab.record("similarity of maps", by_head, by=("kind",), task=task, unit="cosine", n=n)
        runs = [values for name, values in compared.items() if name.startswith("fine-tuning")]
        leads[task] = last_layers_lead(runs, seed)
        if task in lab.random_tasks and changed_and_learned(lab, task, compared["random start"]):
            at_random[task] = last_layers_lead([compared["random start"]], seed)
    name, options = "lead of the last two layers' change", {"by": ("task", "kind")}
    leads = lab.record(name, leads, unit="difference", **options)
    lab.record(f"{name}, random start", at_random, unit="difference", **options)
    lab.judge("last-layers")
    lab.judge("qqp-exception", leads, unit="difference")
    missing = "three tasks learned from random weights, with changed maps"
    lab.judge("random-start-layers", unmet="" if len(at_random) >= 3 else missing)
    lab.record("mean cosine of the changes of maps", changes, by=("kind", "task"), unit="cosine")
    same, other = (changes.get(kind, {}) for kind in kinds.values())
    # A run that began with the other task's model contains that run, and does not count.
    before = {task: (lab.settings.before(task) or (None,))[0] for task in lab.tasks}
    counted = [task for task in other if next_task(lab, task) != before[task]]
    above = {task: same[task] - other[task] for task in counted}
    enough = sum(lab.learned[task] for task in counted) > 1
    lab.judge("same-movement", same, unit="cosine")
    missing = "" if enough else "two learned tasks"
    lab.judge("task-movement", above, unit="difference", unmet=missing)


def changed_and_learned(lab: Lab, task: Task, similarity: np.ndarray) -> bool:
    """Whether a random start learned the task and changed some layer's maps.

    Random weights attend almost evenly and may go on doing so: then no layer changed most.
    """
    changed = similarity.mean(axis=(0, 2)).min() <= 1 - WEIGHT
    answers, seed = lab.random_starts(task), lab.resampling_seed(task)
    return changed and learned(task, answers, lab.labels(task), seed)


def record_padding(lab: Lab) -> None:
    """Similarity by layer as the paper defines it, and as its code does, which counts padding, too."""
    by_layer: dict[Task, dict[str, np.ndarray]] = {}
    for task in track(lab.tasks, "with padding"):
        pair = {"": (lab.lazy_untrained(task), lab.lazy_classifier(task))}
        for name, pad_to in {"paper": None, "official": PUBLISHED_LENGTH}.items():
            inputs = lab.batches(task, "measured", PUBLISHED_ROWS, pad_to)
            compared = cached(compare_maps, pair, inputs, padding=bool(pad_to))[""]
            by_layer.setdefault(task, {})[name] = compared.mean(axis=(0, 2))
    what = "similarity of maps by layer, each reading"
    lab.record(what, by_layer, by=("task", "kind"), over=("layer",), unit="cosine")


# What pre-training and fine-tuning are worth (Table 1)


def record_scores(lab: Lab) -> None:
    """Table 1: scores of the untuned and fine-tuned model and of the random start, and gains."""
    gains: dict[str, dict[Task, Estimate]] = {"pretrained": {}, "normal": {}}
    ahead = {}
    for task in track(lab.tasks, "predicting"):
        labels, seed = lab.labels(task), lab.resampling_seed(task)
        answers = table1_answers(lab, task)
        scores = {name: score_task(task, one, labels, seed) for name, one in answers.items()}
        for column, metrics in scores.items():
            state = COLUMNS[column]
            lab.record("score", metrics, by=("kind",), unit="score", task=task, state=state)
        for column in gains.keys() & scores.keys():
            worse = scores[column][plain_metric(task)]
            gains[column][task] = gain(task, answers["finetuned"], worse, labels, seed)
        if "normal" in answers:
            random = answers["pretrained"], answers["normal"]
            ahead[task] = share_ahead(task, *random, labels, seed)
    constant = {task: constant_score(task, lab.labels(task)) for task in lab.tasks}
    lab.record("score of always the same answer", constant, by=("task",), unit="score")
    lab.record("gain by fine-tuning", gains["pretrained"], by=("task",), unit="gain")
    lab.record("gain by pre-training", gains["normal"], by=("task",), unit="gain")
    what = "share of random classifiers above the tuned random start"
    lab.record(what, ahead, by=("task",), unit="share")
    lab.judge("tuned-above-untuned")
    missing = "a random start that was trained on one of these tasks"
    lab.judge("pretraining-helps", unmet="" if ahead else missing)
    known = {task.name for task in ahead} & {"stsb", "qnli"}
    lab.judge("random-start-behind", unmet="" if known else "STS-B or QNLI")


def table1_answers(lab: Lab, task: Task) -> dict[str, np.ndarray]:
    """Answers of a task's classifiers by column of Table 1, shape (classifiers, dev examples)."""
    # One pass for all random classifiers.
    inputs = lab.lazy_batches(task, lab.rows(task, "dev"))
    features = cached(classifier_inputs, lab.lazy_untrained(task), inputs)
    answers = {"pretrained": random_answers(task, features, lab.settings.seed)}
    if task in lab.random_tasks:
        answers["normal"] = lab.random_starts(task)
    return answers | {"finetuned": lab.answers_of_runs(task)}


def random_answers(task: Task, features: np.ndarray, seed: int) -> np.ndarray:
    """Answers of classifiers with random weights: the paper's "pre-trained, not fine-tuned".

    The paper does not say how it scored a model without a classifier. With a random one the score is
    mostly chance: one of them says nothing, and many say how much chance there is.

    Args:
        task: the task.
        features: what the last layer of the classifier reads, shape (examples, features).
        seed: of the weights.

    Returns:
        Shape (classifiers, examples).
    """
    shape = RANDOM_CLASSIFIERS, features.shape[1], task.num_labels
    weights = np.random.default_rng(seed).normal(0, NORMAL_STD, shape)
    return np.stack([predictions(task, features @ one) for one in weights])


def answer_text(task: Task, logits: np.ndarray) -> str:
    """One input's answer: the label with its probability, or the similarity from 0 to 5.

    Args:
        task: the task.
        logits: of one input, shape (labels,).
    """
    if task.is_regression:
        return f"{5 * logits[0]:.1f} of 5"
    odds = np.exp(logits - logits.max())
    return f"{task.labels[int(logits.argmax())]} ({odds.max() / odds.sum():.2f})"


def score_task(
    task: Task, predicted: np.ndarray, labels: np.ndarray, seed: Seed
) -> dict[str, Bootstrap]:
    """Every metric of the task, averaged over classifiers, with its bootstrap over dev examples.

    Columns of one task scored with the same seed are paired.

    Args:
        task: the task.
        predicted: labels, or scores for a regression; shape (classifiers, examples).
        labels: gold, shape (examples,).
        seed: of the resampling.

    Returns:
        By metric, from 0 to 1. A rank correlation is resampled with the ranks of all examples.
    """
    weights = whole_and_resampled(len(labels), seed)  # (1 + resamples, examples)
    found = {metric: (metric, predicted, labels) for metric in task.metrics}
    if "Spearman" in found:
        found["Spearman"] = "Pearson", rankdata(predicted, axis=1), rankdata(labels)
    scores = {name: weighted_scores(*one, weights).mean(axis=1) for name, one in found.items()}
    return {name: Bootstrap.of(score, len(labels), seed) for name, score in scores.items()}


def gain(
    task: Task, better: np.ndarray, worse: Bootstrap, labels: np.ndarray, seed: Seed
) -> Estimate:
    """The gain of several runs over something else, by :func:`plain_metric`.

    Args:
        task: the task.
        better: answers of every run, shape (runs, examples).
        worse: the other's score, on the same resamples.
        labels: gold, shape (examples,).
        seed: of the resampling.
    """
    scores = resampled_scores(plain_metric(task), better, labels, seed)
    scale = scale_of(task, float(np.mean([score.value for score in scores])))
    return mean_over_seeds([score - worse for score in scores], scale)


def share_ahead(
    task: Task, answers: np.ndarray, tuned: np.ndarray, labels: np.ndarray, seed: Seed
) -> Estimate:
    """Share of random classifiers that score higher than a tuned model, mean over runs.

    A single random classifier scores by chance, and the mean of all is chance by symmetry, which no
    tuned model is below.

    Args:
        task: the task.
        answers: of random classifiers, shape (classifiers, examples), from :func:`random_answers`.
        tuned: of every run, shape (runs, examples).
        labels: gold, shape (examples,).
        seed: of the resampling of examples.
    """
    metric, weights = plain_metric(task), whole_and_resampled(len(labels), seed)
    random, own = (weighted_scores(metric, one, labels, weights) for one in (answers, tuned))
    shares = [(random > of_run[:, None]).mean(axis=1) for of_run in own.T]  # each (1 + resamples,)
    return mean_over_seeds([Bootstrap.of(share, len(labels), seed) for share in shares])


# Which layers hold the gain (a test of ours): some are reset to their pre-trained weights


def record_resets(lab: Lab) -> None:
    """Change of the score with layers reset, and the last two layers' cost above that of all others."""
    layers, above, changes = lab.config.num_hidden_layers, {}, {}
    if layers < 3 or not has_own_layers(lab.encoder()):
        missing = "more than two layers, each with weights of its own"
        lab.judge("last-layers-gain", {}, unmet=missing)
        return
    groups = layer_groups(layers)
    last_two, others = f"{layers - 1}, {layers}", f"1 to {layers - 2}"
    for task in track(lab.tasks, "resetting layers"):
        rows, seed = lab.rows(task, "swept", RESET_ROWS), lab.resampling_seed(task)
        labels, by_run, scores = lab.labels(task, "swept", RESET_ROWS), [], []
        for number in lab.trainings(task):
            logits = logits_with_reset(lab, task, list(groups.values()), number, rows)
            answers = predictions(task, logits)
            tuned, *reset = resampled_scores(plain_metric(task), answers, labels, seed)
            of_run = {name: one - tuned for name, one in zip(groups, reset, strict=True)}
            by_run.append(of_run | {"above": of_run[others] - of_run[last_two]})
            scores.append(tuned.value)
        scale = scale_of(task, float(np.mean(scores)))
        means = {name: mean_over_seeds([one[name] for one in by_run], scale) for name in by_run[0]}
        above[task] = means.pop("above")
        changes[task] = means
    lab.record("change of the score with layers reset", changes, by=("task", "kind"), unit="gain")
    what = "cost of resetting the last two layers above that of all others"
    lab.record(what, above, by=("task",), unit="gain")
    lab.judge("last-layers-gain")


def layer_groups(layers: int) -> dict[str, tuple[int, ...]]:
    """The groups of layers to reset, by name: "1, 2" is a pair, "1 to 3" all up to the third."""
    pairs = {f"{one_based(at)}, {one_based(at + 1)}": (at, at + 1) for at in range(layers - 1)}
    return pairs | {f"1 to {count}": tuple(range(count)) for count in range(1, layers)}


def logits_with_reset(
    lab: Lab,
    task: Task,
    groups: Sequence[Sequence[int]],
    seed_offset: int = 0,
    rows: Dataset | None = None,
) -> np.ndarray:
    """Outputs of a fine-tuning run as it is, then with each group of layers reset, from the cache.

    Args:
        lab: its lab.
        task: the task.
        groups: see :func:`reset_logits`.
        seed_offset: number of the run.
        rows: on which; by default all dev rows.

    Returns:
        Shape (1 + groups, rows, labels).
    """
    start, tuned = lab.lazy_untrained(task), lab.lazy_classifier(task, seed_offset=seed_offset)
    inputs = lab.lazy_batches(task, lab.rows(task, "dev") if rows is None else rows)
    return cached(reset_logits, tuned, start, [(), *map(tuple, groups)], inputs)


def reset_logits(
    tuned: nn.Module, start: nn.Module, groups: Sequence[Sequence[int]], batches: Sequence[Batch]
) -> np.ndarray:
    """Outputs of a fine-tuned classifier with each group of layers reset to pre-trained weights.

    Args:
        tuned: the classifier.
        start: the same architecture before fine-tuning.
        groups: layers from 0, and :data:`EMBEDDINGS`; () for the classifier as it is.
        batches: inputs.

    Returns:
        Shape (groups, examples, labels).

    Raises:
        ValueError: its layers share their weights.
    """
    if not has_own_layers(tuned):
        raise ValueError("layers that share their weights, as ALBERT's, cannot be reset one by one")
    before, outputs = parts_of(start), []
    for group in groups:
        model = copy.deepcopy(tuned)
        own = parts_of(model)
        for part in group:
            own[part].load_state_dict(before[part].state_dict())
        outputs.append(predict_logits(model, batches))
    return np.stack(outputs)


def parts_of(model: nn.Module) -> dict[int, nn.Module]:
    """Its layers by number, where each has its own weights, and its embeddings; ALBERT's layers share theirs."""
    named = model.named_modules()
    lists = [module for name, module in named if name.split(".")[-1] in ("layer", "layers")]
    layers = dict(enumerate(lists[0] if lists else ()))
    embeddings = getattr(model.base_model, "embeddings", None)
    return layers if embeddings is None else layers | {EMBEDDINGS: embeddings}


def has_own_layers(model: nn.Module) -> bool:
    """True if every layer has its own weights; ALBERT's layers share theirs."""
    return parts_of(model).keys() - {EMBEDDINGS} == set(range(shape_of(model)[0]))
