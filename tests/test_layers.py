"""The package's rooms stand on each other as pyproject.toml says, and importing one stays cheap."""

import pytest
from conftest import ROOT, python

# Nothing heavy: a wrong parameter is refused at once, and tables are made without them.
CHEAP = "common cache glue models settings studies run annotation colab"
HEAVY = {"torch", "transformers", "datasets", "spacy"}
# torch is most of what is left here; the rest comes when a model or a data set is loaded.
MEASURING = "links sweeps finetune"
LATE = {"transformers", "datasets", "pandas", "accelerate", "sklearn", "spacy", "torch._dynamo"}


def test_layers_hold_without_exceptions():
    contract = ROOT / "pyproject.toml"
    code = "from importlinter.cli import lint_imports_command as lint; lint()"
    checked = python(code, "--no-cache", "--config", contract)
    assert checked.returncode == 0 and "1 kept, 0 broken" in checked.stdout, checked.stdout
    assert "ignore_imports" not in contract.read_text()


@pytest.mark.parametrize(("modules", "late"), [(CHEAP, HEAVY), (MEASURING, LATE)])
def test_cheap_to_import(modules, late):
    found = python(f"""
import importlib, sys
for name in {modules.split()}:
    importlib.import_module("bertology_utils." + name)
    assert not {late} & set(sys.modules), (name, {late} & set(sys.modules))
""")
    assert found.returncode == 0, found.stderr
