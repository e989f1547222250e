"""Batches decide no result: every measurement, and all that is disabled or cut, with batches of 1, 7 and 64.

On a GPU the batch follows from its memory. What is drawn at random is drawn for each example, by
seed and index.
"""

import dataclasses
import inspect
import pkgutil
from collections.abc import Mapping
from importlib import import_module

import numpy as np
import pytest
from conftest import make_rows, place_release
from eight_models import parts_of

import bertology_utils
from bertology_utils.attention import ByNorm, observe
from bertology_utils.batches import ByExample, make_batches, tokenize
from bertology_utils.dependencies import Pointing
from bertology_utils.disabling import ABLATIONS, replacement
from bertology_utils.features import Destinations, Neighbours, Received, TwinWords, marks
from bertology_utils.glue import TASKS
from bertology_utils.links import (
    BeyondWords,
    StrongestCells,
    TokenLinkAttention,
    borrow,
    find_links,
    link_weights,
)
from bertology_utils.models import load_classifier, load_encoder, load_tokenizer
from bertology_utils.patterns import Patterns, load_network
from bertology_utils.sinks import carried, cut_attention
from bertology_utils.study import Study
from bertology_utils.sweeps import sweep

SIZES = (1, 7, 64)
COUNT, TASK = 70, TASKS["mrpc"]


@pytest.fixture
def study(tiny_bert):
    return Study.of("small", tasks=TASK.name, model=str(tiny_bert))


def in_batches(inputs, tokenizer):
    """By size; each of inputs of similar length, as ever."""
    (whole,) = make_batches(inputs, tokenizer, tokens_per_batch=10**6)
    assert len(whole.index) == COUNT
    return {size: parts_of(whole, size) for size in SIZES}


def leaves(result, name=""):
    """All numbers of a result, by the way to them."""
    if dataclasses.is_dataclass(result):
        result = vars(result)
    if isinstance(result, Mapping):
        for key, part in result.items():
            yield from leaves(part, f"{name} {key}")
    elif isinstance(result, (list, tuple)):
        for at, part in enumerate(result):
            yield from leaves(part, f"{name} {at}")
    elif result is not None:
        yield name, np.asarray(result)


def check_equal(results):
    """Results by size are the same, and say something."""
    _, *others = results
    expected = dict(leaves(results[1]))
    assert expected
    for size in others:
        found = dict(leaves(results[size]))
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            if values.dtype.kind in "OUS":
                assert (found[name] == values).all(), (name, size)
                continue
            assert np.isfinite(values).any(), name
            np.testing.assert_allclose(found[name], values, 0, 1e-6, err_msg=f"{name} {size}")


def of_inputs(study):
    """Measurements of a task's inputs, by name; made anew for each pass, as they keep what they saw."""
    inputs, tokenizer = study.words(TASK.title, 0, COUNT), study.tokenizer
    special = [marks(one) for one in inputs]
    links = borrow([find_links(one) for one in inputs], seed=1)
    return lambda: {
        "patterns": Patterns(load_network(), tokenizer.sep_token_id),
        "received": Received(),
        "destinations": Destinations(special),
        "destinations by norm": ByNorm(Destinations(special)),
        "neighbours": Neighbours(),
        "strongest cells": StrongestCells([[np.array([[0, 1], [2, 1]])]] * len(inputs)),
        "beyond words": BeyondWords(
            [[np.array([[1, 2], [2, 1]])]] * len(inputs),
            [range(1, one.length - 1) for one in inputs],
        ),
        "links": TokenLinkAttention(links),
        "links, popularity off": TokenLinkAttention(links, centred=True),
        "pointing": Pointing(inputs),
        "twins": TwinWords(tokenizer),
    }


def own_inputs(study):
    tokenizer = study.tokenizer
    return in_batches(tokenize(study.rows(TASK.title, COUNT), TASK, tokenizer, 48), tokenizer)


def test_no_measurement_depends_on_batches(study, tiny_bert):
    model = load_encoder(str(tiny_bert)).double()
    made, results, tried = of_inputs(study), {}, {ByExample}
    for size, batches in own_inputs(study).items():
        measurements = made()
        tried |= {type(one) for one in measurements.values()}
        results[size] = observe(model, batches, measurements)
    check_equal(results)
    assert tried == {
        one for one in every_class() if hasattr(one, "update") and hasattr(one, "compute")
    }


def every_class():
    """Public classes that modules of the package define, without the protocol of measurements."""
    for found in pkgutil.walk_packages(bertology_utils.__path__, "bertology_utils."):
        if not found.name.endswith("__main__"):
            for name, kind in inspect.getmembers(import_module(found.name), inspect.isclass):
                own = kind.__module__ == found.name and not name.startswith("_")
                if own and not getattr(kind, "_is_protocol", False):
                    yield kind


def test_no_score_of_frame_links_depends_on_batches(study):
    placed, inputs = place_release(study.tokenizer)
    batches = in_batches(inputs.select(range(COUNT)), study.tokenizer)
    model = study.encoder().double()
    check_equal(
        {
            size: np.nan_to_num(link_weights(model, placed[:COUNT], made))
            for size, made in batches.items()
        }
    )


@pytest.fixture
def classifier(tiny_bert):
    return load_classifier(str(tiny_bert), TASK).double()


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_no_effect_of_disabling_depends_on_batches(tiny_bert, classifier, ablation):
    tokenizer = load_tokenizer(str(tiny_bert))
    made = in_batches(tokenize(make_rows(TASK, COUNT), TASK, tokenizer, 64), tokenizer)
    results = {size: sweep(classifier, batches, ablation) for size, batches in made.items()}
    check_equal(results)
    assert results[1].heads.shape[:3] == (3, 4, COUNT)


def test_no_mean_over_tokens_and_no_cut_depends_on_batches(study, classifier):
    check_equal(
        {
            size: {
                "mean outputs": replacement(classifier, batches, "mean"),
                "carried": carried(classifier, batches, study.tokenizer, seed=1),
                "cut": cut_attention(classifier, batches, study.tokenizer),
            }
            for size, batches in own_inputs(study).items()
        }
    )
