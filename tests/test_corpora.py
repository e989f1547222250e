"""The synthetic corpora: bytes, annotation, balance, held-out words, labels."""

from collections import Counter

import pytest
from conftest import ROOT

from bertology_utils.annotation.annotators import load_annotator
from bertology_utils.corpora import GLUE, TASKS
from bertology_utils.glue import get_task, load_rows, schema
from bertology_utils.settings import parse_data
from corpora_generator import MAKERS, files, generate, mini_framenet
from corpora_generator.lexicon import HELD_OUT
from corpora_generator.rows import CORE

THIRD_PERSON = {**dict.fromkeys(("he", "him", "his"), "he"), "she": "she", "her": "she"}
THIRD_PERSON |= {"it": "it", "its": "it"}
NEGATIVE = "no not never none neither nor nothing nowhere hardly".split()


def rows(task):
    return [row for split in generate(task).values() for row in split]


def sentences(task):
    return [sentence for row in rows(task) for (sentence,) in row.sentences.values()]


def test_the_committed_files_are_what_the_generator_makes_byte_for_byte():
    made = files.contents()
    paths = [path for path in GLUE.parent.rglob("*") if path.suffix in (".gz", ".zip")]
    assert {path.relative_to(GLUE.parent).as_posix() for path in paths} == {*made}
    for name, content in made.items():
        assert files.unpacked(GLUE.parent / name) == content, f"{name}: python -m corpora_generator"


@pytest.mark.parametrize("task", TASKS)
def test_every_sentence_is_a_tree_whose_words_spell_its_text(task):
    for sentence in sentences(task):
        heads = [word.head for word in sentence.words]
        assert heads.count(-1) == 1, sentence.text
        end = 0
        for at, word in enumerate(sentence.words):
            assert sentence.text[word.start : word.end] == word.form, sentence.text
            assert sentence.text[end : word.start] == ("" if end == word.start else " ")
            assert (word.head == -1) == (word.deprel == "root"), sentence.text
            end, steps = word.end, 0
            while at != -1:
                at, steps = heads[at], steps + 1
                assert steps <= len(heads), sentence.text
        assert end == len(sentence.text)


@pytest.mark.parametrize("task", TASKS)
def test_negations_and_antecedents_are_marked(task):
    """Pronouns of the third person refer to nouns, and nobody is both "she" and "he"."""
    for sentence in sentences(task):
        said = {}
        for word in sentence.words:
            form = word.form.lower()
            assert word.negation == (form.endswith("n't") or form in NEGATIVE), sentence.text
            assert (word.antecedent is not None) >= (form in THIRD_PERSON), sentence.text
            if word.antecedent is not None:
                noun = sentence.words[word.antecedent]
                assert noun.upos in ("NOUN", "PROPN"), sentence.text
                gender = THIRD_PERSON.get(form, "they")
                assert said.setdefault(word.antecedent, gender) == gender, sentence.text


@pytest.mark.parametrize("task", TASKS)
def test_labels_are_balanced_and_dev_rows_turn_on_words_that_training_never_shows(task):
    made = generate(task)
    texts = [tuple(row.text.values()) for row in rows(task)]
    assert len({*texts}) == len(texts)
    for split, some in made.items():
        if not get_task(task).is_regression:
            assert {*Counter(row.label for row in some).values()} == {len(some) // 2}
        for row in some:
            words = [word for (sentence,) in row.sentences.values() for word in sentence.words]
            held_out = {word.deprel for word in words if word.lemma in HELD_OUT}
            assert held_out & CORE if split == "validation" else not held_out


@pytest.mark.parametrize("name", TASKS)
def test_the_readers_give_what_was_generated(name):
    task, made, gold = get_task(name), generate(name), load_annotator("gold", [name])
    for split, wanted in (("train", made["train"]), ("dev", made["validation"])):
        read = load_rows(task, split, parse_data("embedded"))
        assert read.features == schema(task) and read["idx"] == list(range(len(wanted)))
        assert read["label"] == pytest.approx([row.label for row in wanted], abs=1e-6)
        for field in task.fields:
            assert read[field] == [row.text[field] for row in wanted]
    assert gold.antecedents
    for row in made["validation"]:
        assert gold.annotate(list(row.text.values())) == list(row.sentences.values())


def test_the_data_card_has_the_corpora_s_counts():
    card = (ROOT / "corpora_generator" / "README.md").read_text(encoding="utf-8")
    assert {*MAKERS} == {*TASKS} and f"these {len(HELD_OUT)} lemmas" in card
    for task in TASKS:
        made, every = generate(task), sentences(task)
        sizes = [len(made["train"]), len(made["validation"])]
        lengths = sorted(sum(word.upos != "PUNCT" for word in s.words) for s in every)
        lengths = f"{lengths[0]}, {lengths[len(lengths) // 2]}, {lengths[-1]}"
        assert f"| {sizes[0]} | {sizes[1]} | {lengths} |\n" in card, task
        kinds = (
            lambda word: word.negation,
            lambda word: word.antecedent is not None,
            lambda word: word.deprel == "acl:relcl",
            lambda word: word.deprel == "nsubj:pass",
            lambda word: word.deprel in ("advcl", "conj") and word.upos != "NOUN",
        )
        shares = [sum(any(map(kind, s.words)) for s in every) / len(every) for kind in kinds]
        row = f"| `{task}` | {' | '.join(f'{share:.0%}' for share in shares)} |\n"
        assert row in card, row


# The mini-FrameNet; test_framenet.py reads it, and filters it as intended.


def test_the_data_card_has_the_mini_framenets_counts():
    frames = mini_framenet.frames()
    units = [unit for frame in frames for unit in frame.units]
    tags = Counter(exemplar.expected for unit in units for exemplar in unit.exemplars)
    card = (ROOT / "corpora_generator" / "README.md").read_text(encoding="utf-8")
    sizes = f"{tags.total()} sentences of {len(units)} lexical units in {len(frames)} frames"
    assert f"{sizes}; {tags['pass']} of them pass" in card
    wide = f"{tags['wide']} have core elements that are too wide"
    assert f"{tags['long']} are too long, {wide}, {tags['near']} have core elements too" in card


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pass [Buyer Ann] *buys* [Shop here] .", "line 4: Commerce_buy lists no element 'Shop'"),
        ("pass [Buyer Ann] buys .", "line 4: a sentence needs one target"),
        ("good [Buyer Ann] *buys* .", "line 4: 'good' is none of frame, core, coreset"),
    ],
)
def test_a_line_that_breaks_the_notation_is_named(tmp_path, monkeypatch, line, message):
    source = tmp_path / "frames.txt"
    source.write_text(f"frame Commerce_buy\ncore Buyer Goods\nlu buy.v\n{line}\n")
    monkeypatch.setattr(mini_framenet, "SOURCE", source)
    with pytest.raises(ValueError, match=message):
        mini_framenet.frames.__wrapped__()
