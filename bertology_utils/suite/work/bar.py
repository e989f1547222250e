"""One progress bar over a whole plan, with the time left; in a file, a line for each item."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from types import TracebackType

from tqdm import tqdm

from .plan import Item
from .worker import Made, Session

_FORMAT = "{desc} {percentage:3.0f} %|{bar}| {elapsed} so far, {remaining} left"


class Bar:
    """A context that shows how far a plan has come; items count by their estimated time.

    Args:
        items: of the plan.
        session: whose workers say how far they are.
    """

    def __init__(self, items: Sequence[Item], session: Session):
        self._items, self._session = items, session
        self._done: set[int] = set()
        total = sum(item.seconds for item in items)
        # disable=None: no bar where standard error is a file
        self._bar = tqdm(total=total, bar_format=_FORMAT, disable=None, file=sys.stderr, desc=self._head(), leave=False)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Bar:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        self._bar.close()

    def finish(self, made: Made) -> None:
        """Take notice of an item that has ended."""
        self._done.add(made.number)
        how = f"failed, {made.problem}" if made.problem else f"{made.seconds:.0f} s"
        line = f"{self._head()} {self._items[made.number].title}: {how}"
        if self._bar.disable or made.problem:
            self.say(line)

    def say(self, line: str) -> None:
        """A line of its own, above the bar."""
        self._bar.write(line, file=sys.stderr)

    def _head(self) -> str:
        return f"[{len(self._done)}/{len(self._items)}]"

    def _follow(self) -> None:
        while not self._ended.wait(0.5):
            in_hand = [number for number in self._session.in_hand() if number not in self._done]
            done = sum(self._items[number].seconds for number in list(self._done))
            done += sum(self._items[number].seconds * self._session.progress(number) for number in in_hand)
            self._bar.n = max(self._bar.n, done)
            titles = "; ".join(self._items[number].title for number in in_hand)
            self._bar.set_description_str(f"{self._head()} {titles}", False)
            self._bar.refresh()
