"""Layers and heads: counted from 0 in code, from 1 for people, as in the paper.

This is the one place where the two meet.
"""

Head = tuple[int, int]  # (layer, head), both from 0


def to_people(index: int) -> int:
    """Number of layer or head ``index`` as people read it (from 1)."""
    return index + 1


def to_code(number: int, count: int, kind: str = "layer") -> int:
    """Index in code (from 0) of the layer or head that people call ``number``.

    Args:
        number: layer or head, from 1.
        count: how many there are.
        kind: "layer" or "head", for the message.

    Raises:
        ValueError: if ``number`` is not in 1…``count``.
    """
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= count:
        raise ValueError(f"unknown {kind} {number!r}; {kind}s are counted from 1 to {count}")
    return number - 1


def head_name(layer: int, head: int) -> str:
    """Name of a head, "(layer, head)" counted from 1, for indices from 0."""
    return f"({to_people(layer)}, {to_people(head)})"


def axis_numbers(count: int) -> list[int]:
    """Tick labels for ``count`` layers or heads: 1 … ``count``."""
    return [to_people(index) for index in range(count)]
