"""What ``import bertology_utils`` offers: lazily, and enough for a model of one's own."""

import re

import pytest
from conftest import ROOT, python

import bertology_utils
from bertology_utils import load_classifier


def test_every_public_name_is_there_and_no_other():
    assert 10 <= len(bertology_utils.__all__) <= 15
    for name in bertology_utils.__all__:
        assert callable(getattr(bertology_utils, name)), name
    with pytest.raises(AttributeError, match="no attribute 'sweeping'; it offers: load_encoder, "):
        _ = bertology_utils.sweeping


def test_the_ten_lines_of_the_readme_run_on_a_model_of_ones_own(tiny_bert, tmp_path, capsys):
    model = load_classifier(str(tiny_bert), "rte")
    for parameter in model.parameters():
        parameter.data += 0.05
    model.save_pretrained(tmp_path)
    bertology_utils.load_tokenizer(str(tiny_bert)).save_pretrained(tmp_path)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(
        r"<!-- ten lines -->\n```python\n(.*?)```\n<!-- end -->", readme, re.DOTALL
    )
    assert sum(bool(line) for line in code.splitlines()) == 10
    names = {"MINE": str(tmp_path), "BASE": str(tiny_bert)}
    exec(code.replace("[(6, 2)]", "[(0, 1), (2, 3)]"), names)  # of three layers
    printed = capsys.readouterr().out
    assert printed.count("[") == 2 * 3 + 4 + 1, "two tables of outputs, heads by layer, layers"
    similarity = names["map_similarity"](names["tuned"], names["before"], names["batches"])
    assert similarity.shape == (2, 3, 4) and (similarity < 1 - 1e-6).any()


# Rooms stand on each other as pyproject.toml says, and importing one stays cheap.

# Nothing heavy: a wrong parameter is refused at once, and tables are made without them.
CHEAP = "common cache glue settings run annotation colab"
HEAVY = {"torch", "transformers", "datasets", "spacy"}
# torch is most of what is left here; the rest comes when a model or a data set is loaded.
MEASURING = "models links sweeps finetune"
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
