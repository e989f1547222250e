"""What the cross-validation found, kept beside the network that it speaks for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ..common import one_of
from ..common.cache import file_sha256, write_atomically
from ..statistics import Bootstrap, Seed, bootstrap
from . import labelled_maps
from .cnn import WEIGHTS
from .validation import Fold, targets

FILE = Path(__file__).parent / "validation.json"
KINDS = ("cnn", "baseline")


@dataclass(frozen=True)
class Evidence:
    """Every labelled map with what a network that had not seen its head made of it.

    Attributes:
        true, predicted: indices into PATTERNS, shape (maps,).
        groups: the head of each map, shape (maps,); numbered.
    """

    true: np.ndarray
    predicted: np.ndarray
    groups: np.ndarray

    def of(self, chosen: np.ndarray) -> Evidence:
        """The same for some of the maps; ``chosen`` is boolean, shape (maps,)."""
        return Evidence(self.true[chosen], self.predicted[chosen], self.groups[chosen])

    def resampled(self, statistic: Callable[[np.ndarray, np.ndarray], float], seed: Seed) -> Bootstrap:
        """Bootstrap ``statistic(true, predicted)`` over heads; all maps of a drawn head come along."""
        _, numbers = np.unique(self.groups, return_inverse=True)
        members = [np.flatnonzero(numbers == number) for number in range(numbers.max() + 1)]

        def of_heads(drawn: np.ndarray) -> float:
            rows = np.concatenate([members[number] for number in drawn])
            return statistic(self.true[rows], self.predicted[rows])

        return bootstrap(of_heads, len(members), seed)


def write(rounds: Mapping[str, Sequence[Fold]], seed: int) -> None:
    """Keep the cross-validations of every kind, with fingerprints of the labelled maps and the network."""
    content = {"seed": seed} | _fingerprints() | {kind: [asdict(fold) for fold in rounds[kind]] for kind in KINDS}
    write_atomically(FILE, (json.dumps(content, separators=(",", ":")).replace("},{", "},\n{") + "\n").encode())


def load_rounds(kind: str) -> list[Fold]:
    """The rounds of one kind of classifier, "cnn" or "baseline".

    Raises:
        ValueError: unknown kind, or the labelled maps or the network are not
            those of the cross-validation.
    """
    one_of("kind of classifier", kind, KINDS)
    content = json.loads(FILE.read_text())
    for name, fingerprint in _fingerprints().items():
        if content[name] != fingerprint:
            raise ValueError(f"{FILE.name} was made with another {name}; make it anew: python -m bertology_utils.patterns")
    return [Fold(**fold) for fold in content[kind]]


def load_evidence(kind: str = "cnn") -> Evidence:
    """Predictions of all labelled maps, each by a classifier that had not seen its head; raises as :func:`load_rounds`."""
    labelled = labelled_maps.load_maps()
    predicted = np.full(len(labelled), -1)
    for fold in load_rounds(kind):
        predicted[fold.test] = fold.predicted
    heads = {group: number for number, group in enumerate(sorted({labelled_map.group for labelled_map in labelled}))}
    return Evidence(targets(labelled), predicted, np.array([heads[labelled_map.group] for labelled_map in labelled]))


def natural() -> np.ndarray:
    """True for labelled maps that were drawn at random, shape (maps,); see the data card."""
    return np.array([labelled_map.part == "natural" for labelled_map in labelled_maps.load_maps()])


def _fingerprints() -> dict[str, str]:
    files = {name: labelled_maps.FOLDER / name for name in ("labels.csv", "maps.safetensors")} | {"cnn.safetensors": WEIGHTS}
    return {name: file_sha256(path) for name, path in files.items()}
