"""What notebook 7 measures: attention cut, lengths of vectors, heads by weight and by norm."""

import copy

import numpy as np
import pytest
import torch
from conftest import place_release
from eight_models import NAMES, PAIRS, model_and_tokenizer
from scipy.stats import spearmanr

from bertology_utils import attention_maps, batches_of, observe
from bertology_utils.attention import ByNorm, make_batches, vectors
from bertology_utils.attention.hooks import attention_hooks
from bertology_utils.features import side_by_side
from bertology_utils.framenet.measure import FORWARD, FrameLinkAttention
from bertology_utils.glue import TASKS
from bertology_utils.norms import carried, cuts, figures, links, measure
from bertology_utils.norms.links import TUNED
from bertology_utils.results import Results
from bertology_utils.statistics import mean_over_seeds
from bertology_utils.verdicts import FAILS, HOLDS, PRETRAINED, UNTESTABLE, judge


@pytest.fixture(scope="module")
def model():
    return copy.deepcopy(model_and_tokenizer("BERT")[0]).double()


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


@pytest.mark.parametrize("source", cuts.CUT_FROM)
def test_what_is_cut_is_gone_and_nothing_else_changes(model, tokenizer, batches, source):
    (batch,) = batches
    masks = side_by_side(list(map(np.stack, masks_of(batches, tokenizer))), batch)
    order = cuts.word_order(masks[:, 1], batch.index, seed=1)
    before = attention_maps(model, batch)[1]
    norms = torch.stack([f.norm(dim=3) for f in vectors(model, batch)])[1]
    gone = cuts.part_to_cut(before, norms, masks, order, source)
    sink, words = masks[:, None, None, 0], masks[:, None, None, 1]
    assert not gone[~(words if "words" in source else sink).expand_as(before)].any()
    assert gone.min() >= 0 and (before - gone).min() >= -1e-12
    to_sink, both = before * sink, [(before * kind).sum(dim=3) for kind in (sink, words)]
    if source == "the sink":
        torch.testing.assert_close(gone, to_sink)
    elif source == "words of the sink's norm":
        losing = (gone > 0).any(dim=1).any(dim=1).sum(dim=1)  # words of each example
        assert (losing == (words.sum(dim=3) + 1).flatten() // 2).all()
        carried, wanted = (torch.einsum("ehqk,ehk->ehq", part, norms) for part in (gone, to_sink))
        assert (carried < wanted + 1e-9).all() and (carried > wanted - 1e-9).any()
    else:
        torch.testing.assert_close(gone.sum(dim=3), torch.minimum(*both))
    if source == "words":  # word by word: at most one word of a row is cut in part
        part = (before - gone > 1e-12) & (gone > 1e-12)
        assert part.sum(dim=3).max() == 1


def edited(model, batch, edit):
    """Outputs of a classifier whose maps are changed by hand."""
    with torch.inference_mode(), attention_hooks(model, edit_maps=edit):
        return model(**batch.inputs).logits


@pytest.mark.parametrize("instead", cuts.INSTEAD)
def test_cutting_equals_an_edit_made_by_hand(model, tokenizer, batches, instead):
    (batch,) = batches
    found = cuts.cut_attention(
        model, batches, masks_of(batches, tokenizer), 1, [("the sink", instead)]
    )

    def without_first(layer, maps, mask):
        mass = maps[..., 0].clone()
        maps = maps.clone()
        maps[..., 0] = 0
        for row, length in enumerate(batch.lengths.tolist()):
            if instead == "the mean":
                maps[row, ..., :length] += mass[row, ..., None] / length
        return maps / maps.sum(dim=3, keepdim=True) if instead == "the rest" else maps

    by_hand = edited(model, batch, without_first)
    np.testing.assert_allclose(found.outputs[batch.index, 0], by_hand, atol=1e-9)
    with torch.inference_mode():
        np.testing.assert_allclose(found.whole[batch.index], model(**batch.inputs).logits)
    assert measure.answers_moved(found).max() > 0.001
    on_first = (attention_maps(model, batch)[0][..., 0] * batch.mask[:, None]).sum(dim=2)
    share = (on_first.mean(dim=1) / batch.lengths).numpy()
    np.testing.assert_allclose(found.gone[batch.index, 0, 0], share, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_every_architecture_can_be_cut(name):
    other, own_tokenizer = model_and_tokenizer(name)
    batches = batches_of(PAIRS, own_tokenizer)
    found = cuts.cut_attention(other, batches, masks_of(batches, own_tokenizer), 1)
    assert np.isfinite(found.outputs).all() and (found.gone > 0).all()


def test_an_input_without_the_sink_is_refused_by_its_number(model, tokenizer, batches):
    masks = masks_of(batches, tokenizer)
    masks[1] = np.zeros_like(masks[1][0]), masks[1][1]
    with pytest.raises(ValueError, match="input 2 has no sink; leave it out"):
        cuts.cut_attention(model, batches, masks, 1)
    with pytest.raises(ValueError, match="unknown instead 'zero'"):
        cuts.cut_attention(model, batches, masks_of(batches, tokenizer), 1, [("words", "zero")])


def test_of_an_input_without_words_none_are_cut(model, tokenizer, batches):
    masks = masks_of(batches, tokenizer)
    masks[0] = masks[0][0], np.zeros_like(masks[0][1])
    found = cuts.cut_attention(model, batches, masks, 1)
    of_words = ["words" in source for source, _ in cuts.CUTS]
    assert not found.gone[0, of_words].any() and (found.gone[1:, of_words] > 0).all()
    np.testing.assert_allclose(found.outputs[0, -1], found.whole[0], atol=1e-9)


def special_of(batches, tokenizer):
    """[CLS], separators and no punctuation of every example."""
    return [
        np.stack([cls, ~cls & ~words, np.zeros_like(cls)])
        for cls, words in masks_of(batches, tokenizer)
    ]


def test_what_is_carried_is_that_of_explicit_vectors(model, tokenizer, batches):
    (batch,), special = batches, special_of(batches, tokenizer)
    found = carried.carried(model, batches, special)
    maps = attention_maps(model, batch)
    for layer, f in enumerate(vectors(model, batch)):
        for row, index in enumerate(batch.index):
            length = len(special[index][0])
            own, a = f[row, :, :length], maps[layer][row, :, :length, :length]
            kinds = np.vstack([special[index], ~special[index].any(axis=0)])
            sent = a[..., None] * own[:, None]  # (heads, queries, keys, hidden)
            output = sent.sum(dim=2)
            direction = output / output.norm(dim=2, keepdim=True)
            for at, kind in enumerate(kinds):
                if not kind.any():
                    assert np.isnan(found.lengths[index, at]).all()
                    continue
                expected = own[:, kind].norm(dim=2).mean(dim=1)
                np.testing.assert_allclose(found.lengths[index, at, layer], expected, rtol=1e-5)
                along = (sent[:, :, kind].sum(dim=2) * direction).sum(dim=2).mean(dim=1)
                np.testing.assert_allclose(
                    found.by_projection[index, at, layer], along, rtol=1e-4, atol=1e-6
                )
            whole = output.norm(dim=2).mean(dim=1)
            summed = found.by_projection[index, :, layer].sum(axis=0)
            np.testing.assert_allclose(summed, whole, rtol=1e-5)
            squares = np.linalg.svd(output.numpy(), compute_uv=False) ** 2
            share = squares / squares.sum(axis=1, keepdims=True)
            rank = 1 / (share**2).sum(axis=1)
            np.testing.assert_allclose(found.rank[index, layer], rank, rtol=1e-5)


def test_a_uniform_share_is_what_every_token_gets_when_all_get_the_same():
    special = [np.zeros((3, 10), dtype=bool), np.zeros((3, 4), dtype=bool)]
    for one in special:
        one[0, 0] = one[1, -1] = True  # no punctuation
    even = np.array([[1 / len(one.T), 1 / len(one.T), 0] for one in special])
    shares = np.tile(even[:, None, None], (1, 2, 3, 1))  # (examples, layers, heads, marks)
    found = measure.uniform_shares(shares, special)
    assert found.shape == (2, 2, 4) and np.isnan(found[..., 2]).all()
    np.testing.assert_allclose(found[..., [0, 1, 3]], 1)
    np.testing.assert_allclose(measure.uniform_shares(3 * shares, special)[..., 0], 3)


class Notes:
    """In place of a lab: keeps what is recorded and judged."""

    def __init__(self, tasks):
        self.rows, self.judged, self.learned = {}, {}, dict.fromkeys(tasks, True)

    def resampling_seed(self, task):
        return 1

    def record(self, what, values, *_, **__):
        self.rows[what] = values

    def judge(self, claim, estimates, **_):
        self.judged[claim] = judge(claim, estimates)


@pytest.mark.parametrize(("broadcasts", "outcome"), [(True, FAILS), (False, HOLDS)])
def test_a_sink_that_is_broadcast_is_told_from_one_that_does_nothing(broadcasts, outcome):
    """By hand: of two heads one rests on [CLS], whose vector is long and all that it adds, or next to nothing."""
    rng, task = np.random.default_rng(0), TASKS["mrpc"]
    weight = np.zeros((40, 1, 2, 7))
    weight[..., 0] = [0.9, 0.1]
    parts = rng.uniform(0.1, 0.2, (40, 4, 1, 2))
    parts[:, 0, :, 0] = 5 if broadcasts else 0.01
    rank = np.tile([1.0, 9.0], (40, 1, 1))
    own = carried.Carried(parts, parts, rank)
    models = {state: {task: [{"weight": weight, "carried": own}]} for state in (PRETRAINED, TUNED)}
    lab = Notes([task])
    measure.record_resting_heads(lab, models, "[CLS]")
    assert lab.judged["sink-idle"].outcome == outcome
    ratio = lab.rows["participation ratio of a head's outputs"][PRETRAINED]
    assert ratio == {"rest on the sink": 1, "other heads": 9}
    lab, weight[..., 0] = Notes([task]), 0.1
    measure.record_resting_heads(lab, models, "[CLS]")
    assert lab.judged["sink-idle"].outcome == UNTESTABLE


def test_the_strongest_weights_along_frame_links_are_those_of_notebook_2(model, tokenizer):
    placed, inputs = place_release(tokenizer)
    placed, batches = placed[:40], make_batches(inputs.select(range(40)), tokenizer)
    found = links.observe_frame_links(
        model, batches, [one.pairs(FORWARD) for one in placed], tokenizer.all_special_ids
    )
    links_alone = FrameLinkAttention([[one.pairs(FORWARD)] for one in placed])
    expected = observe(model, batches, {"links": links_alone})["links"]
    np.testing.assert_allclose(found["by weight"], expected.actual, rtol=1e-6)
    assert (found["words only"] > found["by weight"]).any()


def test_a_head_chosen_by_another_measurement_is_measured_on_the_other_half():
    rng = np.random.default_rng(0)
    first = rng.random((60, 1, 3, 4)) * 0.1 + np.linspace(0, 1, 12).reshape(3, 4)
    assert links.held_out_gain(first, 2 * first, 1).value == pytest.approx(0)
    assert links.held_out_gain(first, 1 - first, 1).value < -0.8
    noise = rng.random((60, 1, 3, 4))  # its highest head is chosen by luck, which is not measured
    assert links.held_out_gain(noise, first, 1).value == pytest.approx(0, abs=0.15)
    with pytest.raises(ValueError, match="3 examples are too few"):
        links.held_out_gain(first[:3], first[:3], 1)


def test_heads_are_ranked_in_either_direction_by_itself():
    """Heads point more often one way than the other, by weight and by norm. That says nothing of which heads do so."""
    rng = np.random.default_rng(0)
    # Each (directions, layers, heads).
    one, other = (rng.random((2, 3, 4)) + [[[0.0]], [[5.0]]] for _ in range(2))
    first, second = (rng.normal(0, 0.01, (60, 2, 3, 4)) + means for means in (one, other))
    rank = links.rank_of_heads(first, second, 1)
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
        "weight": links.WordsOnly(Last(), ids),
        "norm": ByNorm(links.WordsOnly(Last(), ids)),
    }
    found = observe(model, batches, measurements)
    for name in found:
        expected = attention_maps(model, batch, name)[-1] * words
        torch.testing.assert_close(found[name], expected / expected.sum(dim=3, keepdim=True))


def test_the_interval_of_a_distance_is_above_0():
    rng = np.random.default_rng(0)
    runs = [measure.doublings(rng.exponential(size, 40), 1) for size in (0.0002, 0.003, 0.0004)]
    mean = mean_over_seeds(runs)
    told = measure.from_doublings(mean)
    assert 0 < told["low"] < told["value"] < told["high"]
    of_runs = [2**one.value for one in runs]
    assert told["value"] == pytest.approx(np.prod(of_runs) ** (1 / 3), abs=1e-6)
    assert measure.doublings(np.zeros(40), 1).value == pytest.approx(np.log2(1e-6))


def test_a_run_with_too_few_links_says_so_in_its_figures():
    nothing = Results({"notebook": "7", "facts": {}, "rows": []})
    for draw in (figures.heads_both_ways, figures.ranks):
        (ax,) = draw(nothing).axes
        assert ax.texts[0].get_text() == "not measured in this run"
