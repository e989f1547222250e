"""Heads that point along dependencies, against a plain reading of the definition; their test, and its correction."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from conftest import conllu, loaded
from plain import TASKS, made_input, measured, words
from scipy.stats import bootstrap

from bertology_utils import dependencies, head_dependencies
from bertology_utils.annotation import sentences_of
from bertology_utils.dependencies import (
    ARC_DIRECTIONS,
    NEAREST,
    between_words,
    choose_and_measure,
    found_arcs,
    nearest_words,
    points_at,
    word_maps,
)
from bertology_utils.words import PlacedSentence


def plain_pointer(maps, sentence, at):
    """For every layer and head the other word with the greatest weight, and its lead over the next.

    The weight is summed over the attended word's pieces and averaged over the attending word's.
    """
    _, own = sentence[at]
    weights = np.stack(
        [
            sum(maps[..., a, b] for a in own for b in pieces) / len(own) - 2.0 * (other == at)
            for other, (_, pieces) in enumerate(sentence)
        ]
    )
    second, first = np.sort(weights, axis=0)[-2:]
    return weights.argmax(axis=0), first - second


def found_in(sentences, maps):
    """Arcs of sentences, and which heads find them whose maps of wordpieces these are."""
    between = [
        between_words(torch.as_tensor(own), one.written_pieces)
        for one, own in zip(sentences, maps, strict=True)
    ]
    return found_arcs(sentences, list(map(points_at, between)))


@pytest.mark.parametrize("task", TASKS)
def test_hits_are_the_plain_ones(task):
    inputs, batches, model, examples = measured(task)
    both = [
        (sentence, plain, example)
        for one, example in zip(inputs, examples, strict=True)
        for sentence, plain in zip(one.sentences, example.sentences, strict=True)
    ]
    found = found_in([one for one, *_ in both], [example.maps for *_, example in both])
    plain = []  # (sentence, relation, offset, hits, leads) of every arc
    for number, (_, sentence, example) in enumerate(both):
        for at, (token, _) in enumerate(sentence):
            if token.head >= 0:
                ends = (token.head, at), (at, token.head)
                pairs = [(to, *plain_pointer(example.maps, sentence, own)) for to, own in ends]
                hits = [pointer == to for to, pointer, _ in pairs]
                leads = [lead for *_, lead in pairs]
                plain.append((number, token.deprel, token.head - at, hits, leads))
    numbers, relations, offsets, hits, leads = map(np.array, zip(*plain, strict=True))
    assert found.example.values.tolist() == numbers.tolist()
    assert found.relation.values.tolist() == relations.tolist()
    assert found.offset.values.tolist() == offsets.tolist()
    clear = leads.swapaxes(0, 1) > 1e-6
    assert clear.mean() > 0.99, "hardly any near ties"
    by_head = found.by_head.transpose("direction", "arc", "layer", "head").values
    assert (by_head == hits.swapaxes(0, 1))[clear].all()
    assert min(np.sum(relations == name) for name in ("nsubj", "det")) >= 40
    first = [one.sentences[0].written_pieces for one in inputs]
    for index, maps in word_maps(model, batches, first):
        own = between_words(torch.as_tensor(examples[index].maps), first[index])
        np.testing.assert_allclose(maps, own, atol=1e-5)


def of(found, relation):
    return found.isel(arc=found.relation.values == relation)


SENTENCE = words("The DET 1 det | gardener NOUN 2 nsubj | waters VERB -1 root | roses NOUN 2 dobj")


def pointing_at(targets, length):
    """A map in which the token n attends to the token targets[n], and the others to themselves."""
    maps = np.eye(length)
    for token, target in targets.items():
        maps[token] = np.eye(length)[target]
    return maps[None, None]


def fused(*order):
    """ "the man of-the house sings": the words of "of-the" in either order, as "du" is "de" and "le"."""
    parts = {"of": "of ADP {house} case", "the": "the DET {house} det"}
    text = (
        f"man NOUN 4 nsubj|{parts[order[0]]}|{parts[order[1]]}|house NOUN 0 nmod|sings VERB -1 root"
    )
    made = made_input(words(text.format(house=3)), [(1,), (2, 3), (2, 3), (4,), (5,)])
    (placed,) = made.sentences
    one = placed.words[1]
    both = [replace(word, start=one.start, end=one.end) for word in placed.words[1:3]]
    return PlacedSentence((placed.words[0], *both, *placed.words[3:]), placed.pieces)


def test_words_that_share_a_written_word_are_found_together_and_their_order_changes_nothing():
    at_it = pointing_at({1: 5, 2: 4, 3: 4, 4: 3, 5: 4}, 7)
    at_itself = at_it.copy()  # "of-the" attends most to itself, and after that to its noun
    at_itself[..., 2:4, :] = [0, 0.02, 0.4, 0.4, 0.15, 0.03, 0]
    for maps in (at_it, at_itself):
        one, other = (found_in([fused(*order)], [maps]) for order in (("of", "the"), ("the", "of")))
        for name in ("det", "case"):
            for found in (one, other):
                assert of(found, name).by_head.values.tolist() == [[[[True]]]] * 2, name
                assert of(found, name).offset == 1
        assert of(one, "nsubj").offset == 3, "written words are counted"
        assert of(one, "nmod").offset == -2


SHARED = {  # wordpieces of "do" and "n't", and the written words of "they do n't go"
    "one": ((2,), (2,), (0, 1, 1, 2)),
    "one, and others": ((2,), (2, 3, 4), (0, 1, 1, 2)),
    "the last of several": ((2, 3), (3, 4), (0, 1, 1, 2)),
    "none": ((2,), (3, 4), (0, 1, 2, 3)),
}


@pytest.mark.parametrize(("do", "not_", "written"), SHARED.values(), ids=SHARED)
def test_words_that_share_a_wordpiece_are_found_together(do, not_, written):
    text = "they PRON 3 nsubj|do AUX 3 aux|n't PART 3 advmod|go VERB -1 root"
    last = not_[-1] + 1
    made = made_input(words(text), [(1,), do, not_, (last,)])
    assert made.sentences[0].written == written
    assert len(made.sentences[0].written_pieces) == written[-1] + 1
    for own in sorted({*do, *not_}):  # whichever of their wordpieces it attends to
        maps = pointing_at({last: own} | dict.fromkeys({*do, *not_}, last), last + 2)
        found = found_in(made.sentences, [maps])
        aux, advmod = (
            of(found, name).by_head.values.ravel().tolist() for name in ("aux", "advmod")
        )
        if do[-1] == not_[0] - 1:
            assert (aux, advmod) == ([True, own in do], [True, own in not_])
        else:
            assert aux == advmod == [True, True]


def planted_arcs(sentences=150, per_sentence=2, seed=0, way=0):
    """Arcs with offsets of 1 (most of them) to 4, 2 × 3 heads that find one in four by chance, and rules that find none."""
    rng = np.random.default_rng(seed)
    examples = np.repeat(np.arange(sentences), per_sentence)
    offsets = rng.choice([1, 2, 3, 4], size=len(examples), p=[0.4, 0.2, 0.2, 0.2])
    values = {
        "example": ("arc", examples),
        "offset": ("arc", offsets),
        "by_head": (("arc", "layer", "head"), rng.random((2, len(examples), 2, 3))[way] < 0.25),
        "by_rule": (("arc", "rule"), np.zeros((len(examples), len(NEAREST)), dtype=bool)),
    }
    return xr.Dataset(values, {"direction": ARC_DIRECTIONS[way]})


@pytest.mark.parametrize("way", [0, 1])
def test_a_head_that_always_points_right_is_chosen_and_beats_the_distance(way):
    arcs = planted_arcs(way=way)
    arcs.by_head[:, 1, 2] = True
    row = choose_and_measure(arcs, seed=1)
    assert row["direction"] == ARC_DIRECTIONS[way]
    assert row["best fixed distance"] == (1, -1)[way]
    assert row["best head"] == "(2, 3)" and row["p"] < 0.01
    share = float((arcs.offset == 1).mean())
    assert row["arcs"] == 150, "one half of the examples"
    assert row["head: share of arcs"] == row["head: low"] == row["head: high"] == 1
    assert row["distance: share of arcs"] == pytest.approx(share, abs=0.1)
    assert row["distance: low"] < row["distance: share of arcs"] < row["distance: high"] < 0.6


def test_a_head_that_follows_the_best_offset_does_not_beat_it():
    arcs = planted_arcs()
    arcs.by_head[:, 0, 1] = arcs.offset == 1
    row = choose_and_measure(arcs, seed=1)
    assert row["best head"] == "(1, 2)" and row["p"] > 0.5
    assert row["head: share of arcs"] == row["distance: share of arcs"]


@pytest.mark.parametrize(("sentences", "beaten"), [(6, False), (80, True)])
def test_many_arcs_of_few_examples_prove_nothing(sentences, beaten):
    arcs = planted_arcs(sentences, 240 // sentences)
    arcs.by_head[:, 1, 1] = True
    row = choose_and_measure(arcs, seed=1)
    assert row["best head"] == "(2, 2)" and (row["p"] < 0.05) is beaten


def test_heads_that_point_at_random_are_no_better_on_other_sentences_and_beat_nothing():
    """The best of many on its own half is the luckiest; on the other half it is as good as any."""
    arcs = planted_arcs(sentences=120)
    hits = np.random.default_rng(1).random((240, 6, 12)) < 0.25
    lucky = arcs.assign(by_head=(("arc", "layer", "head"), hits))
    rows = [choose_and_measure(lucky, seed) for seed in range(20)]
    assert sum(row["p"] < 0.05 for row in rows) <= 3
    shares = [row["head: share of arcs"] for row in rows]
    assert np.mean(shares) < hits.mean(axis=0).max() - 0.03, "what all sentences would say"


def test_the_interval_is_over_examples_as_scipy_resamples_them():
    arcs = planted_arcs(sentences=60, per_sentence=3, seed=2)
    row, drawn = choose_and_measure(arcs, seed=1), np.random.default_rng(1).permutation(60)
    shares = (arcs.offset.values == 1).reshape(60, 3)[drawn >= 30].mean(axis=1)
    other = bootstrap((shares,), np.mean, method="percentile")
    mean, low, high = (row[f"distance: {name}"] for name in ("share of arcs", "low", "high"))
    assert row["best fixed distance"] == 1 and mean == pytest.approx(shares.mean())
    assert (low, high) == pytest.approx(tuple(other.confidence_interval), abs=0.02)


def test_a_rule_points_at_the_nearest_word_of_a_kind():
    (placed,) = made_input(
        words("she PRON 1 nsubj|saw VERB -1 root|Ines PROPN 1 obj|and CCONJ 4 cc|cats NOUN 2 conj")
    ).sentences
    points_at = dict(zip(NEAREST, nearest_words(placed).tolist(), strict=True))
    assert points_at["NOUN before"] == [-1, -1, -1, 2, 2], "a proper noun is a noun"
    assert points_at["NOUN after"] == [2, 2, 4, 4, -1]
    assert points_at["NOUN on either side"] == [2, 2, 4, 2, 2], "before, if both are as near"
    assert points_at["VERB on either side"] == [1, -1, 1, 1, 1], "not at the word itself"
    assert points_at["ADJ after"] == [-1] * 5


def test_arcs_say_which_rules_find_them():
    sentences = made_input(SENTENCE).sentences
    found = of(found_in(sentences, [np.eye(6)[None, None]]), "nsubj").by_rule
    to_head, to_dependent = ({*found.rule.values[one.values[:, 0]]} for one in found)
    assert to_head == {"VERB after", "VERB on either side"}
    assert to_dependent == {"NOUN before", "NOUN on either side"}, "before, if both are as near"


def test_a_head_that_follows_a_rule_beats_the_distance_and_not_the_rule():
    arcs, rule = planted_arcs(), NEAREST.index("VERB after")
    arcs.by_rule[:, rule] = arcs.by_head[:, 1, 2] = np.arange(300) % 10 > 0
    row = choose_and_measure(arcs, seed=1)
    assert row["best head"] == "(2, 3)" and row["p"] < 0.05 and row["best rule"] == "VERB after"
    assert row["rule: share of arcs"] == row["head: share of arcs"] and row["p, rule"] > 0.5
    arcs.by_rule[::3, rule] = False
    assert choose_and_measure(arcs, seed=1)["p, rule"] < 0.01


# One call for any encoder and treebank.


def treebank(folder, sentences, **tags):
    """A CoNLL-U file: determiner, noun, verb, noun, each sentence of other words."""
    arcs = [(2, "det", "DET"), (3, "nsubj", "NOUN"), (0, "root", "VERB"), (3, "obj", "NOUN")]
    arcs = [(head, relation, tags.get(tag, tag)) for head, relation, tag in arcs]
    blocks = [
        conllu(*((f"[{letter}]{number}", *arc) for letter, arc in zip("abcd", arcs, strict=True)))
        for number in range(sentences)
    ]
    path = folder / "my.conllu"
    path.write_text("".join(blocks), encoding="utf-8")
    return path


def test_heads_of_any_encoder_on_any_treebank_in_one_call(tiny_bert, tmp_path):
    model, tokenizer = loaded(tiny_bert)
    table = head_dependencies(model, tokenizer, treebank(tmp_path, 80))
    assert list(dict.fromkeys(table["relation"])) == ["det", "nsubj", "obj"]
    assert table.attrs["left out"] == {}
    assert table["direction"].tolist() == [*ARC_DIRECTIONS] * 3
    assert (table["arcs"] == 40).all(), "measured on one half"
    assert (table["distance: share of arcs"] == 1).all()
    assert table["best fixed distance"].tolist() == [1, -1, 1, -1, -1, 1]
    for part in ("head", "distance"):
        shares = table[[f"{part}: low", f"{part}: share of arcs", f"{part}: high"]].to_numpy()
        assert (np.diff(shares, axis=1) >= 0).all() and shares.min() >= 0 and shares.max() <= 1
    assert (table["p"] > 0.5).all(), "none beats a distance that is always right"
    assert (table["rule: share of arcs"] == 1).all() and (table["p, rule"] > 0.5).all()
    for only in (["nsubj"], "nsubj"):
        found = head_dependencies(model, tokenizer, treebank(tmp_path, 80), relations=only)
        assert found.equals(table[table["relation"] == "nsubj"].reset_index(drop=True))


@pytest.mark.parametrize("tags", [{"NOUN": "_"}, {"NOUN": "NN", "DET": "DT"}, {"VERB": "Verb"}])
def test_rules_are_not_testable_without_parts_of_speech_and_heads_are(
    tiny_bert, tmp_path, tags, capsys
):
    with_tags, without = (
        head_dependencies(*loaded(tiny_bert), treebank(tmp_path, 80, **of)) for of in ({}, tags)
    )
    rules = [name for name in with_tags if "rule" in name]
    assert len(rules) == 5 and without[rules].isna().all(axis=None)
    assert without.drop(columns=rules).equals(with_tags.drop(columns=rules))
    assert "rules" not in with_tags.attrs
    assert without.attrs["rules"].startswith("not testable: the column UPOS of my.conllu has")
    assert f"rules are {without.attrs['rules']}" in capsys.readouterr().err


def test_arcs_inside_a_written_word_are_counted_as_left_out(tiny_bert, tmp_path):
    """ "al" stands for "a" and "el", and "el" depends on "a"."""
    blocks = []
    for number in range(64):
        words = (f"a{number}", 2, "nsubj"), (f"b{number}", 0, "root"), ("a", 2, "x"), ("el", 3, "y")
        lines = conllu(*words).splitlines(keepends=True)
        lines.insert(2, "3-4\tal" + "\t_" * 8 + "\n")
        blocks.append("".join(lines))
    path = tmp_path / "al.conllu"
    path.write_text("".join(blocks), encoding="utf-8")
    table = head_dependencies(*loaded(tiny_bert), path)
    assert table.attrs["left out"] == {"arcs between words that share a wordpiece": 64}
    assert set(table["relation"]) == {"nsubj", "x"}


def test_sentences_that_are_too_long_are_left_out_before_relations_are_counted(
    tiny_bert, tmp_path, monkeypatch
):
    model, tokenizer = loaded(tiny_bert)
    path = tmp_path / "long.conllu"
    blocks = [long_sentence(f"a{number}") for number in range(64)]
    blocks += [conllu(("b", 2, "nsubj"), ("sings", 0, "root"))]
    path.write_text("".join(blocks), encoding="utf-8")
    monkeypatch.setattr(dependencies, "attention_maps", lambda *_: pytest.fail("a pass was begun"))
    told, long = "long.conllu is too small", "64 left out, longer than 128 wordpieces"
    with pytest.raises(ValueError, match=f"{told}: no relation is in 60 .* .{long}"):
        head_dependencies(model, tokenizer, path)
    blocks += [conllu(("x", 1, "nsubj"), ("sings", 0, "root"))]
    path.write_text("".join(blocks), encoding="utf-8")
    faulty = "1 left out, HEAD is the word itself, first in line [0-9]+"
    with pytest.raises(ValueError, match=f"{told}: left are nsubj 1, obj 0, .*{faulty}; {long}"):
        dependencies.inputs_of(sentences_of(path, least=30), tokenizer, least=30)


def test_a_treebank_that_says_too_little_is_refused_in_words(tiny_bert, tmp_path):
    model, tokenizer = loaded(tiny_bert)
    with pytest.raises(
        ValueError, match="my.conllu is too small: no relation is in 60 of its sentences"
    ):
        head_dependencies(model, tokenizer, treebank(tmp_path, 20))
    told = "'amod' is in 0 sentences of my.conllu, and 60 are wanted; choose of: det, nsubj, obj"
    with pytest.raises(ValueError, match=told):
        head_dependencies(model, tokenizer, treebank(tmp_path, 80), relations=["amod"])


# A treebank of one's own for notebook 8.


def long_sentence(first):
    """A sentence of more than 128 wordpieces that begins so."""
    return conllu((first, 0, "root"), *((f"{noun}s", 1, "det") for noun in NOUNS * 20))


NOUNS = "cat dog man king boy girl horse bird fish queen".split()
