"""Attention maps of a model: read and changed inside its forward pass (``maps``), fed by ``batches`` (§3).

``interface``: how a forward pass is reached into. ``columns``: what each token
receives. ``by_hand``: one head's own weights. ``carried``: attention weights
times what they multiply; ``norms``: measurements of that. ``kept``: the same
passes, made once and looked up in the cache afterwards, by the ``contents`` of
all that goes in.
"""

from .by_hand import head_weights
from .carried import vectors
from .columns import received
from .maps import Batch, Measurement, attention_maps, begin, check_length, longest_input, observe
from .norms import ByNorm, Exchanged, weighed

__all__ = [
    "Batch",
    "ByNorm",
    "Exchanged",
    "Measurement",
    "attention_maps",
    "begin",
    "check_length",
    "head_weights",
    "longest_input",
    "observe",
    "received",
    "vectors",
    "weighed",
]
