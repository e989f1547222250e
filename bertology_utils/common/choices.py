"""One wording for «that is not one of the choices»."""

from collections.abc import Iterable


def one_of(kind: str, value: object, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``allowed``.

    Args:
        kind: what the value is, for the message ("task", "profile", …).
        value: what the person gave.
        allowed: the valid values, in the order in which to list them.

    Raises:
        ValueError: naming the value and every choice.
    """
    allowed = list(allowed)
    if value in allowed:
        return value
    raise ValueError(f"unknown {kind} {value!r}; choose one of: {', '.join(allowed)}")
