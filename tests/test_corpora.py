"""The generated corpora: annotation, balance, held-out words, shortcuts, bytes."""

import hashlib
import json
from dataclasses import asdict

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from bertology_utils.corpora import generate
from bertology_utils.corpora.lexicon import held_out_lemmas
from bertology_utils.corpora.realise import MODALS, NUMERALS
from bertology_utils.corpora.split import CORE
from bertology_utils.corpora.words import NOUNS

FIELDS = {
    "mrpc": ("sentence1", "sentence2"), "stsb": ("sentence1", "sentence2"), "sst2": ("sentence",),
    "rte": ("sentence1", "sentence2"), "qqp": ("question1", "question2"), "qnli": ("question", "sentence"),
    "mnli": ("premise", "hypothesis"),
}
CLASSES = {"mrpc": 2, "sst2": 2, "rte": 2, "qqp": 2, "qnli": 2, "mnli": 3}
DIGEST = "d93bd398c955257e815cae25bb755b24baf0b121374c142da0cf6d1e4c3cef6c"

RELATIONS = {
    "nsubj": {"NOUN", "PROPN", "PRON"}, "nsubj:pass": {"NOUN", "PROPN", "PRON"}, "obj": {"NOUN", "PROPN", "PRON"},
    "iobj": {"NOUN", "PROPN", "PRON"}, "obl": {"NOUN", "PROPN", "PRON"}, "obl:agent": {"NOUN", "PROPN", "PRON"},
    "obl:tmod": {"NOUN"}, "nmod": {"NOUN", "PROPN", "PRON"}, "nmod:poss": {"PRON"}, "det": {"DET"}, "nummod": {"NUM"},
    "amod": {"ADJ"}, "case": {"ADP"}, "aux": {"AUX"}, "aux:pass": {"AUX"}, "cop": {"AUX"}, "advmod": {"ADV", "PART"},
    "mark": {"SCONJ", "PART"}, "cc": {"CCONJ"}, "cc:preconj": {"CCONJ"}, "conj": {"NOUN", "PROPN", "VERB", "ADJ"},
    "punct": {"PUNCT"}, "advcl": {"VERB", "ADJ"}, "ccomp": {"VERB", "ADJ"}, "acl": {"VERB"}, "csubj": {"VERB"},
    "acl:relcl": {"VERB"}, "expl": {"PRON"}, "root": {"VERB", "ADJ", "PRON"},
}
OPEN = {"NOUN", "PROPN", "VERB", "ADJ"}


def rows(task):
    return [row for split in generate(task).values() for row in split]


def sentences(task):
    return [sentence for row in rows(task) for items in row.sentences.values() for sentence in items]


@pytest.mark.parametrize("task", FIELDS)
def test_shape_and_sizes(task):
    made = generate(task)
    assert {split: len(items) for split, items in made.items()} == {"train": 960, "validation": 320}
    for row in rows(task):
        assert tuple(row.text) == tuple(row.sentences) == FIELDS[task]
        assert bool(row.change) == (len(FIELDS[task]) == 2)


@pytest.mark.parametrize("task", FIELDS)
def test_spans_match_the_field(task):
    for row in rows(task):
        for name, items in row.sentences.items():
            text = row.text[name]
            assert text == " ".join(item.text for item in items)
            ends = 0
            for word in (word for item in items for word in item.words):
                assert word.form and text[word.start:word.end] == word.form
                assert word.start >= ends
                ends = word.end
            assert ends == len(text)


@pytest.mark.parametrize("task", FIELDS)
def test_trees(task):
    for sentence in sentences(task):
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


def is_plural(sentence, index):
    word = sentence.words[index]
    if word.upos == "PRON":
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


def finite(sentence, head):
    verbs = [w for w in sentence.words if w.head == head and w.upos == "AUX"]
    return verbs[0] if verbs else sentence.words[head]


@pytest.mark.parametrize("task", FIELDS)
def test_subjects_agree(task):
    checked = 0
    singular = {"is", "was", "has", "does", "isn't", "wasn't", "hasn't", "doesn't"}
    plural = {"are", "were", "have", "do", "aren't", "weren't", "haven't", "don't"}
    for sentence in sentences(task):
        for index, word in enumerate(sentence.words):
            if not word.deprel.startswith("nsubj") or word.form.lower() in ("sheep", "deer", "i", "fish"):
                continue
            verb, form = finite(sentence, word.head), None
            form = verb.form.lower()
            many = is_plural(sentence, index)
            if form in singular | plural:
                assert (form in plural) == many, sentence.text
                checked += 1
            elif verb.upos == "VERB" and form in (verb.lemma, verb.lemma + "s"):
                # a form equal to the lemma may be a past ("cut"), so only -s is telling
                assert not (many and form != verb.lemma), sentence.text
                checked += 1
            if verb.lemma in MODALS:
                assert form.removesuffix("n't") in (*MODALS, "ca", "wo"), sentence.text
    assert checked > 5


@pytest.mark.parametrize("task", FIELDS)
def test_pronouns_and_negation(task):
    for sentence in sentences(task):
        for word in sentence.words:
            if word.antecedent is not None:
                assert word.upos == "PRON"
                assert sentence.words[word.antecedent].upos in ("NOUN", "PROPN")
            assert word.negation == (word.form.lower().endswith("n't") or word.form.lower() in (
                "no not never none neither nor nothing nobody nowhere hardly".split()))


def test_negations_and_pronouns_occur():
    seen = {word.form.lower() for task in FIELDS for s in sentences(task) for word in s.words if word.negation}
    wanted = ("neither nor not never none don't won't didn't hadn't haven't can't isn't wasn't shouldn't couldn't "
              "nothing nowhere nobody no")
    assert not set(wanted.split()) - seen
    for task in ("rte", "mnli"):
        assert sum(word.antecedent is not None for s in sentences(task) for word in s.words) > 40


@pytest.mark.parametrize("task", CLASSES)
def test_balance(task):
    for split in generate(task).values():
        counts = [sum(row.label == label for row in split) for label in range(CLASSES[task])]
        assert max(counts) - min(counts) <= 1


def test_similarity_spreads():
    for split in generate("stsb").values():
        counts, _ = np.histogram([row.label for row in split], bins=5, range=(0, 5))
        assert counts.min() > 0.1 * len(split)


@pytest.mark.parametrize("task", FIELDS)
def test_splits_are_disjoint_and_words_held_out(task):
    texts = [tuple(row.text.values()) for row in rows(task)]
    assert len(set(texts)) == len(texts)
    held = held_out_lemmas()
    made = generate(task)
    shown = {w.lemma for row in made["train"] for items in row.sentences.values() for s in items for w in s.words}
    assert not shown & held
    assert not {lemma for lemma in held if lemma + "s" in shown}
    for row in made["validation"]:
        words = [w for items in row.sentences.values() for s in items for w in s.words]
        assert any(w.lemma in held and w.upos in OPEN and w.deprel in CORE for w in words)


def features(task, which):
    made = generate(task)
    texts = {split: [" # ".join(list(row.text.values())[which]) for row in made[split]] for split in made}
    counter = CountVectorizer(binary=True, ngram_range=(1, 1), token_pattern=r"[\w']+")
    train = counter.fit_transform(texts["train"])
    labels = [[row.label for row in made[split]] for split in ("train", "validation")]
    return train, counter.transform(texts["validation"]), *labels


@pytest.mark.parametrize("task", [task for task in CLASSES if task != "sst2"])
def test_second_field_alone_tells_nothing(task):
    x, dev, y, gold = features(task, slice(1, 2))
    score = LogisticRegression(max_iter=300).fit(x, y).score(dev, gold)
    assert score < 1 / CLASSES[task] + 0.05


def test_second_sentence_alone_tells_no_similarity():
    x, dev, y, gold = features("stsb", slice(1, 2))
    assert abs(np.corrcoef(Ridge(alpha=3.0).fit(x, y).predict(dev), gold)[0, 1]) < 0.2


@pytest.mark.parametrize("task", ["mrpc", "rte", "mnli"])
def test_second_field_has_negation_numerals_and_hypernyms_alike(task):
    hypernyms = {hypernym.split()[-1] for hypernym, _ in NOUNS.values() if hypernym}
    for wanted in (lambda w: w.negation, lambda w: w.upos == "NUM", lambda w: w.lemma in hypernyms):
        rates = []
        for label in range(CLASSES[task]):
            chosen = [row for row in rows(task) if row.label == label]
            seen = [any(wanted(w) for s in row.sentences[FIELDS[task][1]] for w in s.words) for row in chosen]
            rates.append(sum(seen) / len(seen))
        assert max(rates) - min(rates) < 0.08, rates


def test_unknown_task():
    with pytest.raises(ValueError, match="mrpc, stsb, sst2, rte, qqp, qnli, mnli"):
        generate("cola")


def test_smaller_draws_and_seeds():
    small = generate("rte", seed=3, train=12, validation=6)
    assert [len(split) for split in small.values()] == [12, 6]
    assert small["train"] != generate("rte", seed=4, train=12, validation=6)["train"]


def test_bytes_are_pinned():
    digest = hashlib.sha256()
    for task in FIELDS:
        for split, items in generate(task).items():
            digest.update(json.dumps([task, split, [asdict(row) for row in items]]).encode())
    assert digest.hexdigest() == DIGEST
