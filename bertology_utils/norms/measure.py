"""What notebook 7 and its appendix share: one pass over the maps of every model, attention cut, heads along links."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..attention import Batch, ByNorm, Exchanged, attention_maps, observe_cached
from ..cache import cached
from ..common import Head, track
from ..features import DESTINATIONS, Flow, in_even_shares, marks
from ..glue import Task
from ..links.dependencies import RELATIONS, Pointing
from ..statistics import (
    Bootstrap,
    Estimate,
    bootstrap_mean,
    largest,
    mean_over_seeds,
    over_trainings,
)
from ..verdicts import RANK, no_sink, unlearned
from . import heads, special_tokens
from .mixing import Mixing

if TYPE_CHECKING:
    from ..lab import Lab

WAYS = ("weight", "norm")
SAME = RANK  # a rank correlation from which on heads count as the same
RANKS = "rank correlation of heads along {}, norm with weight"
BEHIND = "head chosen by norm above that chosen by weight, {}"
By = dict[str, dict[Task, Estimate]]  # by state, "pre-trained" or "fine-tuned", and task


def pretrained(lab: Lab):
    """The lab's encoder before any task; a ValueError, before any work, for one that cannot be measured."""
    encoder = lab.encoder()
    Mixing(encoder)
    return encoder


def most_shrunk(model, batch: Batch) -> Head:
    """The head whose attention to an input's first token loses most from weight to norm, (layer, head) from 0."""
    first = [
        torch.stack([maps[0, :, :, 0].mean(dim=1) for maps in attention_maps(model, batch, way)])
        for way in WAYS
    ]
    layer, head = largest((first[0] - first[1]).cpu().numpy())
    return int(layer), int(head)


@dataclass(frozen=True)
class Measured:
    """What one pass over the measured rows finds in each model: by name, as in :func:`of_lab`.

    Attributes:
        special: by task, per example which tokens are [CLS], [SEP] and punctuation, shape (3,
            wordpieces).
        before: of the pre-trained encoder, by task.
        after: of every training, by task.
        random_weights: of an encoder that has learned nothing, by task.
    """

    special: Mapping[Task, list[np.ndarray]]
    before: Mapping[Task, dict[str, Any]]
    after: Mapping[Task, list[dict[str, Any]]]
    random_weights: Mapping[Task, dict[str, Any]]

    @property
    def states(self) -> dict[str, list[dict[str, Any]]]:
        """All models by state."""
        return {
            "pre-trained": list(self.before.values()),
            "fine-tuned": [one for of in self.after.values() for one in of],
        }

    def destinations(self, way: str) -> dict[str, np.ndarray]:
        """Shares of attention by state, mean over heads, examples and tasks, shape (layers, destinations)."""
        means = {
            state: [one[way].destinations.mean(axis=(0, 2)) for one in found]
            for state, found in self.states.items()
        }
        return {state: np.mean(each, axis=0) for state, each in means.items()}

    def even_shares(self, way: str) -> dict[str, float]:
        """What one token of each kind gets of the pre-trained encoder, in multiples of an even share, mean of the tasks."""
        return in_even_shares({task: one[way] for task, one in self.before.items()}, self.special)

    @property
    def sink(self) -> str:
        """The special token that gets most: "[CLS]" or "[SEP]"."""
        return max(("[CLS]", "[SEP]"), key=self.even_shares("weight").__getitem__)

    def unmet(self, lab: Lab, kind: str) -> str:
        """What is missing for a claim about this kind of token as a sink; "" if nothing is."""
        return no_sink(self.even_shares("weight")[kind], kind) or unlearned(lab.tasks, lab.learned)


def of_lab(lab: Lab) -> Measured:
    """One pass for every model of a lab, or what the cache has of it."""
    special = {
        task: [marks(annotated) for annotated in lab.annotated_inputs(task)] for task in lab.tasks
    }
    encoder, untrained = lab.encoder(), lab.encoder("normal")

    def look(model, task: Task) -> dict[str, Any]:
        inputs = lab.annotated_inputs(task)
        measurements = {
            "weight": Flow(special[task]),
            "norm": ByNorm(Flow(special[task])),
            "exchanged": Exchanged(Flow(special[task]), lab.settings.seed),
            "mixing": Mixing(model),
            "points": Pointing(inputs),
            "points by norm": ByNorm(Pointing(inputs)),
        }
        return observe_cached(model, lab.batches(task), measurements)

    before, after, random_weights = {}, {}, {}
    for task in track(lab.tasks, "measuring"):
        before[task], random_weights[task] = look(encoder, task), look(untrained, task)
        after[task] = [look(model, task) for model in lab.finetunings(task)]
    return Measured(special, before, after, random_weights)


def over(lab: Lab, found: Measured, measure: Callable[[dict[str, Any], Task], Bootstrap]) -> By:
    """A measure of every model, by state and task, estimated over trainings."""
    before = {task: mean_over_seeds([measure(found.before[task], task)]) for task in lab.tasks}
    return {
        "pre-trained": before,
        "fine-tuned": over_trainings(found.after, lambda task, one: measure(one, task)),
    }


def shares(lab: Lab, found: Measured, kind: str, way: str) -> By:
    """What tokens of a kind get of all attention, mean over layers and heads."""

    def share(one: dict[str, Any], task: Task) -> Bootstrap:
        of_examples = one[way].destinations[..., DESTINATIONS.index(kind)].mean(axis=(1, 2))
        return bootstrap_mean(of_examples, lab.resampling_seed(task))

    return over(lab, found, share)


def fall(lab: Lab, one: dict[str, Any], task: Task, kind: str, way: str = "norm") -> Bootstrap:
    """By how much a kind's share of attention is smaller by norm, or with "exchanged" lengths, in one model."""
    return special_tokens.fall(
        one["weight"].destinations, one[way].destinations, kind, lab.resampling_seed(task)
    )


def falls(lab: Lab, found: Measured, kind: str) -> By:
    """:func:`fall` of every model."""
    return over(lab, found, lambda one, task: fall(lab, one, task, kind))


def falls_above_exchanged(lab: Lab, found: Measured, kind: str) -> dict[Task, Estimate]:
    """By how much a kind falls further than with lengths exchanged among an input's tokens, fine-tuned."""

    def further(one: dict[str, Any], task: Task) -> Bootstrap:
        return fall(lab, one, task, kind) - fall(lab, one, task, kind, "exchanged")

    return over(lab, found, further)["fine-tuned"]


def mean_lengths(lab: Lab, model, found: Measured) -> dict[str, np.ndarray]:
    """Mean of ‖f(x)‖ by kind of token, words among them, over heads and tasks, shape (layers,)."""
    of_tasks = []
    for task in lab.tasks:
        kinds = [np.vstack([of_type, ~of_type.any(axis=0)]) for of_type in found.special[task]]
        of_tasks.append(special_tokens.mean_lengths(model, lab.batches(task), kinds))
    return dict(zip((*special_tokens.MARKS, "words"), np.nanmean(of_tasks, axis=0), strict=True))


Cuts = dict[
    Task, dict[str, list[special_tokens.Cut]]
]  # by task and what stands instead, of every training


def cuts(lab: Lab, found: Measured) -> Cuts:
    """Attention to the sink cut, and as much to words, in every training; see :func:`special_tokens.cut`."""
    kind = special_tokens.MARKS.index(found.sink)
    made: Cuts = {}
    for task in track(lab.tasks, "cutting"):
        is_sink = [of_type[kind] for of_type in found.special[task]]
        is_word = [~of_type.any(axis=0) for of_type in found.special[task]]
        arguments = lab.batches(task), is_sink, is_word, lab.settings.seed
        models = lab.finetunings(task)
        made[task] = {
            way: [cached(special_tokens.cut, model, *arguments, way) for model in models]
            for way in special_tokens.INSTEAD
        }
    return made


def moved(lab: Lab, made: Cuts, way: str) -> dict[Task, dict[str, Estimate]]:
    """How far answers move by task, without attention to the sink and without as much to words."""

    def of(task: Task, at: int) -> Estimate:
        return mean_over_seeds(
            [bootstrap_mean(one.moved[:, at], lab.resampling_seed(task)) for one in made[task][way]]
        )

    return {
        task: {name: of(task, at) for at, name in enumerate(special_tokens.CUT_FROM)}
        for task in made
    }


def spared(lab: Lab, made: Cuts) -> dict[Task, dict[str, Estimate]]:
    """By how much less answers move without attention to the sink than without as much to words, by what stands instead."""

    def of(task: Task, way: str) -> Estimate:
        apart = [one.moved[:, 1] - one.moved[:, 0] for one in made[task][way]]
        return mean_over_seeds([bootstrap_mean(each, lab.resampling_seed(task)) for each in apart])

    return {
        task: {f"{way} instead": of(task, way) for way in special_tokens.INSTEAD} for task in made
    }


def along_relations(lab: Lab, found: Measured) -> dict[tuple[str, str], list[heads.Compared]]:
    """Heads along each dependency by weight beside the same by norm: by relation and state, of every training."""
    learned = [several for task, several in found.after.items() if lab.learned[task]]
    # Of every training the models of all tasks; the first so many, where tasks have different
    # numbers of trainings.
    models = {
        "pre-trained": [list(found.before.values())],
        "fine-tuned": [list(of) for of in zip(*learned, strict=False)],
    }
    compared: dict[tuple[str, str], list[heads.Compared]] = {}
    for relation in RELATIONS:
        for state, trainings in models.items():
            of_relation = []
            for of in trainings:
                by_weight, by_norm = (
                    [one[way][relation] for one in of] for way in ("points", "points by norm")
                )
                of_relation.append(heads.along_relation(by_weight, by_norm, lab.settings.seed))
            if enough := [one for one in of_relation if one]:  # with too few arcs there are none
                compared[relation, state] = enough
    return compared


def along_frames(lab: Lab) -> dict[str, list[dict[str, np.ndarray]]]:
    """Weights along frame-semantic links by state, of every training of the first learned task; see ``FrameReadings``."""
    readings = heads.FrameReadings(lab.settings.framenet, lab.tokenizer)
    trained_on = next((task for task in lab.tasks if lab.learned[task]), None)
    found = {"pre-trained": [readings.of(lab.encoder())]}
    if trained_on:
        found[f"fine-tuned on {trained_on.title}"] = [
            readings.of(model) for model in lab.finetunings(trained_on)
        ]
    return found


Agreements = dict[
    str, dict[str, list[heads.Agreement]]
]  # by kind of links and what is compared, of every training


def agreements(
    lab: Lab,
    along: Mapping[tuple[str, str], Sequence[heads.Compared]],
    frames: Mapping[str, Sequence[Mapping[str, np.ndarray]]],
) -> Agreements:
    """Heads by weight beside heads by norm, along dependencies and along frame links.

    Along frame links two readings of words only stand beside the weights, too; and last both of
    words only.
    """

    def beside(
        first: str, second: str, trainings: Sequence[Mapping[str, np.ndarray]]
    ) -> list[heads.Agreement]:
        return [heads.agreement(one[first], one[second], lab.settings.seed) for one in trainings]

    ways, only = heads.FrameReadings.WAYS, "words only"
    return {
        "dependencies": {
            f"{name}, {state}": [one.agreement for one in of] for (name, state), of in along.items()
        },
        "frame links": {
            f"{way}, {state}": beside("by weight", way, of)
            for state, of in frames.items()
            for way in ways
        },
        "frame links among words": {
            f"{only}, {state}": beside(only, f"{only}, by norm", of) for state, of in frames.items()
        },
    }


def record(lab: Lab, found: Agreements) -> None:
    """Put into the table of results how well heads keep their rank, and what it costs to choose one by the other measure."""
    for links, of_links in found.items():
        for what, part, unit in (
            (RANKS, "rank", "correlation"),
            (BEHIND, "held_out", "difference"),
        ):
            each = {
                name: [getattr(one, part) for one in several] for name, several in of_links.items()
            }
            lab.record(
                what.format(links),
                {name: mean_over_seeds(of) for name, of in each.items()},
                by=("kind",),
                unit=unit,
            )
            lab.record(
                f"{what.format(links)}, each training", each, by=("kind", "training"), unit=unit
            )
