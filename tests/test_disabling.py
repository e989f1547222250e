"""Disabled heads: exactly 1/L, the model as before afterwards, and the plain sweep (§4.6)."""

import copy

import numpy as np
import pytest
import torch
from conftest import batches_of_rows, random_classifier
from precision import forward_tolerance, sum_tolerance

from bertology_utils.attention import attention_maps
from bertology_utils.disabling import sweep as sweep_module
from bertology_utils.disabling.masking import (
    all_heads,
    disable_heads,
    layer_heads,
    logits_without,
    replacement,
)
from bertology_utils.disabling.sweep import partners, reference_sweep, sweep
from bertology_utils.glue import TASKS
from bertology_utils.models import load_tokenizer, predict_logits


@pytest.fixture(scope="module")
def model(tiny_bert):
    return random_classifier(tiny_bert, "mrpc")


@pytest.fixture(scope="module")
def batches():
    return batches_of_rows(TASKS["mrpc"], 24, load_tokenizer("embedded"), tokens_per_batch=400)


def projections(model):
    """The layers' modules that project the heads' outputs, in order."""
    return [layer.attention.output.dense for layer in model.base_model.encoder.layer]


def test_the_model_is_as_before_whatever_happens_inside(model, batches):
    before, implementation = predict_logits(model, batches), model.config._attn_implementation
    with pytest.raises(KeyError), disable_heads(model, all_heads(model)):
        raise KeyError
    np.testing.assert_array_equal(predict_logits(model, batches), before)
    assert model.config._attn_implementation == implementation
    assert not model.base_model._forward_pre_hooks and not model.base_model._forward_hooks


def test_contexts_add_up(model, batches):
    with disable_heads(model, [(0, 0), *layer_heads(model, 1)]):
        both = predict_logits(model, batches)
    with disable_heads(model, [(0, 0)]):
        outer = predict_logits(model, batches)
        with disable_heads(model, layer_heads(model, 1)):
            np.testing.assert_array_equal(predict_logits(model, batches), both)
        np.testing.assert_array_equal(predict_logits(model, batches), outer)
    assert abs(both - outer).max() > 1e-5


def test_an_edit_reaches_its_own_model_only(model, batches):
    other = copy.deepcopy(model)
    other.config = model.config  # even where two models share their configuration
    for module in other.modules():
        if hasattr(module, "config"):
            module.config = model.config
    before, maps = predict_logits(other, batches), attention_maps(other, batches[-1])
    with disable_heads(model, all_heads(model)):
        np.testing.assert_allclose(predict_logits(other, batches), before, atol=1e-6)
        for ours, theirs in zip(attention_maps(other, batches[-1]), maps, strict=True):
            torch.testing.assert_close(ours, theirs, atol=0, rtol=0)


@pytest.mark.parametrize("ablation", ["uniform", "mean"])
def test_a_sweep_within_the_context_keeps_its_heads_disabled(model, batches, ablation, capsys):
    outer = [(0, 1), (2, 3)]
    with disable_heads(model, outer):
        found = sweep(model, batches, ablation=ablation)
        np.testing.assert_array_equal(found.baseline, predict_logits(model, batches))
    assert "heads that are disabled already" in capsys.readouterr().err
    assert abs(found.baseline - predict_logits(model, batches)).max() > 1e-4
    if ablation == "uniform":
        with disable_heads(model, [*outer, (1, 0)]):
            np.testing.assert_array_equal(found.heads[1, 0], predict_logits(model, batches))
        with disable_heads(model, [*layer_heads(model, 2), (0, 1)]):
            np.testing.assert_array_equal(found.layers[2], predict_logits(model, batches))
    sweep(model, batches[:1])
    assert "disabled already" not in capsys.readouterr().err, "afterwards the fast way again"


@pytest.mark.parametrize(
    "heads, error, message",
    [
        ([], ValueError, "no head"),
        ([(3, 0)], ValueError, r"layer 3 of \(3, 0\): this model's layers are 0 to 2"),
        ([(0, 4)], ValueError, r"head 4 of \(0, 4\): this model's heads are 0 to 3"),
        ([(0, 1), (2, 1), (0, 1)], ValueError, r"head \(0, 1\) is named twice"),
        ({0: [1, 2]}, TypeError, r"heads are a mapping.*give pairs \(layer, head\)"),
        ([(True, False)], TypeError, r"\(True, False\) is no head; give pairs"),
        (torch.ones(1, 2, dtype=torch.bool), TypeError, "is no head; give pairs"),
        ([(0.0, 1)], TypeError, "is no head; give pairs"),
        ([(0, 1, 2)], TypeError, "is no head; give pairs"),
    ],
)
def test_wrong_heads_are_refused(model, batches, heads, error, message):
    with pytest.raises(error, match=message), disable_heads(model, heads):
        pytest.fail("entered")


def test_heads_are_integers_of_any_kind(model, batches):
    chosen = np.zeros((3, 4), dtype=bool)
    chosen[0, 1] = chosen[2, 3] = True
    expected = logits_without(model, batches, [(0, 1), (2, 3)])
    generator = (pair for pair in [(np.int64(0), 1), (2, np.uint8(3))])
    for heads in (np.argwhere(chosen), torch.from_numpy(chosen).nonzero(), generator):
        with disable_heads(model, heads):
            np.testing.assert_array_equal(predict_logits(model, batches), expected)


def test_without_no_head_is_the_whole_model(model, batches):
    whole = predict_logits(model, batches)
    for none in ([], np.empty((0, 2), dtype=int)):
        np.testing.assert_array_equal(logits_without(model, batches, none), whole)


@pytest.mark.parametrize("tokens_at_once", [1, 300])
def test_fast_sweep_equals_the_reference(model, batches, tokens_at_once, monkeypatch):
    expected = reference_sweep(model, batches)
    monkeypatch.setattr(sweep_module, "_reference", lambda *_: pytest.fail("the slow way"))
    monkeypatch.setitem(sweep_module.TOKENS_AT_ONCE, "cpu", tokens_at_once)
    found = sweep(model, batches)
    for name in ("baseline", "heads", "layers"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), atol=forward_tolerance(model, ways=4)
        )


def test_zero_equals_a_head_without_output_weights(model, batches):
    other = copy.deepcopy(model)
    with torch.no_grad():
        projections(other)[1].weight[:, 16:24] = 0
    found = sweep(model, batches, "zero")
    np.testing.assert_allclose(
        found.heads[1, 2], predict_logits(other, batches), atol=forward_tolerance(model, ways=4)
    )


def test_mean_is_the_mean_over_real_tokens(model, batches):
    seen = []
    hook = projections(model)[0].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    predict_logits(model, batches)
    hook.remove()
    tokens = torch.cat([context[batch.mask] for context, batch in zip(seen, batches, strict=True)])
    found, tolerance = replacement(model, batches, "mean")[0].flatten(), sum_tolerance(len(tokens))
    torch.testing.assert_close(found.float(), tokens.mean(dim=0), atol=tolerance, rtol=0)


def test_interchange_gives_an_input_what_the_head_gives_the_next_one_of_its_length(model, batches):
    groups = partners(batches)
    assert sorted(index for group in groups for index in group.index) == list(range(24))
    assert {len({len(ids) for ids in group.inputs["input_ids"]}) for group in groups} == {1}
    found = sweep(model, batches, "interchange")
    one = next(group for group in groups if len(group.index) > 2)
    seen = []
    hook = projections(model)[1].register_forward_pre_hook(
        lambda module, arguments: seen.append(arguments[0])
    )
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
        np.testing.assert_allclose(
            found.heads[1, 2, one.index[at]], expected[at], atol=forward_tolerance(model, ways=4)
        )


def test_non_finite_outputs_are_refused(model, batches):
    broken = copy.deepcopy(model)
    with torch.no_grad():
        [module for module in broken.modules() if hasattr(module, "query")][1].value.bias.fill_(
            torch.inf
        )
    with pytest.raises(FloatingPointError, match="NaN or infinite"):
        sweep(broken, batches)
