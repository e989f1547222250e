"""Lint, format and types, and what CONTRIBUTING.md, CITATION.cff and the workflow say."""

import importlib.util
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


@pytest.mark.locked
@pytest.mark.parametrize("command", ["ruff check .", "ruff format --check .", "mypy"])
def test_lint_format_and_types_have_no_findings(command):
    tool, *arguments = command.split()
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed; pip install -e '.[test]' brings it")
    call = [sys.executable, "-m", tool, *arguments]
    found = subprocess.run(call, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_hooks_use_the_locked_versions():
    hooks = [hook for repo in HOOKS["repos"] for hook in repo["hooks"]]
    pins = {pin for hook in hooks for pin in hook.get("additional_dependencies", ())}
    assert pins and pins <= set(lock.locked())


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
