"""The generated pairs' labels: what an edit of the premise must not do to them."""

import pytest

from corpora_generator import generate
from corpora_generator.realise import NUMERALS
from corpora_generator.words import NOUNS, SYMMETRIC

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
            if (label is None or row.label == label) and (change is None or change in row.change.split(", ")):
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
        assert not lemmas(premise, "ADV") - lemmas(hypothesis, "ADV") - {"yesterday"} or task == "rte"
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
                below = [w for w in words if w.head == word.head and w.deprel in ("aux", "aux:pass", "advmod")]
                if word.deprel == "nsubj:pass" and denied(below):
                    inside = {w.form.lower() for w in words if w.head == i}
                    assert inside.isdisjoint({"a", "an", "many", *NUMERALS}), [w.form for w in words]


def test_role_swaps_matter():
    found = list(pairs("mrpc", 0, "role swap"))
    for first, second in found:
        verbs = [lemmas([word for word in words if word.deprel == "root"]) for words in (first, second)]
        assert verbs[0] != verbs[1] or verbs[0].isdisjoint(SYMMETRIC)
    assert len(found) > 10
