"""What pre-training and fine-tuning are worth (§4.3, Table 1), and layer restoring: which layers hold it (a test of ours)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from ..attention import Batch
from ..attention.hooks import shape_of
from ..cache import Lazy, cached
from ..common import one_based, track
from ..glue import Task, plain_metric, predictions, scale_of
from ..models import NORMAL_STD, classifier_inputs, load_classifier, predict_logits
from ..statistics import (
    RESAMPLES,
    Bootstrap,
    Estimate,
    Seed,
    mean_over_seeds,
    resampled_scores,
    weighted_scores,
)
from ..statistics.estimates import whole_and_resampled
from ..verdicts import constant_score

if TYPE_CHECKING:
    from ..lab import Lab

# The columns, in the paper's order and words.
COLUMNS = {
    "pretrained": "pre-trained, not fine-tuned",
    "normal": "normal distr., fine-tuned",
    "finetuned": "pre-trained, fine-tuned",
}
RANDOM_CLASSIFIERS = 1000
EMBEDDINGS = -1  # in place of a layer's number
_LAYER = re.compile(r"\.layers?\.(\d+)\.")


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

    def mean_score(metric: str) -> Bootstrap:
        name, answers, gold = metric, predicted, labels
        if metric == "Spearman":
            from scipy.stats import rankdata

            name, answers, gold = "Pearson", rankdata(predicted, axis=1), rankdata(labels)
        return Bootstrap.of(
            weighted_scores(name, answers, gold, weights).mean(axis=1), len(labels), seed
        )

    return {metric: mean_score(metric) for metric in task.metrics}


def gain(
    task: Task, better: np.ndarray, worse: Bootstrap, labels: np.ndarray, seed: Seed
) -> Estimate:
    """The gain of several trainings over something else, by :func:`plain_metric`.

    Args:
        task: the task.
        better: answers of every training, shape (trainings, examples).
        worse: the other's score, on the same resamples.
        labels: gold, shape (examples,).
        seed: of the resampling.
    """
    metric = plain_metric(task)
    scores = [score_task(task, one[None], labels, seed)[metric] for one in better]
    mean = float(np.mean([score.value for score in scores]))
    return mean_over_seeds([score - worse for score in scores], scale_of(task, mean))


def share_ahead(
    task: Task, answers: np.ndarray, tuned: np.ndarray, labels: np.ndarray, seed: Seed
) -> Estimate:
    """Share of random classifiers that score higher than a tuned model, by :func:`plain_metric`, mean over trainings.

    A single random classifier scores by chance, and their mean is chance by symmetry, which no
    tuned model is below.

    Args:
        task: the task.
        answers: of random classifiers, shape (classifiers, examples), from :func:`random_answers`.
        tuned: of every training, shape (trainings, examples).
        labels: gold, shape (examples,).
        seed: of the resampling of examples.
    """
    weights = whole_and_resampled(len(labels), seed)  # (1 + resamples, examples)
    drawn, own = (
        weighted_scores(plain_metric(task), said, labels, weights) for said in (answers, tuned)
    )
    ahead = [(drawn > one[:, None]).mean(axis=1) for one in own.T]  # each (1 + resamples,)
    return mean_over_seeds([Bootstrap.of(share, len(labels), seed) for share in ahead])


def answers_of(lab: Lab) -> dict[Task, dict[str, np.ndarray]]:
    """Answers of all of a lab's classifiers, shape (classifiers, dev examples), by task and column of Table 1."""
    found = {}
    for task in track(lab.tasks, "predicting"):
        features = cached(
            classifier_inputs, lab.untrained(task), lab.batches(task, "dev")
        )  # one pass for all random classifiers
        untuned = random_answers(task, features, lab.settings.seed)
        found[task] = {"pretrained": untuned, "finetuned": answers_of_task(lab, task)}
        if task in lab.random_tasks:
            found[task]["normal"] = lab.random_starts(task)
    return found


def answers_of_task(lab: Lab, task: Task) -> np.ndarray:
    """What the fine-tuned classifiers answer, shape (trainings, dev examples)."""
    return np.stack([lab.answers(task, seed_offset=number) for number in lab.trainings(task)])


def rows_of(lab: Lab, answers: Mapping[Task, Mapping[str, np.ndarray]]) -> Iterator[dict[str, Any]]:
    """Arguments of :meth:`bertology_utils.record.Record.record` for Table 1, and for what fine-tuning and pre-training gain.

    Args:
        lab: whose tasks these are.
        answers: from :func:`answers_of`.
    """
    gains: dict[str, dict[Task, Estimate]] = {"pretrained": {}, "normal": {}}
    for task, columns in answers.items():
        gold, seed = lab.labels(task), lab.resampling_seed(task)
        scored = {
            column: score_task(task, several, gold, seed) for column, several in columns.items()
        }
        for column, metrics in scored.items():
            labels = {"task": task, "state": COLUMNS[column], "unit": "score"}
            yield {"what": "score", "values": metrics, "by": ("kind",), **labels}
        for column in gains.keys() & scored.keys():
            worse = scored[column][plain_metric(task)]
            gains[column][task] = gain(task, columns["finetuned"], worse, gold, seed)
    constant = {task: constant_score(task, lab.labels(task)) for task in answers}
    yield {
        "what": "score of always the same answer",
        "values": constant,
        "by": ("task",),
        "unit": "score",
    }
    yield {
        "what": "gain by fine-tuning",
        "values": gains["pretrained"],
        "by": ("task",),
        "unit": "gain",
    }
    yield {
        "what": "gain by pre-training",
        "values": gains["normal"],
        "by": ("task",),
        "unit": "gain",
    }


def answer_text(task: Task, logits: np.ndarray) -> str:
    """What a classifier says of one input: the label with its probability, or the similarity from 0 to 5.

    Args:
        task: the task.
        logits: its outputs, shape (labels,).
    """
    if task.is_regression:
        return f"{5 * logits[0]:.1f} of 5"
    odds = np.exp(logits - logits.max())
    return f"{task.labels[int(logits.argmax())]} ({odds.max() / odds.sum():.2f})"


def random_answers(
    task: Task, features: np.ndarray, seed: int, count: int = RANDOM_CLASSIFIERS
) -> np.ndarray:
    """What classifiers with random weights answer: the paper's "pre-trained, not fine-tuned".

    The paper does not say how it scored a model without a classifier; with a
    random one the score is mostly chance, so one says nothing and many say how
    much chance there is.

    Args:
        task: the task.
        features: what the last layer of the classifier reads, shape (examples, features).
        seed: of the weights.
        count: how many classifiers.

    Returns:
        Predictions, shape (classifiers, examples).
    """
    rng = np.random.default_rng(seed)
    weights = rng.normal(0, NORMAL_STD, (count, features.shape[1], task.num_labels))
    return np.stack([predictions(task, features @ of_one) for of_one in weights])


def paper_points(task: Task, column: str, metric: str) -> float | None:
    """The paper's number in points (0 to 100); None where it gives none (Spearman)."""
    numbers = dict(zip(task.metrics, getattr(task.table1, column), strict=False))
    return numbers.get(metric)


def exchangeable(model: nn.Module) -> bool:
    """True if every layer has weights of its own, that carry its number; ALBERT's layers share theirs."""
    numbers = {int(match[1]) for name in model.state_dict() if (match := _LAYER.search(name))}
    return numbers == set(range(shape_of(model)[0]))


def changes_of_score(
    task: Task, logits: Sequence[np.ndarray], labels: np.ndarray, seed: Seed
) -> list[Bootstrap]:
    """Score with each group of layers put back, minus the fine-tuned model's own, from 0 to 1.

    Args:
        task: the task.
        logits: what the fine-tuned model gives, and then what it gives with each group put back;
            (examples, labels) each.
        labels: gold, shape (examples,).
        seed: of the resampling of examples.

    Returns:
        One per group; NaN where there are no numbers.
    """
    if any(np.isnan(of_one).any() for of_one in logits):
        return [
            Bootstrap(np.nan, np.full(RESAMPLES, np.nan), len(labels), seed) for _ in logits[1:]
        ]
    answers = np.stack([predictions(task, of_one) for of_one in logits])
    tuned, *without = resampled_scores(plain_metric(task), answers, labels, seed)
    return [one - tuned for one in without]


def restored_logits(
    tuned: nn.Module, start: nn.Module, groups: Sequence[Sequence[int]], batches: Sequence[Batch]
) -> list[np.ndarray]:
    """What the fine-tuned model answers with each group of layers as they were before, each of shape (examples, labels).

    Layers below which two of them are the same are computed once for both. NaN for an architecture
    whose layers cannot be exchanged.

    Args:
        tuned: a classifier.
        start: the same architecture before fine-tuning.
        groups: layers from 0, and :data:`EMBEDDINGS`.
        batches: the dev set.

    Raises:
        ValueError: the two have other tensors.
    """
    shapes, others = (
        {name: one.shape for name, one in model.state_dict().items()} for model in (tuned, start)
    )
    if shapes != others:
        raise ValueError(
            "layers can be put back from a model of the same tensors only; this one has others"
        )
    if not exchangeable(start):
        config: Any = tuned.config
        return [
            np.full((sum(len(batch.index) for batch in batches), config.num_labels), np.nan)
            for _ in groups
        ]
    own, before = _parts(tuned), _parts(start)
    # Of the embeddings and of each layer: is it put back?
    origins = [
        tuple(part in group for part in range(EMBEDDINGS, len(own) + EMBEDDINGS))
        for group in groups
    ]
    parts: list[list[np.ndarray]] = [[] for _ in groups]
    for batch in batches:
        known: dict[
            tuple[bool, ...], object
        ] = {}  # what a part gave, by the origin of all parts up to it
        # In the order of a tree, so that only one path through it is kept.
        for at in sorted(range(len(groups)), key=origins.__getitem__):
            known = {
                path: given for path, given in known.items() if path == origins[at][: len(path)]
            }
            with _restored_within(own, before, origins[at], known):
                parts[at].append(predict_logits(tuned, [batch]))
    order = np.argsort(np.concatenate([sorted(batch.index) for batch in batches]))
    return [np.concatenate(of_group)[order] for of_group in parts]


def _parts(model: Any) -> list[nn.Module]:
    """The embeddings, then the layers."""
    found = {
        int(match[1]): module
        for name, module in model.named_modules()
        if (match := _LAYER.search(f"{name}.")) and match.end() == len(name) + 1
    }
    return [model.base_model.embeddings, *(found[layer] for layer in sorted(found))]


@contextmanager
def _restored_within(
    own: Sequence[nn.Module],
    before: Sequence[nn.Module],
    origin: tuple[bool, ...],
    known: dict[tuple[bool, ...], object],
) -> Iterator[None]:
    """Within it parts of ``own`` compute as those of ``before`` where ``origin`` says so, and nothing that is known."""

    def instead(layer: int):
        module, path = (before if origin[layer] else own)[layer], origin[: layer + 1]
        compute = type(module).forward

        def forward(*inputs, **others):
            if path not in known:
                known[path] = compute(module, *inputs, **others)
            return known[path]

        return forward

    try:
        for layer, module in enumerate(own):
            module.__dict__["forward"] = instead(layer)
        yield
    finally:
        for module in own:
            module.__dict__.pop("forward", None)


def groups_of(layers: int) -> dict[str, tuple[int, ...]]:
    """The groups of layers that are put back, by their names: "1, 2" is a pair, "1 to 3" all up to the third."""
    pairs = {f"{one_based(at)}, {one_based(at + 1)}": (at, at + 1) for at in range(layers - 1)}
    return pairs | {f"1 to {count}": tuple(range(count)) for count in range(1, layers)}


def restored_layers(
    lab: Lab, task: Task, groups: Sequence[Sequence[int]], seed_offset: int = 0
) -> list[np.ndarray]:
    """Outputs of a fine-tuning run as it is, then with each group of layers reset (§4.3).

    Args:
        lab: its lab.
        task: the task.
        groups: layers from 0, to get their weights from before fine-tuning.
        seed_offset: number of the run.

    Returns:
        Each of shape (dev rows, labels); NaN for a model whose layers cannot be exchanged.
    """
    seed = lab.settings.seed
    start = Lazy(lambda: lab.untrained(task), (load_classifier, lab.settings.model, task, seed))
    model = lab.lazy_classifier(task, seed_offset=seed_offset)
    inputs = lab.lazy_batches(task, lab.rows(task, "dev"))
    return cached(restored_logits, model, start, [(), *map(tuple, groups)], inputs)


def of_restoring(lab: Lab) -> tuple[dict[Task, dict[str, Estimate]], dict[Task, Estimate]]:
    """What the score loses with layers put back, over all trainings of a lab's tasks.

    Returns:
        The change of the score by task and group; and by task, that with all but the last two
        layers put back minus that with the last two.
    """
    groups = groups_of(lab.config.num_hidden_layers)
    last_two, others = list(groups)[lab.config.num_hidden_layers - 2], list(groups)[-2]
    changes, above_others = {}, {}
    for task in track(lab.tasks, "putting back"):
        labels, seed = lab.labels(task), lab.resampling_seed(task)
        tuned = score_task(task, answers_of_task(lab, task), labels, seed)[plain_metric(task)].value
        every = [
            dict(zip(groups, changes_of_score(task, logits, labels, seed), strict=True))
            for logits in (
                restored_layers(lab, task, list(groups.values()), number)
                for number in lab.trainings(task)
            )
        ]
        scale = scale_of(task, tuned)
        changes[task] = {
            name: mean_over_seeds([one[name] for one in every], scale) for name in groups
        }
        above_others[task] = mean_over_seeds([one[others] - one[last_two] for one in every], scale)
    return changes, above_others
