"""Skill: what a model scores above always the same answer; and the share of it that a pruned model keeps.

Scores of two tasks cannot be compared: always "paraphrase" answers two thirds of MRPC, and a loss of
six points there can be half of all that was learned. The share of the skill can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..glue import Task, plain_metric, scale_of
from ..statistics import Bootstrap, Estimate, Seed, mean_of, mean_over_seeds, resampled_scores


@dataclass(frozen=True)
class Skill:
    """What whole models have learned of a task, and how much of it others have.

    Attributes:
        task: the task.
        labels: gold, shape (rows,).
        whole: answers of the whole models, shape (runs, rows).
        seed: of the resampling of rows.
    """

    task: Task
    labels: np.ndarray
    whole: np.ndarray
    seed: Seed

    @property
    def same_answer(self) -> np.ndarray:
        """Always the most frequent label, shape (rows,); of a regression any number, which correlates with nothing."""
        usual = 0 if self.task.is_regression else np.bincount(self.labels).argmax()
        return np.full(len(self.labels), usual)

    def scores(self, answers: np.ndarray) -> list[Bootstrap]:
        """Scores, from 0 to 1, by :func:`bertology_utils.glue.plain_metric`.

        Args:
            answers: shape (models, rows).
        """
        return resampled_scores(plain_metric(self.task), answers, self.labels, self.seed)

    def score(self, answers: np.ndarray) -> Estimate:
        """The mean score of several models, shape (models, rows)."""
        parts = self.scores(answers)
        score = float(np.mean([one.value for one in parts]))
        return mean_over_seeds(parts, scale_of(self.task, score))

    def skills(self, answers: np.ndarray) -> list[Bootstrap]:
        """Scores above that of always the same answer, on the same resamples.

        Args:
            answers: shape (models, rows).
        """
        *scores, same = self.scores(np.vstack([answers, self.same_answer]))
        return [score - same for score in scores]

    @cached_property
    def scores_of_whole(self) -> list[Bootstrap]:
        """The whole models' scores."""
        return self.scores(self.whole)

    @cached_property
    def of_whole(self) -> list[Bootstrap]:
        """The whole models' skills."""
        return self.skills(self.whole)

    def kept(self, pruned: np.ndarray) -> Estimate:
        """Share of the skill that pruned models have; see :meth:`share`.

        Args:
            pruned: answers of the first runs, shape (runs, rows).
        """
        return self.share(self.skills(pruned))

    def share(self, parts: Sequence[Bootstrap]) -> Estimate:
        """Skills, or differences of them, as a share of the whole models' skills, run by run.

        Args:
            parts: of the first runs, from :meth:`skills`.

        Raises:
            ValueError: the whole models have no skill.
        """
        wholes = self.of_whole[: len(parts)]
        scores = [one.value for one in self.scores_of_whole[: len(parts)]]
        return ratio(parts, wholes, scale_of(self.task, float(np.mean(scores))))


def ratio(parts: Sequence[Bootstrap], wholes: Sequence[Bootstrap], scale: float = 1.0) -> Estimate:
    """The mean of some numbers divided by the mean of others that they are paired with, run by run.

    Its error is that of the mean of part − ratio × whole, divided by the whole (the delta method):
    over resampled examples and between runs, as :func:`bertology_utils.statistics.mean_over_seeds`
    has it.

    Args:
        parts, wholes: of every run, on the same resamples.
        scale: of the numbers; see :class:`bertology_utils.statistics.Estimate`.

    Raises:
        ValueError: the mean of the wholes is not above 0.
    """
    whole = mean_of(wholes).value
    if whole <= 0:
        raise ValueError(
            f"the whole is {whole:.3f}, and of nothing no share is kept; take a learned task"
        )
    share = mean_of(parts).value / whole
    linear = [  # whose mean is the share
        Bootstrap(
            share + (part.value - share * of.value) / whole,
            (part.draws - share * of.draws) / whole,
            part.n,
            part.seed,
        )
        for part, of in zip(parts, wholes, strict=True)
    ]
    return mean_over_seeds(linear, scale / whole)
