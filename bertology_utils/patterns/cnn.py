"""The classifier of attention maps: eight convolutional layers with ReLU (§4.1)."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from safetensors import safe_open
from torch import nn

from ..common.cache import write_atomically
from .augment import Picture, augmented
from .images import to_images
from .labelled_maps import PATTERNS

WEIGHTS = Path(__file__).parent / "cnn.safetensors"
MAPS_AT_ONCE = 512  # bounds the memory of classifying
BATCH = 32
RATE = 2e-3  # peak learning rate


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
            layers += [nn.Conv2d(channels, factor * design.width, kernel_size=3, padding=1), nn.ReLU(inplace=True)]
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
        """What this network looks at; see :func:`bertology_utils.patterns.images.to_images`."""
        return to_images(maps, separators if self.design.separators else None, self.design.size)

    def predict(self, maps: torch.Tensor, separators: torch.Tensor) -> np.ndarray:
        """The pattern of each map.

        Args:
            maps: maps of one length, shape (maps, tokens, tokens), padding cut off.
            separators: True at [SEP], shape (maps, tokens).

        Returns:
            Indices into PATTERNS, shape (maps,).

        Raises:
            ValueError: these are no attention maps; see ``images.check_maps``.
        """
        with torch.inference_mode():
            parts = zip(maps.split(MAPS_AT_ONCE), separators.split(MAPS_AT_ONCE), strict=True)
            # On CPUs convolutions over this order of the memory take half the time.
            scores = [self(self.images(*part).contiguous(memory_format=torch.channels_last)) for part in parts]
        return torch.cat(scores).argmax(dim=1).cpu().numpy()


def train(pictures: Sequence[Picture], patterns: np.ndarray, design: Design, seed: int) -> PatternCNN:
    """Train a network on labelled maps; on two CPU cores about half a minute for 300 maps.

    Args:
        pictures: the maps.
        patterns: indices into PATTERNS, shape (maps,).
        design: of the network.
        seed: of its first weights, the order of the maps, the augmentation and dropout.

    Returns:
        The network in evaluation mode.
    """
    rng = np.random.default_rng(seed)
    targets = torch.from_numpy(np.asarray(patterns, dtype=np.int64))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = PatternCNN(design)
        for layer in network.layers:
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight)  # without it eight layers with ReLU hardly start to learn
                assert layer.bias is not None  # PatternCNN makes it
                nn.init.zeros_(layer.bias)
        steps = design.epochs * -(-len(pictures) // BATCH)
        optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
        for _ in range(design.epochs):
            for rows in np.array_split(rng.permutation(len(pictures)), -(-len(pictures) // BATCH)):
                images = torch.cat([_image(network, augmented(pictures[row], rng)) for row in rows])
                # Smoothed labels: two annotators give one map in ten different ones.
                loss = nn.functional.cross_entropy(network(images), targets[rows], label_smoothing=0.1)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
    return network.eval()


def classify(network: PatternCNN, pictures: Sequence[Picture]) -> np.ndarray:
    """The pattern of each picture, of any lengths: indices into PATTERNS, shape (pictures,)."""
    device = next(network.parameters()).device
    with torch.inference_mode():
        images = (_image(network, picture).to(device) for picture in pictures)
        return torch.cat([network(image) for image in images]).argmax(dim=1).cpu().numpy()


def _image(network: PatternCNN, picture: Picture) -> torch.Tensor:
    weights, separators = (
        torch.from_numpy(np.ascontiguousarray(part))[None] for part in (picture.weights, picture.separators)
    )
    return network.images(weights, separators)  # (1, channels, size, size)


def save(network: PatternCNN) -> None:
    """Write the network that the package ships: weights, and the design as metadata."""
    content = safetensors.torch.save(network.state_dict(), {"design": json.dumps(asdict(network.design))})
    write_atomically(WEIGHTS, content)


@lru_cache(maxsize=1)
def load_network() -> PatternCNN:
    """The network that the package ships, trained on all labelled maps; in evaluation mode."""
    with safe_open(WEIGHTS, "pt") as file:
        network = PatternCNN(Design(**json.loads(file.metadata()["design"])))
        network.load_state_dict({name: file.get_tensor(name) for name in file.keys()})
    return network.eval()
