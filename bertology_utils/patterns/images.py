"""Attention maps of any length brought to one size, for the network to look at (§4.1).

The paper does not say how it brought L × L maps to its network's input. Here a
map is cut into size × size cells of about equal extent, and each cell keeps two
numbers: its largest weight and its mean weight. The largest alone would show a
single weight and a solid patch alike; the mean alone would wash out a diagonal,
which in a map of 100 wordpieces fills a quarter of its cells. A map shorter than
the picture repeats its cells. Both are divided by their maximum over the map,
because the pattern is a matter of shape, and their square root is taken, because
a faint column beside a dark band still counts; the annotators' pictures, too,
were scaled to the map's maximum and lifted what is faint.
"""

import torch
from torch.nn import functional

SHORTEST = 4  # wordpieces; in shorter maps every pattern looks alike
TOLERANCE = 0.01  # of a row's sum; half-precision maps stay well within it


def check_maps(maps: torch.Tensor) -> None:
    """Refuse what is not a stack of self-attention maps.

    Args:
        maps: shape (maps, tokens, tokens).

    Raises:
        ValueError: not square, shorter than :data:`SHORTEST`, NaN or infinite,
            negative, or rows that do not sum to 1; the message says which.
    """
    shape = tuple(maps.shape)
    if len(shape) != 3 or shape[1] != shape[2]:
        raise ValueError(f"attention maps are square, (maps, tokens, tokens); these have shape {shape}")
    if shape[1] < SHORTEST:
        raise ValueError(f"a map of {shape[1]} tokens shows no pattern; at least {SHORTEST} are needed")
    if not torch.isfinite(maps).all():
        raise ValueError("attention maps hold NaN or infinite weights; the model's outputs are broken")
    off = (maps.sum(dim=2, dtype=torch.float32) - 1).abs().max().item() if len(maps) else 0.0
    if off > TOLERANCE or (maps < 0).any():
        raise ValueError(
            f"rows of attention maps are distributions: weights from 0, sum 1; here a sum is off by {off:.3g}."
            " Cut off padding, and pass weights after the softmax"
        )


def to_images(maps: torch.Tensor, separators: torch.Tensor | None, size: int) -> torch.Tensor:
    """Pictures of one size, of maps of one length.

    Args:
        maps: shape (maps, tokens, tokens), padding cut off.
        separators: True at [SEP], shape (maps, tokens); None to leave them out.
        size: cells a side.

    Returns:
        float32 tensor of shape (maps, channels, size, size), from 0 to 1:
        largest weight, mean weight and, unless left out, the rows and columns
        of [SEP].

    Raises:
        ValueError: see :func:`check_maps`.
    """
    check_maps(maps)
    maps = maps.float().unsqueeze(1)  # (maps, 1, tokens, tokens)
    channels = [functional.adaptive_max_pool2d(maps, size), functional.adaptive_avg_pool2d(maps, size)]
    channels = [(channel / channel.amax((2, 3), keepdim=True)).sqrt() for channel in channels]
    if separators is not None:
        at = functional.adaptive_max_pool1d(separators.float().unsqueeze(1), size)  # (maps, 1, size)
        channels.append(torch.maximum(at.unsqueeze(3), at.unsqueeze(2)))  # (maps, 1, size, size)
    return torch.cat(channels, dim=1)
