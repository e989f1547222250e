"""Estimates of means over examples and fine-tuning runs, and tests of many heads at once; on arrays with named axes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from scipy import optimize, stats

HEADS = ("layer", "head")
PRIOR = 2  # degrees of freedom that the variance between runs of all tasks counts for


def score(one: xr.Dataset, of: str = "") -> xr.DataArray:
    """What each example adds to a score in points, so that the mean over examples is the score.

    Of an accuracy 100 for a right answer; of a correlation its pseudo-value: 100 times r and the
    example's influence on r, by which the mean has the right standard error as well (the
    infinitesimal jackknife; Efron, 1982).

    Args:
        one: a measurement with ``right``, or with ``answer`` and ``label``.
        of: which answers: "" of the whole model, or such as "_without".
    """
    if f"right{of}" in one:
        return 100 * one[f"right{of}"].astype(float)

    def standardised(values: xr.DataArray) -> xr.DataArray:
        centred = values.astype(float) - values.astype(float).mean("example")
        spread = centred.std("example")
        return centred / spread.where(spread > 1e-4, np.inf)  # of constant answers r is 0

    x, y = standardised(one[f"answer{of}"]), standardised(one.label)
    r = (x * y).mean("example")
    return 100 * (r + x * y - r * (x**2 + y**2) / 2)


def refitted(one: xr.Dataset, of: str = "") -> xr.DataArray:
    """Each example's loss after one scale and one shift of all answers are refitted, in each run and without each head.

    Disabling a head can move all answers towards one class or make all of them less sure, which two
    numbers undo. They are fitted on the same examples.

    Args:
        one: a measurement with ``label``, and with ``loss`` of a two-class classifier or ``answer`` of a
            regression; axis example and any others.
        of: which answers, as of :func:`score`.

    Returns:
        Losses of the same axes: minus the logarithm of the right answer's probability; of a regression
        squared errors.

    Raises:
        ValueError: there are more than two classes, whose log-odds a loss does not tell.
    """
    regression = f"answer{of}" in one
    if not regression and int(one.label.max()) > 1:
        raise ValueError("answers are refitted of regressions and of two classes, not of more")
    label = one.label.astype(float)
    if regression:
        answers = one[f"answer{of}"].astype(float)
    else:  # log-odds of class 1
        loss = one[f"loss{of}"].astype(float).clip(1e-4)
        answers = (1 - 2 * label) * np.log(np.expm1(loss))

    def losses(answers: np.ndarray, label: np.ndarray) -> np.ndarray:
        if regression:
            return (label - np.polyval(np.polyfit(answers, label, 1), answers)) ** 2

        def at(line: np.ndarray) -> np.ndarray:
            return np.logaddexp(0, (1 - 2 * label) * (line[0] * answers + line[1]))

        return at(optimize.minimize(lambda line: at(line).mean(), [1.0, 0.0]).x)

    axis = [["example"], ["example"]]
    made = xr.apply_ufunc(
        losses, answers, label, input_core_dims=axis, output_core_dims=axis[:1], vectorize=True
    )
    return made.transpose(*answers.dims)


def share(part: xr.DataArray, whole: xr.DataArray) -> xr.DataArray:
    """What each example adds to a share of all that examples have, in points, so that the mean over examples is the share.

    A share of two sums, such as the arcs that are right among all arcs, is a ratio of two means;
    like this it has the right standard error as well (the infinitesimal jackknife).

    Args:
        part: of each example, with an axis example and any others.
        whole: likewise.
    """
    part, whole = part.astype(float), whole.astype(float)
    ratio = part.sum("example") / whole.sum("example")
    return 100 * (ratio + (part - ratio * whole) / whole.mean("example"))


def outputs(one: xr.Dataset) -> xr.DataArray:
    """What a regression answers of each example, or how probable label 1 is to a classifier of labels 0 and 1.

    Args:
        one: a measurement with ``label``, and ``loss`` of a classifier or ``answer`` of a regression.

    Raises:
        ValueError: a classifier has other labels, so that the loss does not tell its outputs.
    """
    if "answer" in one:
        return one.answer.astype(float)
    if others := sorted({*np.unique(one.label)} - {0, 1}):
        raise ValueError(f"pairs are ranked by labels 0 and 1, and there is {others[0]:g}")
    of_label = np.exp(-one.loss.astype(float))  # the probability of the right answer
    return xr.where(one.label == 1, of_label, 1 - of_label)


def concordance(one: xr.Dataset) -> xr.DataArray:
    """What each example adds to the share of pairs that are ranked correctly, in points, so that the mean over examples is the share.

    Of two examples with different labels, the one with the higher label should have the higher
    output; a tie counts half. Of labels 0 and 1 this is the area under the ROC curve, of a regression
    the concordance index. No threshold and no scale of the outputs plays a part. The mean has the
    right standard error as well (DeLong et al., 1988).

    Args:
        one: a measurement with ``label``, and ``loss`` of a classifier or ``answer`` of a regression.

    Raises:
        ValueError: see :func:`outputs`.
    """
    differ, apart = (
        np.sign(each - each.rename(example="other"))
        for each in (one.label.astype(float), outputs(one))  # labels may have 16 bits on file
    )
    pairs = abs(differ).mean("other")  # of each example, the share of others with another label
    right = (abs(differ) * (1 + differ * apart) / 2).mean("other")
    share = right.mean("example") / pairs.mean("example")
    # Twice, since a pair is lost with either of its examples.
    return 100 * (share + 2 * (right - share * pairs) / pairs.mean("example"))


def majority(one: xr.Dataset) -> float:
    """Score of always giving the most frequent answer, in points; NaN for a regression."""
    if "right" not in one:
        return float("nan")
    _, counts = np.unique(one.label, return_counts=True)
    return float(100 * counts.max() / one.label.size)


def estimate(values: Mapping[str, xr.DataArray], level: float = 0.95) -> xr.Dataset:
    """The mean over runs and examples, and its interval, for each of several tasks.

    The error has two parts: examples could have been others, and so could runs. Two or three runs
    say little of how runs differ, so each task's variance between runs is averaged with that of all
    tasks (Smyth, 2004); of it, what the same examples answered otherwise explain is taken off, since the
    first part has it. Where no task has a second run, nothing is known of the second part, and the
    interval is about these runs.

    Args:
        values: by task, with axes run and example and any others.
        level: of the interval.

    Returns:
        value, low and high, with an axis task and those others; error, the standard error, and
        degrees, of freedom of its t distribution.
    """
    if not values:  # no task has what is estimated
        names = ("value", "low", "high", "error", "degrees")
        return xr.Dataset({name: ("task", np.empty(0)) for name in names}, {"task": []})
    parts = []
    for one in values.values():
        one, runs = one.astype(float), one.sizes["run"]
        between = 0 * one.mean(["run", "example"])
        if runs > 1:
            by_chance = one.var("run", ddof=1).mean("example") / one.sizes["example"]
            between = one.mean("example").var("run", ddof=1) - by_chance
        parts.append(
            xr.Dataset(
                {
                    "value": one.mean(["run", "example"]),
                    "examples": one.mean("run").var("example", ddof=1) / one.sizes["example"],
                    "between": between,
                    "runs": runs,
                    "number": one.sizes["example"],
                }
            )
        )
    tasks = xr.concat(
        parts, xr.IndexVariable("task", list(values)), coords="minimal", compat="override"
    )
    own = tasks.runs - 1
    of_runs, known = 0 * tasks.examples, 1  # where no task has a second run
    if own.sum():
        common = (tasks.between * own).sum("task") / own.sum()
        pooled = (tasks.between * own + common * PRIOR) / (own + PRIOR)
        of_runs = pooled.clip(min=0) / tasks.runs
        known = np.minimum(own + PRIOR, own.sum())  # no more than all tasks' runs say together
    spread = of_runs**2 / known + tasks.examples**2 / (tasks.number - 1)
    degrees = (tasks.examples + of_runs) ** 2 / spread.where(spread > 0)
    degrees = degrees.fillna(1e6)
    made = xr.Dataset(
        {"value": tasks.value, "error": np.sqrt(tasks.examples + of_runs), "degrees": degrees}
    )
    return with_interval(made, level)


def with_interval(one: xr.Dataset, level: float) -> xr.Dataset:
    """An estimate with the interval of another level."""
    half = (
        xr.apply_ufunc(lambda degrees: stats.t.ppf(0.5 + level / 2, degrees), one.degrees)
        * one.error
    )
    return one.assign(low=one.value - half, high=one.value + half)


def shown(value: float, form: str) -> str:
    """A number in a form; zero has no sign."""
    text = form.format(value)
    return text if any(digit in text for digit in "123456789") else text.lstrip("+-")


def told(estimates: xr.Dataset, form: str = "{:+.1f}") -> dict[str, str]:
    """Each task's estimate with its interval, as text: "+1.2 [+0.1, +2.3]".

    Args:
        estimates: value, low and high, with an axis task.
        form: of a number.
    """
    ends = zip(estimates.value, estimates.low, estimates.high, strict=True)
    texts = ([shown(float(one), form) for one in each] for each in ends)
    tasks = map(str, estimates.task.values)
    return dict(zip(tasks, map("{0[0]} [{0[1]}, {0[2]}]".format, texts), strict=True))


def chosen_elsewhere(
    values: np.ndarray, taken: np.ndarray, groups: np.ndarray, splits: int, seed: int
) -> np.ndarray:
    """In each row, what the column has that is best in other groups of rows; mean over random halves of the groups.

    On one half of the groups a column is chosen by its mean, and on the other half it is measured, so
    that it does not look better than it is for being the best of many.

    Args:
        values: by which a column is chosen, of shape (rows, columns).
        taken: what is measured, of the same shape.
        groups: to which group each row belongs, from 0.
        splits: how many halves are drawn.
        seed: of the draws.

    Returns:
        Shape (rows,).
    """
    total, times, rng = np.zeros(len(values)), np.zeros(len(values)), np.random.default_rng(seed)
    for _ in range(splits):
        chooses = (rng.permutation(groups.max() + 1) % 2 == 0)[groups]
        best = values[chooses].mean(axis=0).argmax()
        total[~chooses] += taken[~chooses, best]
        times += ~chooses
    return total / times


def null_maxima(
    values: xr.DataArray, sides: int = 1, draws: int = 4000, seed: int = 1
) -> np.ndarray:
    """The largest mean over examples in each of many draws in which no head has an effect.

    A draw gives each example a random sign, the same in all heads, since heads flip the same examples
    (max-T; Westfall and Young, 1993). To make all heads count alike, divide by their standard errors;
    for intervals, take deviations from the means, since then heads may have effects.

    Args:
        values: with an axis example and any others, such as layer and head, over which the largest is taken.
        sides: 2 if the means' sizes count, whatever their signs.
        draws: how many.
        seed: of the signs.

    Returns:
        Shape (draws,).
    """
    flat = values.transpose("example", ...).values.astype(float)
    flat = flat.reshape(len(flat), -1)
    rng, highest = np.random.default_rng(seed), []
    for start in range(0, draws, 4000):  # all at once would need much memory
        signs = rng.choice([-1.0, 1.0], (min(4000, draws - start), len(flat)))
        means = signs @ flat / len(flat)
        highest.append((abs(means) if sides == 2 else means).max(axis=1))
    return np.concatenate(highest)


def corrected_p(values: xr.DataArray, draws: int = 4000, seed: int = 1) -> xr.DataArray:
    """P value of each head's mean being above zero, corrected for the choice among all heads (:func:`null_maxima`).

    Args:
        values: with an axis example and any others, such as layer and head.
        draws, seed: of random signs.
    """
    # Around zero, as under random signs: a head that is much needed would look like noise otherwise.
    error = np.sqrt((values.astype(float) ** 2).mean("example") / values.sizes["example"])
    in_errors = values / error.clip(1e-9)
    highest = xr.DataArray(null_maxima(in_errors, draws=draws, seed=seed), dims="draw")
    # A draw that ties with a head counts; rounding must not decide.
    return (highest >= in_errors.mean("example") - 1e-9).mean("draw")
