"""The patterns of attention maps: labels, classifiers, and the patterns of all maps of a pass."""

import numpy as np
import pytest
import torch
from conftest import one_example
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, f1_score
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict

from bertology_utils import patterns
from bertology_utils.attention import attention_maps
from bertology_utils.measurements import named_maps
from bertology_utils.patterns import FOLDER, PATTERNS, load_maps, load_network, load_regression
from bertology_utils.study import Study

UNIFORM = torch.full((1, 6, 6), 1 / 6)

# Maps that are known by construction, with what the guideline calls each.

EXPECTED = {
    "uniform": "heterogeneous",
    "to itself": "diagonal",
    "to the previous token": "diagonal",
    "to [CLS]": "vertical",
    "half to [CLS], half to itself": "vertical+diagonal",
    "within its own sentence": "block",
}


def constructed_maps(length):
    """Exact maps of two sentences of equal length, named as in :data:`EXPECTED`.

    Args:
        length: wordpieces, [CLS] and both [SEP] included.
    """
    separators = np.zeros(length, dtype=bool)
    separators[[length // 2, length - 1]] = True
    itself, first = np.eye(length), np.zeros((length, length))
    first[:, 0] = 1
    sentence = np.cumsum(separators) - separators  # [SEP] belongs to the sentence that it ends
    same = (sentence[:, None] == sentence).astype(float)
    maps = (
        np.full((length, length), 1 / length),
        itself,
        np.vstack([itself[:1], itself[:-1]]),
        first,
        (first + itself) / 2,
        same / same.sum(axis=1, keepdims=True),
    )
    return {name: (weights, separators) for name, weights in zip(EXPECTED, maps, strict=True)}


@pytest.mark.parametrize(
    "maps",
    [
        torch.full((1, 3, 3), 1 / 3),
        UNIFORM * torch.nan,
        UNIFORM / 0,
        UNIFORM * 1.1,
        torch.tensor([[1.5, -0.5, 0, 0]] * 4)[None],
    ],
    ids=["short", "NaN", "infinite", "scores", "negative"],
)
def test_what_is_no_attention_map_is_refused(maps):
    with pytest.raises(ValueError, match="a pattern needs 4 tokens or more, and rows that are"):
        patterns.predict(load_network(), maps, torch.zeros(maps.shape[:2], dtype=torch.bool))


@given(length=st.integers(4, 120), size=st.sampled_from([16, 24, 32]))
@settings(max_examples=30, deadline=None)
def test_images_keep_a_diagonal_and_a_column_at_every_length(length, size):
    built = constructed_maps(length)
    column = np.arange(size) == np.zeros((size, 1))
    for name, at in (("to itself", np.eye(size, dtype=bool)), ("to [CLS]", column)):
        image = patterns.to_images(patterns.as_tensors(*built[name])[0], size)[0]
        assert image.shape == (2, size, size) and image.min() >= 0 and image.max() <= 1
        assert (image[0][torch.tensor(at)] == 1).all()


def plain_statistics(weights, separators):
    """The eleven statistics of one map, by loops."""
    size, columns = len(weights), sorted(weights.mean(axis=0), reverse=True)
    row, column = np.indices(weights.shape)
    near = range(-(size // 2), size // 2 + 1)
    parallels = {by: weights[row - column == by].mean() for by in near}
    band = sum(weights[i, j] for i in range(size) for j in range(size) if abs(i - j) <= 2) / size
    sentence = [sum(separators[:at]) for at in range(size)]
    above_chance = {True: 0.0, False: 0.0}
    for i in range(size):
        for j in range(1, size):
            if not separators[j]:
                above_chance[sentence[i] == sentence[j]] += (weights[i, j] - 1 / size) / size
    entropy = np.mean([-sum(w * np.log(w) for w in line if w > 0) for line in weights])
    two = float(sum(separators) > 1)
    return [
        *(columns[0], sum(columns[:3]), parallels[0], parallels[1], parallels[-1]),
        *(max(parallels.values()), band, two * above_chance[True], two * above_chance[False]),
        *(two, entropy / np.log(size)),
    ]


def test_statistics_are_those_of_plain_loops_alone_and_in_a_stack():
    def statistics(*stacks):
        return torch.stack([*patterns.map_statistics(*stacks).values()], dim=1)

    for picture in (*patterns.pictures(load_maps()[::40]), *constructed_maps(5).values()):
        (found,) = statistics(*patterns.as_tensors(*picture))
        np.testing.assert_allclose(found, plain_statistics(*picture), atol=2e-6)
    single = [patterns.as_tensors(*picture) for picture in constructed_maps(16).values()]
    stacked = statistics(*map(torch.cat, zip(*single, strict=True)))
    torch.testing.assert_close(stacked, torch.cat([statistics(*one) for one in single]))


@pytest.mark.parametrize("length", [16, 32, 64, 100])
def test_the_network_names_maps_that_are_known_by_construction(length):
    built = constructed_maps(length)
    named = np.take(PATTERNS, patterns.classify(load_network(), built.values()))
    assert (named == list(EXPECTED.values())).sum() >= 5, dict(zip(built, named, strict=True))


def test_the_network_answers_better_for_held_out_heads_than_the_commonest_label():
    maps = load_maps()
    assert (maps.groupby(["encoder", "layer", "head"])["fold"].nunique() == 1).all()
    for _, of_encoder in maps[maps["part"] == "natural"].groupby("encoder"):
        commonest = (of_encoder["pattern"] == "vertical").mean()
        assert np.mean(of_encoder["network"] == of_encoder["pattern"]) > commonest + 0.1
    # The shipped one is trained on the labels as they are.
    named = np.take(PATTERNS, patterns.classify(load_network(), patterns.pictures(maps)))
    assert np.mean(named == maps["pattern"]) > np.mean(maps["network"] == maps["pattern"]) + 0.02


def test_the_regression_is_one_of_scikit_learn():
    maps = load_maps()[::3]
    statistics = patterns.statistics_of(patterns.pictures(load_maps()))
    model = patterns.regression().fit(statistics, load_maps()["pattern"])
    named = np.take(PATTERNS, patterns.classify(load_regression(), patterns.pictures(maps)))
    np.testing.assert_array_equal(named, model.predict(statistics.iloc[::3]))
    answers = cross_val_predict(
        model, statistics, load_maps()["pattern"], groups=load_maps()["fold"], cv=LeaveOneGroupOut()
    )
    assert f1_score(load_maps()["pattern"], answers, average="micro") > 0.75


# All maps of a pass.


def test_named_maps_are_those_of_single_maps(tiny_bert, tiny_classifier):
    given = {"checkpoint": {"mrpc": str(tiny_classifier)}, "compared_rows": 8}
    study = Study.of("small", "mrpc", model=str(tiny_bert), **given)
    found = study.measure(named_maps)["MRPC"].isel(run=0)
    sizes = {"state": 3, "classifier": 2, "example": 8, "layer": 3, "head": 4, "pattern": 5}
    assert found.sizes == sizes and found.named.dtype == np.uint8
    assert found.pattern.values.tolist() == list(PATTERNS)
    classifiers = {"regression": load_regression(), "network": load_network()}
    models = [study.encoder("random"), study.encoder(), study.classifier("MRPC")]
    for state, model in zip(found.state.values, models, strict=True):
        for batch in study.batches("MRPC", 8):
            for index in batch.index:
                one = one_example([batch], index)
                at = (one.inputs["input_ids"][0] == study.tokenizer.sep_token_id).numpy()
                for layer, maps in enumerate(attention_maps(model, one)):
                    single = [(weights.numpy(), at) for weights in maps[0]]
                    for by, classifier in classifiers.items():
                        named = found.named.sel(state=state, classifier=by, layer=layer + 1)
                        expected = patterns.classify(classifier, single)
                        np.testing.assert_array_equal(named.isel(example=index), expected)


# The labels and their data card.


def test_the_card_says_how_far_readers_agree():
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    maps = load_maps()
    minilm, e5 = maps[maps["encoder"] == "embedded"], maps[maps["encoder"] == "e5"]
    assert f"κ = {cohen_kappa_score(minilm['first'], minilm['second']):.2f}" in card
    third = minilm[minilm["third"].notna()]
    same = (third["third"] == third["pattern"]).sum()
    kappa = cohen_kappa_score(third["third"], third["pattern"])
    assert f"{same} of {len(third)}, κ = {kappa:.2f}" in card
    twice = e5[e5["second"].notna()]
    same = (twice["first"] == twice["second"]).sum()
    assert f"{same} of {len(twice)}" in card
    for part in (minilm[minilm["part"] == "natural"], minilm[minilm["part"] == "enriched"], e5):
        counts = part["pattern"].value_counts().reindex(PATTERNS)
        assert f"| {' | '.join(map(str, counts))} |" in card


def test_labelled_maps_are_maps():
    maps = load_maps()
    assert maps.groupby("encoder").size().to_dict() == {"e5": 240, "embedded": 400}
    for one in maps.itertuples():
        assert one.weights.shape == (len(one.weights),) * 2 and one.pattern in PATTERNS
        np.testing.assert_allclose(one.weights.sum(axis=1), 1, rtol=1e-5)
        assert max(one.separators) == len(one.weights) - 1
        assert one.pattern != "block" or len(one.separators) > 1
