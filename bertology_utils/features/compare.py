"""What the weights of types of token say: against other types, special tokens and layers, with resampled examples (§4.4, §4.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..annotation.inputs import LINGUISTIC, TOKEN_TYPES
from ..glue import Task
from ..statistics.estimates import (
    Bootstrap,
    Estimate,
    Seed,
    apart,
    bootstrap_mean,
    mean_over_seeds,
    means_with_gaps,
    moderated,
)
from ..statistics.permutation import ONE_SIDED, ManyTest, in_both
from ..verdicts import CLAIMS, MIN_EXAMPLES

STRIPE = 2.0  # times an even share: a type that gets more has a stripe
WORDS = range(len(LINGUISTIC))  # places of the types of word in TOKEN_TYPES
SPECIAL = tuple(TOKEN_TYPES.index(kind) for kind in ("[CLS]", "[SEP]"))
BUT_CLS = [at for at, kind in enumerate(TOKEN_TYPES) if kind != "[CLS]"]
NONE = "no type"
# The tasks on which fine-tuning makes some head attend more to a type, according to the paper.
MORE_ATTENDED = {kind: CLAIMS[f"more-{kind}"].tasks for kind in ("nouns", "objects", "negation")}


def earlier_and_later(values: np.ndarray, seed: Seed) -> tuple[Bootstrap, Bootstrap]:
    """How much less of one token's attention the second half of the layers gives than the first (§4.4).

    A middle layer belongs to neither half.

    Args:
        values: of one type, shape (examples, layers, heads).
        seed: of the resampling of examples.

    Returns:
        The first half's mean, and that minus the second half's.
    """
    by_layer = values.mean(axis=2)  # (examples, layers)
    half = by_layer.shape[1] // 2
    first, second = (
        bootstrap_mean(part.mean(axis=1), seed)
        for part in (by_layer[:, :half], by_layer[:, -half:])
    )
    return first, first - second


def published_halves(panel: np.ndarray, reading_error: float, examples: int) -> Estimate:
    """The first half's mean minus the second half's, of a published heatmap that was read off its colours.

    Its error is that of reading alone; how far another sample of examples would move the panel is
    not published.

    Args:
        panel: mean weights, shape (layers, heads).
        reading_error: of a cell; all readings within it are as likely. A colour scale that is
            misread is so for all cells of a half alike, so that their mean errs as much as one of
            them.
        examples: that the panel is a mean of.
    """
    half = len(panel) // 2
    error = reading_error / np.sqrt(3) * np.sqrt(2)
    return Estimate(float(panel[:half].mean() - panel[-half:].mean()), float(error), examples)


@dataclass(frozen=True)
class Stripes:
    """Types of word against special tokens, for resamples of the examples; see :func:`against_marks`.

    Attributes:
        means: of each type over the examples that have it, shape (1 + resamples, types, layers,
            heads).
        marks: of the more attended special token over the same examples, same shape.
        n: examples.
        seed: of the resampling.
    """

    means: np.ndarray
    marks: np.ndarray
    n: int
    seed: Seed

    def heads(self, border: float = STRIPE) -> tuple[np.ndarray, np.ndarray]:
        """Heads with a stripe on a type of word, and heads with one mainly on a special token.

        A stripe is a mean of more than ``border``; one on words is also above the special tokens.

        Returns:
            Two boolean arrays of shape (1 + resamples, layers, heads), the data as they are first.
        """
        with np.errstate(invalid="ignore"):
            words = np.any((self.means > border) & (self.means > self.marks), axis=1)
            marks = np.any(self.marks > border, axis=1)
        return words, np.logical_and(marks, np.logical_not(words))

    def count(self, border: float = STRIPE) -> tuple[int, int]:
        """Numbers of heads with a stripe on a word, and with one mainly on a special token."""
        words, marks = self.heads(border)
        return int(words[0].sum()), int(marks[0].sum())

    def on_words(self) -> Bootstrap:
        """Share of heads with a stripe on a word."""
        return self._of(self.heads()[0].mean(axis=(1, 2)))

    def marks_ahead(self) -> Bootstrap:
        """Share of heads with one mainly on a special token, minus the share with one on a word."""
        return self._of(self.heads()[1].mean(axis=(1, 2))) - self.on_words()

    def kept(self, before: Stripes) -> Bootstrap:
        """Of the heads with a stripe mainly on a special token, the share that had it ``before``; NaN if no head has one."""
        had, has = before.heads()[1], self.heads()[1]
        count = has.sum(axis=(1, 2))
        shares = (had & has).sum(axis=(1, 2)) / np.maximum(count, 1)
        return self._of(shares if count[0] else np.full(len(shares), np.nan))

    def words_beside_marks(self, at: int, heads: np.ndarray) -> Bootstrap:
        """What a type of word has above an even share, as a part of what the special token has above it; 1 at most.

        Of means over some heads, values being multiples of an even share. It is 1, too, where the
        word has more.

        Args:
            at: the type's place among those compared.
            heads: which heads, boolean, shape (layers, heads).
        """
        words, marks = (
            of[:, at][:, heads].mean(axis=1) - 1 for of in (self.means, self.marks)
        )  # (1 + resamples,)
        return self._of(words / np.maximum(marks, np.abs(words)))

    def _of(self, values: np.ndarray) -> Bootstrap:
        return Bootstrap.of(values, self.n, self.seed)


def against_marks(
    values: np.ndarray, seed: Seed, types: Sequence[int] = WORDS, marks: Sequence[int] = SPECIAL
) -> Stripes:
    """What types of word get, and what special tokens get in the same examples (§4.4).

    Args:
        values: in multiples of an even share, shape (examples, all types, layers, heads), NaN where
            an example has no token of the type.
        seed: of the resampling of examples.
        types, marks: which of them are the types of word, and which the special tokens.
    """
    means, best = [], []
    for kind in types:
        there = np.isfinite(values[:, [kind, *marks], 0, 0]).all(axis=1)
        both = np.where(there[:, None, None, None], values[:, [kind, *marks]], np.nan)
        resampled = means_with_gaps(both, seed)  # (1 + resamples, 1 + marks, layers, heads)
        means.append(resampled[:, 0])
        best.append(resampled[:, 1:].max(axis=1))
    return Stripes(np.stack(means, axis=1), np.stack(best, axis=1), len(values), seed)


def ahead_of_pairs(
    measured: Mapping[Task, Sequence[Bootstrap]], learned: Mapping[Task, bool]
) -> dict[Task, dict[str, Estimate]]:
    """By one-sentence task, its number minus that of each two-sentence task, by their titles; learned tasks only.

    Args:
        measured: of every task and training.
        learned: by task.

    Returns:
        Estimates over the trainings that both have; nothing where tasks of either kind are missing.
    """
    single, double = (
        [task for task in measured if len(task.fields) == count and learned[task]]
        for count in (1, 2)
    )
    return {
        one: moderated(
            {
                f"above {other.title}": mean_over_seeds(
                    [apart(*pair) for pair in zip(measured[one], measured[other], strict=False)]
                )
                for other in double
            }
        )
        for one in single
        if double
    }


def of_type(tests: Mapping[Task, Sequence[ManyTest]], at: int) -> dict[Task, list[ManyTest]]:
    """By task and training, the heads' tests of one type: what rules about heads judge.

    Args:
        tests: by task and training, of shape (types, layers, heads).
        at: the type's place.
    """
    return {task: [test[at] for test in trainings] for task, trainings in tests.items()}


def also(
    tests: Mapping[Task, Sequence[ManyTest]], others: Mapping[Task, Sequence[ManyTest]]
) -> dict[Task, list[ManyTest]]:
    """By task and training two tests of the same heads as one; see :func:`bertology_utils.statistics.in_both`."""
    return {
        task: [in_both(*pair) for pair in zip(of_task, others[task], strict=True)]
        for task, of_task in tests.items()
    }


def beside_marks(
    stripes: Mapping[Task, Sequence[Stripes]], changes: Mapping[Task, Sequence[ManyTest]]
) -> dict[Task, dict[str, Estimate]]:
    """By task and type of word that the paper names for it, what it gets in the heads that turned to it (§4.4).

    As a part of what special tokens get in these heads; see :meth:`Stripes.words_beside_marks`. A
    training counts if fine-tuning surely made some head attend more to the type, and
    :data:`MIN_EXAMPLES` examples have it.

    Args:
        stripes: by task and training, of the fine-tuned models.
        changes: by task and training, the tests of what fine-tuning adds, of shape (types, layers,
            heads).
    """
    found: dict[Task, dict[str, Estimate]] = {}
    for kind, names in MORE_ATTENDED.items():
        at = TOKEN_TYPES.index(kind)
        for task, tests in of_type(changes, at).items():
            turned = [
                (one, test.above <= ONE_SIDED)
                for one, test in zip(stripes[task], tests, strict=True)
            ]
            each = [one.words_beside_marks(at, heads) for one, heads in turned if heads.any()]
            if task.name in names and each and tests[0].n.max() >= MIN_EXAMPLES:
                found.setdefault(task, {})[kind] = mean_over_seeds(each)
    return found


def fewest(
    tests: Mapping[Task, Sequence[ManyTest]], tasks: Sequence[str], learned: Mapping[Task, bool]
) -> int:
    """The number of examples where it is smallest, among the learned of these tasks; enough if none is here."""
    sizes = [
        int(of_task[0].n.max())
        for task, of_task in tests.items()
        if task.name in tasks and learned[task]
    ]
    return min(sizes, default=MIN_EXAMPLES)


def elsewhere(
    tests: Mapping[str, Mapping[Task, Sequence[ManyTest]]], learned: Mapping[Task, bool]
) -> dict[Task, dict[str, Sequence[ManyTest]]]:
    """By task and type the tests of the types that the paper names, on the learned tasks that it does not name for them.

    Left out are tasks on which fewer than :data:`MIN_EXAMPLES` examples have the type.

    Args:
        tests: by type, task and training, of shape (layers, heads).
        learned: by task.
    """
    found: dict[Task, dict[str, Sequence[ManyTest]]] = {}
    for kind, names in MORE_ATTENDED.items():
        for task, of_task in tests[kind].items():
            if task.name not in names and learned[task] and of_task[0].n.max() >= MIN_EXAMPLES:
                found.setdefault(task, {})[kind] = of_task
    return found


# From [CLS] in the last layer (Fig 7).


def last_layer(values: np.ndarray) -> np.ndarray:
    """Mean over the heads of the last layer, shape (examples, types).

    Args:
        values: what [CLS] gives each type, shape (examples, types, layers, heads); see
            :class:`bertology_utils.features.measure.Features`.
    """
    return values[:, :, -1].mean(axis=2)


def type_means(by_task: Iterable[np.ndarray]) -> np.ndarray:
    """Mean over the examples that have a type, shape (tasks, types); NaN where none has.

    Args:
        by_task: of each task shape (examples, types), NaN where an example lacks the type.
    """
    with np.errstate(invalid="ignore"):
        return np.stack(
            [np.nansum(values, axis=0) / np.isfinite(values).sum(axis=0) for values in by_task]
        )


def ahead(values: np.ndarray, kind: int, rivals: Sequence[int], seed: Seed) -> tuple[bool, float]:
    """Does a type get more than every other, each compared in the examples that have both (§4.5, Fig 7)?

    Args:
        values: shape (examples, types), NaN where an example lacks the type.
        kind: the type.
        rivals: the types to be ahead of; ``kind`` itself is passed over.
        seed: of the resampling of examples.

    Returns:
        Whether it does, and in what share of the resamples. A type that no example has is not
        ahead.
    """
    if not np.isfinite(values[:, kind]).any():
        return False, 0.0
    others = [
        rival
        for rival in rivals
        if rival != kind and np.isfinite(values[:, rival] + values[:, kind]).any()
    ]
    compared = against_marks(values[:, :, None, None], seed, others, [kind])
    wins = ~(
        compared.marks <= compared.means
    )  # (1 + resamples, others, 1, 1); a rival that is missing is no rival
    return bool(wins[0].all()), float(wins[1:].all(axis=(1, 2, 3)).mean())


def first_type(values: np.ndarray) -> str:
    """The type that gets more than every other but [CLS], as :func:`ahead` says it of the data as they are; or "no type".

    Args:
        values: shape (examples, types), NaN where an example lacks the type.
    """

    def more(kind: int, rival: int) -> bool:
        both = np.isfinite(values[:, kind] + values[:, rival])
        return not both.any() or bool(values[both, kind].mean() > values[both, rival].mean())

    there = [at for at in BUT_CLS if np.isfinite(values[:, at]).any()]
    first = (at for at in there if all(more(at, rival) for rival in there if rival != at))
    return TOKEN_TYPES[at] if (at := next(first, None)) is not None else NONE


def shares_first(
    tuned: Mapping[Task, Sequence[Mapping[str, Any]]], kinds: Sequence[str], seed: Seed
) -> dict[Task, dict[str, list[float]]]:
    """By task and type, the share of the resamples in which the type is ahead of every other but [CLS], in each training.

    Args:
        tuned: by task and training, under "from [CLS]" what
            :class:`bertology_utils.features.measure.Features` found.
        kinds: the types.
        seed: of the resampling of examples.
    """
    return {
        task: {
            kind: [
                ahead(last_layer(one["from [CLS]"]), TOKEN_TYPES.index(kind), BUT_CLS, seed)[1]
                for one in trainings
            ]
            for kind in kinds
        }
        for task, trainings in tuned.items()
    }
