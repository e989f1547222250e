"""The atlas of heads: all that is recorded per head arrives, text stays text, and a page is whole."""

import numpy as np
import pytest
from conftest import ROOT, write_results
from pages import outside

from bertology_utils import attention_maps, batches_of, head_atlas, load_encoder, load_tokenizer
from bertology_utils.atlas import ExampleMaps, example_maps, measures_of
from bertology_utils.glue import TASKS
from bertology_utils.results import entries_of

HOSTILE = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 2'>$$x$$"
VALUES = np.arange(12).reshape(3, 4) / 7 - 0.5  # 3 layers × 4 heads


@pytest.fixture(scope="module")
def page():
    pytest.importorskip("bokeh", reason="the atlas is drawn by Bokeh, which `make site` installs")
    measures = {
        "first": VALUES,
        HOSTILE: (VALUES + 1, VALUES, VALUES + 2),
        "with a hole": np.where(VALUES > 1, np.nan, 2 + VALUES),
    }
    maps = ExampleMaps(HOSTILE, HOSTILE, ["[CLS]", HOSTILE, "[SEP]"], np.full((3, 4, 3, 3), 1 / 3))
    return head_atlas(measures, maps, HOSTILE)


# The numbers


def test_every_number_that_is_recorded_per_head_is_a_measure(tmp_path):
    shares = np.random.default_rng(1).random((3, 4, 2))
    mrpc, rte = TASKS["mrpc"], TASKS["rte"]
    over = {"over": ("layer", "head", "kind"), "kinds": ("a", "b"), "state": "tuned"}
    rows = entries_of("share", {mrpc: shares}, ["task"], **over)
    rows += entries_of("by layer", VALUES[:, 0], over=("layer",))
    first = write_results(tmp_path / "1_first", rows, "1_first")
    ends = {"value": VALUES, "low": VALUES - 1, "high": VALUES + 1, "n": 5}
    rows = entries_of("gain", {rte: [ends]}, ["task", "training"], unit="gain")
    write_results(tmp_path / "2_second", rows, "2_second")
    measures = measures_of(tmp_path)
    assert set(measures) == {
        ("1_first", "share, a, MRPC, tuned"),
        ("1_first", "share, b, MRPC, tuned"),
        ("2_second", "gain, RTE, run 1"),
    }
    second = measures["1_first", "share, b, MRPC, tuned"]
    np.testing.assert_allclose(second["value"], shares[..., 1], atol=1e-6)
    gain = measures["2_second", "gain, RTE, run 1"]
    np.testing.assert_allclose(gain["high"], VALUES + 1, atol=1e-6)
    assert gain["unit"] == "gain" and len(measures_of(first)) == 2
    (empty := tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="nothing was measured for single heads in empty"):
        measures_of(empty)


def test_the_evidence_has_measures_of_every_head():
    notebooks = {topic for topic, _ in measures_of(ROOT / "results" / "glue")}
    assert {"1_attention_patterns", "6_disabling_heads"} <= notebooks


@pytest.mark.parametrize(
    ("measures", "message"),
    [
        ({}, "measures need values of one shape"),
        ({"a": VALUES[0]}, r"one shape, .*\(4,\)"),
        ({"a": VALUES, "b": VALUES.T}, r"\(4, 3\)"),
        ({"a": (VALUES, VALUES)}, "give values or .values, low, high., not 2 parts"),
    ],
)
def test_measures_that_do_not_fit_are_refused(measures, message):
    pytest.importorskip("bokeh", reason="the atlas is drawn by Bokeh, which `make site` installs")
    with pytest.raises(ValueError, match=message):
        head_atlas(measures)


def test_maps_are_of_a_sentence_or_a_pair_of_ones_own(tiny_bert):
    model, tokenizer = load_encoder(str(tiny_bert)), load_tokenizer(str(tiny_bert))
    pair = ("A swan sang.", "It was heard.")
    for text in ("A swan sang.", pair):
        maps = example_maps(model, tokenizer, text)
        (batch,) = batches_of([text], tokenizer)
        assert maps.tokens.count("[SEP]") == (2 if text is pair else 1) and "swan sang" in maps.text
        assert maps.weights.shape == (3, 4, len(maps.tokens), len(maps.tokens))
        np.testing.assert_allclose(
            maps.weights[2], attention_maps(model, batch)[2][0].detach(), atol=1e-5
        )
    assert maps.text == "A swan sang. / It was heard."
    with pytest.raises(ValueError, match="text 1 is empty"):
        example_maps(model, tokenizer, " ")


# The page


def test_no_text_reaches_the_page_as_html(page):
    assert "<script>window" not in page.html and "<img src=x" not in page.html
    assert "<script>window" not in page._repr_html_()


def test_the_page_asks_nobody_for_anything(page):
    assert outside(page.html) == []


def test_heads_are_chosen_in_a_real_browser(browser, page, tmp_path):
    page.save(tmp_path / "atlas.html")
    browser.get((tmp_path / "atlas.html").as_uri())
    from selenium.webdriver.support.wait import WebDriverWait

    get = "const one = (name) => Bokeh.documents[0].get_model_by_name(name);"
    data = get + "return Array.from(one('card').source.data.value)"
    WebDriverWait(browser, 60).until(lambda one: one.execute_script(data))
    assert browser.execute_script(data) == ["-0.500", "0.50 [-0.50, 1.50]", "1.500"]
    browser.execute_script(get + "one('scatter').renderers[0].data_source.selected.indices = [11]")
    assert browser.execute_script(data)[2] == "–", "the largest was not measured"
    assert browser.execute_script("return window.hit === undefined")
    assert not [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
