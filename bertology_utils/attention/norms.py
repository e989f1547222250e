"""Any measurement, fed with what attention carries instead of with its weights."""

from __future__ import annotations

from typing import Any

import torch

from ..common import WEIGHINGS, one_of
from .maps import Batch, Measurement, begin


class ByNorm:
    """A measurement that is fed with a_ij ‖f(x_j)‖, rows summing to 1; see :mod:`bertology_utils.attention.carried`.

    Args:
        measurement: see :class:`bertology_utils.attention.Measurement`.

    Raises:
        ValueError: the measurement says itself that it is weighed otherwise.
    """

    weighing = "norm"  # what ``observe`` looks at

    def __init__(self, measurement: Measurement):
        _refuse_other(measurement, self.weighing)
        self.measurement = measurement

    def start(self, batch: Batch) -> None:
        """Tell the measurement of the batch."""
        begin(self.measurement, batch)

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Take in one layer, by norm already; ``observe`` sees to that."""
        self.measurement.update(layer, maps, batch)

    def compute(self) -> Any:
        """What the measurement computes."""
        return self.measurement.compute()


class Exchanged(ByNorm):
    """As a control, by norm with the lengths ‖f(x)‖ exchanged among the tokens of an input, in every head by other lots.

    Args:
        measurement: any.
        seed: of the lots.
    """

    def __init__(self, measurement: Measurement, seed: int):
        super().__init__(measurement)
        self._random = torch.Generator().manual_seed(seed)

    def exchange(self, lengths: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Exchange lengths, shape (examples, heads, tokens), among the tokens that ``mask``, (examples, tokens), has."""
        real = mask[:, None].expand_as(lengths)
        lots = torch.rand(lengths.shape, generator=self._random).to(lengths.device).masked_fill(~real, 2.0)
        drawn = lots.argsort(dim=2)  # real tokens first, by lot
        places = torch.sort((~real).to(torch.uint8), dim=2, stable=True).indices  # real tokens first, in their order
        return torch.zeros_like(lengths).scatter(2, places, lengths.gather(2, drawn))


def weighed(measurement: Measurement, weighing: str) -> Measurement:
    """A measurement of attention weights, or of what they carry.

    Args:
        measurement: any.
        weighing: "weight" or "norm".

    Raises:
        ValueError: another weighing, or a measurement that says itself that it is weighed otherwise.
    """
    if one_of("weighing", weighing, WEIGHINGS) == "weight":
        _refuse_other(measurement, weighing)
    return ByNorm(measurement) if weighing == "norm" else measurement


def _refuse_other(measurement: Measurement, weighing: str) -> None:
    own = getattr(measurement, "weighing", weighing)
    if own != weighing:
        raise ValueError(
            f"{type(measurement).__name__} is weighed by {own} and cannot be wrapped to be weighed by {weighing};"
            f" make it with weighing={weighing!r}"
        )
