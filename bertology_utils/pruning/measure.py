"""How much skill is kept without heads, layers' fine-tuning or weights, recorded and judged.

Every number is paired with the whole models' answers to the same rows, on which no run trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common import track
from ..glue import Task
from ..lab import Lab, kept
from ..statistics import Bootstrap, Estimate, mean_of, mean_over_seeds
from ..verdicts import constant_score
from . import answers, spec
from .alike import closer_within, distances_of
from .answers import RANDOM_ORDER, RANKED, heads_after
from .skill import Skill
from .spec import (
    BAD,
    FROZEN_THIRD,
    GOOD,
    HALVES,
    RANDOM,
    SMALLEST,
    SMALLEST_40,
    prunings_of,
)

if TYPE_CHECKING:
    from datasets import Dataset

# How far a share of the skill moves on another machine, which trains another model: half a point of
# the score, and on MRPC twelve points are all skill.
SHARE: dict[str, Any] = {"unit": "skill", "tolerance": 0.04}
BY: dict[str, Any] = SHARE | {"by": ("task", "state", "kind")}
WORDS, START = "bag of words", "random start"
ABOVE_RANDOM = "ranked above random"
SENTENCES = "a task of single sentences, such as SST-2"
By = dict[Task, dict[str, dict[Any, Estimate]]]  # by task, state and kind, as they are recorded


def run(lab: Lab) -> None:
    """How many heads, layers and weights can go, and whether heads of one layer are alike (§5)."""
    # Of nothing no share is kept.
    tasks = [one for one in lab.learned_tasks if mean_of(skill_of(lab, one).of_whole).value > 0]
    record_scores(lab, tasks)
    record_heads(lab, tasks)
    record_halves(lab, tasks)
    record_layers(lab, tasks)
    record_weights(lab, tasks)
    record_alike(lab, tasks)
    lab.record("share of the parameters", spared(lab), by=("kind",), unit="share")


@kept
def skill_of(lab: Lab, task: Task) -> Skill:
    """The whole models' skill on the rows that all models answer."""
    labels = np.asarray(answers.evaluated(lab, task)["label"])
    return Skill(task, labels, answers.whole_answers(lab, task), lab.resampling_seed(task))


# What is compared with


def record_scores(lab: Lab, tasks: Sequence[Task]) -> None:
    """Scores of the whole models, of always the same answer, of a random start and of a bag of words."""
    scores: dict[Task, dict[str, Any]] = {}
    for task in track(tasks, "whole models"):
        skill = skill_of(lab, task)
        of_models = {"all heads": skill.whole} | compared_with(lab, task)
        scores[task] = {name: skill.score(given) for name, given in of_models.items()}
        scores[task]["always the same answer"] = constant_score(task, skill.labels)
    lab.record("score", scores, by=("task", "kind"), unit="score", tolerance=0.005)


@kept
def compared_with(lab: Lab, task: Task) -> dict[str, np.ndarray]:
    """Answers of models that begin with less, (models, rows): a random start; on single sentences a bag of words."""
    given = {}
    if starts := lab.settings.random_starts_of(task):
        each = [answers.answers_of(lab, task, at, init="normal") for at in range(starts)]
        given[START] = np.stack(each)
    if len(task.fields) == 1:
        rows = lab.rows(task, "train"), answers.evaluated(lab, task)
        given[WORDS] = bag_of_words(*rows, task.fields[0])[None]
    return given


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


def record_heads(lab: Lab, tasks: Sequence[Task]) -> None:
    """Skill kept with ever more heads removed, by order, and without half of them above a bag of words."""
    heads = lab.config.num_hidden_layers * lab.config.num_attention_heads
    half, shares, words = heads_after(answers.STEPS // 2, heads), By(), {}
    for task in track(tasks, "removing heads"):
        skill, skills = skill_of(lab, task), skills_without_heads(lab, task, heads)
        shares[task] = {
            order: {count: skill.share(runs) for count, runs in by_count.items()}
            for order, by_count in skills.items()
        }
        if WORDS in (given := compared_with(lab, task)):
            (of_words,) = skill.skills(given[WORDS])
            words[task] = skill.share([one - of_words for one in skills[RANKED][half]])
    lab.record("skill kept with heads removed", shares, **BY)
    what = "skill kept without half of the heads above a bag of words"
    lab.record(what, words, by=("task",), **SHARE)
    three_eighths = {task: one[RANKED][heads_after(3, heads)] for task, one in shares.items()}
    lab.judge("heads-gone", three_eighths, unit="skill")
    above = {task: one[ABOVE_RANDOM][half] for task, one in shares.items()}
    lab.judge("ranking-helps", above, unit="skill")
    lab.judge("half-above-words", words, unit="skill", unmet="" if words else SENTENCES)


def skills_without_heads(lab: Lab, task: Task, heads: int) -> dict[str, dict[int, list[Bootstrap]]]:
    """Skill of each run by order and number of removed heads: the mean where several orders were drawn.

    And "ranked above random": the difference of these, on the same resamples.
    """
    skill, runs = skill_of(lab, task), spec.runs_of(lab, task)
    by_run = [answers.answers_without_heads(lab, task, number) for number in runs]
    skills = {
        order: {
            count: [mean_of(skill.skills(one[order][:, at])) for one in by_run]
            for at, count in enumerate(answers.counts_of(heads))
        }
        for order in by_run[0]
    }
    skills[ABOVE_RANDOM] = {
        count: differences(ranked, skills[RANDOM_ORDER][count])
        for count, ranked in skills[RANKED].items()
    }
    return skills


def differences(of: Sequence[Bootstrap], others: Sequence[Bootstrap]) -> list[Bootstrap]:
    """Run by run."""
    return [one - other for one, other in zip(of, others, strict=True)]


# Halves of the heads, trained again


def record_halves(lab: Lab, tasks: Sequence[Task]) -> None:
    """Skill kept by runs that are repeated with half of the heads, and by what they are compared with."""
    shares, good, over = By(), {}, {}
    made = prunings_of(lab, 0)
    for task in track(tasks, "halves of the heads"):
        skill = skill_of(lab, task)
        skills = {
            kind: skill.skills(answers.pruned_answers(lab, task, half))
            for kind, half in HALVES.items()
            if half in made
        }
        # What has no partner among the runs is compared with each of them.
        runs = len(skill.whole)
        given = {
            name: [mean_of(skill.skills(one))] * runs
            for name, one in compared_with(lab, task).items()
        }
        shares[task] = {
            state: {kind: skill.share(one) for kind, one in some.items()}
            for state, some in (("trained again", skills), ("compared with", given))
        }
        good[task] = skill.share(differences(skills[GOOD], skills[BAD]))
        if START in given:
            over[task] = {
                kind: skill.share(differences(skills[kind], given[START]))
                for kind in (BAD, RANDOM)
                if kind in skills
            }
    lab.record("skill kept by halves of the heads", shares, **BY)
    enough = {task: one["trained again"][GOOD] for task, one in shares.items()}
    lab.judge("half-enough", enough, unit="skill")
    lab.judge("good-half", good, unit="skill")
    lab.judge("halves-learn", over, unit="skill")
    # Of two heads that cost little alone the removal of both costs the sum, nearly, whether a third
    # does their work or they do none.
    unmet = "a test that tells heads for which others stand in from heads that do nothing"
    lab.judge("same-pattern", {}, unmet=unmet)


# Layers that are not fine-tuned


def record_layers(lab: Lab, tasks: Sequence[Task]) -> None:
    """Skill kept with layers reset to their pre-trained weights, or frozen.

    They are reset from below (with the embeddings) and from above, and frozen from below.
    """
    layers, shares = lab.config.num_hidden_layers, By()
    third = FROZEN_THIRD.count(layers)
    for task in track(tasks, "resetting layers"):
        skill, reset = skill_of(lab, task), answers.reset_answers(lab, task)
        shares[task] = {
            state: {count: skill.kept(one) for count, one in enumerate(by_count, start=1)}
            for state, by_count in zip(("from below", "from above"), reset, strict=True)
        }
        frozen = skill.kept(answers.pruned_answers(lab, task, FROZEN_THIRD))
        shares[task]["frozen from below"] = {third: frozen}
    lab.record("skill kept with layers not fine-tuned", shares, **BY)
    for claim, state in ("third-put-back", "from below"), ("third-frozen", "frozen from below"):
        lab.judge(claim, {task: one[state][third] for task, one in shares.items()}, unit="skill")


# Weights that are set to zero


def record_weights(lab: Lab, tasks: Sequence[Task]) -> None:
    """Skill kept by runs whose smallest weights are zero from the start."""
    shares = {}
    if SMALLEST_40 in prunings_of(lab, 0):
        for task in track(tasks, "pruning weights"):
            pruned = answers.pruned_answers(lab, task, SMALLEST_40)
            shares[task] = skill_of(lab, task).kept(pruned)
    labels = {"state": f"{SMALLEST}, before", "kind": "40"}
    lab.record("skill kept with weights set to zero", shares, ("task",), **labels, **SHARE)
    lab.judge("weights-gone", shares, unit="skill")


def spared(lab: Lab) -> dict[str, float]:
    """Shares of the encoder's parameters that are not trained, or can be deleted."""
    model = lab.encoder()
    layers = spec.layers_of(model)
    frozen = [model.embeddings, *layers[: FROZEN_THIRD.count(len(layers))]]
    projections = sum(layer.attention.output.dense.weight.numel() for layer in layers)
    counts = {
        "embeddings": parameters(model.embeddings),
        "embeddings and lowest third, frozen": sum(map(parameters, frozen)),
        # Query, key, value and output projection of a head are of one size.
        "half of the heads": 4 * projections // 2,
        "smallest 40 % of the layers' weights": SMALLEST_40.size * parameters(layers),
    }
    return {name: count / parameters(model) for name, count in counts.items()}


def parameters(part: Any) -> int:
    """How many a module has."""
    return sum(one.numel() for one in part.parameters())


# Heads of one layer


def record_alike(lab: Lab, tasks: Sequence[Task]) -> None:
    """Whether heads of one layer attend more alike than heads of two (Clark et al., 2019, §6)."""
    closer: dict[Task, dict[str, Any]] = {}
    for task in track(tasks, "comparing maps"):
        seed = lab.resampling_seed(task)
        random = closer_within(distances_of(lab, task, lab.lazy_encoder("normal")), seed)
        models = [lab.lazy_classifier(task, seed_offset=at) for at in spec.runs_of(lab, task)]
        tuned = [closer_within(distances_of(lab, task, model), seed) for model in models]
        closer[task] = {
            "fine-tuned": mean_over_seeds(tuned),
            "random weights": random,
            "above random weights": mean_over_seeds([one - random for one in tuned]),
        }
    what = "divergence of two layers' heads above that of one layer's"
    lab.record(what, closer, by=("task", "kind"), unit="bits", tolerance=0.002)
    beyond = {task: one["above random weights"] for task, one in closer.items()}
    lab.judge("layers-alike", beyond)
