"""What the cross-validation found, kept beside the network that it speaks for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ..common import one_of
from ..common.cache import file_sha256, write_atomically
from ..statistics import Bootstrap, Seed, bootstrap, whole_and_resampled
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


def confusions(found: Evidence, seed: Seed) -> np.ndarray:
    """Counts of true patterns (rows) named as each pattern (columns): of all heads, then of resampled ones.

    Returns:
        Shape (1 + resamples, patterns, patterns).
    """
    groups, numbers = np.unique(found.groups, return_inverse=True)
    by_head = np.zeros((len(groups), len(labelled_maps.PATTERNS), len(labelled_maps.PATTERNS)))
    np.add.at(by_head, (numbers, found.true, found.predicted), 1)
    return np.tensordot(whole_and_resampled(len(groups), seed), by_head, axes=1)


def f1_scores(found: Evidence, seed: Seed) -> dict[str, Bootstrap]:
    """F1 with its interval, heads resampled: "macro F1", "micro F1", and that of every pattern by its name.

    As :func:`bertology_utils.patterns.validation.macro_f1` and its fellows, from the resamples' counts.
    """
    counts = confusions(found, seed)
    right = np.diagonal(counts, axis1=1, axis2=2)
    true, predicted = counts.sum(axis=2), counts.sum(axis=1)  # (1 + resamples, patterns) each
    f1 = 2 * right / np.maximum(true + predicted, 1)
    macro = (f1 * (true > 0)).sum(axis=1) / (true > 0).sum(axis=1)
    micro = right.sum(axis=1) / counts.sum(axis=(1, 2))
    heads = len(np.unique(found.groups))
    by_name = dict(zip(labelled_maps.PATTERNS, f1.T, strict=True))
    return {
        name: Bootstrap.of(values, heads, seed) for name, values in {"macro F1": macro, "micro F1": micro, **by_name}.items()
    }


def confusion(found: Evidence) -> np.ndarray:
    """How many maps of each pattern (rows) are named as each (columns), shape (patterns, patterns)."""
    counts = np.zeros((len(labelled_maps.PATTERNS),) * 2, dtype=int)
    np.add.at(counts, (found.true, found.predicted), 1)
    return counts


def label_shares(found: Evidence, seed: Seed) -> list[Bootstrap]:
    """Share of every pattern among the settled labels, heads resampled; needs no classifier."""
    counts = confusions(found, seed)
    shares = counts.sum(axis=2) / counts.sum(axis=(1, 2))[:, None]  # (1 + resamples, patterns)
    return [Bootstrap.of(share, len(np.unique(found.groups)), seed) for share in shares.T]


def f1_by_part(judges: Mapping[str, Evidence], seed: Seed) -> dict[str, dict[tuple[str, str], Bootstrap]]:
    """:func:`f1_scores` by judge and (part, name), of the natural part and of all labelled maps."""
    parts = {"natural": natural(), "all": np.ones(len(labelled_maps.load_maps()), dtype=bool)}
    return {
        who: {(part, name): one for part, chosen in parts.items() for name, one in f1_scores(found.of(chosen), seed).items()}
        for who, found in judges.items()
    }


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


def load_judges() -> dict[str, Evidence]:
    """Who named the labelled maps, against the settled labels; raises as :func:`load_rounds`.

    Returns:
        "cnn" and "baseline", each of maps whose head they had not seen; "first labelling" and "second labelling", which
        are flattered, as each was a vote in what was settled; and "one labelling against the other", which is not.
    """
    judges = {kind: load_evidence(kind) for kind in KINDS}
    labelled, groups = labelled_maps.load_maps(), judges["cnn"].groups
    first, second = (
        np.array([labelled_maps.PATTERNS.index(getattr(one, name)) for one in labelled]) for name in ("first", "second")
    )
    judges["first labelling"] = Evidence(judges["cnn"].true, first, groups)
    judges["second labelling"] = Evidence(judges["cnn"].true, second, groups)
    judges["one labelling against the other"] = Evidence(first, second, groups)
    return judges


def natural() -> np.ndarray:
    """True for labelled maps that were drawn at random, shape (maps,); see the data card."""
    return np.array([labelled_map.part == "natural" for labelled_map in labelled_maps.load_maps()])


def _fingerprints() -> dict[str, str]:
    files = {name: labelled_maps.FOLDER / name for name in ("labels.csv", "maps.safetensors")} | {"cnn.safetensors": WEIGHTS}
    return {name: file_sha256(path) for name, path in files.items()}
