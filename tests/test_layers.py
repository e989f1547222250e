"""The package's rooms stand on each other as pyproject.toml says, and importing one stays cheap."""

import pytest
from conftest import ROOT, python

# Nothing heavy: a wrong parameter is refused at once, and tables are made without them.
CHEAP = (
    "common cache hub glue models settings run annotation.annotators statistics colab record"
).split()
HEAVY = {"torch", "transformers", "datasets", "spacy"}
# torch is most of what is left here; the rest comes when a model or a data set is loaded.
MEASURING = "lab framenet.measure disabling.sweep drift.measure finetune".split()
LATE = {"transformers", "datasets", "pandas", "accelerate", "sklearn", "spacy", "torch._dynamo"}


def lint(tmp_path, contract: str):
    config = tmp_path / "contract.toml"
    config.write_text(contract)
    code = "from importlinter.cli import lint_imports_command as lint; lint()"
    return python(code, "--no-cache", "--config", config)


def test_layers_hold_without_exceptions(tmp_path):
    contract = (ROOT / "pyproject.toml").read_text()
    checked = lint(tmp_path, contract)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "ignore_imports" not in contract


def test_a_room_in_the_wrong_place_is_found(tmp_path):
    contract = (ROOT / "pyproject.toml").read_text()
    swapped = contract.replace("norms | ", "").replace(
        '    "settings",\n', '    "settings",\n    "norms",\n'
    )
    checked = lint(tmp_path, swapped)
    assert checked.returncode == 1
    assert (
        "bertology_utils.norms is not allowed to import bertology_utils.features" in checked.stdout
    ), checked.stdout


@pytest.mark.parametrize(
    "module, late", [*((one, HEAVY) for one in CHEAP), *((one, LATE) for one in MEASURING)]
)
def test_cheap_to_import(module, late):
    code = f"import sys, bertology_utils.{module}; print({late} & set(sys.modules) or '')"
    found = python(code)
    assert found.returncode == 0 and not found.stdout.strip(), (
        found.stderr or f"{module} imports {found.stdout}"
    )
