"""From characters to wordpieces, through the tokenizer's offsets; never by searching for strings."""

from collections.abc import Sequence


def wordpieces(offsets: Sequence[tuple[int, int]], start: int, end: int) -> list[int]:
    """Positions of the wordpieces that share a character with a stretch of text.

    Args:
        offsets: per wordpiece, its characters (start, end) with ``end``
            excluded; (0, 0) for special tokens, as fast tokenizers give them.
        start, end: the stretch, ``end`` excluded.

    Returns:
        Positions in order; empty if the stretch was cut off or holds nothing
        that the tokenizer keeps.
    """
    return [index for index, (a, b) in enumerate(offsets) if a < b and a < end and start < b]
