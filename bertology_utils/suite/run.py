"""Run notebooks: strict before, visible during, all or nothing after (around papermill)."""

import json
import os
import re
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..common import one_of
from ..common.cache import CACHE_VARIABLE, cache_folder, digest, write_atomically
from ..common.progress import LOG_VARIABLE
from ..glue.sources import parse_annotation
from ..regression.outputs import notebook_differences
from .colab import repository_address, stamp
from .notebooks import Notebook
from .parameters import convert, resolve
from .publish import publish
from .results import OUTPUT_VARIABLE, RESULTS, project_root


@dataclass(frozen=True)
class Outcome:
    """How the run of one notebook ended.

    Attributes:
        notebook: which.
        seconds: wall time.
        memory: peak memory of the kernels so far, in bytes.
        error: the failing cell's error, or None.
        executed: the executed notebook, also of a failed run.
        changes: what differs from the earlier figures and results by more than rounding, a line for each file.
    """

    notebook: Notebook
    seconds: float
    memory: int
    error: str | None
    executed: Path
    changes: tuple[str, ...] = ()


def check_parameters(notebooks: list[Notebook], texts: dict[str, str]) -> dict[str, object]:
    """Values for the notebooks' parameters, checked as the notebooks themselves will check them.

    Args:
        notebooks: those that will run; each parameter must be declared by one at least.
        texts: name → text, from the command line.

    Returns:
        The values that differ from the notebooks' own, paths made absolute.

    Raises:
        ValueError, TypeError, FileNotFoundError: naming what is wrong and what is allowed.
    """
    defaults = {name: value for notebook in notebooks for name, value in notebook.parameters.items()}
    values = {one_of("parameter", name, defaults): convert(name, text) for name, text in texts.items()}
    values = {name: _absolute(name, value) for name, value in values.items() if value != defaults[name]}
    for notebook in notebooks:
        own = {name: value for name, value in values.items() if name in notebook.parameters}
        settings = resolve(**(notebook.parameters | own))
        if "annotation" in notebook.parameters:  # the profile's may be a pipeline that is not installed
            parse_annotation(settings.annotation)
    return values


def _absolute(name: str, value: object) -> object:
    """Paths as seen from here: the kernel works in another folder."""
    kind, _, path = str(value).partition(":")
    if name in ("data", "framenet") and kind in ("folder", "zip") and path:
        return f"{kind}:{Path(path).expanduser().resolve()}"
    if name == "annotation" and path and Path(path).expanduser().exists():  # a pipeline may be a name, too
        return f"{kind}:{Path(path).expanduser().resolve()}"
    if name == "model" and Path(str(value)).expanduser().is_dir():
        return str(Path(str(value)).expanduser().resolve())
    return value


def output_folder(values: dict[str, object]) -> Path:
    """Where a run's executed notebooks and report go: in ``runs/``, named by what differs from the default."""
    parts = [str(values.get("profile", "embedded"))]
    parts += [f"{name}-{re.sub(r'[^A-Za-z0-9.]+', '_', str(values[name]))}" for name in values if name != "profile"]
    unique = f"+{digest(values)[:8]}" if values else ""  # two settings may look alike in a folder's name
    return project_root() / "runs" / ("+".join(parts)[:100] + unique)


def run_notebook(notebook: Notebook, values: dict[str, object], output: Path, figures: Path) -> Outcome:
    """Execute one notebook; publish its figures and results if, and only if, it succeeds.

    Args:
        notebook: which.
        values: checked parameters; those that it does not declare are left out.
        output: folder for the executed notebook.
        figures: folder in which the notebook's own folder of figures and results is replaced.
    """
    import papermill
    from nbclient.exceptions import DeadKernelError

    output.mkdir(parents=True, exist_ok=True)
    figures.mkdir(parents=True, exist_ok=True)
    own = {name: value for name, value in values.items() if name in notebook.parameters}
    start = time.monotonic()
    error, changes = None, []
    with tempfile.TemporaryDirectory(prefix=".staging-", dir=figures) as staging:
        executed = Path(staging) / notebook.path.name
        with _environment(staging), _progress_shown(Path(staging) / "progress"):
            try:
                papermill.execute_notebook(
                    notebook.path, executed, own, cwd=notebook.path.parent, kernel_name="python3",
                    progress_bar=sys.stderr.isatty(), log_output=False,
                )
            except papermill.PapermillExecutionError as failure:
                error = f"cell {failure.exec_count}: {failure.ename}: {failure.evalue}"
            except DeadKernelError:
                error = "the kernel died; a common cause is too little memory"
        if not executed.exists():
            executed.write_bytes(notebook.path.read_bytes())
        _without_traces(executed)
        kept = output / (notebook.path.name if error is None else f"failed_{notebook.path.name}")
        write_atomically(kept, executed.read_bytes())
        if error is None:
            (output / f"failed_{notebook.path.name}").unlink(missing_ok=True)
            changes = publish(Path(staging) / notebook.name, figures / notebook.name, RESULTS)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Outcome(notebook, time.monotonic() - start, memory, error, kept, tuple(changes))


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
def _progress_shown(log: Path) -> Iterator[None]:
    """Copy the kernel's progress lines to the terminal as they come."""
    log.touch()
    finished = threading.Event()

    def copy() -> None:
        with log.open(encoding="utf-8") as lines:
            while True:
                ended = finished.wait(0.5)  # before reading, so that the last lines are not lost
                for line in lines:
                    print(f"  {line.rstrip()}", file=sys.stderr, flush=True)
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
