"""The atlas of heads: numbers arrive, what is missing is named, text stays text, and mouse and keyboard work."""

import numpy as np
import pytest
from conftest import ROOT
from pages import on_a_phone, outside, write_results

from bertology_utils import head_atlas
from bertology_utils.claims.register import NOTEBOOKS
from bertology_utils.suite.atlas import ExampleMaps, Measure, measures_of, read_measures
from bertology_utils.suite.committed import BY_NORM, PLACES, read_committed

HOSTILE = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 2'>$$x$$"
VALUES = np.arange(12).reshape(3, 4) / 7 - 0.5  # 3 layers × 4 heads


@pytest.fixture(scope="module")
def page():
    pytest.importorskip("bokeh", reason="the atlas is drawn by Bokeh, which `make site` installs")
    tokens = ["[CLS]", HOSTILE, "[SEP]"]
    weights = np.full((3, 4, 3, 3), 1 / 3)
    weights[1, 2] = [[0.125, 0.875, 0], [1, 0, 0], [0, 0, 1]]
    measures = {
        "first": VALUES,
        HOSTILE: (VALUES + 1, VALUES, VALUES + 2),
        "with a hole": np.where(VALUES > 1, np.nan, 2 + VALUES),
    }
    return head_atlas(
        measures, ExampleMaps(HOSTILE, HOSTILE, tokens, weights), HOSTILE, missing=[HOSTILE, "make it with `a & b`"]
    )


# The numbers


def test_numbers_per_head_are_found_by_task_model_and_pattern(tmp_path):
    shares = np.random.default_rng(1).random((3, 4, 5))
    write_results(tmp_path, 1, by_head={"mrpc": {"fine-tuned": shares.tolist()}})
    drift = {"rte": {"fine-tuning": VALUES.tolist()}}
    write_results(tmp_path, 3, drift=drift, rows={"rte": {"dev": 277}}, settings={"max_examples": 200})
    gains = np.where(VALUES > 1, None, VALUES).tolist()
    write_results(tmp_path, 6, effects={"sst2, training 2": {"heads": {"values": gains, "better": [0.5]}}})
    found = {(one.name, one.data, one.task): one for one in read_measures(tmp_path)[0]}
    assert len(found) == 5 + 1 + 1  # "better" has no axis of heads
    diagonal = found["share of maps: diagonal, fine-tuned", "embedded data", "MRPC"]
    np.testing.assert_array_equal(diagonal.values, shares[:, :, 1])
    assert diagonal.low is None and diagonal.lacks == "the number of examples is not in the results"
    change = found["change of maps by fine-tuning (1 − cosine), training 1", "embedded data", "RTE"]
    np.testing.assert_allclose(change.values, 1 - VALUES)
    assert change.n == 200 and diagonal.n is None
    gain = found["gain in points without the head, training 2", "embedded data", "SST-2"]
    np.testing.assert_allclose(gain.values, np.where(VALUES > 1, np.nan, 100 * VALUES))
    assert gain.signed and not diagonal.signed


def test_the_committed_results_of_every_notebook_have_numbers_per_head():
    measures, missing = read_measures(ROOT)
    shapes = {one.values.shape for one in measures}
    assert shapes == {(6, 12)}
    assert len({one.topic for one in measures if one.data.startswith("embedded data")}) == 7
    assert len(measures) == len({(one.name, one.data, one.task) for one in measures}) > 1000
    assert {(one.data, one.task) for one in measures} >= {
        ("GLUE", "MRPC"),
        ("embedded data", "QNLI"),
        ("FrameNet 1.5", "all tasks"),
    }
    names = {one.name for one in measures}
    assert {"share of attention to [CLS] by norm, pre-trained", "weight on [CLS], fine-tuned, by norm"} <= names
    assert not [line for line in missing if line.startswith("`figures/")]


def test_shares_have_intervals_and_all_others_a_reason_for_none():
    for one in read_measures(ROOT)[0]:
        if one.name.startswith("share of maps") or "points along" in one.name:
            assert one.n and (one.low <= one.values).all() and (one.values <= one.high).all(), one.name
            assert (one.high - one.low).max() > 0.5 / np.sqrt(one.n)
        else:
            assert one.low is None and len(one.lacks) > 10, one.name


def test_a_run_by_norm_says_so_in_its_names(tmp_path):
    found = {}
    for weighing in ("weight", "norm"):
        write_results(tmp_path, 5, neighbours={"pre-trained": VALUES.tolist()}, settings={"weighing": weighing})
        found[weighing] = [one.name for one in read_measures(tmp_path)[0]]
    assert (
        found["norm"]
        == [f"{name}, by norm" for name in found["weight"]]
        == ["weight on neighbouring words, pre-trained, by norm"]
    )


def test_ones_own_results_as_a_file_and_as_a_folder(tmp_path):
    content = {"drift": {"rte": {"fine-tuning": VALUES.tolist()}}, "settings": {"data": "folder:mine"}}
    write_results(tmp_path, 3, notebook_name=NOTEBOOKS[3], **content)
    write_results(
        tmp_path, 6, notebook_name=NOTEBOOKS[6], other_ways={"sst2, zero": VALUES.tolist()}, settings={"data": "hub"}
    )
    (one,) = measures_of(tmp_path / "figures" / NOTEBOOKS[3] / "results.json")
    assert (one.data, one.task) == ("folder:mine", "RTE")
    assert [(one.data, one.task) for one in measures_of(tmp_path)] == [("folder:mine", "RTE"), ("GLUE", "SST-2")]


@pytest.mark.parametrize(
    "content, message",
    [
        (None, "3_finetuning_drift/results.json cannot be read: it is missing; run the notebook 3_finetuning_drift anew"),
        ("[1]", "it is damaged"),
        (
            '{"notebook": "3_finetuning_drift", "drift": 1}',
            "nothing was measured for single heads in results.json; run a notebook",
        ),
        ('{"weights": [1, 2]}', "nothing was measured for single heads"),
    ],
)
def test_own_results_that_cannot_be_shown_are_refused(tmp_path, content, message):
    path = tmp_path / NOTEBOOKS[3] / "results.json"
    path.parent.mkdir()
    if content:
        path.write_text(content)
    with pytest.raises(ValueError, match=message):
        head_atlas(path)


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(
        ValueError, match=f"nothing was measured for single heads in {tmp_path.name}; run a notebook of this version"
    ):
        head_atlas(str(tmp_path))


def test_what_is_missing_is_named_with_what_makes_it(tmp_path):
    write_results(tmp_path, 3, drift={})
    write_results(tmp_path, 4, verdict="a claim of another version")
    (tmp_path / "figures" / NOTEBOOKS[5]).mkdir()
    (tmp_path / "figures" / NOTEBOOKS[5] / "results.json").write_text("{ half")
    measures, missing = read_measures(tmp_path)
    assert measures == []
    text = "\n".join(missing)
    assert (
        "`figures/1_attention_patterns/results.json` is missing. To make it: `python -m bertology_utils run --in-place --only 1`\n"
        in text
    )
    assert "`figures/4_feature_attention/results.json` is of another version" in text
    assert "`figures/5_token_to_token/results.json` cannot be read" in text
    assert "3_finetuning_drift/results.json` has no numbers per head in `drift/{task}/fine-tuning`. To make them" in text
    assert "benchmarks/minilm_framenet15/2_framenet_heads/results.json` is missing" in text
    problems = [one for one in read_committed(tmp_path) if one.problem]
    assert len(problems) == sum(len(place.notebooks) for place in PLACES) - 1
    assert (
        "`benchmarks/minilm_norm/1_attention_patterns/results.json` is missing. To make it: `python -m bertology_utils run -p weighing norm"
        in text
    )
    assert len(missing) == len(problems) + sum(len(place.notebooks) for place in BY_NORM) + 6  # six kinds in notebook 3


def test_results_of_a_model_of_another_shape_are_left_out_and_named(tmp_path):
    write_results(tmp_path, 3, drift={"rte": {"same way": VALUES.tolist()}})
    write_results(tmp_path, 5, neighbours={"pre-trained": VALUES.T.tolist()})
    measures, missing = read_measures(tmp_path)
    assert [one.name for one in measures] == ["cosine of the changes of two trainings"]
    assert any("5_token_to_token/results.json` is of a model with other heads" in line for line in missing)


def test_without_any_results_the_page_says_what_is_missing(tmp_path):
    text = head_atlas(*read_measures(tmp_path)[:1], missing=read_measures(tmp_path)[1]).html
    assert "<details open>" in text and "<code>python -m bertology_utils run --in-place --only 6</code>" in text


@pytest.mark.parametrize(
    "measures, message",
    [
        ({}, "one measure at least"),
        ({"a": np.zeros(12)}, r"'a' has shape \(12,\)"),
        ({"a": np.zeros((3, 4)), "b": np.zeros((4, 3))}, r"'b' has shape \(4, 3\)"),
        ({"a": (np.zeros((3, 4)), np.zeros((3, 4)))}, "not 2 parts"),
        ([Measure("a", np.zeros((3, 4)), low=np.zeros((3, 4)))], "one end of its intervals"),
        ([Measure("a", np.zeros((3, 4)))] * 2, "two measures are called"),
    ],
)
def test_measures_that_cannot_be_shown_are_refused(measures, message):
    with pytest.raises(ValueError, match=message):
        head_atlas(measures)


def test_maps_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"the maps have shape \(3, 4, 2, 2\).*\(3, 4, 3, 3\) is wanted"):
        head_atlas({"a": VALUES}, ExampleMaps("x", "m", ["a", "b", "c"], np.zeros((3, 4, 2, 2))))


# The page


def test_what_is_missing_stands_at_the_top_of_the_page(page):
    assert "and how to make it: 2<" in page.html and "<li>make it with <code>a &amp; b</code></li>" in page.html


def test_no_text_reaches_the_page_as_html(page):
    assert "<script>window" not in page.html and "<img src=x" not in page.html
    assert "<script>window" not in page._repr_html_()


def test_the_page_asks_nobody_for_anything(page):
    assert outside(page.html) == []


def test_a_page_is_written_whole_or_not_at_all(page, tmp_path, monkeypatch):
    written = page.save(tmp_path / "atlas.html")
    assert written.read_text(encoding="utf-8") == page.html
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        page.save(tmp_path / "other.html")
    assert [path.name for path in tmp_path.iterdir()] == ["atlas.html"]


def open_atlas(browser, address):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    browser.get(address)
    WebDriverWait(browser, 60).until(lambda one: one.find_element(By.CSS_SELECTOR, "#atlas-card[data-ready]"))


def choose(browser, name, text):
    from selenium.webdriver.support.select import Select

    Select(browser.find_element("id", f"atlas-{name}")).select_by_visible_text(text)


def click_head(browser, layer, head):
    """Click where the grid shows a head, both counted from 1."""
    from selenium.webdriver.common.action_chains import ActionChains

    grid = 'const grid = Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name("grid"));'
    browser.execute_script(grid + "grid.el.scrollIntoView({block: 'center'})")
    x, y = browser.execute_script(
        grid + "const box = grid.el.shadowRoot.querySelector('.bk-Canvas').getBoundingClientRect();"
        "return [box.x + grid.frame.x_scale.compute(arguments[1]), box.y + grid.frame.y_scale.compute(arguments[0])]",
        layer,
        head,
    )
    chain = ActionChains(browser)
    chain.w3c_actions.pointer_action.move_to_location(int(x), int(y)).click()
    chain.perform()


def card(browser):
    """The card's title, and its rows as texts."""
    place = browser.find_element("id", "atlas-card")
    return place.find_element("tag name", "h2").text, [row.text for row in place.find_elements("css selector", "tbody tr")]


def test_the_atlas_is_clicked_through(browser, page, tmp_path):
    page.save(tmp_path / "atlas.html")
    open_atlas(browser, (tmp_path / "atlas.html").as_uri())
    assert card(browser)[0] == "Layer 1, head 1"
    click_head(browser, 2, 3)
    title, rows = card(browser)
    assert title == "Layer 2, head 3"
    assert rows == [
        "first +0.357 6",
        f"{HOSTILE} 1.36 [0.357, 2.36] 6",
        "with a hole 2.36 5",
    ]  # the largest was not measured
    assert "No interval for 2 of 3: none was given." in browser.find_element("id", "atlas-card").text
    weights = browser.execute_script(
        "return Array.from(Bokeh.documents[0].get_model_by_name('map').renderers[0].data_source.data.weight)"
    )
    assert weights == [0.125, 0.875, 0, 1, 0, 0, 0, 0, 1]

    choose(browser, "x", HOSTILE)
    assert "atlas-chosen" in browser.find_elements("css selector", "#atlas-card tbody tr")[1].get_attribute("class")
    source = "const source = Bokeh.documents[0].get_model_by_name('scatter').renderers[0].data_source;"
    across = browser.execute_script(source + "return Array.from(source.data.x)")
    np.testing.assert_allclose(across, VALUES.ravel() + 1, atol=1e-3)
    choose(browser, "head", "(3, 4)")
    assert card(browser)[0] == "Layer 3, head 4" and "not measured" in card(browser)[1][2]
    assert browser.execute_script(source + "return source.selected.indices") == [11]

    assert browser.title == HOSTILE
    assert browser.execute_script("return window.hit === undefined && document.querySelectorAll('#atlas img').length === 0")
    assert (
        browser.execute_script(
            "return performance.getEntriesByType('resource').filter(one => !one.name.startsWith('data:')).length"
        )
        == 0
    )
    assert not [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]


def pressed(browser, *keys):
    grid = browser.find_element("id", "atlas-keys")
    grid.send_keys(*keys)
    return browser.find_element("id", "atlas-at").text


def test_heads_are_chosen_with_the_keyboard(browser, page, tmp_path):
    from selenium.webdriver.common.keys import Keys

    page.save(tmp_path / "atlas.html")
    open_atlas(browser, (tmp_path / "atlas.html").as_uri())
    choose(browser, "x", HOSTILE)
    browser.find_element("id", "atlas-head").send_keys(Keys.TAB)
    for _ in range(12):  # what Bokeh has above the grid can be reached, too
        if browser.switch_to.active_element.get_attribute("id") == "atlas-keys":
            break
        browser.switch_to.active_element.send_keys(Keys.TAB)
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert (
        browser.switch_to.active_element.get_attribute("id") == "atlas-keys" and browser.execute_script(outline) == "solid"
    )
    told = pressed(browser, Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert told == "Layer 2, head 3: 1.36 [0.357, 2.36]. Enter opens its card."
    assert card(browser)[0] == "Layer 1, head 1"  # looked at, not chosen
    pressed(browser, Keys.ENTER)
    assert card(browser)[0] == "Layer 2, head 3"
    edges = [Keys.ARROW_DOWN] * 5 + [Keys.ARROW_RIGHT] * 5
    assert pressed(browser, *edges).startswith("Layer 3, head 4") and pressed(browser, Keys.HOME).startswith(
        "Layer 3, head 1"
    )
    shown = "return Bokeh.documents[0].get_model_by_name('grid').renderers[1].data_source.data.layer.length"
    assert browser.execute_script(shown) == 1
    browser.find_element("id", "atlas-head").click()
    assert browser.execute_script(shown) == 0


def test_the_colours_stand_in_a_table_and_every_choice_has_a_name(browser, page, tmp_path):
    page.save(tmp_path / "atlas.html")
    open_atlas(browser, (tmp_path / "atlas.html").as_uri())
    choose(browser, "x", "with a hole")
    table = browser.execute_script(
        "return Array.from(document.querySelectorAll('#atlas-table tr'), row => Array.from(row.cells, cell => cell.textContent))"
    )
    assert table[0] == ["layer", "1", "2", "3", "4"]
    assert table[1:] == [
        ["1", "1.50", "1.64", "1.79", "1.93"],
        ["2", "2.07", "2.21", "2.36", "2.50"],
        ["3", "2.64", "2.79", "2.93", "not measured"],
    ]
    unnamed = "return Array.from(document.querySelectorAll('select')).filter(one => !one.labels.length).length"
    assert browser.execute_script(unnamed) == 0


def test_data_and_task_are_chosen_by_themselves_and_stay(browser, tmp_path):
    pytest.importorskip("bokeh", reason="the atlas is drawn by Bokeh, which `make site` installs")
    places = [("GLUE", "MRPC"), ("GLUE", "RTE"), ("embedded data", "RTE")]
    one_less = [("b", data, task, -VALUES) for data, task in places[1:]]
    measures = [("a", data, task, VALUES + at) for at, (data, task) in enumerate(places)] + one_less
    head_atlas([Measure(name, values, data=data, task=task) for name, data, task, values in measures]).save(
        tmp_path / "a.html"
    )
    open_atlas(browser, (tmp_path / "a.html").as_uri())

    def chosen():
        return [browser.find_element("id", f"atlas-x{part}").get_attribute("value") for part in ("", "-data", "-task")]

    assert chosen() == ["a", "GLUE", "MRPC"]
    choose(browser, "x-task", "RTE")
    choose(browser, "x", "b")
    assert chosen() == ["b", "GLUE", "RTE"]
    choose(browser, "x-data", "embedded data")
    choose(browser, "x", "a")
    assert chosen() == ["a", "embedded data", "RTE"]
    assert card(browser)[1][0] == "a 1.50 12"


def test_on_a_phone_the_card_stands_below_the_grid(browser, page, tmp_path):
    page.save(tmp_path / "atlas.html")
    with on_a_phone(browser):
        open_atlas(browser, (tmp_path / "atlas.html").as_uri())
        grid, below = (
            browser.execute_script("return document.getElementById(arguments[0]).getBoundingClientRect().toJSON()", name)
            for name in ("atlas-keys", "atlas-card")
        )
        assert grid["bottom"] <= below["top"] and grid["right"] <= 390 and below["right"] <= 390
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
