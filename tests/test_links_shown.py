"""§4.5: what notebook 5 shows and says: the input it looks at, the sentences, the numbers beside other runs'."""

import json

import numpy as np
import pytest
from conftest import ROOT
from plain import made_input, measured, word
from precision import forward_tolerance

from bertology_utils.annotation.token_types import TOKEN_TYPES
from bertology_utils.claims.register import NOTEBOOKS, WEIGHT
from bertology_utils.features import ahead, from_cls
from bertology_utils.glue.tasks import TASKS
from bertology_utils.links import beside, examples, exercises, summary
from bertology_utils.links.claims import Clear
from bertology_utils.links.controls import highest_five, with_neighbours
from bertology_utils.links.token_links import borrow, find_links
from bertology_utils.statistics import many_test
from bertology_utils.statistics.resampling import Bootstrap

MRPC, SST2 = TASKS["mrpc"], TASKS["sst2"]
NEAR = [word("he", "PRON", 1, "nsubj"), word("runs", "VERB", -1, "root"), word("far", "ADV", 1, "advmod")]
FAR = [word("he", "PRON", 2, "nsubj"), word("often", "ADV", 2, "advmod"), word("runs", "VERB", -1, "root")]
NONE = [word("far", "ADV", -1, "root")] * 3


def picked(sentences, adjacent):
    inputs = [made_input(words) for words in sentences]
    links = borrow([find_links(one, True) for one in inputs], seed=1)
    return examples.pick({MRPC: inputs}, {MRPC: links}, "verb → subject", adjacent)


def test_the_input_to_look_at_has_links_that_are_neighbours_or_are_not():
    sentences = [NONE, NEAR, FAR, NEAR, FAR]
    lengths = [[*words, *[word("x", "ADV", 1, "dep")] * at] for at, words in enumerate(sentences)]
    assert picked(sentences, adjacent=False) == (MRPC, 2)
    assert picked(sentences, adjacent=True) == (MRPC, 1)
    assert picked(lengths, adjacent=True) == (MRPC, 4), "none has a place to compare with: the longest that has a link"
    assert picked([NONE, NONE], adjacent=True) == (MRPC, 0)


def test_maps_of_one_input_are_those_of_the_input_alone():
    lab, task, model, plain = measured("sst2")
    for index in (0, len(plain) - 1):
        maps = examples.maps_of(model, lab.measured_batches(task), index)
        np.testing.assert_allclose(maps, plain[index].maps, atol=forward_tolerance(model), rtol=0)
    with pytest.raises(ValueError, match="no input -1"):
        examples.maps_of(model, lab.measured_batches(task), -1)


def rho(value):
    return Bootstrap(value, np.full(10, value), 72)


@pytest.mark.parametrize(
    "values, said",
    [((0.3, 0.2), "the more it attends"), ((-0.3, -0.2), "the less it attends"), ((0.3, -0.2), "do not go together")],
)
def test_a_sentence_says_which_way_the_numbers_point(values, said):
    known = {
        name: {"this run": rho(value)} for name, value in zip(("noun → pronoun", "pronoun → noun"), values, strict=True)
    }
    beyond = {"noun → pronoun": {"this run": rho(0.05)}}
    (sentence,) = summary.with_or_against({beside.ALONG: known, beside.ABOVE: beyond}, dict.fromkeys(known, 40.0), 72)
    assert sentence.startswith("Noun and pronoun: ") and said in sentence and "36.5" in sentence
    assert "with position taken out, ρ noun → pronoun +0.05" in sentence


def test_it_says_for_which_direction_that_is_sure():
    names, wide = ("verb → subject", "subject → verb"), Bootstrap(0.2, np.linspace(-0.1, 0.5, 100), 72)

    def sentence(*found):
        known = {name: {"this run": one} for name, one in zip(names, found, strict=True)}
        (said,) = summary.with_or_against({beside.ALONG: known, beside.ABOVE: known}, dict.fromkeys(known, 5.0), 72)
        return said

    assert "72 heads; surely so only for verb → subject)" in sentence(rho(0.3), wide)
    assert "72 heads; not surely so for any)" in sentence(wide, wide)
    assert "72 heads)" in sentence(rho(0.3), rho(0.2)) and "72 heads)" in sentence(rho(-0.3), rho(-0.2))


def test_which_type_is_first_by_the_means_of_a_results_file():
    values = [0.0] * len(TOKEN_TYPES)
    values[TOKEN_TYPES.index("[CLS]")], values[TOKEN_TYPES.index("nouns")], values[-1] = 0.9, 0.3, None
    results = {"from_cls": {"fine-tuned": {"mrpc": values}}}
    assert summary.first_of_means(results, "GLUE") == "Fine-tuned, GLUE: nouns on MRPC."
    assert summary.first_of_means({}, "GLUE") == ""


def test_exercises_end_in_a_sentence():
    assert exercises.sep_by_layer([0.1, 0.3], []).endswith(
        "most in layer 2; more than every other type but [CLS] in no layer."
    )
    assert exercises.sep_by_layer([0.3, 0.1], [1, 2]).endswith("in layer 1 and 2.")
    assert exercises.left_apart(0.9, 0.0) == "So 0% of the score is left: it mostly follows its diagonal."
    assert "follows the link" in exercises.left_apart(0.5, 0.4) and "cannot be told" in exercises.left_apart(0.5, np.nan)


def test_it_says_where_the_explanation_cannot_be_tested():
    assert len(summary.adjacency({"verbs": 0.5, "pronouns": 0.2})) == 1
    (shares, untestable) = summary.adjacency({"verbs": 0.5, "pronouns": 0.0})
    assert "verb and subject in 50 %" in shares and "noun and pronoun in 0 %" in shares
    assert "cannot be tested on noun and pronoun" in untestable
    assert "pronoun" not in " ".join(summary.adjacency({"verbs": 0.5, "pronouns": float("nan")}))


def test_the_furthest_head_is_told_with_its_interval():
    rng = np.random.default_rng(0)
    differences = {"subject → verb": rng.normal(0.0, 0.01, size=(60, 2, 3))}
    differences["subject → verb"][:, 1, 2] += 0.1
    tests = many_test(differences["subject → verb"], WEIGHT, 1)
    count, furthest = summary.above_places({"subject → verb": Clear(tests, tests)}, differences, 1)
    assert count == "Of 6 heads, surely 0.02 above other inputs' places: subject → verb 1."
    assert "(2, 3), by +0.1" in furthest and "n=60" in furthest
    assert summary.above_places({}, {}, 1) == []
    assert summary.furthest({"a": np.zeros((2, 3)), "b": np.eye(2, 3)}, ["a", "b"]) == ("b", (0, 0))
    assert summary.furthest({}, ["a", "b"]) == ("a", (0, 0))


def test_the_committed_run_and_this_one_are_drawn_in_one_form():
    results = json.loads((ROOT / "figures" / NOTEBOOKS[5] / "results.json").read_text())
    sources = {"this run": results, "MiniLM, real GLUE": {}}
    panels = beside.correlations(sources, seed=1)
    assert {len(of_kind) for of_kind in panels.values()} == {4}
    expected = with_neighbours(
        {kind: np.array(heads) for kind, heads in results["scores"]["pre-trained"].items()},
        np.array(results["neighbours"]["pre-trained"]),
        seed=1,
    )
    for kind, by_source in panels[beside.ALONG].items():
        assert list(by_source) == ["this run"] and by_source["this run"].value == expected[kind].value
    assert set(beside.excesses(sources)) == {"this run", "random weights"}
    shown = beside.from_cls_tables(sources)
    assert list(shown) == ["this run"] and list(shown["this run"]) == ["pre-trained", "fine-tuned"]
    assert beside.NAMED_BY_PAPER["STS-B"] == "punctuation" and beside.NAMED_BY_PAPER["MRPC"] == "[SEP]"


def test_shares_and_ranks_by_type():
    neighbours = np.linspace(1, 0, 50).reshape(5, 10)
    shares, ranks = highest_five({"a": neighbours, "b": -neighbours}, neighbours, seed=1)
    assert shares["a"] > 0.999 and shares["b"] == 0 and ranks == {"a": 3, "b": 48}


def cls_values(by_type):
    """Ten examples of three layers and two heads in which [CLS] gives each type so much; NaN for what is not named."""
    values = np.full((10, len(TOKEN_TYPES), 3, 2), np.nan)
    for kind, weight in by_type.items():
        values[:, TOKEN_TYPES.index(kind)] = 0.9 - weight  # in other layers the other way round
        values[:, TOKEN_TYPES.index(kind), -1] = [weight - 0.01, weight + 0.01]
    return values


def test_what_comes_first_from_cls_is_of_the_last_layer_and_never_cls_itself():
    found = {"fine-tuned": {SST2: {"from [CLS]": cls_values({"nouns": 0.2, "[SEP]": 0.3, "[CLS]": 0.5})}}}
    last = from_cls.last_layers(found)
    assert from_cls.first_types(last) == {"fine-tuned": {SST2: "[SEP]"}}
    assert from_cls.shares_first({SST2: [found["fine-tuned"][SST2]]}, ("[SEP]", "nouns"), 1) == {
        SST2: {"[SEP]": [1.0], "nouns": [0.0]}
    }
    means = from_cls.means_by_name(last)["fine-tuned"]["sst2"]
    assert means[0] == pytest.approx(0.2) and np.isnan(means[1])
    mixed = np.random.default_rng(0).random((40, len(TOKEN_TYPES)))
    mixed[np.random.default_rng(1).random(mixed.shape) < 0.3] = np.nan
    ahead_of_all = [TOKEN_TYPES[at] for at in from_cls.OTHERS if ahead(mixed, at, from_cls.OTHERS, 1)[0]]
    assert [from_cls.first_type(mixed)] == (ahead_of_all or [from_cls.NONE])
    tied = from_cls.last_layer(cls_values({"nouns": 0.3, "[SEP]": 0.3}))
    assert from_cls.first_type(tied) == from_cls.NONE


def test_first_by_type_groups_tasks():
    first = {MRPC: "nouns", SST2: "negation", TASKS["rte"]: "nouns"}
    assert summary.first_by_type(first) == "nouns on MRPC, RTE; negation on SST-2"
