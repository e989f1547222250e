"""Attention to tokens of one type, such as nouns or [SEP] (§4.4, Fig 6), also from [CLS] alone (§4.5, Fig 7).

``measure``: the measurement. ``compare``: types against each other.
``controls``: against other tokens at the same places. ``flow``: all of a
layer's attention, by type of token. ``claims``: the paper's claims, judged.
``drawing``: the figures. ``needs``: what is trained.
"""

from .compare import Rivals, against_marks, ahead, earlier_and_later, kept_share, resampled_type_means, shares_of_heads
from .measure import ATTENDING, Features, disregard, side_by_side

__all__ = [
    "ATTENDING",
    "Features",
    "Rivals",
    "against_marks",
    "ahead",
    "disregard",
    "earlier_and_later",
    "kept_share",
    "resampled_type_means",
    "shares_of_heads",
    "side_by_side",
]
