"""Disabled heads: exactly 1/L, the model as before afterwards, and the plain sweep (§4.6)."""

import asyncio
import contextvars
import copy
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest
import torch
import transformers
from conftest import batches_of_rows, one_example, random_classifier
from precision import forward_tolerance, sum_tolerance
from transformers import BertForSequenceClassification
from transformers.masking_utils import eager_mask

from bertology_utils import sweeps as sweep_module
from bertology_utils.attention import attention_maps
from bertology_utils.batches import Batch, in_order
from bertology_utils.disabling import (
    all_heads,
    disable_heads,
    layer_heads,
    logits_without,
    replacement,
)
from bertology_utils.glue import TASKS
from bertology_utils.hooks import _SOFTMAX
from bertology_utils.models import load_tokenizer, predict_logits
from bertology_utils.sweeps import reference_sweep, sweep


@pytest.fixture(scope="module")
def model(tiny_bert):
    return random_classifier(tiny_bert, "mrpc")


@pytest.fixture(scope="module")
def batches():
    return batches_of_rows(TASKS["mrpc"], 24, load_tokenizer("embedded"), tokens_per_batch=400)


def projections(model):
    """The layers' modules that project the heads' outputs, in order."""
    return [layer.attention.output.dense for layer in model.base_model.encoder.layer]


def is_as_before(model):
    """No hooks are left, and the attention is the one of the configuration."""
    hooks = model.base_model._forward_pre_hooks, model.base_model._forward_hooks
    return not any(hooks) and model.config._attn_implementation == "eager"


def test_the_model_is_as_before_whatever_happens_inside(model, batches):
    before = predict_logits(model, batches)
    with disable_heads(model, []):
        np.testing.assert_array_equal(predict_logits(model, batches), before)
    with pytest.raises(KeyError), disable_heads(model, all_heads(model)):
        raise KeyError
    np.testing.assert_array_equal(predict_logits(model, batches), before)
    assert is_as_before(model)


def test_contexts_add_up(model, batches):
    with disable_heads(model, [(0, 0), *layer_heads(model, 1)]):
        both = predict_logits(model, batches)
    with disable_heads(model, [(0, 0)]):
        outer = predict_logits(model, batches)
        with disable_heads(model, layer_heads(model, 1)):
            np.testing.assert_array_equal(predict_logits(model, batches), both)
        np.testing.assert_array_equal(predict_logits(model, batches), outer)
    assert abs(both - outer).max() > 1e-5


def test_other_threads_use_the_model_as_it_is(model, batches):
    whole = predict_logits(model, batches)
    without = [logits_without(model, batches, [head]) for head in layer_heads(model, 1)]
    with ThreadPoolExecutor(4) as pool:
        with disable_heads(model, [(0, 1)]):
            np.testing.assert_array_equal(
                pool.submit(predict_logits, model, batches).result(), whole
            )
            swept = pool.submit(sweep, model, batches).result()
        np.testing.assert_allclose(swept.baseline, whole, atol=forward_tolerance(model, ways=4))
        jobs = [pool.submit(logits_without, model, batches, [(1, at % 4)]) for at in range(12)]
        for at, job in enumerate(jobs):
            np.testing.assert_array_equal(job.result(), without[at % 4])
    # With the context of the thread that opened one, as asyncio.to_thread hands it on.
    with ThreadPoolExecutor(4) as pool, disable_heads(model, [(1, 2)]):
        copies = [contextvars.copy_context() for _ in range(8)]
        for job in [pool.submit(one.run, predict_logits, model, batches) for one in copies]:
            np.testing.assert_array_equal(job.result(), without[2])
    assert is_as_before(model)


def test_other_asynchronous_tasks_use_the_model_as_it_is(model, batches):
    async def disabling(opened, predicted):
        with disable_heads(model, [(0, 1)]):
            opened.set()
            await predicted.wait()
            return predict_logits(model, batches)

    async def both():
        opened, predicted = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(disabling(opened, predicted))
        await opened.wait()
        plain = predict_logits(model, batches)
        predicted.set()
        return plain, await task

    plain, without = asyncio.run(both())
    np.testing.assert_array_equal(plain, predict_logits(model, batches))
    np.testing.assert_array_equal(without, logits_without(model, batches, [(0, 1)]))


def test_a_pass_during_which_another_thread_opens_a_context_is_exact(model, batches):
    model = copy.deepcopy(model)
    model.set_attn_implementation("sdpa")
    whole, (one, *_) = predict_logits(model, batches), projections(model)
    with ThreadPoolExecutor(1) as pool, ExitStack() as opened:
        hook = one.register_forward_hook(
            lambda *_: (
                pool.submit(opened.enter_context, disable_heads(model, [(2, 1)])).result() and None
            )
        )
        during = predict_logits(model, batches)
        hook.remove()
    np.testing.assert_allclose(during, whole, atol=forward_tolerance(model, ways=4))


@pytest.mark.parametrize("how", ["context", "generator"])
def test_a_context_that_is_left_elsewhere_leaves_nothing(model, batches, how):
    def generator():
        with disable_heads(model, [(0, 1)]):
            yield

    whole, elsewhere = predict_logits(model, batches), contextvars.copy_context()
    context, one = disable_heads(model, [(0, 1)]), generator()
    if how == "context":
        elsewhere.run(context.__enter__)
        context.__exit__(None, None, None)
    else:
        elsewhere.run(next, one)
        one.close()
    assert is_as_before(model)
    np.testing.assert_array_equal(predict_logits(model, batches), whole)
    np.testing.assert_array_equal(  # and where it was opened
        elsewhere.run(logits_without, model, batches, [(1, 0)]),
        logits_without(model, batches, [(1, 0)]),
    )


def test_contexts_may_be_left_in_any_order(model, batches):
    first, second = disable_heads(model, [(0, 1)]), disable_heads(model, [(1, 0)])
    expected = logits_without(model, batches, [(1, 0)])
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    np.testing.assert_array_equal(predict_logits(model, batches), expected)
    second.__exit__(None, None, None)
    assert is_as_before(model)


@pytest.mark.parametrize("asked", ["in the call", "by the configuration"])
def test_the_models_own_way_to_its_maps_shows_those_that_were_used(model, batches, asked):
    model, batch = copy.deepcopy(model), batches[-1]
    by_call = {"output_attentions": True} if asked == "in the call" else {}
    model.config.output_attentions = not by_call
    zeros = replacement(model, batches, "zero")
    for context in (disable_heads(model, [(0, 1)]), disable_heads(model, [(1, 2)], zeros)):
        with torch.inference_mode(), context:
            shown = model(**batch.inputs, **by_call).attentions
            assert len(shown) == 3
            assert all(map(torch.equal, shown, attention_maps(model, batch)))


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
    sweep(model, batches)
    assert "disabled already" not in capsys.readouterr().err, "afterwards the fast way again"


@pytest.mark.parametrize(
    "heads, error, message",
    [
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


def test_heads_are_integers_of_any_kind_and_none_leave_the_model_whole(model, batches):
    chosen = np.zeros((3, 4), dtype=bool)
    chosen[0, 1] = chosen[2, 3] = True
    expected = logits_without(model, batches, [(0, 1), (2, 3)])
    generator = (pair for pair in [(np.int64(0), 1), (2, np.uint8(3))])
    for heads in (np.argwhere(chosen), torch.from_numpy(chosen).nonzero(), generator):
        with disable_heads(model, heads):
            np.testing.assert_array_equal(predict_logits(model, batches), expected)
    whole = logits_without(model, batches, np.empty((0, 2), dtype=int))
    np.testing.assert_array_equal(whole, predict_logits(model, batches))


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


def with_hole(model, inputs, at):
    mask = inputs["attention_mask"].clone()
    mask[:, 2:4] = 0
    return inputs | {"attention_mask": mask}


def with_positions(model, inputs, at):
    ids = inputs["input_ids"]
    return inputs | {"position_ids": 7 + torch.arange(ids.shape[1]).flip(0).expand_as(ids)}


def with_vectors(model, inputs, at):
    with torch.inference_mode():
        vectors = model.get_input_embeddings()(inputs["input_ids"]).flip(2)
    known = {name: one for name, one in inputs.items() if name != "input_ids"}
    return known | {"inputs_embeds": vectors}


def with_segments_in_some(model, inputs, at):
    known = {name: one for name, one in inputs.items() if name != "token_type_ids"}
    return known | ({"token_type_ids": inputs["input_ids"] % 2} if at % 2 else {})


@pytest.mark.parametrize("change", [with_hole, with_positions, with_vectors, with_segments_in_some])
def test_the_sweep_is_that_of_the_inputs_as_they_are(model, batches, change, capsys):
    if change is with_segments_in_some:  # in some batches, of inputs of one length
        one = one_example(batches, batches[-1].index[0])
        batches = [Batch(one.inputs, [at]) for at in range(4)]
    given = [Batch(change(model, one.inputs, at), one.index) for at, one in enumerate(batches)]
    with torch.inference_mode():
        plain, usual = (
            in_order([model(**one.inputs).logits.double() for one in several], several)
            for several in (given, batches)
        )
    assert abs(plain - usual).max() > 1e-3
    found = sweep(model, given)
    fast = "masked tokens between others" not in capsys.readouterr().err
    assert fast == (change is not with_hole)
    expected, tolerance = reference_sweep(model, given), forward_tolerance(model, ways=4)
    np.testing.assert_allclose(found.baseline, plain, atol=tolerance)
    np.testing.assert_allclose(found.heads, expected.heads, atol=tolerance)


class CountsForSequenceClassification(BertForSequenceClassification):
    """A classifier that reads how much is padded."""

    def forward(self, attention_mask, **inputs):
        outputs = super().forward(attention_mask=attention_mask, **inputs)
        outputs.logits = outputs.logits + (1 - attention_mask).sum(dim=1, keepdim=True)
        return outputs


def test_the_fast_way_is_compared_with_the_plain_one_on_inputs_with_padding(model, batches, capsys):
    counts = CountsForSequenceClassification(model.config).eval()
    counts.load_state_dict(model.state_dict())
    found = sweep(counts, batches)
    np.testing.assert_array_equal(found.baseline, predict_logits(counts, batches))
    assert "not known to the fast sweep" in capsys.readouterr().err


def test_mean_is_the_mean_over_real_tokens(model, batches):
    seen = []
    hook = projections(model)[0].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    predict_logits(model, batches)
    hook.remove()
    tokens = torch.cat([context[batch.mask] for context, batch in zip(seen, batches, strict=True)])
    found, tolerance = replacement(model, batches, "mean")[0].flatten(), sum_tolerance(len(tokens))
    torch.testing.assert_close(found.float(), tokens.mean(dim=0), atol=tolerance, rtol=0)


def test_non_finite_outputs_are_refused(model, batches):
    broken = copy.deepcopy(model)
    with torch.no_grad():
        broken.bert.encoder.layer[1].attention.self.value.bias.fill_(torch.inf)
    with pytest.raises(FloatingPointError, match="NaN or infinite"):
        sweep(broken, batches)


def test_a_copy_made_inside_is_a_model_of_its_own(model, batches):
    plain, maps = predict_logits(model, batches), attention_maps(model, batches[-1])
    with disable_heads(model, [(0, 1)]):
        disabled, other = predict_logits(model, batches), copy.deepcopy(model)
        np.testing.assert_allclose(predict_logits(other, batches), plain, atol=1e-5)
        for ours, theirs in zip(attention_maps(other, batches[-1]), maps, strict=True):
            torch.testing.assert_close(ours, theirs)
        with disable_heads(other, [(1, 0)]):
            np.testing.assert_array_equal(predict_logits(model, batches), disabled)
    assert is_as_before(model)
    with disable_heads(other, [(0, 1)]):
        np.testing.assert_array_equal(predict_logits(other, batches), disabled)
    np.testing.assert_allclose(predict_logits(other, batches), plain, atol=1e-5)


def test_gradients_are_those_of_the_model_without_the_heads(model, batches):
    own = copy.deepcopy(model).double()
    weight, token = own.get_input_embeddings().weight, int(batches[-1].inputs["input_ids"][0, 1])
    zeros = replacement(own, batches, "zero")
    for context in (disable_heads(own, [(0, 1), (2, 3)]), disable_heads(own, [(0, 1)], zeros)):
        with context:
            own.zero_grad()
            own(**batches[-1].inputs).logits.sum().backward()
            outputs = []
            for step in (1e-5, -2e-5):
                with torch.no_grad():
                    weight[token, 0] += step
                    outputs.append(own(**batches[-1].inputs).logits.sum().item())
            with torch.no_grad():
                weight[token, 0] += 1e-5
        assert weight.grad[token, 0].item() == pytest.approx((outputs[0] - outputs[1]) / 2e-5, 1e-5)


def warm(module, query, key, value, mask, scaling=1.0, **_):
    """The softmax at another temperature."""
    scores = query @ key.transpose(2, 3) * scaling / 4
    weights = torch.softmax(scores if mask is None else scores + mask, dim=-1)
    return (weights @ value).transpose(1, 2).contiguous(), weights


def test_attention_of_ones_own_is_refused_by_its_name(model, batches):
    transformers.AttentionInterface.register("warm", warm)
    transformers.AttentionMaskInterface.register("warm", eager_mask)
    own = copy.deepcopy(model)
    own.set_attn_implementation("warm")
    before = predict_logits(own, batches)
    for call in (
        lambda: attention_maps(own, batches[0]),
        lambda: disable_heads(own, [(0, 0)]).__enter__(),
        lambda: sweep(own, batches),
    ):
        with pytest.raises(ValueError, match="computes its attention by 'warm', of which nothing"):
            call()
    np.testing.assert_array_equal(predict_logits(own, batches), before)
    for known in ("eager", "sdpa", "flex_attention", "owner/kernel", "paged|sdpa"):
        assert _SOFTMAX.fullmatch(known)


SMALLER = {"intra_bottleneck_size": 8, "true_hidden_size": 8, "embedding_size": 16}


@pytest.mark.parametrize(("kind", "sizes"), [("Bert", {}), ("MobileBert", SMALLER)])
def test_zero_is_zero_whatever_the_size_of_a_head(kind, sizes, batches):
    """MobileBERT's heads are smaller than its hidden size and their number say."""
    kind = getattr(transformers, f"{kind}ForSequenceClassification")
    sizes = sizes | {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    torch.manual_seed(0)
    own = kind(kind.config_class(**sizes, intermediate_size=32)).eval()
    for parameter in own.parameters():
        torch.nn.init.normal_(parameter, std=0.25)
    swept, expected = sweep(own, batches, "zero"), copy.deepcopy(own)
    linear = projections(expected)[1]
    size = linear.in_features // 4
    with torch.no_grad():
        linear.weight[:, size : 2 * size] = 0  # head (1, 1)
    np.testing.assert_allclose(swept.heads[1, 1], predict_logits(expected, batches), atol=2e-6)
    assert abs(swept.heads[1, 1] - swept.baseline).max() > 2e-5
