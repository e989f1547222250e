"""Notebook 10: prunings of a fine-tuning run, heads that go one by one, and the skill that is kept."""

import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from conftest import batches_of_rows, make_rows, random_classifier
from precision import forward_tolerance
from scipy.spatial.distance import jensenshannon

from bertology_utils import cache, finetune
from bertology_utils.attention import attention_maps, observe
from bertology_utils.disabling.masking import replace_outputs, replacement
from bertology_utils.glue import TASKS
from bertology_utils.lab import Lab
from bertology_utils.models import load_classifier, load_tokenizer, predict_logits
from bertology_utils.pruning import alike, answers, figures, measure, spec
from bertology_utils.pruning.skill import Skill
from bertology_utils.pruning.spec import BAD, FROZEN, GOOD, RANDOM, SMALLEST, Pruning
from bertology_utils.settings import Recipe, parse_model
from bertology_utils.verdicts import FAILS, HOLDS, UNTESTABLE

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


def test_a_pruned_weight_is_exactly_zero_after_training_and_the_others_learn(training):
    start = load_classifier(training.start, TASK, seed=training.seed)
    masks = spec.weight_masks(start, 0.3)
    tuned = finetune.finetuned(dataclasses.replace(training, cut=Pruning(SMALLEST, 0.3)))
    assert len(masks) == 3 * 6, "six matrices in each of three layers"
    for name, mask in masks.items():
        weight, before = tuned.get_parameter(name), start.get_parameter(name)
        gone = (~mask).float().mean().item()
        assert (weight[~mask] == 0).all() and gone == pytest.approx(0.3, abs=1e-3)
        assert (weight[mask] != before[mask]).float().mean() > 0.9
        assert before[~mask].abs().max() <= before[mask].abs().min()


def test_good_and_bad_halves_share_no_head_and_what_goes_stays_gone(training):
    kept = {kind: Pruning(kind, 0.5).kept_heads(training) for kind in (GOOD, RANDOM, BAD)}
    assert all(mask.sum() == 6 for mask in kept.values())
    assert (kept[GOOD] ^ kept[BAD]).all()
    importance = spec.importance_in(training)
    assert importance[kept[GOOD]].min() >= importance[kept[BAD]].max()
    tuned = finetune.finetuned(dataclasses.replace(training, cut=Pruning(BAD, 0.5)))
    for layer, of_layer in zip(tuned.base_model.encoder.layer, kept[BAD], strict=True):
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


def test_every_pruning_has_a_run_of_its_own_and_the_small_run_few(training, tiny_bert):
    own, small = Lab("10_pruning", model=str(tiny_bert)), Lab("10_pruning")
    every = spec.prunings_of(own, 0)
    keys = [
        cache.cache_key(finetune.train, dataclasses.replace(training, cut=pruning))
        for pruning in (None, *every)
    ]
    assert len({cache.key_digest(key) for _, key in keys}) == len(keys) == 6
    assert set(spec.prunings_of(small, 0)) < set(every)
    assert not spec.prunings_of(small, 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda _: Pruning("halves", 0.5), "unknown pruning 'halves'; choose one of: frozen, "),
        (lambda _: Pruning(FROZEN, 1.5), "size=1.5 is out of range; it is a share, from 0 to 1"),
        (lambda _: Pruning(RANDOM, 1.0), "size=1 leaves nothing of the random heads"),
        (lambda model: spec.layers_of(model.classifier), "is not built like BERT"),
    ],
)
def test_what_cannot_be_is_refused_in_words(model, wrong, message):
    model.classifier.base_model = torch.nn.Linear(1, 1)
    with pytest.raises(ValueError, match=message):
        wrong(model)


# --- heads that go ---


def test_heads_are_removed_as_by_a_pass_for_each_number_of_them(model, batches):
    orders = [answers.pruning_order(model, batches, 3), [(0, at) for at in range(4)]]
    outputs = answers.logits_without_heads(model, batches, orders, [0, 1, 4])
    assert outputs.shape == (2, 3, 24, 2)
    zeros, tolerance = replacement(model, batches, "zero"), forward_tolerance(model, ways=10)
    for at, order in enumerate(orders):
        assert np.abs(outputs[at, 0] - predict_logits(model, batches)).max() < tolerance
        with replace_outputs(model, order[:4], zeros):
            assert np.abs(outputs[at, 2] - predict_logits(model, batches)).max() < tolerance
    assert not np.allclose(outputs[0, 2], outputs[1, 2], atol=tolerance)


def test_with_a_warm_cache_no_fine_tuned_model_is_loaded(tiny_bert, monkeypatch):
    def measured():
        sizes = {"train_examples": 16, "sweep_examples": 8, "trainings": 2}
        lab = Lab("10_pruning", model=str(tiny_bert), tasks="sst2", **sizes)
        return [
            answers.whole_answers(lab, TASK),
            answers.pruned_answers(lab, TASK, spec.HALVES[GOOD]),
            answers.reset_answers(lab, TASK),
            *answers.answers_without_heads(lab, TASK, 1).values(),
            alike.distances_of(lab, TASK, lab.lazy_classifier(TASK, seed_offset=1)),
        ]

    first = measured()
    monkeypatch.setattr(Lab, "finetuned", lambda *_, **__: pytest.fail("a model was loaded"))
    again = measured()
    assert all((one == other).all() for one, other in zip(first, again, strict=True))
    rows = len(first[0][0])
    assert [one.shape for one in first[:-1]] == [
        (2, rows),
        (2, rows),
        (2, 3, 2, rows),  # from below and from above
        *((orders, 9, rows) for orders in (1, answers.RANDOM_ORDERS)),
    ]


# --- skill kept ---


def test_a_model_in_which_half_of_the_heads_do_nothing_keeps_all_its_skill_without_them(
    model, batches
):
    idle = np.tile([True, False, True, False], (3, 1))
    spec.keep_zero(model, spec.head_masks(model, ~idle))
    order = answers.pruning_order(model, batches, 12)
    assert sorted(order[:6]) == [tuple(head) for head in np.argwhere(idle).tolist()]
    logits = answers.logits_without_heads(model, batches, [order], [0, 6, 12])[0]
    margins = logits[..., 1] - logits[..., 0]  # (counts, examples)
    whole, half, none = (margins > np.median(margins[0])).astype(int)
    labels = np.where(np.arange(24) % 8 == 0, 1 - whole, whole)  # one in eight is wrong
    skill = Skill(TASK, labels, whole[None], seed=1)
    assert skill.kept(half[None]).value == 1 and skill.kept(half[None]).error == 0
    assert skill.kept(none[None]).value < 1


@pytest.mark.parametrize("name", ["rte", "stsb"])
def test_always_the_same_answer_keeps_nothing_and_the_share_is_as_one_would_write_it(name):
    task, rng = TASKS[name], np.random.default_rng(0)
    if task.is_regression:
        labels = rng.random(200) * 5
        whole, pruned = (labels + width * rng.random((2, 200)) for width in (1.0, 5.0))
        floor, score = 0.0, lambda one: np.corrcoef(one, labels)[0, 1]
    else:
        labels = (rng.random(200) < 0.7).astype(int)
        whole, pruned = (
            np.where(rng.random((2, 200)) < share, labels, 1 - labels) for share in (0.95, 0.8)
        )
        floor, score = labels.mean(), lambda one: (one == labels).mean()
    skill = Skill(task, labels, whole, seed=1)
    same = skill.kept(np.stack([skill.same_answer] * 2))
    assert same.value == pytest.approx(0, abs=1e-9) and same.error == pytest.approx(0, abs=1e-9)
    scores = [np.mean([score(one) for one in of]) - floor for of in (pruned, whole)]
    kept = skill.kept(pruned)
    assert kept.value == pytest.approx(scores[0] / scores[1])
    assert kept.trainings == 2 and np.mean(kept.each) == pytest.approx(kept.value)
    with pytest.raises(ValueError, match="of nothing no share is kept"):
        Skill(task, labels, np.stack([skill.same_answer]), seed=1).kept(pruned[:1])


@pytest.mark.parametrize(("pruned", "runs"), [(0.82, 5), (0.72, 3)])
def test_the_interval_of_the_share_covers_it(pruned, runs):
    """On other rows and other runs; the whole models are right on 0.85 where one answer gives 0.65."""
    rng, inside = np.random.default_rng(2), 0
    for draw in range(100):
        labels = (rng.random(400) < 0.65).astype(int)
        hard = rng.random(400)  # models that were trained alike are wrong on the same rows

        def of_runs(share, labels=labels, hard=hard):
            shares = np.clip(share + 0.01 * rng.standard_normal((runs, 1)), 0, 1)
            own = rng.random((runs, 400)) < 0.7
            drawn = np.where(own, hard, rng.random((runs, 400)))
            return np.where(drawn < shares, labels, 1 - labels)

        low, high = Skill(TASK, labels, of_runs(0.85), draw).kept(of_runs(pruned)).interval
        inside += low < (pruned - 0.65) / 0.2 < high
    assert inside >= 92


def test_a_bag_of_words_learns_words_and_not_their_order():
    train, rows = make_rows(TASK), make_rows(TASK, 24, seed=1)
    answered = measure.bag_of_words(train, rows, "sentence")
    assert (answered == rows["label"]).all()
    turned = rows.map(lambda row: {"sentence": " ".join(row["sentence"].split()[::-1])})
    assert (measure.bag_of_words(train, turned, "sentence") == answered).all()


@pytest.mark.parametrize("needed", [False, True])
def test_verdicts_tell_models_that_need_no_head_from_those_that_need_each(
    tiny_bert, monkeypatch, needed
):
    """Made-up answers: whatever is removed, all of the skill is kept, or none is."""
    rng, names = np.random.default_rng(3), ("sst2", "stsb", "mrpc")
    own = {"model": str(tiny_bert), "trainings": 3, "train_examples": 16}
    lab = Lab("10_pruning", tasks=",".join(names), **own)
    whole, nothing, pruned = {}, {}, {}
    for task in map(TASKS.get, names):
        labels = np.asarray(answers.evaluated(lab, task)["label"])
        wrong = rng.random((3, len(labels))) < 0.1
        whole[task] = np.where(wrong, labels[::-1] if task.is_regression else 1 - labels, labels)
        nothing[task] = np.stack([rng.permutation(labels) for _ in range(3)])  # as by chance
        changed = rng.random(wrong.shape) < 0.01
        kept = np.where(changed, whole[task][:, ::-1], whole[task])
        pruned[task] = nothing[task] if needed else kept

    def of_kind(lab, task, pruning):
        return (nothing if pruning == spec.HALVES[BAD] else pruned)[task]

    def without_heads(lab, task, number):
        first, last = whole[task][number], nothing[task][number]
        ranked, chance = [first, *[pruned[task][number]] * 7, last], [first, *[last] * 8]
        return {
            answers.RANKED: np.stack(ranked)[None],
            answers.RANDOM_ORDER: np.stack(chance)[None],
        }

    made_up = {
        "whole_answers": lambda lab, task: whole[task],
        "answers_of": lambda lab, task, number, init: nothing[task][number],
        "answers_without_heads": without_heads,
        "pruned_answers": of_kind,
        "reset_answers": lambda lab, task: np.broadcast_to(
            pruned[task], (2, 3, *pruned[task].shape)
        ),
    }
    for name, function in made_up.items():
        monkeypatch.setattr(answers, name, function)
    monkeypatch.setattr(measure, "distances_of", lambda *_: rng.random((30, 3, 4, 3, 4)))
    monkeypatch.setattr(Lab, "learned", dict.fromkeys(whole, True))
    measure.run(lab)
    outcomes = {name: one["outcome"] for (name, _), one in lab.own_results.verdicts.items()}
    assert outcomes.pop("same-pattern") == UNTESTABLE
    assert outcomes.pop("layers-alike") != HOLDS and len(outcomes) == 9
    kept = "half-enough", "third-put-back", "third-frozen", "heads-gone", "weights-gone"
    expected = FAILS if needed else HOLDS
    assert {name: outcomes[name] for name in kept} == dict.fromkeys(kept, expected)
    if needed:
        assert HOLDS not in outcomes.values()
    else:
        assert outcomes["ranking-helps"] == outcomes["good-half"] == HOLDS
    for name in ("heads", "halves", "layers"):
        plt.close(getattr(figures, f"{name}_figure")(lab.own_results))


# --- heads of one layer ---


def test_distances_between_heads_are_those_of_scipy(model, batches):
    distances = observe(model, batches, {"": alike.HeadDistances(3)})[""]
    assert distances.shape == (24, 3, 4, 3, 4)
    batch = batches[0]
    maps, length = attention_maps(model, batch), int(batch.lengths[0])
    for one, other in [((0, 1), (0, 3)), ((0, 1), (2, 0))]:
        rows = [maps[layer][0, head, :length, :length].numpy() for layer, head in (one, other)]
        expected = np.mean([jensenshannon(p, q, 2) ** 2 for p, q in zip(*rows, strict=True)])
        assert distances[(batch.index[0], *one, *other)] == pytest.approx(expected, abs=1e-5)
    closer = distances.copy()
    closer[:, 1, :, 1] = 0
    assert alike.closer_within(closer, 1).value > alike.closer_within(distances, 1).value


def test_heads_that_are_left_are_ranked_again_at_each_step(model, batches):
    once, again = (
        answers.pruning_order(model, batches, 12),
        answers.pruning_order(model, batches, 3),
    )
    every = [(layer, head) for layer in range(3) for head in range(4)]
    assert sorted(once) == sorted(again) == every
    assert once[:3] == again[:3] and once != again
    importance = spec.importance(model, batches)
    assert once[0] == tuple(np.unravel_index(importance.argmin(), importance.shape))
