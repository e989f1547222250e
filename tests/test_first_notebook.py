"""What notebook 0 is made of: a head by hand, the case that is shown, plain maps, lines, and described pictures."""

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
import torch
from bs4 import BeautifulSoup
from conftest import make_rows
from precision import forward_tolerance
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DistilBertConfig, DistilBertModel

from bertology_utils import attention_maps, batches_of, disable_heads, figures, sweep
from bertology_utils.attention import head_weights
from bertology_utils.disabling import cases
from bertology_utils.disabling.drawing import head_on_and_off
from bertology_utils.disabling.reference import Sweep
from bertology_utils.glue.tasks import TASKS
from bertology_utils.patterns.baseline import STATISTICS, map_statistics
from bertology_utils.patterns.examples import plainest_maps
from bertology_utils.patterns.labelled_maps import PATTERNS, load_maps
from bertology_utils.statistics import Bootstrap
from bertology_utils.suite import results
from bertology_utils.suite.html_page import with_descriptions


@pytest.fixture(scope="module")
def classifier(tiny_bert):
    torch.manual_seed(0)
    return AutoModelForSequenceClassification.from_pretrained(tiny_bert, num_labels=2).eval()


@pytest.fixture(scope="module")
def tokenizer(tiny_bert):
    return AutoTokenizer.from_pretrained(tiny_bert)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("head", [(0, 0), (1, 3), (2, 1)])
def test_a_head_by_hand_is_the_models_own(classifier, tokenizer, head):
    layer, number = head
    (batch,) = batches_of([("A swan sang.", "It was heard.")], tokenizer)
    with torch.inference_mode():
        x = classifier.base_model(**batch.inputs, output_hidden_states=True).hidden_states[layer][0]
    query, key, value = (x @ matrix.T + bias for matrix, bias in head_weights(classifier, layer, number).values())
    weights = torch.softmax(query @ key.T / query.shape[1] ** 0.5, dim=1)
    own = attention_maps(classifier, batch)[layer][0, number]
    torch.testing.assert_close(weights, own, atol=forward_tolerance(classifier), rtol=0)
    assert value.shape == (len(x), classifier.config.hidden_size // classifier.config.num_attention_heads)


def test_heads_that_cannot_be_computed_by_hand_are_refused(classifier):
    with pytest.raises(ValueError, match="unknown layer 4; layers are counted from 1 to 3"):
        head_weights(classifier, 3, 0)
    with pytest.raises(ValueError, match="unknown head 5; heads are counted from 1 to 4"):
        head_weights(classifier, 0, 4)
    other = DistilBertModel(DistilBertConfig(n_layers=1, n_heads=2, dim=8, hidden_dim=8, vocab_size=9))
    with pytest.raises(ValueError, match="DistilBertModel are not laid out as BERT's.*attention_maps"):
        head_weights(other, 0, 0)


def test_the_case_is_the_largest_change_of_the_answers_probability(classifier, tokenizer):
    rows = make_rows(TASKS["mrpc"], 6)
    pairs = list(zip(rows["sentence1"], rows["sentence2"], strict=True))
    swept = sweep(classifier, batches_of(pairs, tokenizer))
    case = cases.largest_case(swept)
    changes = cases.answer_changes(swept)
    assert changes.shape == (3, 4, 6)
    assert abs(changes[*case.head, case.example]) == np.abs(changes).max()
    (batch,) = batches_of([pairs[case.example]], tokenizer)

    def probability():
        with torch.inference_mode():
            return torch.softmax(classifier(**batch.inputs).logits[0], dim=0)

    whole = probability()
    with disable_heads(classifier, [case.head]):
        without = probability()
    assert case.answer == whole.argmax()
    assert (case.whole, case.without) == pytest.approx((whole[case.answer].item(), without[case.answer].item()), abs=1e-5)
    of_one = cases.largest_case(swept, (1, 2))
    assert of_one.head == (1, 2) and of_one.example == np.abs(changes[1, 2]).argmax()
    figure = head_on_and_off(classifier, batch, ["x"] * int(batch.lengths[0]), case, "equivalent")
    for ax, probability_then in zip(figure.axes, (case.whole, case.without), strict=True):
        assert f"{probability_then:.2f}" in ax.get_title()


def test_changes_of_known_outputs():
    """The answer is label 1 for the first example, 0 for the second; the only head flips the second."""
    baseline = np.log([[0.2, 0.8], [0.7, 0.3]])
    swept = Sweep(baseline, np.log([[[[0.3, 0.7], [0.1, 0.9]]]]), baseline[None])
    np.testing.assert_allclose(cases.answer_changes(swept), [[[-0.1, -0.6]]])
    case = cases.largest_case(swept)
    assert (case.head, case.example, case.answer) == ((0, 0), 1, 0)
    assert (case.whole, case.without) == pytest.approx((0.7, 0.1))


def test_a_regression_has_no_case():
    assert cases.first_with_labels([TASKS["stsb"], TASKS["rte"]]) is TASKS["rte"]
    with pytest.raises(ValueError, match="STS-B: no answer with a probability; add a task with labels: mrpc"):
        cases.first_with_labels([TASKS["stsb"]])
    with pytest.raises(ValueError, match="a regression gives no probabilities; choose a task with labels"):
        cases.largest_case(Sweep(np.zeros((3, 1)), np.zeros((2, 2, 3, 1)), np.zeros((2, 3, 1))))


def test_the_plainest_maps_are_one_of_each_pattern_agreed_on_and_the_extreme_of_its_measure():
    found = plainest_maps()
    assert tuple(found) == PATTERNS
    for pattern, one in found.items():
        assert one.pattern == one.first == one.second == pattern and one.part == "natural"
        assert 20 <= len(one.weights) <= 40 and len(one.separators) == 2
    column = STATISTICS.index("strongest column")

    def strongest(one):
        return map_statistics(one.weights, np.isin(np.arange(len(one.weights)), one.separators))[column]

    like = [one for one in load_maps() if one.part == "natural" and one.first == one.second == one.pattern == "vertical"]
    like = [one for one in like if len(one.separators) == 2 and 20 <= len(one.weights) <= 40]
    assert len(like) > 1 and strongest(found["vertical"]) == max(map(strongest, like))


def test_lines_are_as_many_as_weights_worth_drawing_and_the_darkest_come_last():
    weights = np.array([[0.9, 0.1, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    figure = figures.line_panels({"one": weights}, ["a", "b", "c"])
    (lines,) = figure.axes[0].collections
    segments = [tuple(map(tuple, segment)) for segment in lines.get_segments()]
    assert len(segments) == np.sum(weights >= 0.4 / 3) == 6
    assert segments[-1] == ((0, 0), (1, 0)), "the weight 0.9"
    assert list(lines.get_linewidths()) == sorted(lines.get_linewidths())
    shades = lines.get_colors()[:, :3].sum(axis=1)
    assert list(shades) == sorted(shades, reverse=True)
    even = figures.line_panels({"even": np.full((60, 60), 1 / 60)}, list("x" * 60))
    assert len(even.axes[0].collections[0].get_segments()) == 3600, "however long the input"


def test_the_gallery_draws_five_forms_with_zero_gain_white():
    by_layer = [Bootstrap(-0.1, np.linspace(-0.2, 0.0, 99), 20, 1), Bootstrap(0.0, np.zeros(99), 20, 1)]
    gains = np.array([[0.05, 0.0, -0.1], [0.0, 0.0, 0.0]])
    drift = np.full((2, 3), 0.9)
    figure = figures.gallery(np.eye(4), [1, 3], np.full((2, 3), 0.2), drift, gains, by_layer)
    figure.canvas.draw()
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert [title[0] for title in titles if title] == list("ABCDE")
    (cells,) = figure.axes[3].collections
    assert cells.get_clim() == (-10, 10)
    np.testing.assert_allclose(cells.get_facecolors()[1], 1, atol=0.01)
    assert figures.GAIN(0.0)[2] > figures.GAIN(0.0)[0] and figures.GAIN(1.0)[0] > figures.GAIN(1.0)[2], "blue loss, red gain"


def test_a_described_figure_is_shown_once_with_its_description(tmp_path, monkeypatch):
    import IPython.display

    shown = []
    monkeypatch.setattr(IPython.display, "display", lambda figure, metadata: shown.append(metadata))
    monkeypatch.setenv(results.OUTPUT_VARIABLE, str(tmp_path))
    record = results.Record("0_trial", settings=None)
    for name, alt in (("silent", ""), ("described", "a line that rises")):
        figure, ax = plt.subplots()
        ax.plot([0, 1])
        record.figure(figure, name, *[alt] * bool(alt))
        assert plt.fignum_exists(figure.number) == (not alt), "an open figure is shown by the notebook itself"
    assert shown == [{"image/png": {"alt": "a line that rises"}}]
    assert record.written == ["silent.png", "silent.pdf", "described.png", "described.pdf"]


def test_the_report_shows_descriptions():
    from nbconvert import HTMLExporter

    alt = 'one "head" & its <map>'
    data = {"image/png": "iVBORw0KGgo=\n", "text/plain": "<Figure>"}
    outputs = [
        nbformat.v4.new_output("display_data", data, metadata={"image/png": {"alt": alt}}),
        nbformat.v4.new_output("display_data", data),
    ]
    content = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("draw()", outputs=outputs)])
    page, _ = HTMLExporter().from_notebook_node(with_descriptions(content))
    described, other = BeautifulSoup(page, "html.parser").find_all("img")
    assert described["alt"] == alt and described["src"].endswith("iVBORw0KGgo=")
    assert other["src"].strip().endswith("iVBORw0KGgo=")
