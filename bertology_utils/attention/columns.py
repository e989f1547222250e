"""What tokens receive: the columns of attention maps (§4.4), which is also what links are centred by (§4.5)."""

from __future__ import annotations

import torch

from .maps import Batch


def received(maps: torch.Tensor, batch: Batch) -> torch.Tensor:
    """What each token gets from the average real token: column sums over lengths, shape (examples, heads, tokens).

    Args:
        maps: shape (examples, heads, tokens, tokens).
        batch: the inputs.
    """
    share = batch.mask / batch.lengths[:, None]  # (examples, queries)
    return torch.einsum("ehqk,eq->ehk", maps, share.to(maps.dtype))
