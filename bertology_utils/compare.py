"""What a new run changes against an earlier one: numbers by their rows, figures by their pixels.

``python -m bertology_utils.compare OLD NEW`` compares two folders of all notebooks' figures and
results, such as ``figures`` and ``runs/test``, and ends with 1 if they differ.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from .results import RESULTS, moved, read_results

SHOWN = 10  # differences of one file that are named
# Root mean square of 255 levels, for what a run keeps and for what another machine may draw. Small
# markers of another shape give 0.2, data that move by 0.02 % of an axis 0.1, by 0.1 % up to 3.4, a
# changed letter 2.3 and more, another colour of a line 15.
ROUNDING, MACHINE = 0.15, 5.0
# Matplotlib's layout measures texts, and ends a few pixels wider on one machine than on another.
CANVAS = 0.01


def picture_difference(
    old: Path, new: Path, tolerance: float = ROUNDING, canvas: float = 0.0
) -> str | None:
    """How a picture differs from an earlier one, in words; None if it is only rounding.

    Args:
        old, new: PNG files.
        tolerance: root mean square of the differences of pixels, in 255 levels.
        canvas: by which share of its size the canvas may differ; pixels are then not compared.
    """
    if old.read_bytes() == new.read_bytes():
        return None
    from PIL import Image

    before, after = (np.asarray(Image.open(path).convert("RGB"), float) for path in (old, new))
    if before.shape != after.shape:
        size, new_size = before.shape[1::-1], after.shape[1::-1]
        if np.allclose(size, new_size, rtol=canvas, atol=0):
            return None
        return f"{new_size[0]} × {new_size[1]} pixels, was {size[0]} × {size[1]}"
    rms = np.sqrt(np.mean((before - after) ** 2))
    return f"the picture changed by {rms:.1f} of 255 levels" if rms > tolerance else None


def folder_differences(
    old: Path, new: Path, tolerance: float = ROUNDING, canvas: float = 0.0
) -> dict[str, str]:
    """What a new run of one notebook changes: a file's name without suffix → the reason, in words.

    A picture's PNG and PDF go together, and the PNG decides.

    Args:
        old, new: folders with a results.json, PNG files and their PDF twins.
        tolerance, canvas: see :func:`picture_difference`.
    """
    reasons = {
        file.stem: "no longer made" for file in old.iterdir() if not (new / file.name).exists()
    }
    reasons |= {file.stem: "new" for file in new.iterdir() if not (old / file.name).exists()}
    if all((folder / RESULTS).exists() for folder in (old, new)):
        try:
            rows = moved(read_results(old / RESULTS), read_results(new / RESULTS))
        except ValueError:
            rows = ["the earlier file could not be read"]
        more = f"; and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        reasons |= {Path(RESULTS).stem: "; ".join(rows[:SHOWN]) + more} if rows else {}
    for picture in new.glob("*.png"):
        reason = reasons.get(picture.stem) or picture_difference(
            old / picture.name, picture, tolerance, canvas
        )
        reasons |= {picture.stem: reason} if reason else {}
    return reasons


def main(old: Path, new: Path) -> int:
    """Print what differs between two folders of runs; returns the exit code."""
    names = sorted({file.parent.name for folder in (old, new) for file in folder.glob("*/*")})
    for name in names:
        missing = [str(folder / name) for folder in (old, new) if not (folder / name).is_dir()]
        reasons = (
            {"folder": f"there is no {missing[0]}"}
            if missing
            else folder_differences(old / name, new / name, MACHINE, CANVAS)
        )
        for file, reason in sorted(reasons.items()):
            print(f"{name}/{file}: {reason}")
            names = []
    print("nothing differs" if names else "what differs is listed above")
    return int(not names)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
