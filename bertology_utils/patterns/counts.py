"""The patterns of all models of a run: how frequent each is, in which heads, and what notebook 1 keeps of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attention import Measurement
from ..glue import Task
from ..results import SHARE
from ..statistics import Bootstrap, Estimate, Seed, mean_over_seeds, over_trainings
from . import labels, measure, validation
from .classifiers import Classifier, load_network
from .labels import PATTERNS
from .validation import NETWORK, REGRESSION, Evidence

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from ..lab import Lab

FIRST_THREE = ("vertical", "diagonal", "vertical+diagonal")
COVERAGE = "coverage by the two commonest patterns"
_AS_SHARE = {"unit": "share", "tolerance": SHARE}


def evidence(lab: Lab) -> dict[str, Evidence]:
    """Predictions on the randomly drawn labelled maps, for this notebook's kind of map, by who made them."""
    folder = labels.BY_NORM if lab.settings.attention == "norm" else labels.FOLDER
    return {
        who: found.of(labels.natural(folder))
        for who, found in validation.load_judges(folder).items()
    }


def label_rows(seed: Seed) -> Iterator[dict[str, Any]]:
    """How many labelled maps show each pattern, and how many readers disagree about, whatever the run; as :meth:`Counts.rows`."""
    drawn = {
        way: validation.load_judges(folder)[NETWORK].of(labels.natural(folder))
        for way, folder in (("by weight", labels.FOLDER), ("by norm", labels.BY_NORM))
    }
    values = {
        way: dict(zip(PATTERNS, map(int, found.counts.sum(axis=(0, 2))), strict=True))
        | {"all": len(found.true)}
        for way, found in drawn.items()
    }
    yield {
        "what": "labelled maps, drawn at random",
        "values": values,
        "by": ("state", "kind"),
        "unit": "count",
    }
    by_norm = dict(zip(PATTERNS, validation.label_shares(drawn["by norm"], seed), strict=True))
    yield {"what": "share of labels by norm", "values": by_norm, "by": ("kind",), **_AS_SHARE}
    disputed = labels.disputed("vertical", "heterogeneous")
    settled = {
        "all": len(disputed),
        "settled as vertical": sum(one.pattern == "vertical" for one in disputed),
    }
    yield {
        "what": "maps called vertical once and heterogeneous once",
        "values": settled,
        "by": ("kind",),
        "unit": "count",
    }


def measurements(lab: Lab, task: Task) -> dict[str, Measurement]:
    """The measurements that notebook 1 makes of every model on the task's rows, by name."""
    classifiers: dict[str, Classifier] = {
        NETWORK: load_network().to(lab.device),
        REGRESSION: validation.load_logistic(),
    }
    separator = lab.tokenizer.sep_token_id
    return {name: measure.Patterns(one, separator) for name, one in classifiers.items()}


def observe_patterns(lab: Lab, model: PreTrainedModel, task: Task) -> dict[str, Any]:
    """What each classifier calls the maps of a model on the task's rows."""
    return lab.observe(model, task, measurements(lab, task))


class Counts:
    """What the network and the regression call every map: of the encoder, of every training, and with random weights.

    Args:
        lab: the notebook's.
    """

    def __init__(self, lab: Lab):
        self.lab, encoder = lab, lab.encoder()
        self.before = {task: observe_patterns(lab, encoder, task) for task in lab.tasks}
        self.after = {
            task: [observe_patterns(lab, model, task) for model in lab.finetunings(task)]
            for task in lab.tasks
        }
        self.random = observe_patterns(lab, lab.encoder("normal"), lab.tasks[0])[NETWORK]
        self.evidence = evidence(lab)
        self.errors = {
            by: measure.classifier_errors(self.evidence[by], lab.settings.seed)
            for by in (NETWORK, REGRESSION)
        }

    def shares(self, found: dict, task: Task, by: str = NETWORK) -> dict[str, dict[str, Bootstrap]]:
        """Shares of the patterns in one pass; see :func:`bertology_utils.patterns.measure.pattern_shares`."""
        seed, possible = self.lab.resampling_seed(task), measure.possible_patterns(task)
        return measure.pattern_shares(found[by].one_hot, self.errors[by], seed, possible)

    @cached_property
    def tuned(self) -> dict[str, dict[Task, list[dict[str, dict[str, Bootstrap]]]]]:
        """:meth:`shares` of every training, by classifier and task."""
        return {
            by: {
                task: [self.shares(one, task, by) for one in several]
                for task, several in self.after.items()
            }
            for by in self.errors
        }

    @property
    def skipped(self) -> int:
        """Examples that are too short to show a pattern."""
        return sum(several[0][NETWORK].skipped for several in self.after.values())

    @property
    def labels(self) -> dict[str, Bootstrap]:
        """Share of every pattern among the labels, which need no classifier; heads resampled."""
        return dict(
            zip(
                PATTERNS,
                validation.label_shares(self.evidence[NETWORK], self.lab.settings.seed),
                strict=True,
            )
        )

    @property
    def usual(self) -> dict[Task, np.ndarray]:
        """The pattern that each head shows most often, by task, of the first training."""
        return {
            task: measure.usual_patterns(several[0][NETWORK].one_hot)
            for task, several in self.after.items()
        }

    def each(self, by: str, *patterns: str) -> dict[Task, list[Bootstrap]]:
        """Corrected share of some patterns together, by task, of every training."""
        return {
            task: [
                measure.together([one["corrected"][pattern] for pattern in patterns])
                for one in several
            ]
            for task, several in self.tuned[by].items()
        }

    def over(self, by: str, *patterns: str) -> dict[Task, Estimate]:
        """The same over all trainings."""
        return over_trainings(self.each(by, *patterns), lambda task, share: share)

    def mean(self, function: Callable[[Task, np.ndarray], Bootstrap]) -> dict[Task, Estimate]:
        """A function of the task and of which pattern the network finds where, mean over trainings."""
        return over_trainings(self.after, lambda task, one: function(task, one[NETWORK].one_hot))

    def rows(self) -> Iterator[dict[str, Any]]:
        """What the results keep of the shares, as arguments of :meth:`bertology_utils.record.Record.record`."""
        tasks = self.lab.tasks
        for task in tasks:
            for state, found in (
                ("pre-trained", self.before[task]),
                ("fine-tuned", self.after[task][0]),
            ):
                yield {
                    "what": "share of maps by head",
                    "values": found[NETWORK].shares,
                    "over": ("layer", "head", "kind"),
                    "kinds": PATTERNS,
                    "task": task,
                    "state": state,
                    "n": len(found[NETWORK].patterns),
                    **_AS_SHARE,
                }
        for version in ("as named", "corrected"):
            both = {
                task: {
                    "pre-trained": self.shares(self.before[task], task)[version],
                    "fine-tuned": self.tuned[NETWORK][task][0][version],
                }
                for task in tasks
            }
            yield {
                "what": f"share of maps, {version}",
                "values": both,
                "by": ("task", "state", "kind"),
                **_AS_SHARE,
            }
        for what, values in (
            ("share of maps: the first three patterns", self.over(NETWORK, *FIRST_THREE)),
            ("share of maps: heterogeneous, corrected", self.over(NETWORK, "heterogeneous")),
            (
                "share of maps: heterogeneous, by logistic regression",
                self.over(REGRESSION, "heterogeneous"),
            ),
        ):
            yield {"what": what, "values": values, "by": ("task",), **_AS_SHARE}
        yield from label_rows(self.lab.settings.seed)
        yield {"what": "share of labels", "values": self.labels, "by": ("kind",), **_AS_SHARE}
        yield {
            "what": "share of labelled maps named so",
            "values": dict(zip(PATTERNS, self.errors[NETWORK].matrix, strict=True)),
            "by": ("state",),
            "over": ("kind",),
            "kinds": PATTERNS,
            **_AS_SHARE,
        }
        yield {
            "what": "share of maps, random weights",
            "values": self.random.shares.mean(axis=(0, 1)),
            "over": ("kind",),
            "kinds": PATTERNS,
            **_AS_SHARE,
        }

    # Do the patterns repeat?

    def coverage(self) -> dict[Task, Estimate]:
        """Share of the heads that the two commonest patterns cover, by task."""
        return self.mean(
            lambda task, one_hot: measure.coverage(one_hot, self.lab.resampling_seed(task))
        )

    def coverage_at_random(self) -> dict[Task, float]:
        """What two patterns would cover, with luck (2.5 %), if every head's usual pattern were drawn at random."""
        return {
            task: measure.coverage_by_chance(
                usual.size, measure.possible_patterns(task).sum(), self.lab.settings.seed
            )
            for task, usual in self.usual.items()
        }

    def coverage_of_random_weights(self) -> float:
        """What two patterns cover with random weights, on the first task."""
        return measure.coverage(
            self.random.one_hot, self.lab.resampling_seed(self.lab.tasks[0])
        ).value

    def agreement(self) -> dict[str, Any]:
        """Cohen's κ of heads' usual patterns between learned tasks, after and before fine-tuning; {} for one task."""
        able = [task for task in self.lab.tasks if self.lab.learned[task]]
        seeds = [self.lab.resampling_seed(task) for task in able]
        if len(able) < 2:
            return {}

        def between(passes: Sequence[dict]) -> Bootstrap:
            return measure.task_agreement([one[NETWORK].one_hot for one in passes], seeds)

        of_seeds = zip(
            *(self.after[task] for task in able), strict=False
        )  # as many as the task with the fewest has
        return {
            "fine-tuned": mean_over_seeds([between(passes) for passes in of_seeds]),
            "pre-trained": between([self.before[task] for task in able]),
        }
