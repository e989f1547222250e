"""What every other room may use, and what uses none of them.

``cache``: results kept on disk; ``packing``: measured values as files. ``choices``, ``numbering``, ``protocols``: names
and numbers as people write them. ``profiles``: named settings. ``progress``:
how far a long cell has come. ``environment``: its variables, others for a while. ``devices``: what computes.
``hub``: what to do when the Hub does not answer.
"""

from .choices import one_of
from .numbering import Head, axis_numbers, head_name, to_code, to_people
from .progress import note, track
from .protocols import DIRECTIONS, PROTOCOLS, WEIGHINGS

__all__ = [
    "DIRECTIONS",
    "PROTOCOLS",
    "WEIGHINGS",
    "Head",
    "axis_numbers",
    "head_name",
    "note",
    "one_of",
    "to_code",
    "to_people",
    "track",
]
