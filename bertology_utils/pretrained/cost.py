"""What looking at a pre-trained encoder costs: time and memory, estimated beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..encoders.cost import NUMBER, PROCESS, Size

STARTUP = 60  # seconds for importing, reading and judging
# Of the speed at which matrices multiply, what forward passes reach with all measurements (two cores, measured).
SHARE = 0.3


@dataclass(frozen=True)
class Looking:
    """What notebook 8 does, in wordpieces that go through the encoder.

    Attributes:
        size: of the encoder.
        wordpieces: of all inputs, each as often as it goes through.
        longest: input, in wordpieces.
    """

    size: Size
    wordpieces: int
    longest: int

    @classmethod
    def of(cls, size: Size, tasks: Sequence[Sequence[int]], frames: Sequence[int], by_code: Sequence[int] = ()) -> Looking:
        """Of lengths in wordpieces.

        Args:
            size: of the encoder.
            tasks: lengths of each task's measured inputs; those of the first go through random weights, too.
            frames: lengths of FrameNet's sentences; they, too, go through random weights as well.
            by_code: of those that the published code would keep.
        """
        lengths = [length for of_task in tasks for length in of_task]
        once_more = tasks[0] if tasks else []
        wordpieces = sum(lengths) + sum(once_more) + 2 * sum(frames) + sum(by_code)
        return cls(size, wordpieces, max([*lengths, *frames, *by_code, 1]))

    @property
    def operations(self) -> float:
        """Multiplications and additions: two for each weight and wordpiece, and the products of maps and vectors."""
        products = 4 * self.size.layers * self.size.hidden * self.longest
        return float(self.wordpieces) * (2 * self.size.matrices + products)

    def seconds(self, speed: float) -> float:
        """Estimated time, given how many operations per second a product of matrices reaches."""
        return STARTUP + self.operations / (speed * SHARE)

    @property
    def memory(self) -> float:
        """Estimated peak memory in bytes: the encoder twice, and a batch of 32 of the longest inputs with its maps."""
        maps = 32 * self.size.heads * self.longest**2 * 8
        states = 32 * self.longest * (self.size.inner + 8 * self.size.hidden)
        return 2.5 * PROCESS + NUMBER * (2 * self.size.weights + maps + states)
