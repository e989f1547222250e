"""The generated corpora: annotation, balance, held-out words, shortcuts, bytes."""

import gzip
import shutil
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertology_utils.annotation import annotators
from bertology_utils.annotation.annotators import Sentence
from bertology_utils.corpora import GENERATED, GLUE
from bertology_utils.finetune import rows_digest
from bertology_utils.glue import TASKS, load_rows, schema
from bertology_utils.lab import Lab
from bertology_utils.settings import parse_data
from corpora_generator import digests, files, generate
from corpora_generator.lexicon import held_out_lemmas
from corpora_generator.realise import MODALS, NUMERALS
from corpora_generator.split import CORE
from corpora_generator.words import NAMES, NOUNS, SYMMETRIC

DIGESTS = {
    "mrpc": "065451eaa92e7d4dc8396dc5af43eb5818e054131603d5413a79a1d206c7a190",
    "stsb": "93b4faa9e53d77fed30783bf7cc306f41a617aead7922a7d4f69375f71cb4f58",
    "sst2": "67c97fd9efcc7e6f39b6dbde5e6c3aa92b8b585c4eacb58c746173809b2a9230",
    "rte": "0a1f4da0729c298bef6ce13b4fd634eb95a4c4e03d5c0ab8c37a392732c1c168",
    "qqp": "c61baba0b45918b7532f63eeb2e9f7bec548793171752fbb2046b303f127d2f0",
    "qnli": "32b2fda9aa45f8940460561b8dfad7f46ad8062f5fc886f26d49c337e4a3c236",
    "mnli": "37813274549a5d86449e9448da082d3560cb09140b6394a6a6d711d2116fe9b2",
}

NOMINAL = {"NOUN", "PROPN", "PRON"}
_CLASSES = {
    "nsubj nsubj:pass iobj obl obl:agent nmod": NOMINAL,
    "obj": NOMINAL | {"ADJ"},
    "obl:tmod": {"NOUN"},
    "nmod:npmod nmod:poss expl": {"PRON"},
    "det det:predet": {"DET"},
    "nummod": {"NUM"},
    "amod": {"ADJ"},
    "case": {"ADP"},
    "aux aux:pass cop": {"AUX"},
    "advmod": {"ADV", "PART"},
    "mark": {"SCONJ", "PART"},
    "cc cc:preconj": {"CCONJ"},
    "conj": {"NOUN", "PROPN", "VERB", "ADJ"},
    "punct": {"PUNCT"},
    "advcl ccomp": {"VERB", "ADJ"},
    "acl acl:relcl csubj": {"VERB"},
    "root": {"VERB", "ADJ", "PRON"},
}
RELATIONS = {
    relation: classes for relations, classes in _CLASSES.items() for relation in relations.split()
}
GENDER = {
    "he": "m",
    "him": "m",
    "his": "m",
    "himself": "m",
    "she": "f",
    "her": "f",
    "herself": "f",
    "it": "n",
    "its": "n",
}
SEX = {
    **dict.fromkeys("aunt niece grandmother".split(), "f"),
    **dict.fromkeys("uncle nephew grandfather stepfather".split(), "m"),
    **dict.fromkeys(NAMES["she"].split(), "f"),
    **dict.fromkeys(NAMES["he"].split(), "m"),
}
NEGATIVE = "no not never none neither nor nothing nobody nowhere hardly".split()
OPEN = {"NOUN", "PROPN", "VERB", "ADJ"}


def rows(task):
    return [row for split in generate(task).values() for row in split]


def sentences(task):
    return [
        sentence for row in rows(task) for items in row.sentences.values() for sentence in items
    ]


def check_spans(row):
    for name, items in row.sentences.items():
        text = row.text[name]
        assert text == " ".join(item.text for item in items)
        end = 0
        for word in (word for item in items for word in item.words):
            assert word.form and text[word.start : word.end] == word.form
            assert word.start >= end
            # Nothing but a blank stands between words.
            assert text[end : word.start] in ("", " ")
            end = word.end
        assert end == len(text)


def check_tree(sentence):
    heads = [word.head for word in sentence.words]
    assert 4 <= len(heads) <= 26
    assert heads.count(-1) == 1
    for start in range(len(heads)):
        steps, at = 0, start
        while at != -1:
            at, steps = heads[at], steps + 1
            assert steps <= len(heads)
    for word in sentence.words:
        assert word.upos in RELATIONS[word.deprel], (sentence.text, word)
        assert (word.head == -1) == (word.deprel == "root")


def check_arguments(sentence):
    """No predicate has two subjects, two direct objects or an object beside a passive subject."""
    for head in range(len(sentence.words)):
        below = [word.deprel for word in sentence.words if word.head == head]
        assert sum(relation.startswith("nsubj") for relation in below) <= 1, sentence.text
        assert below.count("obj") + below.count("nsubj:pass") <= 1, sentence.text


def is_plural(sentence, index):
    word = sentence.words[index]
    if word.upos == "PRON":
        if word.form.lower() in ("who", "that"):
            return None
        return word.form.lower() in ("they", "we", "you", "none")
    below = [w for w in sentence.words if w.head == index]
    joined = [w for w in below if w.deprel == "conj"]
    if joined:
        last = sentence.words.index(joined[-1])
        both = any(w.head == last and w.deprel == "cc" and w.form == "and" for w in sentence.words)
        return both or is_plural(sentence, last)
    if any(w.form.lower() in NUMERALS for w in below):
        return True
    return word.upos == "NOUN" and word.form.lower() != word.lemma


SINGULAR = {"is", "was", "has", "does", "isn't", "wasn't", "hasn't", "doesn't"}
PLURAL = {"are", "were", "have", "do", "aren't", "weren't", "haven't", "don't"}


def check_agreement(sentence):
    """Every subject with its finite verb, as far as the forms tell; returns how many told."""
    checked = 0
    for index, word in enumerate(sentence.words):
        if not word.deprel.startswith("nsubj") or word.form.lower() in (
            "sheep",
            "deer",
            "i",
            "fish",
        ):
            continue
        many = is_plural(sentence, index)
        verbs = [w for w in sentence.words if w.head == word.head and w.upos == "AUX"]
        verb = verbs[0] if verbs else sentence.words[word.head]
        form = verb.form.lower()
        if verb.lemma in MODALS:
            assert form.removesuffix("n't") in (*MODALS, "ca", "wo"), sentence.text
        if many is None:
            continue
        if form in SINGULAR | PLURAL:
            assert (form in PLURAL) == many, sentence.text
            checked += 1
        elif verb.upos == "VERB" and form in (verb.lemma, verb.lemma + "s"):
            # a form equal to the lemma may be a past ("cut"), so only -s is telling
            assert not (many and form != verb.lemma), sentence.text
            checked += 1
    return checked


def check_links(sentence):
    """Negation flags by form, antecedents by class and number."""
    for word in sentence.words:
        assert word.negation == (word.form.lower().endswith("n't") or word.form.lower() in NEGATIVE)
        third = word.upos == "PRON" and word.form.lower() in GENDER and word.deprel != "expl"
        assert not third or word.antecedent is not None, sentence.text
        if word.antecedent is not None:
            noun = sentence.words[word.antecedent]
            assert word.upos == "PRON" and noun.upos in ("NOUN", "PROPN"), sentence.text
            same_number = (word.lemma in ("they", "their")) == is_plural(sentence, word.antecedent)
            assert same_number or noun.form in ("sheep", "deer", "fish"), sentence.text
            if noun.lemma in SEX and word.form.lower() in GENDER:
                assert GENDER[word.form.lower()] == SEX[noun.lemma], sentence.text
    check_one_pronoun_each(sentence)


def check_one_pronoun_each(sentence):
    """Whoever is "she" is not "he" in the same sentence."""
    said = {}
    for word in sentence.words:
        if word.antecedent is not None and word.form.lower() in GENDER:
            gender = GENDER[word.form.lower()]
            assert said.setdefault(word.antecedent, gender) == gender, sentence.text


def check_row(row):
    check_spans(row)
    for items in row.sentences.values():
        for sentence in items:
            check_tree(sentence)
            check_arguments(sentence)
            check_agreement(sentence)
            check_links(sentence)


@pytest.mark.parametrize("task", TASKS)
def test_every_row_is_sound(task):
    for row in rows(task):
        check_row(row)
    # A question's subject mostly stands by an auxiliary that tells nothing ("did", "can").
    assert sum(map(check_agreement, sentences(task))) > (
        10 if task == "qnli" else 0.05 * len(sentences(task))
    )


@settings(max_examples=40, deadline=None, derandomize=True)
@given(task=st.sampled_from(list(TASKS)), seed=st.integers(0, 10**9))
def test_other_seeds_are_sound(task, seed):
    made = generate(task, seed=seed, train=60, validation=30)
    generate.cache_clear()
    for row in (row for split in made.values() for row in split):
        check_row(row)


def test_a_broken_annotation_is_caught():
    sentence = next(s for s in sentences("mrpc") if s.words[-1].head >= 0)
    for change in (
        {"head": len(sentence.words) - 1},
        {"head": -1},
        {"deprel": "nsubj"},
        {"upos": "NOUN"},
    ):
        words = (*sentence.words[:-1], replace(sentence.words[-1], **change))
        with pytest.raises(AssertionError):
            check_tree(Sentence(sentence.text, words))


def test_a_pronoun_beside_its_noun_is_an_emphatic_one_whatever_the_label():
    """Without such pronouns, no head's attention to nouns could be told from attention to neighbours (§4.5)."""
    for task in TASKS:
        pairs = [
            (s, at, word)
            for s in sentences(task)
            for at, word in enumerate(s.words)
            if word.antecedent is not None
        ]
        beside = [(s.words[at - 1], word) for s, at, word in pairs if at - 1 == word.antecedent]
        assert all(
            word.form in ("himself", "herself") and word.deprel == "nmod:npmod"
            for _, word in beside
        )
        assert len(beside) > 0.2 * len(pairs) if task == "qnli" else not beside
    insisting = [row.label for row in rows("qnli") if "self " in row.text["sentence"]]
    assert 0.4 < insisting.count(0) / len(insisting) < 0.6


@pytest.mark.parametrize("task", [name for name, task in TASKS.items() if not task.is_regression])
def test_balance(task):
    for split in generate(task).values():
        counts = [
            sum(row.label == label for row in split) for label in range(TASKS[task].num_labels)
        ]
        assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("task", TASKS)
def test_splits_are_disjoint_and_words_held_out(task):
    texts = [tuple(row.text.values()) for row in rows(task)]
    assert len(set(texts)) == len(texts)
    held = held_out_lemmas()
    made = generate(task)
    words = [
        w
        for row in made["train"]
        for items in row.sentences.values()
        for s in items
        for w in s.words
    ]
    assert not {w.lemma for w in words} & held
    forms = {w.form.lower() for w in words}
    assert not {lemma for lemma in held if lemma + "s" in forms}
    for row in made["validation"]:
        words = [w for items in row.sentences.values() for s in items for w in s.words]
        assert any(w.lemma in held and w.upos in OPEN and w.deprel in CORE for w in words)


def test_unknown_task():
    with pytest.raises(ValueError, match="mrpc, stsb, sst2, rte, qqp, qnli, mnli"):
        generate("cola")


def test_bytes_are_pinned():
    assert digests() == DIGESTS


# The embedded corpora's files: what the generator writes, and what the package's readers make of
# them.


# Cached models are keyed by these digests of the training rows.
TRAINING_ROWS = {
    "mrpc": "7d8edcb53c7197067ed4b95d419e0f34ff615b06805018974f1425619dd56e86",
    "stsb": "55361763c71d87eca6f63961ae918a45fa3b4355da3e6f159fbd8aeb49abd0fa",
    "sst2": "8758591629aae54b0522bda155e4d6964ef82fdf2fae35746218e8f80526b2f0",
    "qqp": "6d63b4de1692d2b3b48d37f846421905ee9fcc7a0e05046514e6407f8fa479e4",
    "rte": "eec744f511c38c0b0f7245d44f397926158748ca1997892da102dbbb12e69a73",
    "qnli": "55d2ed7217418ab80467f1e85e9057346887c04230475e6f651711af481354c2",
    "mnli": "60e5ca66f536e4ea4d3ff51d24248fdd79a3ebaa68828a1650e721b31f803de4",
}
OFFICIAL_HEADERS = {
    "MRPC/dev.tsv": "Quality,#1 ID,#2 ID,#1 String,#2 String",
    "STS-B/dev.tsv": "index,genre,filename,year,old_index,source1,source2,sentence1,sentence2,score",
    "SST-2/dev.tsv": "sentence,label",
    "QQP/dev.tsv": "id,qid1,qid2,question1,question2,is_duplicate",
    "RTE/dev.tsv": "index,sentence1,sentence2,label",
    "QNLI/dev.tsv": "index,question,sentence,label",
    "MNLI/train.tsv": "index,promptID,pairID,genre,sentence1_binary_parse,sentence2_binary_parse,sentence1_parse,"
    "sentence2_parse,sentence1,sentence2,label1,gold_label",
    "MNLI/dev_matched.tsv": "index,promptID,pairID,genre,sentence1_binary_parse,sentence2_binary_parse,sentence1_parse,"
    "sentence2_parse,sentence1,sentence2,label1,label2,label3,label4,label5,gold_label",
}


def test_the_files_are_what_the_generator_makes():
    """Byte for byte once unpacked: how small zlib packs them is its own affair."""
    made = files.contents()
    there = {
        path.relative_to(GLUE.parent).as_posix()
        for path in GLUE.parent.rglob("*")
        if path.suffix in (".gz", ".zip")
    }
    assert set(made) == there
    for name, content in made.items():
        assert files.unpacked(GLUE.parent / name) == content, (
            f"{name}: renew it by python -m corpora_generator"
        )


def test_writing_twice_gives_the_same_bytes(tmp_path):
    for folder in ("one", "two"):
        assert len(files.write(tmp_path / folder)) == 22
        assert files.write(tmp_path / folder) == []
    for path in (tmp_path / "one").rglob("*.*"):
        assert (
            path.read_bytes()
            == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()
        )
    (tmp_path / "one" / "glue" / "RTE" / "dev.tsv.gz").write_bytes(gzip.compress(b"other"))
    assert files.write(tmp_path / "one") == ["glue/RTE/dev.tsv.gz"]


def test_more_dev_rows_keep_the_others():
    few, many = generate("rte"), generate("rte", validation=330)
    assert few["train"] == many["train"]
    sentences = [{str(row.text) for row in rows["validation"]} for rows in (few, many)]
    assert sentences[0] < sentences[1]


def test_made_rows_in_a_folder_are_not_taken_for_glue_s(tmp_path):
    shutil.copytree(GLUE / "RTE", tmp_path / "RTE")
    lab = Lab("6_disabling_heads", data=f"folder:{tmp_path}", tasks="rte")
    assert lab.real_data
    (tmp_path / GENERATED).write_text("made")
    assert not lab.real_data and lab.titles["rte"] == "RTE-like"


@pytest.mark.parametrize("name", OFFICIAL_HEADERS)
def test_columns_are_glue_s_own(name):
    header = gzip.decompress((GLUE / f"{name}.gz").read_bytes()).decode().split("\n")[0]
    assert header.removeprefix("\ufeff").split("\t") == OFFICIAL_HEADERS[name].split(",")
    assert header.startswith("\ufeff") == name.startswith("MRPC")


@pytest.mark.parametrize("name", TASKS)
def test_the_readers_give_what_was_generated(name):
    task, made = TASKS[name], generate(name)
    for split, wanted in (("train", made["train"]), ("dev", made["validation"])):
        rows = load_rows(task, split, parse_data("embedded"))
        assert rows.features == schema(task) and rows["idx"] == list(range(len(wanted)))
        assert rows["label"] == (
            pytest.approx([row.label for row in wanted], abs=1e-6)
            if task.is_regression
            else [row.label for row in wanted]
        )
        for field in task.fields:
            assert rows[field] == [row.text[field] for row in wanted]
    gold = annotators.load_annotator("gold", [name])
    for row in made["validation"]:
        assert gold.annotate(list(row.text.values())) == list(row.sentences.values())


@pytest.mark.parametrize("name", TRAINING_ROWS)
def test_training_rows_are_those_of_cached_models(name):
    assert (
        rows_digest(load_rows(TASKS[name], "train", parse_data("embedded"))) == TRAINING_ROWS[name]
    )


# The generated pairs' labels: what an edit of the premise must not do to them.


SEEDS = (0, 1, 2)
ANIMALS = {
    "animal",
    *NOUNS["mammal"][1].replace("=", " ").replace("<", " ").split(),
    *NOUNS["bird"][1].replace("=", " ").split(),
}


def pairs(task, label=None, change=None):
    """(one text's words, the other's) of the rows of some seeds with that label and such a change."""
    for seed in SEEDS:
        for row in (row for split in generate(task, seed=seed).values() for row in split):
            if (label is None or row.label == label) and (
                change is None or change in row.change.split(", ")
            ):
                yield [[w for s in items for w in s.words] for items in row.sentences.values()]


def lemmas(words, *classes):
    return {word.lemma for word in words if not classes or word.upos in classes}


def denied(words):
    return any(word.negation for word in words)


@pytest.mark.parametrize("task, label", [("mnli", 0), ("rte", 0)])
def test_nobody_entails_no_more_than_it_says(task, label):
    found = list(pairs(task, label, "nobody"))
    for premise, hypothesis in found:
        assert "nobody" in lemmas(premise) and denied(hypothesis)
        assert (
            not lemmas(premise, "ADV") - lemmas(hypothesis, "ADV") - {"yesterday"} or task == "rte"
        )
    assert len(found) > 20


@pytest.mark.parametrize("task", ["mnli", "rte"])
def test_nobody_is_no_animal(task):
    for _, hypothesis in pairs(task, change="nobody"):
        assert lemmas([w for w in hypothesis if w.deprel.startswith("nsubj")]).isdisjoint(ANIMALS)


@pytest.mark.parametrize("task", ["mnli", "rte", "mrpc", "stsb"])
def test_no_new_thing_is_the_subject_of_a_denied_passive(task):
    for pair in pairs(task):
        for words in pair:
            if sum(word.head == -1 for word in words) > 1:
                continue  # heads count within a sentence
            for i, word in enumerate(words):
                below = [
                    w
                    for w in words
                    if w.head == word.head and w.deprel in ("aux", "aux:pass", "advmod")
                ]
                if word.deprel == "nsubj:pass" and denied(below):
                    inside = {w.form.lower() for w in words if w.head == i}
                    assert inside.isdisjoint({"a", "an", "many", *NUMERALS}), [
                        w.form for w in words
                    ]


def test_role_swaps_matter():
    found = list(pairs("mrpc", 0, "role swap"))
    for first, second in found:
        verbs = [
            lemmas([word for word in words if word.deprel == "root"]) for words in (first, second)
        ]
        assert verbs[0] != verbs[1] or verbs[0].isdisjoint(SYMMETRIC)
    assert len(found) > 10
