"""Every head's attention map of one sentence, small enough to stand in a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SENTENCE = "She gave him the book, but he did not read it."  # subjects, objects, pronouns, a negation


@dataclass(frozen=True)
class ExampleMaps:
    """One sentence as all heads see it.

    Attributes:
        text: the sentence.
        model: whose heads, as people read it.
        tokens: its wordpieces.
        weights: shape (layers, heads, tokens, tokens); rows sum to 1.
    """

    text: str
    model: str
    tokens: list[str]
    weights: np.ndarray


def example_maps(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, text: str = SENTENCE, name: str = "the model"
) -> ExampleMaps:
    """The maps of one sentence.

    Args:
        model: encoder or classifier in evaluation mode.
        tokenizer: its own.
        text: the sentence; up to about 30 wordpieces stay legible.
        name: of the model, as people read it.

    Raises:
        ValueError: see :func:`bertology_utils.attention_maps`.
    """
    import torch

    from ...attention import attention_maps
    from ...attention.batches import batches_of

    (batch,) = batches_of([text], tokenizer)
    batch = batch.to(next(model.parameters()).device)
    with torch.inference_mode():
        maps = attention_maps(model, batch)
    tokens = tokenizer.convert_ids_to_tokens(batch.inputs["input_ids"][0].tolist())
    return ExampleMaps(text, name, tokens, np.stack([layer[0].cpu().numpy() for layer in maps]))
