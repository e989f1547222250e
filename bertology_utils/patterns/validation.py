"""How good the classifier is: nested cross-validation by head (§4.1).

A head shows much the same map for every input, and fine-tuning changes few
heads, so all labelled maps of one (layer, head) stay on one side of every
split, whatever their task. Each of five folds is the
test fold once. The next fold then chooses a design among the candidates, the
chosen one is trained anew on all but the test fold, and the test fold is scored
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ..common import track
from . import cnn
from .augment import Picture, picture
from .baseline import map_statistics
from .labelled_maps import PATTERNS, LabelledMap

PAPER_F1 = 0.86  # §4.1; whether micro or macro, and on which maps, is not said
FOLDS = 5
CNN_CANDIDATES = tuple(cnn.Design(size=size, separators=sees) for size in (24, 32) for sees in (False, True))
BASELINE_CANDIDATES = (0.1, 1.0, 10.0, 100.0)  # inverse strength of the logistic regression's penalty


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


def folds(labelled: Sequence[LabelledMap], seed: int) -> list[np.ndarray]:
    """Indices of the maps in each fold; no head in two folds, patterns spread evenly."""
    groups = ["/".join(map(str, labelled_map.group)) for labelled_map in labelled]
    splitter = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    return [test for _, test in splitter.split(groups, targets(labelled), groups)]


def targets(labelled: Sequence[LabelledMap]) -> np.ndarray:
    """Indices into PATTERNS, shape (maps,)."""
    return np.array([PATTERNS.index(labelled_map.pattern) for labelled_map in labelled])


def nested(labelled: Sequence[LabelledMap], fit: Callable, candidates: Sequence, seed: int) -> list[Fold]:
    """Nested cross-validation of one kind of classifier.

    Args:
        labelled: the maps.
        fit: :func:`fit_cnn` or :func:`fit_baseline`.
        candidates: what the validation fold chooses among; the first of equals.
        seed: of the folds and of every training.

    Returns:
        One round per fold.
    """
    pictures, patterns, parts = list(map(picture, labelled)), targets(labelled), folds(labelled, seed)

    def predictions(train: np.ndarray, held_out: np.ndarray, candidate) -> np.ndarray:
        predict = fit([pictures[row] for row in train], patterns[train], candidate, seed)
        return predict([pictures[row] for row in held_out])

    rounds = []
    for number in track(range(FOLDS), f"cross-validating the {fit.__name__.removeprefix('fit_')}"):
        test, validation = parts[number], parts[(number + 1) % FOLDS]
        rest = np.setdiff1d(np.arange(len(labelled)), test)
        train = np.setdiff1d(rest, validation)
        scores = [macro_f1(patterns[validation], predictions(train, validation, candidate)) for candidate in candidates]
        chosen = candidates[int(np.argmax(scores))]
        predicted = predictions(rest, test, chosen)
        rounds.append(Fold(test.tolist(), predicted.tolist(), _plain(chosen), [round(score, 6) for score in scores]))
    return rounds


def best_candidate(rounds: Sequence[Fold], candidates: Sequence):
    """The candidate with the best mean score on the validation folds, for the network trained on all maps."""
    return candidates[int(np.mean([fold.scores for fold in rounds], axis=0).argmax())]


def macro_f1(true: np.ndarray, predicted: np.ndarray) -> float:
    """F1 averaged over the patterns that occur in ``true``."""
    return float(f1_score(true, predicted, labels=np.unique(true), average="macro", zero_division=0))


def micro_f1(true: np.ndarray, predicted: np.ndarray) -> float:
    """F1 over all maps; with one pattern per map this is the accuracy."""
    return float(np.mean(true == predicted))


def f1_by_pattern(true: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """F1 of each pattern, shape (patterns,)."""
    return f1_score(true, predicted, labels=range(len(PATTERNS)), average=None, zero_division=0)


def fit_cnn(pictures: Sequence[Picture], patterns: np.ndarray, design: cnn.Design, seed: int) -> Callable:
    """A trained network, as a function from pictures to predicted patterns."""
    network = cnn.train(pictures, patterns, design, seed)
    return lambda others: cnn.classify(network, others)


def fit_baseline(pictures: Sequence[Picture], patterns: np.ndarray, strength: float, seed: int) -> Callable:
    """Logistic regression on map statistics, as a function from pictures to predicted patterns; draws nothing."""
    model = fitted_baseline(pictures, patterns, strength)
    return lambda others: model.predict(_statistics(others))


def fitted_baseline(pictures: Sequence[Picture], patterns: np.ndarray, strength: float) -> Pipeline:
    """Logistic regression, fitted to the statistics of maps, which it scales to equal variance first."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=10_000))
    return model.fit(_statistics(pictures), patterns)


def _statistics(pictures: Sequence[Picture]) -> np.ndarray:
    return np.stack([map_statistics(picture.weights, picture.separators) for picture in pictures])  # (pictures, statistics)


def _plain(candidate) -> dict | float:
    return asdict(candidate) if isinstance(candidate, cnn.Design) else candidate
