"""Batches of one's own texts, and what is refused before any of them is made."""

import numpy as np
import pytest
import torch
from conftest import make_rows

from bertology_utils import batches_of, load_tokenizer
from bertology_utils.attention import batches
from bertology_utils.attention.batches import make_batches, tokenize
from bertology_utils.glue import TASKS


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer("embedded")


@pytest.mark.parametrize("name", ["sst2", "mrpc"])
def test_the_batches_are_those_of_the_rows(tokenizer, name):
    task = TASKS[name]
    rows = make_rows(task, 20)
    expected = make_batches(tokenize(rows, task, tokenizer, 64), tokenizer, 100)
    columns = [rows[field] for field in task.fields]
    texts = list(columns[0]) if len(columns) == 1 else list(zip(*columns, strict=True))
    for labels in (None, list(rows["label"]), np.array(rows["label"])):
        found = batches_of(texts, tokenizer, labels, tokens_per_batch=100)
        assert len(found) == len(expected) > 1
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.index == theirs.index and ours.inputs.keys() == theirs.inputs.keys()
            assert all(torch.equal(ours.inputs[key], theirs.inputs[key]) for key in theirs.inputs)
            assert ours.labels is None if labels is None else torch.equal(ours.labels, theirs.labels)


def test_segments_and_padding_are_the_tokenizers(tokenizer):
    (batch,) = batches_of([("a b", "c"), ("a", "b c d e")], tokenizer)
    for row, index in enumerate(batch.index):
        expected = tokenizer(*[("a b", "c"), ("a", "b c d e")][index])
        length = int(batch.lengths[row])
        for name, values in expected.items():
            assert batch.inputs[name][row, :length].tolist() == values
        assert (batch.inputs["input_ids"][row, length:] == tokenizer.pad_token_id).all()


@pytest.mark.parametrize(
    "texts, labels, error, message",
    [
        ([], None, ValueError, "no texts; give at least one"),
        ("a text", None, TypeError, "texts is one string"),
        (["a", "  "], None, ValueError, "text 2 is empty"),
        ([("a", "b"), ("a", "")], None, ValueError, "text 2 is empty"),
        (["a", ("a", "b")], None, ValueError, "text 2 is a pair and text 1 is not"),
        (["a", 3], None, TypeError, "text 2 is 3; give a string or a pair of strings"),
        ([("a", "b", "c")], None, TypeError, "give a string or a pair"),
        (["a", "b"], [1], ValueError, "1 labels for 2 texts"),
        (["a", "b " * 600], None, ValueError, "text 2 has 602 wordpieces and the tokenizer allows 512; cut .* max_length"),
    ],
)
def test_bad_input_is_refused_in_words(tokenizer, texts, labels, error, message):
    with pytest.raises(error, match=message):
        batches_of(texts, tokenizer, labels)


def test_long_texts_are_cut_where_that_is_asked_for(tokenizer):
    (batch,) = batches_of(["b " * 600, "c"], tokenizer, max_length=10)
    assert batch.lengths.tolist() == [3, 10]


@pytest.mark.parametrize(
    "missing, texts, message",
    [
        ("pad_token", ["a", "b c"], "has no padding token.* set tokenizer.pad_token"),
        ("sep_token", [("a", "b")], "has no separator.* give single texts"),
    ],
)
def test_a_tokenizer_that_cannot_make_the_inputs_is_refused(missing, texts, message):
    tokenizer = load_tokenizer("embedded")
    setattr(tokenizer, missing, None)
    with pytest.raises(ValueError, match=message):
        batches_of(texts, tokenizer)
    if missing == "sep_token":
        with pytest.raises(ValueError, match=message):
            tokenize(make_rows(TASKS["mrpc"], 2), TASKS["mrpc"], tokenizer, 32)
        batches_of(["a"], tokenizer)


def test_a_gpu_takes_larger_batches_as_far_as_its_memory_reaches(monkeypatch):
    assert batches.tokens_per_batch(12, 12, 128) == batches.TOKENS_PER_BATCH, "on a CPU as ever"
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    found = []
    for gigabytes in (1, 15, 140):
        monkeypatch.setattr("torch.cuda.mem_get_info", lambda free=gigabytes * 2**30: (free, free))
        found.append(batches.tokens_per_batch(12, 12, 128))
        held = 8 * 12 * 12 * 128 * 4 * found[-1]  # bytes of the maps of eight models
        assert held <= 0.25 * gigabytes * 2**30 or found[-1] == batches.TOKENS_PER_BATCH
    assert found[0] == batches.TOKENS_PER_BATCH < found[1] < found[2]
