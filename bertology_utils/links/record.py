"""Everything that notebook 5 records and judges (§4.5): heads along links, along dependencies, and [CLS] (Fig 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..annotation.inputs import TOKEN_TYPES, token_types
from ..attention import Measurement
from ..common import head_name, track
from ..features import Features, Flow, in_even_shares, marks
from ..features.compare import mean_over_examples
from ..glue import Task
from ..lab import Lab, kept
from ..results import P_VALUE
from ..statistics import Bootstrap, ManyTest, Seed, bootstrap_mean, heads_by_size, means_with_gaps
from ..verdicts import Support, all_of, never_adjacent, no_sink
from . import measure
from .dependencies import ROWS, arcs_of, relation_test
from .measure import LINK_TYPES, PAIRS, InputLinks, LinkScores, TokenLinkAttention

# States of a model.
BEFORE, TUNED, RANDOM = "pre-trained", "fine-tuned", "random weights"
# Names of rows in results.json; of every head, by state of the model and type of link.
ALONG = "weight along links"
ABOVE_PLACES = "weight along links above other inputs' places"
CENTRED = "the same with each word's popularity off"
ABOVE_RIVALS = "weight along links above rivals"
AHEAD = "share of links ahead of all their rivals"
NEIGHBOURS = "weight on the neighbour on the links' side"
HIGHEST = 5  # heads by type of link that are shown with intervals
RHO = "ρ with attention to neighbours, attention along links"
# By state, task and type of token; and by task, type and fine-tuning run.
FROM_CLS = "weight from [CLS], last layer"
FIRST = "share of resamples in which [CLS] attends most to it"
# What a claim is about: types of link, or the token to which [CLS] attends most. Of verbs the paper
# speaks of the direction from the verb only.
DIAGONAL = {"verbs-diagonal": PAIRS["verbs"], "pronouns-diagonal": PAIRS["pronouns"]}
INDISTINCT = {
    "verbs-indistinct": LINK_TYPES[:1],
    "subjects-indistinct": LINK_TYPES[1:2],
    "pronouns-indistinct": PAIRS["pronouns"],
}
CLS_CLAIMS = {"cls-reads-sep": "[SEP]", "cls-reads-punctuation": "punctuation"}
Found = Mapping[str, Any]  # what one pass over one task's inputs found of a model, by measurement
Tests = Mapping[str, Sequence[ManyTest]]  # of every head, by type of link


@kept
def links_of(lab: Lab, task: Task) -> Sequence[InputLinks]:
    """Each input's links between two words, with places at which other inputs have such links."""
    antecedents = lab.annotator.antecedents
    links = [measure.find_links(annotated, antecedents) for annotated in lab.annotated_inputs(task)]
    return measure.borrow(links, lab.resampling_seed(task))


def measurements(lab: Lab, task: Task) -> dict[str, Measurement]:
    """The measurements that notebook 5 makes of every model on the task's rows, by name."""
    inputs = lab.annotated_inputs(task)
    return {
        "from [CLS]": Features([token_types(annotated) for annotated in inputs], "[CLS]"),
        "links": TokenLinkAttention(links_of(lab, task)),
        "centred": TokenLinkAttention(links_of(lab, task), centred=True),
        "flow": Flow([marks(annotated) for annotated in inputs]),
    }


def run(lab: Lab) -> None:
    """Record and judge what §4.5 says, of every task and model; controls and random weights included."""
    pretrained, random = lab.encoder(), lab.encoder("normal")
    before: dict[Task, Found] = {}
    untrained: dict[Task, Found] = {}
    tuned: dict[Task, list[Found]] = {}
    for task in track(lab.tasks, "measuring"):
        before[task] = lab.observe(pretrained, task, measurements(lab, task))
        untrained[task] = lab.observe(random, task, measurements(lab, task))
        tuned[task] = [
            lab.observe(model, task, measurements(lab, task))
            for model in lab.lazy_classifiers(task)
        ]
    # Of fine-tuned models rows have each task's first run.
    states = {BEFORE: before, TUNED: {task: one[0] for task, one in tuned.items()}}
    states[RANDOM] = untrained
    record_links(lab, states, tuned)
    record_relations(lab)
    record_from_cls(lab, states, tuned)
    lab.fact(annotation=lab.annotator.name, learned=lab.learned)


def record_links(
    lab: Lab, states: Mapping[str, Mapping[Task, Found]], tuned: Mapping[Task, Sequence[Found]]
) -> None:
    """Every head along links, above places and rivals, and on neighbours; examples of all tasks together.

    Args:
        lab: of the notebook.
        states: by state of the model and task.
        tuned: of every fine-tuning run, by task.
    """
    seed = lab.settings.seed
    links = [of_input for task in lab.tasks for of_input in links_of(lab, task)]
    adjacent = measure.share_adjacent(links)
    lab.record("share of links between neighbours", adjacent, by=("kind",), unit="share")
    by_chance = measure.ahead_by_chance(links)
    lab.record(f"{AHEAD}, by chance", by_chance, by=("kind",), unit="share")
    tests = {state: all_link_tests(models.values(), seed) for state, models in states.items()}
    passing: dict[str, dict[str, int]] = {state: {} for state in states}
    rho: dict[str, Bootstrap] = {}
    for state, models in states.items():
        scores = measure.joined_scores(one["links"] for one in models.values())
        counts = count_examples(scores)
        around = np.concatenate([one["flow"].neighbours for one in models.values()])
        for kind, (places, centred, *rivals) in tests[state].items():
            along = scores.along[:, LINK_TYPES.index(kind)]
            beside = measure.neighbour_weights(around, links, kind)

            def heads(what: str, values: np.ndarray, n: int, unit: str = "weight") -> None:
                lab.record(what, values, state=state, kind=kind, n=n, unit=unit)

            heads(ALONG, np.nanmean(along, axis=0), counts[kind])
            ahead = scores.ahead[:, LINK_TYPES.index(kind)]
            if rivals and np.isfinite(ahead).any():
                n = int(np.isfinite(ahead[:, 0, 0]).sum())
                heads(AHEAD, np.nanmean(ahead, axis=0), n, "share")
            heads(NEIGHBOURS, beside.mean(axis=0), len(beside))
            above = [(ABOVE_PLACES, places), (CENTRED, centred)]
            for what, test in above + [(ABOVE_RIVALS, one) for one in rivals[:1]]:
                heads(what, test.means, int(test.n.max()), "difference")
            passing[state][kind] = int(measure.passes_all([places, centred, *rivals]).sum())
            if state == BEFORE:
                rho[kind] = measure.diagonal_correlation(along, beside, seed)
        if state == BEFORE:
            lab.record("examples with links", counts, by=("kind",), unit="count")
            record_highest(lab, scores, tests[state])
    lab.record(RHO, rho, by=("kind",), state=BEFORE, unit="correlation")
    what = "heads surely 0.02 above places and rivals"
    lab.record(what, passing, by=("state", "kind"), unit="count", tolerance=1)
    by_model = {BEFORE: tests[BEFORE]}
    learned = [several for task, several in tuned.items() if lab.learned[task]]
    for number, models_of_run in enumerate(zip(*learned, strict=False), start=1):
        by_model[f"run {number}"] = all_link_tests(models_of_run, seed)
    judge_links(lab, by_model, rho, adjacent)


def count_examples(scores: LinkScores) -> dict[str, int]:
    """Number of examples with a link of each type, for the types that the data have."""
    counts = np.isfinite(scores.along[:, :, 0, 0]).sum(axis=0)
    return {name: int(n) for name, n in zip(LINK_TYPES, counts, strict=True) if n}


def all_link_tests(models: Iterable[Found], seed: Seed) -> dict[str, list[ManyTest]]:
    """Tests of every head of a model by type of link; see :func:`.measure.link_tests`.

    Args:
        models: what a pass found of it, of every task.
        seed: of the permutations.
    """
    models = list(models)
    both = [measure.joined_scores(one[name] for one in models) for name in ("links", "centred")]
    return {kind: measure.link_tests(both, kind, seed) for kind in count_examples(both[0])}


def record_highest(lab: Lab, scores: LinkScores, tests: Tests) -> None:
    """The highest heads by type of link, above other inputs' places and above rivals, with intervals.

    Their order is that of the least of what all tests say, and they are chosen and measured on the
    same examples: the first ones' numbers are a little too large.
    """
    controls = {ABOVE_PLACES: scores.above_places, ABOVE_RIVALS: scores.above_rivals}
    highest: dict[str, dict[str, Bootstrap]] = {what: {} for what in controls}
    for kind, of_kind in tests.items():
        least = np.fmin.reduce([test.means for test in of_kind])
        for head in heads_by_size(least)[:HIGHEST]:
            for what, of in controls.items():
                values = of[:, LINK_TYPES.index(kind), *head]
                if np.isfinite(values).any():
                    mean = bootstrap_mean(values[np.isfinite(values)], lab.settings.seed)
                    highest[what][f"{kind}, {head_name(*head)}"] = mean
    for what, values_of in highest.items():
        what = f"{what}, highest heads"
        lab.record(what, values_of, by=("kind",), state=BEFORE, unit="difference")


def judge_links(
    lab: Lab,
    tests: Mapping[str, Tests],
    rho: Mapping[str, Bootstrap],
    adjacent: Mapping[str, float],
    **options: Any,
) -> None:
    """Judge the claims about links.

    Args:
        lab: of the notebook.
        tests: by model, of :func:`all_link_tests`.
        rho: by type of link, of :func:`.measure.diagonal_correlation`.
        adjacent: the share of links between neighbours, by pair of words.
        options: of :meth:`bertology_utils.record.Record.judge`.
    """
    for claim, kinds in (DIAGONAL | INDISTINCT).items():
        words = next(words for words, names in PAIRS.items() if set(kinds) <= set(names))
        unmet = never_adjacent(adjacent[words])
        estimates: dict[str, Any] = {kind: rho[kind] for kind in kinds if kind in rho}
        if claim in INDISTINCT:
            pairs = [(kind, model) for kind in kinds for model in tests if kind in tests[model]]
            # Of several that are as sure, the first is named: that with the largest excess.
            pairs.sort(key=lambda pair: -np.nanmax(tests[pair[1]][pair[0]][0].means))
            estimates = {
                f"{kind}, {model}": measure.some_head_passes(tests[model][kind])
                for kind, model in pairs
            }
        lab.judge(claim, estimates, unmet=unmet, unit="correlation", **options)


def record_relations(lab: Lab) -> None:
    """Heads along dependencies, pre-trained, and whether one points from subject to verb better than a distance."""
    tests = {
        relation: relation_test(relation, arcs, lab.settings.seed)
        for relation, arcs in arcs_of(lab, lab.encoder(), lab.tasks).items()
        if len(set(arcs.example)) > 1  # a half chooses, a half is measured
    }
    for what, part, unit in ROWS:
        values = {relation: getattr(test, part) for relation, test in tests.items()}
        lab.record(what, values, by=("kind",), state=BEFORE, unit=unit)
    subjects = {"": tests["nsubj"].support} if "nsubj" in tests else {}
    lab.judge("subjects-distance", subjects, unmet="" if subjects else "such arcs")


def record_from_cls(
    lab: Lab, states: Mapping[str, Mapping[Task, Found]], tuned: Mapping[Task, Sequence[Found]]
) -> None:
    """What [CLS] gives each type of token in the last layer, and in how many resamples a type comes first (Fig 7)."""
    means = {
        state: {task: mean_over_examples(last_layer(one)) for task, one in models.items()}
        for state, models in states.items()
    }
    over = {"over": ("kind",), "kinds": TOKEN_TYPES}
    lab.record(FROM_CLS, means, by=("state", "task"), unit="weight", **over)
    first = {
        task: {
            kind: [share_first(last_layer(one), kind, lab.settings.seed) for one in several]
            for kind in CLS_CLAIMS.values()
        }
        for task, several in tuned.items()
    }
    labels, tolerance = ("task", "kind", "training"), P_VALUE
    lab.record(FIRST, first, by=labels, state=TUNED, unit="share", tolerance=tolerance)
    special = {
        task: [marks(annotated) for annotated in lab.annotated_inputs(task)] for task in lab.tasks
    }
    flows = {task: one["flow"] for task, one in states[BEFORE].items()}
    unmet = no_sink(in_even_shares(flows, special)["[SEP]"])
    for claim, kind in CLS_CLAIMS.items():
        supports = {task: first_in_all(shares[kind]) for task, shares in first.items()}
        lab.judge(claim, supports, unmet=unmet)


def last_layer(one: Found) -> np.ndarray:
    """What [CLS] gives each type of token in the last layer, mean over heads, shape (examples, types)."""
    return one["from [CLS]"][:, :, -1].mean(axis=2)  # of (examples, types, layers, heads)


def share_first(values: np.ndarray, kind: str, seed: Seed) -> float:
    """In what share of resamples a type gets more than every other but [CLS], each compared in examples that have both.

    Args:
        values: what types get, shape (examples, types), NaN where an example lacks the type.
        kind: the type; one that no example has comes first in none.
        seed: of the resampling of examples.
    """
    first: Any = np.isfinite(values[:, TOKEN_TYPES.index(kind)]).any()
    for other, name in enumerate(TOKEN_TYPES):
        both = values[:, [TOKEN_TYPES.index(kind), other]]
        there = np.isfinite(both).all(axis=1, keepdims=True)
        if name not in (kind, "[CLS]") and there.any():
            own, its = means_with_gaps(np.where(there, both, np.nan), seed)[1:].T  # each resample
            first = first & ~(own <= its)
    return float(np.mean(first))


def first_in_all(shares: Sequence[float]) -> Support:
    """Support for what comes out in these shares of resamples, one for each fine-tuning run."""
    support = all_of(Support(1 - share, share) for share in shares)
    return replace(support, number=f"first in {min(shares):.0%} of resamples")
