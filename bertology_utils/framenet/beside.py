"""§4.2 beside each other: the paper, MiniLM on FrameNet 1.5, and the run at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..common import Head, head_name
from ..statistics import Bootstrap, Seed, bootstrap_mean
from . import official_heatmaps
from .breakdown import ROLES
from .controls import top_heads
from .frame_links import PAPER_SENTENCES, Difference, Step
from .measure import ELSEWHERE, PLACES

PUBLISHED, REAL, OURS, RANDOM = "bert-base, published figure", "MiniLM, FrameNet 1.5", "this run", "random weights"
RELEASE = "FrameNet 1.5"  # without a model
RANKS = ("highest head", "second", "third", "fourth")
Numbers = float | tuple[float, float, float] | Bootstrap


def counts(
    protocol: str, steps: Sequence[Step], by_protocol: Mapping[str, int], real: Mapping
) -> dict[str, dict[str, float]]:
    """Sentences left after each filter, and by the other protocol's filters.

    Args:
        protocol: of the steps.
        steps: this run's.
        by_protocol: this run's sentences by either protocol.
        real: the committed run's results; empty if there is none.

    Returns:
        By filter, then by source.
    """
    rows: dict[str, dict[str, float]] = {}
    of_real = {step["name"]: step["sentences"] for step in real.get("funnel", [])}
    for step in steps:
        row = rows[step.name.replace(" (by coreType)", "")] = {OURS: step.sentences}
        row |= {RELEASE: of_real[step.name]} if step.name in of_real else {}
    *_, last = rows.values()
    last["the paper"] = PAPER_SENTENCES
    other = "official" if protocol == "paper" else "paper"
    row = {"the paper": PAPER_SENTENCES, OURS: by_protocol[other]}
    rows[{"official": "by all of the published code's rules", "paper": "by the paper's text"}[other]] = row
    row |= {RELEASE: of_protocols(real)[other]} if real else {}
    return rows


def of_protocols(real: Mapping) -> dict[str, int]:
    """Sentences of the committed run by either protocol."""
    return {"paper": real["funnel"][-1]["sentences"], "official": real["differences"][-1]["together"]}


def told_counts(sentences: int, by_protocol: Mapping[str, int], differences: Sequence[Difference], real: Mapping) -> str:
    """What the rules leave, and whether one alone explains the paper's number, where the data have as many sentences."""
    kept = (
        f"Of {sentences:,} sentences the paper's text leaves {by_protocol['paper']:,}, its code {by_protocol['official']:,}."
    )
    if sentences >= PAPER_SENTENCES:
        kept += f" Of its rules alone the strictest leaves {min(one.alone for one in differences):,}."
    if not real:
        return kept
    of_real = of_protocols(real)
    far = {name: abs(np.log(count / PAPER_SENTENCES)) for name, count in of_real.items()}
    nearer = {"paper": "text", "official": "code"}[min(far, key=lambda name: far[name])]
    least = min(one["alone"] for one in real["differences"])
    return (
        f"{kept} In FrameNet 1.5 it is {of_real['paper']:,} and {of_real['official']:,} of"
        f" {real['funnel'][0]['sentences']:,}: nearer to {PAPER_SENTENCES} by its {nearer}."
        f" There no rule of the code does it alone: the strictest leaves {least:,}."
    )


def score_panels(means: np.ndarray, real: Mapping) -> dict[str, np.ndarray]:
    """Scores of all heads by source: the published panel, the committed run's if there is one, and ours.

    Args:
        means: shape (layers, heads).
        real: the committed run's results.
    """
    committed = {REAL: np.array(real["scores"])} if real else {}
    return {PUBLISHED: official_heatmaps.panel("framenet"), **committed, OURS: means}


def top_rows(actual: np.ndarray, random: np.ndarray, real: Mapping, seed: Seed) -> dict[str, dict[str, Numbers]]:
    """The four highest scores of every source.

    Args:
        actual, random: link scores of the run's model and of one with random weights, shape (sentences, layers, heads).
        real: the committed run's results.
        seed: of the resampling of sentences.

    Returns:
        By rank, then by source. The published ones come with the error of reading them off.
    """
    error = official_heatmaps.READING_ERROR
    sources: dict[str, list[Numbers]] = {}
    for name, panel in score_panels(actual.mean(axis=0), real).items():
        values = [float(panel[head]) for head in top_heads(panel, len(RANKS))]
        sources[name] = [(value, value - error, value + error) for value in values] if name == PUBLISHED else [*values]
    for name, scores in {OURS: actual, RANDOM: random}.items():
        heads = top_heads(scores.mean(axis=0), len(RANKS))
        sources[name] = [bootstrap_mean(scores[:, *head], seed) for head in heads]
    ours = [head_name(*head) for head in top_heads(actual.mean(axis=0), len(RANKS))]
    return {
        f"{rank}, in this run {ours[at]}": {name: values[at] for name, values in sources.items()}
        for at, rank in enumerate(RANKS)
    }


def excess_panels(excess: Mapping[str, np.ndarray], real: Mapping) -> dict[str, np.ndarray]:
    """Excess of all heads over either kind of places, the committed run's beside ours.

    Args:
        excess: by kind, shape (layers, heads).
        real: the committed run's results.
    """
    panels = {}
    for kind, name in PLACES.items():
        if real:
            panels[f"FrameNet 1.5: over\n{name}"] = np.array(real["compared"][ELSEWHERE[kind]]["excess"])
        panels[f"this run: over\n{name}"] = excess[kind]
    return panels


def excess_rows(
    heads: Sequence[Head], ours: np.ndarray, random: np.ndarray, real: Mapping, seed: Seed
) -> dict[str, dict[str, Numbers]]:
    """Excess over other sentences' places of some heads: by head, then by source.

    Args:
        heads: (layer, head) from 0.
        ours, random: of the run's model and of one with random weights, shape (sentences, layers, heads).
        real: the committed run's results, of a model of the same shape.
        seed: of the resampling of sentences.
    """
    rows: dict[str, dict[str, Numbers]] = {}
    committed = np.array(real["compared"][ELSEWHERE["borrowed"]]["excess"]) if real else np.zeros((0, 0))
    for head in heads:
        of_real: dict[str, Numbers] = {REAL: float(committed[head])} if committed.shape == ours.shape[1:] else {}
        ourselves: dict[str, Numbers] = {
            OURS: bootstrap_mean(ours[:, *head], seed),
            RANDOM: bootstrap_mean(random[:, *head], seed),
        }
        rows[f"head {head_name(*head)}"] = of_real | ourselves
    return rows


def role_panels(
    heads: Sequence[Head], by_role: Mapping[str, np.ndarray], real: Mapping, seed: Seed
) -> dict[str, dict[str, dict[str, Numbers]]]:
    """Excess over other sentences' places by kind of element: by head, then by kind, then by source.

    Args:
        heads: (layer, head) from 0.
        by_role: from :func:`bertology_utils.framenet.breakdown.excess_by_role`.
        real: the committed run's results, of a model of the same shape.
        seed: of the resampling of sentences.
    """
    of_real = {role: np.array(one["excess"]) for role, one in real.get("by_role_excess", {}).items()}
    kinds = [role for role in ROLES if role in by_role or role in of_real]
    panels: dict[str, dict[str, dict[str, Numbers]]] = {}
    for head in heads:
        rows = panels[f"head {head_name(*head)}"] = {role: {} for role in kinds}
        for role in kinds:
            if role in of_real and all(at < size for at, size in zip(head, of_real[role].shape, strict=True)):
                rows[role][REAL] = float(of_real[role][head])
            if role in by_role:
                rows[role][OURS] = bootstrap_mean(by_role[role][:, *head], seed)
    return panels


def told_highest(panels: Mapping[str, np.ndarray], digits: int = 2) -> str:
    """ "bert-base, published figure: (7, 6) 0.21; this run: (1, 2) 0.16", for a figure's description."""
    tops = {title.replace("\n", " "): (panel, top_heads(panel, 1)[0]) for title, panel in panels.items()}
    return "; ".join(f"{title}: {head_name(*at)} {panel[at]:.{digits}f}" for title, (panel, at) in tops.items())


def told_rows(rows: Mapping[str, Mapping[str, Numbers]], digits: int = 2) -> str:
    """ "highest head: this run 0.16, random weights 0.10; …", for a figure's description."""
    return "; ".join(
        f"{name}: {', '.join(f'{source} {_value(number):.{digits}f}' for source, number in row.items())}"
        for name, row in rows.items()
    )


def _value(number: Numbers) -> float:
    return number.value if isinstance(number, Bootstrap) else number[0] if isinstance(number, tuple) else number
