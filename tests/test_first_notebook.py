"""What notebook 0 is made of: a head by hand, a reader's own sentence, flips against plain loops, and described pictures."""

import re
from types import SimpleNamespace

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from bs4 import BeautifulSoup
from conftest import ROOT
from precision import forward_tolerance
from scipy.stats import spearmanr
from transformers import AutoModelForSequenceClassification, DistilBertConfig, DistilBertModel

from bertology_utils import attention_maps, batches_of, plots, stats
from bertology_utils.glue import get_task
from bertology_utils.hooks import head_weights
from bertology_utils.stats import HEADS
from bertology_utils.study import OUTPUT_VARIABLE, Study
from docs.book import with_descriptions

PAIR = ("A swan sang.", "It was heard.")


@pytest.fixture(scope="module")
def classifier(tiny_bert):
    torch.manual_seed(0)
    return AutoModelForSequenceClassification.from_pretrained(tiny_bert, num_labels=2).eval()


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("head", [(0, 0), (1, 3), (2, 1)])
def test_a_head_by_hand_is_the_models_own(classifier, tokenizer, head):
    layer, number = head
    (batch,) = batches_of([PAIR], tokenizer)
    with torch.inference_mode():
        x = classifier.base_model(**batch.inputs, output_hidden_states=True).hidden_states[layer][0]
    query, key, value = (
        x @ matrix.T + bias for matrix, bias in head_weights(classifier, layer, number).values()
    )
    weights = torch.softmax(query @ key.T / query.shape[1] ** 0.5, dim=1)
    own = attention_maps(classifier, batch)[layer][0, number]
    torch.testing.assert_close(weights, own, atol=forward_tolerance(classifier), rtol=0)
    assert value.shape == (len(x), 8)


def test_heads_that_cannot_be_computed_by_hand_are_refused(classifier):
    with pytest.raises(ValueError, match=r"layer 3 of \(3, 0\): this model's layers are 0 to 2"):
        head_weights(classifier, 3, 0)
    sizes = {"n_layers": 1, "n_heads": 2, "dim": 8, "hidden_dim": 8, "vocab_size": 9}
    told = "DistilBertModel are not laid out as BERT's.*attention_maps"
    with pytest.raises(ValueError, match=told):
        head_weights(DistilBertModel(DistilBertConfig(**sizes)), 0, 0)


def text_of(kind, wanted):
    """The notebook's one cell of a kind in which a text stands."""
    cells = nbformat.read(ROOT / "notebooks" / "0_attention_head.ipynb", as_version=4).cells
    (source,) = [cell.source for cell in cells if cell.cell_type == kind and wanted in cell.source]
    return source


@pytest.mark.parametrize("mine", [PAIR, PAIR[0]], ids=["pair", "sentence"])
def test_a_reader_types_a_pair_or_a_sentence_and_bertviz_takes_it(
    mine, classifier, tokenizer, head_view
):
    """Layers of maps of shape (1, heads, tokens, tokens), and as many tokens; without bertviz."""
    shown = []
    study = SimpleNamespace(figure=lambda figure, *_, **__: shown.append(figure))
    own = {"layer": 1, "head": 2, "title": "head (2, 3)", "example": classifier, "study": study}
    own |= {"tokenizer": tokenizer, "plots": plots}
    own |= {"batches_of": batches_of, "attention_maps": attention_maps}
    exec(re.sub(r"mine = .*", f"mine = {mine!r}", text_of("code", "mine = "), count=1), own)
    tokens = own["own_tokens"]
    (words,) = [ax for ax in shown[0].axes if ax.get_xlabel() == "to token"]
    assert [label.get_text() for label in words.get_xticklabels()] == tokens
    assert tokens.count("[SEP]") == (2 if mine == PAIR else 1)
    assert own["own_map"].shape == (len(tokens),) * 2
    np.testing.assert_allclose(own["own_map"].sum(axis=1), 1, atol=1e-5)
    (call,) = re.findall(r"`(head_view\(.*?\))`", text_of("markdown", "head_view("))
    exec(f"from bertviz import head_view\n{call}", own)
    (((maps, given), options),) = head_view
    assert [layer.shape for layer in maps] == [(1, 4, len(tokens), len(tokens))] * 3
    assert given == tokens and options == {"layer": 1, "heads": [2]}


# Flips


def test_tasks_without_two_labels_are_refused_before_anything_is_measured():
    study = SimpleNamespace(tasks=["STS-B", "MNLI-m"], measure=lambda _: pytest.fail("measured"))
    names = {"study": study, "without_each_head": None, "get_task": get_task}
    with pytest.raises(ValueError, match="STS-B, MNLI-m: .* choose tasks with two"):
        exec(text_of("code", "without = {"), names)


def test_confidence_and_the_flips_of_the_least_confident_tenth_are_those_of_a_plain_loop():
    rng = np.random.default_rng(0)
    p, flipped = rng.uniform(0.01, 0.99, (2, 20)), rng.random((2, 3, 4, 20)) < 0.2
    one = xr.Dataset({"loss": (("run", "example"), -np.log(p))})
    flips = {"SST-2": xr.DataArray(flipped, dims=["run", *HEADS, "example"])}
    names = {"without": {"SST-2": one}, "flipped": flips, "HEADS": HEADS}
    names |= {"np": np, "stats": stats}
    exec(text_of("code", "confidence = {}").split("first = ")[0], names)
    exec(text_of("code", "unsure, held = {}, {}"), names)
    confidence = np.maximum(p, 1 - p)
    np.testing.assert_allclose(names["confidence"]["SST-2"], confidence)
    shares = []
    for run in range(2):
        unsure = np.argsort(confidence[run])[:2]
        shares.append(flipped[run][..., unsure].sum() / flipped[run].sum())
    assert names["held"].value.item() == pytest.approx(100 * np.mean(shares))


@pytest.mark.parametrize("runs", [2, 3])
def test_repeated_flips_are_those_of_a_plain_loop(runs):
    flipped = np.random.default_rng(0).random((runs, 3, 4, 20)) < 0.2
    one = xr.DataArray(flipped, dims=["run", *HEADS, "example"])
    names = {"flipped": {"SST-2": one, "one run": one[:1]}, "HEADS": HEADS, "stats": stats}
    names |= {"np": np, "pd": pd, "spearmanr": spearmanr, "unsure": {"SST-2": one.any(HEADS)}}
    exec(text_of("code", "several = {"), names)
    assert set(names["repeated"]) == {"SST-2"}
    for run in range(runs):
        flips = again = 0
        for other in set(range(runs)) - {run}:
            flips += flipped[run].sum()
            again += (flipped[run] & flipped[other]).sum()
        found = names["repeated"]["SST-2"].isel(run=run).mean().item()
        assert found == pytest.approx(100 * again / flips)


# Pictures


def test_a_described_figure_is_shown_once_with_its_description(tmp_path, monkeypatch):
    import IPython.display

    shown = []
    monkeypatch.setattr(IPython.display, "display", lambda figure, metadata: shown.append(metadata))
    monkeypatch.setenv(OUTPUT_VARIABLE, str(tmp_path))
    figure, ax = plt.subplots()
    ax.plot([0, 1])
    Study.of("small", page="0_trial").figure(figure, "described", "a line that rises")
    assert not plt.fignum_exists(figure.number), "an open figure is shown by the notebook itself"
    assert shown == [{"image/png": {"alt": "a line that rises"}}]
    written = sorted(path.name for path in (tmp_path / "0_trial").iterdir())
    assert written == ["described.pdf", "described.png"]


def test_the_site_shows_descriptions():
    alt = 'one "head" & its <map>'
    data = {"image/png": "iVBORw0KGgo=\n", "text/plain": "<Figure>"}
    output = nbformat.v4.new_output("display_data", data, metadata={"image/png": {"alt": alt}})
    cell = nbformat.v4.new_code_cell("draw()", outputs=[output])
    described = with_descriptions(nbformat.v4.new_notebook(cells=[cell]))
    html = described.cells[0].outputs[0].data["text/html"]
    (picture,) = BeautifulSoup(html, "html.parser")
    assert picture["alt"] == alt and picture["src"].strip().endswith("iVBORw0KGgo=")
