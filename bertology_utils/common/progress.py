"""How far a long cell has come, without leaving a trace in the executed notebook."""

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
LOG_VARIABLE = "BERTOLOGY_PROGRESS"  # a file that the runner reads while the notebook runs


def track(items: Iterable[T], label: str) -> Iterator[T]:
    """Yield ``items`` and say before each one which it is.

    In a notebook the line is replaced by the next and cleared at the end; under
    the runner it goes to the terminal; in a script to standard error.

    Args:
        items: what is worked through.
        label: what the work is.
    """
    items = list(items)
    for number, item in enumerate(items, start=1):
        note(f"{label}: {number} of {len(items)} ({_name(item)})")
        yield item
    _clear()


def _name(item: object) -> str:
    return item if isinstance(item, str) else str(getattr(item, "title", item))


def note(line: str) -> None:
    """Say one line of progress; see :func:`track`."""
    log = os.environ.get(LOG_VARIABLE)
    if log:
        with open(log, "a", encoding="utf-8") as file:
            file.write(line + "\n")
    elif _in_notebook():
        from IPython.display import clear_output

        clear_output(wait=True)
        print(line)
    else:
        print(line, file=sys.stderr)


def _clear() -> None:
    if _in_notebook() and not os.environ.get(LOG_VARIABLE):
        from IPython.display import clear_output

        clear_output()


def _in_notebook() -> bool:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return type(shell).__name__ == "ZMQInteractiveShell"
