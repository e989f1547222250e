"""Run notebooks: strict before, visible during, all or nothing after (around papermill)."""

import errno
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from ..common.cache import CACHE_VARIABLE, cache_folder, digest, write_atomically
from ..common.progress import LOG_VARIABLE
from ..regression.outputs import notebook_differences
from .colab import repository_address, stamp
from .kernel import PeakMemory, quiet_kernel
from .notebooks import Notebook
from .publish import publish
from .results import OUTPUT_VARIABLE, RESULTS, project_root

STAGING = ".staging-"
CELL_LIMIT = 12 * 3600  # seconds: far above the longest cell that was measured (trainings on a CPU, an hour)


@dataclass(frozen=True)
class Outcome:
    """How the run of one notebook ended.

    Attributes:
        notebook: which.
        seconds: wall time.
        memory: peak memory of its kernel, in bytes.
        error: what went wrong, in a line, or None.
        executed: the executed notebook, also of a failed run.
        changes: what differs from the earlier figures and results by more than rounding, a line for each file.
    """

    notebook: Notebook
    seconds: float
    memory: int
    error: str | None
    executed: Path
    changes: tuple[str, ...] = ()


def output_folder(values: dict[str, object]) -> Path:
    """Where a run's executed notebooks and report go: in ``runs/``, named by what differs from the default."""
    parts = [str(values.get("profile", "embedded"))]
    parts += [f"{name}-{re.sub(r'[^A-Za-z0-9.]+', '_', str(values[name]))}" for name in values if name != "profile"]
    unique = f"+{digest(values)[:8]}" if values else ""  # two settings may look alike in a folder's name
    return project_root() / "runs" / ("+".join(parts)[:100] + unique)


@contextmanager
def only_run(output: Path, figures: Path) -> Iterator[None]:
    """Hold the folders of a run for this process, and clear away what killed runs left in them.

    Raises:
        BlockingIOError: another run is writing there.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(output.with_name(f".{output.name}.lock"), timeout=0)  # the system frees it when the process ends
    try:
        lock.acquire()
    except Timeout:
        raise BlockingIOError(f"another run is writing to {output}; wait until it ends, or choose other settings") from None
    try:
        for staging in figures.glob(f"{STAGING}*"):  # of no living run: that would hold the lock
            _clear(staging, figures)
        for half in output.glob(".*-*"):  # of write_atomically
            half.unlink()
        yield
    finally:
        lock.release()


def _clear(staging: Path, figures: Path) -> None:
    """Remove a staging folder; figures that were set aside in it return if nothing has taken their place."""
    for aside in staging.glob("*.before"):
        if not (figures / aside.stem).exists():
            os.replace(aside, figures / aside.stem)
    shutil.rmtree(staging)


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
    own = {name: value for name, value in values.items() if name in notebook.parameters}
    start = time.monotonic()
    changes: list[str] = []
    peak = PeakMemory([])
    with tempfile.TemporaryDirectory(prefix=STAGING, dir=figures) as staging:
        executed = Path(staging) / notebook.path.name
        with _environment(staging), _progress_shown(Path(staging) / "progress", peak.look):
            error = _execute(notebook, own, executed, peak.processes, cell_limit)
        if not executed.exists():
            executed.write_bytes(notebook.path.read_bytes())
        _without_traces(executed)
        kept = output / (notebook.path.name if error is None else f"failed_{notebook.path.name}")
        write_atomically(kept, executed.read_bytes())
        if error is None:
            (output / f"failed_{notebook.path.name}").unlink(missing_ok=True)
            changes = publish(Path(staging) / notebook.name, figures / notebook.name, RESULTS)
    return Outcome(notebook, time.monotonic() - start, peak.bytes, error, kept, tuple(changes))


def _execute(
    notebook: Notebook, own: dict[str, object], executed: Path, started: list[int], cell_limit: float
) -> str | None:
    """Execute a notebook into ``executed``; returns what went wrong, in a line, or None."""
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    try:
        papermill.execute_notebook(
            notebook.path,
            executed,
            own,
            cwd=notebook.path.parent,
            kernel_name="python3",
            progress_bar=sys.stderr.isatty(),
            log_output=False,
            execution_timeout=cell_limit or None,
            kernel_manager_class=quiet_kernel(executed.with_name("kernel.log"), started),
        )
    except papermill.PapermillExecutionError as failure:
        return f"cell {failure.exec_count}: {failure.ename}: {failure.evalue}"
    except CellTimeoutError:
        limit = f"{cell_limit / 60:g} minutes, the limit; --cell-limit MINUTES changes it, 0 lifts it"
        return f"cell {_cells_started(executed)} took longer than {limit}"
    except DeadKernelError:
        return "the kernel died; a common cause is too little memory"
    except (NoSuchKernel, RuntimeError) as failure:
        return f"the kernel did not start: {failure}; python -m ipykernel install --sys-prefix makes one"
    except OSError as failure:
        executed.unlink(missing_ok=True)  # half-written
        return in_words(failure)
    return None


def _cells_started(executed: Path) -> int:
    cells = json.loads(executed.read_text(encoding="utf-8"))["cells"]
    return sum(cell["cell_type"] == "code" and bool(cell["metadata"]["papermill"]["start_time"]) for cell in cells)


def in_words(error: OSError) -> str:
    """What an error of the operating system means for a run."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full ({error.filename or 'nothing more can be written'}); free some space and run again"
    return f"{type(error).__name__}: {error}"


def keep_in_place(outcome: Outcome) -> None:
    """Store an executed notebook as the committed one, with the repository's address in its badge and set-up cell.

    One whose outputs differ from the committed ones by rounding only leaves them as they are.
    """
    content = json.loads(outcome.executed.read_text(encoding="utf-8"))
    stamp(content, repository_address(), outcome.notebook.path.name)
    committed = json.loads(outcome.notebook.path.read_text(encoding="utf-8"))
    if not outcome.changes and not notebook_differences(committed, content):
        return
    write_atomically(outcome.notebook.path, _as_text(content).encode())


@contextmanager
def _environment(staging: str) -> Iterator[None]:
    changes = {OUTPUT_VARIABLE: staging, LOG_VARIABLE: str(Path(staging) / "progress")}
    changes[CACHE_VARIABLE] = str(cache_folder().resolve())  # the kernel works in another folder
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def _progress_shown(log: Path, look: Callable[[], None]) -> Iterator[None]:
    """Copy the kernel's progress lines to the terminal as they come, and ``look`` twice a second."""
    log.touch()
    finished = threading.Event()

    def copy() -> None:
        with log.open(encoding="utf-8") as lines:
            while True:
                ended = finished.wait(0.5)  # before reading, so that the last lines are not lost
                for line in lines:
                    print(f"  {line.rstrip()}", file=sys.stderr, flush=True)
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


def _without_traces(path: Path) -> None:
    """Drop papermill's metadata and the clock times of cells: they hold paths of this machine."""
    content = json.loads(path.read_text(encoding="utf-8"))
    content["metadata"].pop("papermill", None)
    for cell in content["cells"]:
        for name in ("papermill", "execution"):
            cell["metadata"].pop(name, None)
    path.write_text(_as_text(content), encoding="utf-8")


def _as_text(notebook: dict) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
