"""The generated corpora: annotation, balance, held-out words, shortcuts, bytes."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertology_utils.annotation.annotators import Sentence
from corpora_generator import digests, generate
from corpora_generator.lexicon import held_out_lemmas
from corpora_generator.realise import MODALS, NUMERALS
from corpora_generator.split import CORE
from corpora_generator.words import NAMES

FIELDS = {
    "mrpc": ("sentence1", "sentence2"),
    "stsb": ("sentence1", "sentence2"),
    "sst2": ("sentence",),
    "rte": ("sentence1", "sentence2"),
    "qqp": ("question1", "question2"),
    "qnli": ("question", "sentence"),
    "mnli": ("premise", "hypothesis"),
}
CLASSES = {"mrpc": 2, "sst2": 2, "rte": 2, "qqp": 2, "qnli": 2, "mnli": 3}
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
RELATIONS = {relation: classes for relations, classes in _CLASSES.items() for relation in relations.split()}
GENDER = {"he": "m", "him": "m", "his": "m", "himself": "m", "she": "f", "her": "f", "herself": "f", "it": "n", "its": "n"}
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
    return [sentence for row in rows(task) for items in row.sentences.values() for sentence in items]


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
        if not word.deprel.startswith("nsubj") or word.form.lower() in ("sheep", "deer", "i", "fish"):
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


@pytest.mark.parametrize("task", FIELDS)
def test_every_row_is_sound(task):
    for row in rows(task):
        check_row(row)
    # A question's subject mostly stands by an auxiliary that tells nothing ("did", "can").
    assert sum(map(check_agreement, sentences(task))) > (10 if task == "qnli" else 0.05 * len(sentences(task)))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(task=st.sampled_from(list(FIELDS)), seed=st.integers(0, 10**9))
def test_other_seeds_are_sound(task, seed):
    made = generate(task, seed=seed, train=60, validation=30)
    generate.cache_clear()
    for row in (row for split in made.values() for row in split):
        check_row(row)


def test_a_broken_annotation_is_caught():
    sentence = next(s for s in sentences("mrpc") if s.words[-1].head >= 0)
    for change in ({"head": len(sentence.words) - 1}, {"head": -1}, {"deprel": "nsubj"}, {"upos": "NOUN"}):
        words = (*sentence.words[:-1], replace(sentence.words[-1], **change))
        with pytest.raises(AssertionError):
            check_tree(Sentence(sentence.text, words))


def test_a_pronoun_beside_its_noun_is_an_emphatic_one_whatever_the_label():
    """Without such pronouns, no head's attention to nouns could be told from attention to neighbours (§4.5)."""
    for task in FIELDS:
        pairs = [(s, at, word) for s in sentences(task) for at, word in enumerate(s.words) if word.antecedent is not None]
        beside = [(s.words[at - 1], word) for s, at, word in pairs if at - 1 == word.antecedent]
        assert all(word.form in ("himself", "herself") and word.deprel == "nmod:npmod" for _, word in beside)
        assert len(beside) > 0.2 * len(pairs) if task == "qnli" else not beside
    insisting = [row.label for row in rows("qnli") if "self " in row.text["sentence"]]
    assert 0.4 < insisting.count(0) / len(insisting) < 0.6


@pytest.mark.parametrize("task", CLASSES)
def test_balance(task):
    for split in generate(task).values():
        counts = [sum(row.label == label for row in split) for label in range(CLASSES[task])]
        assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("task", FIELDS)
def test_splits_are_disjoint_and_words_held_out(task):
    texts = [tuple(row.text.values()) for row in rows(task)]
    assert len(set(texts)) == len(texts)
    held = held_out_lemmas()
    made = generate(task)
    words = [w for row in made["train"] for items in row.sentences.values() for s in items for w in s.words]
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
