"""The playground: what a real browser shows equals PyTorch, by mouse, keyboard and address; pages without what they need say so."""

import functools
import json
import re
import shutil
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from bertology_utils.results import entries_of
from conftest import ROOT, write_results
from pages import on_a_phone

from bertology_utils import batches_of, load_classifier, load_tokenizer, sweep
from bertology_utils.glue import TASKS

pytest.importorskip("onnx", reason="the playground is exported by onnx, which `make site` installs")
pytest.importorskip("onnxscript", reason="the playground needs onnxscript; `make site` installs it")
pytest.importorskip("onnxruntime", reason="the playground needs onnxruntime; make site")

from docs.playground import __main__ as playground
from docs.playground import export

LAYERS, HEADS = 3, 4
TOLERANCE = 1e-3
PAIR = ("She gave him the book.", "He did not read it.")
TEXTS = ("The naïve critics said it wasn't bad!", "a", "Élan’s café 日本語 🙂 (2.0)", PAIR)
SETS = ([], [(0, 1), (1, 3), (2, 0)], [(1, head) for head in range(HEADS)])
HOSTILE = "<img src=x onerror='window.hit = 1'><script>window.hit = 2</script>"


class Quiet(SimpleHTTPRequestHandler):
    """Static files, without a word on the console."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, *_):
        """Say nothing."""


class Page:
    """A playground in a browser."""

    def __init__(self, browser, address):
        self.browser, self.address = browser, address

    def open(self, **state):
        self.browser.get("about:blank")
        self.browser.get(f"{self.address}#{urlencode(state)}")
        self.settle()

    def settle(self):
        time.sleep(0.3)  # what is typed is taken up after a moment
        self.wait("globalThis.playground?.idle() && !document.getElementById('play').hidden")

    def wait(self, condition):
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.browser, 90, 0.05).until(lambda _: self.run(condition), condition)

    def run(self, script):
        return self.browser.execute_script(f"return {script}")

    def one(self, selector):
        return self.browser.find_element("css selector", selector)

    def text(self, name):
        return self.one(f"#{name}").text

    def type(self, name, text):
        self.browser.execute_script(
            "const one = document.getElementById(arguments[0]); one.value = arguments[1];"
            "one.dispatchEvent(new Event('input', { bubbles: true }))",
            name,
            text,
        )
        self.settle()

    def choose(self, name, value):
        self.browser.execute_script(
            f"document.querySelector('[name={name}][value={value}]').click()"
        )
        self.settle()

    def outputs(self):
        """What the page shows, as arrays."""
        plain = "JSON.stringify(playground.outputs(), (_, one) => (one instanceof Float32Array ? [...one] : one))"
        found = json.loads(self.run(plain))
        for way in ("weights", "norms"):
            size = len(found["tokens"])
            found[way] = np.array(found[way]).reshape(-1, size, size)
        return found


@pytest.fixture(scope="module")
def model(tiny_bert, tmp_path_factory):
    """A classifier whose answers depend on every head."""
    folder = tmp_path_factory.mktemp("shown")
    shown = load_classifier(str(tiny_bert), "rte")
    torch.manual_seed(3)
    for parameter in shown.classifier.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    shown.save_pretrained(folder)
    load_tokenizer(str(tiny_bert)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Makes the page of a model; gives its folder and address."""
    try:
        playground.packages(ROOT)
    except playground.NoPackagesError as error:
        pytest.skip(str(error))
    root, servers = tmp_path_factory.mktemp("served"), []

    def serve(folder, name, **options):
        page = root / name / "playground"
        playground.write(ROOT, page, folder, **options)
        handler = functools.partial(Quiet, directory=root / name)
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/playground/index.html"

    yield serve
    for server in servers:
        server.shutdown()


@pytest.fixture(scope="module")
def address(served, model):
    return served(model, "shown")


@pytest.fixture
def page(browser, address):
    """The page, which leaves no error behind and has asked nobody else for anything."""
    browser.get_log("browser")
    one = Page(browser, address)
    one.open()
    yield one
    assert not [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    asked = one.run("performance.getEntriesByType('resource').map((one) => one.name)")
    assert all(name.startswith(one.address.rsplit("/", 1)[0]) for name in asked), asked


def off_of(heads):
    off = np.zeros((LAYERS, HEADS))
    off[tuple(np.array(heads, dtype=int).reshape(-1, 2).T)] = 1
    return off


def difference(page, model, tokenizer, text, heads, ablation):
    """The largest from PyTorch, of weights, norms and probabilities each."""
    first, second = (text, "") if isinstance(text, str) else text
    off = " ".join(f"{layer + 1}.{head + 1}" for layer, head in heads)
    hash_ = urlencode({"text": first, "pair": second, "off": off, "ablation": ablation})
    page.browser.execute_script("location.hash = arguments[0]", hash_)
    page.settle()
    wanted = export.by_pytorch(model, tokenizer, text, off_of(heads), ablation)
    wanted["answer"] = export.probabilities(wanted["answer"])
    found = page.outputs()
    return [
        np.abs(np.reshape(found[name], np.shape(wanted[name])) - wanted[name]).max()
        for name in wanted
    ]


# Numbers


def test_weights_norms_and_answers_equal_pytorchs(page, model):
    loaded, tokenizer = export.load(model)
    answers = set()
    for text in TEXTS:
        for heads in SETS:
            for ablation in export.ABLATIONS:
                found = difference(page, loaded, tokenizer, text, heads, ablation)
                assert max(found) < TOLERANCE, (text, heads, ablation, found)
                answers.add(round(page.outputs()["answer"][0], 3))
    assert len(answers) > 10, "disabling changes what is compared"


@pytest.mark.parametrize("ablation", export.ABLATIONS)
def test_all_heads_tried_equal_the_sweep(page, model, ablation):
    loaded, tokenizer = export.load(model)
    page.open(text=TEXTS[0], view="effects", ablation=ablation, head="2.2")
    effects = np.array(page.outputs()["effects"]).reshape(LAYERS, HEADS)
    swept = sweep(loaded, batches_of([TEXTS[0]], tokenizer), ablation)
    label = swept.baseline[0].argmax()
    before, after = (
        export.probabilities(one)[..., 0, label] for one in (swept.baseline, swept.heads)
    )
    np.testing.assert_allclose(effects, after - before, atol=TOLERANCE)
    assert np.abs(effects).max() > 0.01
    layer, head = np.unravel_index(np.abs(effects).argmax(), effects.shape)
    assert f"Head ({layer + 1}, {head + 1}): disabling it" in page.text("verdict")
    assert page.run("playground.state.head") == HEADS + 1, "the head that was chosen stays"
    page.one("#verdict button").click()
    page.settle()
    assert page.run("playground.state.head") == layer * HEADS + head
    assert "in points" in page.text("legend") and page.text("map-legend").startswith("weight")


def test_a_reader_sees_weight_and_norm_of_a_cell_each_by_its_name(page, model):
    loaded, tokenizer = export.load(model)
    wanted = export.by_pytorch(loaded, tokenizer, TEXTS[0], off_of([]), "uniform")
    weights, norms = (
        wanted[way].reshape(LAYERS * HEADS, *wanted[way].shape[-2:]) for way in ("weights", "norms")
    )
    for view, shown, legend in (("weights", weights, "weight"), ("norms", norms, "norm")):
        page.open(text=TEXTS[0], head="2.3", view=view)
        assert f"Head (2, 3): its {view}" in page.text("head-title")
        assert page.text("legend").startswith(legend) and page.text("map-legend").startswith(legend)
        for column in range(3):
            weight, norm = map(float, re.findall(r"(?:weight|norm) ([\d.]+)", page.text("readout")))
            assert abs(weight - weights[6, 0, column]) < TOLERANCE
            assert abs(norm - norms[6, 0, column]) < TOLERANCE
            page.one("#map").send_keys("\ue014")  # to the right
        # The picture itself: the colour of the square of a head, of each of two cells.
        dark = page.run(
            "(([a, b]) => a[0] + a[1] + a[2] - b[0] - b[1] - b[2])([0, 1].map((column) => document"
            ".querySelector('[data-head=\"6\"] canvas').getContext('2d').getImageData(column, 1, 1, 1).data))"
        )
        gap = shown[6, 1, 1] - shown[6, 1, 0]
        assert abs(gap) < 0.01 or (dark > 0) == (gap > 0), "darker where there is more"
    assert np.abs(weights - norms).max() > 0.05, "swapped views would be seen"


def test_long_texts_are_cut_as_by_python_and_it_is_said(page, model):
    _, tokenizer = export.load(model)
    long, short = "bread " * 150, "He did not read it, though it was short."
    for first, second in (
        (long, ""),
        (long, short),
        (short, long),
        (long, "paper " * 90),
        (long, long),
    ):
        page.type("pair", second)
        page.type("text", first)
        texts = (first, second) if second else (first,)
        wanted = tokenizer(*texts, truncation="longest_first", max_length=export.MAX_TOKENS)
        assert page.outputs()["ids"] == wanted["input_ids"]
        assert page.outputs()["types"] == wanted["token_type_ids"]
        assert f"{export.MAX_TOKENS} are read" in page.text("message")


def test_small_maps_of_long_texts_show_what_the_large_ones_show(page):
    page.type("text", "bread paper " * 70)
    weights = page.outputs()["weights"]
    for head, shown in enumerate(weights):
        side, room, *pixels = page.run(
            f"((one) => [one.width, one.clientWidth, ...one.getContext('2d').getImageData(0, 0, one.width, one.width).data])"
            f"(document.querySelector('[data-head=\"{head}\"] canvas'))"
        )
        assert side <= room, "the browser leaves out cells of a canvas that it shrinks"
        light = np.reshape(pixels, (side, side, 4)).sum(axis=2)
        block = -(-len(shown) // side)
        most = np.argwhere(shown > shown.max() - 1e-6)[0] // block
        assert light[tuple(most)] == light.min(), "the largest weight has the darkest pixel"


# What people do


def test_by_keyboard_alone(page):
    from selenium.webdriver.common.keys import Keys

    page.one("#text").send_keys(" Indeed.")
    page.settle()
    assert "indeed" in page.outputs()["tokens"]

    def press(*keys):
        page.browser.switch_to.active_element.send_keys(*keys)
        page.settle()

    for _ in range(20):  # on to the heads, of which one is reached
        press(Keys.TAB)
        if page.run("document.activeElement.dataset.head"):
            break
    start = int(page.run("document.activeElement.dataset.head"))
    press(Keys.ARROW_DOWN if start < 8 else Keys.ARROW_UP)
    head = start + (HEADS if start < 8 else -HEADS)
    press(Keys.SPACE)
    assert page.run("[...playground.state.off]") == [head]
    button = page.one(f"[data-head='{head}']")
    assert "off" in button.get_attribute("class") and ", disabled" in button.get_attribute(
        "aria-label"
    )
    assert "1 of 12 heads disabled" in page.text("answer")
    assert "disabled: it attends to all tokens equally" in page.text("head-title")
    press(Keys.SPACE)
    assert page.run("playground.state.off.size") == 0 and page.run("playground.state.head") == head
    press(Keys.ARROW_LEFT if head % HEADS else Keys.ARROW_RIGHT, Keys.ENTER)
    assert page.run("playground.state.head") == head + (-1 if head % HEADS else 1)


def test_heads_and_layers_by_mouse_and_the_view_in_the_address(page):
    page.choose("click", "disables")
    page.one("[data-head='5']").click()
    page.one("#grid .layer:nth-of-type(1)").click()  # the first layer
    page.settle()
    assert page.run("playground.state.off.size") == 1 + HEADS
    where = page.browser.current_url
    page.browser.get("about:blank")
    page.browser.get(where)
    page.settle()
    assert sorted(page.run("[...playground.state.off]")) == [0, 1, 2, 3, 5]
    assert page.run("playground.state.click") == "disables"
    page.one("#restore").click()
    page.settle()
    assert page.run("playground.state.off.size") == 0
    assert page.run("document.activeElement.ariaCurrent") == "true", "the focus is on a head"


def test_what_an_address_says_wrongly_is_left_out_and_said(page):
    page.open(head="9.9", view="everything", ablation="zero", colour="red")
    assert page.run("playground.state.view") == "weights"
    assert page.run("playground.state.ablation") == "zero"
    assert page.text("message").startswith("Ignored in the address: ")
    for unknown in ("head=9.9", "view=everything", "colour=red"):
        assert unknown in page.text("message")


def test_a_texts_tags_stay_text_and_nothing_is_fetched_from_elsewhere(page):
    page.type("text", HOSTILE)
    assert page.run("window.hit === undefined") and "<" in page.outputs()["tokens"]


def test_empty_texts_are_said(page):
    page.browser.execute_script(
        "for (const name of ['text', 'pair']) document.getElementById(name).value = ''"
    )
    page.type("text", "  ")
    assert "Write a sentence" in page.text("message")
    page.type("pair", "He did.")
    assert "The first sentence is empty" in page.text("message")
    page.type("text", "She did.")
    assert "tokens, read in" in page.text("message")


@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_scrolls_sideways(page, width):
    with on_a_phone(page.browser, width):
        for view in ("weights", "norms", "effects"):
            page.choose("view", view)
            assert page.run("document.documentElement.scrollWidth") <= width, view


# Other models, and browsers that cannot


def test_an_encoder_has_maps_and_norms_alone(browser, served, tiny_bert):
    page = Page(browser, served(tiny_bert, "encoder"))
    page.open(view="effects")
    assert "has no classifier" in page.text("answer") and "view=effects" in page.text("message")
    assert not page.one("#sweep").is_displayed()
    assert page.outputs()["weights"].shape[0] == LAYERS * HEADS


def test_a_page_in_the_site_has_the_evidence_where_its_heads_fit(
    browser, served, model, monkeypatch, tmp_path
):
    rows = entries_of(
        "weight along links",
        {TASKS["rte"]: np.arange(12).reshape(3, 4) / 11},
        ["task"],
        unit="share",
        n=277,
    )
    rows += entries_of(
        "gain without a head", np.arange(12).reshape(3, 4) / 1100 - 0.005, unit="gain", n=277
    )
    numbers = numbers_in(tmp_path / "glue", rows)
    monkeypatch.setattr(playground, "measures_of", lambda *_: numbers)
    page = Page(browser, served(model, "in-site", in_site=True))
    page.open(view="evidence", head="3.4", measure="6_disabling_heads|gain without a head|")
    assert page.text("explained").startswith(playground.MEASURES["gain without a head"])
    assert page.text("head-title") == "Head (3, 4)" and not page.one("#form").is_displayed()
    assert page.one("[data-head='11']").text == "+0.5"
    assert "gain without a head, in points" in page.text("legend")
    card = page.text("card")
    assert "6 · Disabling heads" in card and "RTE; 277 examples" in card and "100 %" in card
    assert "results/glue/6_disabling_heads.json" in card
    page.one("[data-head='0']").click()
    page.settle()
    assert "0 %" in page.text("card") and "-0.5 points" in page.text("card").replace("−", "-")
    page.open(view="evidence", measure="7_unknown")
    assert "measure=7_unknown" in page.text("message")
    with on_a_phone(browser, 390):
        assert page.run("document.documentElement.scrollWidth") <= 390
    assert page.one("#home a").get_attribute("href").endswith("/index.html")
    # An address without a text leaves the field for it.
    browser.execute_script("location.hash = '#text=&view=weights'")
    page.wait("document.getElementById('message').textContent.includes('Write a sentence')")
    assert page.one("#text").is_displayed()


def numbers_in(folder, rows):
    write_results(folder, rows, "6_disabling_heads").rename(folder / "6_disabling_heads.json")
    return playground.measures_of([folder], ROOT / "notebooks")


def test_a_browser_without_webassembly_and_a_page_from_the_disk_say_so(
    browser, address, served, tmp_path
):
    script = browser.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument", {"source": "delete globalThis.WebAssembly"}
    )
    page = Page(browser, address)
    try:
        browser.get("about:blank")
        browser.get(address)
        page.wait("document.getElementById('message').textContent.includes('no WebAssembly')")
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    shutil.copytree(playground.HERE / "page", tmp_path / "page")
    browser.get((tmp_path / "page" / "index.html").as_uri())
    assert "from a web server only" in page.text("message")
    browser.get("about:blank")
    browser.get_log("browser")


# Export, without a browser


def test_what_cannot_be_shown_is_refused_in_words(tmp_path, model, monkeypatch):
    with pytest.raises(ValueError, match="holds no model"):
        export.load(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "roberta"}')
    with pytest.raises(ValueError, match="of type 'roberta'"):
        export.load(tmp_path)
    monkeypatch.setattr(export, "farthest", lambda *_: 0.01)
    with pytest.raises(ValueError, match="differs by 1.0e-02 from PyTorch"):
        export.export(model, tmp_path)


def test_the_evidence_of_heads_is_shown_by_kind_task_and_run(tmp_path):
    values = np.arange(12).reshape(3, 4) / 7 - 0.5
    shares = np.random.default_rng(1).random((3, 4, 2))
    maps, gain = "share of maps by head", "gain without a head"
    over = {"over": ("layer", "head", "kind"), "kinds": ("a", "b"), "state": "tuned"}
    rows = entries_of(maps, {TASKS["mrpc"]: shares}, ["task"], **over)
    rows += entries_of(maps, values[:, 0], over=("layer",))
    rows += entries_of("p of the gain", values)
    ends = {"value": values, "low": values - 1, "high": values + 1, "n": 5}
    rows += entries_of(gain, {TASKS["rte"]: [ends]}, ["task", "training"], unit="gain")
    found = numbers_in(tmp_path, rows)
    names = {(one["what"], one["of"]) for one in found}
    assert names == {
        (maps, "a, MRPC, tuned"),
        (maps, "b, MRPC, tuned"),
        (gain, "RTE, run 1"),
    }
    by_name = {one["of"]: one for one in found}
    np.testing.assert_allclose(
        by_name["b, MRPC, tuned"]["values"], shares[..., 1].ravel(), atol=1e-4
    )
    run = by_name["RTE, run 1"]
    assert run["title"].startswith("6 · ") and run["n"] == 5 and run["factor"] == 100
    assert run["texts"][0] == "-50 points [-150, +50]" and len(run["texts"]) == 12


def test_the_evidence_has_every_measure_of_heads_that_the_page_names():
    folders = [ROOT / "results" / name for name in playground.SHOWN]
    found = playground.measures_of(folders, ROOT / "notebooks")
    assert {one["what"] for one in found} == set(playground.MEASURES)
    assert {len(one["values"]) for one in found} == {72}
    json.dumps(found, allow_nan=False)


def test_npms_packages_are_pinned_by_their_hashes_and_no_host_is_named():
    text = (playground.HERE / "package-lock.json").read_text(encoding="utf-8")
    lock, wanted = json.loads(text), json.loads((playground.HERE / "package.json").read_text())
    assert "://" not in text and lock["packages"][""]["dependencies"] == wanted["dependencies"]
    for name, one in lock["packages"].items():
        assert not name or one["integrity"].startswith("sha512-"), name
    assert all(re.fullmatch(r"[\d.]+", version) for version in wanted["dependencies"].values())


def test_npm_that_fetches_nothing_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: "npm")
    monkeypatch.setattr(
        playground.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1)
    )
    with pytest.raises(playground.NoPackagesError, match="could not fetch"):
        playground.packages(tmp_path)
