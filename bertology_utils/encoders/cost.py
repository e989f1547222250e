"""What training an encoder, and sweeping over its heads, costs: operations and memory, estimated beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

PROCESS = 700 * 2**20  # bytes of a Python process with torch and transformers imported (measured: 0.6 to 0.7 GiB)
WITH_GPU = 4 * 2**30  # bytes of main memory of a process that computes on a GPU, with the libraries that this needs
ON_GPU = 700 * 2**20  # bytes of a GPU's memory that the libraries take for themselves
NUMBER = 4  # bytes of a float32
HALF = 2  # bytes of a bfloat16 or float16


@dataclass(frozen=True)
class Size:
    """An encoder's size.

    Attributes:
        layers, heads, hidden, inner, words: as in its configuration; ``inner``
            is the feed-forward layer's width, ``words`` the size of the vocabulary.
    """

    layers: int
    heads: int
    hidden: int
    inner: int
    words: int

    @classmethod
    def of(cls, config: PreTrainedConfig) -> Size:
        """Of a transformers configuration; what it does not say is taken to be as in BERT."""
        hidden = config.hidden_size
        inner = getattr(config, "intermediate_size", None) or 4 * hidden
        return cls(config.num_hidden_layers, config.num_attention_heads, hidden, inner, config.vocab_size)

    @property
    def matrices(self) -> int:
        """Weights through which every token goes: query, key, value, output, and the two of the feed-forward layer."""
        return self.layers * (4 * self.hidden**2 + 2 * self.hidden * self.inner)

    @property
    def weights(self) -> int:
        """All weights, without biases."""
        return self.matrices + self.words * self.hidden


@dataclass(frozen=True)
class Cost:
    """Estimated operations (multiplications and additions), and the bytes of all arrays at the peak."""

    operations: float
    held: float

    @property
    def memory(self) -> float:
        """Peak of a process that computes on a CPU, in bytes."""
        return PROCESS + self.held


def of_training(size: Size, rows: int, tokens: float, epochs: int, batch: int, longest: int, mixed: bool = False) -> Cost:
    """A fine-tuning: two operations per weight and token forward, four backward; weights, gradients and Adam's moments.

    Args:
        size: of the encoder.
        rows, epochs, batch: training rows, passes over them, rows per step.
        tokens, longest: wordpieces of an input, on average and at most.
        mixed: activations, and a copy of the weights, in half precision.
    """
    # Per token and layer, in units of the hidden size: what the backward pass has to keep (Korthikanti et al., 2022).
    kept = batch * longest * size.layers * (17 * size.hidden + 2.5 * size.heads * longest)
    bytes_of_weight = 4 * NUMBER + (HALF if mixed else 0)
    held = bytes_of_weight * size.weights + (HALF if mixed else NUMBER) * kept
    return Cost(6 * size.matrices * rows * epochs * tokens, held)


def of_sweep(size: Size, rows: int, tokens: float, tokens_at_once: int) -> Cost:
    """A sweep: each head, and all heads, of each layer disabled, of which the layers above are computed anew.

    Args:
        size: of the encoder.
        rows, tokens: dev rows, and wordpieces of one on average.
        tokens_at_once: that are stacked.
    """
    passes = (size.heads + 1) * size.layers / 2  # whole ones, as layers below are shared
    states = tokens_at_once * (size.inner + 8 * size.hidden) * NUMBER
    return Cost(2 * size.matrices * rows * tokens * passes, NUMBER * size.weights + states)
