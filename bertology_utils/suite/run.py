"""Run notebooks, side by side: visible during, all or nothing after."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..common.cache import CACHE_VARIABLE, cache_folder, write_atomically
from ..common.environment import environment
from ..common.progress import LOG_VARIABLE
from ..regression.numbers import read_results
from ..regression.outputs import notebook_differences
from .address import published
from .execute import as_text, execute, without_traces
from .html_page import page_of, write_page
from .kernel import PeakMemory
from .notebooks import Notebook
from .opening import opened
from .publish import publish
from .results import OUTPUT_VARIABLE, RESULTS, project_root
from .staging import STAGING
from .stamp import stamp
from .work.worker import Session, join

CELL_LIMIT = 12 * 3600  # seconds: far above the longest cell that was measured (trainings on a CPU, an hour)


@dataclass(frozen=True)
class Outcome:
    """How the run of one notebook ended.

    Attributes:
        notebook: which.
        seconds: wall time.
        memory: peak memory of its kernel, in bytes.
        error: what went wrong, in a line, or None.
        executed: the executed notebook, also of a failed run; None if it was not begun.
        changes: what differs from the earlier figures and results by more than rounding, a line for each file.
    """

    notebook: Notebook
    seconds: float
    memory: int
    error: str | None
    executed: Path | None
    changes: tuple[str, ...] = ()

    @property
    def page(self) -> Path | None:
        """The executed notebook as HTML, where :func:`side_by_side` ran it."""
        return self.executed and page_of(self.executed)


def side_by_side(
    notebooks: Sequence[Notebook], values: dict[str, object], output: Path, figures: Path, cell_limit: float, jobs: int
) -> Iterator[Outcome]:
    """:func:`run_notebook` of each, with its page, several at once; outcomes come as they end.

    Args:
        notebooks: which, in the order in which they begin.
        values, output, figures, cell_limit: see :func:`run_notebook`.
        jobs: how many at once.
    """
    arguments = values, output, figures, cell_limit
    if min(jobs, len(notebooks)) == 1:
        for notebook in notebooks:
            yield _run_with_page(notebook, *arguments)
        return
    from joblib import delayed

    from .work.processes import WorkerDiedError, run_in_processes, session_of_run

    left = {notebook.name: notebook for notebook in notebooks}
    figures.mkdir(parents=True, exist_ok=True)
    # Not in the cache: one that cannot be written to may hold all that these notebooks need.
    with tempfile.TemporaryDirectory(prefix=STAGING, dir=figures) as place, session_of_run(place=Path(place)) as session:
        calls = [delayed(_run_in_worker)(session, notebook, *arguments) for notebook in left.values()]
        try:
            for outcome in run_in_processes(calls, jobs):
                del left[outcome.notebook.name]
                yield outcome
        except WorkerDiedError:
            why = "a process that ran notebooks died; a common cause is too little memory: try fewer --jobs"
            yield from (Outcome(notebook, 0, 0, why, None) for notebook in left.values())


def _run_in_worker(session: Session, notebook: Notebook, *arguments) -> Outcome:
    join(session)
    return _run_with_page(notebook, *arguments)


def _run_with_page(notebook: Notebook, *arguments) -> Outcome:
    """The page here, as notebooks end, not one after the other when all have."""
    outcome = run_notebook(notebook, *arguments)
    if outcome.executed is not None:
        write_page(outcome.executed)
    return outcome


def run_notebook(
    notebook: Notebook, values: dict[str, object], output: Path, figures: Path, cell_limit: float = CELL_LIMIT
) -> Outcome:
    """Execute one notebook; publish its figures and results if, and only if, it succeeds.

    Args:
        notebook: which.
        values: checked parameters; those that it does not declare are left out.
        output: folder for the executed notebook.
        figures: folder in which the notebook's own folder of figures and results is replaced.
        cell_limit: seconds that one cell may take; 0 for any time.

    Raises:
        OSError: nothing can be written, for example because the disk is full.
    """
    output.mkdir(parents=True, exist_ok=True)
    figures.mkdir(parents=True, exist_ok=True)
    print(f"{notebook.name}: {notebook.title}", file=sys.stderr, flush=True)
    start = time.monotonic()
    changes: list[str] = []
    peak = PeakMemory([])
    with tempfile.TemporaryDirectory(prefix=STAGING, dir=figures) as staging:
        executed = Path(staging) / notebook.path.name
        with environment(_of_kernel(staging)), _progress_shown(notebook.number, Path(staging) / "progress", peak.look):
            error = execute(notebook, notebook.declared(values), executed, peak.processes, cell_limit)
        if not executed.exists():
            executed.write_bytes(notebook.path.read_bytes())
        without_traces(executed)
        kept = output / (notebook.path.name if error is None else f"failed_{notebook.path.name}")
        write_atomically(kept, executed.read_bytes())
        if error is None:
            for failed in output.glob(f"failed_{notebook.name}.*"):
                failed.unlink()
            changes = publish(Path(staging) / notebook.name, figures / notebook.name, RESULTS)
            _open(kept, figures / notebook.name / RESULTS, os.path.relpath(figures, output))
    return Outcome(notebook, time.monotonic() - start, peak.bytes, error, kept, tuple(changes))


def _open(notebook: Path, results: Path, figures: str) -> None:
    """Write what came out into an executed notebook's first screen."""
    if results.exists():  # some notebooks write none
        content = json.loads(notebook.read_text(encoding="utf-8"))
        try:
            write_atomically(notebook, as_text(opened(content, read_results(results), figures)).encode())
        except ValueError as error:  # the run itself is whole
            print(f"{notebook.name}: its first screen stays as it was: {error}", file=sys.stderr, flush=True)


def keep_in_place(outcome: Outcome) -> None:
    """Store an executed notebook as the committed one, with the project's address in its badge and set-up cell.

    One whose outputs differ from the committed ones by rounding only leaves them as they are.
    """
    assert outcome.executed is not None, "only what was run is kept"
    content = json.loads(outcome.executed.read_text(encoding="utf-8"))
    stamp(content, published(), outcome.notebook.path.name)
    results = project_root() / "figures" / outcome.notebook.name / RESULTS
    if results.exists():
        opened(content, read_results(results), "../figures")
    committed = json.loads(outcome.notebook.path.read_text(encoding="utf-8"))
    same_text = [cell["source"] for cell in committed["cells"]] == [cell["source"] for cell in content["cells"]]
    if same_text and not outcome.changes and not notebook_differences(committed, content):
        return
    write_atomically(outcome.notebook.path, as_text(content).encode())


def _of_kernel(staging: str) -> dict[str, str]:
    """Environment variables of a notebook's kernel."""
    changes = {OUTPUT_VARIABLE: staging, LOG_VARIABLE: str(Path(staging) / "progress")}
    changes[CACHE_VARIABLE] = str(cache_folder().resolve())  # the kernel works in another folder
    # One thread, however many cores there are: sums of floats depend on it in their last digits.
    return changes | dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@contextmanager
def _progress_shown(number: str, log: Path, look: Callable[[], None]) -> Iterator[None]:
    """Copy the kernel's progress lines to the terminal as they come, and ``look`` twice a second."""
    log.touch()
    finished = threading.Event()

    def copy() -> None:
        with log.open(encoding="utf-8") as lines:
            while True:
                ended = finished.wait(0.5)  # before reading, so that the last lines are not lost
                for line in lines:
                    print(f"  {number}: {line.rstrip()}", file=sys.stderr, flush=True)
                look()
                if ended:
                    return

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()
