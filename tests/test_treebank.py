"""What is measured of a treebank's sentences, against plain loops over single words and tokens."""

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from conftest import ROOT, copy_of
from hub_server import LocalHub, hub_environment, only_this_machine, tiny_bert_repository
from precision import forward_tolerance
from test_annotation import CONLLU
from test_dependencies import treebank

from bertology_utils.common import BERT_BASE, HUB_REVISIONS
from bertology_utils.measurements import pointing, special_tokens
from bertology_utils.study import Study


@pytest.fixture
def study(tiny_bert):
    return Study.of("small", model=str(tiny_bert), sentences=120, rows=30)


def maps_of(model, ids):
    """All maps of one input in transformers' own way, shape (layers, heads, tokens, tokens)."""
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        maps = model(**ids, output_attentions=True).attentions
    return torch.cat(maps).numpy()


@pytest.mark.parametrize("start", ["pre-trained", "random"])
def test_words_point_at_the_other_word_that_gets_most_from_their_pieces(study, start):
    found, model = study.measure(pointing, start=start)["treebank"], study.encoder(start)
    assert found.sizes == {"layer": 3, "head": 4, "word": len(found.sentence)}
    assert np.unique(found.sentence).tolist() == list(range(120)), "blocks are numbered through"
    with h5py.File(pointing.path(study, "treebank", 0, start=start)) as file:
        assert file["relation"].dtype == "S1", "texts are packed"
    for number in (0, 7, 100, 119):
        one, (sentence,) = study.sentences()[number], study.sentences()[number].sentences
        maps = maps_of(model, {"input_ids": torch.tensor([one.ids])})
        own = found.isel(word=found.sentence.values == number)
        assert own.relation.values.tolist() == [word.deprel for word in sentence.words]
        assert own.upos.values.tolist() == [word.upos for word in sentence.words]
        assert own.place.values.tolist() == list(range(len(sentence.words)))
        for at, (word, pieces) in enumerate(zip(sentence.words, sentence.pieces, strict=True)):
            assert own.governor[at] == (0 if word.head < 0 else word.head - at)
            for layer, head in ((1, 1), (3, 2)):
                rows = maps[layer - 1, head - 1, list(pieces)]
                gets = [rows[:, list(to)].sum(axis=1).mean() for to in sentence.pieces]
                gets[at] = -1
                attended = at + int(own.attended.sel(layer=layer, head=head)[at])
                assert gets[attended] == pytest.approx(max(gets), abs=forward_tolerance(model))
                assert attended != at


def test_words_written_as_one_share_a_place_and_what_is_left_out_has_no_governor(study, tmp_path):
    long = "".join(
        f"{at}\tword\tword\tX\t_\t_\t{at - 1}\t{'dep' if at > 1 else 'root'}\t_\t_\n"
        for at in range(1, 151)
    )
    path = tmp_path / "own.conllu"
    path.write_text(CONLLU.strip() + "\n\n" + long + "\n", encoding="utf-8")
    bank = Study.of("small", model=study.settings.model, treebank=str(path))
    found = bank.measure(pointing)["treebank"]
    sentences = {
        count: one for number, one in found.groupby("sentence") if (count := one.sizes["word"])
    }
    assert sorted(sentences) == [1, 10, 150]
    whole = sentences[10]  # I do n't fly im(in dem) Nebel , yet .
    assert whole.place.values.tolist() == [0, 1, 1, 2, 3, 3, 4, 5, 6, 7]
    assert whole.governor.values.tolist() == [2, 1, 1, 0, 1, 1, -2, -3, -4, -5]
    np.testing.assert_array_equal(whole.attended[..., 1], whole.attended[..., 2])
    np.testing.assert_array_equal(whole.attended[..., 4], whole.attended[..., 5])
    assert not sentences[1].attended.any() and not sentences[1].governor.any()
    assert not sentences[150].attended.any() and not sentences[150].governor.any()


def test_special_tokens_by_loops_over_single_tokens(study):
    found, texts, model = (
        study.measure(special_tokens)["treebank"],
        study.texts(30),
        study.encoder(),
    )
    tokenizer = study.tokenizer
    for at, following in ((0, 1), (12, 13), (29, 0)):
        for name, text in (
            ("one sentence", texts[at : at + 1]),
            ("two sentences", [texts[at], texts[following]]),
        ):
            inputs = tokenizer(*text, return_tensors="pt")
            ids, gets = inputs["input_ids"][0].tolist(), maps_of(model, inputs).mean(axis=2)
            assert ids.count(tokenizer.sep_token_id) == len(text)
            sep = [gets[..., to] for to, one in enumerate(ids) if one == tokenizer.sep_token_id]
            expected = {
                "[CLS]": gets[..., 0],
                "[SEP]": sum(sep),
                "largest [SEP]": np.maximum(sep[0], sep[-1]),
            }
            even = {"[CLS]": 1, "[SEP]": len(text), "largest [SEP]": 1}
            for token, weight in expected.items():
                one = found.sel(input=name, token=token).isel(example=at)
                np.testing.assert_allclose(one.weight, weight, rtol=2e-3, atol=1e-4)
                assert float(one.even) == pytest.approx(even[token] / len(ids), rel=1e-3)


NAME = "8_pretrained_encoder"


def test_a_miniature_of_bert_base_is_measured_from_the_hub_and_nothing_else_is_asked_for(tmp_path):
    repositories = {BERT_BASE: (HUB_REVISIONS[BERT_BASE], tiny_bert_repository(12, 12, 24))}
    package = [path for path in (ROOT / "bertology_utils").rglob("*") if path.suffix != ".pyc"]
    files = [ROOT / "notebooks" / f"{NAME}.ipynb", *filter(Path.is_file, package)]
    given = {"model": BERT_BASE, "treebank": str(treebank(tmp_path, 80))}
    command = [sys.executable, "-m", "bertology_utils", "run", "--only", "8"]
    command += [part for pair in given.items() for part in ("-p", *pair)]
    with LocalHub(repositories) as hub:
        environment = hub_environment(hub.url, tmp_path / "hf")
        environment |= {f"BERTOLOGY_{one}": str(tmp_path / one) for one in ("CACHE", "MEASURED")}
        checkout = copy_of(files, tmp_path / "checkout")
        environment |= only_this_machine(tmp_path / "site", checkout)
        done = subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=900
        )
        requested = [path for _, path in hub.requests]
    assert done.returncode == 0, done.stderr[-3000:]
    (results,) = checkout.glob(f"runs/*/results/{NAME}.json")
    claims = json.loads(results.read_text())["claims"]
    of_distance, *_, of_special = claims.values()
    assert of_distance["tasks"].keys() == {"nsubj", "obj", "det"}
    assert of_distance["verdict"] != "✓", "a distance is always right"
    assert list(of_special["tasks"]) == [f"layer {layer}" for layer in range(6, 11)]
    assert requested and all(f"/{BERT_BASE}" in path for path in requested)
    fetched = [path for path in requested if "/resolve/" in path]
    assert fetched and all(HUB_REVISIONS[BERT_BASE] in path for path in fetched)
