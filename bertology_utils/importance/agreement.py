"""Would another measurement agree with what papers report about heads, by the number of trainings and of examples?

Agreement is 1 where two measurements always say the same, and 0 where they agree as often as chance
would have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from ..statistics import Bootstrap, Seed, mean_of, rank_correlation, rank_correlations, rank_of
from .components import Components

ORDER, FIVE, HELPS, HALF = STATEMENTS = (
    "the order of all heads",
    "the five most needed",
    "better without this head",
    "these half can go",
)
TOP, SIGMAS = (
    5,
    1.96,
)  # heads that count as most needed; standard errors from which a head surely helps or hurts
ENOUGH = 0.8  # agreement from which one measurement may stand for another
FEWEST = 0.3  # reliability below which a correlation cannot be corrected
DRAWS = 400


def agreement(first: np.ndarray, second: np.ndarray, error: np.ndarray) -> dict[str, float]:
    """Of two measurements of the same heads, for each of :data:`STATEMENTS`; means over draws, NaN where nothing is stated.

    Args:
        first, second: what disabling each head costs, shape (draws, heads).
        error: standard error of it over examples, shape (heads,) or (draws, heads).
    """
    heads = first.shape[1]

    def chosen(costs: np.ndarray, count: int) -> np.ndarray:
        """True for the heads that cost most."""
        return costs.argsort(axis=1).argsort(axis=1) >= heads - count

    def shared(count: int) -> float:
        by_chance = count / heads
        both = (chosen(first, count) & chosen(second, count)).sum(axis=1).mean() / count
        return float((both - by_chance) / (1 - by_chance))

    gains, again = (
        first < -SIGMAS * error,
        second < 0,
    )  # the loss is lower without the head; and so once more
    usual = again.mean()
    helps = (again[gains].mean() - usual) / (1 - usual) if gains.any() and usual < 1 else np.nan
    order = _mean(rank_correlations(first, second))
    return dict(
        zip(STATEMENTS, (order, shared(TOP), float(helps), shared(heads // 2)), strict=True)
    )


def between_trainings(effects: np.ndarray, seed: Seed) -> Bootstrap:
    """Rank correlation of heads' effects in two trainings on the same examples, mean over pairs; heads resampled.

    Args:
        effects: shape (heads, trainings).
        seed: of the resampling.

    Raises:
        ValueError: one training.
    """
    if effects.shape[1] < 2:
        raise ValueError(
            "one training: whether another would order the heads alike cannot be told; train two or more"
        )
    pairs = combinations(range(effects.shape[1]), 2)
    return mean_of([rank_correlation(effects[:, a], effects[:, b], seed) for a, b in pairs])


def measured(effects: np.ndarray, trainings: int, seed: Seed, splits: int = 10) -> dict[str, float]:
    """Agreement of two measurements that share no training and no example, as far as the data have them.

    Args:
        effects: shape (heads, trainings, parts); each measurement is of half of the parts.
        trainings: in each of the two, at most half of those at hand.
        seed: of how the parts are divided.
        splits: of the parts.
    """
    total, parts = effects.shape[1:]
    rng, found = np.random.default_rng(seed), []
    for _ in range(splits):
        one, other = np.array_split(rng.permutation(parts), 2)
        for some in combinations(range(total), trainings):
            rest = [at for at in range(total) if at not in some]
            for others in combinations(rest, trainings):
                first, second = (
                    effects[:, list(at)][..., rows].mean(axis=1)
                    for at, rows in ((some, one), (others, other))
                )
                error = first.std(axis=1, ddof=1) / np.sqrt(len(one))
                found.append(agreement(first.mean(axis=1)[None], second.mean(axis=1)[None], error))
    return {name: _mean(np.array([one[name] for one in found])) for name in STATEMENTS}


def _mean(values: np.ndarray) -> float:
    """Of those that are known; NaN where none is."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else float("nan")


def expected(
    components: Components, trainings: int, share: float, seed: Seed, draws: int = DRAWS
) -> dict[str, float]:
    """Agreement of two measurements, each of so many new trainings and new examples, by the components.

    The true effects are the measured ones, drawn together as far as they overstate how heads
    differ. Noise is scaled per head by its observed variability, since few heads vary most.

    Args:
        components: of heads' effects, best of :func:`in_own_scale`.
        trainings: in each measurement.
        share: of the examples at hand; above 1 for more.
        seed: of the draws.
        draws: pairs of measurements.
    """
    mean, raw = components.effects.mean(axis=(1, 2, 3)), components.raw
    moved = {
        source: max(raw.get(source, 0.0), 0.0) * sizes / max(sizes.mean(), 1e-300)
        for source, sizes in components.squares.items()
    }  # the component of each head, shape (heads,)
    kept = np.sqrt(max(raw[()], 0.0) / max(mean.var(ddof=1), 1e-300))
    truth = mean.mean() + kept * (mean - mean.mean())
    sampling = moved["part",] + moved.get(("training", "part"), 0.0) / trainings
    sampling = sampling / (share * components.levels["part"])
    spread = np.sqrt(moved.get(("training",), 0.0) / trainings + sampling)
    rng = np.random.default_rng(seed)
    first, second = (truth + spread * rng.standard_normal((draws, len(mean))) for _ in range(2))
    return agreement(first, second, np.sqrt(sampling))


def in_own_scale(effects: np.ndarray) -> np.ndarray:
    """Effects divided by their spread over heads in each training and way: some trainings need all heads more than others.

    That changes no order, and no set of heads.

    Args:
        effects: shape (heads, trainings, ways, parts).
    """
    spread = effects.mean(axis=3, keepdims=True).std(axis=0, keepdims=True)
    return effects / np.where(spread > 0, spread, 1.0)


def enough(
    components: Components, share: float, seed: Seed, most: int = 20
) -> dict[str, int | None]:
    """For each statement the fewest trainings from which :data:`ENOUGH` is expected; None where ``most`` do not suffice.

    Args:
        components: see :func:`expected`.
        share: of the examples at hand; above 1 for more.
        seed: of the draws.
        most: trainings that are tried.
    """
    by_count = {count: expected(components, count, share, seed) for count in range(1, most + 1)}
    return {
        name: next((at for at, found in by_count.items() if found[name] >= ENOUGH), None)
        for name in STATEMENTS
    }


def corrected(cheap: np.ndarray, effects: np.ndarray) -> dict[str, float]:
    """How a cheap measure of heads goes with their effects, in rank correlations, and what seeds hide of it.

    Args:
        cheap, effects: of every training, shape (heads, trainings).

    Returns:
        "of the measure" and "of the effect": between two trainings, the reliability of each;
        "measured": in one training; "corrected": between one training's measure and another's
        effect, for both reliabilities (Spearman, 1904), NaN where either is below :data:`FEWEST`.
    """
    count = cheap.shape[1]
    ordered = [(a, b) for a in range(count) for b in range(count) if a != b]
    own, other = (
        float(np.mean([rank_of(of[:, a], of[:, b]) for a, b in ordered])) for of in (cheap, effects)
    )
    same = float(np.mean([rank_of(cheap[:, at], effects[:, at]) for at in range(count)]))
    across = float(np.mean([rank_of(cheap[:, a], effects[:, b]) for a, b in ordered]))
    able = min(own, other) >= FEWEST
    return {
        "of the measure": own,
        "of the effect": other,
        "measured": same,
        "corrected": across / float(np.sqrt(own * other)) if able else float("nan"),
    }


def shuffled(effects: np.ndarray, heads_per_layer: int, seed: Seed) -> np.ndarray:
    """Effects with heads permuted within their layers, anew in each training and way: a control without head effects.

    Args:
        effects: shape (heads, trainings, ways, parts).
        heads_per_layer: of the model.
        seed: of the exchanges.
    """
    rng, found = np.random.default_rng(seed), effects.copy()
    for training in range(effects.shape[1]):
        for way in range(effects.shape[2]):
            for start in range(0, len(effects), heads_per_layer):
                order = start + rng.permutation(heads_per_layer)
                found[start : start + heads_per_layer, training, way] = effects[
                    order, training, way
                ]
    return found


def ways_alike(effects: Mapping[str, np.ndarray], seed: Seed) -> dict[str, Bootstrap]:
    """Rank correlation of heads' effects by two ways of disabling, by pair of ways; heads resampled.

    Args:
        effects: by way, shape (heads,).
        seed: of the resampling.
    """
    return {
        f"{a} and {b}": rank_correlation(effects[a], effects[b], seed)
        for a, b in combinations(effects, 2)
    }
