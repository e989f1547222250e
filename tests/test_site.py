"""The site: whole or not at all, without dead links, and fit for a phone; its playground is tested from a server (test_playground.py)."""

import re
import subprocess
from contextlib import nullcontext
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from conftest import ROOT
from pages import Links, on_a_phone

from docs import book as site

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def built():
    """The site's folder."""
    folder = ROOT / site.SITE
    if not (folder / "index.html").exists():
        pytest.skip("the site is not built; make site")
    return folder.resolve()


def test_the_site_has_no_dead_link_or_image_and_fetches_nothing_from_elsewhere(built):
    for path in built.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"url\((http|//)|@import", text), path.name
    parsed = {path: Links(path.read_text(encoding="utf-8")) for path in built.rglob("*.html")}
    dead = []
    for page, found in parsed.items():
        assert not [one for one in found.fetched if urlsplit(one).netloc], page.name
        for address in found.links + found.fetched:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            known = parsed.get(target)
            shown = target.parent.name == "playground"  # a fragment is what it is to show
            named = not (parts.fragment and known) or unquote(parts.fragment) in known.names
            if not target.is_file() or not (named or shown):
                dead.append(f"{page.relative_to(built)}: {address}")
    assert dead == []


def test_every_notebook_is_in_the_site_with_one_entry_and_leads_to_the_playground(built):
    for notebook in NOTEBOOKS:
        text = (built / "notebooks" / f"{notebook.stem}.html").read_text(encoding="utf-8")
        assert text.count("cell_output") > 5, notebook.name
        assert "playground/index.html#view=" in text, notebook.name
    assert "Playground" in (built / "playground" / "index.html").read_text(encoding="utf-8")
    first = (built / "index.html").read_text("utf-8")
    (tree,) = re.findall(r'class="sidebar-tree">(.*?)</div>', first, re.DOTALL)
    pages = re.findall(r'<a class="reference internal" href="([^"#]+)"', tree)
    assert tree.count('<p class="caption"') == 3
    assert len(pages) == len(set(pages)) <= 26
    assert sum(page.startswith("notebooks/") for page in pages) == len(NOTEBOOKS)


@pytest.mark.parametrize("width", [390, 1200])
def test_no_page_scrolls_sideways_or_complains(browser, built, width):
    with on_a_phone(browser, width):
        for path in built.rglob("*.html"):
            if {"_modules", "_static", "playground"} & set(path.parts):
                continue
            browser.get(path.as_uri())
            needed = browser.execute_script("return document.documentElement.scrollWidth")
            assert needed <= width, path.name
            complaints = [one for one in browser.get_log("browser") if one["level"] == "SEVERE"]
            assert not complaints, path.name


# What it is made of


def test_the_first_page_has_the_playground_three_findings_and_every_notebook_with_its_picture():
    page = site.home(ROOT, (ROOT / "README.md").read_text("utf-8"))
    assert page.count("](playground/index.md)") >= 2
    assert len(re.findall(r"^\d\. ", page, re.MULTILINE)) == 3
    for notebook in NOTEBOOKS:
        assert f")](notebooks/{notebook.name}) |" in page, "its picture leads there"
    for address in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page):
        assert (ROOT / address).is_file(), address
    with pytest.raises(ValueError, match="no numbered findings"):
        site.home(ROOT, "# Nothing")


def test_heads_in_sentences_lead_to_the_playground_and_no_others():
    text = "Head (3, 5) and `(1, 2)`, ![a (1, 2)](x.png), $(1, 2)$, [(1, 2)](y)<!-- (1, 2) -->, (0, 3)\n```\n(1, 2)\n```"
    linked = site.with_heads_linked(text, "6_disabling_heads")
    assert linked.count("<a ") == 1
    assert "#head=3.5&view=measured&measure=6_disabling_heads" in linked
    assert re.sub(r"</?a[^>]*>", "", linked) == text
    assert "#head=11.12&view=weights" in site.with_heads_linked("(11, 12)", "0_attention_head")


def test_every_measure_that_a_link_names_is_in_the_playground():
    from docs.playground.measured import PAGES

    for notebook in NOTEBOOKS:
        text = site.with_heads_linked("head (3, 5)", notebook.stem) + site.see_heads(notebook.stem)
        named = re.findall(r"measure=(\w+)", text)
        assert set(named) <= PAGES and bool(named) == (notebook.stem in PAGES), notebook.stem
    assert "view=measured" in site.see_heads("11_trees"), "another page's measures"


def test_the_first_use_of_a_term_leads_to_the_glossary():
    glossary, terms = site.with_entries(
        "## A\n\n- **[CLS], [SEP]**: tokens.\n- **null head**: of (1, 2).\n- **head**: *a* head."
    )
    assert "\n```{glossary}\n[CLS]\n[SEP]\n  tokens.\n```" in glossary
    text = "# Head\n`head` [head](x) <a title='head'>Heads</a>, head, ahead, Null heads, head-on, [CLS]."
    linked = site.with_terms_linked(text, terms)
    for one in ("`Heads <head>`</a>, head", "`Null heads <null head>`", "`[CLS] <"):
        assert f"{{term}}{one}" in linked
    assert linked.count("{term}") == 3 and list(terms.values()) == ["[SEP]"]
    assert site.with_terms_linked("a head", terms) == "a head"


def test_without_npm_the_site_is_built_without_its_playground_and_says_so(
    monkeypatch, capsys, tmp_path
):
    pytest.importorskip("onnxscript", reason="`make site` installs what exports the playground")
    monkeypatch.setattr("docs.playground.__main__.shutil.which", lambda _: None)
    site.write_playground(tmp_path, tmp_path / "page")
    assert "without its playground: npm is not installed" in capsys.readouterr().out
    assert not (tmp_path / "page").exists()


@pytest.mark.parametrize("code", [0, 1])
def test_a_site_takes_the_place_of_the_earlier_one_unless_it_cannot_be_built(
    tmp_path, monkeypatch, code
):
    def build(command, check):
        Path(command[-1]).mkdir()
        (Path(command[-1]) / "index.html").write_text("new")
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr(site, "write_source", lambda root, source: source.mkdir())
    monkeypatch.setattr(site, "write_playground", lambda root, page: page.mkdir())
    monkeypatch.setattr(site, "NEEDS", ())
    monkeypatch.setattr(subprocess, "run", build)
    first = tmp_path / site.SITE / "index.html"
    first.parent.mkdir(parents=True)
    first.write_text("earlier")
    with pytest.raises(RuntimeError, match="not built") if code else nullcontext():
        assert site.build_site(tmp_path) == first
    assert first.read_text() == ("earlier" if code else "new")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["site"]
