"""What notebook 4 says in words, and its numbers for the results file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..annotation.token_types import LINGUISTIC, TOKEN_TYPES
from ..claims import FAILS, HOLDS, Verdict, above
from ..claims.verdict import THIS_RUN
from ..common import axis_numbers
from ..glue.tasks import Task
from ..statistics.estimate import Estimate
from ..statistics.permutation import ManyTest
from .claims import MORE_ATTENDED
from .reading import Examples, Reading


def special_tokens(cls: float, separator: float) -> str:
    """What [CLS] and a [SEP] get before fine-tuning, in multiples of an even share, and what that means for claims."""
    found = f"Pre-trained, [CLS] gets {cls:.1f} times an even share of the attention, the most attended [SEP] {separator:.2f} times."
    if separator > 1:
        return f"{found} This model has a [SEP] sink."
    return f"{found} This model has no [SEP] sink: what the paper says of [SEP] alone cannot be tested on it."


def largest_changes(panels: Mapping[str, Mapping[str, Mapping[str, np.ndarray]]], source: str) -> str:
    """What fine-tuning adds at most in any head: "nouns +0.15; objects +0.08".

    Args:
        panels: by type, task and source the changes of all heads.
        source: whose are told.
    """
    most = {kind: [row[source].max() for row in rows.values() if source in row] for kind, rows in panels.items()}
    return "; ".join(f"{kind} {max(values):+.2f}" for kind, values in most.items() if values)


def more_on_words(before: Mapping[Task, float], after: Mapping[Task, Estimate]) -> str:
    """How the share of heads with a stripe mainly on words changes, on the task where it is highest after fine-tuning.

    Args:
        before: shares of the pre-trained model.
        after: of the fine-tuned ones.
    """
    task = max(after, key=lambda one: after[one].value)
    return (
        f"stripes mainly on words, before and after fine-tuning: {before[task]:.0%} and {after[task].value:.0%} of heads on"
        f" {task.title}, the highest of {len(after)} tasks"
    )


def which_gets_more(sources: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> list[str]:
    """Of each source the layers in which [CLS] gets more than one [SEP]: "bert-base: [CLS] gets more in layers 1-4 of 12".

    Args:
        sources: by name what [CLS] and [SEP] get, each of shape (layers,).
    """

    def layers(more: np.ndarray) -> str:
        if more.all():
            return f"all {len(more)} layers"
        found = ", ".join(map(str, np.array(axis_numbers(len(more)))[more])) or "none"
        return f"layers {found} of {len(more)}"

    return [
        f"{name}: [CLS] gets more than [SEP] in {layers(np.asarray(cls) > np.asarray(sep))};"
        f" in the last layer [CLS] gets {cls[-1]:.2f} and [SEP] {sep[-1]:.2f}"
        for name, (cls, sep) in sources.items()
    ]


def gainers(changes: Mapping[Task, Sequence[ManyTest]], kind: str, least: float) -> str:
    """Where fewest heads give a type more after fine-tuning, of the paper's tasks: how many do, and how many give less.

    Args:
        changes: by task and training, of :data:`TOKEN_TYPES` in every head; the first training counts.
        kind: the type.
        least: how much more counts.
    """
    of_kind = {
        task: first.means[TOKEN_TYPES.index(kind)]
        for task, (first, *_) in changes.items()
        if task.name in MORE_ATTENDED[kind]
    }
    if not of_kind:
        return f"{kind}: none of the paper's tasks is here"
    task, means = min(of_kind.items(), key=lambda item: int((item[1] >= least).sum()))
    more, less = int((means >= least).sum()), int((means < 0).sum())
    return f"{kind} on {task.title}: {more} of {means.size} heads give them {least} more, {less} give them less than before"


def tally(estimates: Iterable[Estimate], least: float) -> str:
    """On how many tasks a number is surely above a border, surely below it, and neither."""
    outcomes = [above(one, least).outcome for one in estimates]
    yes, no = outcomes.count(HOLDS), outcomes.count(FAILS)
    return (
        f"surely above {least} on {yes} of {len(outcomes)} tasks, surely below on {no}, open on {len(outcomes) - yes - no}"
    )


def sentences(verdicts: Sequence[Verdict], cls: float, separator: float) -> list[str]:
    """The notebook's summary.

    Args:
        verdicts: all of the run.
        cls, separator: as for :func:`special_tokens`.
    """
    mine = {one.id: one for one in verdicts if one.model == THIS_RUN}

    def told(beginning: str, claims: Mapping[str, str]) -> str:
        return beginning + ", ".join(f"{words} ({mine[name].outcome})" for words, name in claims.items()) + "."

    # fmt: off
    stripes = {"mostly on [CLS] and [SEP]": "stripes-special", "on nothing else": "stripes-exclusive",
               "because of pre-training": "stripes-pretraining", "beside them what words get is negligible": "words-negligible"}
    layers = {"earlier layers attend to [CLS]": "cls-early", "later ones to [SEP]": "sep-late",
              "[SEP] gets most where it stands alone": "sep-one-sentence"}
    controls = {"these only where the paper says so": "only-there"}  # the others stand in the appendix, below
    # fmt: on
    return [
        special_tokens(cls, separator),
        told("Stripes stand ", stripes),
        told("Over the layers: ", layers),
        told("On the paper's tasks fine-tuning makes some head attend more to ", {k: f"more-{k}" for k in MORE_ATTENDED}),
        told("More than matched words gain ", {k: f"more-{k}-matched" for k in MORE_ATTENDED} | controls),
    ]


def of_tasks(found: Mapping[Task, Estimate]) -> dict[str, dict[str, float]]:
    """Estimates by task, for the results file."""
    return {task.name: estimate.summary() for task, estimate in found.items()}


def of_heads(models: Mapping[str, Mapping[Task, Reading]]) -> dict[str, dict[str, dict[str, np.ndarray]]]:
    """By model, task and type what every head gives, for the results file."""
    return {
        name: {task.name: {kind: one.heads(kind) for kind in TOKEN_TYPES} for task, one in readings.items()}
        for name, readings in models.items()
    }


def of_changes(tests: Mapping[Task, Sequence[ManyTest]], kinds: Sequence[str]) -> dict[str, dict[str, np.ndarray]]:
    """By task and type what fine-tuning adds in every head, first training, for the results file."""
    return {task.name: dict(zip(kinds, first.means, strict=True)) for task, (first, *_) in tests.items()}


def of_examples(examples: Mapping[Task, Examples]) -> dict[str, dict]:
    """How many examples have each type, and how many words were cut off, for the results file."""
    return {
        "examples": {task.name: of_task.present for task, of_task in examples.items()},
        "lost": {task.name: sum(annotated.lost for annotated in of_task.inputs) for task, of_task in examples.items()},
    }


def of_excess(tests: Mapping[str, ManyTest]) -> dict[str, dict]:
    """What types get above their matched words, by model, type and head, and of how many examples."""
    n = next(iter(tests.values())).n[:, 0, 0]
    return {
        "excess": {name: dict(zip(LINGUISTIC, one.means, strict=True)) for name, one in tests.items()},
        "matched_examples": dict(zip(LINGUISTIC, n, strict=True)),
    }
