"""`publish`: address and tag in all places or in none, outputs untouched, and back again byte for byte."""

import json
import os
import shutil

import pytest
from conftest import ROOT

from docs import publish

CALL = ["--repository", "https://github.com/someone/some.thing", "--tag", "v1.2"]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """The project's own pyproject.toml and two of its notebooks, alone and unpublished."""
    (tmp_path / "notebooks").mkdir()
    for name in ("0_attention_head.ipynb", "2_framenet_heads.ipynb"):
        shutil.copy2(ROOT / "notebooks" / name, tmp_path / "notebooks")
    shutil.copy2(ROOT / "pyproject.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert publish.main(["--repository", ""]) == 0
    return tmp_path


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_all_places_are_written_and_taken_back(checkout, capsys):
    before = contents(checkout)
    assert publish.main(CALL) == 0
    after = contents(checkout)
    assert after.keys() == before.keys() and all(after[name] != before[name] for name in before)
    assert f"{len(before)} files changed\nnext: git commit" in capsys.readouterr().out
    assert publish.published() == publish.Published("https://github.com/someone/some.thing", "v1.2")
    for name in after.keys() - {"pyproject.toml"}:
        old, new = (json.loads(content[name]) for content in (before, after))
        changed = [a["metadata"]["tags"] for a, b in zip(old["cells"], new["cells"], strict=True) if a != b]
        assert changed == [["badge"], ["setup"]]
        assert b"github/someone/some.thing/blob/v1.2/notebooks/" + name.split("/")[1].encode() in after[name]
    for again in (CALL, []):
        assert publish.main(again) == 0
        assert contents(checkout) == after
    assert "\n0 files changed" in capsys.readouterr().out
    assert publish.main(["--tag", "v1.3"]) == 0
    assert publish.published().tag == "v1.3" and publish.published().address.endswith("/some.thing")
    assert publish.main(["--repository", ""]) == 0
    assert contents(checkout) == before


def refused(call, capsys):
    capsys.readouterr()
    assert publish.main(call) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["http://github.com/a/b", "v1"], "Colab opens https://github.com/OWNER/NAME only"),
        (["https://example.org/a/b", "v1"], "https://github.com/OWNER/NAME"),
        (["https://github.com/a", "v1"], "https://github.com/OWNER/NAME"),
        (["https://github.com/a/..", "v1"], "https://github.com/OWNER/NAME"),
        (['https://github.com/a/b"; x', "v1"], "https://github.com/OWNER/NAME"),
        (["https://github.com/a/b", "v 1"], "a tag is letters, digits"),
        (["https://github.com/a/b", "v1;rm"], "a tag is letters, digits"),
        (["https://github.com/a/b", "$(x)"], "a tag is letters, digits"),
        (["https://github.com/a/b", "-v"], "a tag is letters, digits"),
        (["https://github.com/a/b", "a..b"], "a tag is letters, digits"),
        (["https://github.com/a/b", "v1.lock"], "a tag is letters, digits"),
        (["https://github.com/a/b", ""], "give both"),
        (["", "v1"], "to take the address back"),
    ],
)
def test_what_cannot_be_is_refused_in_words(checkout, options, message, capsys):
    before = contents(checkout)
    assert message in refused([f"--repository={options[0]}", f"--tag={options[1]}"], capsys)
    assert contents(checkout) == before


def test_one_notebook_without_its_cells_and_nothing_is_written(checkout, capsys):
    path = checkout / "notebooks" / "2_framenet_heads.ipynb"
    path.write_text(path.read_text().replace('"setup"', '"set up"'))
    before = contents(checkout)
    assert "2_framenet_heads.ipynb: 0 cells tagged 'setup'; one is wanted" in refused(CALL, capsys)
    assert contents(checkout) == before


def test_a_file_that_cannot_be_put_in_its_place_and_all_are_as_before(checkout, monkeypatch, capsys):
    before, replace = contents(checkout), os.replace

    def third_fails(new, old):
        if str(old).endswith("2_framenet_heads.ipynb"):
            raise PermissionError(13, "not permitted", str(old))
        replace(new, old)

    monkeypatch.setattr(os, "replace", third_fails)
    assert publish.main(CALL) == 1
    assert "not permitted" in capsys.readouterr().err
    assert contents(checkout) == before
