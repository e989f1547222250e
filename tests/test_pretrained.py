"""The room of notebook 8: heads beside published panels, heads that point along dependencies, and what looking costs."""

from dataclasses import replace

import numpy as np
import pytest
from made_up import SURE, estimate, resampled
from transformers import AutoTokenizer, BertConfig

from bertology_utils.claims import FAILS, HOLDS, UNDECIDED, UNTESTABLE
from bertology_utils.claims.verdict import PRETRAINED
from bertology_utils.encoders.cost import Size
from bertology_utils.encoders.embedded import embedded_folder
from bertology_utils.framenet import frame_links, official_heatmaps, release
from bertology_utils.links.dependencies import RELATIONS, RelationTest
from bertology_utils.pretrained import bert_base, claims, panels, pointing, sentences
from bertology_utils.pretrained.cost import STARTUP, Looking


def test_a_panel_beside_itself_moved():
    theirs = official_heatmaps.panel("[SEP]")
    same = panels.compare(theirs, theirs, 1)
    assert same.rank.value == pytest.approx(1) and same.difference == 0 and same.common == panels.TOP
    ours = theirs.copy()
    ours[3, 4] += 0.9
    found = panels.compare(ours, theirs, 1)
    assert found.where == (3, 4) and found.difference == pytest.approx(0.9)
    assert found.common == panels.TOP - (theirs[3, 4] < np.sort(theirs.ravel())[-panels.TOP])
    assert found.row()["at head"] == "(4, 5)" and found.row()["largest difference"] == "+0.90"
    backwards = panels.compare(-theirs, theirs, 1)
    assert backwards.rank.value == pytest.approx(-1) and backwards.common == 0


def test_panels_of_two_shapes_are_refused():
    with pytest.raises(ValueError, match="no heads in common"):
        panels.compare(np.zeros((6, 12)), official_heatmaps.panel("[SEP]"), 1)


def test_what_is_bert_base_and_what_is_not():
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())  # of the same vocabulary
    assert bert_base.differs(BertConfig(), tokenizer) == bert_base.missing(BertConfig(), tokenizer) == ""
    assert "it has 6 layers, not 12" in bert_base.differs(BertConfig(num_hidden_layers=6), tokenizer)
    small = bert_base.missing(BertConfig(hidden_size=384), tokenizer)
    assert small.startswith("bert-base-uncased, ") and "384 numbers" in small
    tokenizer.add_tokens(["bertology"])
    assert "other wordpieces" in bert_base.differs(BertConfig(), tokenizer)


def relation(name, z, beats, arcs=50):
    """A test whose best head is so many standard errors above 2 points ahead."""
    ahead = resampled(z, 0.02)
    return RelationTest(name, arcs, "", 1, ahead, (0, 0), ahead, ahead, beats, 0.0)


def judged(tests, random=None, missing=""):
    return {one.id: one for one in claims.judge_pointing(tests, random or {}, missing)}


def test_heads_that_point():
    theirs = {name: (pointing.CLARK[name].at,) for name in RELATIONS}
    all_ahead = {name: relation(name, SURE, theirs[name]) for name in RELATIONS}
    found = judged(all_ahead, {"det": relation("det", 0, ())})
    assert {one.outcome for one in found.values()} == {HOLDS}
    one_behind = all_ahead | {"amod": relation("amod", -SURE, ())}
    found = judged(one_behind, {"det": relation("det", 0, ((0, 0),))})
    assert [found[name].outcome for name in ("relations-ahead", "clark-heads", "relations-random")] == [
        FAILS,
        UNDECIDED,
        FAILS,
    ]
    assert "amod (4, 10) does not" in found["clark-heads"].ours
    others = judged({name: relation(name, SURE, ((0, 0),)) for name in RELATIONS})
    assert others["relations-ahead"].outcome == HOLDS and others["clark-heads"].outcome == FAILS
    assert judged(all_ahead | {"amod": relation("amod", 0, ())})["relations-ahead"].outcome == UNDECIDED


def test_a_relation_that_a_fixed_distance_already_finds_is_left_out():
    def full(test):
        return replace(test, baseline=resampled(0, 0.97))

    behind = full(relation("amod", -SURE, ()))
    found = judged({"det": relation("det", SURE, ((0, 0),)), "amod": behind})["relations-ahead"]
    assert found.outcome == HOLDS and "amod left out: a fixed distance is right on over 96 % of arcs" in found.ours
    alone = judged({"amod": behind})["relations-ahead"]
    assert alone.outcome == UNTESTABLE and "leave room; amod left out" in alone.why


def test_heads_that_cannot_be_judged():
    assert {one.outcome for one in judged({}).values()} == {UNTESTABLE}
    of_another = judged({"det": relation("det", SURE, ((0, 0),))}, missing="bert-base-uncased")
    assert of_another["clark-heads"].outcome == UNTESTABLE and "bert-base-uncased" in of_another["clark-heads"].why
    assert of_another["relations-ahead"].outcome == HOLDS


def test_the_papers_claims_say_that_they_are_judged_before_fine_tuning():
    from bertology_utils.features.claims import judge_halves
    from bertology_utils.glue.tasks import TASKS

    task = TASKS["mrpc"]
    found = judge_halves("[CLS]", {task: estimate(SURE, 0.02)}, {task: estimate(0)}, {task: True})
    published = replace(found[0], model="bert-base-uncased, published")
    models = [one.model for one in claims.before_fine_tuning([*found, published])]
    assert models == [PRETRAINED, PRETRAINED, "bert-base-uncased, published"]


def test_clarks_table_and_its_rows():
    assert set(pointing.CLARK) == set(pointing.MEANINGS) == set(RELATIONS)
    assert (pointing.CLARK["amod"].accuracy, pointing.CLARK["amod"].offset) == (75.6, 68.3)
    assert pointing.CLARK["nsubj"].offset == 45.5 and pointing.CLARK["nsubj"].at == (7, 1)
    row = pointing.row(relation("det", SURE, ()))
    assert row["Clark: head"] == "(8, 11)" and row["best head"] == "(1, 1)" and row["arcs"] == 50
    dots = pointing.dots({"det": relation("det", SURE, ())})["det: article at a noun"]
    assert dots["bert-base, published figure"] == pytest.approx(0.426) and dots["this run"]["value"] == pytest.approx(0.07)


def test_of_many_sentences_some_are_drawn_and_the_papers_own_is_kept():
    kept = frame_links.extract(release.load_release("embedded"), frame_links.rules("paper"))[0]
    texts = [one.exemplar.text for one in kept]
    for seed in range(5):
        few = [one.exemplar.text for one in sentences.drawn(kept, seed, 7)]
        assert len(few) == 7 and few == [text for text in texts if text in few]
        assert few[sentences.position(few)] == sentences.PAPERS
    assert sentences.drawn(kept, 1) == kept and sentences.position(["a", "b"]) == 0
    assert sentences.drawn(kept, 1, 7) == sentences.drawn(kept, 1, 7) != sentences.drawn(kept, 2, 7)


def test_cost_is_counted_by_hand():
    size = Size(layers=2, heads=2, hidden=4, inner=8, words=10)
    work = Looking.of(size, [[5, 7], [3]], [2, 2], [3])
    assert work.wordpieces == (5 + 7 + 3) + (5 + 7) + 2 * (2 + 2) + 3 and work.longest == 7
    assert work.operations == work.wordpieces * (2 * 2 * (4 * 16 + 2 * 32) + 4 * 2 * 4 * 7)
    assert work.seconds(1e9) == pytest.approx(STARTUP, abs=0.01)
    slow, fast = work.seconds(1e3) - STARTUP, work.seconds(2e3) - STARTUP
    assert slow == pytest.approx(2 * fast)
    assert Looking.of(size, [[50]], []).memory > work.memory
    assert Looking.of(size, [], []).wordpieces == 0
