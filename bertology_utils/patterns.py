"""The five patterns of self-attention maps (§4.1, Figure 1): labelled maps, and what tells the patterns apart.

There are 640 labelled maps of two encoders, and maps whose label is known by construction. A logistic
regression on eleven statistics of a map and a network of eight convolutional layers
(``benchmarks/pattern_network.py`` trains it) name the patterns of any map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

from .attention import Measure
from .batches import Batch

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.pipeline import Pipeline

FOLDER = Path(__file__).parent / "labelled_maps"
# Whose maps are labelled: folders by a study's entry ``model``.
ENCODERS = {"e5": "e5", "embedded": "minilm"}
# The paper's five classes (§4.1, Figure 1).
PATTERNS = ("vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous")
SHORTEST = 4  # wordpieces; in shorter maps every pattern looks alike


@cache
def load_maps() -> pd.DataFrame:
    """All labelled maps, one a row.

    Returns:
        "encoder", as a study's entry ``model`` names it; "pattern", the label; "first", "second"
        and "third", what single readings said; "part", "natural" (drawn at random) or "enriched"
        (drawn for rare patterns); "state", "pre-trained" or "fine-tuned"; "task", where the input
        comes from, and "example", its row; "layer" and "head", from 0; "fold", in which a head's
        maps are held out together; "network", what a network called the map that was trained on
        the other folds; "weights", the map, of shape (tokens, tokens) and with rows that sum to 1;
        "separators", the positions of [SEP].
    """
    import pandas as pd

    parts = []
    for encoder, folder in ENCODERS.items():
        weights = load_file(FOLDER / folder / "maps.safetensors")
        maps = pd.read_csv(FOLDER / folder / "labels.csv", dtype={"id": str, "separators": str})
        singles = [weights[name].float().numpy() for name in maps.pop("id")]  # of half precision
        maps["weights"] = [one / one.sum(axis=1, keepdims=True) for one in singles]
        maps["separators"] = [tuple(map(int, text.split())) for text in maps["separators"]]
        parts.append(maps.drop(columns="length").assign(encoder=encoder))
    return pd.concat(parts, ignore_index=True)


Picture = tuple[np.ndarray, np.ndarray]  # a map, (tokens, tokens), and True at [SEP], (tokens,)


def pictures(maps: pd.DataFrame) -> list[Picture]:
    """Maps as classifiers read them: weights, and where [SEP] stands."""
    return [
        (weights, np.isin(np.arange(len(weights)), separators))
        for weights, separators in zip(maps["weights"], maps["separators"], strict=True)
    ]


def indices(labels: Iterable[str]) -> np.ndarray:
    """Labels as indices into :data:`PATTERNS`, shape (maps,)."""
    return np.array([PATTERNS.index(label) for label in labels])


TOLERANCE = 0.01  # of a row's sum; half-precision maps stay well within it
WEIGHTS = Path(__file__).parent / "pattern_network.safetensors"
MAPS_AT_ONCE = 512  # bounds the memory of classifying
NO_TOKEN = -1  # an id that no wordpiece has


# What tells patterns apart: of maps of one length, (maps, tokens, tokens), padding cut off, and True at their
# [SEP], (maps, tokens), scores of each pattern, (maps, patterns).
Classifier = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def predict(classifier: Classifier, maps: torch.Tensor, separators: torch.Tensor) -> np.ndarray:
    """The pattern of each of several maps of one length: indices into PATTERNS, shape (maps,).

    Raises:
        ValueError: maps shorter than :data:`SHORTEST`, or rows that are no distributions.
    """
    off = (maps.sum(dim=2, dtype=torch.float32) - 1).abs()
    if not (maps.shape[1] >= SHORTEST and (off <= TOLERANCE).all() and (maps >= 0).all()):
        raise ValueError(
            f"a pattern needs {SHORTEST} tokens or more, and rows that are weights from 0 with a sum of"
            " 1: cut off padding, pass weights after the softmax, and see that no output is NaN"
        )
    if isinstance(classifier, nn.Module):  # goes where the maps are
        classifier.to(maps.device)
    parts = zip(maps.split(MAPS_AT_ONCE), separators.split(MAPS_AT_ONCE), strict=True)
    with torch.inference_mode():
        scores = [classifier(part.float(), at) for part, at in parts]
    return torch.cat(scores).argmax(dim=1).cpu().numpy()


def classify(classifier: Classifier, maps: Iterable[Picture]) -> np.ndarray:
    """The pattern of each map, of any lengths: indices into PATTERNS, shape (maps,)."""
    return np.concatenate([predict(classifier, *as_tensors(*one)) for one in maps])


def as_tensors(weights: np.ndarray, separators: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """One map and where its [SEP] stand as stacks of one, shapes (1, tokens, tokens) and (1, tokens)."""
    maps, at = (np.ascontiguousarray(one)[None] for one in (weights, separators))
    return torch.from_numpy(maps), torch.from_numpy(at)


# The network. ---


SIZE = 24  # the side of the picture that a map is brought to
WIDTH = 16  # channels of the first two layers; doubled after each halving until four times as many


def to_images(maps: torch.Tensor, size: int = SIZE) -> torch.Tensor:
    """Images of one size, of maps of one length: largest weight and mean weight, from 0 to 1.

    Args:
        maps: shape (maps, tokens, tokens), padding cut off.
        size: cells a side.

    Returns:
        Shape (maps, 2, size, size), in an order of the memory that halves the time on CPUs.
    """
    maps = maps.unsqueeze(1)  # (maps, 1, tokens, tokens)
    pooled = functional.adaptive_max_pool2d(maps, size), functional.adaptive_avg_pool2d(maps, size)
    images = torch.cat([(one / one.amax((2, 3), keepdim=True)).sqrt() for one in pooled], dim=1)
    return images.contiguous(memory_format=torch.channels_last)


class PatternCNN(nn.Module):
    """Images of attention maps in, one score per pattern out."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 2
        for number, factor in enumerate((1, 1, 2, 2, 4, 4, 4, 4), start=1):
            wide = factor * WIDTH
            layers += [nn.Conv2d(channels, wide, kernel_size=3, padding=1), nn.ReLU(inplace=True)]
            channels = wide
            if number in (2, 4, 6):
                layers.append(nn.MaxPool2d(2))
        self.layers = nn.Sequential(*layers)
        self.scores = nn.Linear(channels, len(PATTERNS))

    def forward(self, maps: torch.Tensor, separators: torch.Tensor) -> torch.Tensor:
        """Scores before the softmax of maps of one length; see :data:`Classifier`."""
        return self.of_images(to_images(maps))

    def of_images(self, images: torch.Tensor) -> torch.Tensor:
        """Scores before the softmax, shape (maps, patterns), of images from :func:`to_images`."""
        seen = self.layers(images)  # (maps, channels, size / 8, size / 8)
        return self.scores(functional.dropout(seen.mean(dim=(2, 3)), 0.3, self.training))


def load_network() -> PatternCNN:
    """The network that the package ships, trained on all labelled maps; in evaluation mode, on the CPU.

    A new one each time: a measurement takes its own along to another device.
    """
    network = PatternCNN()
    network.load_state_dict(load_file(WEIGHTS))
    return network.float().eval()  # whatever torch's default is


# The transparent alternative: logistic regression on statistics of a map. ---


def map_statistics(maps: torch.Tensor, separators: torch.Tensor) -> dict[str, torch.Tensor]:
    """What a reader would measure to tell the five patterns apart; all but the blocks' from 0 to 1.

    Args:
        maps: of one length, shape (maps, tokens, tokens), rows sum to 1, padding cut off.
        separators: True at [SEP], shape (maps, tokens).

    Returns:
        Eleven statistics by name, each of shape (maps,).
    """
    length = maps.shape[-1]
    place = torch.arange(length, device=maps.device)
    # Sums along every parallel to the diagonal, by row minus column: (maps, 2 · length − 1)
    offset = (place[:, None] - place + length - 1).flatten()
    sums = maps.new_zeros(len(maps), 2 * length - 1).index_add_(1, offset, maps.flatten(1))
    parallels, middle = sums / torch.bincount(offset), length - 1
    long = slice(middle - length // 2, middle + length // 2 + 1)  # others are too short to tell
    columns = maps.mean(dim=1).sort(dim=1, descending=True).values
    # [SEP] belongs to the sentence that it ends; neither it nor [CLS] is a word.
    sentence = separators.cumsum(dim=1) - separators.long()
    same = sentence[:, :, None] == sentence[:, None, :]  # (maps, tokens, tokens)
    words = (~separators & (place > 0))[:, None, :]
    two = (separators.sum(dim=1) > 1).to(maps.dtype)
    to_words = [
        two * torch.where(cells & words, maps - 1 / length, 0).sum(dim=2).mean(dim=1)
        for cells in (same, ~same)
    ]
    entropy = torch.special.entr(maps.clamp_min(1e-12)).sum(dim=2).mean(dim=1) / np.log(length)
    return {
        "strongest column": columns[:, 0],
        "three strongest columns": columns[:, :3].sum(dim=1),
        "attention to itself": parallels[:, middle],
        "to the previous token": parallels[:, middle + 1],
        "to the next token": parallels[:, middle - 1],
        "strongest parallel to the diagonal": parallels[:, long].amax(dim=1),
        "band of five": sums[:, middle - 2 : middle + 3].sum(dim=1) / length,
        "same sentence, above chance": to_words[0],
        "other sentence, above chance": to_words[1],
        "two sentences": two,
        "entropy": entropy,
    }


def statistics_of(maps: Iterable[Picture]) -> pd.DataFrame:
    """The eleven statistics of maps of any lengths, a row each; see :func:`map_statistics`."""
    import pandas as pd

    each = (map_statistics(*as_tensors(*one)) for one in maps)
    return pd.DataFrame({name: float(value) for name, value in one.items()} for one in each)


def regression() -> Pipeline:
    """Logistic regression, not fitted yet, on statistics that it scales to equal variance first."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # It goes on until rounding, which differs from processor to processor, no longer matters.
    return make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cg", tol=1e-9))


@cache
def load_regression() -> Classifier:
    """Logistic regression fitted to all labelled maps."""
    labelled = load_maps()
    statistics = statistics_of(pictures(labelled))
    fitted = regression().fit(statistics.values, indices(labelled["pattern"]))

    def scores(maps: torch.Tensor, separators: torch.Tensor) -> torch.Tensor:
        each = torch.stack([*map_statistics(maps, separators).values()], dim=1)
        return torch.from_numpy(fitted.decision_function(each.double().cpu().numpy()))

    return scores


# All maps of a pass. ---


def name_patterns(classifier: Classifier, separator: int | None) -> Measure:
    """Measure: the pattern of every map (§4.1), of each example shape (heads,); of one that is too short, (0,).

    Args:
        classifier: such as :func:`load_network`.
        separator: the tokenizer's id of [SEP]; None if it has none.
    """

    def measure(maps: torch.Tensor, batch: Batch) -> list[np.ndarray]:
        lengths, heads = batch.lengths, maps.shape[1]
        patterns = [np.empty(0, dtype=int)] * len(lengths)
        # Maps are cut to their real tokens, and only equal ones stack.
        for length in sorted({one for one in lengths.tolist() if one >= SHORTEST}):
            rows = (lengths == length).nonzero()[:, 0]
            # (examples, length): their real positions
            at = batch.mask[rows].nonzero()[:, 1].view(len(rows), length)
            ids = batch.inputs["input_ids"][rows].gather(1, at)
            is_separator = ids == (NO_TOKEN if separator is None else separator)
            part = maps[rows].take_along_dim(at[:, None, :, None], 2)
            part = part.take_along_dim(at[:, None, None, :], 3)  # (examples, heads, length, length)
            separators = is_separator.repeat_interleave(heads, dim=0)
            named = predict(classifier, part.flatten(0, 1), separators)
            for row, of_heads in zip(rows.tolist(), named.reshape(-1, heads), strict=True):
                patterns[row] = of_heads
        return patterns

    return measure
