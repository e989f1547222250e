"""What a new run changes against an earlier one: figures by their pixels, claims and numbers of the text.

``python -m bertology_utils.compare figures runs/test`` compares what a run of all notebooks wrote into
runs/test with what is committed, and ends with 1 if they differ.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

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

    try:
        before, after = (np.asarray(Image.open(path).convert("RGB"), float) for path in (old, new))
    except OSError as error:
        return f"cannot be compared ({error})"
    if before.shape != after.shape:
        size, new_size = before.shape[1::-1], after.shape[1::-1]
        if np.allclose(size, new_size, rtol=canvas, atol=0):
            return None
        return f"{new_size[0]} × {new_size[1]} pixels, was {size[0]} × {size[1]}"
    rms = np.sqrt(np.mean((before - after) ** 2))
    return f"the picture changed by {rms:.1f} of 255 levels" if rms > tolerance else None


def picture_differences(
    old: Path, new: Path, tolerance: float = ROUNDING, canvas: float = 0.0
) -> dict[str, str]:
    """What a new run of one notebook changes in its figures: a name without suffix → the reason, in words.

    A picture's PNG and PDF go together, and the PNG decides.

    Args:
        old, new: folders with PNG files and their PDF twins.
        tolerance, canvas: see :func:`picture_difference`.
    """
    before, after = ({file.stem for file in folder.glob("*.p[nd][gf]")} for folder in (old, new))
    reasons = dict.fromkeys(before - after, "no longer made") | dict.fromkeys(after - before, "new")
    for name in before & after:
        one, other = old / f"{name}.png", new / f"{name}.png"
        if reason := picture_difference(one, other, tolerance, canvas):
            reasons[name] = reason
    return reasons


def told_difference(old: Path, new: Path) -> list[str]:
    """What a page's claims, and the numbers of its text, are now and were not before; a line each."""
    if not old.is_file():
        return [f"{old} is not there; make notebooks writes it"]
    before, now = (json.loads(path.read_text(encoding="utf-8")) for path in (old, new))
    said, same = now.pop("said", {}), before.pop("said", {})
    names = [
        name
        for name in said | same
        if not np.isclose(said.get(name, np.nan), same.get(name, np.nan), rtol=1e-3, atol=1e-3)
    ]
    lines = [f"{old}: {name} is {said.get(name)}, was {same.get(name)}" for name in sorted(names)]
    return lines + ([f"{old}: the claims have changed"] if before != now else [])


def main(figures: Path, new: Path) -> int:
    """Print what a run of all notebooks changes in committed figures, claims and numbers; returns the exit code.

    Args:
        figures: a folder of pictures for each notebook.
        new: the run's folders, one for each notebook.
    """
    lines = []
    names = {path.name for folder in (figures, new) for path in folder.iterdir() if path.is_dir()}
    for name in sorted(names):
        pictures = picture_differences(figures / name, new / name, MACHINE, CANVAS)
        lines += [f"{name}/{file}: {reason}" for file, reason in sorted(pictures.items())]
        for told in sorted((new / name).glob("*.json")):
            lines += told_difference(Path("results", told.stem, "pages", f"{name}.json"), told)
    print(*lines, "what differs is listed above" if lines else "nothing differs", sep="\n")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
