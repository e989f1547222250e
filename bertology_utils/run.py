"""Notebooks executed, several at once: their progress on the terminal, their results published whole or not at all."""

from __future__ import annotations

import html
import json
import logging
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .cache import CACHE_VARIABLE, cache_folder, key_digest, lock_beside, write_atomically
from .common import LOG_VARIABLE, environment, is_full
from .compare import folder_differences, notebook_differences
from .notebooks import Notebook, notebook_text, seen_from
from .record import OUTPUT_VARIABLE, project_root
from .workers import in_words, work

STAGING = ".staging-"
CELL_LIMIT = (
    12 * 3600
)  # seconds: far above the longest cell that was measured (trainings on a CPU, an hour)


@dataclass(frozen=True)
class Outcome:
    """Outcome of one notebook's run.

    Attributes:
        notebook: which.
        seconds: wall time.
        error: what went wrong, in a line, or None.
        executed: the executed notebook, also of a failed run; None if it was not begun.
        changes: what differs from the earlier figures and results by more than rounding, a line for
            each file.
    """

    notebook: Notebook
    seconds: float
    error: str | None
    executed: Path | None
    changes: tuple[str, ...] = ()


def run_notebooks(
    notebooks: Sequence[Notebook],
    values: dict[str, object],
    output: Path,
    figures: Path,
    cell_limit: float,
    jobs: int,
) -> Iterator[Outcome]:
    """Outcomes of :func:`run_notebook` of each, as they end; several at once where ``jobs`` is above 1."""
    run_one = partial(
        run_notebook, values=values, output=output, figures=figures, cell_limit=cell_limit
    )
    with closing(work(run_one, notebooks, min(jobs, len(notebooks)) or 1)) as ended:
        for notebook, outcome in ended:
            died = "a process that ran notebooks died; a common cause is too little memory: try fewer --jobs"
            yield outcome or Outcome(notebook, 0, died, None)


def run_notebook(
    notebook: Notebook,
    values: dict[str, object],
    output: Path,
    figures: Path,
    cell_limit: float = CELL_LIMIT,
) -> Outcome:
    """Execute one notebook and write its page; publish its figures and results if, and only if, it succeeds.

    Args:
        notebook: which.
        values: checked parameters; those that it does not declare are left out.
        output: folder for the executed notebook.
        figures: folder in which the notebook's own folder of figures and results is replaced.
        cell_limit: seconds that one cell may take; 0 for any time.

    Raises:
        OSError: nothing can be written, for example because the disk is full.
    """
    print(f"{notebook.name}: {notebook.title}", file=sys.stderr, flush=True)
    start, changes = time.monotonic(), []
    output.mkdir(parents=True, exist_ok=True)
    figures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=STAGING, dir=figures) as folder:
        staging = Path(folder)
        executed = staging / notebook.path.name
        of_kernel = {OUTPUT_VARIABLE: folder, LOG_VARIABLE: str(staging / "progress")}
        of_kernel[CACHE_VARIABLE] = str(
            cache_folder().resolve()
        )  # the kernel works in another folder
        of_kernel["PYDEVD_DISABLE_FILE_VALIDATION"] = (
            "1"  # or the debugger of an old ipykernel warns at every start
        )
        # One thread, however many cores there are: sums of floats depend on it in their last
        # digits.
        of_kernel |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        with environment(of_kernel), _progress_shown(notebook.number, staging / "progress"):
            error = execute(notebook, notebook.declared(values), executed, cell_limit)
        if not executed.exists():
            executed.write_bytes(notebook.path.read_bytes())
        kept = output / (notebook.path.name if error is None else f"failed_{notebook.path.name}")
        content = seen_from(kept.parent, _without_traces(executed), notebook.declared(values))
        write_atomically(kept, notebook_text(content).encode())
        if error is None:
            for failed in output.glob(f"failed_{notebook.name}.*"):
                failed.unlink()
            changes = publish(staging / notebook.name, figures / notebook.name)
    write_page(kept)
    return Outcome(notebook, time.monotonic() - start, error, kept, tuple(changes))


def execute(
    notebook: Notebook, own: dict[str, object], executed: Path, cell_limit: float
) -> str | None:
    """Execute a notebook with its own parameters into ``executed``; returns what went wrong, in a line, or None."""
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel
    from jupyter_client.manager import AsyncKernelManager
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    class QuietKernel(AsyncKernelManager):
        """A kernel that keeps the terminal free of what is no cell's output (notices, tracebacks of zmq)."""

        async def start_kernel(self, **options):
            with open(os.devnull, "wb") as nowhere:
                await super().start_kernel(**options, stdout=nowhere, stderr=nowhere)

    # It warns of parameters whose comments have colons; its errors are raised, too, and put into
    # words below.
    logging.getLogger("papermill").setLevel(logging.CRITICAL)
    try:
        papermill.execute_notebook(
            notebook.path,
            executed,
            own,
            cwd=notebook.path.parent,
            kernel_name="python3",
            progress_bar=False,
            log_output=False,
            execution_timeout=cell_limit or None,
            kernel_manager_class=QuietKernel,
        )
    except papermill.PapermillExecutionError as failure:
        inside = Exception(
            failure.evalue
        )  # the kernel's error; papermill's own text is its traceback
        what = in_words(inside) if is_full(inside) else f"{failure.ename}: {failure.evalue}"
        return f"cell {failure.exec_count}: {what}"
    except CellTimeoutError:
        return f"a cell took longer than {cell_limit / 60:g} minutes, the limit; --cell-limit MINUTES changes it, 0 lifts it"
    except DeadKernelError:
        return "the kernel died; a common cause is too little memory"
    except (NoSuchKernel, RuntimeError) as failure:
        return f"the kernel did not start: {failure}; python -m ipykernel install --sys-prefix makes one"
    except OSError as failure:
        executed.unlink(missing_ok=True)  # half-written
        return in_words(failure)
    except (
        BaseException
    ):  # Ctrl-C or SIGTERM, which end the kernel, too: that its client misses it is no news
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        raise
    return None


def _without_traces(path: Path) -> dict:
    """A notebook without papermill's metadata and the clock times of cells, which hold paths of this machine."""
    content = json.loads(path.read_text(encoding="utf-8"))
    for part in (content, *content["cells"]):
        for name in ("papermill", "execution"):
            part["metadata"].pop(name, None)
    return content


def keep_in_place(outcome: Outcome) -> None:
    """Store an executed notebook as the committed one.

    One whose outputs differ from the committed ones by rounding only leaves them as they are.
    """
    assert outcome.executed is not None, "only what was run is kept"
    path = outcome.notebook.path
    content, committed = (
        json.loads(one.read_text(encoding="utf-8")) for one in (outcome.executed, path)
    )
    for cell, own in zip(content["cells"], committed["cells"], strict=True):
        cell["source"] = own["source"]  # links as they are seen from here
    if outcome.changes or notebook_differences(committed, content):
        write_atomically(path, notebook_text(content).encode())


@contextmanager
def _progress_shown(number: str, log: Path) -> Iterator[None]:
    """Copy the kernel's progress lines to the terminal as they come."""
    log.touch()
    finished = threading.Event()

    def copy() -> None:
        with log.open(encoding="utf-8") as lines:
            ended = False
            while not ended:
                ended = finished.wait(0.5)  # before reading, so that the last lines are not lost
                for line in lines:
                    print(f"  {number}: {line.rstrip()}", file=sys.stderr, flush=True)

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def publish(new: Path, old: Path) -> list[str]:
    """Put a run's folder of figures and results in the place of an earlier run's, or leave that as it was if this fails.

    Args:
        new: folder of a finished run; it is moved.
        old: the earlier run's folder, if any. Its files that differ from new ones by rounding only
            take their place, so that version control shows what really changed.

    Returns:
        What changed, a line for each file; empty if nothing did, or if there was nothing before.
    """
    if not new.is_dir():  # the notebook writes nothing
        return []
    changes = _keep_what_is_the_same(new, old) if old.is_dir() else []
    put_in_place(new, old)
    return changes


def put_in_place(new: Path, old: Path) -> None:
    """Move a folder to another's place, or leave that one as it was if this fails."""
    aside = new.with_name(f"{new.name}.before")
    if old.exists():
        os.replace(old, aside)
    try:
        os.replace(new, old)
    except OSError:
        if aside.exists():
            os.replace(aside, old)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _keep_what_is_the_same(new: Path, old: Path) -> list[str]:
    reasons = folder_differences(old, new)
    for file in new.iterdir():
        if file.stem not in reasons:
            shutil.copy2(old / file.name, file)
    return [f"{name}: {reason}" for name, reason in sorted(reasons.items())]


def output_folder(values: dict[str, object]) -> Path:
    """Where a run's executed notebooks and report go: in ``runs/``, named by what differs from the default."""
    parts = [str(values.get("profile", "embedded"))]
    parts += [
        f"{name}-{re.sub(r'[^A-Za-z0-9.]+', '_', str(values[name]))}"
        for name in values
        if name != "profile"
    ]
    unique = (
        f"+{key_digest(values)[:8]}" if values else ""
    )  # two settings may look alike in a folder's name
    return project_root() / "runs" / ("+".join(parts)[:100] + unique)


@contextmanager
def only_run(output: Path, figures: Path) -> Iterator[None]:
    """Hold the folders of a run for this process, and clear away what killed runs left in them.

    Raises:
        BlockingIOError: another run is writing there.
    """
    from filelock import Timeout

    output.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        of_figures = key_digest({"figures": str(figures.resolve())})[:8]
        for folder, name in ((output, output.name), (figures, f"figures-{of_figures}")):
            lock = lock_beside(
                output.with_name(f".{name}.lock"), timeout=0
            )  # the system frees it when the process ends
            try:
                held.enter_context(lock)
            except Timeout:
                what = f"another run is writing to {folder}; wait until it ends, or choose other settings"
                raise BlockingIOError(what) from None
        _clear(output, figures)  # of no living run: that would hold the locks
        try:
            yield
        finally:
            _clear(output, figures)  # of this run's workers, if they were killed with it


def _clear(output: Path, figures: Path) -> None:
    """Remove staging folders; figures that were set aside in one return if nothing has taken their place."""
    for staging in figures.glob(f"{STAGING}*"):
        for aside in staging.glob("*.before"):
            if not (figures / aside.stem).exists():
                os.replace(aside, figures / aside.stem)
        shutil.rmtree(staging)
    for half in output.glob(".*-*"):  # of write_atomically
        half.unlink()


def write_page(notebook: Path) -> None:
    """Write an executed notebook as an HTML page beside it, with its pictures inside."""
    from nbconvert import HTMLExporter

    page = HTMLExporter(
        embed_images=True, template_name="classic"
    )  # unlike its default, it shows the "alt" of a PNG
    body, _ = page.from_filename(str(notebook))
    write_atomically(notebook.with_suffix(".html"), body.encode())


def write_report(outcomes: Sequence[Outcome], output: Path) -> Path:
    """Write the page that leads to the executed notebooks' own, with times and what failed; returns its path."""
    page = '<!doctype html><meta charset="utf-8"><title>Report of a run</title>\n'
    for outcome in sorted(outcomes, key=lambda outcome: outcome.notebook.order):
        title = html.escape(outcome.notebook.title)
        link = f'<a href="{outcome.executed.stem}.html">{title}</a>' if outcome.executed else title
        page += f"<p>{link}: {html.escape(f'failed, {outcome.error}' if outcome.error else 'done')}, {outcome.seconds:.0f} s</p>\n"
    path = output / "report.html"
    write_atomically(path, page.encode())
    return path
