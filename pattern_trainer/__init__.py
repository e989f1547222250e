"""Trains the network that tells patterns of attention maps apart (§4.1), and validates it and logistic regression.

    python -m pattern_trainer

writes ``cnn.safetensors`` and ``validation.json`` in ``bertology_utils/patterns``
anew, in about a quarter of an hour on two CPU cores.  Nested cross-validation
by head: see :mod:`bertology_utils.patterns.validation`, which reads them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

import numpy as np
import safetensors.torch
import torch
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedGroupKFold
from torch import nn

from bertology_utils.cache import write_atomically
from bertology_utils.common import track
from bertology_utils.patterns.classifiers import WEIGHTS, Design, PatternCNN, as_tensors, classify
from bertology_utils.patterns.labels import LabelledMap, Picture, targets
from bertology_utils.patterns.validation import (
    CANDIDATES,
    FILE,
    Fold,
    features_of,
    fingerprints,
    fitted_regression,
)

from .changes import augmented

BATCH = 32
RATE = 2e-3  # peak learning rate
FOLDS = 5
SEED = 1  # of the folds and of every training


def train(
    pictures: Sequence[Picture], patterns: np.ndarray, design: Design, seed: int
) -> PatternCNN:
    """A network trained on labelled maps, in evaluation mode; on two CPU cores about half a minute for 300 maps.

    Args:
        pictures: the maps.
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
                nn.init.kaiming_normal_(
                    layer.weight
                )  # without it eight layers with ReLU hardly start to learn
                assert layer.bias is not None  # PatternCNN makes it
                nn.init.zeros_(layer.bias)
        steps = design.epochs * -(-len(pictures) // BATCH)
        optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
        for _ in range(design.epochs):
            for rows in np.array_split(rng.permutation(len(pictures)), -(-len(pictures) // BATCH)):
                images = torch.cat(
                    [network.images(*as_tensors(augmented(pictures[row], rng))) for row in rows]
                )
                # Smoothed labels: two annotators give one map in ten different ones.
                loss = nn.functional.cross_entropy(
                    network(images), targets[rows], label_smoothing=0.1
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
    return network.eval()


def save(network: PatternCNN) -> None:
    """Write the network that the package ships: weights, and the design as metadata."""
    content = safetensors.torch.save(
        network.state_dict(), {"design": json.dumps(asdict(network.design))}
    )
    write_atomically(WEIGHTS, content)


def folds(labelled: Sequence[LabelledMap], seed: int) -> list[np.ndarray]:
    """Indices of the maps in each fold; no head in two folds, patterns spread evenly."""
    names, heads = np.unique(
        ["/".join(map(str, one.group)) for one in labelled], return_inverse=True
    )
    # Shuffled here: scikit-learn shuffles otherwise in other versions, and this generator's numbers
    # are fixed for good.
    groups = np.argsort(np.random.RandomState(seed).permutation(len(names)))[heads]
    return [
        test for _, test in StratifiedGroupKFold(FOLDS).split(groups, targets(labelled), groups)
    ]


def nested(labelled: Sequence[LabelledMap], kind: str, seed: int) -> list[Fold]:
    """One round for each fold of the nested cross-validation of one kind of classifier.

    Args:
        labelled: the maps.
        kind: "cnn" or "baseline"; the validation fold chooses among its :data:`CANDIDATES`, of
            equals the first.
        seed: of the folds and of every training.
    """
    pictures, patterns, parts = (
        [one.picture for one in labelled],
        targets(labelled),
        folds(labelled, seed),
    )

    def predictions(rows: np.ndarray, held_out: np.ndarray, candidate) -> np.ndarray:
        predict = fitted(kind, [pictures[row] for row in rows], patterns[rows], candidate, seed)
        return predict([pictures[row] for row in held_out])

    rounds = []
    for number in track(range(FOLDS), f"cross-validating the {kind}"):
        test, validation = parts[number], parts[(number + 1) % FOLDS]
        rest = np.setdiff1d(np.arange(len(labelled)), test)
        fewer = np.setdiff1d(rest, validation)
        scores = [
            macro_f1(patterns[validation], predictions(fewer, validation, candidate))
            for candidate in CANDIDATES[kind]
        ]
        chosen = CANDIDATES[kind][int(np.argmax(scores))]
        predicted = predictions(rest, test, chosen)
        plain = asdict(chosen) if isinstance(chosen, Design) else chosen
        rounds.append(
            Fold(test.tolist(), predicted.tolist(), plain, [round(score, 6) for score in scores])
        )
    return rounds


def fitted(
    kind: str, pictures: Sequence[Picture], patterns: np.ndarray, candidate, seed: int
) -> Callable:
    """A trained classifier, as a function from pictures to predicted patterns.

    Args:
        kind: "cnn" or "baseline".
        pictures: the maps.
        patterns: indices into PATTERNS, shape (maps,).
        candidate: of :data:`CANDIDATES`.
        seed: of the training; the regression draws nothing.
    """
    if kind == "cnn":
        network = train(pictures, patterns, candidate, seed)
        return lambda others: classify(network, others)
    model = fitted_regression(pictures, patterns, candidate)
    return lambda others: model.predict(features_of(others))


def macro_f1(true: np.ndarray, predicted: np.ndarray) -> float:
    """F1 averaged over the patterns that occur in ``true``."""
    return float(
        f1_score(true, predicted, labels=np.unique(true), average="macro", zero_division=0)
    )


def write_rounds(rounds: Mapping[str, Sequence[Fold]], seed: int) -> None:
    """Keep the cross-validations of every kind, with fingerprints of the labelled maps and the network."""
    content = (
        {"seed": seed}
        | fingerprints()
        | {kind: [asdict(fold) for fold in rounds[kind]] for kind in CANDIDATES}
    )
    write_atomically(
        FILE, (json.dumps(content, separators=(",", ":")).replace("},{", "},\n{") + "\n").encode()
    )
