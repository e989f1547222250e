"""§4.4's notebook: what it chooses to look at, estimates, tells and draws beside this run."""

import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from plain import measured

from bertology_utils.annotation.token_types import LINGUISTIC, TOKEN_TYPES
from bertology_utils.attention import Batch, attention_maps
from bertology_utils.claims import HOLDS, OUTCOMES, UNTESTABLE
from bertology_utils.claims.entries import ENTRIES
from bertology_utils.claims.verdict import Verdict
from bertology_utils.features import Examples, Stripes, alone, beside, darkest, drawing, of_length, summary, tables, typical
from bertology_utils.features.reading import Reading, in_even_shares, over_tasks, pooled
from bertology_utils.features.separators import ahead_of_pairs
from bertology_utils.features.stripes import STRIPE
from bertology_utils.glue.tasks import TASKS
from bertology_utils.statistics import Estimate, bootstrap_mean, lead, many_test, over_trainings

MRPC, SST2 = TASKS["mrpc"], TASKS["sst2"]


@pytest.fixture(scope="module")
def read():
    """One pass over the examples of MRPC, and the same examples by themselves."""
    lab, task, model, plain = measured("mrpc")
    examples = Examples(lab.annotated_inputs(task), "paper", (1, 0))
    return lab, task, model, plain, examples, examples.read(lab.observe(model, task, examples.measurements()))


def test_one_example_by_itself_is_what_it_was_in_its_batch(read):
    lab, task, model, plain, examples, _ = read
    for index in (0, 7, 49):
        batch = alone(lab.measured_batches(task), index)
        assert batch.inputs["input_ids"].tolist() == [list(examples.inputs[index].ids)] and batch.mask.all()
        maps = torch.cat(attention_maps(model, batch)).numpy()
        np.testing.assert_allclose(maps, plain[index].maps, atol=1e-5)
    with pytest.raises(ValueError, match="no example 50 in these batches; they hold 50"):
        alone(lab.measured_batches(task), 50)


def test_padding_on_the_left_goes_too():
    ids, mask = torch.tensor([[0, 5, 6], [7, 8, 9]]), torch.tensor([[0, 1, 1], [1, 1, 1]])
    assert alone([Batch({"input_ids": ids, "attention_mask": mask}, [4, 2])], 4).inputs["input_ids"].tolist() == [[5, 6]]


def test_a_reading_holds_the_types_by_hand(read):
    _, _, _, plain, examples, reading = read
    for at in (0, 7):
        columns = plain[at].maps.mean(axis=2)  # (layers, heads, tokens)
        places = examples.places(at)
        for kind in ("[CLS]", "[SEP]", "nouns"):
            np.testing.assert_allclose(reading.of(kind)[at], columns[..., places[kind]].max(axis=2), atol=1e-5)
        assert not (places["a word"] & (places["[CLS]"] | places["[SEP]"] | places["punctuation"])).any()
        both = [examples.matched.masks[at][row] for row in (0, len(LINGUISTIC))]
        nouns, words = (columns[..., of].max(axis=2) for of in both)
        np.testing.assert_allclose(reading.above_matched[at, 0], nouns - words, atol=1e-5)
    assert in_even_shares([reading], "[SEP]") == pytest.approx(
        (reading.of("[SEP]").mean(axis=(1, 2)) * reading.lengths).mean()
    )
    np.testing.assert_allclose(reading.to("[CLS]"), reading.of("[CLS]"), atol=1e-6)
    assert len(pooled([reading, reading], "negation")) == 2 * examples.present["negation"]


def test_the_darkest_column_and_the_examples_to_look_at():
    maps = np.full((2, 2, 4, 4), 0.25)
    maps[1, 0, :, 2], maps[0, 1, :, 0] = 0.4, 0.9
    assert darkest(maps, np.array([False, True, True, False])) == ((1, 0), pytest.approx(1.6))
    assert darkest(maps, np.array([True, False, False, False])) == ((0, 1), pytest.approx(3.6))
    lengths = np.array([9, 13, 11, 30])
    assert of_length(lengths, 12) == 1
    values = np.array([0.1, np.nan, 0.4, 0.3])
    assert typical(values, lengths, 12) == 2 and typical(values, lengths, 40) == 3
    assert typical(values, lengths, 5) == 3, "none fits, so all count"


def made_reading(even_shares, kinds):
    """A reading of 40 examples of ten tokens: in even shares what each of four heads gives some types, one elsewhere."""
    weights = np.full((40, len(TOKEN_TYPES), 2, 2), 0.1)
    for kind, values in zip(kinds, even_shares, strict=True):
        weights[:, TOKEN_TYPES.index(kind)] = np.array(values).reshape(2, 2) / 10
    nothing = np.full((40, len(LINGUISTIC), 2, 2), np.nan)
    return Reading(weights, weights / 2, nothing, None, np.full(40, 10), 1)


def test_stripes_are_counted_and_kept():
    before = Stripes(made_reading([(1, 5, 1, 1)], ["[CLS]"]))
    stripes = Stripes(made_reading([(1, 5, 5, 1), (4, 1, 3, 1)], ["[CLS]", "verbs"]))
    assert stripes.count(STRIPE) == (1, 2) and stripes.count(4.5) == (0, 2) and before.count(STRIPE) == (0, 1)
    assert stripes.on_words().value == 0.25 and stripes.ahead().value == 0.25 and stripes.kept(before).value == 0.5
    assert stripes.words_beside_marks().value == pytest.approx((2.25 - 1) / (3 - 1))


def test_means_over_the_tasks_that_have_a_type():
    one, other = made_reading([(2, 2, 2, 2)], ["verbs"]), made_reading([(4, 4, 4, 4)], ["verbs"])
    lacking = dataclasses.replace(one, weights=np.full_like(one.weights, np.nan))
    np.testing.assert_allclose(over_tasks([one, other, lacking], "verbs"), 0.3)
    np.testing.assert_allclose(over_tasks([one, other], "verbs", other=True), 0.15)
    assert np.isnan(over_tasks([lacking], "verbs")).all()


def test_one_sentence_against_two():
    values = {
        name: [bootstrap_mean(np.full(20, at + n), 1) for n in (0, 1)] for name, at in (("sst2", 5), ("mrpc", 3), ("rte", 4))
    }
    measured_of = {TASKS[name]: found for name, found in values.items()}
    found = ahead_of_pairs(measured_of, dict.fromkeys(measured_of, True))
    expected = over_trainings([lead(values["sst2"][n], [values["mrpc"][n], values["rte"][n]]) for n in (0, 1)])
    assert list(found) == [SST2] and found[SST2].value == expected.value == 1
    assert ahead_of_pairs(measured_of, {**dict.fromkeys(measured_of, True), TASKS["rte"]: False})[SST2].value == 2
    assert ahead_of_pairs({SST2: values["sst2"]}, {SST2: True}) == {}


def test_rows_beside_this_run():
    ours, real = (
        {MRPC: Estimate(0.8, 0.2, 320, 2), SST2: Estimate(0.1, 0.0, 320, 2)},
        {"mrpc": {"value": 0.5, "low": -2, "high": 3}},
    )
    rows = beside.rows(ours, real)
    assert rows["MRPC"][beside.REAL] == {"value": 0.5, "low": 0.0, "high": 1.0} and rows["MRPC"][beside.OURS]["high"] == 1.0
    panels = beside.stripe_panels(dict.fromkeys(beside.STRIPED, ours), {"striped": {"special ahead": real}})
    ends = {title: next(one["low"] for one in of_title["MRPC"].values()) for title, of_title in panels.items()}
    assert ends["on [CLS] or [SEP], minus that"] == -1 and ends["on a word"] == pytest.approx(0.8 - 1.96 * 0.2, abs=0.01)
    assert list(rows["SST-2"]) == [beside.OURS], "what the committed run lacks is left out"


def test_changes_beside_this_run_need_thirty_examples():
    differences = np.full((40, 2, 1, 2), 0.1)
    differences[29:, 1] = np.nan
    real = {
        "beyond": {"mrpc": {"nouns": [[0.3, 0.2]], "negation": [[0.3, 0.2]]}},
        "examples": {"mrpc": {"nouns": 40, "negation": 23}},
    }
    found = beside.changes({MRPC: [many_test(differences, 0.02, 1)]}, real, "beyond", {"nouns": 0, "negation": 1})
    assert list(found["nouns"]["MRPC"]) == [beside.REAL, beside.OURS] and found["negation"] == {"MRPC": {}}
    assert list(beside.changes({MRPC: [many_test(differences, 0.02, 1)]}, {}, "beyond", {"nouns": 0})["nouns"]["MRPC"]) == [
        beside.OURS
    ]
    assert beside.heads({}, "[CLS]") == []


def test_sentences_follow_the_numbers():
    assert "no [SEP] sink" in summary.special_tokens(8.0, 0.68) and "0.68 times" in summary.special_tokens(8.0, 0.68)
    assert "has a [SEP] sink" in summary.special_tokens(8.0, 1.2)
    estimates = [Estimate(value, 0.01, 9) for value in (0.5, 0.4, -0.5, 0.02)]
    assert summary.tally(estimates, 0.02) == "surely above 0.02 on 2 of 4 tasks, surely below on 1, open on 1"


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_summary_tells_every_verdict_before_it(outcome):
    # The summary stands before the appendix, where the two controls on blindness are judged.
    names = [name for name, entry in ENTRIES.items() if entry.notebook == 4 and not name.startswith("blind-")]
    verdicts = [Verdict(name, "", "", "", outcome, "") for name in names]
    published = [Verdict("cls-early", "", "", "", HOLDS if outcome != HOLDS else UNTESTABLE, "", "bert-base-uncased")]
    told = summary.sentences(verdicts + published, 8.0, 0.7)
    assert len(told) == 5 and sum(sentence.count(outcome) for sentence in told) == 14
    assert not any(other in sentence for other in set(OUTCOMES) - {outcome} for sentence in told if other not in outcome)


def test_tables_have_one_number_in_a_cell(read):
    _, task, _, _, examples, reading = read
    excess = {name: many_test(reading.above_matched, 0.0, 1) for name in ("pre-trained", "random weights")}
    made = [
        tables.counts({task: examples}),
        tables.pairs({task: examples}),
        tables.highest_heads({"pre-trained": {task: reading}}),
        tables.against_matched(excess, 0.02),
        tables.both_protocols({task: reading}, "paper"),
        tables.of_published({"[CLS]": reading.heads("[CLS]")}, reading),
    ]
    for table in made:
        for cell in map(str, table.drop(columns=["head"], errors="ignore").to_numpy().ravel()):
            assert len(cell.replace(" of ", "/").split()) == 1, cell
    assert made[-1]["rank correlation"].item() == "1.00" and made[-1]["mean difference"].item() == "0.000"
    assert made[0].loc["MRPC", "with nouns"] == examples.present["nouns"]
    # Heads count as more by 0.02 only where they are above any head with random weights, too; here these are the same.
    assert set(made[3]["more by 0.02"]) == {"0 of 72"}


def test_which_of_two_marks_gets_more_and_who_gains():
    first, second = np.array([0.4, 0.2, 0.1]), np.array([0.1, 0.2, 0.3])
    one, other = summary.which_gets_more({"a": (first, second), "b": (first, second / 9)})
    assert one == "a: [CLS] gets more than [SEP] in layers 1 of 3; in the last layer [CLS] gets 0.10 and [SEP] 0.30"
    assert "in all 3 layers" in other
    shares = summary.more_on_words({MRPC: 0.03, SST2: 0.5}, {MRPC: Estimate(0.12, 0, 9), SST2: Estimate(0.1, 0, 9)})
    assert shares.endswith("3% and 12% of heads on MRPC, the highest of 2 tasks")
    differences = np.zeros((40, len(TOKEN_TYPES), 1, 4)) + np.array([0.3, -0.1, -0.2, 0.01])
    told = summary.gainers({task: [many_test(differences, 0.02, 1)] for task in (MRPC, SST2)}, "nouns", 0.02)
    assert told == "nouns on MRPC: 1 of 4 heads give them 0.02 more, 2 give them less than before"
    assert "none of the paper's tasks" in summary.gainers({}, "nouns", 0.02)


def test_figure_6_has_one_scale_for_models_of_any_shape():
    figure = drawing.figure_6(
        {"a": (np.full((12, 12), 0.4), np.full((12, 12), 0.1)), "b": (np.full((6, 4), 0.02), np.ones((6, 4)))}, even=0.1
    )
    drawn = [ax.collections[0] for ax in figure.axes[:4]]
    assert {part.get_clim() for part in drawn} == {(0, 1)}
    plt.close(figure)


def test_a_dot_for_every_head_and_the_papers_tasks_starred():
    figure = drawing.heads_as_dots({"nouns": {"MRPC": {beside.OURS: np.zeros((6, 12)), beside.REAL: np.ones((6, 12))},
                                              "SST-2": {beside.OURS: np.zeros((6, 12))}}}, "change", 0.02, {"nouns": ["MRPC"]})  # fmt: skip
    (ax,) = figure.axes
    assert [text.get_text() for text in ax.get_yticklabels()] == ["MRPC *", "SST-2"]
    assert sum(len(line.get_xdata()) for line in ax.lines if line.get_marker() in "os") == 3 * 72
    plt.close(figure)
