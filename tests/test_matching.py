"""Tokens matched to those of a type: as many, near, and never of the type."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from plain import made_input, word

from bertology_utils.features import PLACES_PER_DECADE, match
from bertology_utils.words import LINGUISTIC

TYPES = len(LINGUISTIC)
NOUN = LINGUISTIC.index("nouns")


def made(classes, ids=None):
    """An input whose words have these parts of speech, one wordpiece each, between [CLS] (id 1) and [SEP] (id 2)."""
    some = made_input([word("x", upos, -1, "dep") for upos in classes])
    return replace(some, ids=(1, *(ids or range(10, 10 + len(classes))), 2))


def places(matched, number=0, kind=NOUN):
    """Positions of the paired tokens of a type, and of their controls."""
    return [np.flatnonzero(matched[number][row]).tolist() for row in (kind, TYPES + kind)]


def test_the_seed_decides_between_equals():
    inputs = [made(["DET", "NOUN", "DET"], [5, 5, 5])] * 20
    first, again, other = (match(inputs, seed) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert any((a != b).any() for a, b in zip(first, other, strict=True))
    assert {tuple(places(first, number)[1]) for number in range(20)} == {(1,), (3,)}, (
        "drawn anew for each input"
    )


def test_a_type_that_is_absent_or_alone_gives_empty_masks():
    matched = match([made(["DET", "ADJ"]), made(["NOUN", "NOUN", "PUNCT"])], seed=1)
    assert not matched[0].any() and not matched[1].any()


@pytest.mark.parametrize("seed", range(15))
def test_the_sum_of_distances_is_the_smallest(seed):
    rng = np.random.default_rng(seed)
    classes = rng.choice(["NOUN", "ADJ", "ADV", "PUNCT"], size=8, p=[0.35, 0.3, 0.25, 0.1]).tolist()
    ids = rng.integers(50, 54, size=8).tolist()
    annotated = made(classes, ids)
    own = [at for at, upos in enumerate(classes, 1) if upos == "NOUN"]
    others = [at for at, upos in enumerate(classes, 1) if upos in ("ADJ", "ADV")]

    def cost(a, b):
        return abs(a - b) / PLACES_PER_DECADE + abs(
            np.log10(ids.count(ids[a - 1])) - np.log10(ids.count(ids[b - 1]))
        )

    def smallest(tokens, words):
        few, many = sorted((tokens, words), key=len)
        return min(sum(map(cost, few, chosen)) for chosen in itertools.permutations(many, len(few)))

    pairs = places(match([annotated], seed=1))
    assert len(pairs[0]) == len(pairs[1]) == min(len(own), len(others))
    assert smallest(*pairs) == pytest.approx(smallest(own, others), abs=1e-4)
