"""Every claim's rule, on made-up numbers: it can return each of its verdicts, and errs as rarely as it says.

Each case gives the verdict for data that lie ``z`` standard errors from the border of the rule, on
the side that speaks for the claim where ``z`` is above 0.
"""

from itertools import permutations

import numpy as np
import pytest
from made_up import SURE, estimate, many

from bertology_utils.glue import TASKS
from bertology_utils.statistics import Bootstrap, Estimate, many_test
from bertology_utils.verdicts import (
    CLAIMS,
    FAILS,
    HOLDS,
    LEARNED,
    MIN_EXAMPLES,
    RULES,
    UNDECIDED,
    UNTESTABLE,
    WEIGHT,
    Support,
    constant_score,
    in_words,
    judge,
    learned,
    never_adjacent,
    no_sink,
    said_elsewhere,
    too_few,
    unlearned,
)

MRPC, RTE, QQP = TASKS["mrpc"], TASKS["rte"], TASKS["qqp"]
ERROR = 0.0001
ESTIMATED = {
    **dict.fromkeys(
        ("each above", "each within", "some beyond, of either sign"),
        lambda claim, z: Estimate(claim.least + z * ERROR, ERROR, 320),
    ),
    **dict.fromkeys(
        ("each below", "not each above"),
        lambda claim, z: Estimate(claim.least - z * ERROR, ERROR, 320),
    ),
    "some head in each": lambda claim, z: many(z),
    "no head in any": lambda claim, z: many(-z),
    "in none of them some head": lambda claim, z: many(-z),
}
ESTIMATING = [name for name, claim in CLAIMS.items() if claim.rule in ESTIMATED]


def verdict(name, z):
    claim = CLAIMS[name]
    return judge(name, {MRPC: ESTIMATED[claim.rule](claim, z)})


def test_every_claim_names_an_estimate_and_a_rule():
    for claim in CLAIMS.values():
        assert claim.rule in RULES and claim.estimate and claim.text, claim.id
        assert set(claim.tasks) <= set(TASKS), claim.id
        assert "within" not in claim.rule or claim.least < claim.most, claim.id
    papers = [one.section for one in CLAIMS.values() if not one.is_control and one.notebook < 7]
    assert papers == sorted(papers)


@pytest.mark.parametrize("name", ESTIMATING)
def test_each_verdict_can_come_out(name):
    assert [verdict(name, z).outcome for z in (SURE, 0.0, -SURE)] == [HOLDS, UNDECIDED, FAILS]


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.startswith("as tested")])
def test_what_a_section_tested_is_combined(rule):
    claim = next(iter(CLAIMS.values()))
    sure, against, open_ = Support(0.001, 1.0), Support(1.0, 0.001), Support(0.5, 0.5)
    each = {"each": [HOLDS, FAILS, UNDECIDED], "some": [HOLDS] * 3, "none": [FAILS] * 3}
    combined = each[rule.removeprefix("as tested, ")]
    alone = [FAILS, HOLDS, UNDECIDED] if rule.endswith("none") else [HOLDS, FAILS, UNDECIDED]
    tests = (sure, against, open_)
    assert [RULES[rule]([sure, other], claim).outcome for other in tests] == combined
    assert [RULES[rule]([one], claim).outcome for one in tests] == alone


@pytest.mark.parametrize("name", ESTIMATING)
def test_fewer_examples_never_make_an_undecided_claim_hold(name):
    """A quarter of the examples doubles every standard error: the same result lies at half as many of them."""
    for z in np.linspace(-3, 3, 25):
        if verdict(name, z).outcome != HOLDS:
            assert verdict(name, z / 2).outcome != HOLDS, z


@pytest.mark.parametrize("name", ESTIMATING)
def test_at_its_border_a_rule_decides_in_at_most_one_case_of_twenty(name):
    """Of 200 results drawn at the border; with 2 % on either side, 5 % and two standard errors of the count are the most."""
    found = [verdict(name, z).outcome for z in np.random.default_rng(0).normal(size=200)]
    decided = np.mean([outcome != UNDECIDED for outcome in found])
    assert decided <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)


def test_a_claim_about_each_task_is_decided_by_the_worst():
    name = "pretraining-helps"

    def of(*zs):
        by_task = zip((MRPC, RTE, QQP), zs, strict=False)
        found = {task: ESTIMATED["each above"](CLAIMS[name], z) for task, z in by_task}
        return judge(name, found, unit="gain")

    assert of(SURE, SURE, SURE).outcome == HOLDS
    three = {
        MRPC: Estimate(0.5, 0.01, 320),
        RTE: Estimate(0.1, 0.01, 99),
        QQP: Estimate(0.2, 0.1, 99),
    }
    assert judge(name, three, unit="gain").number == (
        "QQP +20 points [+0, +40], least certain of 3 (+10 to +50); n=99"
    )
    assert of(SURE, 1, SURE).outcome == UNDECIDED
    assert of(SURE, 1, SURE).number.startswith("RTE +1.0 points [")
    assert of(SURE, -SURE, 1).outcome == FAILS and "RTE" in of(SURE, -SURE, 1).number
    assert of(SURE, -2.3, SURE).outcome == UNDECIDED  # p = 0.01, which three tasks multiply
    tallies = ((HOLDS, of(SURE, SURE, SURE).tally), (UNDECIDED, of(1, 1, 1).tally))
    tallies += ((FAILS, {"holds": 0, "fails": 0, "undecided": 2}),)
    assert "; ".join(in_words(*one) for one in tallies) == (
        "holds here (on all 3 tasks); undecided (on all 3 tasks); does not hold here"
        " (undecided on all 2 tasks)"
    )
    assert (
        of(SURE, 1, -SURE).tally == {"holds": 1, "fails": 1, "undecided": 1}
        and of(SURE).tally == {}
    )
    one = judge(name, {MRPC: Estimate(0.5, 0.01, 320)}, unit="gain")
    assert one.number == "MRPC +50.0 points [+48.0, +52.0]; n=320"


def test_of_relations_that_are_as_sure_the_least_ahead_or_the_farthest_behind_is_told():
    ahead = {"nsubj": Support(0.0002, 1.0, "+23", 0.23), "amod": Support(0.0001, 1.0, "+4", 0.04)}
    assert judge("relations-ahead", ahead).number.startswith("amod +4, least certain of 2")
    behind = {"nsubj": Support(1.0, 0.0001, "-7", -0.07), "obj": Support(1.0, 0.0002, "-21", -0.21)}
    number = judge("relations-rule", behind).number
    assert number.startswith("obj -21, clearest counterexample of 2")


def test_a_task_with_several_parts_holds_if_each_does():
    """Of equal layers the least lead is below 0 by luck; pair by pair it is undecided."""
    lead = ESTIMATED["each above"]
    parts = {
        MRPC: {"layer 5 above 1": 3, "layer 6 above 1": -1.5},
        RTE: {"layer 5 above 1": 4, "layer 6 above 1": 5},
    }
    claim = CLAIMS["last-layers"]
    found = {task: {pair: lead(claim, z) for pair, z in of.items()} for task, of in parts.items()}
    one = judge("last-layers", found, unit="difference")
    assert in_words(one.outcome, one.tally) == "undecided (tasks: holds on 1, undecided on 1)"
    assert one.number.startswith("MRPC, layer 6 above 1 ")


def test_counted_claims():
    for count, outcome in ((473, HOLDS), (472, FAILS)):
        assert judge("frame-count", {"": count}).outcome == outcome


def test_without_its_precondition_or_a_number_nothing_is_judged():
    sure, unknown = ({MRPC: Estimate(*one, 320)} for one in ((0.5, 0.01), (np.nan, np.nan)))
    no_number = "missing: a number: this model, or these data, give none"
    cases = ((sure, "a sink", "missing: a sink"), ({}, "", no_number), (unknown, "", no_number))
    for found, unmet, why in cases:
        one = judge("sep-overtakes", found, unmet)
        assert (one.outcome, one.why, one.number) == (UNTESTABLE, why, "–")


@pytest.mark.parametrize("order", permutations((0.9, 0.88, np.nan)))
def test_a_task_without_a_number_leaves_a_claim_about_each_untested_wherever_it_stands(order):
    found = {
        task: Estimate(value, 0.01, 320)
        for task, value in zip((MRPC, RTE, QQP), order, strict=True)
    }
    assert judge("stripes-pretraining", found).outcome == UNTESTABLE


def test_the_least_effects_of_what_sections_test_are_those_of_the_claims():
    """A section's own constant decides these claims; if it changed alone, no frozen rule would tell."""
    words = "verbs-indistinct pronouns-indistinct subjects-indistinct subjects-distance frame-links"
    tested = dict.fromkeys(words.split(), WEIGHT)
    for name, least in tested.items():
        assert CLAIMS[name].least == least, name


def test_preconditions():
    assert no_sink(1.1) == "" and "gets 0.6 of a uniform share" in no_sink(0.6)
    assert never_adjacent(0.2) == "" and never_adjacent(float("nan")) == "no such links here"
    assert too_few(MIN_EXAMPLES) == "" and too_few(MIN_EXAMPLES - 1)
    assert unlearned([MRPC, RTE], {MRPC: False, RTE: True}) == ""
    assert "MRPC" in unlearned([MRPC], {MRPC: False}) and unlearned([], {}) == "no such task here"
    assert LEARNED in CLAIMS["last-layers"].needs


def test_a_model_that_says_one_thing_or_was_right_a_few_times_did_not_learn():
    labels = np.arange(200) % 3 == 0
    right, constant = np.where(np.arange(200) < 180, labels, ~labels), np.zeros(200)
    assert learned(MRPC, np.stack([right, right]), labels, 1)
    assert not learned(MRPC, np.stack([right, constant]), labels, 1), "every training has to"
    assert not learned(MRPC, constant[None], labels, 1)
    # Three of three right have no variance over resamples; that is no certainty.
    assert not learned(MRPC, labels[None, :3], labels[:3], 1)
    assert constant_score(MRPC, labels) == pytest.approx(133 / 200)
    assert constant_score(TASKS["stsb"], labels) == 0


def test_no_variance_is_no_certainty():
    """Thirty examples that are all alike say much; fewer are an anecdote, whatever they say."""
    few, enough = (Bootstrap(1.0, np.ones(1000), n, 1) for n in (29, 30))
    assert judge("sep-overtakes", {MRPC: enough, QQP: few}).outcome == UNTESTABLE
    assert judge("sep-overtakes", {MRPC: few}).why == "missing: examples: 29, of 30 at least"
    assert judge("sep-overtakes", {MRPC: enough}).outcome == HOLDS
    heads = Bootstrap(0.9, np.ones(1000), 24, 1)  # of a small model, which are all that it has
    assert judge("panels-rank", {"": heads}, unit="correlation over heads").outcome == HOLDS


def test_of_tests_that_are_as_sure_the_most_extreme_number_is_told():
    either = {"a": estimate(-90), "b": estimate(40)}
    assert judge("effect-predicted", either, unit="difference").number.startswith("a -0.9")
    outside = {MRPC: estimate(SURE, 0.1), QQP: estimate(SURE, 0.9)}  # the range ends at 0.61
    assert judge("heterogeneous", outside).number.startswith("QQP ")


def test_a_test_of_heads_without_an_example_is_no_test():
    nothing = many_test(np.full((40, 2, 3), np.nan), 0.0, 1)
    assert judge("norm-heads", {MRPC: nothing}).outcome == UNTESTABLE


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("last-layers", " The paper: 6 of 6 tasks."),
        ("heads-gone", " Michel et al.: 40 % go without a noticeable loss (MNLI)."),
        ("norm-cls", " Kobayashi et al. (2020): its vectors are short."),
        ("relations-rank", ""),
        ("gain-elsewhere", ""),
    ],
)
def test_a_number_from_elsewhere_stands_beside_whose_it_is(claim, sentence):
    assert said_elsewhere(CLAIMS[claim]) == sentence
