"""The site: whole or not at all, without dead links, and fit for a phone."""

import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from conftest import ROOT
from pages import Links, on_a_phone, outside

from docs import book as site

SITE = ROOT / site.SITE


# The site


def needs_site():
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built; make site")


def built_pages():
    return sorted(
        path
        for path in SITE.rglob("*.html")
        if "_modules" not in path.parts and "_static" not in path.parts
    )


def test_the_site_fetches_nothing_from_elsewhere():
    needs_site()
    for path in SITE.rglob("*.html"):
        assert outside(path.read_text(encoding="utf-8")) == [], path.name
    for path in SITE.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert "url(http" not in text and "url(//" not in text and "@import" not in text, path.name


def test_the_site_has_no_dead_link_or_image():
    needs_site()
    parsed = {
        path.resolve(): Links(path.read_text(encoding="utf-8")) for path in SITE.rglob("*.html")
    }
    dead = []
    for page_path, found in parsed.items():
        for address in found.links + found.fetched:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (page_path.parent / unquote(parts.path)).resolve() if parts.path else page_path
            named = (
                not parts.fragment
                or target not in parsed
                or unquote(parts.fragment) in parsed[target].names
            )
            if not target.is_file() or not named:
                dead.append(f"{page_path.relative_to(SITE)}: {address}")
    assert dead == []


def test_every_notebook_and_the_atlas_are_in_the_site():
    needs_site()
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        text = (SITE / "notebooks" / f"{notebook.stem}.html").read_text(encoding="utf-8")
        assert text.count("cell_output") > 5, notebook.name
    assert (SITE / "atlas.html").stat().st_size < 5e6


@pytest.mark.parametrize("width", [390, 1200])
def test_no_page_scrolls_sideways_or_complains(browser, width):
    needs_site()
    with on_a_phone(browser, width):
        for path in built_pages():
            browser.get(path.as_uri())
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width, (
                path.name
            )
            assert not [line for line in browser.get_log("browser") if line["level"] == "SEVERE"], (
                path.name
            )


@pytest.fixture
def earlier(tmp_path, monkeypatch):
    """A checkout with a site, in which building it fails."""
    monkeypatch.setattr(site, "write_source", lambda root, source: source.mkdir())
    monkeypatch.setattr(site, "NEEDS", ())
    (tmp_path / site.SITE).mkdir(parents=True)
    (tmp_path / site.SITE / "index.html").write_text("earlier")
    return tmp_path


def left(root):
    return [path.name for path in (root / "runs").iterdir()], (
        root / site.SITE / "index.html"
    ).read_text()


def test_a_site_that_cannot_be_built_leaves_the_earlier_one(earlier, monkeypatch):
    monkeypatch.setattr(
        subprocess, "run", lambda command, check: subprocess.CompletedProcess(command, 1)
    )
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
