"""Attention maps of a model: read and changed inside its forward pass (``maps``), fed by ``batches`` (§3)."""

from .maps import (
    IMPLEMENTATION, Batch, Editor, Measurement, Observer, attention_maps, begin, editing, observe, register_attention,
)

__all__ = [
    "IMPLEMENTATION", "Batch", "Editor", "Measurement", "Observer", "attention_maps", "begin", "editing", "observe",
    "register_attention",
]
