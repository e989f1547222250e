"""The room of notebook 8: is it bert-base, heads beside published panels, heads that point, sentences that are drawn."""

from dataclasses import replace

import numpy as np
import pytest
from made_up import SURE, resampled
from transformers import AutoTokenizer, BertConfig

from bertology_utils.framenet import frame_links, release
from bertology_utils.framenet.comparisons import published_panel
from bertology_utils.judge import FAILS, HOLDS, UNDECIDED, judge
from bertology_utils.links.dependencies import CLARK, RELATIONS, RelationTest
from bertology_utils.pretrained import bert_base, measure
from bertology_utils.sources import embedded_folder


def test_a_panel_beside_itself_moved():
    theirs = published_panel("[SEP]")
    same = bert_base.compare(theirs, theirs, 1)
    assert same.rank.value == pytest.approx(1) and same.difference == 0 and same.common == bert_base.TOP
    ours = theirs.copy()
    ours[3, 4] += 0.9
    found = bert_base.compare(ours, theirs, 1)
    assert found.where == (3, 4) and found.difference == pytest.approx(0.9)
    assert found.common == bert_base.TOP - (theirs[3, 4] < np.sort(theirs.ravel())[-bert_base.TOP])
    backwards = bert_base.compare(-theirs, theirs, 1)
    assert backwards.rank.value == pytest.approx(-1) and backwards.common == 0
    with pytest.raises(ValueError, match="no heads in common"):
        bert_base.compare(np.zeros((6, 12)), theirs, 1)


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


def outcomes(tests):
    """Of the claims about any head, and about Clark et al.'s."""
    judged = judge("relations-ahead", measure.ahead_of_distance(tests))
    return judged.outcome, judge("clark-heads", {"": measure.heads_of_clark(tests)}).outcome


def test_heads_that_point():
    theirs = {name: (CLARK[name].at,) for name in RELATIONS}
    all_ahead = {name: relation(name, SURE, theirs[name]) for name in RELATIONS}
    assert outcomes(all_ahead) == (HOLDS, HOLDS)
    assert outcomes(all_ahead | {"amod": relation("amod", -SURE, ())}) == (FAILS, UNDECIDED)
    assert outcomes(all_ahead | {"amod": relation("amod", 0, ())}) == (UNDECIDED, UNDECIDED)
    others = {name: relation(name, SURE, ((0, 0),)) for name in RELATIONS}
    assert outcomes(others) == (HOLDS, FAILS)
    assert "amod (4, 10) does not" in measure.heads_of_clark(others).number
    assert judge("relations-random", {"det": 0, "obj": 0}).outcome == HOLDS
    assert judge("relations-random", {"det": 0, "obj": 2}).outcome == FAILS


def test_a_relation_that_a_fixed_distance_already_finds_is_left_out():
    behind = replace(relation("amod", -SURE, ()), baseline=resampled(0, 0.97))
    assert set(measure.ahead_of_distance({"det": relation("det", SURE, ((0, 0),)), "amod": behind})) == {"det"}
    assert set(measure.MEANINGS) == set(RELATIONS)


def test_of_many_sentences_some_are_drawn_and_the_papers_own_is_kept():
    kept = frame_links.extract(release.load_release("embedded"), frame_links.rules("paper"))[0]
    texts = [one.exemplar.text for one in kept]
    for seed in range(5):
        few = [one.exemplar.text for one in measure.drawn(kept, seed, 7)]
        assert len(few) == 7 and few == [text for text in texts if text in few]
        assert frame_links.EXAMPLE in few
    assert measure.drawn(kept, 1) == kept
    assert measure.drawn(kept, 1, 7) == measure.drawn(kept, 1, 7) != measure.drawn(kept, 2, 7)
