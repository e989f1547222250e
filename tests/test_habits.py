"""Lint, format and types, and what CONTRIBUTING.md, CITATION.cff and the workflow say."""

import importlib.util
import re
import subprocess
import sys
import tomllib

import lock
import pytest
import yaml
from conftest import ROOT

import bertology_utils

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())


def has_no_findings(*command):
    if importlib.util.find_spec(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed; pip install -e '.[test]' brings it")
    found = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_lint():
    has_no_findings("ruff", "check", ".")


def test_format():
    has_no_findings("ruff", "format", "--check", ".")


def test_types():
    has_no_findings("mypy")


def test_types_are_strict_in_rooms_that_exist():
    strict = next(rule for rule in PROJECT["tool"]["mypy"]["overrides"] if rule.get("disallow_untyped_defs"))
    rooms = [name.removesuffix(".*") for name in strict["module"]]
    assert len(rooms) == 7
    for room in rooms:
        assert (ROOT / room.replace(".", "/") / "__init__.py").is_file(), room


def test_hooks_use_the_locked_versions():
    pins = [pin for repo in HOOKS["repos"] for hook in repo["hooks"] for pin in hook.get("additional_dependencies", ())]
    assert pins
    assert set(pins) <= set(lock.locked())


def test_what_contributing_names_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    paths = {name for name in re.findall(r"`([\w./]+?)`", text) if re.search(r"/|\.(py|toml|lock|yml)$", name)}
    paths = {name.replace("SECTION/", "patterns/") for name in paths}
    assert len(paths) > 20
    package = ROOT / "bertology_utils"
    rooms = (ROOT, package, package / "regression", package / "patterns")  # a section stands for all
    assert not {name for name in paths if name != "figures/NOTEBOOK/" and not any((room / name).exists() for room in rooms)}
    targets = set(re.findall(r"^make ([\w-]+)", text, flags=re.MULTILINE))
    assert targets <= set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def test_citation_and_changelog_know_the_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == bertology_utils.__version__
    assert citation["license"] == PROJECT["project"]["license"]
    assert f"\n## [{bertology_utils.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_workflow_covers_the_supported_pythons():
    matrix = WORKFLOW["jobs"]["bounds"]["strategy"]["matrix"]
    assert f">={matrix['python'][0]}" == PROJECT["project"]["requires-python"]
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{matrix['python'][0].replace('.', '')}"
    assert matrix["dependencies"] == ["lowest", "latest"]
    uv = WORKFLOW["env"]["UV"]
    assert uv in (ROOT / "Makefile").read_text()
