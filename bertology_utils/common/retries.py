"""Fetching from the Hub again after a failure that passes by itself: a few times, with growing waits, each said in a line."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from .hub import passing
from .progress import note

T = TypeVar("T")
WAITS = (2, 8, 20)  # seconds before each further attempt
LONGEST = 120  # seconds that the Hub's own wish (Retry-After) is followed


def with_retries(fetch: Callable[[], T], what: str) -> T:
    """What ``fetch`` gives, which is called anew after a failure that may have passed by then.

    The libraries ask again after most failures of a single request. What they give up at once is tried again here, as
    a whole: a fault of the Hub while it sends a file, a list of files that it refuses, a connection that is reset. Files
    that came whole are in their caches by then.

    Args:
        fetch: fetches something; nothing half-made may be left when it fails.
        what: it is, for the message.

    Raises:
        Exception: what ``fetch`` raises, at once if waiting does not help, else at its last call.
    """
    for attempt, wait in enumerate(WAITS, start=2):
        try:
            return fetch()
        except Exception as error:  # of four libraries, with no common class
            found = passing(error)
            if found is None:
                raise
            reason, wish = found
            wait = max(wait, min(wish, LONGEST))
        note(f"{what}: {reason}; asking again in {wait} s ({attempt}/{len(WAITS) + 1})")  # "2 of 4" would be progress
        time.sleep(wait)
    return fetch()
