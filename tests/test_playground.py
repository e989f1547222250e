"""The playground: what a real browser shows equals PyTorch, by mouse, keyboard and address; pages without what they need say so."""

import functools
import json
import re
import shutil
import subprocess
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
import xarray as xr
from conftest import ROOT
from pages import on_a_phone
from torch.nn.utils import parametrize

from bertology_utils import batches_of, load_classifier, load_tokenizer, sweep
from bertology_utils.study import Study

pytest.importorskip("onnx", reason="the playground is exported by onnx, which `make site` installs")
pytest.importorskip("onnxscript", reason="the playground needs onnxscript; `make site` installs it")
pytest.importorskip("onnxruntime", reason="the playground needs onnxruntime; make site")

from docs.playground import __main__ as playground
from docs.playground import export, measured

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
        idle = "globalThis.playground?.idle() && playground.isLoaded()"
        self.wait(f"{idle} && !document.getElementById('play').hidden")

    def wait(self, condition):
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.browser, 90, 0.05).until(lambda _: self.run(condition), condition)

    def run(self, script, *arguments):
        return self.browser.execute_script(f"return {script}", *arguments)

    def one(self, selector):
        return self.browser.find_element("css selector", selector)

    def click(self, *selectors):
        for selector in selectors:
            self.one(selector).click()
        self.settle()

    def press(self, *keys):
        self.browser.switch_to.active_element.send_keys(*keys)
        self.settle()

    def text(self, name):
        return self.one(f"#{name}").text

    def off(self):
        return sorted(self.run("[...playground.state.off]"))

    def type(self, name, text):
        self.browser.execute_script(
            "const one = document.forms[0].elements[arguments[0]]; one.value = arguments[1];"
            "one.dispatchEvent(new Event('input', { bubbles: true }))",
            name,
            text,
        )
        self.settle()

    def pixels(self, head):
        """The small map of a head, as its canvas has it: (rows, columns, red to alpha)."""
        script = "((one) => one.getContext('2d').getImageData(0, 0, one.width, one.height).data)"
        found = self.run(f"[...{script}(document.querySelector('[data-head=\"{head}\"] canvas'))]")
        side = int((len(found) / 4) ** 0.5)
        return np.reshape(found, (side, side, 4))

    def outputs(self):
        """What the page shows, as arrays."""
        plain = "JSON.stringify(playground.outputs(), (_, one) => (ArrayBuffer.isView(one) ? [...one] : one))"
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
def loaded(model):
    """It, and its tokenizer."""
    return export.load(model)


@pytest.fixture(scope="module")
def modules():
    """npm's packages."""
    try:
        return playground.packages(ROOT)
    except playground.NoPackagesError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def served(modules, tmp_path_factory):
    """Makes the page of a model; gives its address."""
    root, servers = tmp_path_factory.mktemp("served"), []

    def serve(folder, name, more=lambda page: {}):
        page = root / name / "playground"
        playground.write(ROOT, page, lambda page: playground.own_model(folder, page) | more(page))
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


def by_pytorch(loaded, text, heads=(), ablation="uniform"):
    off = np.zeros((LAYERS, HEADS))
    for head in heads:
        off[head] = 1
    found = export.by_pytorch(*loaded, text, off, ablation)
    for way in ("weights", "norms"):
        found[way] = found[way].reshape(-1, *found[way].shape[-2:])
    return found | {"answer": export.probabilities(found["answer"])}


# Numbers


def test_weights_norms_and_answers_equal_pytorchs(page, loaded):
    answers = set()
    for text in TEXTS:
        first, second = (text, "") if isinstance(text, str) else text
        for heads in SETS:
            off = " ".join(f"{layer + 1}.{head + 1}" for layer, head in heads)
            for ablation in export.ABLATIONS:
                state = {"text": first, "pair": second, "off": off, "ablation": ablation}
                page.run("location.hash = arguments[0]", urlencode(state))
                page.settle()
                found = page.outputs()
                for name, wanted in by_pytorch(loaded, text, heads, ablation).items():
                    np.testing.assert_allclose(
                        found[name], wanted, atol=TOLERANCE, err_msg=str(state)
                    )
                answers.add(round(found["answer"][0], 3))
    assert len(answers) > 10, "disabling changes what is compared"


@pytest.mark.parametrize("ablation", export.ABLATIONS)
def test_all_heads_tried_equal_the_sweep(page, loaded, ablation):
    page.open(text=TEXTS[0], view="effects", ablation=ablation, head="2.2")
    effects = np.array(page.outputs()["effects"]).reshape(LAYERS, HEADS)
    swept = sweep(loaded[0], batches_of([TEXTS[0]], loaded[1]), ablation)
    label = swept.baseline[0].argmax()
    before, after = (
        export.probabilities(one)[..., 0, label] for one in (swept.baseline, swept.heads)
    )
    np.testing.assert_allclose(effects, after - before, atol=TOLERANCE)
    assert np.abs(effects).max() > 0.01
    layer, head = np.unravel_index(np.abs(effects).argmax(), effects.shape)
    assert f"Without head ({layer + 1}, {head + 1}), " in page.text("verdict")
    assert page.run("playground.state.head") == HEADS + 1, "the head that was chosen stays"
    page.click("#verdict .link")
    assert page.run("playground.state.head") == layer * HEADS + head
    assert "in points" in page.text("legend") and page.text("map-legend").startswith("weight")


def test_a_reader_sees_weight_and_norm_of_a_cell_each_by_its_name(page, loaded):
    wanted = by_pytorch(loaded, TEXTS[0])
    weights, norms = wanted["weights"][6], wanted["norms"][6]
    assert np.abs(weights - norms).max() > 0.05, "swapped views would be seen"
    between = weights[1:-1, 1:-1] * (1 - np.eye(len(weights) - 2))
    for view, shown, legend in (("weights", weights, "weight"), ("norms", norms, "norm")):
        page.open(text=TEXTS[0], head="2.3", view=view)
        assert f"Head (2, 3): its {view}" in page.text("head-title")
        assert page.text("legend").startswith(legend) and page.text("map-legend").startswith(legend)
        first = float(re.search(r"weight ([\d.]+)", page.text("readout"))[1])
        assert abs(first - between.max()) < TOLERANCE, "it begins at the most telling cell"
        page.run("playground.point(0, 0)")
        for column in range(3):
            read = [*map(float, re.findall(r"(?:weight|norm) ([\d.]+)", page.text("readout")))]
            cell = weights[0, column], norms[0, column]
            np.testing.assert_allclose(read, cell, atol=TOLERANCE)
            page.one("#map").send_keys("\ue014")  # to the right
        light = page.pixels(6)[1].sum(axis=1)
        gap = shown[1, 1] - shown[1, 0]
        assert abs(gap) < 0.01 or (light[0] > light[1]) == (gap > 0), "darker where there is more"


def test_small_maps_of_long_texts_show_what_the_large_ones_show(page):
    page.type("text", "bread paper " * 70)
    assert f"{export.MAX_TOKENS} are read" in page.text("message")
    for head, shown in enumerate(page.outputs()["weights"]):
        light = page.pixels(head).sum(axis=2)
        room = page.run(f"document.querySelector('[data-head=\"{head}\"] canvas').clientWidth")
        assert len(light) <= room, "the browser leaves out cells of a canvas that it shrinks"
        block = -(-len(shown) // len(light))
        most = np.argwhere(shown > shown.max() - 1e-6)[0] // block
        assert light[tuple(most)] == light.min(), "the largest weight has the darkest pixel"


# What people do


def test_by_keyboard_alone(page):
    from selenium.webdriver.common.keys import Keys

    page.one("[name=text]").send_keys(" Indeed.")
    page.settle()
    assert "indeed" in page.outputs()["tokens"]
    for _ in range(20):  # on to the heads, of which one is reached
        page.press(Keys.TAB)
        if page.run("document.activeElement.dataset.head"):
            break
    start = int(page.run("document.activeElement.dataset.head"))
    page.press(Keys.ARROW_DOWN if start < 8 else Keys.ARROW_UP)
    head = start + (HEADS if start < 8 else -HEADS)
    page.press(Keys.SPACE)
    assert page.off() == [], "it is shown first"
    page.press(Keys.SPACE)
    assert page.off() == [head]
    button = page.one(f"[data-head='{head}']")
    assert "off" in button.get_attribute("class")
    assert ", disabled" in button.get_attribute("aria-label")
    assert "1 of 12 heads disabled" in page.text("answer")
    assert page.text("head-title").endswith(": disabled")
    page.press(Keys.SPACE)
    assert page.off() == [] and page.run("playground.state.head") == head
    page.press(Keys.ARROW_LEFT if head % HEADS else Keys.ARROW_RIGHT, Keys.ENTER)
    assert page.run("playground.state.head") == head + (-1 if head % HEADS else 1)


def test_heads_and_layers_by_mouse_and_the_view_in_the_address(page):
    page.open(head="2.2")
    # Shows the one, and the other, and disables this; and the first layer.
    heads = [f"[data-head='{head}']" for head in (7, 5, 5)]
    page.click(*heads, "#grid .layer:nth-of-type(1)")
    where = page.browser.current_url
    page.browser.get("about:blank")
    page.browser.get(where)
    page.settle()
    assert page.off() == [0, 1, 2, 3, 5]
    page.click("#restore")
    assert page.off() == []
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
    page.type("text", "  ")
    assert "Write a sentence" in page.text("message")
    page.type("pair", "He did.")
    assert "The first sentence is empty" in page.text("message")
    page.type("text", "She did.")
    assert page.text("message") == ""


@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_scrolls_sideways(page, width):
    with on_a_phone(page.browser, width):
        for view in ("weights", "norms", "effects"):
            page.run(f"document.querySelector('[name=view][value={view}]').click()")
            page.settle()
            assert page.run("document.documentElement.scrollWidth") <= width, view


# Other models, and browsers that cannot


def test_an_encoder_has_maps_and_norms_alone(browser, served, tiny_bert):
    page = Page(browser, served(tiny_bert, "encoder"))
    page.open(view="effects")
    assert "has no labels" in page.text("answer") and "view=effects" in page.text("message")
    assert page.text("verdict") == ""
    assert page.outputs()["weights"].shape[0] == LAYERS * HEADS


MEASURE = {
    "group": "Without the head",
    "what": "loss added",
    "unit": "%",
    "digits": 1,
    "page": "6_disabling_heads",
    "says": "How much the loss rises.",
}
for name, less in (("value", 3), ("low", 4), ("high", 2)):
    MEASURE[name] = [head / 2 - less for head in range(LAYERS * HEADS)]


def test_a_page_in_the_site_shows_what_was_measured(browser, served, model, monkeypatch):
    measures = [MEASURE | {"of": task} for task in ("MRPC", "RTE")]
    monkeypatch.setattr(measured, "measured", lambda *_: measures)

    def in_site(page):
        return {"home": True} | playground.what_was_measured(page)

    page = Page(browser, served(model, "in-site", in_site))
    page.open(view="measured", head="3.4", measure="6_disabling_heads|loss added|RTE")
    assert page.text("explained").startswith("How much the loss rises.")
    assert page.text("head-title") == "Head (3, 4)" and not page.one("[name=text]").is_displayed()
    assert page.one("[data-head='11']").text == "2.5"
    assert "loss added, RTE, in %" in page.text("legend")
    card = page.text("card")
    assert "loss added (notebook 6)" in card and card.count("2.5 % [1.5, 3.5]") == 2
    page.click("[data-head='0']")
    assert "−3.0 % [−4.0, −2.0]" in page.text("card")
    page.open(view="measured", measure="7_unknown")
    assert "measure=7_unknown" in page.text("message")
    with on_a_phone(browser, 390):
        assert page.run("document.documentElement.scrollWidth") <= 390
    assert page.one("#home a").get_attribute("href").endswith("/index.html")
    # An address without a text leaves the field for it.
    page.run("location.hash = '#text=&view=weights'")
    page.wait("document.getElementById('message').textContent.includes('Write a sentence')")
    assert page.one("[name=text]").is_displayed()


def test_a_browser_without_webassembly_and_a_page_from_the_disk_say_so(browser, address):
    source = {"source": "delete globalThis.WebAssembly"}
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", source)
    page = Page(browser, address)
    try:
        browser.get("about:blank")
        browser.get(address)
        page.wait("document.getElementById('message').textContent.includes('no WebAssembly')")
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    browser.get((playground.HERE / "page" / "index.html").as_uri())
    assert "from a web server only" in page.text("message")
    browser.get("about:blank")
    browser.get_log("browser")


# Export, without a browser


def test_what_cannot_be_shown_is_refused_in_words(tmp_path, loaded, monkeypatch):
    with pytest.raises(ValueError, match="holds no model"):
        export.load(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "roberta"}')
    with pytest.raises(ValueError, match="of type 'roberta'"):
        export.load(tmp_path)
    monkeypatch.setattr(export, "farthest", lambda *_: 0.01)
    with pytest.raises(ValueError, match="differs by 1.0e-02 from PyTorch"):
        export.export(*loaded, tmp_path)


def test_a_model_of_four_bits_and_a_narrow_update_loses_nothing_and_is_small(
    tmp_path, stored_weights
):
    model, tokenizer = load_classifier("e5-2-layers", "sst2"), load_tokenizer("e5-2-layers")
    torch.manual_seed(1)
    for linear in model.bert.encoder.modules():
        if isinstance(linear, torch.nn.Linear):
            b, a = (torch.randn(size, 4) / 20 for size in linear.weight.shape)
            update = export.LowRank(b, a.T.contiguous())
            parametrize.register_parametrization(linear, "weight", update)
    about = export.export(model, tokenizer, tmp_path)
    size = 32 * about["bytes"] / 4.6 / sum(one.numel() for one in model.parameters())
    assert size < 8, "about 4.5 bits for each number, and the update"
    assert about["texts"] == ("input_ids",)
    session = export.opened(tmp_path / "model.onnx")
    assert export.farthest(session, model, tokenizer, ["The plot is thin.", "日本 🙂"]) < 1e-4
    first, found = export.EXAMPLES[0], about["first"]
    wanted = export.by_pytorch(model, tokenizer, first, np.zeros((2, 12)), "uniform")
    wanted["without"] = sweep(model, batches_of([first], tokenizer), "uniform").heads[:, :, 0]
    for name, one in wanted.items():
        np.testing.assert_allclose(np.ravel(found[name]), one.ravel(), atol=1e-3)


LONG = "word " * 200
ODD = [
    "\u039f\u0394\u039f\u03a3",  # Greek capitals, the last one a sigma
    "ΑΣ ΣΑΣ' Σ, Σ\u0301 Σ-Σ σς \u039f ΣΟΦΟΣ ΑΝΘΡΩΠΟΣ. ὈΔΥΣΣΕΎΣ",
    "İstanbul café 東京 👩\u200d👧 ½ ﬁne I\u0307\u0131 İI ŞĞ DŽ Dž ŁÓDŹ ÇA ЁЖ",
    "<s> a\u0301 soft\u00adhyphen nul\x00char zero\u200bwidth\u2060joiners\u200d",
    "[SEP] [MASK] [CLS] [PAD] </s> <pad> <unk>",
    "x" * 300,
    "a" * 101,
    "  two  spaces, a tab\tand\nnewline, \u3000full\u3000width\u3000",
    "it wasn't bad! “quotes” — dashes … dots 'tis the '90s; rock'n'roll",
    "العربية עברית हिन्दी ภาษาไทย 한국어 \u202eright-to-left",
    "\ufeffbom in\ufeffside",
    "▁a▁b e\u0301 é Å ß ẞ Ⅷ ﷺ \uff26\uff35\uff2c\uff2c width",
    "$5 €6 50% 3.14 1,000 ½ ² ₃ ① (c) \u00a9 \u2122 \u2126 \u212b \u017f",
    "http://a.b/c?d=e&f#g user@host.org",
    "日本語" * 90,
    "\U0001f1e9\U0001f1ea \U0001f468\U0001f3fd\u200d\U0001f680 \u2764\ufe0f \ud7ff\uf8ff\ufffd\U0010ffff",
    "\x80\x85 line\x85break \x1c\x1d \u2028 \u180e",
    "\U00020000\U00020001 a\U0002f800 \U0002b740\u4e2d\U0001f600\U0001f600",
]
PAIRS = [[text, ""] for text in (*ODD, "a", LONG)]
PAIRS += [PAIR, [LONG, "short"], ["a", LONG], [LONG, "paper " * 90], [LONG, LONG]]


@pytest.mark.parametrize("name", ["e5-2-layers", "embedded"])
def test_the_browsers_tokens_are_pythons(name, modules, tmp_path):
    node = shutil.which("node") or pytest.skip("node is not installed")
    tokenizer = load_tokenizer(name)
    (tmp_path / "tokenizer.json").write_text(export.rules_of(tokenizer), encoding="utf-8")
    (tmp_path / "vendor").mkdir()
    source = modules / playground.VENDORED["tokenizers.mjs"]
    shutil.copy(source, tmp_path / "vendor" / "tokenizers.mjs")
    (tmp_path / "vendor" / "ort.mjs").write_text("export const env = { wasm: {} }")
    script = (playground.HERE / "page" / "model.js").read_text(encoding="utf-8")
    names = export.inputs_of(tokenizer)
    script += f"""
import {{ readFileSync }} from "fs"
about = {{ longest: 128, texts: {json.dumps(names)} }}
tokenizer = tokenizerOf(JSON.parse(readFileSync("tokenizer.json")))
console.log(JSON.stringify({json.dumps(PAIRS)}.map(([text, pair]) => tokensOf(text, pair))))
"""
    (tmp_path / "test.mjs").write_text(script, encoding="utf-8")
    done = subprocess.run([node, "test.mjs"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for (text, pair), one in zip(PAIRS, json.loads(done.stdout), strict=True):
        texts = (text, pair) if pair else (text,)
        wanted = tokenizer(*texts, truncation="longest_first", max_length=128)
        for of, found in zip(names, (one["ids"], one["types"]), strict=False):
            assert found == wanted[of], (text, pair)


# What was measured


def test_measured_heads_are_means_of_what_results_hold():
    every = measured.measured(Study.of("e5"))
    found = {(one["what"], one["of"]): one for one in every}
    assert len(found) == len(every) and all(len(one["value"]) == 144 for one in every)
    names = {one["what"] for one in every}
    assert len(names) == sum(len(several) for several in measured.MEASURES.values()) <= 12
    without = xr.load_dataset(ROOT / "results/e5/without_each_head/QQP-2.nc")
    gains = (100 * (without.right_without.astype(float) - without.right)).mean("example")
    weights = xr.load_dataset(ROOT / "results/e5/special_tokens/treebank.nc").weight.astype(float)
    on_cls = 100 * weights.sel(input="one sentence", token="[CLS]").mean("example")
    qqp, cls = found["gain in score", "QQP"], found["weight on [CLS] and [SEP]", "[CLS]"]
    for one, values, near in ((qqp, gains, 0.01), (cls, on_cls, 0.1)):
        expected = values.transpose("layer", "head").values.ravel()
        np.testing.assert_allclose(one["value"], expected, atol=near)
    low, value, high = (np.array(qqp[name]) for name in ("low", "value", "high"))
    assert ((low <= value) & (value <= high)).all()
    json.dumps(every, allow_nan=False)


def test_what_is_not_measured_yet_is_left_out(monkeypatch, tmp_path):
    monkeypatch.setenv("BERTOLOGY_RESULTS", str(tmp_path))
    assert measured.measured(Study.of("e5")) == []
    assert measured.typical(Study.of("e5")) == ""


def test_npms_packages_are_pinned_by_their_hashes_and_no_host_is_named():
    text = (playground.HERE / "package-lock.json").read_text(encoding="utf-8")
    lock, wanted = json.loads(text), json.loads((playground.HERE / "package.json").read_text())
    assert "://" not in text and lock["packages"][""]["dependencies"] == wanted["dependencies"]
    for name, one in lock["packages"].items():
        assert not name or one["integrity"].startswith("sha512-"), name
    assert all(re.fullmatch(r"[\d.]+", version) for version in wanted["dependencies"].values())


def test_npm_that_fetches_nothing_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: "npm")
    failed = SimpleNamespace(returncode=1)
    monkeypatch.setattr(playground.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(playground.NoPackagesError, match="could not fetch"):
        playground.packages(tmp_path)
