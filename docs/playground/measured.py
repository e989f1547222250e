"""What was measured of each head of a study's encoder and fine-tuned models, from ``results/``, for the second view of the page.

Each measure says in a sentence what it is, and on which notebook the arrays are explained and tested.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from bertology_utils import stats
from bertology_utils.measurements import (
    carried,
    drift,
    frame_links,
    links,
    named_maps,
    pointing,
    shared_words,
    special_tokens,
    without_each_head,
)
from bertology_utils.study import Study

# By what distinguishes them, such as the task: an estimate with value, low and high, or values alone.
Parts = Iterator[tuple[str, xr.Dataset | xr.DataArray]]
OFTEN = 0.025  # of all dependencies: rarer kinds are left out, as in notebook 8
DEPENDENCIES = {
    "nsubj": "subject → verb",
    "case": "preposition → noun",
    "det": "article → noun",
    "advmod": "adverb → verb",
    "amod": "adjective → noun",
    "obj": "object → verb",
    "obl": "adjunct → verb",
    "compound": "noun → next noun",
    "conj": "second conjunct → first",
    "mark": "“that”, “to” → verb",
    "cc": "“and” → conjunct",
    "aux": "auxiliary → verb",
    "nmod": "noun with preposition → noun",
    "cop": "“is” → predicate",
}


class Measure(NamedTuple):
    """A number of each head: its name, unit and digits, the notebook that explains it, what it is, and its parts."""

    what: str
    unit: str
    digits: int
    page: str
    says: str
    parts: Callable[[Study], Parts]


def costs(study: Study) -> Parts:
    """Loss added without each head, by task."""

    def added(one: xr.Dataset) -> xr.DataArray:
        whole = one.loss.astype(float)
        return 100 * (one.loss_without - whole) / whole.mean("example")

    return by_task(study.measure(without_each_head), added)


def gains(study: Study) -> Parts:
    """Gain in score without each head, by task."""
    without = study.measure(without_each_head)
    return by_task(without, lambda one: stats.score(one, "_without") - stats.score(one))


def twins(study: Study) -> Parts:
    """Attention to the same word in the other sentence, by task."""
    return by_task(study.measure(shared_words), lambda one: 100 * one.excess.astype(float))


def changes(study: Study) -> Parts:
    """Change of each head's maps in fine-tuning, by task."""
    for task, one in study.measure(drift).items():
        yield task, one.distance_of_head.astype(float).mean(["run", "example"])


def specials(study: Study) -> Parts:
    """Weight on [CLS] and [SEP]."""
    weight = study.measure(special_tokens)["treebank"].weight.astype(float)
    for kind, text in (("one sentence", ""), ("two sentences", ", pairs of sentences")):
        for token in ("[CLS]", "[SEP]"):
            yield f"{token}{text}", 100 * weight.sel(input=kind, token=token).mean("example")


def passed_on(study: Study) -> Parts:
    """Shares of [CLS] and [SEP] by norm in what each head passes on, mean over tasks and runs."""
    shares = [
        one.share_of_head.astype(float).mean("run") for one in study.measure(carried).values()
    ]
    mean = 100 * sum(shares) / len(shares)
    for state in ("fine-tuned", "pre-trained"):
        for kind in ("[CLS]", "[SEP]"):
            yield f"{kind}, {state}", mean.sel(state=state, type=kind, count="norm")


def governors(study: Study) -> Parts:
    """How many governors each head finds, by dependency; all of the frequent ones first."""
    words = study.measure(pointing)["treebank"]
    depends = ((words.governor != 0) & (words.relation != "punct")).values
    finds = 100 * (words.attended == words.governor).transpose("layer", "head", "word")
    kinds, counts = np.unique(words.relation.values[depends], return_counts=True)
    chosen = {}
    for kind in kinds[counts > OFTEN * counts.sum()]:
        name = f"{DEPENDENCIES[kind]} ({kind})" if kind in DEPENDENCIES else str(kind)
        chosen[name] = depends & (words.relation.values == kind)
    for name, one in {"all of these": np.any([*chosen.values()], axis=0), **chosen}.items():
        yield name, finds.isel(word=one).mean("word")


def linked(study: Study) -> Parts:
    """Weight along links of grammar beyond that at the same places elsewhere, before fine-tuning, over tasks."""
    before = [one.isel(run=0).sel(state="pre-trained") for one in study.measure(links).values()]
    weights = [one.weight.sel(above="places").astype(float) for one in before]
    weight = xr.concat(weights, "example", coords="minimal", compat="override")
    for kind in weight.kind.values:
        yield str(kind), 100 * weight.sel(kind=kind).mean("example")


def framed(study: Study) -> Parts:
    """Weight along FrameNet's links beyond place and words, by direction."""
    weight = study.measure(frame_links)["framenet"].weight.astype(float)
    for direction in weight.direction.values:
        beyond = weight.sel(direction=direction, beyond=["place", "place and words"])
        yield str(direction), 100 * beyond.mean("example").min("beyond")


def patterns(study: Study) -> Parts:
    """Shares of patterns among each head's maps as the network names them, mean over tasks and runs."""
    named = study.measure(named_maps)
    for state in ("fine-tuned", "pre-trained"):
        for at, pattern in enumerate(next(iter(named.values())).pattern.values):
            shares = [
                (one.named.sel(state=state, classifier="network") == at).mean(["run", "example"])
                for one in named.values()
            ]
            yield f"{pattern}, {state}", 100 * sum(shares) / len(shares)


def by_task(several: dict[str, xr.Dataset], value: Callable[[xr.Dataset], xr.DataArray]) -> Parts:
    """Means of a value over runs and rows with their intervals."""
    estimates = stats.estimate({task: value(one) for task, one in several.items()})
    for task in several:
        yield task, estimates[["value", "low", "high"]].sel(task=task)


# The most telling first.
MEASURES = {
    "Without the head": [
        Measure("loss added", "%", 1, "6_disabling_heads", "How much the loss of a fine-tuned model rises if the head attends to all tokens equally (1/L), in percent of the whole model's loss. A task needs a head if this is high.", costs),
        Measure("gain in score", "points", 1, "6_disabling_heads", "How many points of accuracy (on STS-B, of correlation) a fine-tuned model gains if the head attends to all tokens equally (1/L). Most of the differences are noise, as the intervals show.", gains),
    ],
    "What the head attends to": [
        Measure("weight on [CLS] and [SEP]", "%", 0, "8_pretrained_encoder", "How much of its attention the average token of a sentence gives to [CLS], or to all [SEP] together, before fine-tuning.", specials),
        Measure("governors found", "%", 0, "8_pretrained_encoder", "For how many words the head attends, of all other words, most to the one that the word depends on, such as the verb of a subject. Before fine-tuning; by the type of dependency.", governors),
        Measure("weight along links", "points", 1, "5_token_to_token", "How much more attention a word gives to a word that grammar links with it than to words that stand at the same places in other sentences. Before fine-tuning.", linked),
        Measure("weight along frame links", "points", 1, "2_framenet_heads", "How much more attention goes from a predicate to its frame elements, or back, than place and words explain. Before fine-tuning.", framed),
        Measure("shared words", "points", 1, "6_disabling_heads", "How much more attention a word gives to the same word in the other sentence than to the other words there. After fine-tuning.", twins),
        Measure("patterns", "%", 0, "1_attention_patterns", "How many of the head's attention maps show this pattern, as a convolutional network names it; mean over the tasks.", patterns),
    ],
    "What it passes on, and what fine-tuning changes": [
        Measure("share of [CLS] and [SEP] by norm", "%", 0, "7_value_norms", "How much of what the head passes on comes from [CLS], or from [SEP]: weights times the lengths of the vectors that they multiply; mean over the tasks.", passed_on),
        Measure("change of the maps", "1 − cosine", 2, "3_finetuning_drift", "How far the head's attention maps after fine-tuning are from those before, from 0 for equal maps to 1.", changes),
    ],
}  # fmt: skip
PAGES = {one.page for several in MEASURES.values() for one in several}


def measured(study: Study) -> list[dict[str, Any]]:
    """All that a study has on file, as the page reads it: each part of each measure, with values in order of heads."""
    found = []
    for group, several in MEASURES.items():
        for *about, parts in several:
            own = {"group": group, **dict(zip(Measure._fields, about, strict=False))}
            with contextlib.suppress(FileNotFoundError):  # what is not measured yet
                found += [own | entry(*part, own["digits"]) for part in parts(study)]
    return found


def typical(study: Study) -> str:
    """How often disabling one head changes an answer on real film reviews, in a sentence."""
    try:
        one = study.measure(without_each_head)["SST-2"]
    except (FileNotFoundError, KeyError):
        return ""
    changed = 100 * float((one.right_without != one.right).mean())  # of two labels
    return (
        f"A head that turns an answer is rare: on real film reviews, disabling one head changes {changed:.1f} % of the"
        f" answers (mean over {one.sizes['layer'] * one.sizes['head']} heads)."
    )


def entry(of: str, values: xr.Dataset | xr.DataArray, digits: int) -> dict[str, Any]:
    """One part of a measure: the values of all heads, and the ends of their intervals where there are some."""
    arrays = values if isinstance(values, xr.Dataset) else {"value": values}
    kept: dict[str, Any] = {"of": of}
    for name, one in arrays.items():
        flat = one.transpose("layer", "head").values.ravel().round(digits + 1)
        kept[str(name)] = [float(number) if np.isfinite(number) else None for number in flat]
    return kept
