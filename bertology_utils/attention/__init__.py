"""Attention maps of a model: read and changed inside its forward pass (``maps``), fed by ``batches`` (§3).

``interface``: how a forward pass is reached into. ``columns``: what each token receives.
"""

from .columns import received
from .maps import Batch, Measurement, attention_maps, begin, check_length, longest_input, observe

__all__ = ["Batch", "Measurement", "attention_maps", "begin", "check_length", "longest_input", "observe", "received"]
