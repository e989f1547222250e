"""What notebook 7 measures beside norms: cutting attention, gradients, heads both ways, what falls."""

import copy

import numpy as np
import pytest
import torch
from eight_models import NAMES, PAIRS, model_and_tokenizer

from bertology_utils import attention_maps, batches_of, observe
from bertology_utils.attention import ByNorm, vectors
from bertology_utils.attention.interface import reaching
from bertology_utils.features.flow import DESTINATIONS
from bertology_utils.links.dependencies import Arcs
from bertology_utils.patterns.labelled_maps import PATTERNS
from bertology_utils.weighing import cutting, falls, gradients, heads, lengths, patterned


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
def test_what_is_cut_is_gone_and_rows_still_sum_to_one(model, tokenizer, batches, words_go):
    (batch,) = batches
    targets, words = masks_of(batches, tokenizer)
    both = cutting.side_by_side([np.stack(pair) for pair in zip(targets, words, strict=True)], batch)
    order = torch.rand(both[:, 1].shape).masked_fill(~both[:, 1], 2.0).argsort(dim=1)
    cutter = cutting._Cutter(both, order, batch, words_go)
    before = attention_maps(model, batch)[1]
    after = cutter.edit(1, before, None)
    torch.testing.assert_close(after.sum(dim=3), before.sum(dim=3))
    target, of_words = both[:, None, None, 0], both[:, None, None, 1]
    mass = torch.minimum((before * target).sum(dim=3), (before * of_words).sum(dim=3))
    whole = after * (1 - mass)[..., None]
    lost = torch.where(of_words if words_go else target, before - whole, 0).sum(dim=3)
    torch.testing.assert_close(lost, mass)
    kept = ~(of_words if words_go else target).expand_as(before)
    torch.testing.assert_close(whole[kept], before[kept])
    assert after.min() >= -1e-12
    if words_go:  # word by word: at most one word of a row is cut in part
        part = (whole > 1e-12) & (whole < before - 1e-12)
        assert part.sum(dim=3).max() == 1


def test_cutting_equals_an_edit_made_by_hand(model, tokenizer, batches):
    targets, words = masks_of(batches, tokenizer)
    found = cutting.cut(model, batches, targets, words, seed=1)

    def without_first(layer, maps, mask):
        special = torch.isin(batches[0].inputs["input_ids"], torch.tensor(tokenizer.all_special_ids))
        mass = torch.minimum(maps[..., 0], (maps * ~special[:, None, None]).sum(dim=3))
        maps = maps.clone()
        maps[..., 0] -= mass
        return maps / maps.sum(dim=3, keepdim=True)

    with torch.inference_mode():
        whole = model(**batches[0].inputs).logits.softmax(dim=1)
        with reaching(model, edit_maps=without_first):
            cut = model(**batches[0].inputs).logits.softmax(dim=1)
    expected = (cut - whole).abs().sum(dim=1) / 2
    np.testing.assert_allclose(found.moved[batches[0].index, 0], expected, atol=1e-9)
    assert found.moved.max() > 0.001
    assert found.mass.min() > 0


def test_a_target_without_weight_moves_nothing(model, tokenizer, batches):
    targets, words = masks_of(batches, tokenizer)

    def never_first(layer, maps, mask):
        maps = maps.clone()
        maps[..., 0] = 0
        return maps / maps.sum(dim=3, keepdim=True)

    with reaching(model, edit_maps=never_first):
        found = cutting.cut(model, batches, targets, words, seed=1)
    np.testing.assert_allclose(found.moved, 0, atol=1e-12)
    np.testing.assert_allclose(found.mass, 0, atol=1e-12)


def test_cutting_and_gradients_refuse_in_words(model, tokenizer, batches):
    targets, words = masks_of(batches, tokenizer)
    nothing = [np.zeros_like(mask) for mask in targets]
    with pytest.raises(ValueError, match="input 1 has no tokens to cut"):
        cutting.cut(model, batches, nothing, words, 1)
    with pytest.raises(ValueError, match="input 1 has no words"):
        cutting.cut(model, batches, targets, nothing, 1)
    for call in (
        lambda: cutting.cut(model.base_model, batches, targets, words, 1),
        lambda: gradients.weight_gradients(model.base_model, batches, [mask[None] for mask in targets]),
    ):
        with pytest.raises(ValueError, match="no classifier"):
            call()


@pytest.mark.parametrize("name", NAMES)
def test_every_architecture_can_be_cut_and_differentiated(name):
    other, own_tokenizer = model_and_tokenizer(name)
    made = batches_of(PAIRS, own_tokenizer)
    targets, words = masks_of(made, own_tokenizer)
    found = cutting.cut(other, made, targets, words, seed=1)
    assert np.isfinite(found.moved).all() and (found.mass > 0).all()
    slopes = gradients.weight_gradients(other, made, [np.stack(pair) for pair in zip(targets, words, strict=True)])
    assert slopes.shape == (len(PAIRS), 2, other.config.num_hidden_layers)
    assert np.isfinite(slopes).all() and (slopes > 0).any()


def test_gradients_equal_finite_differences(model, tokenizer):
    batches = batches_of(PAIRS[:1], tokenizer)
    batch = batches[0]
    tokens = int(batch.lengths[0])
    layers, number = 3, 4
    each = [np.eye(tokens, dtype=bool)]  # every token a kind of its own
    found = gradients.weight_gradients(model, batches, each)[0]  # (tokens, layers)
    step, key = 1e-6, 2

    def answer(layer, head, query, change):
        def edit(at, maps, mask):
            if at == layer:
                maps = maps.clone()
                maps[0, head, query, key] += change
            return maps

        with torch.inference_mode(), reaching(model, edit_maps=edit):
            logits = model(**batch.inputs).logits[0]
        return float(logits.max() - logits.mean())

    for layer in range(layers):
        slopes = [
            abs(answer(layer, head, query, step) - answer(layer, head, query, -step)) / (2 * step)
            for head in range(number)
            for query in range(tokens)
        ]
        np.testing.assert_allclose(found[key, layer], np.mean(slopes), rtol=1e-4, atol=1e-9)


def test_mean_lengths_are_those_of_the_vectors(model, tokenizer, batches):
    targets, words = masks_of(batches, tokenizer)
    kinds = [np.stack(pair) for pair in zip(targets, words, strict=True)]
    found = lengths.mean_lengths(model, batches, kinds)
    (batch,) = batches
    for layer, f in enumerate(vectors(model, batch)):
        by_token = f.norm(dim=3).mean(dim=1)  # (examples, tokens)
        for kind in range(2):
            chosen = [by_token[row, : len(kinds[index][kind])][kinds[index][kind]] for row, index in enumerate(batch.index)]
            np.testing.assert_allclose(found[kind, layer], torch.cat(chosen).mean(), rtol=1e-9)


def flows(cls, others):
    """Shares of one example, two layers and two heads: so much to [CLS], so much to [SEP], the rest elsewhere."""
    shares = np.zeros((1, 2, 2, len(DESTINATIONS)))
    shares[..., 0], shares[..., 1], shares[..., -1] = cls, others, 1 - np.asarray(cls) - others
    return shares


def test_what_falls_and_what_a_token_gets():
    by_weight, by_norm = flows(np.array([[0.9, 0.6], [0.5, 0.2]]), 0.1), flows(0.1, 0.1)
    assert falls.fall(by_weight, by_norm, "[CLS]", 1).value == pytest.approx(0.45)
    assert falls.fall(by_weight, by_norm, "[SEP]", 1).value == pytest.approx(0)
    assert (falls.most_of(by_weight, "[CLS]"), falls.most_of(by_norm, "[CLS]")) == (2, 0)
    marks = np.zeros((3, 10), dtype=bool)
    marks[0, 0] = marks[1, [4, 9]] = True
    even = falls.in_even_shares(by_weight, [marks])
    assert even["[CLS]"] == pytest.approx(5.5)  # 0.55 of ten tokens' attention
    assert even["[SEP]"] == pytest.approx(0.5)  # 0.1, over two of them


def test_gradient_gap_is_the_part_that_is_missing():
    slopes = np.stack([np.full((50, 4), 0.2), np.full((50, 4), 0.8)], axis=1)
    assert falls.gradient_gap(slopes, 1).value == pytest.approx(0.75)


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


def test_examples_weigh_the_same_however_many_arcs_they_have():
    hits = np.zeros((2, 3, 1, 1), dtype=bool)
    hits[1, 0] = hits[1, 1] = True
    arcs = Arcs(np.array([4, 4, 9]), np.array([1, 1, 1]), hits, 10)
    assert heads.by_example(arcs)[..., 0, 0].tolist() == [[0, 1], [0, 0]]


def test_a_head_is_chosen_with_its_way():
    first = np.zeros((40, 2, 1, 3))
    first[:, 0, 0, 1], first[:, 1, 0, 2] = 0.5, 0.7
    second = first[:, ::-1]
    found = heads.agreement(first, second, 1)
    assert (found.first, found.second) == ((0, 2), (0, 2))
    assert found.held_out.value == pytest.approx(-0.7)  # by the other reading it is taken the other way


def test_words_only_leaves_special_tokens_out(batches, tokenizer):
    class Last:
        def update(self, layer, maps, batch):
            self.maps = maps

        def compute(self):
            return self.maps

    only = heads.WordsOnly(Last(), tokenizer.all_special_ids)
    (batch,) = batches
    maps = torch.rand(len(batch.index), 2, *([batch.mask.shape[1]] * 2)) * batch.mask[:, None, None]
    only.update(0, maps, batch)
    special = torch.isin(batch.inputs["input_ids"], torch.tensor(tokenizer.all_special_ids))
    found = only.compute()
    assert (found.masked_select(special[:, None, None].expand_as(found)) == 0).all()
    torch.testing.assert_close(found.sum(dim=3), torch.ones(found.shape[:3]))


def test_words_only_and_by_norm_go_together_in_either_order(model, tokenizer, batches):
    class Sum:
        total = 0.0

        def update(self, layer, maps, batch):
            self.total += float((maps * torch.arange(maps.shape[3])).sum())

        def compute(self):
            return self.total

    ids = tokenizer.all_special_ids
    plain, outer, inner = (
        heads.WordsOnly(Sum(), ids),
        ByNorm(heads.WordsOnly(Sum(), ids)),
        heads.WordsOnly(ByNorm(Sum()), ids),
    )
    found = observe(model, batches, {"weight": plain, "outer": outer, "inner": inner})
    assert found["outer"] == pytest.approx(found["inner"])
    assert abs(found["outer"] - found["weight"]) > 1e-3


def test_clearer_counts_the_chosen_heads_only():
    none = PATTERNS.index("heterogeneous")
    by_weight = np.full((20, 2, 2), none)
    by_norm = by_weight.copy()
    by_norm[:, 0, 1] = 0
    assert patterned.clearer(by_weight, by_norm, [(0, 1), (1, 1)], 1).value == pytest.approx(0.5)
    assert patterned.clearer(by_weight, by_norm, [(1, 0)], 1).value == pytest.approx(0)
