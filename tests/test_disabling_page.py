"""What notebook 6 shows: the example, gains on one scale with white at zero, computed sentences, what models share."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from bertology_utils.attention import Batch
from bertology_utils.disabling import (
    cases,
    claims,
    cumulative,
    drawing,
    examples,
    gain_dots,
    measure,
    needed,
    remarks,
    sentences,
    summary,
    tables,
)
from bertology_utils.disabling.reference import Sweep
from bertology_utils.glue.tasks import TASKS, score
from bertology_utils.statistics import Bootstrap

MRPC, STSB = TASKS["mrpc"], TASKS["stsb"]
N = 80


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def outputs(right):
    """Logits of a two-label classifier whose labels are all 1, right where told."""
    return np.stack([np.where(right, 0.0, 2.0), np.where(right, 2.0, 0.0)], axis=-1)


def made_up(helpful=(1, 2), harmful=(0, 1), idle=(2, 0)):
    """A model of 3 layers × 4 heads that is right on 60 of 80 examples; one head hides 15 right answers, one gives 20."""
    whole = np.arange(N) < 60
    rng = np.random.default_rng(0)
    heads = np.stack([[np.where(rng.random(N) < 0.05, ~whole, whole) for _ in range(4)] for _ in range(3)])
    heads[helpful], heads[harmful], heads[idle] = np.arange(N) < 75, np.arange(N) < 40, whole
    layers = np.stack([np.arange(N) < count for count in (60, 62, 20)])
    return Sweep(outputs(whole), outputs(heads), outputs(layers)), np.ones(N, dtype=int)


@pytest.fixture(scope="module")
def effects():
    sweep, labels = made_up()
    other, _ = made_up(helpful=(2, 3))
    return {(MRPC, 0): measure.effects(MRPC, sweep, labels, 1), (MRPC, 1): measure.effects(MRPC, other, labels, 1)}


def padded(lengths):
    """Two batches of inputs of these lengths."""
    half = len(lengths) // 2
    found = []
    for part in (list(range(half)), list(range(half, len(lengths)))):
        mask = torch.tensor([[int(at < lengths[row]) for at in range(max(lengths))] for row in part])
        ids = mask * torch.tensor(part)[:, None] + 7 * mask
        found.append(Batch({"input_ids": ids, "attention_mask": mask}, part, torch.ones(len(part))))
    return found


def test_the_example_is_one_that_the_best_head_spoils_and_not_a_long_one():
    sweep, labels = made_up()
    lengths = [5] * 30 + [9] * 31 + [5] * 19  # the first of the mended ones, 60, is long
    case = cases.helped_case(MRPC, sweep, labels, padded(lengths))
    assert (case.head, case.example, case.answer) == ((1, 2), 61, 1)
    assert case.whole < 0.5 < case.without
    assert "“equivalent”, the label: 0.12 with head (2, 3), 0.88 without" in cases.told(MRPC, case)
    signs = cases.turned(MRPC, sweep, labels, case.head)
    assert (signs == 1).all() and len(signs) == 15
    assert cases.coin(signs) == pytest.approx(0.5**15) and cases.coin(np.array([1, -1, -1])) == pytest.approx(7 / 8)
    assert cases.turned(MRPC, sweep, labels, (0, 1)).sum() == -20
    idle = cases.turned(MRPC, sweep, labels, (2, 0))
    assert not len(idle) and cases.coin(idle) == 1, "a head that changes nothing"


def test_a_regression_has_an_example_too():
    labels = np.array([0.0, 5.0, 2.5, 5.0])
    better = np.array([0.5, 0.9, 0.5, 0.9])[:, None]
    sweep = Sweep(np.array([0.5, 0.5, 0.5, 0.6])[:, None], np.stack([[better, better * 0]]), better[None])
    case = cases.helped_case(STSB, sweep, labels, padded([3, 3, 3, 3]))
    assert (case.head, case.example) == ((0, 0), 1)
    assert (case.whole, case.without) == pytest.approx((0.5, 0.9))
    assert cases.turned(STSB, sweep, labels, (0, 0)).tolist() == [1, 1]
    assert "closeness to the right score: 0.50 with head (1, 1), 0.90 without" in cases.told(STSB, case)


def test_an_example_alone_has_no_padding():
    batches = padded([3, 6, 2, 4])
    one = examples.alone(batches, 2)
    assert one.inputs["input_ids"].tolist() == [[9, 9]] and one.index == [2] and one.mask.all() and len(one.labels) == 1
    with pytest.raises(ValueError, match="example 9 is in none of 2 batches"):
        examples.alone(batches, 9)


def test_some_examples_of_many_are_counted_anew():
    found = examples.only(padded([3, 6, 2, 4]), np.array([False, True, False, True]))
    assert [batch.index for batch in found] == [[0], [1]]
    assert [batch.inputs["input_ids"][0, 0].item() for batch in found] == [8, 10], "rows 1 and 3"
    assert examples.only(padded([3, 6]), np.array([False, True]))[0].index == [0]


def test_gains_share_one_scale_white_at_zero_with_losses_beyond_it_hatched(effects):
    own = summary.of_effects(effects)
    figure = drawing.gain_maps(summary.beside("MiniLM, real GLUE", {"effects": own}, own))
    figure.canvas.draw()
    maps = [ax for ax in figure.axes if (ax.collections and ax.get_title() != "") or ax.get_ylabel().startswith("this run")]
    assert len(maps) == 2 and {ax.collections[0].get_clim() for ax in maps} == {(-3, 3)}
    cells = maps[0].collections[0].get_facecolors().reshape(3, 4, 4)
    assert cells[2, 0].tolist() == [1, 1, 1, 1], "pure white where nothing changes"
    assert cells[1, 2][0] > cells[1, 2][2] and cells[0, 1][0] < cells[0, 1][2], "red gains, blue loses"
    values = 100 * own["mrpc, training 1"]["heads"]["values"]
    assert len([patch for patch in maps[0].patches if patch.get_hatch()]) == np.sum(np.abs(values) > 3) > 0
    marks = {line.get_marker() for line in maps[0].lines}
    assert marks == {"^", "v"}, "gains and losses, told apart without colour"
    dots = [tuple(np.floor([line.get_ydata()[0], line.get_xdata()[0]]).astype(int)) for line in maps[0].lines]
    assert {(1, 2), (0, 1)} <= set(dots) and (2, 0) not in dots
    scale = figure.axes[-1]
    assert [tick.get_text().split("\n")[0] for tick in scale.get_yticklabels()] == [
        "−3 or less",
        "−1",
        "0",
        "+1",
        "+3 or more",
    ]


def test_figures_do_without_a_committed_run(effects):
    own = summary.of_effects(effects)
    runs = summary.beside("MiniLM, real GLUE", {}, own)
    assert list(runs) == ["this run"]
    assert len(drawing.gain_maps(runs).axes) == 2, "a map and the scale"
    titles = [ax.get_title() for ax in gain_dots.luck(runs).axes]
    assert titles == ["the paper\n(one training, no test)", "this run"]
    rows = [tick.get_text() for tick in gain_dots.best_heads(runs).axes[0].get_yticklabels()]
    assert rows == ["MRPC, training 1", "MRPC, training 2"]


def test_a_layer_beyond_the_scale_is_an_arrow_with_its_number(effects):
    runs = summary.beside("MiniLM, real GLUE", {}, summary.of_effects(effects))
    (ax,) = gain_dots.layer_gains(runs).axes
    assert ax.get_xlim()[0] == gain_dots.FURTHEST
    assert [text.get_text() for text in ax.texts] == ["−50"]
    assert min(min(line.get_xdata(), default=0) for line in ax.lines) == -17, (
        "the arrow is the furthest: no interval beyond it"
    )


def test_named_heads_are_drawn_with_intervals_where_there_are_some(effects):
    own = summary.of_effects(effects)
    named = summary.of_named(effects, [(1, 2)])
    assert named["mrpc, training 1"]["(2, 3)"]["value"] == pytest.approx(15 / N)
    runs = summary.beside("MiniLM, real GLUE", {"effects": own}, own)
    (ax,) = gain_dots.head_gains(runs, {"this run": named}, [(1, 2)], -0.01).axes

    def hollow(ax):
        return sorted(line.get_markerfacecolor() == "white" for line in ax.lines if len(line.get_xdata()) == 1)

    assert hollow(ax) == [False, False, True, True]
    smaller = {name: {"heads": {"values": np.zeros((2, 2))}} for name in own}
    (ax,) = gain_dots.head_gains({**runs, "MiniLM, real GLUE": smaller}, {"this run": named}, [(1, 2)], -0.01).axes
    assert hollow(ax) == [False, False], "another shape is left out"


def test_sentences_say_what_the_numbers_say(effects):
    models = summary.of_effects(effects)
    assert "the score rises in 2 of 2 models: it changes by +18.75 points" in sentences.of_heads(models)
    assert "In 2 of 2 models the best gain is above what luck gives" in sentences.of_luck(models)
    assert "2 of 2 models have one that gains by more than chance" in sentences.of_luck(models)
    layers = sentences.of_layers(models)
    assert layers.startswith("2 of 6 layers raise") and "costs up to 50 points (MRPC, training 1, layer 3)" in layers
    assert "Disabling (1, 2) changes the score by -25.00 points" in sentences.of_frame_heads(models, [(0, 1)])
    closing = sentences.closing(models, [(0, 1)], [2, 0], [3])
    assert len(closing) == 5 and "Every model has a layer it needs" in closing[2]
    assert closing[0] == "2 of 2 models score higher without some head; in 2 is the largest gain beyond luck."
    assert (
        closing[4] == "Of the five heads that a model needs most, two trainings of one task share 3, two tasks share 0 to 2."
    )
    of_none = summary.of_effects(effects, {MRPC: False})
    for sentence in (sentences.of_heads, sentences.of_luck, sentences.of_power, sentences.of_layers):
        assert sentence(of_none) == sentences.NOTHING
    assert sentences.closing(of_none, [], [], []) == [sentences.NOTHING]


def test_a_sure_head_is_told_beside_the_best_only_where_they_differ():
    """The best head changes 40 answers, 22 of them for the better; the sure one 12, all for the better."""
    labels, whole = np.ones(N, dtype=int), np.arange(N) < 40
    heads = np.tile(whole, (3, 4, 1))
    heads[0, 0] = np.where(np.arange(N) < 28, ~whole, whole)  # 28 become wrong
    heads[0, 0, 40:] = True  # and 40 right: +12
    heads[1, 1, 40:51] = True  # 11 right, none wrong
    sweep = Sweep(outputs(whole), outputs(heads), outputs(heads[:, 0]))
    effects = {(MRPC, 0): measure.effects(MRPC, sweep, labels, 1)}
    (said,) = sentences.of_sure_heads(effects, {(MRPC, 0): sweep})
    assert "largest gain: (1, 1), +15.00 points" in said and "changes 68 answers" in said
    assert "sure gain: (2, 2), +13.75 points, p < 0.01, changes 11 answers" in said
    sweep, labels = made_up()
    effects = {(MRPC, 0): measure.effects(MRPC, sweep, labels, 1)}
    assert sentences.of_sure_heads(effects, {(MRPC, 0): sweep}) == []


def test_what_models_share(effects):
    one = needed.between_trainings(effects)[MRPC]
    assert len(one) == 1 and 1 <= one[0].heads <= 5 and -1 <= one[0].rank <= 1
    assert needed.shared(effects[MRPC, 0].heads, effects[MRPC, 0].heads)[::2] == pytest.approx((5, 1.0))
    two = {**effects, (STSB, 0): effects[MRPC, 1]}
    assert list(needed.between_tasks(two)) == [(MRPC, STSB)]
    assert (0, 1) in needed.by_all(two, [MRPC, STSB]) and needed.by_all(two, []) == []
    table = tables.shared(needed.between_trainings(two), needed.between_tasks(two))
    assert list(table.index) == ["MRPC, two trainings", "MRPC and STS-B"]


def test_a_table_has_one_number_in_a_cell(effects):
    table = tables.models(effects)
    assert list(table.columns) == ["MRPC, 1", "MRPC, 2"]
    assert table.loc["best head", "MRPC, 1"] == "(2, 3)" and table.loc["its gain", "MRPC, 1"] == "+18.75"
    assert table.loc["the worst layer’s gain", "MRPC, 2"] == "-50.00"
    assert not table.map(lambda cell: "[" in str(cell)).any(axis=None)


def test_heads_are_ordered_on_one_half_and_scored_with_intervals():
    sweep, labels = made_up()
    half = np.arange(N) % 2 == 0
    order = cumulative.order_of_half(MRPC, sweep, labels, half)
    assert order[0] == (1, 2) and order[-1] == (0, 1) and len(set(order)) == 12
    found = cumulative.scored(MRPC, {0: sweep.baseline, 4: sweep.layers[1], 8: sweep.layers[2]}, labels, 3)
    assert cumulative.numbers(found)[0] == score(MRPC, sweep.baseline.argmax(axis=1), labels, "accuracy")["accuracy"]
    loss = cumulative.loss_of_half({MRPC: found})[MRPC]
    assert loss.value == pytest.approx(-2 / N), "4 of 8 heads, which gain two answers"
    assert cumulative.values({MRPC: found}) == {MRPC: cumulative.numbers(found)}


def test_the_two_layers_and_the_sizes_conclude_from_their_numbers():
    assert "cost more than the sum (-3.00 beside -2.00 points)" in remarks.of_two(-2.0, -3.0)
    assert "cost less than the sum" in remarks.of_two(-2.0, -1.0) and "as much as the sum" in remarks.of_two(-2.0, -2.01)
    sizes = remarks.of_sizes({80: [(2.0, 1.5)], 40: [(3.0, 2.0), (4.0, 3.0)]})
    assert sizes[0] == "80 examples: the best head +2.00 points, by luck +1.50"
    assert sizes[1].startswith("40 examples, mean of 2 draws: the best head +3.50")
    assert "From 80 to 40 examples the best head's gain changes by +1.50 points, that of luck by +1.00" in sizes[2]
    assert "has to be larger" in sizes[2]
    changes = np.array([[0.5, -0.4], [0.3, 0.0]])
    said = remarks.of_answers(changes, np.array([[0.1, 0.1], [0.1, 0.0]]), 3)
    assert said.startswith("2 of these 3 move the score the same way")


def test_a_stored_run_names_what_it_lacks(effects):
    own = summary.of_effects({**effects, (STSB, 0): effects[MRPC, 1]})
    runs = summary.beside("MiniLM, real GLUE", {"effects": summary.of_effects(effects)}, own)
    assert remarks.of_stored(runs) == "MiniLM, real GLUE: a stored run on the real benchmark, without STS-B"
    assert remarks.of_stored(summary.beside("", {}, own)) == ""


def test_half_of_the_heads_is_told_for_every_task():
    sweep, labels = made_up()
    found = cumulative.scored(MRPC, {0: sweep.baseline, 4: sweep.layers[1], 8: sweep.layers[2]}, labels, 3)
    said = remarks.of_half({MRPC: found, STSB: found})
    assert "(4 of 8)" in said and "MRPC +2.5 [" in said and "STS-B +2.5 [" in said
    assert said.endswith("A step is 4 heads; of 80 examples one is 1.2 points of accuracy.")


def test_other_ways_are_compared_with_even_attention(effects):
    (said,) = remarks.of_ways({(MRPC, way): effects[MRPC, 0].heads for way in ("uniform", "zero")})
    assert said.endswith("with that of even attention of +1.0 (zero). They mostly agree.")
    heads = effects[MRPC, 0].heads
    opposite = replace(heads, gains=[-gain for gain in heads.gains])
    (said,) = remarks.of_ways({(MRPC, "uniform"): effects[MRPC, 0].heads, (MRPC, "interchange"): opposite})
    assert said.endswith("of -1.0 (interchange). Which head matters hangs on the choice.")


def test_a_search_is_told_beside_heads_chosen_alone_and_at_random():
    change = Bootstrap(0.01, np.array([0.0, 0.01, 0.02]), 80, 1)
    found = {MRPC: {"search": change, "each alone": -change, "lot, seed 0": change, "lot, seed 1": -change}}
    (said,) = remarks.of_search(found, 3)
    assert said.startswith("MRPC, without 3 heads, on the examples that did not choose them: by the search +1.0 [")
    assert "by each head alone -1.0 [" in said and said.endswith("at random -1.0 to +1.0; n=80.")
    table = tables.search(found, {MRPC: {way: [(0, 1), (2, 3)] for way in found[MRPC]}})
    assert table.loc[("MRPC", "search"), "heads"] == "(1, 2), (3, 4)"


def test_the_border_decides_which_frame_head_is_shown(effects):
    (verdict,) = claims.judge_frame_heads(effects, [(1, 2), (0, 1)], {MRPC: True})
    assert verdict.ours.startswith("(1, 2) on MRPC") and "the least sure of 2 head–task pairs" in verdict.ours
