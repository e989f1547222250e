"""Figures compared as pictures: equal but for what rounding shifts by less than an eye sees."""

from pathlib import Path

import numpy as np

# Of 255. A line or a colour that moves with the sixth decimal changes the pixels on its edge by a few
# levels; a printed digit, a word or another colour by a hundred and more.
VISIBLE = 48


def picture_difference(expected: Path, got: Path) -> str | None:
    """How a new PNG differs visibly from an earlier one, in words; None if it does not.

    Args:
        expected, got: PNG files.
    """
    if expected.read_bytes() == got.read_bytes():
        return None
    import matplotlib.image

    old, new = (np.round(255 * matplotlib.image.imread(path)).astype(int) for path in (expected, got))
    if old.shape != new.shape:
        sizes = [f"{shape[1]} × {shape[0]}" for shape in (old.shape, new.shape)]
        return f"{sizes[1]} pixels instead of {sizes[0]}"
    changed = np.abs(old - new).max(axis=-1) > VISIBLE  # (rows, columns)
    return f"{changed.sum()} of {changed.size} pixels look different" if changed.any() else None
