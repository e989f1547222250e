"""How good the classifiers are: nested cross-validation by head (§4.1), kept beside the network that it speaks for.

A head shows much the same map for every input, and fine-tuning changes few
heads, so all labelled maps of one (layer, head) stay on one side of every
split, whatever their task. Each of five folds is the test fold once. The next
fold then chooses a design among the candidates, the chosen one is trained anew
on all but the test fold, and the test fold is scored once.

``python -m pattern_trainer``, beside the package, validates both classifiers and trains the network
anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ..cache import file_sha256
from ..common import one_of
from ..statistics import Bootstrap, Seed, whole_and_resampled
from . import classifiers
from .classifiers import WEIGHTS, Design, check_maps, map_statistics, statistics_of
from .labels import FOLDER, PATTERNS, Picture, load_maps, targets

PAPER_F1 = 0.86  # §4.1; whether micro or macro, and on which maps, is not said
FILE = Path(__file__).parent / "validation.json"
# By kind of classifier what the validation fold chooses among: designs, and inverse strengths of
# the regression's penalty.
CANDIDATES: dict[str, tuple] = {
    "cnn": tuple(Design(size=size, separators=sees) for size in (24, 32) for sees in (False, True)),
    "baseline": (0.1, 1.0, 10.0, 100.0),
}
NETWORK, REGRESSION, LABELLINGS = (
    "network",
    "logistic regression",
    "one labelling against the other",
)


@dataclass(frozen=True)
class Fold:
    """One round: which candidate the validation fold chose, and its predictions of the test fold.

    Attributes:
        test: indices of the labelled maps.
        predicted: indices into PATTERNS, one per test map.
        chosen: the candidate.
        scores: each candidate's macro F1 on the validation fold.
    """

    test: list[int]
    predicted: list[int]
    chosen: dict | float
    scores: list[float]


def fitted_regression(
    pictures: Sequence[Picture], patterns: np.ndarray, strength: float
) -> Pipeline:
    """Logistic regression, fitted to the statistics of maps, which it scales to equal variance first."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=10_000))
    return model.fit(features_of(pictures), patterns)


def features_of(pictures: Sequence[Picture]) -> np.ndarray:
    """Statistics of maps as the regression reads them, shape (pictures, statistics)."""
    return np.stack([map_statistics(picture.weights, picture.separators) for picture in pictures])


def best_candidate(kind: str, rounds: Sequence[Fold]):
    """The candidate with the best mean score on the validation folds, for a classifier trained on all maps."""
    return CANDIDATES[kind][int(np.mean([fold.scores for fold in rounds], axis=0).argmax())]


class Logistic:
    """A fitted logistic regression, in the place of the network.

    Args:
        model: from :func:`fitted_regression`.
    """

    def __init__(self, model: Pipeline):
        self.model = model

    def to(self, device: torch.device) -> Logistic:
        """Itself: the statistics are computed where the maps are, the rest on the CPU."""
        return self

    def predict(self, maps: torch.Tensor, separators: torch.Tensor) -> np.ndarray:
        """The pattern of each map; as :meth:`bertology_utils.patterns.classifiers.PatternCNN.predict`."""
        check_maps(maps)
        return self.model.predict(statistics_of(maps, separators).cpu().numpy())


@lru_cache(maxsize=1)
def load_logistic() -> Logistic:
    """Logistic regression fitted to all labelled maps, with the penalty that the cross-validation prefers."""
    labelled, strength = load_maps(), best_candidate("baseline", load_rounds("baseline"))
    return Logistic(
        fitted_regression([one.picture for one in labelled], targets(labelled), strength)
    )


# What the cross-validation found. ---


def load_rounds(kind: str) -> list[Fold]:
    """The rounds of one kind of classifier, "cnn" or "baseline".

    Raises:
        ValueError: unknown kind, or the labelled maps or the network are not
            those of the cross-validation.
    """
    one_of("kind of classifier", kind, CANDIDATES)
    content = json.loads(FILE.read_text())
    for name, fingerprint in fingerprints().items():
        if content[name] != fingerprint:
            raise ValueError(
                f"{FILE.name} was made with another {name}; make it anew: python -m pattern_trainer"
            )
    return [Fold(**fold) for fold in content[kind]]


def fingerprints() -> dict[str, str]:
    """SHA-256 of the labelled maps and of the network, by file, to which a validation belongs."""
    files = {name: FOLDER / name for name in ("labels.csv", "maps.safetensors")} | {
        "cnn.safetensors": WEIGHTS
    }
    return {name: file_sha256(path) for name, path in files.items()}


@dataclass(frozen=True)
class Evidence:
    """True labels of maps with out-of-fold predictions.

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

    @property
    def heads(self) -> int:
        """Number of heads that the maps are from."""
        return len(np.unique(self.groups))

    @property
    def counts(self) -> np.ndarray:
        """How many maps of each head and pattern are named as each pattern, shape (heads, patterns, patterns)."""
        _, numbers = np.unique(self.groups, return_inverse=True)
        counts = np.zeros((self.heads, len(PATTERNS), len(PATTERNS)), dtype=int)
        np.add.at(counts, (numbers, self.true, self.predicted), 1)
        return counts

    def confusions(self, seed: Seed) -> np.ndarray:
        """Counts of true patterns (rows) named as each pattern (columns): of all heads, then of resampled ones.

        All maps of a drawn head come along.

        Returns:
            Shape (1 + resamples, patterns, patterns).
        """
        return np.tensordot(
            whole_and_resampled(self.heads, seed), self.counts.astype(float), axes=1
        )


def load_judges(folder: Path = FOLDER) -> dict[str, Evidence]:
    """Who named the labelled maps, against the settled labels.

    Args:
        folder: of the maps; those by norm are named by classifiers that were trained on weights,
            and saw none by norm.

    Returns:
        "network" and "logistic regression", of maps of weights each of those whose head it had not
        seen; "first labelling" and "second labelling", which are flattered, as each was a vote in
        what was settled; and "one labelling against the other", which is not.

    Raises:
        ValueError: as :func:`load_rounds`.
    """
    labelled = load_maps(folder)
    numbers = {
        group: number for number, group in enumerate(sorted({one.group for one in labelled}))
    }
    groups = np.array([numbers[one.group] for one in labelled])
    settled, first, second = (targets(labelled, by) for by in ("pattern", "first", "second"))
    if folder == FOLDER:
        named = {
            name: _out_of_fold(kind) for name, kind in ((NETWORK, "cnn"), (REGRESSION, "baseline"))
        }
    else:
        pictures = [one.picture for one in labelled]
        named = {
            NETWORK: classifiers.classify(classifiers.load_network(), pictures),
            REGRESSION: load_logistic().model.predict(features_of(pictures)),
        }
    judges = {name: Evidence(settled, predicted, groups) for name, predicted in named.items()}
    return judges | {
        "first labelling": Evidence(settled, first, groups),
        "second labelling": Evidence(settled, second, groups),
        LABELLINGS: Evidence(first, second, groups),
    }


def _out_of_fold(kind: str) -> np.ndarray:
    """What a kind of classifier calls each labelled map, trained on other heads' maps, shape (maps,)."""
    rounds = load_rounds(kind)
    predicted = np.full(sum(len(fold.test) for fold in rounds), -1)
    for fold in rounds:
        predicted[fold.test] = fold.predicted
    return predicted


def f1_scores(found: Evidence, seed: Seed) -> dict[str, Bootstrap]:
    """F1 with its interval, heads resampled: "macro F1", "micro F1", and that of every pattern by its name.

    Macro F1 is the mean over the patterns that occur; micro F1, with one pattern per map, the share
    named right.
    """
    counts = found.confusions(seed)
    right = np.diagonal(counts, axis1=1, axis2=2)
    true, predicted = counts.sum(axis=2), counts.sum(axis=1)  # (1 + resamples, patterns) each
    f1 = 2 * right / np.maximum(true + predicted, 1)
    macro = (f1 * (true > 0)).sum(axis=1) / (true > 0).sum(axis=1)
    micro = right.sum(axis=1) / counts.sum(axis=(1, 2))
    by_name = {"macro F1": macro, "micro F1": micro, **dict(zip(PATTERNS, f1.T, strict=True))}
    return {name: Bootstrap.of(values, found.heads, seed) for name, values in by_name.items()}


def label_shares(found: Evidence, seed: Seed) -> list[Bootstrap]:
    """Share of every pattern among the settled labels, heads resampled; needs no classifier."""
    counts = found.confusions(seed)
    shares = counts.sum(axis=2) / counts.sum(axis=(1, 2))[:, None]  # (1 + resamples, patterns)
    return [Bootstrap.of(share, found.heads, seed) for share in shares.T]
