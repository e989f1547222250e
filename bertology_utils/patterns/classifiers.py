"""What tells the patterns of maps apart (§4.1): a network of eight convolutional layers with ReLU, and eleven statistics.

Maps have all sizes. The paper does not say how it brought L × L maps to its network's input. Here a
map is cut into size × size cells of about equal extent, and each cell keeps two
numbers: its largest weight and its mean weight. The largest alone would show a
single weight and a solid patch alike; the mean alone would wash out a diagonal,
which in a map of 100 wordpieces fills a quarter of its cells. A map shorter than
the picture repeats its cells. Both are divided by their maximum over the map,
because the pattern is a matter of shape, and their square root is taken, because
a faint column beside a dark band still counts; the annotators' pictures, too,
were scaled to the map's maximum and lifted what is faint.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors import safe_open
from torch import nn
from torch.nn import functional

from ..common import Head
from ..statistics.permutation import largest
from .labels import PATTERNS, SHORTEST, LabelledMap, Picture, load_maps, sentence_numbers

TOLERANCE = 0.01  # of a row's sum; half-precision maps stay well within it
WEIGHTS = Path(__file__).parent / "cnn.safetensors"
MAPS_AT_ONCE = 512  # bounds the memory of classifying


class Classifier(Protocol):
    """What tells patterns apart: the network, or logistic regression."""

    def to(self, device: torch.device) -> Any:
        """Work on maps that lie there."""

    def predict(self, maps: torch.Tensor, separators: torch.Tensor) -> np.ndarray:
        """See :meth:`PatternCNN.predict`."""


def check_maps(maps: torch.Tensor) -> None:
    """Refuse what is not a stack of self-attention maps.

    Args:
        maps: shape (maps, tokens, tokens).

    Raises:
        ValueError: not square, shorter than :data:`bertology_utils.patterns.labels.SHORTEST`, NaN
            or infinite, negative, or rows that do not sum to 1; the message says which.
    """
    shape = tuple(maps.shape)
    if len(shape) != 3 or shape[1] != shape[2]:
        raise ValueError(
            f"attention maps are square, (maps, tokens, tokens); these have shape {shape}"
        )
    if shape[1] < SHORTEST:
        raise ValueError(
            f"a map of {shape[1]} tokens shows no pattern; at least {SHORTEST} are needed"
        )
    if not torch.isfinite(maps).all():
        raise ValueError(
            "attention maps hold NaN or infinite weights; the model's outputs are broken"
        )
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
    channels = [
        functional.adaptive_max_pool2d(maps, size),
        functional.adaptive_avg_pool2d(maps, size),
    ]
    channels = [(channel / channel.amax((2, 3), keepdim=True)).sqrt() for channel in channels]
    if separators is not None:
        at = functional.adaptive_max_pool1d(
            separators.float().unsqueeze(1), size
        )  # (maps, 1, size)
        channels.append(torch.maximum(at.unsqueeze(3), at.unsqueeze(2)))  # (maps, 1, size, size)
    return torch.cat(channels, dim=1)


@dataclass(frozen=True)
class Design:
    """What is left open by "a convolutional neural network with 8 convolutional layers and ReLU".

    Attributes:
        size: the side of the picture that a map is brought to.
        separators: whether the network sees where [SEP] stands.
        width: channels of the first two layers; doubled after each halving of
            the picture until four times as many.
        epochs: passes over the labelled maps, each time augmented anew.
    """

    size: int = 24
    separators: bool = False
    width: int = 16
    epochs: int = 100


class PatternCNN(nn.Module):
    """Pictures of attention maps in, one score per pattern out."""

    def __init__(self, design: Design):
        super().__init__()
        self.design = design
        layers: list[nn.Module] = []
        channels = 3 if design.separators else 2
        for number, factor in enumerate((1, 1, 2, 2, 4, 4, 4, 4), start=1):
            layers += [
                nn.Conv2d(channels, factor * design.width, kernel_size=3, padding=1),
                nn.ReLU(inplace=True),
            ]
            channels = factor * design.width
            if number in (2, 4, 6):
                layers.append(nn.MaxPool2d(2))
        self.layers = nn.Sequential(*layers)
        self.scores = nn.Linear(channels, len(PATTERNS))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Scores before the softmax, shape (maps, patterns), of images (maps, channels, size, size)."""
        seen = self.layers(images)  # (maps, channels, size / 8, size / 8)
        return self.scores(nn.functional.dropout(seen.mean(dim=(2, 3)), 0.3, self.training))

    def images(self, maps: torch.Tensor, separators: torch.Tensor) -> torch.Tensor:
        """What this network looks at; see :func:`to_images`."""
        return to_images(maps, separators if self.design.separators else None, self.design.size)

    def predict(self, maps: torch.Tensor, separators: torch.Tensor) -> np.ndarray:
        """The pattern of each map.

        Args:
            maps: maps of one length, shape (maps, tokens, tokens), padding cut off.
            separators: True at [SEP], shape (maps, tokens).

        Returns:
            Indices into PATTERNS, shape (maps,).

        Raises:
            ValueError: these are no attention maps; see :func:`check_maps`.
        """
        with torch.inference_mode():
            parts = zip(maps.split(MAPS_AT_ONCE), separators.split(MAPS_AT_ONCE), strict=True)
            # On CPUs convolutions over this order of the memory take half the time.
            scores = [
                self(self.images(*part).contiguous(memory_format=torch.channels_last))
                for part in parts
            ]
        return torch.cat(scores).argmax(dim=1).cpu().numpy()


def classify(network: PatternCNN, pictures: Sequence[Picture]) -> np.ndarray:
    """The pattern of each picture, of any lengths: indices into PATTERNS, shape (pictures,)."""
    device = next(network.parameters()).device
    with torch.inference_mode():
        images = (network.images(*as_tensors(picture)).to(device) for picture in pictures)
        return torch.cat([network(image) for image in images]).argmax(dim=1).cpu().numpy()


def as_tensors(picture: Picture) -> tuple[torch.Tensor, torch.Tensor]:
    """A map and where its [SEP] stand as stacks of one, shapes (1, tokens, tokens) and (1, tokens)."""
    weights, separators = (
        np.ascontiguousarray(part)[None] for part in (picture.weights, picture.separators)
    )
    return torch.from_numpy(weights), torch.from_numpy(separators)


def load_network() -> PatternCNN:
    """The network that the package ships, trained on all labelled maps; in evaluation mode, on the CPU.

    A new one each time: a measurement takes its own along to another device.
    """
    with safe_open(WEIGHTS, "pt") as file:
        network = PatternCNN(Design(**json.loads(file.metadata()["design"])))
        network.load_state_dict({name: file.get_tensor(name) for name in file.keys()})
    return network.eval()


# The transparent alternative: statistics of a map, for logistic regression. ---

STATISTICS = (
    "strongest column",
    "three strongest columns",
    "attention to itself",
    "to the previous token",
    "to the next token",
    "strongest parallel to the diagonal",
    "band of five",
    "same sentence, above chance",
    "other sentence, above chance",
    "two sentences",
    "entropy",
)


def map_statistics(weights: np.ndarray, separators: np.ndarray) -> np.ndarray:
    """What a reader would measure to tell the five patterns apart; all but the blocks' from 0 to 1.

    The regression is fitted to these; another order of additions would move its coefficients, as
    some of them nearly tie.

    Args:
        weights: shape (tokens, tokens), rows sum to 1.
        separators: True at [SEP], shape (tokens,).

    Returns:
        Shape (statistics,), in the order of :data:`STATISTICS`.
    """
    length = len(weights)
    columns = np.sort(weights.mean(axis=0))[::-1]
    offset = np.subtract.outer(np.arange(length), np.arange(length))  # row minus column
    parallels = {
        shift: weights[offset == shift].mean() for shift in range(-(length // 2), length // 2 + 1)
    }
    band = np.where(abs(offset) <= 2, weights, 0).sum(axis=1).mean()
    sentence = sentence_numbers(separators)
    inside = (np.arange(length) > 0) & ~separators
    same = (sentence[:, None] == sentence) & inside  # columns of words in the row's own sentence
    other = (sentence[:, None] != sentence) & inside
    entropy = -np.sum(weights * np.log(np.maximum(weights, 1e-12)), axis=1).mean() / np.log(length)
    two = float(separators.sum() > 1)
    found = [
        columns[0],
        columns[:3].sum(),
        parallels[0],
        parallels[1],
        parallels[-1],
        max(parallels.values()),
        band,
    ]
    found += [two * _above_chance(weights, chosen) for chosen in (same, other)]
    return np.array([*found, two, entropy])


def _above_chance(weights: np.ndarray, chosen: np.ndarray) -> float:
    """Attention to the chosen cells minus what uniform attention would give them, mean over rows."""
    return float(np.where(chosen, weights, 0).sum(axis=1).mean() - chosen.mean())


def statistics_of(maps: torch.Tensor, separators: torch.Tensor) -> torch.Tensor:
    """:func:`map_statistics` of many maps of one length.

    Args:
        maps: of one length, shape (maps, tokens, tokens), rows sum to 1, padding cut off.
        separators: True at [SEP], shape (maps, tokens).

    Returns:
        Shape (maps, statistics), in the order of :data:`STATISTICS`.
    """
    maps = maps.float()
    length = maps.shape[-1]
    parallels = _parallels(maps)
    middle = length - 1
    near = parallels[
        :, middle - length // 2 : middle + length // 2 + 1
    ]  # the others are too short to tell
    counts = length - abs(torch.arange(-middle, length, device=maps.device))
    band = (parallels * counts)[:, max(middle - 2, 0) : middle + 3].sum(dim=1) / length
    columns = maps.mean(dim=1).sort(dim=1, descending=True).values
    entropy = torch.special.entr(maps.clamp_min(1e-12)).sum(dim=2).mean(dim=1) / np.log(length)
    two = (separators.sum(dim=1) > 1).float()
    found = [
        columns[:, 0],
        columns[:, :3].sum(dim=1),
        parallels[:, middle],
        parallels[:, middle + 1],
        parallels[:, middle - 1],
    ]
    found += [
        near.amax(dim=1),
        band,
        *(two * above for above in _within_sentences(maps, separators)),
        two,
        entropy,
    ]
    return torch.stack(found, dim=1)


def _parallels(maps: torch.Tensor) -> torch.Tensor:
    """Mean weight on every parallel to the diagonal, by row minus column from −(L−1): shape (maps, 2L − 1)."""
    length = maps.shape[-1]
    place = torch.arange(length, device=maps.device)
    offset = (place[:, None] - place + length - 1).flatten()
    sums = maps.new_zeros(len(maps), 2 * length - 1).index_add_(1, offset, maps.flatten(1))
    return sums / torch.bincount(offset)


def _within_sentences(maps: torch.Tensor, separators: torch.Tensor) -> list[torch.Tensor]:
    """Attention to words of the own and of the other sentence, minus what even attention gives them; (maps,) each."""
    sentence = separators.cumsum(dim=1) - separators.long()  # as labels.sentence_numbers
    words = ~separators
    words[:, 0] = False
    same = sentence[:, :, None] == sentence[:, None, :]
    return [
        torch.where(cells, maps - 1 / maps.shape[-1], 0).sum(dim=2).mean(dim=1)
        for cells in (same & words[:, None, :], ~same & words[:, None, :])
    ]


# Maps that show a pattern plainly, to be looked at. ---

_EXTREMES = {
    "strongest column": "vertical",
    "strongest diagonal": "diagonal",
    "least of both": "heterogeneous",
}
_SHOWN = range(
    20, 41
)  # wordpieces: enough for a pattern, and few enough for its lines to show on a small picture


def _plainness(pattern: str, maps: torch.Tensor, separators: torch.Tensor) -> np.ndarray:
    """How much maps have of what makes a pattern plain, shape (maps,)."""
    of = dict(
        zip(STATISTICS, statistics_of(maps, separators).cpu().numpy().T.astype(float), strict=True)
    )
    column, band = (
        of["strongest column"],
        of["attention to itself"] + of["to the previous token"] + of["to the next token"],
    )
    return {
        "vertical": column,
        "diagonal": band,
        "vertical+diagonal": np.minimum(column, band),
        "block": of["same sentence, above chance"],
        "heterogeneous": -np.maximum(column, band),
    }[pattern]


def plainest_maps() -> dict[str, LabelledMap]:
    """For each pattern the labelled map that shows it most plainly.

    Of the maps that were drawn at random, have two sentences and 20 to 40
    wordpieces, and got the same label twice: the one with the strongest column
    (vertical), the most attention to itself and to both neighbours (diagonal),
    the most of whichever is less (vertical+diagonal), the most attention within
    a sentence (block), or the least of column and diagonal (heterogeneous).
    """

    def fits(one: LabelledMap) -> bool:
        same = one.pattern == one.first == one.second
        return (
            one.part == "natural"
            and same
            and len(one.separators) == 2
            and len(one.weights) in _SHOWN
        )

    def plainness(one: LabelledMap) -> float:
        return _plainness(one.pattern, *as_tensors(one.picture))[0]

    fitting = [one for one in load_maps() if fits(one)]
    return {
        pattern: max((one for one in fitting if one.pattern == pattern), key=plainness)
        for pattern in PATTERNS
    }


def extreme_heads(maps: torch.Tensor, separators: torch.Tensor) -> dict[str, Head]:
    """The heads with the strongest column, with most attention to a token itself and its neighbours, and least of both.

    Args:
        maps: of one input, shape (layers, heads, tokens, tokens).
        separators: True at [SEP], shape (tokens,).
    """
    flat = maps.flatten(0, 1)
    heads: dict[str, Head] = {}
    for name, pattern in _EXTREMES.items():
        plainness = _plainness(pattern, flat, separators.expand(len(flat), -1))
        layer, head = largest(plainness.reshape(maps.shape[:2]))
        heads[name] = layer, head
    return heads
