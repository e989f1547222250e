"""What notebook 7 measures: attention cut, lengths of vectors, heads by weight and by norm."""

import copy

import numpy as np
import pytest
import torch
from eight_models import NAMES, PAIRS, model_and_tokenizer
from matplotlib.collections import LineCollection
from scipy.stats import spearmanr

from bertology_utils import attention_maps, batches_of, observe
from bertology_utils.attention import ByNorm, vectors
from bertology_utils.attention.hooks import attention_hooks
from bertology_utils.norms import figures, measure, special_tokens
from bertology_utils.results import Results


@pytest.fixture(scope="module")
def model():
    return copy.deepcopy(model_and_tokenizer("BERT")[0]).double()


@pytest.fixture(scope="module")
def tokenizer():
    return model_and_tokenizer("BERT")[1]


@pytest.fixture(scope="module")
def batches(tokenizer):
    return batches_of(PAIRS, tokenizer)


def masks_of(batches, tokenizer):
    """[CLS], and words, of every example."""
    by_index = {}
    for batch in batches:
        for row, index in enumerate(batch.index):
            ids = batch.inputs["input_ids"][row][batch.mask[row]]
            special = np.isin(ids.numpy(), tokenizer.all_special_ids)
            by_index[index] = np.arange(len(ids)) == 0, ~special
    return [by_index[index] for index in sorted(by_index)]


@pytest.mark.parametrize("from_words", [False, True])
def test_what_is_cut_is_gone_and_nothing_else_changes(model, tokenizer, batches, from_words):
    (batch,) = batches
    masks = special_tokens.side_by_side(list(map(np.stack, masks_of(batches, tokenizer))), batch)
    order = special_tokens.word_order(masks[:, 1], batch.index, seed=1)
    before = attention_maps(model, batch)[1]
    gone, mass = special_tokens.attention_to_cut(before, masks, order, from_words)
    sink, words = masks[:, None, None, 0], masks[:, None, None, 1]
    expected = torch.minimum((before * sink).sum(dim=3), (before * words).sum(dim=3))
    torch.testing.assert_close(mass[..., 0], expected)
    torch.testing.assert_close(gone.sum(dim=3), expected)
    assert not gone[~(words if from_words else sink).expand_as(before)].any()
    assert (before - gone).min() >= -1e-12
    if from_words:  # word by word: at most one word of a row is cut in part
        part = (before - gone > 1e-12) & (gone > 1e-12)
        assert part.sum(dim=3).max() == 1


@pytest.mark.parametrize("instead", special_tokens.INSTEAD)
def test_cutting_equals_an_edit_made_by_hand(model, tokenizer, batches, instead):
    (batch,) = batches
    cut = special_tokens.cut(model, batches, masks_of(batches, tokenizer), 1, instead)

    def without_first(layer, maps, mask):
        special = torch.isin(batch.inputs["input_ids"], torch.tensor(tokenizer.all_special_ids))
        mass = torch.minimum(maps[..., 0], (maps * ~special[:, None, None]).sum(dim=3))
        maps = maps.clone()
        maps[..., 0] -= mass
        if instead == "the mean":
            for row, length in enumerate(batch.lengths.tolist()):
                maps[row, ..., :length] += mass[row, ..., None] / length
        return maps

    with torch.inference_mode():
        whole = model(**batch.inputs).logits.softmax(dim=1)
        with attention_hooks(model, edit_maps=without_first):
            by_hand = model(**batch.inputs).logits.softmax(dim=1)
    expected = (by_hand - whole).abs().sum(dim=1) / 2
    np.testing.assert_allclose(cut.moved[batch.index, 0], expected, atol=1e-9)
    assert cut.moved.max() > 0.001
    assert cut.mass.min() > 0


@pytest.mark.parametrize("name", NAMES)
def test_every_architecture_can_be_cut(name):
    other, own_tokenizer = model_and_tokenizer(name)
    batches = batches_of(PAIRS, own_tokenizer)
    cut = special_tokens.cut(other, batches, masks_of(batches, own_tokenizer), 1)
    assert np.isfinite(cut.moved).all() and (cut.mass > 0).all()


def test_an_input_without_the_sink_is_refused_by_its_number(model, tokenizer, batches):
    masks = masks_of(batches, tokenizer)
    masks[1] = np.zeros_like(masks[1][0]), masks[1][1]
    with pytest.raises(ValueError, match="input 2 has no sink; leave it out"):
        special_tokens.cut(model, batches, masks, 1)


def test_mean_lengths_are_those_of_the_vectors(model, tokenizer, batches):
    kinds = list(map(np.stack, masks_of(batches, tokenizer)))
    lengths = special_tokens.mean_lengths(model, batches, kinds)
    (batch,) = batches
    for layer, f in enumerate(vectors(model, batch)):
        by_token = f.norm(dim=3).mean(dim=1)  # (examples, tokens)
        for kind in range(2):
            chosen = [
                by_token[row, : len(kinds[index][kind])][kinds[index][kind]]
                for row, index in enumerate(batch.index)
            ]
            np.testing.assert_allclose(lengths[kind, layer], torch.cat(chosen).mean(), rtol=1e-9)


def test_a_head_chosen_by_another_measurement_is_measured_on_the_other_half():
    rng = np.random.default_rng(0)
    first = rng.random((60, 1, 3, 4)) * 0.1 + np.linspace(0, 1, 12).reshape(3, 4)
    assert measure.held_out_gain(first, 2 * first, 1).value == pytest.approx(0)
    assert measure.held_out_gain(first, 1 - first, 1).value < -0.8
    noise = rng.random((60, 1, 3, 4))  # its highest head is chosen by luck, which is not measured
    assert measure.held_out_gain(noise, first, 1).value == pytest.approx(0, abs=0.15)
    with pytest.raises(ValueError, match="3 examples are too few"):
        measure.held_out_gain(first[:3], first[:3], 1)


def test_heads_are_ranked_in_either_direction_by_itself():
    """Heads point more often one way than the other, by weight and by norm. That says nothing of which heads do so."""
    rng = np.random.default_rng(0)
    # Each (directions, layers, heads).
    one, other = (rng.random((2, 3, 4)) + [[[0.0]], [[5.0]]] for _ in range(2))
    first, second = (rng.normal(0, 0.01, (60, 2, 3, 4)) + means for means in (one, other))
    rank = measure.rank_of_heads(first, second, 1)
    each = [
        spearmanr(a.ravel(), b.ravel()).statistic
        for a, b in zip(first.mean(axis=0), second.mean(axis=0), strict=True)
    ]
    assert rank.value == pytest.approx(np.mean(each)) and rank.n == 60
    both = spearmanr(first.mean(axis=0).ravel(), second.mean(axis=0).ravel()).statistic
    assert both > 0.7 > 0.4 > rank.value, "what 24 values of 12 heads would say"


class Last:
    """Measurement: the last layer's maps."""

    def update(self, layer, maps, batch):
        self.maps = maps

    def compute(self):
        return self.maps


def test_words_only_leaves_special_tokens_out_by_weight_and_by_norm(model, tokenizer, batches):
    (batch,), ids = batches, tokenizer.all_special_ids
    words = ~torch.isin(batch.inputs["input_ids"], torch.tensor(ids))[:, None, None]
    measurements = {
        "weight": measure.WordsOnly(Last(), ids),
        "norm": ByNorm(measure.WordsOnly(Last(), ids)),
    }
    found = observe(model, batches, measurements)
    for name in found:
        expected = attention_maps(model, batch, name)[-1] * words
        torch.testing.assert_close(found[name], expected / expected.sum(dim=3, keepdim=True))


def test_no_distance_is_drawn_below_0():
    rows = [
        {"what": measure.MOVED.format(instead), "task": "mrpc", "kind": kind, "unit": ""}
        | {"value": value, "low": value - 0.03, "high": value + 0.03}
        for instead in special_tokens.INSTEAD
        for kind, value in zip(special_tokens.CUT_FROM, (0.01, 0.05), strict=True)
    ]
    results = Results({"notebook": "7", "facts": {"sink": "[CLS]"}, "rows": rows})
    axes = figures.answers_moved(results).axes
    intervals = [one for ax in axes for one in ax.collections if isinstance(one, LineCollection)]
    lows = [segment[:, 0].min() for one in intervals for segment in one.get_segments()]
    assert len(lows) == len(rows) and min(lows) == 0


def test_a_run_with_too_few_links_says_so_in_its_figures():
    nothing = Results({"notebook": "7", "facts": {}, "rows": []})
    for draw in (figures.heads_both_ways, figures.ranks):
        (ax,) = draw(nothing).axes
        assert ax.texts[0].get_text() == "not measured in this run"
