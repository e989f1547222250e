"""Attention to tokens of one type, such as nouns or [SEP] (§4.4, Fig 6), also from [CLS] alone (§4.5, Fig 7).

``measure``: what each type gets, and how each head divides its attention. ``reading``: all of that
on one task's examples in one pass, with matched words to compare types with. ``compare``: stripes,
halves of the layers, types against each other, what comes first for [CLS]. ``tuned``: one model
before and after fine-tuning. ``plots``: the figures.
"""

from ..annotation.inputs import LINGUISTIC, TOKEN_TYPES
from .measure import DESTINATIONS, Features, Flow, in_even_shares, marks, side_by_side

__all__ = [
    "DESTINATIONS",
    "LINGUISTIC",
    "TOKEN_TYPES",
    "Features",
    "Flow",
    "in_even_shares",
    "marks",
    "side_by_side",
]
