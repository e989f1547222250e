"""Every number of §4.4, recorded and judged by :func:`run`: types of token against each other, layers, and before fine-tuning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..annotation.inputs import LINGUISTIC, TOKEN_TYPES
from ..common import Head, one_based, track
from ..glue import Task
from ..published import READING_ERROR, published_panel
from ..results import SHARE
from ..statistics import (
    ONE_SIDED,
    Bootstrap,
    Estimate,
    ManyTest,
    Seed,
    apart,
    bootstrap_mean,
    in_both,
    largest,
    many_test,
    mean_over_seeds,
    means_with_gaps,
    moderated,
    over_trainings,
)
from ..verdicts import CLAIMS, MIN_EXAMPLES, WEIGHT, no_sink, too_few, unlearned
from .measure import DESTINATIONS, TypeWeights, observe_types

if TYPE_CHECKING:
    from ..lab import Lab

STATES = ("pre-trained", "fine-tuned", "difference")  # of a head's weight
STRIPE = 2.0  # times an even share: a type that gets more has a stripe
SPECIAL = tuple(TOKEN_TYPES.index(kind) for kind in ("[CLS]", "[SEP]"))
# The tasks on which fine-tuning makes some head attend more to a type, according to the paper.
MORE_ATTENDED = {kind: CLAIMS[f"more-{kind}"].tasks for kind in ("nouns", "objects", "negation")}
# Kinds of rows that figures draw.
EXAMPLES, WEIGHTS, SHARES = "examples with the type", "weight on the type", "share of attention"
MORE, BEYOND = "increase of the weight", "increase of the weight above matched words"
PUBLISHED = "weight by layer, published figure"
TURNED = "weight on the type, of the head that turned to it most"
RANK = "its rank by that weight before fine-tuning"
OVERTAKES = "layer from which on [SEP] gets more than [CLS]"

Before = Mapping[Task, TypeWeights]  # of one model, by task
After = Mapping[Task, Sequence[TypeWeights]]  # of every fine-tuning run
StripesOfRuns = Mapping[Task, Sequence["Stripes"]]
Tests = dict[str, dict[Task, list[ManyTest]]]  # by type, task and run, of every head


def run(lab: Lab) -> None:
    """Measure every model of a lab, and record and judge all of §4.4, controls included."""
    encoder, drawn = lab.encoder(), lab.encoder("normal")
    before = {task: observe_types(lab, encoder, task) for task in track(lab.tasks, "pre-trained")}
    random = {task: observe_types(lab, drawn, task) for task in track(lab.tasks, "random")}
    after = {
        task: [observe_types(lab, model, task) for model in lab.lazy_classifiers(task)]
        for task in track(lab.tasks, "fine-tuned")
    }
    lab.fact(annotation=lab.annotator.name, learned=lab.learned)
    no_sep_sink = no_sink(type_in_even_shares(before.values(), "[SEP]"))
    stripes = {task: [stripes_of(one) for one in runs] for task, runs in after.items()}
    record_weights(lab, before, after, random)
    record_stripes(lab, before, stripes, random)
    record_depth(lab, after)
    record_separators(lab, after, no_sep_sink)
    record_changes(lab, before, after, stripes)
    record_turned(lab, before, after)
    judge_blindness(lab, before, after)


def record_weights(lab: Lab, before: Before, after: After, random: Before) -> None:
    """What each type gets from every head, and where each layer's attention goes; first run of each task."""
    present = {  # examples that have the type
        task: dict(zip(TOKEN_TYPES, np.isfinite(one.weights).sum(axis=0)[:, 0, 0], strict=True))
        for task, one in before.items()
    }
    lab.record(EXAMPLES, present, by=("task", "kind"), unit="count")
    tuned = {task: first for task, (first, *_) in after.items()}
    models = {"pre-trained": before, "fine-tuned": tuned, "random weights": random}
    weights = {
        state: {
            task: dict(zip(TOKEN_TYPES, mean_over_examples(one.weights), strict=True))
            for task, one in models[state].items()
        }
        for state in ("pre-trained", "fine-tuned")
    }
    lab.record(WEIGHTS, weights, by=("state", "task", "kind"), unit="weight")
    shares = {  # each (layers, destinations)
        state: np.mean([one.destinations.mean(axis=(0, 2)) for one in tasks.values()], axis=0)
        for state, tasks in models.items()
    }
    over = ("layer", "kind")
    lab.record(SHARES, shares, by=("state",), over=over, kinds=DESTINATIONS, unit="share")
    lab.record(
        "attention to one token, in even shares",
        {kind: type_in_even_shares(before.values(), kind) for kind in ("[CLS]", "[SEP]")},
        by=("kind",),
        state="pre-trained",
    )


def mean_over_examples(values: np.ndarray) -> np.ndarray:
    """Mean over the examples that have a type; NaN where none has it.

    Args:
        values: shape (examples, …), NaN where an example lacks the type.
    """
    with np.errstate(invalid="ignore"):
        return np.nansum(values, axis=0) / np.isfinite(values).sum(axis=0)


def type_in_even_shares(models: Iterable[TypeWeights], kind: str) -> float:
    """What one type gets, in multiples of an even share, mean over heads, examples and then tasks."""
    at = TOKEN_TYPES.index(kind)
    return float(np.mean([np.nanmean(one.even_shares[:, at]) for one in models]))


# Stripes


@dataclass(frozen=True)
class Stripes:
    """Types of word against special tokens, for resamples of the examples; see :func:`stripes_of`.

    Attributes:
        means: of each type over the examples that have it, shape (1 + resamples, types, layers,
            heads).
        marks: of the more attended special token over the same examples, same shape.
        n: examples.
        seed: of the resampling.
    """

    means: np.ndarray
    marks: np.ndarray
    n: int
    seed: Seed

    def heads(self, border: float = STRIPE) -> tuple[np.ndarray, np.ndarray]:
        """Heads with a stripe on a type of word, and heads with one mainly on a special token.

        A stripe is a mean of more than ``border``; one on words is also above the special tokens.

        Returns:
            Two boolean arrays of shape (1 + resamples, layers, heads), the data as they are first.
        """
        with np.errstate(invalid="ignore"):
            words = np.any((self.means > border) & (self.means > self.marks), axis=1)
            marks = np.any(self.marks > border, axis=1)
        return words, marks & ~words

    def on_words(self) -> Bootstrap:
        """Share of heads with a stripe on a word."""
        return self._bootstrap(self.heads()[0].mean(axis=(1, 2)))

    def marks_ahead(self) -> Bootstrap:
        """Share of heads with one mainly on a special token, minus the share with one on a word."""
        return self._bootstrap(self.heads()[1].mean(axis=(1, 2))) - self.on_words()

    def kept(self, before: Stripes) -> Bootstrap:
        """Of the heads with a stripe mainly on a special token, the share that had it ``before``; NaN if no head has one."""
        had, has = before.heads()[1], self.heads()[1]
        count = has.sum(axis=(1, 2))
        shares = (had & has).sum(axis=(1, 2)) / np.maximum(count, 1)
        return self._bootstrap(shares if count[0] else np.full(len(shares), np.nan))

    def words_beside_marks(self, at: int, heads: np.ndarray) -> Bootstrap:
        """What a type of word has above an even share, as a part of what the special token has above it; 1 at most.

        Of means over some heads, values being multiples of an even share. It is 1, too, where the
        word has more.

        Args:
            at: the type's place among those compared.
            heads: which heads, boolean, shape (layers, heads).
        """
        # Each of shape (1 + resamples,).
        words, marks = (of[:, at, heads].mean(axis=1) - 1 for of in (self.means, self.marks))
        return self._bootstrap(words / np.maximum(marks, np.abs(words)))

    def _bootstrap(self, values: np.ndarray) -> Bootstrap:
        return Bootstrap.of(values, self.n, self.seed)


def stripes_of(one: TypeWeights) -> Stripes:
    """What types of word get, and what [CLS] and [SEP] get in the same examples, of one model and task."""
    values, means, marks = one.even_shares, [], []  # values: (examples, types, layers, heads)
    for at in range(len(LINGUISTIC)):
        there = np.isfinite(values[:, [at, *SPECIAL]]).all(axis=1, keepdims=True)
        both = np.where(there, values[:, [at, *SPECIAL]], np.nan)
        resampled = means_with_gaps(both, one.seed)  # (1 + resamples, 1 + 2, layers, heads)
        means.append(resampled[:, 0])
        marks.append(resampled[:, 1:].max(axis=1))
    return Stripes(np.stack(means, axis=1), np.stack(marks, axis=1), len(values), one.seed)


def record_stripes(lab: Lab, before: Before, stripes: StripesOfRuns, random: Before) -> None:
    """Shares of heads with a stripe on words and on special tokens, and since when they have it."""
    had = {task: stripes_of(one) for task, one in before.items()}
    measures = {
        "stripes-exclusive": ("share", lambda task, one: one.on_words()),
        "stripes-special": ("difference of shares", lambda task, one: one.marks_ahead()),
        "stripes-pretraining": ("share", lambda task, one: one.kept(had[task])),
    }
    for claim, (unit, measure) in measures.items():
        shares = over_trainings(stripes, measure)
        lab.record(CLAIMS[claim].estimate, shares, by=("task",), unit=unit, tolerance=SHARE)
        lab.judge(claim)
    counts = {
        task: sum(int(heads[0].sum()) for heads in stripes_of(one).heads())
        for task, one in random.items()
    }
    lab.record("heads with a stripe, random weights", counts, by=("task",), unit="count")


# From [CLS] to [SEP]


def sep_ahead(one: TypeWeights) -> np.ndarray:
    """How much more [SEP] gets than [CLS] in every layer, mean over heads, shape (examples, layers)."""
    return (one.on("[SEP]") - one.on("[CLS]")).mean(axis=2)


def last_layer_ahead(one: TypeWeights) -> Bootstrap:
    """How much more [SEP] gets than [CLS] in the last layer."""
    return bootstrap_mean(sep_ahead(one)[:, -1], one.seed)


def overtaking_layer(ahead: np.ndarray) -> float:
    """The layer, from 1, from which on [SEP] gets more than [CLS] in every layer; NaN if it does not in the last.

    Args:
        ahead: how much more [SEP] gets, shape (layers,).
    """
    behind = 1 + int(np.flatnonzero(ahead <= 0).max(initial=-1))  # layers until [CLS] is last ahead
    return float(one_based(behind)) if behind < len(ahead) else np.nan


def published_ahead() -> np.ndarray:
    """As :func:`sep_ahead`, mean over examples, of the published heatmaps, shape (layers,)."""
    return (published_panel("[SEP]") - published_panel("[CLS]")).mean(axis=1)


def published_last_layer() -> Estimate:
    """As :func:`last_layer_ahead`, of the published heatmaps of 1000 examples, read off their colours.

    Its error is that of reading alone; how far another sample of examples would move a panel is not
    published. A colour scale that is misread is so for all cells of a layer alike, so that their
    mean errs as much as one of them; all readings within the error are as likely.
    """
    return Estimate(float(published_ahead()[-1]), READING_ERROR / np.sqrt(3) * np.sqrt(2), 1000)


def record_depth(lab: Lab, after: After) -> None:
    """From which layer on [SEP] gets more than [CLS], here and in the paper's published heatmaps."""
    by_layer = {kind: published_panel(kind).mean(axis=1) for kind in ("[CLS]", "[SEP]")}
    lab.record(PUBLISHED, by_layer, by=("kind",), over=("layer",), unit="weight")
    overtakes = {
        task.title: overtaking_layer(np.mean([sep_ahead(one).mean(axis=0) for one in runs], axis=0))
        for task, runs in after.items()
    }
    overtakes["published"] = overtaking_layer(published_ahead())
    lab.record(OVERTAKES, overtakes, by=("kind",), unit="count")
    ahead = over_trainings(after, lambda task, one: last_layer_ahead(one))
    lab.record(CLAIMS["sep-overtakes"].estimate, ahead, by=("task",), unit="difference")
    lab.judge("sep-overtakes")
    if lab.settings.attention == "weight":  # as the panels are
        model = "bert-base-uncased on QQP, published panel, read off"
        lab.judge("sep-overtakes", {"": published_last_layer()}, unit="difference", model=model)


def record_separators(lab: Lab, after: After, no_sep_sink: str) -> None:
    """Does [SEP] get more where an input has only one, and do the two of a pair together get as much?"""
    single, double = (
        [task for task in after if len(task.fields) == count and lab.learned[task]]
        for count in (1, 2)
    )
    at = DESTINATIONS.index("[SEP]")
    measures: dict[str, Callable[[TypeWeights], np.ndarray]] = {
        "sep-one-sentence": lambda one: one.on("[SEP]"),  # the largest [SEP] of an input
        "sep-shared": lambda one: -one.destinations[..., at],  # all of them
    }
    for claim, measure in measures.items():
        means = {
            task: [bootstrap_mean(measure(one).mean(axis=(1, 2)), one.seed) for one in runs]
            for task, runs in after.items()
        }
        leads = {
            one: moderated(
                {
                    f"above {other.title}": mean_over_seeds(
                        list(map(apart, means[one], means[other]))
                    )
                    for other in double
                }
            )
            for one in single
            if double
        }
        lab.record(CLAIMS[claim].estimate, leads, by=("task", "kind"), unit="difference")
        unmet = "" if leads else "tasks with one sentence and with two"
        lab.judge(claim, unmet=no_sep_sink or unmet)


# What fine-tuning adds


def record_changes(lab: Lab, before: Before, after: After, stripes: StripesOfRuns) -> None:
    """What fine-tuning adds to each type, also above matched words, and beside [CLS] and [SEP]."""
    gained, beyond = (changes(before, after, values) for values in ("weights", "above_matched"))
    both = {
        kind: {task: list(map(in_both, gained[kind][task], runs)) for task, runs in tasks.items()}
        for kind, tasks in beyond.items()
    }
    for what, tests in ((MORE, gained), (BEYOND, beyond)):
        means = {
            kind: {task: first.means for task, (first, *_) in tasks.items()}
            for kind, tasks in tests.items()
        }
        lab.record(what, means, by=("kind", "task"), unit="difference", training=1)
    for kind, names in MORE_ATTENDED.items():
        named = [task for task in after if task.name in names and lab.learned[task]]
        few = too_few(min((size(gained[kind][task]) for task in named), default=MIN_EXAMPLES))
        lab.judge(f"more-{kind}", gained[kind], unmet=few)
        lab.judge(f"more-{kind}-matched", both[kind], unmet=few)
    elsewhere = {
        (task, kind): runs
        for kind, names in MORE_ATTENDED.items()
        for task, runs in both[kind].items()
        if task.name not in names and lab.learned[task] and size(runs) >= MIN_EXAMPLES
    }
    lab.judge("only-there", elsewhere)
    for kind in ("verbs", "pronouns", "subjects"):
        enough = {task: runs for task, runs in gained[kind].items() if size(runs) >= MIN_EXAMPLES}
        lab.judge(f"no-more-{kind}", enough, unmet=too_few(max(map(size, gained[kind].values()))))
    parts = beside_marks(stripes, gained)
    lab.record(CLAIMS["words-negligible"].estimate, parts, by=("task", "kind"))
    unmet = "" if parts else "a head that turned to words on a task that the paper names"
    lab.judge("words-negligible", unmet=unmet)


def record_turned(lab: Lab, before: Before, after: After) -> None:
    """The head of each run that turned to a type most, and what it gave that type before fine-tuning."""
    weights: dict[str, dict[str, dict[Task, Estimate]]] = {state: {} for state in STATES}
    ranks: dict[str, dict[Task, list[int]]] = {kind: {} for kind in MORE_ATTENDED}
    for kind in MORE_ATTENDED:
        for task, runs in after.items():
            had = before[task].on(kind)
            there = np.isfinite(had[:, 0, 0])
            if there.sum() < MIN_EXAMPLES:
                continue
            each = [turned_head(had[there], one.on(kind)[there], one.seed) for one in runs]
            ranks[kind][task] = [rank for _, rank, _ in each]
            for state in STATES:
                mean = mean_over_seeds([means[state] for *_, means in each])
                weights[state].setdefault(kind, {})[task] = mean
    for state, of_kinds in weights.items():
        unit = "difference" if state == STATES[-1] else "weight"
        lab.record(TURNED, of_kinds, by=("kind", "task"), state=state, unit=unit)
    lab.record(RANK, ranks, by=("kind", "task", "training"), unit="count")


def turned_head(
    before: np.ndarray, after: np.ndarray, seed: Seed
) -> tuple[Head, int, dict[str, Bootstrap]]:
    """The head whose weight rises most in every other example, and what it gives in the rest.

    Chosen and measured on the same examples, its rise would be too large.

    Args:
        before, after: weight on one type, shape (examples, layers, heads), the same examples.
        seed: of the resampling of examples.

    Returns:
        The head; its rank among all heads before, 1 for the highest; and its weight by
        :data:`STATES`.
    """
    chooses = np.arange(len(before)) % 2 == 0
    layer, head = largest((after - before)[chooses].mean(axis=0))
    had = before[chooses].mean(axis=0)
    rank = 1 + int((had > had[layer, head]).sum())
    rest = [values[~chooses, layer, head] for values in (before, after, after - before)]
    means = [bootstrap_mean(values, seed) for values in rest]
    return (layer, head), rank, dict(zip(STATES, means, strict=True))


def changes(before: Before, after: After, values: str) -> Tests:
    """What fine-tuning adds in every head, tested against the least difference that counts.

    Args:
        before, after: the models.
        values: "weights", of every type of token, or "above_matched", of every type of word.
    """
    tests = {
        task: [
            many_test(getattr(one, values) - getattr(before[task], values), WEIGHT, one.seed)
            for one in runs
        ]
        for task, runs in after.items()
    }
    kinds = TOKEN_TYPES if values == "weights" else LINGUISTIC
    return {
        kind: {task: [test[at] for test in runs] for task, runs in tests.items()}
        for at, kind in enumerate(kinds)
    }


def size(runs: Sequence[ManyTest]) -> int:
    """How many examples have the type."""
    return int(runs[0].n.max())


def beside_marks(stripes: StripesOfRuns, gained: Tests) -> dict[Task, dict[str, Estimate]]:
    """By task and type of word that the paper names for it, what it gets in the heads that turned to it.

    As a part of what special tokens get in these heads; see :meth:`Stripes.words_beside_marks`. A
    run counts if fine-tuning significantly raised some head's weight on the type, and
    :data:`MIN_EXAMPLES` examples have it.

    Args:
        stripes: by task and run, of the fine-tuned models.
        gained: from :func:`changes`.
    """
    parts: dict[Task, dict[str, Estimate]] = {}
    for kind, names in MORE_ATTENDED.items():
        for task, tests in gained[kind].items():
            turned = [test.above <= ONE_SIDED for test in tests]  # each (layers, heads)
            each = [
                one.words_beside_marks(TOKEN_TYPES.index(kind), heads)
                for one, heads in zip(stripes[task], turned, strict=True)
                if heads.any()
            ]
            if task.name in names and each and size(tests) >= MIN_EXAMPLES:
                parts.setdefault(task, {})[kind] = mean_over_seeds(each)
    return parts


def judge_blindness(lab: Lab, before: Before, after: After) -> None:
    """Does any head give a type of word more than its matched words, in the mean of all tasks?"""
    able = [task for task in lab.tasks if lab.learned[task]] or lab.tasks
    tuned = zip(*(after[task] for task in able), strict=False)  # every run's tasks
    models = {"blind-pretrained": [tuple(before.values())], "blind-tuned": list(tuned)}
    for claim, runs in models.items():
        above = [np.concatenate([one.above_matched for one in tasks]) for tasks in runs]
        tests = [many_test(values, WEIGHT, lab.settings.seed) for values in above]
        kind = LINGUISTIC[largest(tests[0].means)[0]]  # of the head that exceeds matched words most
        unmet = unlearned(lab.tasks, lab.learned) if claim == "blind-tuned" else ""
        lab.judge(claim, {kind: tests}, unmet=unmet)
