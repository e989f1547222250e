"""Figures compared as pictures: equal but for what rounding shifts by less than an eye sees."""

from pathlib import Path

import numpy as np

# Of 255. A line or a colour that moves with the sixth decimal changes the pixels on its edge by a few
# levels; a printed digit, a word or another colour by a hundred and more.
VISIBLE = 48
# Matplotlib's layout measures the texts, and ends a few pixels wider on one machine than on another.
CANVAS = 0.01


def picture_difference(expected: Path, got: Path, same_numbers: bool = False) -> str | None:
    """How a new PNG differs visibly from an earlier one, in words; None if it does not.

    Args:
        expected, got: PNG files.
        same_numbers: what is drawn is known to be the same, so that a canvas up to :data:`CANVAS` larger or
            smaller, whose pixels cannot be compared, is another machine's layout and no difference.
    """
    if expected.read_bytes() == got.read_bytes():
        return None
    from PIL import Image

    old, new = (Image.open(path).convert("RGB") for path in (expected, got))
    if old.size != new.size:
        close = all(abs(after - before) <= CANVAS * before for before, after in zip(old.size, new.size, strict=True))
        return None if same_numbers and close else f"{new.width} × {new.height} pixels instead of {old.width} × {old.height}"
    levels = np.abs(np.asarray(old, dtype=int) - np.asarray(new, dtype=int))  # (rows, columns, colours)
    changed = levels.max(axis=-1) > VISIBLE
    return f"{changed.sum()} of {changed.size} pixels look different" if changed.any() else None
