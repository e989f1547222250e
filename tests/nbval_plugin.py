"""A pytest plugin over nbval: ``python -m pytest -p tests.nbval_plugin --nbval notebooks``.

nbval executes the cells; their outputs are compared by :mod:`bertology_utils.compare`. Behind each
notebook's cells come two more tests: the numbers and the figures that this run wrote against the
committed ones.
"""

import json
import os
import tempfile
from collections import Counter
from pathlib import Path

import joblib
import pytest
from nbval.plugin import IPyNbCell, IPyNbFile

from bertology_utils.compare import cell_differences, folder_differences, unfit
from bertology_utils.record import OUTPUT_VARIABLE, project_root
from bertology_utils.results import RESULTS, moved, read_results
from bertology_utils.workers import KERNEL, free_memory

SHOWN = 10  # differences of one notebook's results that are told
_collect, _setup = IPyNbFile.collect, IPyNbFile.setup


def pytest_configure(config):
    """Put the functions below into nbval's classes, which name each other and so cannot be subclassed."""
    IPyNbCell.compare_outputs = compare_outputs
    IPyNbFile.collect, IPyNbFile.setup = collect, setup


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers(config):
    """What ``-n auto`` means: a process for each core, as far as memory reaches."""
    return max(1, min(joblib.cpu_count(), int(free_memory() // KERNEL)))


def pytest_collection_modifyitems(items):
    """Notebooks run in the runner's order."""
    names = {item.path.stem for item in items if isinstance(item.parent, IPyNbFile)}
    if names:
        from bertology_utils.plan import needs_of, order
        from bertology_utils.settings import (
            resolve,  # slow to import, and unit tests do not need it
        )

        models = {name: len(needs_of(name, resolve())) for name in names}
        cells = Counter(item.path.stem for item in items)
        items.sort(
            key=lambda item: (*order(item.path.stem, models), -cells[item.path.stem], item.path)
        )


def compare_outputs(self, test, ref, skip_compare=None):
    """True if a cell's new outputs say what the committed ones say; nbval's own signature."""
    place = f"{self.path.name}, In [{self.cell.execution_count}] (code cell {self.cell_num + 1})"
    self.comparison_traceback = [f"{place}, {found}" for found in cell_differences(ref, test)]
    return not self.comparison_traceback


def collect(self):
    """The tests of one notebook; refuses one that cannot be compared, in words."""
    try:
        problem = unfit(json.loads(self.path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError) as error:
        problem = f"it is no notebook ({type(error).__name__}: {error})"
    if problem:
        raise self.CollectError(
            f"{self.path.name}: {problem}. `make notebooks` executes and stores it anew"
        )
    yield from _collect(self)
    for kind in (Numbers, Figures):
        yield kind.from_parent(self, name=kind.__name__.lower())


def setup(self):
    """Start the kernel; what it writes goes to a folder of this test run's own, if none is given."""
    from bertology_utils.common import LOG_VARIABLE
    from bertology_utils.finetune import PREPARED

    self.output = Path(os.environ.get(OUTPUT_VARIABLE) or tempfile.mkdtemp(prefix="notebooks-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OUTPUT_VARIABLE, str(self.output))
        patch.setenv(LOG_VARIABLE, os.devnull)
        patch.setenv(PREPARED, "1")
        patch.setenv(
            "OMP_NUM_THREADS", "1"
        )  # as in the runner, so that digits do not hang on the number of cores
        self.output.mkdir(parents=True, exist_ok=True)
        _setup(self)


class Written(pytest.Item):
    """What the cells wrote, against what is committed."""

    def runtest(self):
        """Compare; a notebook that writes nothing has nothing committed either."""
        name = self.path.stem
        old, new = project_root() / "figures" / name, self.parent.output / name
        if not old.exists() and not new.exists():
            pytest.skip(f"{name} writes nothing")
        if missing := next((folder for folder in (old, new) if not folder.exists()), None):
            raise AssertionError(
                f"{name}: there is no folder {'of this run' if missing == new else 'figures/' + name}"
            )
        if found := list(self.differences(old, new)):
            more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
            raise AssertionError(
                "\n  ".join([f"{name}: {len(found)} {self.name} differ", *found[:SHOWN], *more])
            )

    def repr_failure(self, excinfo, style=None):
        """The message alone: the place in this file says nothing."""
        return (
            str(excinfo.value)
            if isinstance(excinfo.value, AssertionError | ValueError)
            else super().repr_failure(excinfo)
        )

    def reportinfo(self):
        """Where it stands, for pytest's lists."""
        return self.path, 0, f"{self.path.name}::{self.name}"


class Numbers(Written):
    """The results.json."""

    def differences(self, old, new):
        """Numbers and verdicts, by the tolerance of each."""
        return moved(read_results(old / RESULTS), read_results(new / RESULTS))


class Figures(Written):
    """The PNG files."""

    def differences(self, old, new):
        """Pictures, by what an eye sees; their numbers are the other test's."""
        return [
            f"{name}: {reason}"
            for name, reason in folder_differences(old, new).items()
            if name != Path(RESULTS).stem
        ]
