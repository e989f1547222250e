"""Attention to types of token, such as nouns or [SEP] (§4.4, Fig 6); notebook 4.

``measure``: what one pass over a model's maps measures: the weight on each type, on matched words,
and where each head's attention goes. ``compare``: what follows from it, in the order of the paper's
section, and :func:`run`, which records and judges all of it. ``figures``: the figures of the page.
"""

from ..annotation.inputs import TOKEN_TYPES, token_types
from .compare import run
from .measure import (
    DESTINATIONS,
    Features,
    Flow,
    in_even_shares,
    marks,
    side_by_side,
)
