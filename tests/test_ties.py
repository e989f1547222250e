"""Choices that rounding cannot exchange."""

import numpy as np
import pytest

from bertology_utils.statistics import permutation

NOISE = 1e-5  # ten times what another processor changes


def test_order_does_not_hang_on_the_last_digits():
    values = np.array([[0.30, 0.50, 0.50003], [0.4999, 0.10, 0.30001]])
    rng = np.random.default_rng(0)
    for _ in range(50):
        noisy = values + NOISE * rng.uniform(-1, 1, values.shape)
        assert permutation.by_size(noisy).tolist() == [1, 2, 3, 0, 5, 4]
        assert permutation.largest(noisy) == (0, 1) and permutation.name_of_largest(noisy) == "(1, 2) (tied with 2)"
    assert permutation.by_size(values, margin=0).tolist() == [2, 1, 3, 5, 0, 4]


def test_what_is_further_apart_than_the_margin_is_ordered_by_size():
    values = np.random.default_rng(1).permutation(np.arange(40) * 2 * permutation.MARGIN)
    np.testing.assert_array_equal(permutation.by_size(values), np.argsort(-values))
    np.testing.assert_array_equal(permutation.ranks(values.reshape(5, 8)).ravel(), np.argsort(np.argsort(-values)) + 1)
    assert "tied" not in permutation.name_of_largest(values)


def test_a_chain_of_small_steps_is_not_one_tie():
    assert permutation.by_size(np.arange(10) * 0.8 * permutation.MARGIN).tolist() == [8, 9, 6, 7, 4, 5, 2, 3, 0, 1]


def test_missing_values_come_last_and_layers_are_counted_from_one():
    assert permutation.by_size(np.array([np.nan, 1, 2])).tolist() == [2, 1, 0]
    assert permutation.name_of_largest(np.array([0.1, 0.7])) == "2"
    assert permutation.name_of_largest(np.zeros((2, 3))) == "(1, 1) (tied with 5)"


@pytest.mark.parametrize(
    ("p", "text", "sentence"),
    [
        (0.0009, "< 0.01", "p < 0.01"),
        (0.0099, "< 0.01", "p < 0.01"),
        (0.01, "0.01", "p = 0.01"),
        (0.949, "0.95", "p = 0.95"),
    ],
)
def test_p_values_as_printed(p, text, sentence):
    assert (permutation.p_text(p), permutation.p_is(p)) == (text, sentence)


def test_counts_as_printed():
    assert permutation.count_of(np.array([[True, False, True]])) == "2 of 3"
