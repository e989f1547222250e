"""The pattern that every head shows for every example, how frequent each is (Fig 2), and whether they repeat (§4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attention import Measurement
from ..glue import Task
from ..results import SHARE
from ..statistics import (
    Bootstrap,
    Estimate,
    Seed,
    apart,
    bootstrap_mean,
    mean_over_seeds,
    means_with_gaps,
    moderated,
    over_trainings,
    whole_and_resampled,
)
from . import classifiers, labels
from .classifiers import Patterns
from .labels import PATTERNS, indices

if TYPE_CHECKING:
    import pandas as pd

    from ..lab import Lab

NETWORK, REGRESSION = "network", "logistic regression"
ROUNDS = 500  # of the expectation maximisation; shares then move by less than 1e-4
DRAWS = 10_000  # of patterns at random
GENEROUS = "if either labelling says so"
FIRST_THREE = ("vertical", "diagonal", "vertical+diagonal")
AS_SHARE: dict[str, Any] = {"unit": "share", "tolerance": SHARE}
EACH_PATTERN = AS_SHARE | {"over": ("kind",), "kinds": PATTERNS}


@dataclass(frozen=True)
class NamedPatterns:
    """Indices into PATTERNS, shape (examples, layers, heads)."""

    patterns: np.ndarray

    @property
    def one_hot(self) -> np.ndarray:
        """1 where a head shows a pattern, shape (examples, layers, heads, patterns)."""
        return (self.patterns[..., None] == np.arange(len(PATTERNS))).astype(np.float64)


class _Patterns(Patterns):
    def compute(self) -> NamedPatterns:  # type: ignore[override]
        return NamedPatterns(super().compute())


Observed = Mapping[str, NamedPatterns]  # of one model on one task, by classifier


# Until notebook 8 has moved: errors on MiniLM's maps.


def natural_maps(attention: str = "weight") -> pd.DataFrame:
    """MiniLM's labelled maps that were drawn at random, so that shares of them mean something."""
    maps = labels.load_maps()
    return maps[(maps["part"] == "natural") & (maps["encoder"] == "embedded")]


def confusions(maps: pd.DataFrame, by: str, seed: Seed, label: str = "pattern") -> np.ndarray:
    """How many maps of each pattern (rows) are named as each pattern (columns).

    Heads are resampled, and all maps of a drawn head come along, as these are alike.

    Args:
        maps: from :func:`natural_maps`.
        by: the column of the names.
        seed: of the resampling.
        label: the column of what is taken to be true.

    Returns:
        Of all heads, then of resampled ones, shape (1 + resamples, patterns, patterns).
    """
    head = maps.groupby(["layer", "head"]).ngroup()
    counts = np.zeros((head.max() + 1, len(PATTERNS), len(PATTERNS)))
    np.add.at(counts, (head, indices(maps[label]), indices(maps[by])), 1)
    return np.tensordot(whole_and_resampled(len(counts), seed), counts, axes=1)


def f1_scores(
    maps: pd.DataFrame, by: str, seed: Seed, label: str = "pattern"
) -> dict[str, Bootstrap]:
    """F1 with its interval: "macro F1", "micro F1", and that of every pattern by its name.

    Macro F1 is the mean over the patterns that occur; micro F1, with one pattern per map, the share
    named right. See :func:`confusions`.
    """
    counts = confusions(maps, by, seed, label)
    right = np.diagonal(counts, axis1=1, axis2=2)
    true, predicted = counts.sum(axis=2), counts.sum(axis=1)  # (1 + resamples, patterns) each
    f1 = 2 * right / np.maximum(true + predicted, 1)
    scores = {
        "macro F1": (f1 * (true > 0)).sum(axis=1) / (true > 0).sum(axis=1),
        "micro F1": right.sum(axis=1) / counts.sum(axis=(1, 2)),
        **dict(zip(PATTERNS, f1.T, strict=True)),
    }
    heads = maps.groupby(["layer", "head"]).ngroups
    return {name: Bootstrap.of(values, heads, seed) for name, values in scores.items()}


# Shares of the patterns, corrected for the classifier's errors. ---


def classifier_errors(
    by: str, seed: Seed, attention: str = "weight", generous: bool = False
) -> np.ndarray:
    """Share of each true pattern's maps (rows) that a classifier names as each pattern (columns).

    Args:
        by: the classifier, NETWORK or REGRESSION.
        seed: of the resampling of heads.
        attention: of the labelled maps; see :func:`bertology_utils.patterns.classifiers.named_maps`.
        generous: a map is heterogeneous if either annotator says so; see :func:`.labels.generous`.

    Returns:
        Of all heads, then of resampled ones, shape (1 + resamples, patterns, patterns). A pattern
        that does not occur has equal shares, as nothing is known of it.
    """
    maps = natural_maps(attention)
    if generous:
        said_so = (maps[["first", "second"]] == "heterogeneous").any(axis=1)
        maps = maps.assign(pattern=maps["pattern"].mask(said_so, "heterogeneous"))
    counts = confusions(maps, by, seed)
    totals = counts.sum(axis=-1, keepdims=True)
    return np.where(totals > 0, counts / np.maximum(totals, 1e-12), 1 / len(PATTERNS))


def possible_patterns(task: Task) -> np.ndarray:
    """True for the patterns that the task's inputs can show, shape (patterns,): blocks need two sentences."""
    return np.array([pattern != "block" or len(task.fields) > 1 for pattern in PATTERNS])


def corrected_shares(
    observed: np.ndarray, confusion: np.ndarray, possible: np.ndarray
) -> np.ndarray:
    """Shares of the true patterns that best explain the shares of the predicted ones.

    A classifier that takes one vertical map in ten for heterogeneous inflates
    the heterogeneous share. Given how it errs, expectation maximisation gives
    the maximum-likelihood shares (Saerens et al., 2002), which unlike those of
    an inverted matrix never leave the range from 0 to 1.

    Args:
        observed: predicted shares, shape (…, patterns), summing to 1.
        confusion: share of each true pattern's maps (rows) that are predicted
            as each pattern (columns), shape (…, patterns, patterns).
        possible: False for patterns that cannot occur, shape (patterns,).

    Returns:
        Shape (…, patterns), summing to 1.
    """
    shares = np.broadcast_to(possible / possible.sum(), observed.shape)
    for _ in range(ROUNDS):
        predicted = np.maximum(np.einsum("...t,...tp->...p", shares, confusion), 1e-12)
        shares = shares * np.einsum("...tp,...p->...t", confusion, observed / predicted)
    return shares / shares.sum(axis=-1, keepdims=True)


def pattern_shares(
    one_hot: np.ndarray, errors: np.ndarray, seed: Seed, possible: np.ndarray
) -> dict[str, Bootstrap]:
    """Shares of the patterns among all maps, corrected for the classifier's errors.

    The intervals come from the choice of examples and from what is not known of these errors.

    Args:
        one_hot: 1 where a head shows a pattern, shape (examples, …, patterns).
        errors: from :func:`classifier_errors`.
        seed: of the resampling of examples.
        possible: see :func:`corrected_shares`.
    """
    n = len(one_hot)
    by_example = one_hot.reshape(n, -1, len(PATTERNS)).mean(axis=1)  # (examples, patterns)
    shares = corrected_shares(means_with_gaps(by_example, seed), errors, possible)
    pairs = zip(PATTERNS, shares.T, strict=True)
    return {pattern: Bootstrap.of(of_pattern, n, seed) for pattern, of_pattern in pairs}


def together(parts: Sequence[Bootstrap]) -> Bootstrap:
    """The sum of shares of the same examples."""
    value, draws = sum(part.value for part in parts), np.sum([part.draws for part in parts], axis=0)
    return Bootstrap(value, draws, parts[0].n, parts[0].seed)


def extremes(shares: Mapping[Task, Sequence[Bootstrap]]) -> dict[tuple[Task, str], Estimate]:
    """How far MRPC is below each other task, and QQP above each, mean over the runs that both have (Fig 2).

    Args:
        shares: by task, of every run.
    """
    leads = {}
    for task, other in permutations(shares, 2):
        pairs = list(zip(shares[task], shares[other], strict=False))
        if task.name == "mrpc":
            leads[task, f"below {other.title}"] = [apart(two, one) for one, two in pairs]
        if task.name == "qqp":
            leads[task, f"above {other.title}"] = [apart(one, two) for one, two in pairs]
    return moderated({names: mean_over_seeds(lead) for names, lead in leads.items()})


# Do the patterns repeat, across heads and across tasks? ---


def _usual(one_hot: np.ndarray, seed: Seed) -> np.ndarray:
    """The pattern that each head shows most often in the examples as they are, then in resampled ones.

    Args:
        one_hot: shape (examples, layers, heads, patterns).
        seed: of the resampling.

    Returns:
        Indices into PATTERNS, shape (1 + resamples, layers, heads).
    """
    return means_with_gaps(one_hot, seed).argmax(axis=-1)


def _commonest(usual: np.ndarray) -> np.ndarray:
    """Heads that the two commonest patterns cover, of heads by pattern, (…, patterns) to (…).

    Heterogeneous is no pattern that could repeat: it is what has none, and all that random weights
    show.
    """
    return np.sort(usual[..., :-1], axis=-1)[..., -2:].sum(axis=-1)


def coverage(one_hot: np.ndarray, seed: Seed) -> Bootstrap:
    """Share of the heads whose usual pattern is one of the two commonest, examples resampled.

    Args:
        one_hot: shape (examples, layers, heads, patterns).
        seed: of the resampling.
    """
    usual = _usual(one_hot, seed)
    heads = (usual[..., None] == np.arange(len(PATTERNS))).sum(axis=(1, 2))  # by pattern
    return Bootstrap.of(_commonest(heads) / usual[0].size, len(one_hot), seed)


def coverage_by_chance(heads: int, patterns: int, seed: Seed) -> float:
    """What :func:`coverage` exceeds in 2.5 % of cases if every head drew its usual pattern evenly at random.

    Args:
        heads: how many.
        patterns: that can occur.
        seed: of the draws.
    """
    even = np.full(patterns, 1 / patterns)
    drawn = np.random.default_rng(seed).multinomial(heads, even, size=DRAWS)
    return float(np.quantile(_commonest(drawn) / heads, 0.975))


def task_agreement(one_hots: Sequence[np.ndarray], seeds: Sequence[Seed]) -> Bootstrap:
    """Cohen's κ between two tasks over heads' usual patterns, mean over all pairs of tasks; examples resampled.

    1 if every head keeps its pattern, 0 if tasks agree no more often than by
    chance. All heads of the model are in it, so these are not resampled.

    Args:
        one_hots: per task, shape (examples, layers, heads, patterns).
        seeds: of each task's resampling.
    """
    usual = [_usual(one_hot, seed) for one_hot, seed in zip(one_hots, seeds, strict=True)]
    flat = [one.reshape(len(one), -1) for one in usual]  # each (1 + resamples, heads of all layers)
    agreement = np.mean([kappa(first, second) for first, second in combinations(flat, 2)], axis=0)
    return Bootstrap.of(agreement, sum(map(len, one_hots)), tuple(seeds))


def changed_heads(before: np.ndarray, after: np.ndarray, seed: Seed) -> Bootstrap:
    """Share of the heads whose usual pattern fine-tuning changed, beyond what other examples change.

    Usual patterns before, on every other example, are compared with those
    after on the rest; what is subtracted is the comparison of the same two
    halves before fine-tuning.

    Args:
        before, after: shape (examples, layers, heads, patterns), the same examples.
        seed: of the resampling.
    """
    half = np.arange(len(before)) % 2 == 0
    first = _usual(before[half], seed)
    tuned, rest = ((first != _usual(one[~half], seed)).mean(axis=(1, 2)) for one in (after, before))
    return Bootstrap.of(tuned - rest, len(before), seed)


def kappa(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cohen's κ of two labellings, shape (…, items) to (…); 0 where both give one same label to all, as chance would."""
    same = (first == second).mean(axis=-1)
    patterns = np.arange(len(PATTERNS))
    one, other = ((names[..., None] == patterns).mean(axis=-2) for names in (first, second))
    chance = (one * other).sum(axis=-1)  # of the frequencies of every pattern
    return np.where(chance < 1, (same - chance) / np.maximum(1 - chance, 1e-12), 0.0)


# All of §4.1, for every task and run. ---


def label_shares(maps: pd.DataFrame, seed: Seed) -> dict[str, Bootstrap]:
    """Share of every pattern among the settled labels, heads resampled; needs no classifier."""
    counts = confusions(maps, "pattern", seed).sum(axis=2)  # (1 + resamples, patterns)
    shares, heads = counts.T / counts.sum(axis=1), maps.groupby(["layer", "head"]).ngroups
    pairs = zip(PATTERNS, shares, strict=True)
    return {pattern: Bootstrap.of(share, heads, seed) for pattern, share in pairs}


def measurements(lab: Lab, task: Task) -> dict[str, Measurement]:
    """What is measured of every model on the task's rows: patterns as each classifier names them."""
    named_by = {NETWORK: classifiers.load_network(), REGRESSION: classifiers.load_regression()}
    separator = lab.tokenizer.sep_token_id
    return {name: _Patterns(one.to(lab.device), separator) for name, one in named_by.items()}


def run(lab: Lab) -> None:
    """Measure and record all of §4.1: labels and classifiers, shares of the patterns, and whether they repeat."""
    record_labels(lab)
    record_classifiers(lab)

    def observe(model: Any, task: Task) -> Observed:
        return lab.observe(model, task, measurements(lab, task))

    encoder = lab.encoder()
    before = {task: observe(encoder, task) for task in lab.tasks}
    after = {
        task: [observe(model, task) for model in lab.lazy_classifiers(task)] for task in lab.tasks
    }
    random = observe(lab.encoder("normal"), lab.tasks[0])
    record_shares(lab, before, after)
    record_random_weights(lab, random, after)
    record_repetition(lab, before, after, random)
    lab.fact(learned=lab.learned)


def record_labels(lab: Lab) -> None:
    """How frequent each pattern is among the labels, and how many of them two annotators dispute."""
    shares = label_shares(natural_maps(lab.settings.attention), lab.settings.seed)
    lab.record("share of labels", shares, by=("kind",), **AS_SHARE)
    by_norm = label_shares(natural_maps("norm"), lab.settings.seed)
    lab.record("share of labels by norm", by_norm, by=("kind",), **AS_SHARE)
    disputed = labels.disputed()
    settled = int((disputed["pattern"] == "vertical").sum())
    counts = {"all": len(disputed), "settled as vertical": settled}
    what = "maps called vertical once and heterogeneous once"
    lab.record(what, counts, by=("kind",), unit="count")
    lab.judge("vertical-labels", {"": shares["vertical"]}, unit="share")


def record_classifiers(lab: Lab) -> None:
    """F1 of the classifiers and of the annotators, the network's errors, and how it names constructed maps."""
    seed, attention = lab.settings.seed, lab.settings.attention
    natural, f1_scores = natural_maps(attention), classifiers.f1_scores
    # Each annotator was a vote in what was settled, which flatters both; one against the other is fair.
    f1 = {by: f1_scores(natural, by, seed) for by in (NETWORK, REGRESSION)}
    f1 |= {f"{by} labelling": f1_scores(natural, by, seed) for by in ("first", "second")}
    f1["one labelling against the other"] = f1_scores(natural, "second", seed, label="first")
    lab.record("F1, natural maps", f1, by=("state", "kind"), unit="F1")
    errors = dict(zip(PATTERNS, classifier_errors(NETWORK, seed, attention)[0], strict=True))
    lab.record("share of labelled maps named so", errors, by=("state",), **EACH_PATTERN)

    built = [*chain(*(labels.constructed_maps(length).values() for length in labels.LENGTHS))]
    named = classifiers.classify(classifiers.load_network(), built)
    wrong = named != labels.indices([*labels.EXPECTED.values()] * len(labels.LENGTHS))
    what = "constructed maps that are named wrongly"
    lab.record(what, int(wrong.sum()), unit="count", n=len(wrong))
    lab.judge("classifier", {"": f1[NETWORK]["micro F1"]}, unit="F1")
    lead = f1[NETWORK]["micro F1"] - f1[REGRESSION]["micro F1"]
    lab.judge("beats-baseline", {"": lead}, unit="gain")
    lab.judge("constructed-maps")


def record_shares(
    lab: Lab, before: Mapping[Task, Observed], after: Mapping[Task, Sequence[Observed]]
) -> None:
    """Shares of the patterns by head, and of all maps, corrected for the errors of the classifier (Fig 2).

    Args:
        lab: what records them.
        before, after: of the pre-trained encoder, and of every run.
    """
    seed, attention = lab.settings.seed, lab.settings.attention
    errors = {by: classifier_errors(by, seed, attention) for by in (NETWORK, REGRESSION)}
    errors[GENEROUS] = classifier_errors(NETWORK, seed, attention, generous=True)

    def corrected(task: Task, one: Observed, by: str) -> dict[str, Bootstrap]:
        one_hot, possible = one[NETWORK if by == GENEROUS else by].one_hot, possible_patterns(task)
        return pattern_shares(one_hot, errors[by], lab.resampling_seed(task), possible)

    runs = {
        by: {task: [corrected(task, one, by) for one in after[task]] for task in lab.tasks}
        for by in errors
    }

    def over_runs(by: str, *patterns: str) -> dict[Task, Estimate]:
        return over_trainings(runs[by], lambda _, shares: together([shares[p] for p in patterns]))

    for task in lab.tasks:
        for state, one in (("pre-trained", before[task]), ("fine-tuned", after[task][0])):
            names: dict[str, Any] = {"task": task, "state": state}
            by_head = one[NETWORK].one_hot.mean(axis=0)  # (layers, heads, patterns)
            own = names | {"over": ("layer", "head", "kind"), "n": len(one[NETWORK].patterns)}
            lab.record("share of maps by head", by_head, **EACH_PATTERN | own)
            shares = corrected(task, one, NETWORK)
            lab.record("share of maps, corrected", shares, by=("kind",), **AS_SHARE | names)
    for what, values in (
        ("the first three patterns", over_runs(NETWORK, *FIRST_THREE)),
        ("heterogeneous, corrected", over_runs(NETWORK, "heterogeneous")),
        ("heterogeneous, by logistic regression", over_runs(REGRESSION, "heterogeneous")),
        (f"heterogeneous, {GENEROUS}", over_runs(GENEROUS, "heterogeneous")),
    ):
        lab.record(f"share of maps: {what}", values, by=("task",), **AS_SHARE)
    lab.judge("first-three")
    lab.judge("heterogeneous")
    lab.judge("heterogeneous-generous")
    learned = {task: shares for task, shares in runs[NETWORK].items() if lab.learned[task]}
    able = {"mrpc", "qqp"} <= {task.name for task in learned} and len(learned) > 2
    each = {task: [one["heterogeneous"] for one in shares] for task, shares in learned.items()}
    unit = "difference of shares"
    lab.judge("heterogeneous-extremes", extremes(each) if able else {}, unit=unit)


def record_random_weights(
    lab: Lab, random: Observed, after: Mapping[Task, Sequence[Observed]]
) -> None:
    """How many more maps are heterogeneous with random weights than in each run, as named."""
    task, at = lab.tasks[0], PATTERNS.index("heterogeneous")

    def heterogeneous(one: Observed) -> Bootstrap:
        by_example = one[NETWORK].one_hot[..., at].mean(axis=(1, 2))
        return bootstrap_mean(by_example, lab.resampling_seed(task))

    lead = mean_over_seeds([heterogeneous(random) - heterogeneous(one) for one in after[task]])
    lab.judge("random-heterogeneous", {task: lead}, unit="difference of shares")


def record_repetition(
    lab: Lab,
    before: Mapping[Task, Observed],
    after: Mapping[Task, Sequence[Observed]],
    random: Observed,
) -> None:
    """Whether few patterns cover most heads, whether tasks agree, and what fine-tuning changes."""
    seeds = {task: lab.resampling_seed(task) for task in lab.tasks}
    encoder = {task: one[NETWORK].one_hot for task, one in before.items()}
    runs = {task: [one[NETWORK].one_hot for one in several] for task, several in after.items()}
    at_random = random[NETWORK].one_hot

    covered = over_trainings(runs, lambda task, one: coverage(one, seeds[task]))
    heads, seed = at_random[0, ..., 0].size, lab.settings.seed
    possible = {task: possible_patterns(task).sum() for task in lab.tasks}
    by_chance = {task: coverage_by_chance(heads, possible[task], seed) for task in lab.tasks}
    least = coverage(at_random, seeds[lab.tasks[0]]).value
    above = {task: share - max(by_chance[task], least) for task, share in covered.items()}
    lab.judge("repeat-heads", above, unit="difference of shares")

    learned, agreement = [task for task in lab.tasks if lab.learned[task]], {}
    if len(learned) > 1:

        def between(of_tasks: Sequence[np.ndarray]) -> Bootstrap:
            return task_agreement(of_tasks, [seeds[task] for task in learned])

        # As many as the task with the fewest runs has.
        together_run = zip(*(runs[task] for task in learned), strict=False)
        agreement = {
            "fine-tuned": mean_over_seeds([between(of_tasks) for of_tasks in together_run]),
            "pre-trained": between([encoder[task] for task in learned]),
        }
    lab.record("agreement of heads' patterns between tasks", agreement, by=("state",), unit="κ")
    lab.judge("repeat-tasks", {"": agreement["fine-tuned"]} if agreement else {}, unit="κ")

    changed = over_trainings(runs, lambda task, one: changed_heads(encoder[task], one, seeds[task]))
    lab.record("share of heads whose pattern changes", changed, by=("task",), **AS_SHARE)
