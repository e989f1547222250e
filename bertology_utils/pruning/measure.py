"""How much skill is kept without heads, layers' fine-tuning or weights, recorded and judged.

Every number is paired with the whole models' answers to the same rows, on which no run trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common import track
from ..glue import Task
from ..statistics import Estimate, mean_of, mean_over_seeds
from . import answers, spec
from .alike import closer_within, distances_of
from .answers import RANDOM_ORDER, RANKED, heads_after, pruned_answers
from .skill import Skill
from .spec import BAD, FROZEN_THIRD, GOOD, HALVES, RANDOM, SMALLEST, SMALLEST_40, prunings_of

if TYPE_CHECKING:
    from datasets import Dataset

    from ..lab import Lab

# How far a share of the skill moves on another machine, which trains another model: half a point of
# the score, and on MRPC twelve points are all skill.
KEPT: dict[str, Any] = {"by": ("task", "state", "kind"), "unit": "skill", "tolerance": 0.04}
Skills = Mapping[Task, Skill]


def run(lab: Lab) -> None:
    """How many heads, layers and weights can go, and whether heads of one layer are alike (§5)."""
    skills = {task: skill_of(lab, task) for task in track(lab.learned_tasks, "whole models")}
    record_scores(lab, skills)
    record_heads(lab, skills)
    record_halves(lab, skills)
    record_layers(lab, skills)
    record_weights(lab, skills)
    record_alike(lab)
    lab.record("share of the parameters", spared(lab), by=("kind",), unit="share")


def skill_of(lab: Lab, task: Task) -> Skill:
    """The whole models' skill on the rows that all models answer."""
    labels = lab.labels(task, "swept", answers.EVALUATED)
    return Skill(task, labels, answers.whole_answers(lab, task), lab.resampling_seed(task))


# What is compared with


def record_scores(lab: Lab, skills: Skills) -> None:
    """Scores of the whole models, of always the same answer, of a random start and of a bag of words."""
    scores: dict[Task, dict[str, Any]] = {}
    for task, skill in skills.items():
        scores[task] = {"all heads": skill.score(skill.whole)}
        for name, others in compared_with(lab, task).items():
            scores[task][name] = skill.score(others)
        scores[task]["always the same answer"] = skill.score(skill.same_answer[None]).value
    lab.record("score", scores, by=("task", "kind"), unit="score", tolerance=0.005)


def compared_with(lab: Lab, task: Task) -> dict[str, np.ndarray]:
    """Answers of models that begin with less, (models, rows): a random start, and a bag of words on single sentences."""
    others = {}
    if starts := lab.settings.random_starts_of(task):
        numbers = range(starts)
        others["random start"] = np.stack(
            [answers.answers_of(lab, task, number, init="normal") for number in numbers]
        )
    if len(task.fields) == 1:
        rows = lab.rows(task, "train"), answers.evaluated(lab, task)
        others["bag of words"] = bag_of_words(*rows, task.fields[0])[None]
    return others


def bag_of_words(train: Dataset, rows: Dataset, field: str) -> np.ndarray:
    """Answers of a logistic regression on words' tf-idf, which knows nothing of their order, shape (rows,).

    Args:
        train: the rows that it learns from.
        rows: the rows that it answers.
        field: name of the texts.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))
    return model.fit(train[field][:], train["label"][:]).predict(rows[field][:])


# Heads that are removed, one after the other


def record_heads(lab: Lab, skills: Skills) -> None:
    """Skill kept with ever more heads removed, by order; and what ranked heads keep above random ones."""
    kept: dict[Task, dict[str, dict[int, Estimate]]] = {}
    words: dict[Task, Estimate] = {}
    heads = lab.config.num_hidden_layers * lab.config.num_attention_heads
    half = heads_after(answers.STEPS // 2, heads)
    for task, skill in track(list(skills.items()), "removing heads"):
        by_run = [answers.answers_without_heads(lab, task, at) for at in spec.runs_of(lab, task)]
        # By order and count, the skills of all runs, each the mean over orders.
        of_runs = {
            name: {
                count: [mean_of(skill.skills(one[name][:, at])) for one in by_run]
                for at, count in enumerate(answers.counts_of(heads))
            }
            for name in by_run[0]
        }
        of_runs["ranked above random"] = {
            count: [
                one - other for one, other in zip(ranked, of_runs[RANDOM_ORDER][count], strict=True)
            ]
            for count, ranked in of_runs[RANKED].items()
        }
        kept[task] = {
            name: {count: skill.share(runs) for count, runs in by_count.items()}
            for name, by_count in of_runs.items()
        }
        if "bag of words" in (others := compared_with(lab, task)):
            of_words = skill.skills(others["bag of words"])[0]
            words[task] = skill.share([one - of_words for one in of_runs[RANKED][half]])
    lab.record("skill kept with heads removed", kept, **KEPT)
    lab.record(
        "skill kept without half of the heads above a bag of words",
        words,
        **KEPT | {"by": ("task",)},
    )
    removed = {task: one[RANKED][heads_after(3, heads)] for task, one in kept.items()}
    lab.judge("heads-gone", removed, unit="skill")
    above = {task: one["ranked above random"][half] for task, one in kept.items()}
    lab.judge("ranking-helps", above, unit="skill")
    lab.judge("half-above-words", words, unit="skill")


# Halves of the heads, trained again


def record_halves(lab: Lab, skills: Skills) -> None:
    """Skill kept by runs that are repeated with half of the heads, and by what they are compared with."""
    kept: dict[Task, dict[str, dict[str, Estimate]]] = {}
    good, over = {}, {}
    made = prunings_of(lab, 0)
    for task, skill in skills.items():
        of_runs = {
            kind: skill.skills(pruned_answers(lab, task, pruning))
            for kind, pruning in HALVES.items()
            if pruning in made
        }
        others = {
            name: mean_of(skill.skills(one)) for name, one in compared_with(lab, task).items()
        }
        runs = len(skill.whole)
        kept[task] = {
            "trained again": {kind: skill.share(one) for kind, one in of_runs.items()},
            "compared with": {name: skill.share([one] * runs) for name, one in others.items()},
        }
        pairs = zip(of_runs[GOOD], of_runs[BAD], strict=True)
        good[task] = skill.share([one - other for one, other in pairs])
        if "random start" in others:
            over[task] = {
                kind: skill.share([one - others["random start"] for one in of_runs[kind]])
                for kind in (BAD, RANDOM)
                if kind in of_runs
            }
    lab.record("skill kept by halves of the heads", kept, **KEPT)
    lab.judge(
        "half-enough",
        {task: one["trained again"][GOOD] for task, one in kept.items()},
        unit="skill",
    )
    lab.judge("good-half", good, unit="skill")
    lab.judge("halves-learn", over, unit="skill")
    # Removed together rather than singly, heads that cost little alone change the loss linearly,
    # whether another does their work or they do none.
    lab.judge(
        "same-pattern",
        {},
        unmet="a test that tells heads that are replaced from heads that do nothing",
    )


# Layers that are not fine-tuned


def record_layers(lab: Lab, skills: Skills) -> None:
    """Skill kept with layers reset to their pre-trained weights, or frozen.

    They are reset from below (with the embeddings) and from above, and frozen from below.
    """
    layers, kept = lab.config.num_hidden_layers, {}
    third = FROZEN_THIRD.count(layers)
    for task, skill in track(list(skills.items()), "resetting layers"):
        below, above = answers.reset_answers(lab, task)  # each (layers, runs, rows)
        kept[task] = {
            "from below": {count: skill.kept(below[count - 1]) for count in range(1, layers + 1)},
            "from above": {count: skill.kept(above[count - 1]) for count in range(1, layers + 1)},
            "frozen from below": {third: skill.kept(pruned_answers(lab, task, FROZEN_THIRD))},
        }
    lab.record("skill kept with layers not fine-tuned", kept, **KEPT)
    for claim, state in ("third-put-back", "from below"), ("third-frozen", "frozen from below"):
        lab.judge(claim, {task: one[state][third] for task, one in kept.items()}, unit="skill")


# Weights that are set to zero


def record_weights(lab: Lab, skills: Skills) -> None:
    """Skill kept without weights: the smallest or random ones after fine-tuning, the smallest before it."""
    kept: dict[Task, dict[str, dict[str, Estimate]]] = {}
    before = {}
    for task, skill in track(list(skills.items()), "pruning weights"):
        kept[task] = {}
        pairs = zip(answers.AFTER, answers.answers_pruned_after(lab, task), strict=True)
        for pruning, pruned in pairs:
            by_size = kept[task].setdefault(f"{pruning.kind}, after", {})
            by_size[f"{100 * pruning.size:.0f}"] = skill.kept(pruned)
        if SMALLEST_40 in prunings_of(lab, 0):
            before[task] = skill.kept(pruned_answers(lab, task, SMALLEST_40))
            kept[task][f"{SMALLEST}, before"] = {"40": before[task]}
    lab.record("skill kept with weights set to zero", kept, **KEPT)
    lab.judge("weights-gone", before, unit="skill")


def spared(lab: Lab) -> dict[str, float]:
    """Which share of the encoder's parameters each way of going without spares, in training or for good."""
    model = lab.encoder()
    total = sum(one.numel() for one in model.parameters())
    layers = spec.layers_of(model)
    frozen = [model.embeddings, *layers[: FROZEN_THIRD.count(len(layers))]]
    matrices = [one.numel() for one in layers.parameters() if one.dim() == 2]
    # Query, key, value and output projection of a head, each as large.
    heads = [4 * layer.attention.output.dense.weight.numel() for layer in layers]
    return {
        "embeddings and lowest third frozen": sum(
            one.numel() for part in frozen for one in part.parameters()
        )
        / total,
        "half of the heads removed": sum(heads) / 2 / total,
        "smallest 40 % of the layers' weights": SMALLEST_40.size * sum(matrices) / total,
    }


# Heads of one layer


def record_alike(lab: Lab) -> None:
    """Whether heads of one layer attend more alike than heads of two (Clark et al., 2019, §6)."""
    closer = {}
    for task in track(lab.learned_tasks, "comparing maps"):
        seed = lab.resampling_seed(task)
        untuned = closer_within(distances_of(lab, task, lab.lazy_encoder("normal")), seed)
        tuned = [
            closer_within(distances_of(lab, task, lab.lazy_classifier(task, seed_offset=at)), seed)
            for at in spec.runs_of(lab, task)
        ]
        closer[task] = {
            "fine-tuned": mean_over_seeds(tuned),
            "random weights": untuned,
            "above random weights": mean_over_seeds([one - untuned for one in tuned]),
        }
    what = "divergence of two layers' heads above that of one layer's"
    lab.record(what, closer, by=("task", "kind"), unit="bits", tolerance=0.002)
    beyond = {task: one["above random weights"] for task, one in closer.items()}
    lab.judge("layers-alike", beyond)
