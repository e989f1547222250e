"""What notebooks 1, 4 and 5 measure of the same models on the same rows, so that one pass can feed all of it.

A notebook asks its lab to ``look`` at a model. Where several notebooks run, what they will ask for
is measured before, one pass for each model and task (:func:`together`), and each finds its own part
in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .annotation.inputs import token_types
from .attention import Batch, Measurement, observe_cached, weighed
from .common import track
from .features import Features, Flow, marks
from .features.reading import Examples, Reading
from .glue import Task
from .links import dependencies, measure
from .patterns.classifiers import Classifier, load_network
from .patterns.measure import Patterns
from .patterns.validation import load_logistic

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@lru_cache(maxsize=32)
def examples(lab: Any, task: Task) -> Examples:
    """A task's examples as notebook 4 measures them: by type of token, with matched words."""
    return Examples(lab.annotated_inputs(task), lab.settings.protocol, lab.resampling_seed(task))


def readings(
    lab: Any,
) -> tuple[dict[Task, Reading], dict[Task, list[Reading]], dict[Task, Reading]]:
    """Notebook 4's measurements by task: of the pre-trained model, of every training, and of a model with random weights."""

    def read(model: PreTrainedModel, task: Task) -> Reading:
        return examples(lab, task).read(lab.look(model, task))

    before, untrained, after = lab.encoder(), lab.encoder("normal"), {}
    for task in track(lab.tasks, "measuring"):
        after[task] = [read(model, task) for model in lab.finetunings(task)]
    return (
        {task: read(before, task) for task in lab.tasks},
        after,
        {task: read(untrained, task) for task in lab.tasks},
    )


@lru_cache(maxsize=32)
def links(lab: Any, task: Task) -> list[dict[str, list[measure.TokenLink]]]:
    """Each input's links between two words as notebook 5 measures them, with places at which others have such links."""
    found = [
        measure.find_links(annotated, lab.annotator.antecedents)
        for annotated in lab.annotated_inputs(task)
    ]
    return measure.borrow(found, lab.resampling_seed(task))


def measurements(lab: Any, task: Task) -> dict[str, Measurement]:
    """The measurements that the lab's notebook makes of every model on the task's rows, by name.

    Raises:
        KeyError: a notebook that shares no pass with others.
    """
    return {"1": _of_patterns, "4": _of_features, "5": _of_links}[lab.notebook[0]](lab, task)


def _of_patterns(lab: Any, task: Task) -> dict[str, Measurement]:
    judges: dict[str, Classifier] = {
        "network": load_network().to(lab.device),
        "logistic regression": load_logistic(),
    }
    return {name: Patterns(judge, lab.tokenizer.sep_token_id) for name, judge in judges.items()}


def _of_features(lab: Any, task: Task) -> dict[str, Measurement]:
    return examples(lab, task).measurements()


def _of_links(lab: Any, task: Task) -> dict[str, Measurement]:
    inputs = lab.annotated_inputs(task)
    return {
        "from [CLS]": Features([token_types(annotated) for annotated in inputs], "[CLS]"),
        "links": measure.TokenLinkAttention(links(lab, task)),
        "centred": measure.TokenLinkAttention(links(lab, task), centred=True),
        "flow": Flow([marks(annotated) for annotated in inputs]),
        "pointing": dependencies.Pointing(inputs),
    }


def wanted(labs: Sequence[Any], task: Task) -> dict[str, Measurement]:
    """The measurements of several labs on the task's rows, each weighed as its notebook does."""
    return {
        f"{lab.notebook[0]}: {name}": weighed(one, lab.settings.weighing)
        for lab in labs
        for name, one in measurements(lab, task).items()
    }


def together(model: PreTrainedModel, batches: Sequence[Batch], what: dict[str, Any]) -> bool:
    """One pass for all that is wanted, each measurement into the cache; True, for the entry that says so."""
    observe_cached(model, batches, what)
    return True
