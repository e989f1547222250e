"""Notebook 1's tables, and its numbers for the results file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from ..attention import Batch
from ..glue.tasks import Task
from ..statistics import Bootstrap
from ..statistics.estimate import Estimate
from . import cnn, controls, evidence, labelled_maps, validation
from .labelled_maps import PATTERNS
from .measure import FoundPatterns
from .repeats import heads_by_pattern, kappa

if TYPE_CHECKING:
    import pandas as pd

Counts = Mapping[str, list[Bootstrap]]  # from shares.pattern_shares
Passed = Mapping[str, FoundPatterns]  # by classifier


def labels() -> pd.DataFrame:
    """How many labelled maps of every pattern each part has, and how often the two labellings agree."""
    import pandas as pd

    labelled, natural = labelled_maps.load_maps(), evidence.natural()
    rows = []
    for name, chosen in {"natural": natural, "enriched": ~natural, "all": np.ones(len(labelled), dtype=bool)}.items():
        part = [one for one, keep in zip(labelled, chosen, strict=True) if keep]
        first, second = (np.array([PATTERNS.index(getattr(one, by)) for one in part]) for by in ("first", "second"))
        counts = {pattern: sum(one.pattern == pattern for one in part) for pattern in PATTERNS}
        agree = {"same label": f"{np.mean(first == second):.0%}", "κ": f"{kappa(first, second):.2f}"}
        rows.append({"part": name, "maps": len(part), **counts, **agree})
    return pd.DataFrame(rows).set_index("part")


def one_input(said: np.ndarray, corrected: np.ndarray) -> pd.DataFrame:
    """Shares of one input's maps, as named and as corrected, in percent.

    Args:
        said, corrected: shape (patterns,), summing to 1.
    """
    import pandas as pd

    return pd.DataFrame({"as named": said, "corrected": corrected}, index=list(PATTERNS)).map("{:.0%}".format).T


def by_layer(shares: Sequence[np.ndarray]) -> pd.DataFrame:
    """Share of each pattern among the maps of a layer, mean of several passes, in percent.

    Args:
        shares: each of shape (layers, heads, patterns).
    """
    import pandas as pd

    from ..common import axis_numbers

    means = np.mean([one.mean(axis=1) for one in shares], axis=0)
    layers = pd.Index(axis_numbers(len(means)), name="layer")
    return pd.DataFrame(means, columns=list(PATTERNS), index=layers).map("{:.0%}".format)


def designs(network: cnn.PatternCNN) -> pd.DataFrame:
    """Macro F1 of each candidate design on every fold's validation maps; a star where the fold chose it."""
    import pandas as pd

    rounds = evidence.load_rounds("cnn")
    rows = []
    for row, design in enumerate(validation.CNN_CANDIDATES):
        folds = {
            f"fold {number}": f"{fold.scores[row]:.2f}{' *' if fold.chosen == asdict(design) else ''}"
            for number, fold in enumerate(rounds, start=1)
        }
        start = {"cells": f"{design.size} × {design.size}", "sees [SEP]": design.separators}
        rows.append({**start, "used here": design == network.design, **folds})
    return pd.DataFrame(rows).set_index("cells")


def constructed(network: cnn.PatternCNN) -> tuple[pd.DataFrame, int, int]:
    """What the network says of maps that are known by construction; how many are right, and of how many."""
    import pandas as pd

    rows = []
    for name, expected in controls.EXPECTED.items():
        built = [controls.constructed_maps(length)[name] for length in controls.LENGTHS]
        said = [PATTERNS[index] for index in cnn.classify(network, built)]
        wrong = ", ".join(
            f"{answer} at L = {length}" for answer, length in zip(said, controls.LENGTHS, strict=True) if answer != expected
        )
        rows.append(
            {"every token attends": name, "should be": expected, "right": said.count(expected), "wrong": wrong or "–"}
        )
    table = pd.DataFrame(rows).set_index("every token attends")
    return table, int(table["right"].sum()), len(rows) * len(controls.LENGTHS)


def usual(usual_patterns: Mapping[Task, np.ndarray], shares: Mapping[Task, np.ndarray]) -> pd.DataFrame:
    """In how many heads each pattern is the usual one, and what share of a head's maps shows its usual pattern.

    Args:
        usual_patterns: by task, shape (layers, heads).
        shares: by task, shape (layers, heads, patterns).
    """
    import pandas as pd

    rows = [
        {
            "task": task.title,
            **dict(zip(PATTERNS, heads_by_pattern(found), strict=True)),
            "own pattern": f"{shares[task].max(axis=-1).mean():.0%}",
        }
        for task, found in usual_patterns.items()
    ]
    return pd.DataFrame(rows).set_index("task")


def inputs(batches: Mapping[Task, Sequence[Batch]], rows: Mapping[Task, int]) -> pd.DataFrame:
    """How many inputs of each task are measured, and how long they are, in wordpieces.

    Args:
        batches: by task.
        rows: by task, how many dev rows there are.
    """
    import pandas as pd

    lengths = {task: np.concatenate([batch.lengths for batch in of_task]) for task, of_task in batches.items()}
    found = [
        {
            "task": task.title,
            "sentences": len(task.fields),
            "dev rows": rows[task],
            "measured": len(of_task),
            "shortest": of_task.min(),
            "median": f"{np.median(of_task):.0f}",
            "longest": of_task.max(),
        }
        for task, of_task in lengths.items()
    ]
    return pd.DataFrame(found).set_index("task")


def named(parts: Sequence[Bootstrap]) -> dict[str, object]:
    """Shares of the patterns by name, for the results file."""
    return {pattern: part.summary() for pattern, part in zip(PATTERNS, parts, strict=True)}


def by_task(found: Mapping[Task, Estimate]) -> dict[str, object]:
    """Estimates by task, for the results file."""
    return {task.name: one.summary() for task, one in found.items()}


def f1(scores: Mapping[str, Mapping[tuple[str, str], Bootstrap]]) -> dict[str, object]:
    """From :func:`bertology_utils.patterns.evidence.f1_by_part`, for the results file."""
    return {who: {f"{part}: {name}": one.summary() for (part, name), one in found.items()} for who, found in scores.items()}


def shares(before: Mapping[Task, Counts], after: Mapping[Task, Sequence[Counts]]) -> dict[str, object]:
    """Shares by task, state, version and pattern, for the results file; after fine-tuning of the first training.

    Args:
        before, after: from :func:`bertology_utils.patterns.shares.pattern_shares`.
    """
    return {
        task.name: {
            state: {version: named(parts) for version, parts in found.items()}
            for state, found in (("pre-trained", before[task]), ("fine-tuned", after[task][0]))
        }
        for task in before
    }


def by_head(before: Mapping[Task, Passed], after: Mapping[Task, Sequence[Passed]]) -> dict[str, object]:
    """Each head's shares as the network names them, by task and state, for the results file."""
    return {
        task.name: {"pre-trained": before[task]["network"].shares, "fine-tuned": after[task][0]["network"].shares}
        for task in before
    }


def by_way(found: Mapping[Task, Mapping[str, Counts]]) -> dict[str, object]:
    """Corrected shares by weight and by norm, by task, for the results file."""
    return {task.name: {way: named(counts["corrected"]) for way, counts in ways.items()} for task, ways in found.items()}


def agreement(tuned: Estimate | None, pretrained: Bootstrap | None) -> dict[str, object]:
    """Agreement between tasks after and before fine-tuning, for the results file; null for fewer than two tasks."""
    return {"fine-tuned": tuned.summary() if tuned else None, "pre-trained": pretrained.summary() if pretrained else None}
