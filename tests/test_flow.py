"""Where attention goes, against a plain reading of the definition and maps whose answer can be read off."""

import numpy as np
import pytest
from plain import TASKS, measured, replay, to_previous
from precision import forward_tolerance, sum_tolerance

from bertology_utils.annotation.annotators import Word
from bertology_utils.annotation.inputs import AnnotatedInput, PlacedSentence
from bertology_utils.attention import observe
from bertology_utils.features.measure import DESTINATIONS, Flow, marks


def plain_flow(example, grid):
    """Seven shares and three neighbours' shares, weight by weight."""
    punctuation = [at for word, places in example.words for at in places if word.upos == "PUNCT"]
    destinations, neighbours = dict.fromkeys(DESTINATIONS, 0.0), [0.0, 0.0, 0.0]
    for query, row in enumerate(grid):
        for key, weight in enumerate(row):
            share = weight / len(grid)
            if key in example.cls:
                destinations["[CLS]"] += share
            elif key in example.separators:
                destinations["[SEP]"] += share
            elif key in punctuation:
                destinations["punctuation"] += share
            elif key == query - 1:
                destinations["previous"] += share
            elif key == query:
                destinations["self"] += share
            elif key == query + 1:
                destinations["next"] += share
            else:
                destinations["all else"] += share
            if abs(key - query) <= 1:
                neighbours[key - query + 1] += share
    return list(destinations.values()), neighbours


@pytest.mark.parametrize("task", TASKS)
def test_shares_are_the_plain_ones(task):
    lab, task, model, examples = measured(task)
    measurement = Flow([marks(annotated) for annotated in lab.annotated_inputs(task)])
    flow = observe(model, lab.measured_batches(task), {"f": measurement})["f"]
    layers, heads = examples[0].maps.shape[:2]
    tolerance = forward_tolerance(model) * np.sqrt(64)  # destinations are sums over up to 64 tokens
    assert flow.destinations.shape == (50, layers, heads, 7) and flow.neighbours.shape == (50, layers, heads, 3)
    for index, example in enumerate(examples):
        for layer, grids in enumerate(example.maps.tolist()):
            for head, grid in enumerate(grids):
                destinations, neighbours = plain_flow(example, grid)
                np.testing.assert_allclose(flow.destinations[index, layer, head], destinations, atol=tolerance, rtol=0)
                np.testing.assert_allclose(flow.neighbours[index, layer, head], neighbours, atol=tolerance, rtol=0)
    np.testing.assert_allclose(flow.destinations.sum(axis=-1), 1, atol=sum_tolerance(64))
    assert (
        flow.destinations.min() > -sum_tolerance(64)
        and flow.neighbours.min() >= 0
        and flow.neighbours.sum(axis=-1).max() < 1 + sum_tolerance(64)
    )


def test_padding_on_either_side_changes_nothing():
    lab, task, _, examples = measured("mrpc")
    places = [marks(annotated) for annotated in lab.annotated_inputs(task)][:12]
    maps = [example.maps[:, :2] for example in examples[:12]]
    alone = [replay(Flow([of_input]), [weights]) for of_input, weights in zip(places, maps, strict=True)]
    for side in ("left", "right"):
        together = replay(Flow(places), maps, side, 60)
        for name in ("destinations", "neighbours"):
            expected = np.concatenate([getattr(shares, name) for shares in alone])
            np.testing.assert_allclose(getattr(together, name), expected, atol=sum_tolerance(60), rtol=0)


def of_marks(length, cls=(), separators=(), punctuation=()):
    found = np.zeros((3, length), dtype=bool)
    for row, places in zip(found, (cls, separators, punctuation), strict=True):
        row[list(places)] = True
    return found


CASES = {
    # [CLS] a b . [SEP]: five tokens
    "previous": (to_previous(5), [0.4, 0, 0.2, 0.4, 0, 0, 0], [0.8, 0.2, 0]),
    "self": (np.eye(5)[None, None], [0.2, 0.2, 0.2, 0, 0.4, 0, 0], [0, 1, 0]),
    "to [SEP]": (np.eye(5)[[4] * 5][None, None], [0, 1, 0, 0, 0, 0, 0], [0, 0.2, 0.2]),
    "uniform": (np.full((1, 1, 5, 5), 0.2), [0.2, 0.2, 0.2, 0.08, 0.08, 0.08, 0.16], [0.16, 0.2, 0.16]),
}


@pytest.mark.parametrize("case", CASES)
def test_maps_that_can_be_read_off(case):
    maps, destinations, neighbours = CASES[case]
    flow = replay(Flow([of_marks(5, [0], [4], [3])]), [maps])
    np.testing.assert_allclose(flow.destinations[0, 0, 0], destinations, atol=sum_tolerance(60))
    np.testing.assert_allclose(flow.neighbours[0, 0, 0], neighbours, atol=sum_tolerance(60))


def test_a_token_that_is_two_marks_counts_once():
    """A text in which "[SEP]" is written out: a pipeline calls its bracket punctuation, the tokenizer a separator."""
    bracket = Word("[", "[", 0, 1, "PUNCT", -1, "punct")
    sentence = PlacedSentence((bracket,), ((1,),))
    annotated = AnnotatedInput((1, 2, 3), ("[CLS]", "[SEP]", "[SEP]"), (0,), (1, 2), (sentence,), (), 0)
    flow = replay(Flow([marks(annotated)]), [np.eye(3)[[1, 1, 1]][None, None]])
    np.testing.assert_allclose(flow.destinations[0, 0, 0], [0, 1, 0, 0, 0, 0, 0], atol=sum_tolerance(60))
