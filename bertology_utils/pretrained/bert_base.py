"""Is an encoder bert-base-uncased, whose heads are published one by one, and are its heads like those?"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..common import Head
from ..statistics import Bootstrap, Seed, heads_by_size, rank_correlation

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedTokenizerFast

SHAPE = {
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "hidden_size": 768,
    "vocab_size": 30522,
}
_NAMES = {
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads in each",
    "hidden_size": "numbers in a token's vector",
    "vocab_size": "wordpieces in its vocabulary",
}
# SHA-256 of its wordpieces in their order, a line each (its vocab.txt).
VOCABULARY = "0f052197aac305fe42f378b5c61554b7bacb34b8be4af83fec2cfdcdffbc9973"

SINK_LAYERS = range(5, 10)  # from 0: layers 6 to 10, where Clark et al. find the sink
TOP = 10  # heads that are compared as the highest


def differs(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerFast) -> str:
    """In what an encoder differs from bert-base-uncased; empty if in nothing that can be seen without its weights.

    Another pre-training of the same shape and vocabulary cannot be told from it.

    Args:
        config: its configuration.
        tokenizer: its tokenizer.
    """
    if config.model_type != "bert":
        return f"it is of the kind {config.model_type}, not bert"
    for name, wanted in SHAPE.items():
        found = getattr(config, name)
        if found != wanted:
            return f"it has {found} {_NAMES[name]}, not {wanted}"
    words = tokenizer.get_vocab()
    if (
        hashlib.sha256("\n".join(sorted(words, key=words.__getitem__)).encode()).hexdigest()
        != VOCABULARY
    ):
        return "its vocabulary has other wordpieces, such as those of the cased model"
    return ""


def missing(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerFast) -> str:
    """What a claim about bert-base's own heads lacks here; empty if nothing."""
    difference = differs(config, tokenizer)
    return (
        f"bert-base-uncased, whose heads are published; this is another encoder: {difference}"
        if difference
        else ""
    )


@dataclass(frozen=True)
class Comparison:
    """One panel here beside the published one.

    Attributes:
        rank: Spearman's correlation over heads, heads resampled.
        difference: here minus published, of the head where it is largest.
        where: that head, (layer, head) from 0.
        common: of the ten highest heads, how many are so in both.
    """

    rank: Bootstrap
    difference: float
    where: Head
    common: int


def compare(here: np.ndarray, published: np.ndarray, seed: Seed) -> Comparison:
    """Compare two panels.

    Args:
        here, published: mean weight of every head, both of shape (layers, heads).
        seed: of the resampling of heads.

    Raises:
        ValueError: of two shapes.
    """
    if here.shape != published.shape:
        raise ValueError(
            f"panels of {here.shape} and {published.shape} (layers, heads) have no heads in common to compare"
        )
    apart = here - published
    layer, head = np.unravel_index(np.abs(apart).argmax(), apart.shape)
    highest = [set(heads_by_size(panel)[:TOP]) for panel in (here, published)]
    return Comparison(
        rank_correlation(here.ravel(), published.ravel(), seed),
        float(apart[layer, head]),
        (int(layer), int(head)),
        len(highest[0] & highest[1]),
    )
