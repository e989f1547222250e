"""Attention maps of a model: read and changed inside its forward pass (``maps``), fed by ``batches`` (§3)."""

from .maps import Batch, Measurement, attention_maps, begin, check_length, longest_input, observe

__all__ = ["Batch", "Measurement", "attention_maps", "begin", "check_length", "longest_input", "observe"]
