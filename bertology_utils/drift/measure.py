"""How far fine-tuning moves each head's attention (§4.3, Fig 5)."""

import numpy as np
import torch

from ..attention import Batch, Measurement, attention_maps, begin
from ..common import PROTOCOLS, WEIGHINGS, one_of
from ..statistics import RESAMPLES, Bootstrap, Seed, resampled_means

OFFICIAL_LENGTH = 200  # the published code pads every input to this many tokens


def map_cosine(maps: torch.Tensor, others: torch.Tensor, mask: torch.Tensor, protocol: str = "paper") -> torch.Tensor:
    """Cosine similarity of flattened attention maps, per example and head (§4.3).

    Args:
        maps, others: shape (examples, heads, tokens, tokens).
        mask: True at real tokens, shape (examples, tokens).
        protocol: "paper" compares the L × L maps of the real tokens. "official"
            flattens all that is there, as the published code did: rows of
            padded queries are compared, too.

    Returns:
        float64 tensor of shape (examples, heads), from 0 to 1.
    """
    one_of("protocol", protocol, PROTOCOLS)
    if protocol == "paper":
        # Padded keys are 0 already; only padded queries have to go.
        real = mask[:, None, :, None]  # (examples, 1, queries, 1)
        maps, others = maps * real, others * real
    maps, others = maps.double().flatten(2), others.double().flatten(2)  # (examples, heads, queries · keys)
    return torch.nn.functional.cosine_similarity(maps, others, dim=2)


class Drift:
    """Measurement: similarity between the observed model's maps and a reference model's.

    Args:
        reference: a model with as many layers and heads, in evaluation mode.
            Edits of the observed model, such as disabled heads, do not reach it.
        protocol: see :func:`map_cosine`.
        of_reference: further measurements of the reference model, fed from the
            same pass, weighed in the same way; they compute when they are asked to.
        weighing: "weight", or "norm": the maps of both models are of what the weights carry.

    Raises:
        ValueError: another protocol or weighing; a measurement of the reference that is to be weighed otherwise.
    """

    def __init__(
        self,
        reference,
        protocol: str = "paper",
        of_reference: dict[str, Measurement] | None = None,
        weighing: str = "weight",
    ):
        self.reference = reference
        self.protocol = one_of("protocol", protocol, PROTOCOLS)
        self.weighing = one_of("weighing", weighing, WEIGHINGS)  # ``observe`` looks at it, too
        self.of_reference = of_reference or {}
        for name, measurement in self.of_reference.items():
            if getattr(measurement, "weighing", weighing) != weighing:
                raise ValueError(f"{name!r} of the reference is to be weighed otherwise than the drift, by {weighing}")
        self._reference_maps: dict[int, torch.Tensor] = {}  # by layer, of the current batch, until they are compared
        self._layers = 0  # of the reference
        self._rows: dict[int, np.ndarray] = {}

    def start(self, batch: Batch) -> None:
        """Run the reference model on the batch; its maps are held for this batch only."""
        self._check_all_compared()
        reference_maps = attention_maps(self.reference, batch, self.weighing)
        for measurement in self.of_reference.values():
            begin(measurement, batch)
            for layer, maps in enumerate(reference_maps):
                measurement.update(layer, maps, batch)
        self._reference_maps, self._layers = dict(enumerate(reference_maps)), len(reference_maps)
        shape = (self._layers, reference_maps[0].shape[1])  # (layers, heads)
        self._rows |= {index: np.full(shape, np.nan) for index in batch.index}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Compare one layer; see :class:`bertology_utils.attention.Measurement`.

        Raises:
            ValueError: the reference has fewer layers, or another number of heads.
        """
        if layer >= self._layers:
            raise ValueError(
                f"the reference has {self._layers} layers and the observed model has more;"
                " drift compares layer by layer, so give a reference of the same shape"
            )
        others = self._reference_maps[layer]
        if maps.shape != others.shape:
            raise ValueError(
                f"the reference has {others.shape[1]} heads per layer and the observed model"
                f" {maps.shape[1]}; drift compares head by head, so give a reference of the same shape"
            )
        del self._reference_maps[layer]  # compared once, then dropped
        similarity = map_cosine(maps, others, batch.mask, self.protocol).cpu().numpy()
        for row, index in enumerate(batch.index):
            self._rows[index][layer] = similarity[row]

    def compute(self) -> np.ndarray:
        """Similarities, shape (examples, layers, heads), examples in the order of the data.

        Raises:
            ValueError: no example was observed, or the reference has more layers.
        """
        self._check_all_compared()
        if not self._rows:
            raise ValueError("no example was observed, so there is nothing to compare; give at least one batch")
        return np.stack([self._rows[index] for index in sorted(self._rows)])

    def _check_all_compared(self) -> None:
        left = len(self._reference_maps)
        if left:
            raise ValueError(
                f"the reference has {self._layers} layers and the observed model {self._layers - left};"
                " drift compares layer by layer, so give a reference of the same shape"
            )


def last_layers_lead(similarity: np.ndarray, seed: Seed, count: int = 2) -> Bootstrap:
    """By how much the last layers change more than every other (§4.3).

    The smallest similarity of any other layer minus the largest of the last
    ``count``: above 0 if these are the ones that change most; NaN for a model
    with no other layers.

    Args:
        similarity: shape (examples, layers, heads).
        seed: of the resampling of examples.
        count: how many layers; the paper says two.
    """
    if similarity.shape[1] <= count:
        return Bootstrap(np.nan, np.full(RESAMPLES, np.nan), len(similarity), seed)
    by_layer = similarity.mean(axis=2)  # (examples, layers)
    means = np.vstack([by_layer.mean(axis=0), resampled_means(by_layer, seed)])  # (1 + resamples, layers)
    leads = means[:, :-count].min(axis=1) - means[:, -count:].max(axis=1)
    return Bootstrap.of(leads, len(similarity), seed)
