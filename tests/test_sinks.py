"""What heads carry from sinks, and answers without: against plain loops over layers, heads, tokens."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import one_example, random_classifier
from scipy.special import softmax

from bertology_utils import attention_maps, batches_of, load_tokenizer, sinks
from bertology_utils.attention import vectors
from bertology_utils.measurements import carried, cut_words, cuts
from bertology_utils.study import Study

PAIRS = [
    ("The dog, old and tired, slept.", "It slept!"),
    ("Rain.", "The bridge was closed because the river had risen"),
    ("No", "yes"),
]


@pytest.fixture(scope="module")
def case(tiny_bert):
    """A classifier whose weights are large enough that heads differ; its tokenizer; and pairs."""
    model, tokenizer = random_classifier(str(tiny_bert), "rte"), load_tokenizer(str(tiny_bert))
    torch.manual_seed(3)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "encoder" in name and weight.dim() == 2:
                weight.normal_(std=0.4)
    return model.eval(), tokenizer, batches_of(PAIRS, tokenizer)


def types_of(tokens):
    """Places of [CLS], [SEP], punctuation and words, told by the strings."""
    names = {"[CLS]": 0, "[SEP]": 1} | dict.fromkeys(".,!", 2)
    return np.array([names.get(token, 3) for token in tokens])


def alone(case, example):
    """One pair without padding: its types, maps and f(x) of each layer as double precision."""
    model, tokenizer, batches = case
    batch = one_example(batches, example)
    types = types_of(tokenizer.convert_ids_to_tokens(batch.inputs["input_ids"][0]))
    maps = [one[0].double().numpy() for one in attention_maps(model, batch)]
    f = [one[0].double().numpy() for one in vectors(model, batch)]
    return batch, types, maps, f


def norms_of(f):
    """What ValueNorms has seen of a layer, in the hidden size."""
    f = torch.from_numpy(f)[None]
    return SimpleNamespace(vectors=f, lengths=f.norm(dim=3))


def test_what_is_carried_equals_a_plain_reading(case):
    made = sinks.carried(case[0], case[2], case[1], seed=1)
    share = np.delete(made["share"], sinks.COUNTED_BY.index("lengths exchanged"), axis=3)
    for example in range(len(PAIRS)):
        _, types, maps, f = alone(case, example)
        for layer, head in np.ndindex(made["output"].shape[1:]):
            a, vector = maps[layer][head], f[layer][head]
            length, outputs = np.linalg.norm(vector, axis=1), a @ vector
            sizes = np.linalg.norm(outputs, axis=1)  # of the head's output at each token
            by_norm = a * length / (a * length).sum(axis=1, keepdims=True)
            along = a * (outputs @ vector.T) / sizes[:, None] / sizes.mean()
            for kind in range(4):
                own = types == kind
                expected = [one[:, own].sum(axis=1).mean() for one in (a, by_norm, along)]
                np.testing.assert_allclose(
                    share[example, layer, head, :, kind], expected, atol=2e-5
                )
                mean = length[own].mean() if own.any() else np.nan
                found = made["length"][example, layer, head, kind]
                np.testing.assert_allclose(found, mean, rtol=1e-4)
            np.testing.assert_allclose(
                made["output"][example, layer, head], sizes.mean(), rtol=1e-4
            )
    np.testing.assert_allclose(made["share"].sum(axis=-1), 1, atol=1e-5)


def part(a, vector, sink, words, what):
    """The part of one row of a map that goes, in plain loops."""
    gone = np.zeros(len(a))
    if what == "sink":
        gone[sink] = a[sink]
        return gone
    size = {
        "weight": lambda those: a[those].sum(),
        "norm": lambda those: sum(a[j] * np.linalg.norm(vector[j]) for j in those),
        "sum": lambda those: np.linalg.norm(sum(a[j] * vector[j] for j in those)),
    }[what]
    gone[words] = a[words] * min(1, size(sink) / size(words))
    return gone


@pytest.mark.parametrize("name", sinks.CUTS)
@pytest.mark.parametrize("sink", sinks.SINKS)
def test_the_first_layer_cut_equals_a_plain_loop(case, name, sink):
    """What goes and what stands instead, row by row, of maps that no cut has changed yet."""
    (what, instead), those = sinks.CUTS[name], sinks.SINKS[sink]
    for example in range(len(PAIRS)):
        batch, types, maps, f = alone(case, example)
        is_sink, is_word = (torch.from_numpy(np.isin(types, one))[None] for one in (those, [3]))
        words = np.flatnonzero(types == 3)
        norms = norms_of(f[0])
        given = torch.from_numpy(maps[0])[None]
        gone = sinks.part_to_cut(given, norms, is_sink, is_word, what)
        kept = sinks.put_instead(given, gone, batch, instead)
        for head, i in np.ndindex(maps[0].shape[:2]):
            a = maps[0][head, i]
            cut = part(a, f[0][head], np.flatnonzero(np.isin(types, those)), words, what)
            np.testing.assert_allclose(gone[0, head, i], cut, atol=1e-9)
            plain = a - cut
            if instead == "rest":
                plain = plain / plain.sum()
            elif instead == "mean":
                plain = plain + cut.sum() / len(a)
            np.testing.assert_allclose(kept[0, head, i], plain, atol=1e-9)


def test_whole_words_go_in_their_order_until_as_much_norm_is_gone(case):
    model, tokenizer, batches = case
    for example in range(len(PAIRS)):
        batch, types, maps, f = alone(case, example)
        is_sink, is_word = (torch.from_numpy(np.isin(types, one))[None] for one in ([0, 1], [3]))
        norms = norms_of(f[0])
        order = sinks.random_order(batch, maps[0].shape[0], lambda index: (1, index))
        assert sorted(order[0, 0].tolist()) == list(range(len(types)))
        given = torch.from_numpy(maps[0])[None]
        gone = sinks.words_to_cut(given, norms, is_sink, is_word, order)
        for head, i in np.ndindex(maps[0].shape[:2]):
            a, length = maps[0][head, i], norms.lengths[0, head].numpy()
            wanted = sum(a[j] * length[j] for j in range(len(a)) if types[j] in (0, 1))
            cut = np.zeros(len(a))
            for j in order[0, head].tolist():
                if types[j] == 3 and wanted > 0:
                    share = min(1, wanted / (a[j] * length[j]))
                    cut[j], wanted = share * a[j], wanted - share * a[j] * length[j]
            np.testing.assert_allclose(gone[0, head, i], cut, atol=1e-9)

    # An order of its own gives every head other words; what is in a batch with an example says nothing.
    made = sinks.cut_words(model, batches, tokenizer, seed=1)
    alone_too = sinks.cut_words(model, [one_example(batches, 1)], tokenizer, seed=1)
    for name, values in alone_too.items():
        np.testing.assert_allclose(made[name][1], values[0], atol=2e-5)
    one, own = np.moveaxis(made["outputs"], 1, 0)
    assert abs(one - own).max() > 1e-3 and abs(np.diff(one, axis=1)).max() > 1e-3


def test_answers_without_the_sink_are_those_of_a_model_whose_sink_has_no_value(case):
    """Dropped: as with the sink's value vector at zero; given to the rest: as masked before the softmax."""
    model, tokenizer, batches = case
    made = sinks.cut_attention(model, batches, tokenizer)
    names = list(sinks.CUTS)
    layers = model.bert.encoder.layer
    for example in range(len(PAIRS)):
        batch, types, *_ = alone(case, example)
        with torch.inference_mode():
            whole = model(**batch.inputs).logits[0]
        np.testing.assert_allclose(made["whole"][example], whole, atol=1e-4)
        for kind, places in enumerate(sinks.SINKS.values()):
            is_sink = torch.from_numpy(np.isin(types, places))
            for name, those in (
                ("sink dropped", layers),
                ("sink dropped, last layer only", layers[-1:]),
            ):
                hooks = [
                    layer.attention.self.value.register_forward_hook(
                        lambda module, inputs, output, is_sink=is_sink: output * ~is_sink[:, None]
                    )
                    for layer in those
                ]
                with torch.inference_mode():
                    plain = model(**batch.inputs).logits[0]
                for hook in hooks:
                    hook.remove()
                after = made["outputs"][example, kind, names.index(name)]
                np.testing.assert_allclose(after, plain, atol=1e-4)
            masked = batch.inputs | {"attention_mask": (~is_sink[None]).long()}
            with torch.inference_mode():
                plain = model(**masked).logits[0]
            after = made["outputs"][example, kind, names.index("sink given to the rest")]
            np.testing.assert_allclose(after, plain, atol=1e-4)


def test_the_measurements_keep_them_under_their_names(
    tiny_bert, tiny_classifier, monkeypatch, tmp_path
):
    for place in ("OUTPUT", "RESULTS", "MEASURED"):
        monkeypatch.setenv(f"BERTOLOGY_{place}", str(tmp_path / place))
    monkeypatch.setattr(Study, "fingerprint", lambda *_: "x")
    given = {"model": str(tiny_bert), "data": "embedded", "rows": 8, "compared_rows": 8}
    study = Study.of("e5", "mrpc", checkpoint={"mrpc": str(tiny_classifier)}, **given)
    batches, model = study.batches("MRPC"), study.classifier("MRPC")

    kept = carried(study, "MRPC", 1)
    made = sinks.carried(model, batches, study.tokenizer, study.settings.seed)
    tuned, names = kept.sel(state="fine-tuned"), ("count", "type")
    share = made["share"].mean(axis=2)  # (examples, layers, counts, types)
    assert tuned.share.dims == ("example", "layer", *names) and tuned.sizes["example"] == 8
    np.testing.assert_allclose(tuned.share, share, atol=1e-3)
    np.testing.assert_allclose(tuned.share_of_head, made["share"].mean(axis=0), atol=1e-3)
    lengths = {}
    for batch in batches:
        lengths |= dict(zip(batch.index, batch.lengths.tolist(), strict=True))
    assert kept.tokens.sum("type").values.tolist() == [lengths[at] for at in range(8)]
    assert (kept.tokens.sel(type="[CLS]") == 1).all() and (kept.tokens.sel(type="[SEP]") == 2).all()

    both = (
        (cuts, sinks.cut_attention(model, batches, study.tokenizer), ("sink", "cut")),
        (
            cut_words,
            sinks.cut_words(model, batches, study.tokenizer, study.settings.seed),
            ("order", "draw"),
        ),
    )
    for measurement, cut, axes in both:
        whole = measurement(study, "MRPC", 1).transpose("example", *axes)
        p, q = softmax(cut["whole"], axis=-1)[:, None, None], softmax(cut["outputs"], axis=-1)
        np.testing.assert_allclose(whole.moved, abs(q - p).sum(axis=-1) / 2, atol=1e-3)
        np.testing.assert_array_equal(
            whole.right_cut, q.argmax(axis=-1) == whole.label.values[:, None, None]
        )
        for name in ("weight", "norm"):
            np.testing.assert_allclose(whole[name], cut[name], atol=1e-3)
