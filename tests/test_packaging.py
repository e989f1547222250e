"""What an installation from the checkout would hold: every package and every data file."""

import tomllib

from conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def test_every_package_is_found():
    assert PROJECT["packages"]["find"] == {"include": ["bertology_utils*"], "namespaces": False}
    folders = {path.parent for path in (ROOT / "bertology_utils").rglob("*.py")}
    assert not [folder for folder in folders if not (folder / "__init__.py").is_file()]  # these would be left out


def test_every_data_file_is_named():
    named = {
        path
        for package, names in PROJECT["package-data"].items()
        for name in names
        for path in (ROOT / package.replace(".", "/")).glob(name)
    }
    there = {
        path
        for path in (ROOT / "bertology_utils").rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc", ".md")
    }
    assert named == there
