"""The package's rooms stand on each other as pyproject.toml says, and importing one stays cheap."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT

# Nothing heavy: a wrong parameter is refused at once, and tables are made without them.
CHEAP = (
    "common.cache",
    "glue.sources",
    "annotation.sources",
    "encoders.sources",
    "framenet.sources",
    "statistics",
    "suite.parameters",
    "suite.colab",
    "suite.pages",
    "drift.table1",
    "patterns.labelled_maps",
    "framenet.official_heatmaps",
)


SECTIONS = ("patterns", "framenet", "drift", "features", "links", "disabling")
HEAVY = {"torch", "transformers", "datasets", "spacy"}


def run(*command):
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )


def lint(tmp_path, contract: str):
    config = tmp_path / "contract.toml"
    config.write_text(contract)
    return run(
        "-c", "from importlinter.cli import lint_imports_command as lint; lint()", "--no-cache", "--config", str(config)
    )


def test_layers_hold_without_exceptions(tmp_path):
    contract = (ROOT / "pyproject.toml").read_text()
    checked = lint(tmp_path, contract)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "ignore_imports" not in contract


def test_a_room_in_the_wrong_place_is_found(tmp_path):
    contract = (ROOT / "pyproject.toml").read_text()
    swapped = contract.replace('    "suite",\n', "").replace('    "glue",\n', '    "glue",\n    "suite",\n')
    checked = lint(tmp_path, swapped)
    assert checked.returncode == 1
    assert "bertology_utils.suite is not allowed to import bertology_utils.disabling" in checked.stdout, checked.stdout


def test_no_module_at_the_top_level():
    assert sorted(path.name for path in (ROOT / "bertology_utils").glob("*.py")) == ["__init__.py", "__main__.py"]


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_has_the_same_inner_shape(section):
    there = {path.stem for path in (ROOT / "bertology_utils" / section).glob("*.py")}
    assert {"measure", "controls", "claims", "findings", "drawing"} <= there


@pytest.mark.parametrize("module", [*CHEAP, *(f"{section}.findings" for section in SECTIONS)])
def test_cheap_to_import(module):
    code = f"import sys, bertology_utils.{module}; print({HEAVY} & set(sys.modules) or '')"
    found = run("-c", code)
    assert found.returncode == 0 and not found.stdout.strip(), found.stderr or f"{module} imports {found.stdout}"
