"""What notebook 7 measures beside norms: cutting attention, lengths of vectors, heads both ways."""

import copy

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from eight_models import NAMES, PAIRS, model_and_tokenizer
from scipy.stats import spearmanr

from bertology_utils import attention_maps, batches_of, observe
from bertology_utils.attention import ByNorm, vectors
from bertology_utils.attention.hooks import attention_hooks
from bertology_utils.norms import heads, measure, plots, special_tokens
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
    return tuple(zip(*(by_index[index] for index in sorted(by_index)), strict=True))


@pytest.mark.parametrize("words_go", [False, True])
def test_what_is_cut_is_gone_and_nothing_else_changes(model, tokenizer, batches, words_go):
    (batch,) = batches
    targets, words = masks_of(batches, tokenizer)
    both = special_tokens.side_by_side(
        [np.stack(pair) for pair in zip(targets, words, strict=True)], batch
    )
    order = torch.rand(both[:, 1].shape).masked_fill(~both[:, 1], 2.0).argsort(dim=1)
    cutter = special_tokens._Cutter(both, order, batch, words_go)
    before = attention_maps(model, batch)[1]
    after = cutter.edit(1, before, None)
    target, of_words = both[:, None, None, 0], both[:, None, None, 1]
    mass = torch.minimum((before * target).sum(dim=3), (before * of_words).sum(dim=3))
    lost = torch.where(of_words if words_go else target, before - after, 0).sum(dim=3)
    torch.testing.assert_close(lost, mass)
    kept = ~(of_words if words_go else target).expand_as(before)
    assert torch.equal(after[kept], before[kept])
    assert after.min() >= -1e-12
    if words_go:  # word by word: at most one word of a row is cut in part
        part = (after > 1e-12) & (after < before - 1e-12)
        assert part.sum(dim=3).max() == 1
    evenly = special_tokens._Cutter(both, order, batch, words_go, "the mean").edit(1, before, None)
    torch.testing.assert_close(evenly.sum(dim=3), before.sum(dim=3))
    keys = batch.mask[:, None, None].expand_as(before)
    share = (mass / batch.mask.sum(dim=1)[:, None, None])[..., None].expand_as(before)
    torch.testing.assert_close((evenly - after)[keys], share[keys])


def test_cutting_equals_an_edit_made_by_hand(model, tokenizer, batches):
    targets, words = masks_of(batches, tokenizer)
    found = special_tokens.cut(model, batches, targets, words, seed=1)

    def without_first(layer, maps, mask):
        special = torch.isin(
            batches[0].inputs["input_ids"], torch.tensor(tokenizer.all_special_ids)
        )
        mass = torch.minimum(maps[..., 0], (maps * ~special[:, None, None]).sum(dim=3))
        maps = maps.clone()
        maps[..., 0] -= mass
        return maps

    with torch.inference_mode():
        whole = model(**batches[0].inputs).logits.softmax(dim=1)
        with attention_hooks(model, edit_maps=without_first):
            cut = model(**batches[0].inputs).logits.softmax(dim=1)
    expected = (cut - whole).abs().sum(dim=1) / 2
    np.testing.assert_allclose(found.moved[batches[0].index, 0], expected, atol=1e-9)
    assert found.moved.max() > 0.001
    assert found.mass.min() > 0


@pytest.mark.parametrize("name", NAMES)
def test_every_architecture_can_be_cut(name):
    other, own_tokenizer = model_and_tokenizer(name)
    made = batches_of(PAIRS, own_tokenizer)
    targets, words = masks_of(made, own_tokenizer)
    found = special_tokens.cut(other, made, targets, words, seed=1)
    assert np.isfinite(found.moved).all() and (found.mass > 0).all()


def test_mean_lengths_are_those_of_the_vectors(model, tokenizer, batches):
    targets, words = masks_of(batches, tokenizer)
    kinds = [np.stack(pair) for pair in zip(targets, words, strict=True)]
    found = special_tokens.mean_lengths(model, batches, kinds)
    (batch,) = batches
    for layer, f in enumerate(vectors(model, batch)):
        by_token = f.norm(dim=3).mean(dim=1)  # (examples, tokens)
        for kind in range(2):
            chosen = [
                by_token[row, : len(kinds[index][kind])][kinds[index][kind]]
                for row, index in enumerate(batch.index)
            ]
            np.testing.assert_allclose(found[kind, layer], torch.cat(chosen).mean(), rtol=1e-9)


def test_heads_that_agree_and_heads_that_do_not():
    rng = np.random.default_rng(0)
    first = rng.random((60, 3, 4)) * 0.1 + np.linspace(0, 1, 12).reshape(3, 4)
    same = heads.agreement(first, 2 * first, 1)
    assert same.rank.value == pytest.approx(1)
    assert same.first == same.second == (2, 3)
    assert same.held_out.value == pytest.approx(0)
    other = heads.agreement(first, 1 - first, 1)
    assert other.rank.value == pytest.approx(-1)
    assert other.second == (0, 0)
    assert other.held_out.value < -0.8
    with pytest.raises(ValueError, match="too few"):
        heads.agreement(first[:3], first[:3], 1)


def test_heads_are_ranked_in_either_direction_by_itself():
    """Heads point more often one way than the other, by weight and by norm. That says nothing of which heads do so."""
    rng = np.random.default_rng(0)
    one, other = (
        rng.random((2, 3, 4)) + [[[0.0]], [[5.0]]] for _ in range(2)
    )  # (directions, layers, heads)
    first, second = (rng.normal(0, 0.01, (60, 2, 3, 4)) + means for means in (one, other))
    rank = heads.agreement(first, second, 1).rank
    each = [
        spearmanr(a.ravel(), b.ravel()).statistic
        for a, b in zip(first.mean(axis=0), second.mean(axis=0), strict=True)
    ]
    assert rank.value == pytest.approx(np.mean(each)) and rank.n == 60
    both = spearmanr(first.mean(axis=0).ravel(), second.mean(axis=0).ravel()).statistic
    assert both > 0.7 > 0.4 > rank.value, "what 24 values of 12 heads would say"


def test_words_only_leaves_special_tokens_out_by_weight_and_by_norm(model, tokenizer, batches):
    class Last:
        def update(self, layer, maps, batch):
            self.maps = maps

        def compute(self):
            return self.maps

    (batch,), ids = batches, tokenizer.all_special_ids
    words = ~torch.isin(batch.inputs["input_ids"], torch.tensor(ids))[:, None, None]
    both = {
        "outer": ByNorm(heads.WordsOnly(Last(), ids)),
        "inner": heads.WordsOnly(ByNorm(Last()), ids),
    }
    found = observe(model, batches, {"weight": heads.WordsOnly(Last(), ids)} | both)
    for name, way in (("weight", "weight"), ("outer", "norm"), ("inner", "norm")):
        expected = attention_maps(model, batch, way)[-1] * words
        torch.testing.assert_close(found[name], expected / expected.sum(dim=3, keepdim=True))


def test_no_interval_of_a_distance_or_a_correlation_is_drawn_beyond_what_can_be():
    def entry(what, value, low, high, **labels):
        return {"what": what, "value": value, "low": low, "high": high} | labels

    rows = [
        entry(f"how far answers move, {way} instead", 0.01, -0.02, 0.04, task="mrpc", kind=kind)
        for way in special_tokens.INSTEAD
        for kind in special_tokens.CUT_FROM
    ]
    rows.append(
        entry(measure.RANKS.format("dependencies"), 0.98, 0.95, 1.01, kind="obj, pre-trained")
    )
    runs = {"this run": Results({"notebook": "7", "rows": rows})}
    for figure, beyond in (
        (plots.answers_moved(runs), lambda ends: min(ends) < 0),
        (plots.ranks(runs, measure.SAME), lambda ends: max(ends) > 1),
    ):
        intervals = [
            line.get_xdata()
            for ax in figure.axes
            for line in ax.lines
            if line.get_gid() == "interval"
        ]
        assert intervals and not any(beyond(ends) for ends in intervals)
        plt.close(figure)
