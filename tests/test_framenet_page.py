"""Notebook 2's examples, comparisons, sentences and figures."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from bertology_utils.attention import attention_maps, observe
from bertology_utils.attention.batches import make_batches
from bertology_utils.claims import FAILS, HOLDS, UNDECIDED, UNTESTABLE, Verdict
from bertology_utils.claims.entries import ENTRIES
from bertology_utils.claims.verdict import THIS_RUN
from bertology_utils.common import head_name
from bertology_utils.encoders.models import load_encoder, load_tokenizer
from bertology_utils.encoders.sources import parse_model
from bertology_utils.framenet import (
    agreement,
    beside,
    breakdown,
    controls,
    drawing,
    examples,
    findings,
    frame_links,
    preference,
    release,
    summary,
    tables,
)
from bertology_utils.framenet.controls import MatchedTest
from bertology_utils.framenet.exemplars import Exemplar, Span
from bertology_utils.framenet.frame_links import Difference, FrameSentence, Step
from bertology_utils.framenet.measure import FrameLinkScores, FramePlaces, place
from bertology_utils.statistics import many_test
from bertology_utils.statistics.estimate import Estimate

SENTENCES = 40


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def measured(tmp_path_factory, tiny_bert):
    """The first kept sentences of the mini-FrameNet, measured on a small random model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERTOLOGY_CACHE", str(tmp_path_factory.mktemp("cache")))
        kept, _ = frame_links.extract(release.load_release("embedded"), frame_links.PAPER)
        source = parse_model(str(tiny_bert))
        encoder, tokenizer = load_encoder(source), load_tokenizer(source)
        placed, inputs, _ = place(kept[:SENTENCES], tokenizer)
        measurements = controls.compared(placed, "predicate to element", 1)
        found = observe(encoder, make_batches(inputs, tokenizer), measurements)
    return encoder, tokenizer, inputs, placed, measurements, found


def placed_at(text="Cats have seen it .", elements=1, length=9):
    exemplar = Exemplar("see.v", 1, "Seeing", 1, 1, text, (Span("Target", 10, 14),), (Span("Agent", 0, 4),), ("Agent",))
    sentence = FrameSentence(exemplar, exemplar.target, ((exemplar.elements[0],),) * elements)
    return FramePlaces(sentence, (3,), ((1,), (2,))[:elements], length)


def scores_of(*sentences):
    """One head's scores: of each sentence the link's first, then those of other places."""
    places = tuple(np.array(sentence, dtype=float)[:, None, None] for sentence in sentences)
    return FrameLinkScores(places, np.zeros((len(places), 1, 1), dtype=bool))


def test_a_sentence_as_a_head_sees_it_is_the_models_map_and_the_heads_score(measured):
    encoder, tokenizer, inputs, placed, _, found = measured
    for index, head in ((0, (0, 1)), (7, (2, 3)), (20, (1, 0))):
        seen = examples.seen(encoder, tokenizer, inputs, placed, index, head, "predicate to element")
        (batch,) = make_batches(inputs.select([index]), tokenizer)
        np.testing.assert_allclose(seen.weights, attention_maps(encoder, batch)[head[0]][0, head[1]], atol=1e-6)
        assert seen.weight == pytest.approx(found["moved"].actual[index][head], abs=1e-5)
        assert seen.link in seen.cells and len(seen.tokens) == placed[index].length
        assert seen.text == (
            f"from “{seen.tokens[seen.link[0]]}” to “{seen.tokens[seen.link[1]]}” {seen.weights[seen.link]:.3f}"
        )


def test_other_places_are_those_that_are_scored(measured):
    encoder, tokenizer, inputs, placed, measurements, found = measured
    head, several = (1, 2), 0
    for index in range(0, SENTENCES, 5):
        seen = examples.seen(encoder, tokenizer, inputs, placed, index, head, "predicate to element")
        for kind, measurement in measurements.items():
            others = measurement.others(index)
            several += len(others) > 1
            expected = found[kind].places[index][1:, *head]
            assert [max(seen.weights[cell] for cell in cells) for cells in others] == pytest.approx(expected, abs=1e-5)
            assert not any(cells & set(seen.cells) for cells in others)
    assert several > 4


def test_which_sentence_is_shown():
    placed = [placed_at("It rains ."), placed_at(examples.PAPERS), placed_at()]
    assert examples.papers_sentence(placed) == 1
    assert examples.papers_sentence(placed[::2]) == 0, "where the paper's is not there: the first"
    scores = scores_of([0.3, 0.1], [0.5, 0.4, 0.5], [0.4, 0.1, 0.2])
    assert examples.best_supported(scores, (0, 0)) == 1
    assert examples.most_special(placed, scores, (0, 0), "predicate to element") == 2
    two_cells = [placed[0], placed[1], placed_at(elements=2)]
    assert examples.most_special(two_cells, scores, (0, 0), "predicate to element") == 1, "a link of one cell before others"
    with pytest.raises(ValueError, match="no sentence has two other places"):
        examples.most_special(placed, scores_of([0.3, 0.1], [0.5], [0.4]), (0, 0), "predicate to element")


def test_share_of_sentences_with_more_than_so_many_even_shares():
    placed = [placed_at(length=10), placed_at(length=10), placed_at(length=4)]
    assert examples.share_seen(placed, scores_of([0.21], [0.19], [0.45]), (0, 0), 2) == pytest.approx(1 / 3)


REAL = {
    "funnel": [{"name": "annotated sentences", "sentences": 9000}, {"name": "near", "sentences": 800}],
    "differences": [{"alone": 700, "together": 600}, {"alone": 90, "together": 460}],
    "scores": np.full((2, 3), 0.1).tolist(),
    "compared": {name: {"excess": np.arange(6).reshape(2, 3).tolist()} for name in ("elsewhere", "other sentences")},
}
STEPS = [Step("annotated sentences", 50, 60), Step("near", 30, 31)]
DIFFERENCES = [Difference("a", 20, 20, 5), Difference("b", 12, 3, 4)]


def test_sentences_left_stand_beside_the_papers():
    counts = {"paper": 30, "official": 3}
    rows = beside.counts("paper", STEPS, counts, REAL)
    assert rows["annotated sentences"] == {"this run": 50, "FrameNet 1.5": 9000}, "no model is involved"
    assert rows["near"] == {"this run": 30, "FrameNet 1.5": 800, "the paper": 473}
    assert rows["by all of the published code's rules"] == {"the paper": 473, "this run": 3, "FrameNet 1.5": 460}
    alone = beside.counts("official", STEPS, counts, {})
    assert alone["by the paper's text"] == {"the paper": 473, "this run": 30}
    assert not any("FrameNet 1.5" in row for row in alone.values())
    figure = drawing.counts_left(rows)
    assert figure.axes[0].get_xscale() == "log"


def test_the_sentence_on_counts_names_what_comes_nearer():
    counts = {"paper": 30, "official": 3}
    told = beside.told_counts(50, counts, DIFFERENCES, REAL)
    assert told.startswith(
        "Of 50 sentences the paper's text leaves 30, its code 3. In FrameNet 1.5 it is 800 and 460 of 9,000:"
    )
    assert "nearer to 473 by its code. There no rule of the code does it alone: the strictest leaves 90." in told
    assert "12" not in told, "50 sentences can never leave 473"
    assert "alone the strictest leaves 12." in beside.told_counts(500, counts, DIFFERENCES, REAL)
    other = REAL | {"differences": [{"alone": 90, "together": 2}]}
    assert "nearer to 473 by its text" in beside.told_counts(50, counts, DIFFERENCES, other)
    assert "1.5" not in beside.told_counts(50, counts, DIFFERENCES, {})


def test_four_highest_heads_of_every_source_in_falling_order():
    rng = np.random.default_rng(0)
    actual, random = rng.random((30, 2, 3)) * np.arange(6).reshape(2, 3), rng.random((30, 2, 3))
    rows = beside.top_rows(actual, random, REAL, 1)
    assert [name.partition(",")[0] for name in rows] == ["highest head", "second", "third", "fourth"]
    top, *_ = rows
    assert top == "highest head, in this run (2, 3)"
    value, low, high = rows[top]["bert-base, published figure"]
    assert value == pytest.approx(0.209, abs=0.002) and (value - low, high - value) == pytest.approx((0.02, 0.02))
    ours = [row["this run"].value for row in rows.values()]
    assert ours == pytest.approx(sorted(actual.mean(axis=0).ravel(), reverse=True)[:4])
    assert [row["MiniLM, FrameNet 1.5"] for row in rows.values()] == [0.1] * 4
    assert "MiniLM, FrameNet 1.5" not in beside.top_rows(actual, random, {}, 1)[top]
    assert beside.told_rows(rows).startswith(f"{top}: bert-base, published figure 0.21, MiniLM, FrameNet 1.5 0.10, this")


def test_excess_stands_beside_the_committed_run_of_a_model_of_the_same_shape():
    ours = np.random.default_rng(0).normal(0.1, 0.1, (30, 2, 3))
    rows = beside.excess_rows([(1, 2)], ours, -ours, REAL, 1)["head (2, 3)"]
    assert rows["MiniLM, FrameNet 1.5"] == 5 and rows["this run"].value == -rows["random weights"].value
    other_shape = np.zeros((30, 4, 4))
    assert set(beside.excess_rows([(3, 3)], other_shape, other_shape, REAL, 1)["head (4, 4)"]) == {
        "this run",
        "random weights",
    }
    panels = beside.excess_panels({"moved": np.zeros((2, 3)), "borrowed": np.ones((2, 3))}, REAL)
    assert len(panels) == 4 and len(beside.excess_panels({"moved": ours[0], "borrowed": ours[0]}, {})) == 2
    assert beside.told_highest({"one\npanel": np.array([[0.1, 0.25]])}) == "one panel: (1, 2) 0.25"


def test_kinds_of_elements_and_where_their_interval_ends():
    rng = np.random.default_rng(0)
    parts = {
        "other before": np.stack([rng.normal(1, 0.1, 40), rng.normal(0, 0.1, 40)], axis=1)[:, None],
        "after": np.stack([rng.normal(-1, 0.1, 40), rng.normal(0, 0.1, 40)], axis=1)[:, None],
    }
    real = {"by_role_excess": {"pronoun before": {"n": 99, "excess": [[0.5, 0.6]]}}}
    panels = beside.role_panels([(0, 0), (0, 1)], parts, real, 1)
    assert list(panels["head (1, 1)"]) == ["pronoun before", "other before", "after"]
    assert panels["head (1, 2)"]["pronoun before"] == {"MiniLM, FrameNet 1.5": 0.6}
    first, second = preference.told_roles(panels).splitlines()
    theirs = "On FrameNet 1.5: pronoun before"
    assert first == f"head (1, 1): other before above 0 (n=40), after below 0 (n=40). {theirs} +0.500."
    assert second.startswith("head (1, 2): other before not surely above 0 (n=40), after not surely above 0 (n=40).")
    assert preference.told_roles(beside.role_panels([(0, 0)], {}, {}, 1)) == "head (1, 1): too few sentences of any kind."


def test_a_test_that_can_hardly_come_out_otherwise_says_so():
    excess = Estimate(0.04, 0.0, 95)
    assert preference.told_pronouns(100, 95, excess, (0, 1)).endswith("on these data the control is weak.")
    told = preference.told_pronouns(100, 50, excess, (0, 1))
    assert told.endswith("sentences with a pronoun before the predicate (1, 2) has +0.040 [+0.040, +0.040], n=50.")


def seen_with(weight, head=(0, 1)):
    weights = np.full((3, 3), (1 - weight) / 2)
    weights[2, 0] = weight
    return examples.Seen(head, ["he", "was", "agitated"], weights, [(2, 0)], (2, 0))


def test_the_papers_example_fails_plainly_or_does_not():
    def told(*weights, text=examples.PAPERS):
        seen = [seen_with(weight, (at, 1)) for at, weight in enumerate(weights)]
        return summary.told_example(seen, 10, [seen_with(0.9)] * 2, [0.5, 0.1], text)

    first, second, third = told(0.03, 0.02).splitlines()
    assert first == "The paper's example fails here: neither head looks along its link. An even share is 0.100."
    assert second.startswith(
        "(1, 2): from “agitated” to “he” 0.030; in the sentence where it gives a link most: from “agitated” to “he” 0.900."
    )
    assert third.endswith("More than twice an even share in 10 % of sentences.")
    assert told(0.5, 0.2).startswith("The paper's example fails here: one of the two heads does not look")
    assert told(0.5, 0.21).startswith("The paper's example holds here: both heads look")
    assert told(0.5, 0.5, text="It rains .").startswith(
        "This release lacks the paper's example; in “It rains .” instead: both"
    )


def test_the_percentile_lets_one_or_two_heads_through_whatever_their_values():
    for heads, beyond in ((72, "1 is"), (144, "2 are")):
        scores = np.random.default_rng(heads).random((1, heads // 12, 12))
        told = summary.told_top(scores, [4], {"random_weights": [[0.1, 0.2]]})
        assert told.startswith(f"Of {heads} heads {beyond} above the 99th percentile")
        below = int((scores < 0.25).sum())
        assert told.endswith(
            f"An even share is 0.250 on average; {below} of {heads} heads score less."
            " On FrameNet 1.5 random weights reach 0.200."
        )
        assert "1.5" not in summary.told_top(scores, [4], {})


LARGEST = {"head": "(4, 2)", "value": 0.073, "low": 0.043, "high": 0.105, "n": 173, "heads": 72, "p_above_0": 0.001}


@pytest.mark.parametrize(
    ("p", "words"), [(0.04, "not surely above 0.02 (p = 0.04,"), (0.001, "surely above 0.02 (p < 0.01,")]
)
def test_the_largest_excess_is_told_with_the_bound_that_decides(p, words):
    one = LARGEST | {"p_above_least": p}
    told = preference.told_links(one, {})
    assert f"(4, 2) +0.073 [+0.043, +0.105], n=173: {words} corrected over 72 heads); surely above 0 (p < 0.01)." in told
    verdicts = [{"id": "frame-links", "model": THIS_RUN, "outcome": HOLDS, "ours": "(4, 2) +0.037"}]
    assert preference.told_links(one, {"verdicts": verdicts}).endswith(" On FrameNet 1.5: holds here; (4, 2) +0.037.")
    verdicts = [{"id": "frame-links", "claim": "c", "model": THIS_RUN, "outcome": UNDECIDED, "ours": "old", "why": ""}]
    (finding,) = findings.findings({"verdicts": verdicts, "largest_excess": one})
    assert words.replace("0.02", "the least that counts") in finding and "[+0.043, +0.105]" in finding
    assert findings.findings({"verdicts": verdicts})[0].endswith(": old.")


def test_the_numbers_of_the_largest_excess_are_those_of_the_tests(measured):
    found = measured[-1]["borrowed"]
    effects, test = many_test(found.excess, 0.02, 1), controls.matched_test(found, 1, 50)
    one = preference.largest_excess(effects, test, found, 0.5, 1)
    head = np.unravel_index(effects.means.argmax(), effects.means.shape)
    assert one["head"] == head_name(*map(int, head)) and one["value"] == pytest.approx(test.excess.max(), abs=1e-5)
    assert (one["p_above_0"], one["p_above_least"]) == (test.above[head], effects.above[head])
    assert one["n"] == test.sentences and one["heads"] == 12


def test_which_heads_keep_their_excess_on_the_release():
    real = {"compared": {"other sentences": {"excess": [[0.03, -0.01, 0.01]]}}}
    told = preference.told_committed([(0, 0), (0, 1), (0, 2)], real)
    assert told == "On FrameNet 1.5, of these 3 heads above 0.02: (1, 1) +0.030; below 0: (1, 2) -0.010."
    assert preference.told_committed([(1, 0)], real) == preference.told_committed([(0, 0)], {}) == ""


def test_the_other_way_round():
    back = FrameLinkScores(tuple(np.array([[[0.5, 0.3]], [[0.2, 0.3]]]) for _ in range(5)), np.zeros((5, 1, 2), dtype=bool))
    told = preference.told_back(back, np.array([[0.01, 0.1]]), ("to", "fro"), 1)
    assert told == (
        "The other way round, fro, the largest excess is larger: (1, 1) +0.300 [+0.300, +0.300], n=5;"
        " to this head has +0.010."
    )
    assert "is not larger" in preference.told_back(back, np.array([[0.01, 0.4]]), ("to", "fro"), 1)
    assert "0 of 2 heads" in preference.told_both_ways(back, np.array([[0.01, 0.4]]))
    assert "1 of 2 heads" in preference.told_both_ways(back, np.array([[0.03, 0.4]]))
    ways = ("predicate to element", "element to predicate")
    assert [controls.other_way(way) for way in (*ways, "both")] == [*ways[::-1], ways[1]]


def test_strongest_squares_and_what_random_weights_give():
    ones = np.ones((1, 2))
    test = MatchedTest(np.array([[0.1, 0.3]]), np.full((1, 2), 0.25), np.array([[0.5, 0.01]]), ones, 9)
    tests = {"moved": test, "borrowed": test}
    assert preference.told_strongest(tests).startswith("Strongest colour in this run: over shifted places (1, 1) -0.150;")
    told = preference.told_random(tests, tests)
    assert "random weights 1 of 2 heads, pre-trained 1 of 2" in told and told.endswith("by +0.050 at most.")


def test_the_answer_in_short():
    def of(here, there, two=UNDECIDED, pronouns=0.01):
        ours = [verdict("frame-links", here, ""), verdict("frame-two-heads", two, "")]
        real = {
            "verdicts": [{"id": "frame-links", "model": THIS_RUN, "outcome": there}],
            "compared": {"other sentences": {"excess": [[0.03, -0.01]]}},
            "by_role_excess": {"pronoun before": {"excess": [[pronouns, 0]]}},
        }
        return summary.answer(ours, real if there else {})

    told = of(UNDECIDED, HOLDS)
    assert "here it stays open whether a head does, on FrameNet 1.5 at least one head does" in told
    assert "((1, 1), but not for every kind of element: pronoun before +0.010)" in told
    assert "but not" not in of(UNDECIDED, HOLDS, pronouns=0.03)
    assert of(FAILS, "", FAILS).endswith("here no head does. No two heads stand out here.")


def test_releases_agree_or_have_nothing_in_common():
    one = {"score": np.arange(6.0).reshape(2, 3), "excess": np.arange(6.0).reshape(2, 3)}
    assert agreement.correlations(one, {"score": -one["score"], "excess": one["excess"]}) == pytest.approx(
        {"score": -1, "excess": 1}
    )
    assert agreement.correlations(one, {"score": np.zeros((3, 3))}) == {}
    assert agreement.of_committed({}) == {}
    np.testing.assert_array_equal(agreement.of_committed(REAL)["excess"], np.arange(6).reshape(2, 3))


def test_links_are_framed_in_orange_and_what_they_are_compared_with_in_green():
    seen = seen_with(0.8)
    figure = drawing.links_in_maps([[seen, seen], [seen, seen]], ("the example", "best supported"))
    assert "from “agitated” to “he” 0.800" in figure.axes[0].get_title()
    (frame,) = figure.axes[0].patches
    assert frame.get_xy() == (-0.5, 1.5) and to_hex(frame.get_edgecolor()) == drawing.LINK
    both = drawing.compared_places(seen, {"shifted places": [{(1, 1)}, {(1, 2)}], "other sentences' places": [{(0, 1)}]})
    assert [patch.get_linestyle() for patch in both.axes[0].patches] == ["--", "--", "-"], "told apart without colour"
    colours = [[to_hex(patch.get_edgecolor()) for patch in ax.patches] for ax in both.axes[:2]]
    assert colours == [[drawing.OTHER] * 2 + [drawing.LINK], [drawing.OTHER, drawing.LINK]]


def test_grids_of_models_with_other_numbers_of_layers_share_a_scale():
    one = np.where(np.eye(12)[::-1], 0.2, 0.1)
    figure = drawing.score_panels({"one": one, "two": np.full((6, 12), 0.1)})
    assert figure.axes[0].get_title() == "one\nhighest (1, 12) and (2, 11)"
    assert [patch.get_xy() for patch in figure.axes[0].patches] == [(11, 0), (10, 1)]
    first, second = (ax.collections[0] for ax in figure.axes[:2])
    assert first.get_clim() == second.get_clim() == (0, 0.2)
    assert [len(ax.get_yticklabels()) for ax in figure.axes[:2]] == [12, 6]


def verdict(name, outcome, ours, model=THIS_RUN):
    return Verdict(name, ENTRIES[name].claim, "", ours, outcome, "", model)


def test_the_summary_tells_every_claim_by_its_verdicts_here_and_on_the_release():
    ours = [verdict(name, HOLDS, "ours") for name in summary.TOLD]
    ours.insert(2, verdict("frame-two-heads", FAILS, "theirs", "a published panel"))
    real = {"verdicts": [{"id": "frame-links", "model": THIS_RUN, "outcome": UNDECIDED, "ours": "real", "why": "rule"}]}
    told = summary.sentences(ours, real)
    assert len(told) == len(summary.TOLD) <= 5
    assert told[1] == "Two heads stand out? This run: holds here; ours. a published panel: does not hold here; theirs."
    assert told[3].endswith("? This run: holds here; ours. MiniLM on FrameNet 1.5: undecided; real.")
    assert "1.5" not in " ".join(summary.sentences(ours, {}))
    real["verdicts"][0] |= {"outcome": UNTESTABLE, "why": "missing: a release"}
    assert summary.sentences(ours, real)[3].endswith("MiniLM on FrameNet 1.5: not testable here; missing: a release.")
    assert max(map(len, summary.wrapped("\n".join(told * 9)).splitlines())) <= summary.WIDTH


def test_tables_hold_one_estimate_in_a_cell(measured):
    *_, placed, _, found = measured
    tests = {kind: controls.matched_test(scores, 1, 50) for kind, scores in found.items()}
    heads = controls.top_heads(found["moved"].actual.mean(axis=0), 3)
    of_heads = tables.of_heads(heads, found, tests, 1)
    counts = tables.of_counts({"pre-trained": tests, "random weights": tests})
    kinds = tables.of_kinds(placed, found["moved"], heads[:2], 2)
    ways = tables.of_ways({("predicate to element", "product"): found["moved"]}, found["moved"].actual.mean(axis=0))
    for table in (of_heads, counts, kinds, ways):
        assert len(table) and table.map(lambda cell: str(cell).count("[") <= 1).all().all()
    assert list(of_heads.index) == [head_name(*head) for head in heads]
    assert ways["correlation"].item() == "1.00" and len(counts) == 4


def test_numbers_for_the_results_file(measured):
    *_, placed, _, found = measured
    tests = {kind: controls.matched_test(scores, 1, 50) for kind, scores in found.items()}
    by_role = breakdown.excess_by_role(placed, found["borrowed"])
    numbers = summary.of_heads(found["moved"], found["moved"], tests, by_role, 1)
    assert set(numbers["compared"]) == {"elsewhere", "other sentences"}, "names that pages and earlier runs know"
    values = [one["score"]["value"] for one in numbers["highest"]]
    assert values == sorted(values, reverse=True) and values[0] == pytest.approx(numbers["scores"].max(), abs=1e-3)
    assert by_role and all(one["excess"].shape == (3, 4) and one["n"] >= 10 for one in numbers["by_role_excess"].values())
