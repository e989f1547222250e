"""Notebook 10: what a fine-tuning has to do without, pairs of heads, and layers put back."""

import dataclasses

import numpy as np
import pytest
import torch
from conftest import batches_of_rows, make_rows, random_classifier
from precision import forward_tolerance
from scipy.spatial.distance import jensenshannon

from bertology_utils import cache, finetune
from bertology_utils.attention import attention_maps, observe
from bertology_utils.disabling.effects import losses
from bertology_utils.disabling.masking import replace_outputs, replacement
from bertology_utils.disabling.sweep import without_sets
from bertology_utils.drift.measure import EMBEDDINGS, reset_logits
from bertology_utils.glue import TASKS
from bertology_utils.models import load_classifier, load_tokenizer, predict_logits
from bertology_utils.pruning import cuts, measure, pairs
from bertology_utils.pruning.cuts import ANY, BAD, FROZEN, GOOD, NONE, RANDOM, SMALLEST, Cut
from bertology_utils.settings import Recipe, parse_model

TASK = TASKS["sst2"]
RECIPE = Recipe(learning_rate=3e-3, epochs=2, batch_size=8, max_length=32)


@pytest.fixture
def training(tiny_bert):
    return finetune.Training(
        task=TASK, source=parse_model(str(tiny_bert)), rows=make_rows(TASK), recipe=RECIPE
    )


@pytest.fixture
def model(tiny_bert):
    return random_classifier(tiny_bert, TASK)


@pytest.fixture
def batches(tiny_bert):
    return batches_of_rows(TASK, 24, load_tokenizer(str(tiny_bert)), 32, tokens_per_batch=300)


LABELS = np.asarray(make_rows(TASK, 24)["label"])


# --- what a training has to do without ---


@pytest.mark.parametrize("kind", [SMALLEST, ANY])
@pytest.mark.parametrize("size", [0.3, 0.6])
def test_a_taken_weight_is_exactly_zero_after_training_and_the_others_learn(training, kind, size):
    cut = Cut(kind, size)
    start = load_classifier(training.start, TASK, seed=training.seed)
    masks = cuts.weight_masks(start, size, None if kind == SMALLEST else training.seed)
    tuned = finetune.finetuned(dataclasses.replace(training, cut=cut))
    assert len(masks) == 3 * 6, "six matrices in each of three layers"
    for name, mask in masks.items():
        weight, before = tuned.get_parameter(name), start.get_parameter(name)
        assert (weight[~mask] == 0).all() and (~mask).float().mean().item() == pytest.approx(
            size, abs=1e-3
        )
        assert (weight[mask] != before[mask]).float().mean() > 0.9
        if kind == SMALLEST:
            assert before[~mask].abs().max() <= before[mask].abs().min()


def test_good_and_bad_halves_share_no_head_and_what_goes_stays_gone(training):
    kept = {kind: Cut(kind, 0.5).kept_heads(training) for kind in (GOOD, RANDOM, BAD)}
    assert all(mask.sum() == 6 for mask in kept.values())
    assert (kept[GOOD] ^ kept[BAD]).all()
    importance = cuts.importance_of(training)
    assert importance[kept[GOOD]].min() >= importance[kept[BAD]].max()
    kept[NONE] = np.zeros_like(kept[BAD])
    for kind in (BAD, NONE):
        tuned = finetune.finetuned(dataclasses.replace(training, cut=Cut(kind, 0.5)))
        for layer, of_layer in zip(tuned.base_model.encoder.layer, kept[kind], strict=True):
            by_head = (
                layer.attention.output.dense.weight.unflatten(1, (4, -1)).abs().sum(dim=(0, 2))
            )
            assert ((by_head > 0).numpy() == of_layer).all()


@pytest.mark.parametrize(("size", "frozen"), [(1 / 3, 1), (2 / 3, 2), (1, 3), (0, 0)])
def test_frozen_are_the_embeddings_and_the_lowest_layers(training, size, frozen):
    start = load_classifier(training.start, TASK, seed=training.seed)
    tuned = finetune.finetuned(dataclasses.replace(training, cut=Cut(FROZEN, size)))

    def parts(model):
        return [model.base_model.embeddings, *model.base_model.encoder.layer, model.classifier]

    same = [
        all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
        for one, other in zip(parts(start), parts(tuned), strict=True)
    ]
    assert same == [True] * (1 + frozen) + [False] * (4 - frozen) if size else True


def test_nothing_can_be_learnt_from_shuffled_labels(training):
    rows = Cut(GOOD, 0.5, shuffled=True).rows(training)
    assert (
        rows["sentence"][:] == training.rows["sentence"][:]
        and rows.features == training.rows.features
    )
    assert sorted(rows["label"]) == sorted(training.rows["label"])
    assert np.mean(np.array(rows["label"]) == np.array(training.rows["label"])) < 0.7


def test_every_cut_has_a_training_of_its_own(training):
    keys = [
        cache.cache_key(finetune.train, dataclasses.replace(training, cut=cut))
        for cut in (None, *cuts.cuts_of(0))
    ]
    assert len({cache.key_digest(key) for _, key in keys}) == len(keys) == 13
    assert set(cuts.cuts_of(2)) < set(cuts.cuts_of(0))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda model: Cut("halves", 0.5), "unknown cut 'halves'; choose one of: frozen, "),
        (lambda model: Cut(FROZEN, 1.5), "size=1.5 is out of range; it is a share, from 0 to 1"),
        (lambda model: cuts.weight_masks(model, 1.0), "no weight would be left"),
        (lambda model: cuts.freeze(model, 4), "layers=4 is out of range; the model has 3"),
        (
            lambda model: cuts.head_masks(model, np.ones((3, 5), bool)),
            r"a mask of \(3, 5\) for a model of \(3, 4\)",
        ),
        (
            lambda model: cuts.zero(model, {"classifier.weight": torch.ones(3, 3)}),
            r"a mask of \(3, 3\) for a parameter of",
        ),
        (lambda model: cuts.layers_of(model.classifier), "is not built like BERT"),
        (lambda model: pairs.with_copy(model, (0, 1), 1), "cannot be copied to its own place"),
        (
            lambda model: without_sets(model, [], np.eye(3, dtype=bool)),
            r"sets of shape \(3, 3\): \(sets, 4 heads\)",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_words(model, wrong, said):
    if said.startswith("is not"):
        model.classifier.base_model = torch.nn.Linear(1, 1)
    with pytest.raises(ValueError, match=said):
        wrong(model)


def test_no_head_left_is_refused_before_training(training):
    with pytest.raises(ValueError, match="no head would be left"):
        Cut(RANDOM, 1.0).kept_heads(training)


# --- pairs ---


def test_sets_of_heads_are_removed_as_by_a_pass_for_each(model, batches):
    sets = pairs.sets_of(4)
    assert len(sets) == 1 + 4 + 6 + 4 and sets[0].sum() == 0 and (sets[-4:].sum(axis=1) == 3).all()
    found, zeros = without_sets(model, batches, sets), replacement(model, batches, "zero")
    tolerance = forward_tolerance(model, ways=10)
    for layer, number in [(0, 1), (0, 7), (1, 12), (2, 5), (2, 14)]:
        with replace_outputs(
            model, [(layer, int(head)) for head in np.flatnonzero(sets[number])], zeros
        ):
            assert np.abs(found[layer, number] - predict_logits(model, batches)).max() < tolerance
    assert np.abs(found[:, 0] - predict_logits(model, batches)).max() < tolerance


def test_interactions_and_matches_by_a_plain_reading(model, batches):
    found = pairs.Pairs(TASK, without_sets(model, batches, pairs.sets_of(4)), LABELS, 4)
    assert len(found.pairs) == 6
    loss = losses(TASK, found.outputs, LABELS)
    for pair, (a, b) in enumerate(found.pairs):
        both = loss[:, 5 + pair] - loss[:, 1 + a] - loss[:, 1 + b] + loss[:, 0]
        assert np.allclose(found.interactions[:, pair], both)
    chosen = np.zeros((3, 6), bool)
    chosen[1, 2] = True
    one, other = found.matched(chosen, ~chosen)
    distance = ((found.single[1] - found.single[1, 2]) ** 2).sum(axis=1)
    distance[2] = np.inf
    assert one.tolist() == [[1, 2]] and other.tolist() == [[1, int(distance.argmin())]]
    difference = found.beyond_matched(chosen, ~chosen, 1)
    means = found.interactions.mean(axis=2)
    assert difference.value == pytest.approx(means[1, 2] - means[1, distance.argmin()])
    assert np.isnan(found.beyond_matched(np.zeros_like(chosen), chosen, 1).value)


def test_patterns_that_two_heads_share_do_not_count_heterogeneous():
    patterns = np.array([[0, 0, pairs.HETEROGENEOUS, pairs.HETEROGENEOUS, 1]])
    of_heads = pairs.Pairs(
        TASK, np.zeros((1, len(pairs.sets_of(5)), 2, 2)), np.zeros(2, int), 5
    ).pairs
    same, other = pairs.alike_and_other(patterns, of_heads)
    assert [tuple(pair) for pair in of_heads[same[0]]] == [(0, 1)]
    assert other.sum() == 10 - 2, "the two heterogeneous ones are neither"


def test_a_planted_copy_interacts_and_leaves_the_model_as_without_the_lost_head(model, batches):
    planted = pairs.with_copy(model, (1, 2), 0)
    with replace_outputs(model, [(1, 0)], replacement(model, batches, "zero")):
        expected = predict_logits(model, batches)
    assert np.abs(predict_logits(planted, batches) - expected).max() < forward_tolerance(
        model, ways=10
    )
    maps = attention_maps(planted, batches[0])[1]
    assert torch.equal(maps[:, 0], maps[:, 2])


def test_made_up_interactions_are_found_and_exchanged_patterns_give_the_p_value():
    """Heads 0 to 2 of each layer share a pattern and interact; the chance of that among exchanged patterns is small."""
    rng = np.random.default_rng(0)
    sets = pairs.sets_of(6)
    rises = 0.1 * sets.sum(axis=1) + 0.2 * (sets[:, :3].sum(axis=1) == 2) * (sets.sum(axis=1) == 2)
    loss = np.broadcast_to(0.5 + rises, (4, len(sets)))[..., None] + 0.01 * rng.standard_normal(
        (4, len(sets), 60)
    )
    outputs = np.stack(
        [np.zeros_like(loss), np.log(np.expm1(loss))], axis=-1
    )  # of label 0: −log p = loss
    found = pairs.Pairs(TASK, outputs, np.zeros(60, dtype=int), 6)
    patterns = np.tile([0, 0, 0, 1, 2, pairs.HETEROGENEOUS], (4, 1))
    estimate = found.beyond_matched(*pairs.alike_and_other(patterns, found.pairs), 1)
    assert estimate.value == pytest.approx(0.2, abs=0.02)
    assert found.chance(patterns, 1, draws=200) < 0.02
    assert found.chance(np.roll(patterns, 3, axis=1), 1, draws=200) > 0.05


def test_distances_between_heads_are_those_of_scipy(model, batches):
    found = observe(model, batches, {"distances": pairs.HeadDistances(3)})["distances"]
    assert found.shape == (24, 3, 4, 3, 4)
    batch = batches[0]
    maps, length = attention_maps(model, batch), int(batch.lengths[0])
    for (layer, head), (layer_too, head_too) in [((0, 1), (0, 3)), ((0, 1), (2, 0))]:
        rows = zip(
            maps[layer][0, head, :length, :length],
            maps[layer_too][0, head_too, :length, :length],
            strict=True,
        )
        expected = np.mean([jensenshannon(p.numpy(), q.numpy(), 2) ** 2 for p, q in rows])
        assert found[batch.index[0], layer, head, layer_too, head_too] == pytest.approx(
            expected, abs=1e-5
        )
    shuffled = found.copy()
    shuffled[:, 1, :, 1] = 0
    assert pairs.closer_within(shuffled, 1).value > pairs.closer_within(found, 1).value


# --- layers put back, heads that go ---


def test_all_put_back_gives_the_start_and_none_the_fine_tuned(tiny_bert, model, batches):
    start = random_classifier(tiny_bert, TASK, seed=3)
    start.classifier.load_state_dict(model.classifier.state_dict())
    start.bert.pooler.load_state_dict(model.bert.pooler.state_dict())
    everything = tuple(range(EMBEDDINGS, 3))
    whole, back, upper = reset_logits(model, start, [(), everything, (0, 1, 2)], batches)
    assert np.abs(whole - predict_logits(model, batches)).max() < 1e-6
    assert np.abs(back - predict_logits(start, batches)).max() < 1e-6
    assert np.abs(upper - back).max() > 1e-3, "the embeddings are another's"


def test_another_models_layers_are_refused(tiny_bert, model, batches):
    other = load_classifier(str(tiny_bert), "mnli")
    with pytest.raises(ValueError, match="of the same tensors only"):
        reset_logits(model, other, [()], batches)


@pytest.mark.parametrize(("heads", "gone"), [(72, 27), (144, 54), (20, 8), (12, 4)])
def test_three_of_eight_steps_are_three_eighths_of_any_models_heads(heads, gone):
    assert measure.heads_after(3, heads) == gone
    assert (measure.heads_after(0, heads), measure.heads_after(measure.STEPS, heads)) == (0, heads)


def test_the_order_of_pruning_is_asked_anew(model, batches):
    once, anew = measure.pruning_order(model, batches, 12), measure.pruning_order(model, batches, 3)
    assert (
        sorted(once) == sorted(anew) == [(layer, head) for layer in range(3) for head in range(4)]
    )
    assert once[:3] == anew[:3] and once != anew
    importance = cuts.importance(model, batches)
    assert once[0] == tuple(np.unravel_index(importance.argmin(), importance.shape))


def test_the_head_that_stays_is_chosen_on_other_examples():
    """With answers of which each head's are right in one half only, a choice on the same examples would look better."""
    rng = np.random.default_rng(1)
    right = rng.random((2, 3, 40)) < 0.5
    outputs = np.zeros((2, len(pairs.sets_of(3)), 40, 2))
    outputs[:, 0, :, 1] = 1.0
    outputs[:, -3:, :, 1] = np.where(right, 1.0, -1.0)
    found = pairs.Pairs(TASK, outputs, np.ones(40, dtype=int), 3)
    changes = measure.one_head_left(found, 1)
    assert [change.value for change in changes] == pytest.approx([-0.5, -0.5], abs=0.2)
    assert max(right.mean(axis=2).max(axis=1)) - 1 > min(change.value for change in changes)
