"""Batches decide no result: every measurement, and all that is disabled or cut, with batches of 1, 7 and 64.

On a GPU the batch follows from its memory. What is drawn at random is drawn for each example, by
seed and index.
"""

import dataclasses
import inspect
import pkgutil
from collections.abc import Mapping
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from conftest import make_rows, place_release
from small_models import parts_of

import bertology_utils
from bertology_utils.attention import observe
from bertology_utils.batches import make_batches, tokenize
from bertology_utils.disabling import ABLATIONS, replacement
from bertology_utils.features import (
    destinations,
    marks,
    received_by_token,
    to_neighbours,
    twin_words,
)
from bertology_utils.glue import TASKS
from bertology_utils.links import (
    borrow,
    find_links,
    link_cells,
    link_weights,
    popularity,
    strongest_cells,
    words_anyway,
)
from bertology_utils.models import load_classifier, load_encoder, load_tokenizer
from bertology_utils.patterns import load_network, load_regression, name_patterns
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
    """What measures a task's inputs, by name."""
    inputs, separator = study.words(TASK.title, 0, COUNT), study.tokenizer.sep_token_id
    special = [marks(one) for one in inputs]
    cells = link_cells(borrow([find_links(one) for one in inputs], seed=1))
    words = partial(words_anyway, words=[range(1, one.length - 1) for one in inputs])
    return {
        "patterns": name_patterns(load_network(), separator),
        "patterns by regression": name_patterns(load_regression(), separator),
        "received": received_by_token,
        "destinations": destinations(special),
        "destinations by norm": destinations(special),
        "neighbours": to_neighbours,
        "links": strongest_cells(cells),
        "links, popularity off": strongest_cells(cells, popularity),
        "beyond words": strongest_cells(cells, words),
        "twins": twin_words(study.tokenizer),
    }


def own_inputs(study):
    tokenizer = study.tokenizer
    return in_batches(tokenize(study.rows(TASK.title, COUNT), TASK, tokenizer, 48), tokenizer)


def test_no_measurement_depends_on_batches(study, tiny_bert):
    model, measures = load_encoder(str(tiny_bert)).double(), of_inputs(study)
    results = {}
    for size, batches in own_inputs(study).items():
        results[size] = observe(model, batches, measures, by_norm={"destinations by norm"})
    check_equal(results)
    tried = {one.__qualname__.split(".")[0] for one in measures.values()}
    assert tried >= set(makers_of_measures())


def makers_of_measures():
    """Functions of the package's modules that make a measure."""
    for found in pkgutil.walk_packages(bertology_utils.__path__, "bertology_utils."):
        if not found.name.endswith("__main__"):
            for name, one in inspect.getmembers(import_module(found.name), inspect.isfunction):
                if one.__annotations__.get("return") == "Measure":
                    yield name


def test_no_score_of_frame_links_depends_on_batches(study):
    placed, inputs = place_release(study.tokenizer)
    some = {name: every[:COUNT] for name, every in inputs.items()}
    batches = in_batches(some, study.tokenizer)
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
