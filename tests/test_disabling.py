"""Disabled heads: exactly 1/L, the model as before afterwards, and the plain sweep (§4.6)."""

import copy

import numpy as np
import pytest
import torch
from conftest import make_bert, make_rows
from precision import forward_tolerance, sum_tolerance
from transformers import (
    AutoTokenizer,
    ElectraConfig,
    ElectraForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from bertology_utils.attention import Batch, attention_maps, observe
from bertology_utils.attention.batches import make_batches, tokenize
from bertology_utils.attention.carried import vectors
from bertology_utils.disabling import drawing, examples, predictors, twins
from bertology_utils.disabling import sweep as sweep_module
from bertology_utils.disabling.ablations import replace_outputs, replacement
from bertology_utils.disabling.cumulative import cumulative, greedy_order, heads_to_spare, ordering_half, random_order
from bertology_utils.disabling.groups import partner_batches, partners, without_partner
from bertology_utils.disabling.importance import gradient_importance
from bertology_utils.disabling.reference import reference_sweep
from bertology_utils.disabling.saved import saved_sweep, sweep_key
from bertology_utils.disabling.search import searched_order
from bertology_utils.disabling.sweep import sweep
from bertology_utils.disabling.switch import all_heads, disable_heads, layer_heads
from bertology_utils.drift.measure import Drift
from bertology_utils.encoders.embedded import embedded_folder
from bertology_utils.encoders.evaluate import predict_logits
from bertology_utils.encoders.models import load_classifier
from bertology_utils.encoders.sources import parse_model
from bertology_utils.glue.tasks import TASKS

SIZES = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 32, "intermediate_size": 64, "vocab_size": 30522}


def spread(model):
    """Weights far from uniform attention, in evaluation mode."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.25)
    return model.eval()


@pytest.fixture(scope="module", params=["bert", "roberta", "electra"])
def model(request, tmp_path_factory):
    if request.param == "bert":
        folder = make_bert(tmp_path_factory.mktemp("bert"), layers=3, heads=4, hidden=32)
        return spread(load_classifier(parse_model(str(folder)), TASKS["mrpc"]))
    kind, config = {
        "roberta": (RobertaForSequenceClassification, RobertaConfig(**SIZES, pad_token_id=0)),
        "electra": (ElectraForSequenceClassification, ElectraConfig(**SIZES, embedding_size=16)),
    }[request.param]
    return spread(kind(config))


@pytest.fixture(scope="module")
def batches():
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    return make_batches(tokenize(make_rows(TASKS["mrpc"], 24), TASKS["mrpc"], tokenizer, 64), tokenizer, 400)


def projections(model):
    """The layers' modules that project the heads' outputs, in order."""
    return [layer.attention.output.dense for layer in model.base_model.encoder.layer]


def logits_and_state(model, batches):
    return predict_logits(model, batches), model.config._attn_implementation


def test_disabled_maps_are_one_over_the_real_tokens_and_others_untouched(model, batches):
    batch = batches[-1]
    assert not batch.mask.all()
    before = attention_maps(model, batch)
    with disable_heads(model, [(0, 2)]):
        maps = attention_maps(model, batch)
    for row, length in enumerate(batch.lengths):
        torch.testing.assert_close(maps[0][row, 2, :, :length], torch.full((maps[0].shape[2], int(length)), 1 / length))
        assert (maps[0][row, 2, :, length:] == 0).all()
    kept = [0, 1, 3]
    torch.testing.assert_close(maps[0][:, kept], before[0][:, kept], atol=0, rtol=0)


def test_override_equals_zeroed_query_rows(model, batches):
    """Queries of zero attend evenly: an independent way to the same model."""
    heads = [(0, 1), (1, 3), (2, 0), (2, 2)]
    other = copy.deepcopy(model)
    attentions = [module for module in other.modules() if hasattr(module, "query")]
    with torch.no_grad():
        for layer, head in heads:
            attentions[layer].query.weight[8 * head : 8 * head + 8] = 0
            attentions[layer].query.bias[8 * head : 8 * head + 8] = 0
    with disable_heads(model, heads):
        disabled = predict_logits(model, batches)
    np.testing.assert_allclose(disabled, predict_logits(other, batches), atol=forward_tolerance(model))
    assert abs(disabled - predict_logits(model, batches)).max() > 1e-4


def test_words_only_reading_gives_special_tokens_nothing(model, batches):
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    special = [tokenizer.cls_token_id, tokenizer.sep_token_id]
    batch = batches[-1]
    with disable_heads(model, [(1, 0)], no_weight=special):
        weights = attention_maps(model, batch)[1][:, 0]
    words = batch.mask & ~torch.isin(batch.inputs["input_ids"], torch.tensor(special))
    expected = (words / words.sum(dim=1, keepdim=True))[:, None].expand_as(weights)
    torch.testing.assert_close(weights, expected)


def test_the_model_is_as_before_whatever_happens_inside(model, batches):
    before, implementation = logits_and_state(model, batches)
    with pytest.raises(KeyError), disable_heads(model, all_heads(model), no_weight=[101]):
        raise KeyError
    after, same = logits_and_state(model, batches)
    np.testing.assert_array_equal(before, after)
    assert implementation == same
    assert not model.base_model._forward_pre_hooks and not model.base_model._forward_hooks


def test_contexts_add_up(model, batches):
    with disable_heads(model, [(0, 0), *layer_heads(model, 1)]):
        both = predict_logits(model, batches)
    with disable_heads(model, [(0, 0)]):
        outer = predict_logits(model, batches)
        with disable_heads(model, layer_heads(model, 1)):
            np.testing.assert_array_equal(predict_logits(model, batches), both)
            inner = attention_maps(model, batches[-1])
        np.testing.assert_array_equal(predict_logits(model, batches), outer)
    assert abs(both - outer).max() > 1e-5
    even = (batches[-1].mask / batches[-1].lengths[:, None])[:, None, None]
    torch.testing.assert_close(inner[0][:, :1], even.expand_as(inner[0][:, :1]))
    torch.testing.assert_close(inner[1], even.expand_as(inner[1]))
    assert (inner[0][:, 1:] - even).abs().max() > 1e-3


def test_replaced_and_disabled_heads_add_up(model, batches):
    instead = torch.zeros(3, 4, 8)
    with replace_outputs(model, [(0, 0)], instead), disable_heads(model, [(1, 1)]):
        both = predict_logits(model, batches)
    with disable_heads(model, [(1, 1)]), replace_outputs(model, [(0, 0)], instead):
        np.testing.assert_array_equal(predict_logits(model, batches), both)
        with disable_heads(model, [(0, 0)]):
            np.testing.assert_array_equal(predict_logits(model, batches), both, err_msg="what a head attends to is not used")


def test_an_edit_reaches_its_own_model_only(model, batches):
    other = copy.deepcopy(model)
    other.config = model.config  # even where two models share their configuration
    for module in other.modules():
        if hasattr(module, "config"):
            module.config = model.config
    alone, maps = predict_logits(other, batches), attention_maps(other, batches[-1])
    with disable_heads(model, all_heads(model)):
        np.testing.assert_allclose(predict_logits(other, batches), alone, atol=1e-6)
        for ours, theirs in zip(attention_maps(other, batches[-1]), maps, strict=True):
            torch.testing.assert_close(ours, theirs, atol=0, rtol=0)


def test_drift_within_the_context_compares_with_the_whole_reference(model, batches):
    reference = copy.deepcopy(model)
    before = observe(model, batches, {"d": Drift(reference)})["d"]
    with disable_heads(model, layer_heads(model, 2)):
        drift = observe(model, batches, {"d": Drift(reference)})["d"]
    np.testing.assert_allclose(drift[:, :2], before[:, :2], atol=1e-6)
    assert (drift[:, 2] < before[:, 2] - 1e-8).all(), "even attention differs from the reference's"


@pytest.mark.parametrize("ablation", ["uniform", "mean"])
def test_a_sweep_within_the_context_keeps_its_heads_disabled(model, batches, ablation, capsys):
    outer = [(0, 1), (2, 3)]
    with disable_heads(model, outer):
        found = sweep(model, batches, ablation=ablation)
        np.testing.assert_array_equal(found.baseline, predict_logits(model, batches))
    assert "heads that are disabled already" in capsys.readouterr().err
    assert abs(found.baseline - predict_logits(model, batches)).max() > 1e-4
    if ablation == "uniform":
        for layer, head in [(0, 2), (1, 0)]:
            with disable_heads(model, [*outer, (layer, head)]):
                np.testing.assert_array_equal(found.heads[layer, head], predict_logits(model, batches))
        with disable_heads(model, [*layer_heads(model, 2), (0, 1)]):
            np.testing.assert_array_equal(found.layers[2], predict_logits(model, batches))
        np.testing.assert_array_equal(found.heads[0, 1], found.baseline)
    sweep(model, batches[:1])
    assert "disabled already" not in capsys.readouterr().err, "afterwards the fast way again"


def test_passes_of_the_bare_encoder_and_of_the_classifier_are_both_edited(model, batches):
    batch = batches[-1]
    with disable_heads(model, [(1, 2)]):
        of_classifier, of_encoder = attention_maps(model, batch), attention_maps(model.base_model, batch)
    for ours, theirs in zip(of_classifier, of_encoder, strict=True):
        torch.testing.assert_close(ours, theirs, atol=0, rtol=0)
    torch.testing.assert_close(of_encoder[1][:, 2].diagonal(dim1=1, dim2=2)[:, 0], 1 / batch.lengths)


@pytest.mark.parametrize(
    "heads, message",
    [
        ([], "no head"),
        ([(3, 0)], "unknown layer 4; layers are counted from 1 to 3"),
        ([(0, 4)], "unknown head 5"),
        ([(-1, 0)], "unknown layer 0"),
        ([(0, 1), (2, 1), (0, 1)], r"head \(1, 2\) is named twice"),
    ],
)
def test_wrong_heads_are_refused(model, batches, heads, message):
    with pytest.raises(ValueError, match=message), disable_heads(model, heads):
        pytest.fail("entered")


def test_training_mode_is_refused(model):
    model.train()
    try:
        with pytest.raises(ValueError, match="evaluation mode"), disable_heads(model, [(0, 0)]):
            pytest.fail("entered")
    finally:
        model.eval()


def test_reference_sweep_is_a_pass_per_head_and_layer(model, batches):
    sweep = reference_sweep(model, batches)
    assert sweep.heads.shape == (3, 4, 24, 2) and sweep.layers.shape == (3, 24, 2)
    np.testing.assert_array_equal(sweep.baseline, predict_logits(model, batches))
    with disable_heads(model, [(2, 1)]):
        np.testing.assert_array_equal(sweep.heads[2, 1], predict_logits(model, batches))
    with disable_heads(model, layer_heads(model, 1)):
        np.testing.assert_array_equal(sweep.layers[1], predict_logits(model, batches))


@pytest.mark.parametrize("tokens_at_once", [1, 300, 4096])
def test_fast_sweep_equals_the_reference(model, batches, tokens_at_once, monkeypatch):
    expected = reference_sweep(model, batches)
    monkeypatch.setattr("bertology_utils.disabling.sweep.reference_sweep", lambda *_: pytest.fail("not the fast way"))
    found = sweep(model, batches, tokens_at_once)
    for name in ("baseline", "heads", "layers"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=forward_tolerance(model, ways=4))


@pytest.mark.parametrize("ablation", ["zero", "mean", "interchange"])
def test_other_ablations_equal_their_reference(model, batches, ablation):
    expected = reference_sweep(model, batches, ablation=ablation)
    found = sweep(model, batches, ablation=ablation)
    for name in ("baseline", "heads", "layers"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=forward_tolerance(model, ways=4))
    assert abs(found.heads - sweep(model, batches).heads).max() > 1e-4


def test_zero_equals_a_head_without_output_weights(model, batches):
    other = copy.deepcopy(model)
    with torch.no_grad():
        projections(other)[1].weight[:, 16:24] = 0
    found = sweep(model, batches, layers=[1], ablation="zero")
    assert found.heads.shape[:2] == (1, 4)
    np.testing.assert_allclose(found.heads[0, 2], predict_logits(other, batches), atol=forward_tolerance(model, ways=4))


def test_mean_is_the_mean_over_real_tokens(model, batches):
    seen = []
    hook = projections(model)[0].register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0]))
    predict_logits(model, batches)
    hook.remove()
    tokens = torch.cat([context[batch.mask] for context, batch in zip(seen, batches, strict=True)])
    torch.testing.assert_close(
        replacement(model, batches, "mean")[0].flatten().float(), tokens.mean(dim=0), atol=sum_tolerance(len(tokens)), rtol=0
    )


def test_interchange_gives_an_input_what_the_head_gives_the_next_one_of_its_length(model, batches):
    groups = partners(batches)
    assert sorted(index for group in groups for index in group.index) == list(range(24))
    assert {len({len(ids) for ids in group.inputs["input_ids"]}) for group in groups} == {1}
    found = sweep(model, batches, layers=[1], ablation="interchange")
    one = next(group for group in groups if len(group.index) > 2)
    seen = []
    hook = projections(model)[1].register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0]))
    with torch.inference_mode():
        model(**one.inputs)
    hook.remove()
    (outputs,) = seen
    changed = outputs.clone()  # (examples, tokens, hidden); heads of 8
    changed[0, :, 16:24] = outputs[1, :, 16:24]
    changed[-1, :, 16:24] = outputs[0, :, 16:24]
    hook = projections(model)[1].register_forward_pre_hook(lambda module, arguments: (changed,))
    with torch.inference_mode():
        expected = model(**one.inputs).logits.double().numpy()
    hook.remove()
    for at in (0, -1):
        np.testing.assert_allclose(found.heads[0, 2, one.index[at]], expected[at], atol=forward_tolerance(model, ways=4))


def test_an_input_without_a_partner_stays_as_it_is(model, batches):
    alone = [group.index[0] for group in partners(batches) if len(group.index) == 1]
    assert without_partner(batches) == len(alone)
    one = examples.alone(batches, 0)
    found = sweep(model, [one], ablation="interchange")
    np.testing.assert_allclose(
        found.heads, np.broadcast_to(found.baseline, found.heads.shape), atol=forward_tolerance(model, ways=4)
    )
    assert partner_batches([one])[0].labels.tolist() == one.labels.tolist()


def test_a_killed_sweep_goes_on_from_its_last_layer(model, batches, tmp_path, monkeypatch):
    whole = sweep(model, batches)
    calls = []
    original = sweep_module._one_layer

    def killed(pieces, number, *rest):
        calls.append(number)
        if number == 2:
            raise KeyboardInterrupt
        return original(pieces, number, *rest)

    monkeypatch.setattr(sweep_module, "_one_layer", killed)
    with pytest.raises(KeyboardInterrupt):
        sweep(model, batches, scratch=tmp_path)
    monkeypatch.setattr(
        sweep_module, "_one_layer", lambda pieces, number, *rest: calls.append(-number) or original(pieces, number, *rest)
    )
    again = sweep(model, batches, scratch=tmp_path)
    assert {call for call in calls if call < 0} == {-2}
    for name in ("baseline", "heads", "layers"):
        np.testing.assert_array_equal(getattr(again, name), getattr(whole, name))


def test_no_batches_and_unknown_ablations_are_refused(model, batches):
    with pytest.raises(ValueError, match="at least one batch"):
        sweep(model, [])
    with pytest.raises(ValueError, match="choose one of: uniform, zero, mean, interchange"):
        sweep(model, batches, ablation="noise")


def test_an_unknown_model_goes_the_slow_way_and_says_so(model, batches, monkeypatch, capsys):
    odd = copy.deepcopy(model)
    # Something between encoder and classifier that the pieces do not know.
    odd.classifier.register_forward_hook(lambda module, arguments, output: output)
    monkeypatch.setattr(type(odd.base_model.encoder), "forward", _shifted(type(odd.base_model.encoder).forward))
    found = sweep(odd, batches[:1])
    assert "one forward pass per head" in capsys.readouterr().err
    np.testing.assert_array_equal(found.heads, reference_sweep(odd, batches[:1]).heads)


def _shifted(forward):
    def other(self, *arguments, **keywords):
        output = forward(self, *arguments, **keywords)
        output.last_hidden_state = output.last_hidden_state * 1.5 + 0.3
        return output

    return other


def test_non_finite_outputs_are_refused(model, batches):
    broken = copy.deepcopy(model)
    with torch.no_grad():
        [module for module in broken.modules() if hasattr(module, "query")][1].value.bias.fill_(torch.inf)
    with pytest.raises(FloatingPointError, match="NaN or infinite"):
        sweep(broken, batches)


def test_one_example_is_enough(model, batches):
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    single = make_batches(tokenize(make_rows(TASKS["mrpc"], 1), TASKS["mrpc"], tokenizer, 64), tokenizer)
    assert sweep(model, single).heads.shape == (3, 4, 1, 2)


def test_importance_is_the_gradient_of_a_head_s_scale(model, batches):
    """By finite differences: scale one head's output of one example, see how its loss changes."""
    importance = gradient_importance(model, batches)
    assert importance.shape == (3, 4)
    layer, head, size = 1, 2, 8
    exact = copy.deepcopy(model).double()
    slopes, scale = [], [1.0]

    def scaled(module, arguments):
        context = arguments[0].clone()
        context[:, :, size * head : size * (head + 1)] *= scale[0]
        return (context,)

    hook = projections(exact)[layer].register_forward_pre_hook(scaled)
    for batch in batches:
        losses = []
        for scale[0] in (1 - 1e-5, 1 + 1e-5):
            with torch.no_grad():
                logits = exact(**batch.inputs).logits
            losses.append(torch.nn.functional.cross_entropy(logits, batch.labels, reduction="none"))
        slopes.append(((losses[1] - losses[0]) / 2e-5).abs())
    hook.remove()
    assert importance[layer, head] == pytest.approx(float(torch.cat(slopes).mean()), rel=1e-3)


def test_importance_leaves_the_model_as_it_was(model, batches):
    before = predict_logits(model, batches)
    gradient_importance(model, batches)
    np.testing.assert_array_equal(predict_logits(model, batches), before)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_importance_of_missing_labels_is_refused(model, batches):
    missing = [Batch(batch.inputs, batch.index, torch.full((len(batch.index),), torch.nan)) for batch in batches]
    for batches_without in (missing, [Batch(batch.inputs, batch.index) for batch in batches]):
        with pytest.raises(ValueError, match="labels are missing"):
            gradient_importance(model, batches_without)
    with pytest.raises(ValueError, match="at least one batch"):
        gradient_importance(model, [])


@pytest.mark.parametrize(("rows", "scored"), [(160, 80), (161, 81)])
def test_a_curve_is_titled_with_the_rows_that_score_it(rows, scored):
    ordering, task = ordering_half(rows, seed=1), TASKS["mrpc"]
    assert (ordering == ordering_half(rows, seed=1)).all() and (ordering != ordering_half(rows, seed=2)).any()
    figure = drawing.curves_of_scores({task: {0: 0.8, 12: 0.5}}, {task: 0}, {task: np.count_nonzero(~ordering)})
    assert figure.axes[0].get_title() == f"MRPC: 0 of 12 can go, n={scored}"


def test_cumulative_disables_the_first_heads_of_an_order(model, batches):
    order = greedy_order(np.arange(12).reshape(3, 4))
    assert order[:5] == [(2, 3), (2, 2), (2, 1), (2, 0), (1, 3)]
    found = cumulative(model, batches, order, step=5)
    assert sorted(found) == [0, 5, 10, 12]
    with disable_heads(model, order[:5]):
        np.testing.assert_array_equal(found[5], predict_logits(model, batches))
    np.testing.assert_array_equal(found[0], predict_logits(model, batches))
    with pytest.raises(ValueError, match="step=0"):
        cumulative(model, batches, order, step=0)


def test_heads_to_spare_stops_at_the_first_fall():
    assert heads_to_spare({0: 0.80, 4: 0.81, 8: 0.795, 12: 0.7, 16: 0.82}) == 8
    assert heads_to_spare({0: 0.80, 4: 0.7}) == 0


def test_a_saved_sweep_is_made_once(model, batches, own_cache):
    calls = []
    first = saved_sweep(sweep_key({"a": 1}, "rows", 64, "uniform"), "uniform", lambda: calls.append(1) or (model, batches))
    again = saved_sweep(sweep_key({"a": 1}, "rows", 64, "uniform"), "uniform", lambda: pytest.fail("made again"))
    for name in ("baseline", "heads", "layers"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    saved_sweep(sweep_key({"a": 1}, "rows", 64, "zero"), "zero", lambda: calls.append(2) or (model, batches))
    assert calls == [1, 2]


def test_a_model_without_a_classifier_is_refused(model, batches):
    with pytest.raises(ValueError, match="no classifier on top"):
        sweep(model.base_model, batches)
    with pytest.raises(ValueError, match="no classifier on top"):
        reference_sweep(model.base_model, batches)


@pytest.mark.parametrize("run", [sweep, reference_sweep])
def test_inputs_longer_than_the_model_can_read_are_refused(model, batches, run):
    limit = model.base_model.embeddings.position_embeddings.num_embeddings
    ids = torch.full((1, limit + 1), 1000)
    long = Batch({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, [0], torch.zeros(1, dtype=torch.long))
    with pytest.raises(ValueError, match="longer than"):
        run(model, [long])


def test_all_heads_at_once(model, batches):
    """Nothing is left to choose: what is left of a token is itself and the means of the values."""
    batch = batches[-1]
    with disable_heads(model, all_heads(model)):
        maps = attention_maps(model, batch)
    for row, length in enumerate(batch.lengths):
        for layer in maps:
            torch.testing.assert_close(
                layer[row, :, :, :length], torch.full_like(layer[row, :, :, :length], 1 / int(length))
            )


def test_map_statistics_of_known_maps():
    length = 5
    mask = torch.tensor([[1, 1, 1, 1, 1, 0, 0]], dtype=torch.bool)
    ids = torch.tensor([[2, 7, 8, 9, 3, 0, 0]])  # 2 and 3 are special
    batch = Batch({"input_ids": ids, "attention_mask": mask.long()}, [0], torch.zeros(1))
    maps = torch.zeros(1, 3, 7, 7)
    maps[0, 0, :5, 0] = 1  # all to [CLS]
    maps[0, 1, range(5), range(5)] = 1  # to itself
    maps[0, 2, :5, :5] = 1 / length
    maps[0, :, 5:, :5] = 1 / length  # rows of padding
    measurement = predictors.MapStatistics((2, 3))
    measurement.update(0, maps, batch)
    marks, near, distance = measurement.compute().values()
    np.testing.assert_allclose(marks, [[1, 2 / 5, 2 / 5]], atol=1e-6)
    np.testing.assert_allclose(near, [[2 / 5, 1, 13 / 25]], atol=1e-6)
    np.testing.assert_allclose(distance, [[4 / 5, 4 / 5, 0]], atol=1e-6)


def test_twin_words_are_those_that_both_sentences_have():
    class Tokenizer:
        sep_token_id, all_special_ids = 3, [0, 2, 3]

        def __len__(self):
            return 12

        def convert_ids_to_tokens(self, ids):
            return ["[PAD]", "x", "[CLS]", "[SEP]", "y", ".", "a", "b", "c", "d", "e", "f"]

    ids = torch.tensor([[2, 6, 7, 5, 3, 8, 6, 5, 3, 0], [2, 6, 7, 3, 8, 9, 3, 0, 0, 0]])  # a b . | c a . and a b | c d
    batch = Batch({"input_ids": ids, "attention_mask": (ids > 0).long()}, [0, 1], torch.zeros(2))
    maps = torch.full((2, 1, 10, 10), 0.1)
    maps[0, 0, 1, 6] = 0.5  # the first a to its twin
    measurement = twins.TwinWords(Tokenizer())
    measurement.update(0, maps, batch)
    found = measurement.compute()
    # The first a: 0.5 to its twin and 0.1 to c; the second: 0.1 to its twin and 0.1 to b. The full stop is no word.
    assert found[0, 0, 0] == pytest.approx((0.4 + 0.0) / 2, abs=1e-6)
    assert np.isnan(found[1, 0, 0]), "no word is in both"


def test_a_random_order_has_every_head_once():
    order = random_order((3, 4), 1)
    assert sorted(order) == [(layer, head) for layer in range(3) for head in range(4)]
    assert order == random_order((3, 4), 1) != random_order((3, 4), 2)


def test_a_search_measures_the_rest_anew(model, batches):
    task, labels = TASKS["mrpc"], np.arange(24) % 2
    candidates = [(0, 1), (1, 2), (2, 0), (2, 3)]
    chosen = searched_order(task, model, batches, labels, candidates, 3)
    assert len(set(chosen)) == 3 and set(chosen) <= set(candidates)
    for count in range(3):
        scores = {}
        for head in (head for head in candidates if head not in chosen[:count]):
            with disable_heads(model, [*chosen[:count], head]):
                scores[head] = (predict_logits(model, batches).argmax(axis=1) == labels).mean()
        assert scores[chosen[count]] == max(scores.values())
    with pytest.raises(ValueError, match="5 heads are to be chosen from 4"):
        searched_order(task, model, batches, labels, candidates, 5)


def test_lengths_added_are_those_of_the_vectors_summed_by_weight(model, batches):
    one = examples.alone(batches, 3)
    found = predictors.lengths_added(model, [one])
    maps, carried = attention_maps(model, one), vectors(model, one)  # per layer
    for layer in range(3):
        added = maps[layer][0] @ carried[layer][0]  # (heads, tokens, hidden)
        np.testing.assert_allclose(found[layer], added.norm(dim=2).mean(dim=1).numpy(), rtol=1e-4)
    both = predictors.lengths_added(model, batches)
    singly = [predictors.lengths_added(model, [examples.alone(batches, index)]) for index in range(24)]
    lengths = [int(examples.alone(batches, index).mask.sum()) for index in range(24)]
    np.testing.assert_allclose(both, np.average(singly, axis=0, weights=lengths), rtol=1e-4)
