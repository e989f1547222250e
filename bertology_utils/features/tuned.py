"""One model before and after fine-tuning (§4.4): rows of results, stripes, halves of the layers, heads that turn to words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..annotation.inputs import LINGUISTIC, TOKEN_TYPES
from ..attention import Measurement
from ..common import Head, track
from ..glue import Task
from ..lab import kept
from ..results import SHARE
from ..statistics import Bootstrap, Estimate, ManyTest, largest, many_test, over_trainings
from ..verdicts import CLAIMS, MIN_EXAMPLES, WEIGHT, no_sink, too_few
from .compare import (
    MORE_ATTENDED,
    Stripes,
    against_marks,
    also,
    beside_marks,
    earlier_and_later,
    fewest,
    of_type,
)
from .measure import DESTINATIONS
from .reading import Examples, Reading, type_in_even_shares, typical

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from ..lab import Lab

STATES = ("pre-trained", "fine-tuned", "random weights")
# Rows of results that figures draw.
WEIGHTS, SHARES, IN_EVEN = (
    "weight on the type",
    "share of attention",
    "attention to one token, in even shares",
)
MORE, BEYOND = "increase of the weight", "increase of the weight above matched words"
GAINERS, LOSERS = f"heads that give the type {WEIGHT} more", "heads that give the type less"
ON_WORDS, ON_SPECIAL, KEPT = (
    CLAIMS[name].estimate
    for name in ("stripes-exclusive", "stripes-special", "stripes-pretraining")
)
# By claim: the special token, layers left out at the start, and 1 if it is to get more early, -1 if
# late.
HALVES = {
    "cls-early": ("[CLS]", 0, 1),
    "cls-early-deeper": ("[CLS]", 1, 1),
    "sep-late": ("[SEP]", 0, -1),
    "sep-late-deeper": ("[SEP]", 1, -1),
}
Changes = Mapping[Task, Sequence[ManyTest]]
Before = Mapping[Task, Reading]
After = Mapping[Task, Sequence[Reading]]


@kept
def examples(lab: Lab, task: Task) -> Examples:
    """A task's examples as notebook 4 measures them: by type of token, with matched words."""
    return Examples(lab.annotated_inputs(task), lab.settings.protocol, lab.resampling_seed(task))


def measurements(lab: Lab, task: Task) -> dict[str, Measurement]:
    """The measurements that notebook 4 makes of every model on the task's rows, by name."""
    return examples(lab, task).measurements()


def readings(lab: Lab) -> tuple[Before, After, Before]:
    """Notebook 4's measurements by task: pre-trained, of every run, and with random weights."""

    def read(model: PreTrainedModel, task: Task) -> Reading:
        return examples(lab, task).read(lab.observe(model, task, measurements(lab, task)))

    before, untrained, after = lab.encoder(), lab.encoder("normal"), {}
    for task in track(lab.tasks, "measuring"):
        after[task] = [read(model, task) for model in lab.finetunings(task)]
    return (
        {task: read(before, task) for task in lab.tasks},
        after,
        {task: read(untrained, task) for task in lab.tasks},
    )


def rows_of(before: Before, after: After, untrained: Before) -> Iterator[dict[str, Any]]:
    """What to record of every model, as arguments of :meth:`bertology_utils.record.Record.record`; first trainings.

    Args:
        before, after, untrained: from :func:`readings`.
    """
    found = dict(
        zip(
            STATES,
            (before, {task: several[0] for task, several in after.items()}, untrained),
            strict=True,
        )
    )
    weights = {
        state: {task: {kind: one.heads(kind) for kind in TOKEN_TYPES} for task, one in each.items()}
        for state, each in found.items()
    }
    yield {"what": WEIGHTS, "values": weights, "by": ("state", "task", "kind"), "unit": "weight"}
    divided = {
        state: np.mean([one.flow.destinations.mean(axis=(0, 2)) for one in each.values()], axis=0)
        for state, each in found.items()
    }  # each (layers, destinations)
    yield {
        "what": SHARES,
        "values": divided,
        "by": ("state",),
        "over": ("layer", "kind"),
        "kinds": DESTINATIONS,
        "unit": "share",
    }
    in_even = {kind: type_in_even_shares(before.values(), kind) for kind in ("[CLS]", "[SEP]")}
    yield {"what": IN_EVEN, "values": in_even, "by": ("kind",), "state": "pre-trained"}


def stripes_of(models: Before) -> dict[Task, Stripes]:
    """Types of word against special tokens, by task."""
    return {task: against_marks(one.even_shares, one.seed) for task, one in models.items()}


def _stripes_of_trainings(after: After) -> dict[Task, list[Stripes]]:
    return {
        task: [against_marks(one.even_shares, one.seed) for one in several]
        for task, several in after.items()
    }


def stripes(before: Before, after: After) -> Iterator[dict[str, Any]]:
    """What is judged of stripes, trainings as one, as arguments of :meth:`bertology_utils.record.Record.record`."""
    had, has = stripes_of(before), _stripes_of_trainings(after)
    measures: dict[str, Callable[[Task, Stripes], Bootstrap]] = {
        ON_WORDS: lambda task, one: one.on_words(),
        ON_SPECIAL: lambda task, one: one.marks_ahead(),
        KEPT: lambda task, one: one.kept(had[task]),
    }
    for what, measure in measures.items():
        unit = "difference of shares" if what == ON_SPECIAL else "share"
        yield {
            "what": what,
            "values": over_trainings(has, measure),
            "by": ("task",),
            "unit": unit,
            "tolerance": SHARE,
        }


def beside_special(after: After, changes: Changes) -> dict[Task, dict[str, Estimate]]:
    """What words get in the heads that turned to them, beside [CLS] and [SEP]; see :func:`.compare.beside_marks`."""
    return beside_marks(_stripes_of_trainings(after), changes)


def sink_missing(before: Before) -> str:
    """What is missing if the pre-trained model has no [SEP] sink; see :func:`bertology_utils.verdicts.no_sink`."""
    return no_sink(type_in_even_shares(before.values(), "[SEP]"))


def halves(after: After, claim: str) -> dict[str, Any]:
    """How far one half of the layers gives a special token more than the other, to record under the claim's estimate.

    Args:
        after: the fine-tuned models.
        claim: one of :data:`HALVES`.
    """
    kind, skipped, sign = HALVES[claim]
    drops = over_trainings(
        after, lambda task, one: earlier_and_later(one.of(kind)[:, skipped:], one.seed)[1]
    )
    values = {task: drop if sign > 0 else -drop for task, drop in drops.items()}
    return {"what": CLAIMS[claim].estimate, "values": values, "by": ("task",), "unit": "difference"}


def changes(before: Before, after: After, of: str) -> dict[Task, list[ManyTest]]:
    """What fine-tuning adds in every head, tested against :data:`WEIGHT`, by task and training.

    Args:
        before, after: the models.
        of: "weights" for every type of token, or "above_matched" for every type of word, minus its
            matched words.
    """
    return {
        task: [
            many_test(getattr(one, of) - getattr(before[task], of), WEIGHT, one.seed)
            for one in several
        ]
        for task, several in after.items()
    }


def recorded(changes: Changes, what: str) -> dict[str, Any]:
    """The first training's changes as arguments of :meth:`bertology_utils.record.Record.record`.

    Args:
        changes: from :func:`changes`.
        what: :data:`MORE` or :data:`BEYOND`.
    """
    kinds = TOKEN_TYPES if what == MORE else LINGUISTIC
    values = {
        task: dict(zip(kinds, first.means, strict=True)) for task, (first, *_) in changes.items()
    }
    return {
        "what": what,
        "values": values,
        "by": ("task", "kind"),
        "unit": "difference",
        "training": 1,
    }


def counted(changes: Changes) -> Iterator[dict[str, Any]]:
    """How many heads give a type of word more by :data:`WEIGHT`, and how many less; first training, to record."""
    for what, counts in (
        (GAINERS, lambda means: means >= WEIGHT),
        (LOSERS, lambda means: means < 0),
    ):
        values = {
            task: {kind: int(counts(first.means[at]).sum()) for at, kind in enumerate(LINGUISTIC)}
            for task, (first, *_) in changes.items()
        }
        yield {
            "what": what,
            "values": values,
            "by": ("task", "kind"),
            "unit": "count",
            "training": 1,
            "tolerance": 1,
        }


def tests_of(
    changes: Changes, beyond: Changes
) -> tuple[dict[str, dict[Task, list[ManyTest]]], ...]:
    """By type of word, task and training the tests of the heads' changes, and of the same heads by both measures."""
    plain = {kind: of_type(changes, at) for at, kind in enumerate(LINGUISTIC)}
    return plain, {
        kind: also(plain[kind], of_type(beyond, at)) for at, kind in enumerate(LINGUISTIC)
    }


def scarce(plain: Mapping[str, Changes], kind: str, learned: Mapping[Task, bool]) -> str:
    """What is missing if too few examples have a type of word on some task that the paper names for it."""
    return too_few(fewest(plain[kind], MORE_ATTENDED[kind], learned))


def most(changes: Changes, kinds: Sequence[str] = LINGUISTIC) -> tuple[Task, str, Head]:
    """Task, type of word and head of the largest change, first training; of types in :data:`MIN_EXAMPLES` examples or more, if any."""
    counts = [
        int(first.n[LINGUISTIC.index(kind)].max())
        for first, *_ in changes.values()
        for kind in kinds
    ]
    enough = min(MIN_EXAMPLES, max(counts))
    peaks = {
        (task, kind): first.means[LINGUISTIC.index(kind)]
        for task, (first, *_) in changes.items()
        for kind in kinds
        if first.n[LINGUISTIC.index(kind)].max() >= enough
    }
    task, kind = max(peaks, key=lambda place: np.nanmax(peaks[place]))
    layer, head = largest(peaks[task, kind])
    return task, kind, (layer, head)


def matched(examples: Examples, at: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Of one example the words of a type that have a matched word, and these; each of shape (wordpieces,)."""
    masks, number = examples.matched.masks[at], LINGUISTIC.index(kind)
    return masks[number], masks[len(LINGUISTIC) + number]


def above_matched(reading: Reading, kind: str) -> np.ndarray:
    """What a model gives words of a type above their matched words, shape (examples, layers, heads)."""
    return reading.above_matched[:, LINGUISTIC.index(kind)]


def usual_case(before: Reading, after: Reading, kind: str, head: Head, longest: int) -> int:
    """Of the examples whose words of a type have matched words, one in which the head changes about as on average.

    Args:
        before, after: of one task.
        kind: of word.
        head: (layer, head) from 0.
        longest: wordpieces that fit on a picture.
    """
    change = (after.of(kind) - before.of(kind))[(slice(None), *head)]  # (examples,)
    paired = np.isfinite(before.above_matched[:, LINGUISTIC.index(kind), 0, 0])
    return typical(np.where(paired, change, np.nan), before.lengths, longest)
