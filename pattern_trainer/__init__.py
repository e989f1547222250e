"""Trains the network that tells patterns of attention maps apart (§4.1), and validates it and logistic regression.

    python -m pattern_trainer

renews ``cnn.safetensors`` and ``validation.json`` in ``bertology_utils/patterns``, in about a
quarter of an hour on two CPU cores.

Both are validated by nested cross-validation by head. A head shows much the same map for every
input, and fine-tuning changes few heads, so all labelled maps of one (layer, head) stay on one side
of every split, whatever their task. Each of five folds is the test fold once. The next fold then
chooses among the candidates, the chosen one is trained on all but the test fold, and the test fold
is predicted once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
import safetensors.torch
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from bertology_utils.cache import file_sha256, write_atomically
from bertology_utils.common import track
from bertology_utils.patterns.classifiers import (
    NETWORK,
    REGRESSION,
    VALIDATION,
    WEIGHTS,
    Design,
    PatternCNN,
    as_tensors,
    classify,
    map_statistics,
)
from bertology_utils.patterns.labels import FOLDER, SHORTEST, Picture, indices, pictures

from .changes import augmented

BATCH = 32
RATE = 2e-3  # peak learning rate
FOLDS = 5
SEED = 1  # of the folds and of every training
# What the validation fold chooses among: designs, and inverse strengths of the regression's penalty.
CANDIDATES: dict[str, tuple] = {
    NETWORK: tuple(
        Design(size=size, separators=sees) for size in (24, 32) for sees in (False, True)
    ),
    REGRESSION: (0.1, 1.0, 10.0, 100.0),
}


def train(maps: Sequence[Picture], patterns: np.ndarray, design: Design, seed: int) -> PatternCNN:
    """A network trained on labelled maps, in evaluation mode; on two CPU cores about half a minute for 300 maps.

    Args:
        maps: the maps.
        patterns: indices into PATTERNS, shape (maps,).
        design: of the network.
        seed: of its first weights, the order of the maps, the augmentation and dropout.
    """
    rng = np.random.default_rng(seed)
    targets = torch.from_numpy(np.asarray(patterns, dtype=np.int64))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = PatternCNN(design)
        for layer in network.layers:
            if isinstance(layer, nn.Conv2d):
                # Without it eight layers with ReLU hardly start to learn.
                nn.init.kaiming_normal_(layer.weight)
                assert layer.bias is not None  # PatternCNN makes it
                nn.init.zeros_(layer.bias)
        steps = design.epochs * -(-len(maps) // BATCH)
        optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
        for _ in range(design.epochs):
            for rows in np.array_split(rng.permutation(len(maps)), -(-len(maps) // BATCH)):
                changed = [as_tensors(*augmented(maps[row], rng)) for row in rows]
                images = torch.cat([network.inputs(one.float(), at) for one, at in changed])
                # Smoothed labels: two annotators give one map in ten different ones.
                loss = nn.functional.cross_entropy(
                    network(images), targets[rows], label_smoothing=0.1
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
    return network.eval()


def fit_regression(maps: Sequence[Picture], patterns: np.ndarray, strength: float) -> Pipeline:
    """Logistic regression, fitted to the statistics of maps, which it scales to equal variance first.

    Some statistics nearly tie, so that rounding moves where the solver stops, and with it the
    pattern of two or three maps of a hundred.
    """
    model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=10_000))
    return model.fit(statistics_of(maps), patterns)


def statistics_of(maps: Sequence[Picture]) -> np.ndarray:
    """Statistics of maps as the regression reads them, shape (maps, statistics)."""
    rows = [list(map_statistics(*as_tensors(*one)).values()) for one in maps]
    return np.array(rows, dtype=float)[:, :, 0]


def fit(kind: str, maps: Sequence[Picture], patterns: np.ndarray, candidate, seed: int) -> Callable:
    """A trained classifier, as a function from maps to predicted patterns.

    Args:
        kind: NETWORK or REGRESSION.
        maps: the maps.
        patterns: indices into PATTERNS, shape (maps,).
        candidate: of :data:`CANDIDATES`.
        seed: of the training; the regression draws nothing.
    """
    if kind == NETWORK:
        network = train(maps, patterns, candidate, seed)
        return lambda others: classify(network, others)
    model = fit_regression(maps, patterns, candidate)
    return lambda others: model.predict(statistics_of(others))


def folds(labelled: pd.DataFrame, seed: int) -> list[np.ndarray]:
    """Rows of the maps in each fold; no head in two folds, patterns spread evenly."""
    heads = labelled["layer"].astype(str) + "/" + labelled["head"].astype(str)
    names, heads = np.unique(heads, return_inverse=True)
    # Shuffled here: scikit-learn shuffles otherwise in other versions, and this generator's numbers
    # are fixed for good.
    groups = np.argsort(np.random.RandomState(seed).permutation(len(names)))[heads]
    patterns = indices(labelled["pattern"])
    return [test for _, test in StratifiedGroupKFold(FOLDS).split(groups, patterns, groups)]


def cross_validate(
    labelled: pd.DataFrame, kind: str, seed: int
) -> tuple[np.ndarray, Design | float]:
    """Nested cross-validation of one kind of classifier.

    Args:
        labelled: the maps.
        kind: NETWORK or REGRESSION; the validation fold chooses among its :data:`CANDIDATES`, of
            equals the first.
        seed: of the folds and of every training.

    Returns:
        Out-of-fold predictions, indices into PATTERNS, shape (maps,); and the candidate with the
        best mean score on the validation folds, for a classifier that is trained on all maps.
    """
    maps, patterns, parts = pictures(labelled), indices(labelled["pattern"]), folds(labelled, seed)
    predicted, scores = np.full(len(maps), -1), []

    def predictions(rows: np.ndarray, held_out: np.ndarray, candidate) -> np.ndarray:
        predict = fit(kind, [maps[row] for row in rows], patterns[rows], candidate, seed)
        return predict([maps[row] for row in held_out])

    for number in track(range(FOLDS), f"cross-validating the {kind}"):
        test, validation = parts[number], parts[(number + 1) % FOLDS]
        rest = np.setdiff1d(np.arange(len(maps)), test)
        fewer = np.setdiff1d(rest, validation)
        scores.append(
            [
                macro_f1(patterns[validation], predictions(fewer, validation, candidate))
                for candidate in CANDIDATES[kind]
            ]
        )
        chosen = CANDIDATES[kind][int(np.argmax(scores[-1]))]
        predicted[test] = predictions(rest, test, chosen)
    return predicted, CANDIDATES[kind][int(np.mean(scores, axis=0).argmax())]


def macro_f1(true: np.ndarray, predicted: np.ndarray) -> float:
    """F1 averaged over the patterns that occur in ``true``."""
    return float(
        f1_score(true, predicted, labels=np.unique(true), average="macro", zero_division=0)
    )


def save_network(network: PatternCNN) -> None:
    """Write the network that the package ships: weights, and the design as metadata."""
    content = safetensors.torch.save(
        network.state_dict(), {"design": json.dumps(asdict(network.design))}
    )
    write_atomically(WEIGHTS, content)


def save_validation(predicted: dict[str, np.ndarray], regression: Pipeline) -> None:
    """Write out-of-fold predictions by kind of classifier, and the regression's coefficients for each statistic and pattern."""
    scaler, model = regression
    coefficients = model.coef_.T / scaler.scale_[:, None]  # (statistics, patterns)
    intercepts = model.intercept_ - scaler.mean_ @ coefficients
    content: dict[str, object] = dict(fingerprints())
    content |= {kind: one.tolist() for kind, one in predicted.items()}
    names = map_statistics(torch.eye(SHORTEST)[None], torch.zeros(1, SHORTEST, dtype=torch.bool))
    content["coefficients"] = dict(zip(names, coefficients.round(9).tolist(), strict=True))
    content["intercepts"] = intercepts.round(9).tolist()
    lines = [
        f"{json.dumps(name)}: {json.dumps(part, separators=(',', ':'))}"
        for name, part in content.items()
    ]
    write_atomically(VALIDATION, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def fingerprints() -> dict[str, str]:
    """SHA-256 of the labelled maps and of the network, by file, to which a validation belongs."""
    files = [FOLDER / "labels.csv", FOLDER / "maps.safetensors", WEIGHTS]
    return {path.name: file_sha256(path) for path in files}
