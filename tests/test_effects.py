"""Scores of weighted examples are those of repeated ones."""

import numpy as np
import pytest
from plain import score

from bertology_utils.glue import TASKS
from bertology_utils.statistics import (
    METRICS,
    weighted_scores,
    whole_and_resampled,
)

N = 300
MRPC, STSB, RTE, QNLI = (TASKS[name] for name in ("mrpc", "stsb", "rte", "qnli"))


def made(name, seed=0, variants=20, helpful=None, n=N):
    """Labels, a model's predictions, and those of variants that differ from it at random; one may be better."""
    rng = np.random.default_rng(seed)
    if TASKS[name].is_regression:
        labels = rng.random(n)
        baseline = labels + rng.normal(0, 0.4, n)
        disabled = baseline + rng.normal(0, 0.1, (variants, n))
    else:
        labels = rng.integers(0, 2, n)
        baseline = np.where(rng.random(n) < 0.75, labels, 1 - labels)
        disabled = np.where(rng.random((variants, n)) < 0.06, 1 - baseline, baseline)
        if helpful is not None:
            disabled[helpful] = np.where(rng.random(n) < 0.5, labels, baseline)
    return labels, baseline, disabled


@pytest.mark.parametrize("metric", METRICS)
def test_a_weighted_metric_is_the_metric_of_repeated_examples(metric):
    task = TASKS["stsb" if metric == "Pearson" else "mrpc"]
    labels, baseline, disabled = made(task.name)
    weights = whole_and_resampled(N, 5)[1:21].astype(int)
    weights[0] = labels == labels[0] if metric == "F1" else weights[0]  # one class alone
    found = weighted_scores(
        metric, np.vstack([baseline, disabled, 0 * disabled[:1]]), labels, weights
    )
    for draw, counts in enumerate(weights):
        rows = np.repeat(np.arange(N), counts)
        for variant, predicted in enumerate([baseline, *disabled, 0 * disabled[0]]):
            expected = score(task, predicted[rows], labels[rows], metric)[metric]
            assert found[draw, variant] == pytest.approx(expected, abs=1e-9)
