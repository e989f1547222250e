"""What notebook 5 and its appendix ask of the same models: every head along links, and [CLS] in the last layer (§4.5)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .annotation.inputs import TOKEN_TYPES, AnnotatedInput, token_types, wordpieces
from .attention import Measurement
from .attention.batches import batches_of
from .common import track
from .features import Features, Flow, compare, in_even_shares, marks
from .glue import Task
from .lab import kept
from .links import dependencies, measure
from .links.measure import (
    BEFORE,
    FROM_CLS,
    LINK_TYPES,
    PAIRS,
    RANDOM,
    TUNED,
    Clear,
    Found,
    LinkHeads,
    OfInput,
)
from .results import P_VALUE
from .statistics import Bootstrap, bootstrap_mean
from .verdicts import Support, never_adjacent, no_sink

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from .lab import Lab

FIRST = (
    "share of resamples in which [CLS] attends most to it"  # the same, by task, type and training
)
LARGEST, SURE = "largest excess along links", "heads surely 0.02 above places and rivals"
CLS_CLAIMS = {"cls-reads-sep": "[SEP]", "cls-reads-punctuation": "punctuation"}
_DIAGONAL = {f"{words}-diagonal": names for words, names in PAIRS.items()}
LINK_CLAIMS = (*_DIAGONAL, *measure.INDISTINCT)


@dataclass(frozen=True)
class Looks:
    """What a pass over each task's inputs found of every model, and what follows from it.

    Attributes:
        inputs: annotated, by task.
        links: of every input, by task.
        found: by state of the model and task; of fine-tuned models the first training.
        tuned: of every training, by task.
        learned: which tasks every training learned.
        seed: of resampling and permutations.
    """

    inputs: Mapping[Task, Sequence[AnnotatedInput]]
    links: Mapping[Task, Sequence[OfInput]]
    found: Mapping[str, Mapping[Task, Found]]
    tuned: Mapping[Task, Sequence[Found]]
    learned: Mapping[Task, bool]
    seed: int

    def of(self, state: str) -> list[Found]:
        """Of every task."""
        return list(self.found[state].values())

    @cached_property
    def examples(self) -> dict[str, int]:
        """How many examples have a link, by type of link."""
        return measure.examples(self.of(BEFORE))

    @cached_property
    def clear(self) -> dict[str, dict[str, Clear]]:
        """Tests of every head against places and rivals, by state and type of link."""
        return {
            state: measure.clear(self.of(state), self.examples, self.seed) for state in self.found
        }

    @cached_property
    def heads(self) -> dict[str, LinkHeads]:
        """What every head gives links and neighbours, by state."""
        return {
            state: measure.of_heads(self.of(state), tests) for state, tests in self.clear.items()
        }

    @cached_property
    def rho(self) -> dict[str, dict[str, Bootstrap]]:
        """How attention along links goes with attention to neighbours, over pre-trained heads, by what and type of link."""
        return measure.correlations(self.of(BEFORE), self.examples, self.seed)

    @cached_property
    def adjacent(self) -> dict[str, float]:
        """The share of links between neighbours, by pair of words."""
        every = [of_input for of_task in self.links.values() for of_input in of_task]
        return {words: measure.share_adjacent(every, names) for words, names in PAIRS.items()}

    @cached_property
    def tests(self) -> dict[str, dict[str, Clear]]:
        """Tests of the pre-trained heads, and of every training's on the tasks that were learned, by model and type."""
        trainings = zip(
            *(self.tuned[task] for task in self.tuned if self.learned[task]), strict=False
        )
        several = {
            f"training {at}": measure.clear(one, self.examples, self.seed)
            for at, one in enumerate(trainings, 1)
        }
        return {BEFORE: self.clear[BEFORE]} | several

    @cached_property
    def from_cls(self) -> dict[str, dict[Task, np.ndarray]]:
        """What [CLS] gives each type of token in the last layer, by state and task, shape (examples, types)."""
        return {
            state: {task: compare.last_layer(one["from [CLS]"]) for task, one in of.items()}
            for state, of in self.found.items()
        }

    @cached_property
    def first(self) -> dict[Task, dict[str, list[float]]]:
        """The share of resamples in which [CLS] attends most to a type, by task, type and training."""
        return compare.shares_first(self.tuned, tuple(CLS_CLAIMS.values()), self.seed)

    @cached_property
    def no_sink(self) -> str:
        """What is missing where the pre-trained model gives a [SEP] less than an even share; "" where nothing is."""
        special = {task: [marks(one) for one in of_task] for task, of_task in self.inputs.items()}
        return no_sink(
            in_even_shares(
                {task: one["flow"] for task, one in self.found[BEFORE].items()}, special
            )["[SEP]"]
        )

    def estimates(self, claim: str) -> dict[str, Any]:
        """What :meth:`bertology_utils.record.Record.judge` needs to judge a claim of this section: found, and unmet."""
        if claim in CLS_CLAIMS:
            shares = {task: of_task[CLS_CLAIMS[claim]] for task, of_task in self.first.items()}
            found: dict[Any, Support | Bootstrap] = {
                task: measure.surely(each, f"first in {min(each):.0%} of resamples")
                for task, each in shares.items()
            }
            return {"found": found, "unmet": self.no_sink}
        names = (_DIAGONAL | measure.INDISTINCT)[claim]
        words = next(words for words, both in PAIRS.items() if set(names) <= set(both))
        along = self.rho[measure.ALONG]
        if claim in _DIAGONAL:
            found = {name: along[name] for name in names if name in along}
        else:
            found = dict(measure.some_head(self.tests, names))
        return {"found": found, "unmet": never_adjacent(self.adjacent[words])}


@kept
def links_of(lab: Lab, task: Task) -> Sequence[OfInput]:
    """Each input's links between two words, with places at which other inputs have such links."""
    links = [
        measure.find_links(annotated, lab.annotator.antecedents)
        for annotated in lab.annotated_inputs(task)
    ]
    return measure.borrow(links, lab.resampling_seed(task))


def measurements(lab: Lab, task: Task) -> dict[str, Measurement]:
    """The measurements that notebook 5 makes of every model on the task's rows, by name."""
    inputs = lab.annotated_inputs(task)
    return {
        "from [CLS]": Features([token_types(annotated) for annotated in inputs], "[CLS]"),
        "links": measure.TokenLinkAttention(links_of(lab, task)),
        "centred": measure.TokenLinkAttention(links_of(lab, task), centred=True),
        "flow": Flow([marks(annotated) for annotated in inputs]),
        "pointing": dependencies.Pointing(inputs),
    }


def observe_links(lab: Lab, model: PreTrainedModel, task: Task) -> Found:
    """What these measurements say of a model."""
    return lab.observe(model, task, measurements(lab, task))


def of_lab(lab: Lab) -> Looks:
    """The looks at a lab's models: pre-trained, with random weights, and every training of its tasks."""
    pretrained, random = lab.encoder(), lab.encoder("normal")
    found: dict[str, dict[Task, Found]] = {BEFORE: {}, TUNED: {}, RANDOM: {}}
    tuned = {}
    for task in track(lab.tasks, "measuring"):
        found[BEFORE][task], found[RANDOM][task] = (
            observe_links(lab, pretrained, task),
            observe_links(lab, random, task),
        )
        tuned[task] = [observe_links(lab, model, task) for model in lab.finetunings(task)]
        found[TUNED][task] = tuned[task][0]
    inputs = {task: lab.annotated_inputs(task) for task in lab.tasks}
    return Looks(
        inputs,
        {task: links_of(lab, task) for task in lab.tasks},
        found,
        tuned,
        lab.learned,
        lab.settings.seed,
    )


def rows_of(seen: Looks) -> Iterator[dict[str, Any]]:
    """Arguments of :meth:`bertology_utils.record.Record.record` for every head along links, and what [CLS] looks at."""
    everywhere = sum(map(len, seen.inputs.values()))
    yield {"what": "examples with links", "values": seen.examples, "by": ("kind",), "unit": "count"}
    for name, n in seen.examples.items():
        for state, one in seen.heads.items():
            of, test = {"state": state, "kind": name}, seen.clear[state][name]
            yield of | {
                "what": measure.SCORES,
                "values": one.scores[name],
                "n": n,
                "unit": "weight",
            }
            compared = {
                what: (one.excess[way][name], test.plain) for way, what in measure.EXCESS.items()
            }
            if test.rivals:  # none in parsed text, of pronouns
                compared[measure.ABOVE_RIVALS] = test.rivals[0].means, test.rivals[0]
            for what, (values, tested) in compared.items():
                yield of | {
                    "what": what,
                    "values": values,
                    "n": int(tested.n.max()),
                    "unit": "difference",
                }
            yield of | {
                "what": measure.NEIGHBOURS,
                "values": one.neighbours[name],
                "n": everywhere,
                "unit": "weight",
            }
    for label, rho in seen.rho.items():
        yield {
            "what": measure.RHO.format(label),
            "values": rho,
            "by": ("kind",),
            "state": BEFORE,
            "unit": "correlation",
        }
    yield {
        "what": "share of links between neighbours",
        "values": seen.adjacent,
        "by": ("kind",),
        "unit": "share",
    }
    yield {
        "what": LARGEST,
        "values": largest_excess(seen),
        "by": ("kind",),
        "state": BEFORE,
        "unit": "difference",
    }
    count = {
        state: {name: int(one.heads.sum()) for name, one in of.items()}
        for state, of in seen.clear.items()
    }
    yield {"what": SURE, "values": count, "by": ("state", "kind"), "unit": "count", "tolerance": 1}
    means = {
        state: dict(zip(of, compare.type_means(of.values()), strict=True))
        for state, of in seen.from_cls.items()
    }
    yield {
        "what": FROM_CLS,
        "values": means,
        "by": ("state", "task"),
        "over": ("kind",),
        "kinds": TOKEN_TYPES,
        "unit": "weight",
    }
    yield {
        "what": FIRST,
        "values": seen.first,
        "by": ("task", "kind", "training"),
        "state": TUNED,
        "unit": "share",
        "tolerance": P_VALUE,
    }


def largest_excess(seen: Looks) -> dict[str, Bootstrap]:
    """The largest excess over other inputs' places of a pre-trained head, by pair of words."""
    excess, found = seen.heads[BEFORE].excess[measure.AS_IS], {}
    for words, names in PAIRS.items():
        if seen.examples.keys() & set(names):
            name, at = measure.furthest(excess, names)
            values = measure.differences(seen.of(BEFORE), name)[:, *at]
            if len(known := values[np.isfinite(values)]):
                found[words] = bootstrap_mean(known, seen.seed)
    return found


def from_word(model: Any, tokenizer: Any, sentence: str, word: str) -> dict[str, np.ndarray]:
    """What one word of a sentence gives each of its words, shape (layers, heads): the largest between their wordpieces.

    Args:
        model: encoder or classifier.
        tokenizer: the model's.
        sentence: one's own.
        word: that looks, as it stands in the sentence.

    Raises:
        ValueError: no such word.
    """
    offsets = tokenizer(sentence, return_offsets_mapping=True)["offset_mapping"]
    places = {
        found.group(): wordpieces(offsets, *found.span()) for found in re.finditer(r"\w+", sentence)
    }
    if word not in places:
        raise ValueError(f"no word {word!r} in {sentence!r}; it has {', '.join(places)}")
    maps = measure.maps_of(model, batches_of([sentence], tokenizer), 0)[
        :, :, places[word]
    ]  # (layers, heads, rows, tokens)
    return {other: maps[..., columns].max(axis=(2, 3)) for other, columns in places.items()}


def with_every_noun(lab: Lab, model: Any) -> np.ndarray:
    """The excess from pronouns to nouns if a pronoun is linked with every noun of its sentence, as in parsed text.

    Args:
        lab: of notebook 5.
        model: encoder or classifier.

    Returns:
        Above other inputs' places, shape (examples, layers, heads); NaN without such links.
    """
    found = []
    for task in track(lab.tasks, "linking every noun"):
        each = [
            measure.find_links(annotated, antecedents=False)
            for annotated in lab.annotated_inputs(task)
        ]
        links = measure.TokenLinkAttention(measure.borrow(each, lab.resampling_seed(task)))
        found.append(lab.observe(model, task, {measure.AS_IS: links}))
    return measure.differences(found, LINK_TYPES[3])
