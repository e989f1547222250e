"""The site and the atlas of heads: numbers arrive, what is missing is named, text stays text, and it works in a browser."""

import json
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from conftest import ROOT

from bertology_utils import head_atlas
from bertology_utils.claims.register import NOTEBOOKS
from bertology_utils.suite import site
from bertology_utils.suite.atlas import ExampleMaps, Measure, read_measures
from bertology_utils.suite.committed import PLACES, read_committed

HOSTILE = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 2'>$$x$$"
VALUES = np.arange(12).reshape(3, 4) / 7 - 0.5  # 3 layers × 4 heads
SITE = ROOT / site.SITE


def write_results(root, notebook, folder="figures", verdict="last-layers", **numbers):
    path = root / folder / NOTEBOOKS[notebook] / "results.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"verdicts": [{"id": verdict}], **numbers}))


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
    found = {(one.name, one.data): one for one in read_measures(tmp_path)[0]}
    assert len(found) == 5 + 1 + 1  # "better" has no axis of heads
    diagonal = found["share of maps: diagonal, fine-tuned", "embedded data · MRPC"]
    np.testing.assert_array_equal(diagonal.values, shares[:, :, 1])
    change = found["change of maps by fine-tuning (1 − cosine), training 1", "embedded data · RTE"]
    np.testing.assert_allclose(change.values, 1 - VALUES)
    assert change.n == 200 and diagonal.n is None
    gain = found["gain in points without the head, training 2", "embedded data · SST-2"]
    np.testing.assert_allclose(gain.values, np.where(VALUES > 1, np.nan, 100 * VALUES))
    assert gain.signed and not diagonal.signed


def test_the_committed_results_of_every_notebook_have_numbers_per_head():
    measures, missing = read_measures(ROOT)
    shapes = {one.values.shape for one in measures}
    assert shapes == {(6, 12)}
    assert len({one.topic for one in measures if one.data.startswith("embedded data")}) == 7
    assert len(measures) == len({(one.name, one.data) for one in measures}) > 200
    assert not [line for line in missing if line.startswith("`figures/")]


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


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium, which `make site` installs, drives the browser")
    binary, driver = (
        next(filter(None, map(shutil.which, names)), None) for names in (("chromium", "google-chrome"), ("chromedriver",))
    )
    if not (binary and driver):
        pytest.skip("no browser here; on Debian: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,1000"):
        options.add_argument(argument)
    running = webdriver.Chrome(options, service=webdriver.ChromeService(driver))
    running.set_page_load_timeout(120)
    yield running
    running.quit()


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


@pytest.mark.parametrize("width", [390, 1200])
def test_no_page_scrolls_sideways(browser, width):
    needs_site()
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for path in built_pages():
            browser.get(path.as_uri())
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width, path.name
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


# The site


def needs_site():
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built; make site")


def built_pages():
    return sorted(path for path in SITE.rglob("*.html") if "_modules" not in path.parts and "_static" not in path.parts)


class Links(HTMLParser):
    """Names that a page defines; what it links to, and what a browser fetches to show it."""

    def __init__(self, text):
        super().__init__()
        self.names, self.links, self.fetched = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.names |= {values[key] for key in ("id", "name") if values.get(key)}
        address = values.get("href") or values.get("src") or values.get("data")
        if address and tag in ("a", "script", "link", "img", "iframe", "source", "object", "embed", "video", "audio"):
            (self.links if tag == "a" else self.fetched).append(address)


def outside(text):
    """What a page would fetch from elsewhere."""
    return [address for address in Links(text).fetched if urlsplit(address).netloc]


def test_outside_sources_are_seen():
    text = (
        '<a href="https://a.org">x</a><script src="//cdn.org/x.js"></script><img src="a.png"><link href="https://b.org/f">'
    )
    assert outside(text) == ["//cdn.org/x.js", "https://b.org/f"]


def test_the_site_fetches_nothing_from_elsewhere():
    needs_site()
    for path in SITE.rglob("*.html"):
        assert outside(path.read_text(encoding="utf-8")) == [], path.name
    for path in SITE.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert "url(http" not in text and "url(//" not in text and "@import" not in text, path.name


def test_the_site_has_no_dead_link_or_image():
    needs_site()
    parsed = {path.resolve(): Links(path.read_text(encoding="utf-8")) for path in SITE.rglob("*.html")}
    dead = []
    for page_path, found in parsed.items():
        for address in found.links + found.fetched:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (page_path.parent / unquote(parts.path)).resolve() if parts.path else page_path
            named = not parts.fragment or target not in parsed or unquote(parts.fragment) in parsed[target].names
            if not target.is_file() or not named:
                dead.append(f"{page_path.relative_to(SITE)}: {address}")
    assert dead == []


def test_every_notebook_and_the_atlas_are_in_the_site():
    needs_site()
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        text = (SITE / "notebooks" / f"{notebook.stem}.html").read_text(encoding="utf-8")
        assert text.count("cell_output") > 5, notebook.name
    assert (SITE / "atlas.html").stat().st_size < 4e6


@pytest.fixture
def earlier(tmp_path, monkeypatch):
    """A checkout with a site, in which building it fails."""
    monkeypatch.setattr(site, "write_source", lambda root, source: source.mkdir())
    monkeypatch.setattr(site, "NEEDS", ())
    (tmp_path / site.SITE).mkdir(parents=True)
    (tmp_path / site.SITE / "index.html").write_text("earlier")
    return tmp_path


def left(root):
    return [path.name for path in (root / "runs").iterdir()], (root / site.SITE / "index.html").read_text()


def test_a_site_that_cannot_be_built_leaves_the_earlier_one(earlier, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda command, check: subprocess.CompletedProcess(command, 1))
    with pytest.raises(RuntimeError, match="not built"):
        site.build_site(earlier)
    assert left(earlier) == (["site"], "earlier")


def test_a_site_takes_the_place_of_the_earlier_one(earlier, monkeypatch):
    def built(command, check):
        Path(command[-1]).mkdir()
        (Path(command[-1]) / "index.html").write_text("new")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", built)
    assert site.build_site(earlier).read_text() == "new"
    assert left(earlier) == (["site"], "new")


def test_what_is_not_installed_is_named(earlier, monkeypatch):
    monkeypatch.setattr(site, "NEEDS", ("sphinx_of_another_world",))
    with pytest.raises(ModuleNotFoundError, match="the site needs sphinx_of_another_world; `make site` installs"):
        site.build_site(earlier)
    assert left(earlier) == (["site"], "earlier")
