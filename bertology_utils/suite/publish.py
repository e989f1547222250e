"""Put a run's files in the place of an earlier run's, but only where they say something else.

Figures and numbers change in their last digits from machine to machine. A file
that is the same but for that stays as it is, so that version control shows
what really changed.
"""

import os
import shutil
from pathlib import Path

from ..regression.numbers import differences, read_results
from ..regression.pictures import picture_difference

SHOWN = 3  # differences of one file that are told


def publish(new: Path, old: Path, results: str) -> list[str]:
    """Put folder ``new`` in the place of ``old``, or leave ``old`` as it was if that fails.

    Args:
        new: folder of figures (each as PNG and PDF) and results of a finished run; it is moved.
        old: the earlier run's folder, if any.
        results: name of the file of results.

    Returns:
        What changed, a line for each file; empty if nothing did, or if there was nothing before.
    """
    if not new.is_dir():  # the notebook writes nothing
        return []
    changes = keep_what_is_the_same(new, old, results) if old.is_dir() else []
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
    return changes


def keep_what_is_the_same(new: Path, old: Path, results: str) -> list[str]:
    """Copy over ``new`` the files of ``old`` that differ by rounding only; returns what really changed."""
    reasons = {old_file.stem: "no longer made" for old_file in old.iterdir() if not (new / old_file.name).exists()}
    reasons |= {new_file.stem: "new" for new_file in new.iterdir() if not (old / new_file.name).exists()}
    both = (old / results).exists() and (new / results).exists()
    if both and (reason := _other_numbers(old / results, new / results)):
        reasons[Path(results).stem] = reason
    same_numbers = Path(results).stem not in reasons
    for picture in new.glob("*.png"):
        if picture.stem not in reasons and (reason := picture_difference(old / picture.name, picture, same_numbers)):
            reasons[picture.stem] = reason
    for file in new.iterdir():
        if file.stem not in reasons:
            shutil.copy2(old / file.name, file)
    return [f"{name}: {reason}" for name, reason in sorted(reasons.items())]


def _other_numbers(old: Path, new: Path) -> str | None:
    try:
        before = read_results(old)
    except ValueError:
        return "the earlier file could not be read"
    found = differences(before, read_results(new))
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(map(str, found[:SHOWN])) + more if found else None
