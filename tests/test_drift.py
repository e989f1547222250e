"""§4.3: the measure against a plain reading of its definition, and its two protocols."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from conftest import make_bert, make_rows
from made_up import estimate, resampled
from precision import forward_tolerance
from transformers import AlbertConfig, AlbertForSequenceClassification

from bertology_utils import figures
from bertology_utils.attention import batches, observe
from bertology_utils.claims import FAILS, UNDECIDED, UNTESTABLE
from bertology_utils.drift import (
    claims,
    comparisons,
    dots,
    drawing,
    examples,
    grafts,
    measure,
    summary,
    table1,
    tables,
    wording,
)
from bertology_utils.drift.saved import saved_grafts
from bertology_utils.encoders import models
from bertology_utils.encoders.evaluate import classifier_inputs, predict_logits
from bertology_utils.encoders.sources import parse_model
from bertology_utils.glue.tasks import TASKS
from bertology_utils.statistics import over_trainings
from bertology_utils.statistics.estimate import Estimate
from bertology_utils.suite.beside import Beside

TASK = TASKS["rte"]


@pytest.fixture(scope="module")
def two_models(tmp_path_factory):
    folders = [make_bert(tmp_path_factory.mktemp(f"seed{seed}"), 3, 4, 32, seed) for seed in (0, 1)]
    sources = [parse_model(str(folder)) for folder in folders]
    return [models.load_encoder(source) for source in sources], models.load_tokenizer(sources[0])


def plain_similarity(before, after, tokenizer, row, pad_to=None):
    """One example at a time, through output_attentions, in pure Python."""
    padding = {"padding": "max_length", "max_length": pad_to} if pad_to else {}
    inputs = tokenizer(row["sentence1"], row["sentence2"], return_tensors="pt", **padding)
    with torch.inference_mode():
        pairs = zip(*(m(**inputs, output_attentions=True).attentions for m in (before, after)), strict=True)
        result = []
        for a, b in pairs:
            heads = []
            for head in range(a.shape[1]):
                x, y = a[0, head].flatten().tolist(), b[0, head].flatten().tolist()
                dot = sum(i * j for i, j in zip(x, y, strict=True))
                heads.append(dot / math.sqrt(sum(i * i for i in x)) / math.sqrt(sum(j * j for j in y)))
            result.append(heads)
    return np.array(result)


@pytest.mark.parametrize("protocol", ["paper", "official"])
def test_several_pairs_from_one_pass_of_each_model(two_models, protocol, monkeypatch):
    (before, after), tokenizer = two_models
    made = batches.make_batches(batches.tokenize(make_rows(TASK, 12), TASK, tokenizer, 64), tokenizer)
    pairs = {"there": (before, after), "back": (after, before), "same": (after, after)}
    seen, maps_of = [], comparisons.attention_maps
    monkeypatch.setattr(comparisons, "attention_maps", lambda model, *rest: seen.append(model) or maps_of(model, *rest))
    found = comparisons.drifts(pairs, made, protocol)
    assert len(seen) == 2 * len(made), "one pass of each model and batch"
    monkeypatch.undo()
    for name, (reference, model) in pairs.items():
        alone = observe(model, made, {"d": measure.Drift(reference, protocol)})["d"]
        np.testing.assert_allclose(found[name], alone, rtol=1e-12)


@pytest.mark.parametrize(("protocol", "pad_to"), [("paper", None), ("paper", 40), ("official", 40)])
def test_equals_the_plain_definition(two_models, protocol, pad_to):
    (before, after), tokenizer = two_models
    rows = make_rows(TASK, 12)
    inputs = batches.tokenize(rows, TASK, tokenizer, 64)
    made = batches.make_batches(inputs, tokenizer, tokens_per_batch=200, pad_to=pad_to)
    assert len(made) > 1
    measured = observe(after, made, {"drift": measure.Drift(before, protocol)})["drift"]
    assert measured.shape == (12, 3, 4)
    for index, row in enumerate(rows):
        expected = plain_similarity(before, after, tokenizer, row, pad_to if protocol == "official" else None)
        np.testing.assert_allclose(measured[index], expected, atol=2 * forward_tolerance(after))


def test_the_same_model_does_not_drift(two_models):
    (model, _), tokenizer = two_models
    made = batches.make_batches(batches.tokenize(make_rows(TASK, 5), TASK, tokenizer, 64), tokenizer)
    np.testing.assert_allclose(observe(model, made, {"d": measure.Drift(model)})["d"], 1, atol=1e-9)


def test_padding_changes_the_official_reading_only(two_models):
    (before, after), tokenizer = two_models
    inputs = batches.tokenize(make_rows(TASK, 5), TASK, tokenizer, 64)
    results = {
        (protocol, pad_to): observe(
            after, batches.make_batches(inputs, tokenizer, pad_to=pad_to), {"d": measure.Drift(before, protocol)}
        )["d"]
        for protocol in measure.PROTOCOLS
        for pad_to in (40, 60)
    }
    np.testing.assert_allclose(results["paper", 40], results["paper", 60], atol=2 * forward_tolerance(after))
    assert np.abs(results["official", 40] - results["official", 60]).max() > 1e-3


def test_pairs_of_other_shapes_are_refused(two_models, tmp_path):
    (model, _), _ = two_models
    other = models.load_encoder(parse_model(str(make_bert(tmp_path, 2, 4, 32))))
    with pytest.raises(ValueError, match=r"these models have \(layers, heads\) of \[\(2, 4\), \(3, 4\)\]"):
        comparisons.drifts({"a": (model, other)}, [])


def test_unknown_protocol_is_refused(two_models):
    with pytest.raises(ValueError, match="paper, official"):
        measure.Drift(two_models[0][0], "mine")


@pytest.mark.parametrize(
    ("layers", "heads", "message"),
    [
        (4, 4, "the reference has 4 layers and the observed model 3"),
        (2, 4, "the reference has 2 layers and the observed model has"),
        (3, 2, "the reference has 2 heads per layer and the observed model 4"),
    ],
)
def test_a_reference_of_another_shape_is_refused(two_models, tmp_path, layers, heads, message):
    (model, _), tokenizer = two_models
    reference = models.load_encoder(parse_model(str(make_bert(tmp_path, layers, heads, 32))))
    made = batches.make_batches(batches.tokenize(make_rows(TASK, 12), TASK, tokenizer, 64), tokenizer, 100)
    assert len(made) > 1
    for observed in (made, made[:1]):
        with pytest.raises(ValueError, match=message):
            observe(model, observed, {"d": measure.Drift(reference)})


def test_no_example_is_said(two_models):
    with pytest.raises(ValueError, match="no example was observed"):
        observe(two_models[0][0], [], {"d": measure.Drift(two_models[0][1])})


def planted(least_similar, n=50):
    """Similarities in which two of six layers are lower than the others."""
    values = np.random.default_rng(0).normal(0.9, 0.02, size=(n, 6, 12))
    values[:, least_similar] -= 0.2
    return values


@pytest.mark.parametrize(("layers", "share"), [([4, 5], 1.0), ([0, 5], 0.0), ([3, 4], 0.0), ([], None)])
def test_finds_whether_the_last_two_layers_change_most(layers, share):
    found = measure.last_layers_lead(planted(layers), seed=1)
    assert found.share_above(0) == share if share is not None else 0 <= found.share_above(0) < 0.95
    by_layer = planted(layers).mean(axis=(0, 2))
    assert found.value == pytest.approx(by_layer[:4].min() - by_layer[4:].max())


def test_two_layers_are_too_few_to_ask():
    assert np.isnan(measure.last_layers_lead(np.ones((5, 2, 3)), seed=1).value)


def test_displacements_have_the_cosine_of_what_changed(two_models):
    rng = np.random.default_rng(0)
    start, step, other = (torch.tensor(rng.random((2, 3, 6, 6))) for _ in range(3))
    mask = torch.ones(2, 6, dtype=torch.bool)
    # As small as the changes of a first layer, far below the maps themselves.
    products = comparisons.dot_products([start, start + 1e-3 * step, start + 2e-3 * step, start + 1e-3 * other], mask)
    same = comparisons.displacement_cosine(products, 0, 1, 2)
    assert torch.allclose(same, torch.ones(2, 3, dtype=torch.float64), rtol=1e-8)
    expected = [[np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(x, y, strict=True)]
                for x, y in zip(step.flatten(2).numpy(), other.flatten(2).numpy(), strict=True)]  # fmt: skip
    np.testing.assert_allclose(comparisons.displacement_cosine(products, 0, 1, 3), expected, rtol=1e-8)
    assert torch.isnan(comparisons.displacement_cosine(products, 0, 0, 1)).all(), "nothing moved"
    np.testing.assert_allclose(comparisons.cosine(products, 0, 3), measure.map_cosine(start, start + 1e-3 * other, mask))
    (before, after), tokenizer = two_models
    made = batches.make_batches(batches.tokenize(make_rows(TASK, 4), TASK, tokenizer, 64), tokenizer)
    found = comparisons.drifts({}, made, displacements={"same": (before, after, after)})
    np.testing.assert_allclose(found["same"], 1)


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory):
    """One start and another model to take for its fine-tuned self, with inputs."""
    folders = [make_bert(tmp_path_factory.mktemp(f"graft{seed}"), 3, 4, 32, seed) for seed in (0, 1)]
    start, tuned = (models.load_classifier(parse_model(str(folder)), TASK) for folder in folders)
    tokenizer = models.load_tokenizer(parse_model(str(folders[0])))
    return start, tuned, batches.make_batches(batches.tokenize(make_rows(TASK, 12), TASK, tokenizer, 64), tokenizer)


def test_a_graft_has_the_weights_of_either_model(classifiers):
    start, tuned, _ = classifiers
    before, after = start.state_dict(), tuned.state_dict()
    model = grafts.grafted(tuned, start, [1])
    for name, weights in model.state_dict().items():
        assert torch.equal(weights, (before if ".layer.1." in name else after)[name]), name
    assert torch.equal(tuned.state_dict()["classifier.weight"], after["classifier.weight"]), "the model itself stays"


def test_grafts_that_share_their_lower_layers_answer_as_they_do_alone(classifiers):
    start, tuned, made = classifiers
    groups = [(2,), (), (0, 1), (0,), (1, 2)]
    plain = [predict_logits(grafts.grafted(tuned, start, group), made) for group in groups]
    passes = []
    layers = [layer for model in (start, tuned) for layer in model.base_model.encoder.layer]
    hooks = [layer.attention.register_forward_hook(lambda *_: passes.append(1)) for layer in layers]
    found = grafts.graft_logits(tuned, start, groups, made)
    for hook in hooks:
        hook.remove()
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_array_equal(one, other)
    # A tree of 5 paths: 2 first layers, 4 second ones and 5 third ones.
    assert len(passes) == 11 * len(made)
    np.testing.assert_array_equal(predict_logits(tuned, made), plain[1], "the model itself stays")


def test_layers_that_share_their_weights_cannot_be_put_back(classifiers):
    _, _, made = classifiers
    config = AlbertConfig(embedding_size=8, hidden_size=16, num_attention_heads=4, intermediate_size=16, num_hidden_layers=3)
    shared = AlbertForSequenceClassification(config).eval()
    assert not grafts.exchangeable(shared)
    found = grafts.graft_scores(TASK, shared, shared, grafts.neighbours(3), made, np.zeros(12), seed=1)
    assert np.isnan([change.value for change in found]).all()
    verdict = claims.judge_grafts({TASK: over_trainings([grafts.last_pairs_lead(found)])}, {TASK: True})[0]
    assert verdict.outcome == UNTESTABLE
    with pytest.raises(ValueError, match="cannot be exchanged"):
        grafts.grafted(shared, shared, [0])


def test_a_verdict_shows_the_tasks_that_decide_against_the_claim():
    learned = {MRPC: True, SST2: True}
    unsure, sure = Estimate(-0.1, 0.2, 1500), Estimate(-0.04, 0.01, 872)
    (one,) = claims.judge_grafts({MRPC: unsure, SST2: sure}, learned)
    assert one.outcome == FAILS and one.ours == "SST-2 -4.0 [-6.0, -2.0] points, surely not on 1 of 2 tasks; n=872"
    (one,) = claims.judge_grafts({MRPC: unsure, SST2: Estimate(0.04, 0.01, 872)}, learned)
    assert one.outcome == UNDECIDED and one.ours.startswith("MRPC -10") and "the least of 2 tasks" in one.ours


def test_graft_scores_are_changes_of_the_score(classifiers):
    start, tuned, made = classifiers
    labels = np.arange(12) % 2
    groups = [(), *grafts.neighbours(3), *grafts.up_to(3)]
    assert groups == [(), (0, 1), (1, 2), (0,), (0, 1)]
    found = grafts.graft_scores(TASK, tuned, start, groups, made, labels, seed=1)

    def accuracy(model):
        return np.mean(predict_logits(model, made).argmax(axis=1) == labels)

    assert found[0].value == 0 and found[0].n == 12
    for group, change in zip(groups, found, strict=True):
        assert change.value == pytest.approx(accuracy(grafts.grafted(tuned, start, group)) - accuracy(tuned))


def test_the_last_pair_leads_if_putting_it_back_costs_most():
    changes = [resampled(0, value) for value in (-0.1, -0.05, -0.3)]
    assert grafts.last_pairs_lead(changes).value == pytest.approx(0.2)
    assert grafts.last_pairs_lead(changes[::-1]).value == pytest.approx(-0.2)
    assert np.isnan(grafts.last_pairs_lead(changes[:1]).value)


def test_random_classifiers_answer_by_chance(classifiers):
    start, _, made = classifiers
    features = classifier_inputs(start, made)
    logits = predict_logits(start, made)
    weight, bias = (parameter.detach().double().numpy() for parameter in start.classifier.parameters())
    np.testing.assert_allclose(features @ weight.T + bias, logits, atol=1e-5)
    answers = table1.random_answers(TASK, features, seed=1, count=400)
    assert answers.shape == (400, 12) and set(answers.ravel()) == {0, 1}
    scores = table1.score_task(TASK, answers, np.arange(12) % 2, 1)
    assert 0.4 < scores["accuracy"].value < 0.6
    np.testing.assert_array_equal(answers, table1.random_answers(TASK, features, seed=1, count=400))


def test_the_head_that_is_shown_is_a_middle_one_of_the_layer_that_changed_most():
    similarity = np.full((3, 5), 0.99)
    similarity[1] = [0.5, 0.9, 0.7, 0.2, 0.8]
    assert examples.middle_head(similarity) == (1, 2)
    assert examples.near_length([[0] * 30, [0] * 14, [0] * 10]) == 1, "of equally near ones the first"


MRPC, SST2 = TASKS["mrpc"], TASKS["sst2"]
LAST, OTHERS = np.array([0.9, 0.9, 0.9, 0.8, 0.7]), np.array([0.9, 0.9, 0.7, 0.8, 0.9])


def test_it_is_said_on_which_tasks_the_last_two_layers_changed_most():
    found = wording.layers_in_trainings({MRPC: [LAST, LAST], SST2: [OTHERS, OTHERS], TASK: [LAST, OTHERS]})
    assert found == (
        "The last two layers are the two that changed most on 1 of 3 tasks in every training (MRPC);"
        " on 1 in one training only (RTE); on 1 in none: SST-2 (layers 3, 4)."
    )
    assert "on 1 in some trainings only (RTE)" in wording.layers_in_trainings({TASK: [LAST, OTHERS, LAST]})
    assert wording.changed_most(np.ones(6)) == "all alike"
    assert wording.layers_in_trainings({MRPC: [LAST]}).endswith("on 1 of 1 tasks in every training (MRPC).")


def test_it_is_said_where_the_answer_depends_on_padding():
    depends = wording.padding({MRPC: {"paper": LAST, "official": OTHERS}, SST2: {"paper": OTHERS, "official": OTHERS}})
    assert depends.startswith("On 1 of 2 tasks (MRPC) one reading names the last two layers")
    assert wording.padding({MRPC: {"paper": LAST, "official": LAST}}).startswith("On none of 1 tasks")


def test_a_random_start_that_learned_nothing_is_said_to_be_no_comparison():
    assert "compares pre-training with always the same answer" in wording.random_start({MRPC: False, SST2: False})
    assert wording.random_start({MRPC: True}) == "From random weights 1 of 1 tasks were learned (MRPC)."


def test_a_task_without_a_random_start_has_a_dash_and_no_line():
    gain = {task: estimate(0, 0.4) for task in (MRPC, SST2)}
    learned = dict.fromkeys(gain, True)
    _, helps = claims.judge_gains(gain, {SST2: estimate(0, 0.3)}, learned)
    assert helps.ours.startswith("-30.0 ") and "on average over 1 of 2 tasks" in helps.ours
    assert claims.judge_gains(gain, gain, learned)[1].ours.count("tasks") == 0
    table = tables.gains({"fine-tuned": gain, "pre-trained": {SST2: gain[SST2]}})
    assert table.loc["MRPC", "pre-trained"] == "–" != table.loc["SST-2", "pre-trained"]

    score = {"accuracy": resampled(0, 0.5), "F1": resampled(0, 0.5)}
    scores = {MRPC: {"pretrained": score, "finetuned": score}, SST2: dict.fromkeys(table1.COLUMNS, score)}
    here = tables.beside_paper(scores)[table1.COLUMNS["normal"], "here"]
    assert list(here) == ["–", "–", "50.0"]
    assert "–" in list(tables.with_intervals(scores)[table1.COLUMNS["normal"]])
    assert summary.scores(scores, gain, {})["gains"].keys() == {"fine-tuning"}

    of_both = {"fine-tuning": np.ones((4, 3, 2)), "another seed": np.ones((4, 3, 2))}
    similarity = {MRPC: of_both, SST2: of_both | {"random start": np.zeros((4, 3, 2))}}
    figure = drawing.change_by_layer(similarity, {MRPC: (1, 0), SST2: (1, 1)})
    assert [len(ax.lines) for ax in figure.axes] == [2, 3]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["fine-tuning", "another seed", "random start"]
    plt.close(figure)


def test_conclusions_follow_their_numbers():
    same, apart = {MRPC: estimate(60), SST2: estimate(40)}, {MRPC: estimate(1), SST2: estimate(30)}
    assert wording.same_way(same, apart, 0.5, 0.02) == (
        "The cosine is above 0.5 on 1 of 2 tasks (MRPC), and above that with another task by more than 0.02 on 1 of 2."
    )
    by_norm = wording.by_norm("weight", LAST[:, None], OTHERS[:, None])
    assert "layers 4, 5 change most by weight, layers 3, 4 by norm" in by_norm
    assert "1 of 3 score 0, so that the paper's 0 can come" in wording.single_classifiers(
        "MRPC", "F1", np.array([0, 5, 9.0])
    )
    assert "0 of 2 score 0, so that the paper's 0 would be rare" in wording.single_classifiers("M", "F1", np.array([5, 9.0]))
    assert wording.one_of_two(-0.3, -0.1, -0.5) == (
        "Alone, the last layer costs more; both together cost more than the two add up to."
    )
    assert wording.one_of_two(-0.1, -0.3, -0.35).startswith("Alone, the one before costs more; both together cost less")


def test_an_interval_that_is_cut_off_ends_in_an_arrowhead():
    _, ax = plt.subplots()
    figures.dots(ax, {"a": {"this run": (1.0, 0.5, 9.0)}, "b": {"this run": (1.0, 0.5, 2.0)}}, "x")
    figures.cut(ax, 0, 3)
    assert ax.get_xlim() == (0, 3)
    assert [(*line.get_xdata(), *line.get_ydata()) for line in ax.lines if line.get_marker() in ("<", ">")] == [(3, 0)]


def test_the_summary_follows_the_numbers():
    def results(last, others):
        grid = np.tile(LAST[:, None], (1, 2)).tolist()  # (layers, heads)
        estimate = {"value": 0.4, "low": 0.3, "high": 0.5, "n": 320, "trainings": 2}
        of_task = [{"value": value} for value in (0, 0, 0, last, 0, 0, others, 0)]  # four neighbours, then up to each layer
        return {
            "drift": {"mrpc": dict.fromkeys(summary.names_of(2), grid)},
            "gains": {"fine-tuning": estimate, "pre-training": estimate},
            "random_start_learned": {"mrpc": True},
            "put_back": {"mrpc": of_task},
        }

    said = summary.sentences(results(-0.3, -0.1))
    assert len(said) == 5 and "0.90 in the first layer and 0.70 in the last; it is lowest in layer 5" in said[0]
    assert "+40.0 points [+30.0, +50.0] on average" in said[2] and "(n=320, 2 trainings)" in said[2]
    assert "by -30 points on average" in said[4] and "The others cost more on 0 of 1 tasks." in said[4]
    assert "on 1 of 1 tasks (MRPC)" in summary.sentences(results(-0.1, -0.3))[4]
    assert len(summary.sentences(results(np.nan, np.nan))) == 4, "layers that cannot be put back"
    without = results(-0.3, -0.1)
    del without["gains"]["pre-training"]
    told = summary.sentences(without | {"random_start_learned": {}})
    assert "pre-training" not in told[2] and told[3] == "No random start was trained on these tasks."


def test_a_gain_is_paired_and_over_trainings():
    labels = np.arange(40) % 2
    right, constant = np.stack([labels, labels]), np.zeros((1, 40), dtype=int)
    worse = table1.score_task(TASK, constant, labels, 1)["accuracy"]
    found = table1.gain(TASK, right, worse, labels, 1)
    assert found.value == pytest.approx(0.5) and found.trainings == 2 and found.n == 40
    assert table1.answer_text(TASK, np.array([0.0, np.log(3)])) == "not_entailment (0.75)"
    assert table1.answer_text(TASKS["stsb"], np.array([0.9])) == "4.5 of 5"


def test_a_cell_of_the_tables_holds_one_estimate():
    labels = np.arange(40) % 2
    scores = {TASK: {column: table1.score_task(TASK, labels[None], labels, 1) for column in table1.COLUMNS}}
    beside = tables.beside_paper(scores).loc[("RTE", "accuracy")]
    assert beside["pre-trained, fine-tuned"].to_dict() == {"paper": "64.6", "here": "100.0"}
    assert tables.with_intervals(scores).iloc[0, 0] == "100.0 [100.0, 100.0]"
    by_layer = tables.by_layer({TASK: {"a": np.tile(LAST[None, :, None], (3, 1, 2))}}, ["a"])
    assert by_layer.loc[("RTE", 1), ["layer 5", "changed most"]].tolist() == ["0.70", "4, 5"]


def test_answers_with_layers_put_back_are_kept_in_the_cache(classifiers, tmp_path, monkeypatch):
    monkeypatch.setenv("BERTOLOGY_CACHE", str(tmp_path))
    calls = []

    def found(groups, rows="a"):
        return saved_grafts({"seed": 1}, rows, 64, groups, lambda: calls.append(rows) or (classifiers[1], *classifiers[::2]))

    start, tuned, made = classifiers
    groups = [(), (0, 1)]
    for _ in range(2):
        for one, other in zip(found(groups), grafts.graft_logits(tuned, start, groups, made), strict=True):
            np.testing.assert_array_equal(one, other)
    assert calls == ["a"]
    assert not np.array_equal(found([(), (2,)])[1], found(groups)[1]) and found(groups, "b") and calls == ["a", "a", "b"]


def test_figures_draw_the_run_beside_where_it_has_the_number_and_do_without():
    leads = {TASK: estimate(1), MRPC: estimate(-1)}
    beside = Beside("MiniLM, real GLUE", {"leads": {"rte": estimate(2).summary()}}, "")
    for real, names in ((beside, {"MiniLM, real GLUE", "this run"}), (Beside(beside.title, {}, "missing"), {"this run"})):
        figure = dots.leads(leads, real)
        legend = {text.get_text() for text in figure.legends[0].get_texts()}
        assert legend - {"the paper: left or right of 0"} == names
    costs = {TASK: [estimate(-1), estimate(-2)]}
    for several, drawn in ((4, 2), (6, 1)):  # of a model with other layers nothing can be drawn
        results = {"put_back": {"rte": [estimate(0).summary()] * several}}
        figure = dots.put_back(costs, ["1, 2", "2, 3"], Beside(beside.title, results, ""))
        assert len(figure.legends[0].get_texts()) == drawn
