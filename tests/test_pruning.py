"""Notebook 10: prunings of a fine-tuning run, pairs of heads, and heads that go one by one."""

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
from bertology_utils.glue import TASKS
from bertology_utils.lab import Lab
from bertology_utils.models import load_classifier, load_tokenizer, predict_logits
from bertology_utils.pruning import measure, pairs, spec
from bertology_utils.pruning.spec import ANY, BAD, FROZEN, GOOD, NONE, RANDOM, SMALLEST, Pruning
from bertology_utils.settings import Recipe, parse_model

TASK = TASKS["sst2"]
RECIPE = Recipe(learning_rate=3e-3, epochs=2, batch_size=8, max_length=32)
LABELS = np.asarray(make_rows(TASK, 24)["label"])


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


# --- prunings of a run ---


@pytest.mark.parametrize(("kind", "size"), [(SMALLEST, 0.3), (ANY, 0.6)])
def test_a_pruned_weight_is_exactly_zero_after_training_and_the_others_learn(training, kind, size):
    start = load_classifier(training.start, TASK, seed=training.seed)
    masks = spec.weight_masks(start, size, None if kind == SMALLEST else training.seed)
    tuned = finetune.finetuned(dataclasses.replace(training, cut=Pruning(kind, size)))
    assert len(masks) == 3 * 6, "six matrices in each of three layers"
    for name, mask in masks.items():
        weight, before = tuned.get_parameter(name), start.get_parameter(name)
        gone = (~mask).float().mean().item()
        assert (weight[~mask] == 0).all() and gone == pytest.approx(size, abs=1e-3)
        assert (weight[mask] != before[mask]).float().mean() > 0.9
        if kind == SMALLEST:
            assert before[~mask].abs().max() <= before[mask].abs().min()


def test_good_and_bad_halves_share_no_head_and_what_goes_stays_gone(training):
    kept = {kind: Pruning(kind, 0.5).kept_heads(training) for kind in (GOOD, RANDOM, BAD)}
    assert all(mask.sum() == 6 for mask in kept.values())
    assert (kept[GOOD] ^ kept[BAD]).all()
    importance = spec.importance_in(training)
    assert importance[kept[GOOD]].min() >= importance[kept[BAD]].max()
    kept[NONE] = np.zeros_like(kept[BAD])
    for kind in (BAD, NONE):
        tuned = finetune.finetuned(dataclasses.replace(training, cut=Pruning(kind, 0.5)))
        for layer, of_layer in zip(tuned.base_model.encoder.layer, kept[kind], strict=True):
            read = layer.attention.output.dense.weight.unflatten(1, (4, -1))
            assert ((read.abs().sum(dim=(0, 2)) > 0).numpy() == of_layer).all()


@pytest.mark.parametrize(("size", "frozen"), [(1 / 3, 1), (1, 3)])
def test_frozen_are_the_embeddings_and_the_lowest_layers(training, size, frozen):
    start = load_classifier(training.start, TASK, seed=training.seed)
    tuned = finetune.finetuned(dataclasses.replace(training, cut=Pruning(FROZEN, size)))

    def parts(model):
        return [model.base_model.embeddings, *model.base_model.encoder.layer, model.classifier]

    vectors = torch.nn.utils.parameters_to_vector
    both = zip(parts(start), parts(tuned), strict=True)
    same = [torch.equal(*(vectors(part.parameters()) for part in one)) for one in both]
    assert same == [True] * (1 + frozen) + [False] * (4 - frozen)


def test_shuffled_labels_are_the_same_labels_on_other_rows(training):
    rows = Pruning(GOOD, 0.5, shuffled=True).rows(training)
    assert rows["sentence"][:] == training.rows["sentence"][:]
    assert rows.features == training.rows.features
    assert sorted(rows["label"]) == sorted(training.rows["label"])
    assert np.mean(np.array(rows["label"]) == np.array(training.rows["label"])) < 0.7


def test_every_pruning_has_a_run_of_its_own_and_the_small_run_few(training, tiny_bert):
    own, small = Lab("10_pruning", model=str(tiny_bert)), Lab("10_pruning")
    every = spec.prunings_of(own, 0)
    keys = [
        cache.cache_key(finetune.train, dataclasses.replace(training, cut=pruning))
        for pruning in (None, *every)
    ]
    assert len({cache.key_digest(key) for _, key in keys}) == len(keys) == 13
    assert set(spec.prunings_of(small, 0)) < set(spec.prunings_of(own, 2)) < set(every)
    assert not spec.prunings_of(small, 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda _: Pruning("halves", 0.5), "unknown pruning 'halves'; choose one of: frozen, "),
        (lambda _: Pruning(FROZEN, 1.5), "size=1.5 is out of range; it is a share, from 0 to 1"),
        (lambda _: Pruning(RANDOM, 1.0), "size=1 leaves nothing of the random heads"),
        (lambda model: spec.layers_of(model.classifier), "is not built like BERT"),
        (lambda model: pairs.with_copy(model, (0, 1), 1), "cannot be copied to its own place"),
        (lambda model: without_sets(model, [], np.eye(3, dtype=bool)), "4 heads. are wanted"),
    ],
)
def test_what_cannot_be_is_refused_in_words(model, wrong, message):
    model.classifier.base_model = torch.nn.Linear(1, 1)
    with pytest.raises(ValueError, match=message):
        wrong(model)


# --- pairs of heads ---


def test_sets_of_heads_are_removed_as_by_a_pass_for_each(model, batches):
    sets = pairs.sets_of(4)
    assert len(sets) == 1 + 4 + 6 + 4 and sets[0].sum() == 0 and (sets[-4:].sum(axis=1) == 3).all()
    outputs, zeros = without_sets(model, batches, sets), replacement(model, batches, "zero")
    tolerance = forward_tolerance(model, ways=10)
    for layer, number in [(0, 1), (0, 7), (1, 12), (2, 5), (2, 14)]:
        heads = [(layer, int(head)) for head in np.flatnonzero(sets[number])]
        with replace_outputs(model, heads, zeros):
            assert np.abs(outputs[layer, number] - predict_logits(model, batches)).max() < tolerance
    assert np.abs(outputs[:, 0] - predict_logits(model, batches)).max() < tolerance


def test_interactions_and_matches_by_a_plain_reading(model, batches):
    paired = pairs.Pairs(TASK, without_sets(model, batches, pairs.sets_of(4)), LABELS, 4)
    assert len(paired.pairs) == 6
    loss = losses(TASK, paired.outputs, LABELS)
    for pair, (a, b) in enumerate(paired.pairs):
        both = loss[:, 5 + pair] - loss[:, 1 + a] - loss[:, 1 + b] + loss[:, 0]
        assert np.allclose(paired.interactions[:, pair], both)
    chosen = np.zeros((3, 6), bool)
    chosen[1, 2] = True
    one, other = paired.matched(chosen, ~chosen)
    distance = ((paired.single[1] - paired.single[1, 2]) ** 2).sum(axis=1)
    distance[2] = np.inf
    assert one.tolist() == [[1, 2]] and other.tolist() == [[1, int(distance.argmin())]]
    difference = paired.beyond_matched(chosen, ~chosen, 1)
    means = paired.interactions.mean(axis=2)
    assert difference.value == pytest.approx(means[1, 2] - means[1, distance.argmin()])
    assert np.isnan(paired.beyond_matched(np.zeros_like(chosen), chosen, 1).value)


def test_a_planted_copy_leaves_the_model_as_without_the_lost_head(model, batches):
    planted = pairs.with_copy(model, (1, 2), 0)
    with replace_outputs(model, [(1, 0)], replacement(model, batches, "zero")):
        expected = predict_logits(model, batches)
    difference = np.abs(predict_logits(planted, batches) - expected).max()
    assert difference < forward_tolerance(model, ways=10)
    maps = attention_maps(planted, batches[0])[1]
    assert torch.equal(maps[:, 0], maps[:, 2])


def test_made_up_interactions_show_and_exchanged_patterns_give_the_p_value():
    """Heads 0 to 2 of each layer share a pattern and interact; by chance they rarely would."""
    rng = np.random.default_rng(0)
    sets = pairs.sets_of(6)
    rises = 0.1 * sets.sum(axis=1) + 0.2 * (sets[:, :3].sum(axis=1) == 2) * (sets.sum(axis=1) == 2)
    noise = 0.01 * rng.standard_normal((4, len(sets), 60))
    loss = np.broadcast_to(0.5 + rises, (4, len(sets)))[..., None] + noise
    # Of label 0: −log p = loss.
    outputs = np.stack([np.zeros_like(loss), np.log(np.expm1(loss))], axis=-1)
    paired = pairs.Pairs(TASK, outputs, np.zeros(60, dtype=int), 6)
    patterns = np.tile([0, 0, 0, 1, 2, pairs.HETEROGENEOUS], (4, 1))
    estimate = paired.beyond_matched(*pairs.alike_and_other(patterns, paired.pairs), 1)
    assert estimate.value == pytest.approx(0.2, abs=0.02)
    assert paired.chance(patterns, 1, draws=200) < 0.02
    assert paired.chance(np.roll(patterns, 3, axis=1), 1, draws=200) > 0.05
    two = np.tile([pairs.HETEROGENEOUS, pairs.HETEROGENEOUS, 0, 0, 1, 2], (4, 1))
    same, other = pairs.alike_and_other(two, paired.pairs)
    assert same.sum() == 4 and other.sum() == 4 * (15 - 2), "two heterogeneous heads are neither"


def test_distances_between_heads_are_those_of_scipy(model, batches):
    distances = observe(model, batches, {"": pairs.HeadDistances(3)})[""]
    assert distances.shape == (24, 3, 4, 3, 4)
    batch = batches[0]
    maps, length = attention_maps(model, batch), int(batch.lengths[0])
    for one, other in [((0, 1), (0, 3)), ((0, 1), (2, 0))]:
        rows = [maps[layer][0, head, :length, :length].numpy() for layer, head in (one, other)]
        expected = np.mean([jensenshannon(p, q, 2) ** 2 for p, q in zip(*rows, strict=True)])
        assert distances[(batch.index[0], *one, *other)] == pytest.approx(expected, abs=1e-5)
    closer = distances.copy()
    closer[:, 1, :, 1] = 0
    assert pairs.closer_within(closer, 1).value > pairs.closer_within(distances, 1).value


def test_the_head_that_stays_is_chosen_on_other_examples():
    """Of heads that are right at random, one chosen on the same examples would look better."""
    rng = np.random.default_rng(1)
    right = rng.random((2, 3, 40)) < 0.5
    outputs = np.zeros((2, len(pairs.sets_of(3)), 40, 2))
    outputs[:, 0, :, 1] = 1.0
    outputs[:, -3:, :, 1] = np.where(right, 1.0, -1.0)
    changes = pairs.one_head_left(pairs.Pairs(TASK, outputs, np.ones(40, dtype=int), 3), 1)
    assert [change.value for change in changes] == pytest.approx([-0.5, -0.5], abs=0.2)
    assert max(right.mean(axis=2).max(axis=1)) - 1 > min(change.value for change in changes)


# --- heads that go ---


def test_heads_that_are_left_are_ranked_again_at_each_step(model, batches):
    once, again = (
        measure.pruning_order(model, batches, 12),
        measure.pruning_order(model, batches, 3),
    )
    every = [(layer, head) for layer in range(3) for head in range(4)]
    assert sorted(once) == sorted(again) == every
    assert once[:3] == again[:3] and once != again
    importance = spec.importance(model, batches)
    assert once[0] == tuple(np.unravel_index(importance.argmin(), importance.shape))
