"""One notebook executed by papermill: its errors in words, the result without traces of this machine."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from ..common.disk import is_full
from .kernel import quiet_kernel
from .notebooks import Notebook


def execute(notebook: Notebook, own: dict[str, object], executed: Path, started: list[int], cell_limit: float) -> str | None:
    """Execute a notebook into ``executed``; returns what went wrong, in a line, or None."""
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    # It warns of parameters whose comments have colons; its errors are raised, too, and put into words below.
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
            kernel_manager_class=quiet_kernel(executed.with_name("kernel.log"), started),
        )
    except papermill.PapermillExecutionError as failure:
        inside = Exception(failure.evalue)  # the kernel's error; papermill's own text is its traceback
        what = in_words(inside) if is_full(inside) else f"{failure.ename}: {failure.evalue}"
        return f"cell {failure.exec_count}: {what}"
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
    except BaseException:  # Ctrl-C or SIGTERM, which end the kernel, too: that its client misses it is no news
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        raise
    return None


def _cells_started(executed: Path) -> int:
    cells = json.loads(executed.read_text(encoding="utf-8"))["cells"]
    return sum(cell["cell_type"] == "code" and bool(cell["metadata"]["papermill"]["start_time"]) for cell in cells)


def in_words(error: Exception) -> str:
    """What an error, of the operating system say, means for a run."""
    if is_full(error):
        where = getattr(error, "filename", None) or "nothing more can be written"
        return f"the disk is full ({where}); free some space and run again, which goes on from what is finished"
    worded = isinstance(error, (ConnectionError, RuntimeError)) or (isinstance(error, OSError) and error.errno is None)
    return str(error) if worded else f"{type(error).__name__}: {error}"


def without_traces(path: Path) -> None:
    """Drop papermill's metadata and the clock times of cells: they hold paths of this machine."""
    content = json.loads(path.read_text(encoding="utf-8"))
    content["metadata"].pop("papermill", None)
    for cell in content["cells"]:
        for name in ("papermill", "execution"):
            cell["metadata"].pop(name, None)
    path.write_text(as_text(content), encoding="utf-8")


def as_text(notebook: dict) -> str:
    """A notebook's content as Jupyter writes it."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
