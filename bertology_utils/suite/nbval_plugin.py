"""A pytest plugin over nbval: ``pytest -p bertology_utils.suite.nbval_plugin --nbval notebooks``.

nbval executes the cells; their outputs are compared by
:mod:`bertology_utils.regression.outputs`. Behind each notebook's cells comes
one more test: the numbers that this run wrote against the committed ones.
"""

import json
import os
import re
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from nbval.plugin import IPyNbCell, IPyNbFile

from ..common.progress import LOG_VARIABLE
from ..regression.numbers import differences, read_results
from ..regression.outputs import cell_differences, unfit
from .results import OUTPUT_VARIABLE, RESULTS, project_root
from .work import machine

SHOWN = 10  # differences of one notebook's results that are told
_collect, _setup = IPyNbFile.collect, IPyNbFile.setup


def pytest_configure(config) -> None:
    """Put the functions below into nbval's classes, which name each other and so cannot be subclassed."""
    IPyNbCell.compare_outputs = compare_outputs
    IPyNbFile.collect, IPyNbFile.setup = collect, setup


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers(config) -> int:
    """What ``-n auto`` means: a process for each core, as far as memory reaches."""
    return min(machine.cores(), machine.fitting(machine.KERNEL))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Notebooks that look at most models begin, as in the runner, so that at the end no process is left alone with one."""
    names = {item.path.stem for item in items if isinstance(item.parent, IPyNbFile)}
    if names:
        from .parameters import resolve  # slow to import, and unit tests do not need it
        from .work.needs import needs_of

        models = {name: len(needs_of(name, resolve())) for name in names}
        cells = Counter(item.path.stem for item in items)
        items.sort(key=lambda item: (-models.get(item.path.stem, 0), -cells[item.path.stem], item.path))


def compare_outputs(self: IPyNbCell, test, ref, skip_compare=None) -> bool:
    """True if a cell's new outputs say what the committed ones say; nbval's own signature."""
    place = f"{self.path.name}, In [{self.cell.execution_count}] (code cell {self.cell_num + 1})"
    self.comparison_traceback = [f"{place}, {found}" for found in cell_differences(ref, test)]
    return not self.comparison_traceback


def collect(self: IPyNbFile):
    """The tests of one notebook; refuses one that cannot be compared, in words."""
    try:
        problem = unfit(json.loads(self.path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError) as error:
        problem = f"it is no notebook ({type(error).__name__}: {error})"
    if problem:
        raise self.CollectError(f"{self.path.name}: {problem}. `make notebooks` executes and stores it anew")
    yield from _collect(self)
    yield Results.from_parent(self, name=RESULTS)


def setup(self: IPyNbFile) -> None:
    """Start the kernel; what it writes goes to a folder of this test run's own, if none is given."""
    self.output = Path(os.environ.get(OUTPUT_VARIABLE) or tempfile.mkdtemp(prefix="notebooks-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OUTPUT_VARIABLE, str(self.output))
        patch.setenv(LOG_VARIABLE, str(progress(self)))
        patch.setenv("OMP_NUM_THREADS", "1")  # as in the runner, so that digits do not hang on the number of cores
        self.output.mkdir(parents=True, exist_ok=True)
        progress(self).unlink(missing_ok=True)
        _setup(self)


def progress(self: IPyNbFile) -> Path:
    """What the notebook's kernel says of its progress."""
    return self.output / f"{self.path.stem}.log"


def trainings_in(log: Path) -> list[str]:
    """The trainings that a kernel made itself, instead of leaving them to the plan's workers."""
    said = log.read_text(encoding="utf-8") if log.exists() else ""
    return list(dict.fromkeys(re.findall(r"^(.+): step \d+ of \d+, loss", said, flags=re.MULTILINE)))


class Results(pytest.Item):
    """The results.json that the cells wrote, against the committed one."""

    def runtest(self) -> None:
        """Compare; a notebook that writes no results.json has no committed one either.

        Raises:
            AssertionError: numbers differ, or the notebook trained what its section does not declare.
        """
        name = self.path.stem
        unplanned = trainings_in(progress(self.parent))
        if unplanned:
            raise AssertionError(f"{name} trains {', '.join(unplanned)}, which its section's needs.py does not name")
        committed = project_root() / "figures" / name / RESULTS
        assert isinstance(self.parent, IPyNbFile)  # see `collect`
        fresh = self.parent.output / name / RESULTS
        if not committed.exists() and not fresh.exists():
            pytest.skip(f"{name} writes no {RESULTS}")
        found = differences(read_results(committed), read_results(fresh))
        if found:
            lines = [f"{name}/{RESULTS}: {len(found)} values differ", *map(str, found[:SHOWN])]
            raise AssertionError("\n  ".join(lines))

    def repr_failure(self, excinfo, style=None) -> str:
        """The message alone: the place in this file says nothing."""
        return str(excinfo.value)

    def reportinfo(self):
        """Where it stands, for pytest's lists."""
        return self.path, 0, f"{self.path.name}::{RESULTS}"
