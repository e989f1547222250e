"""Annotation: words stand where they should among wordpieces, whatever the text, and every source is understood."""

import re

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import by_pattern

from bertology_utils import annotation
from bertology_utils.words import TOKEN_TYPES, AnnotatedInput, annotate_inputs, token_types


def annotate(tokenizer, *texts, max_length=64, **classes) -> AnnotatedInput:
    columns = {f"text{number}": [text] for number, text in enumerate(texts)}
    known = by_pattern(r"\S+", **classes)
    return annotate_inputs(columns, list(columns), tokenizer, max_length, known)[0]


def marked(annotated, kind):
    """The wordpieces of a type."""
    of_type = token_types(annotated)[TOKEN_TYPES.index(kind)]
    return [piece for piece, at in zip(annotated.pieces, of_type, strict=True) if at]


CHUNKS = st.sampled_from(
    "lamp Unbelievably don't x cafe\u0301 \u0301 🙂 👩\u200d🌾 日本語 река كتاب \x07 \x00 \u200b ... - naïve ﬁre İz ß 1,000 [UNK".split(
        " "
    )
    + ["\u00a0", "a" * 120]
)
GAPS = st.sampled_from([" ", "  ", "\t", "\n", "", "\u3000"])
TEXTS = st.lists(st.tuples(CHUNKS, GAPS), max_size=14).map(
    lambda parts: "".join(a + b for a, b in parts)
)


def touching(offsets, owners, field, start, end):
    """Wordpieces of one text that have a character of a stretch."""
    return [
        at
        for at, ((a, b), owner) in enumerate(zip(offsets, owners, strict=True))
        if owner == field and set(range(a, b)) & set(range(start, end))
    ]


@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.lists(TEXTS, min_size=1, max_size=2), st.integers(8, 40))
def test_words_stand_where_their_characters_do(tokenizer, texts, max_length):
    annotated = annotate(tokenizer, *texts, max_length=max_length)
    batch = [[text] for text in texts]
    encoded = tokenizer(*batch, truncation=True, max_length=max_length, return_offsets_mapping=True)
    assert annotated.ids == tuple(encoded["input_ids"][0])
    offsets, owners = encoded["offset_mapping"][0], encoded.sequence_ids(0)
    with_words = [(field, text) for field, text in enumerate(texts) if text.split()]
    assert len(annotated.sentences) == len(with_words)
    placed, lost = [], 0
    for (field, text), sentence in zip(with_words, annotated.sentences, strict=True):
        whole = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        for word, pieces in zip(sentence.words, sentence.pieces, strict=True):
            own = touching(offsets, owners, field, word.start, word.end)
            uncut = whole["offset_mapping"]
            all_of = touching(uncut, [field] * len(uncut), field, word.start, word.end)
            complete = len(all_of) == len(own)
            lost += not pieces
            placed += pieces
            nothing_cut = complete and len(annotated.ids) < max_length
            assert list(pieces) in ([own] if nothing_cut else [own, []])
            if not complete:
                assert pieces == ()
            elif nothing_cut and re.search("[a-z]", word.form, re.IGNORECASE):
                assert pieces, "nothing was cut, so the word must be there"
            if field == 1:
                assert all(at > annotated.separators[0] for at in pieces)
    assert len(placed) == len(set(placed)), "no wordpiece in two words"
    assert not set(placed) & set(annotated.cls + annotated.separators)
    assert annotated.lost == lost


def test_a_word_that_the_limit_splits_or_cuts_off_is_lost_as_a_whole_and_counted(tokenizer):
    annotated = annotate(tokenizer, "the boats never sank", max_length=4, sank="VERB")
    assert annotated.pieces == ("[CLS]", "the", "boats", "[SEP]")
    assert annotated.lost == 2 and annotated.negation == ()
    assert marked(annotated, "verbs") == marked(annotated, "negation") == []
    assert marked(annotated, "nouns") == ["the", "boats"]
    annotated = annotate(tokenizer, "harpists unbelievability", max_length=5)
    assert annotated.length == 5 and annotated.sentences[0].pieces[1] == () and annotated.lost == 1
    cut = annotate(tokenizer, "we don't", max_length=5)
    assert cut.pieces[2:4] == ("don", "'") and cut.negation == ()


ONE = "we don't|we don’t|we do n't|we don 't|We DON'T|we Do Not|not.|(nor)|ca n't|not-so-old|he said 'never' again|the ‘not’ is short"
NONE = "north|minor|knot|doesn't|cannot|nothings|do|I do not_this|Nora|"


@pytest.mark.parametrize(
    "text, count",
    [*((text, 1) for text in ONE.split("|")), *((text, 0) for text in NONE.split("|"))],
)
def test_negation_is_that_of_footnote_6(tokenizer, text, count):
    annotated = annotate(tokenizer, text)
    assert len(annotated.negation) == count and bool(marked(annotated, "negation")) == bool(count)


# --- spaCy ---


UPOS = {"sold": "VERB", ".": "PUNCT", "the": "DET"}


def tag(doc):
    for token in doc:
        token.pos_ = UPOS.get(token.lower_, "NOUN")
    return doc


def parse(doc):
    """All words hang on the first "sold": subjects before it, objects after it."""
    verb = next((token for token in doc if token.lower_ == "sold"), next(iter(doc), None))
    for token in doc:
        token.head = verb
        token.dep_ = "ROOT" if token.i == verb.i else "nsubj" if token.i < verb.i else "dobj"
    return doc


@pytest.fixture
def pipeline(tmp_path):
    """Makes a folder with a spaCy pipeline of such components."""

    def make(*components):
        nlp = spacy.blank("en", meta={"name": "toy", "version": "1.0.0"})
        for function in components:
            spacy.language.Language.component(f"test_{function.__name__}", func=function)
            nlp.add_pipe(f"test_{function.__name__}")
        nlp.to_disk(tmp_path / "toy")
        return f"spacy:{tmp_path / 'toy'}"

    return make


def test_a_pipeline_s_words_stand_at_their_characters(pipeline):
    annotate = annotation.load_annotator(pipeline(tag, parse))
    text = "Ravens  sold\tthe pearls."
    ((sentence,), nothing, again) = annotate([text, "", text])
    forms = ["Ravens", "sold", "the", "pearls", "."]
    assert [text[word.start : word.end] for word in sentence] == forms
    assert [word.form for word in sentence] == forms
    assert [word.head for word in sentence] == [1, -1, 1, 1, 1]
    assert [word.deprel for word in sentence] == ["nsubj", "ROOT", "dobj", "dobj", "dobj"]
    assert nothing == () and again == (sentence,)
    assert annotate([" \t "]) == [()]


@pytest.mark.parametrize(
    ("component", "named", "other"),
    [(tag, "a parser", "morphologizer"), (parse, "morphologizer, or a tagger", "a parser")],
)
def test_a_pipeline_that_lacks_a_component_is_refused(pipeline, component, named, other):
    with pytest.raises(ValueError, match=f"{named}.*it has: test_{component.__name__}") as caught:
        annotation.load_annotator(pipeline(component))
    assert other not in str(caught.value)


@pytest.mark.parametrize("place", ["spacy:xx_no_such_pipeline", "spacy:/nowhere/at/all"])
def test_an_unknown_pipeline_is_refused_with_the_command(place):
    name = place[6:].rsplit("/", 1)[-1]
    with pytest.raises(FileNotFoundError, match=f"python -m spacy download {name}"):
        annotation.load_annotator(place)


# --- CoNLL-U ---


def line(number, form, upos="NOUN", head=0, deprel="root", misc="_"):
    return f"{number}\t{form}\t{form}\t{upos}\t_\t_\t{head}\t{deprel}\t_\t{misc}\n"


def lines(text):
    """Several of them, with bars between."""
    return "".join(line(*part.split()) for part in text.split("|"))


CONLLU = (
    "# sent_id = 1\n# text = I don't fly im Nebel, yet.\n"
    + lines("1 I PRON 4 nsubj|2-3 don't|2 do AUX 4 aux|3 n't PART 4 advmod|4 fly VERB|5-6 im")
    + lines("5 in ADP 7 case|6 dem DET 7 det|7 Nebel NOUN 4 obl SpaceAfter=No|8 , PUNCT 4 punct")
    + lines("8.1 fly VERB _ _|9 yet ADV 4 advmod SpaceAfter=No|10 . PUNCT 4 punct SpaceAfter=No")
    + "\n# sent_id = 2\n"
    + line(1, "Stop")
    + "\n"
)


@pytest.fixture
def conllu(tmp_path):
    def write(content):
        (tmp_path / "bank.conllu").write_text(content, encoding="utf-8")
        return tmp_path / "bank.conllu"

    return write


def test_a_treebank_is_read(conllu):
    known = annotation.load_annotator(f"conllu:{conllu(CONLLU)}")
    text = "I don't fly im Nebel, yet."
    ((sentence,), (second,), nothing) = known([text, "Stop", ""])
    assert nothing == ()
    assert [word.form for word in second] == ["Stop"]
    forms = "I do n't fly in dem Nebel , yet .".split()
    assert [word.form for word in sentence] == forms
    written = [text[word.start : word.end] for word in sentence]
    assert written == "I do n't fly im im Nebel , yet .".split()
    assert [word.head for word in sentence] == [3, 3, 3, -1, 6, 6, 3, 3, 3, 3]
    assert sentence[2].deprel == "advmod" and sentence[0].upos == "PRON"
    told = "(?s)bank.conllu has no annotation of 'Go'.*annotation='spacy:NAME'"
    with pytest.raises(ValueError, match=told):
        known(["Go"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}\n', "is not a CoNLL-U file"),
        ("a\tb\tc\n1\t2\t3\n", ""),
        ("", "no sentence in it"),
        ("1\tcat\n\n", "lacks a column"),
        (CONLLU + "\nno such line\n", "is not a CoNLL-U file"),
    ],
)
def test_what_is_no_treebank_is_refused(conllu, content, message):
    with pytest.raises(ValueError, match=f"bank.conllu .*{message}"):
        annotation.read(conllu(content))


def test_a_folder_or_a_text_is_no_treebank_and_a_folders_files_are_named(conllu, tmp_path):
    path = conllu(CONLLU)
    for folder in (tmp_path, f"{tmp_path}/"):
        with pytest.raises(FileNotFoundError, match=f"a CoNLL-U file's path, such as {path.name}"):
            annotation.read(folder)
    for other in ("", path.read_text() * 50, tmp_path / "none"):
        told = "there is no file .*such as my.conllu"
        with pytest.raises(FileNotFoundError, match=told) as found:
            annotation.read(other)
        assert len(str(found.value)) < 700


def test_a_treebank_of_too_few_arcs_is_refused_with_their_numbers(conllu):
    def bank(sentences, deprel="nsubj", head=2):
        each = (line(1, f"a{at}", head=head, deprel=deprel) for at in range(sentences))
        return conllu("\n".join(first + line(2, "b") for first in each))

    assert len(annotation.sentences_of(bank(30), least=30).sentences) == 30
    assert len(annotation.sentences_of(bank(29)).sentences) == 29, "no arcs are wanted"
    few = "bank.conllu' has too few dependencies .nsubj 29, obj 0, amod 0, det 0.; wanted are 30 of"
    with pytest.raises(ValueError, match=few):
        annotation.sentences_of(bank(29), least=30)
    with pytest.raises(ValueError, match="nsubj 0, obj 0.* give a larger treebank, or leave"):
        annotation.sentences_of(bank(99, "nsubj:pass"), least=30)
    bare = "\n".join(f"1\ta{number}" + "\t_" * 8 + "\n" for number in range(40))
    few = "nsubj 0, obj 0, amod 0, det 0.; wanted are 30 .* .columns HEAD and DEPREL."
    with pytest.raises(ValueError, match=few):
        annotation.sentences_of(conllu(bare), least=30)


@pytest.mark.parametrize("tag", ["_", "NN", "noun", "."])
def test_other_parts_of_speech_than_universal_dependencies_are_refused(conllu, tag):
    def bank(others, count=100):
        tags = [tag] * others + ["NOUN"] * (count - others)
        rest = line(2, "is", "VERB") + line(3, "!", tag, 2, "punct")
        return conllu(
            "\n".join(line(1, f"a{at}", one, 2, "nsubj") + rest for at, one in enumerate(tags))
        )

    words = [one[2] for (one,) in annotation.read(bank(100)).sentences.values()]
    assert {word.upos for word in words} == {"PUNCT"}, "its relation says so"
    told = f"the column UPOS of bank.conllu has other .* {re.escape(repr(tag))} 100 times; have a"
    with pytest.raises(ValueError, match=f"treebank='.*': {told}"):
        annotation.sentences_of(bank(100), least=30)
    with pytest.raises(ValueError, match=f"annotation='conllu:.*': {told}"):
        annotation.load_annotator(f"conllu:{bank(100)}")
    assert annotation.sentences_of(bank(3), least=30), "one word in a hundred may be odd"


def test_gold_is_of_the_named_tasks():
    text = next(iter(annotation.read(annotation.EMBEDDED / "SST-2" / "dev.conllu.gz").texts))
    assert len(annotation.load_annotator("gold", "sst2")([text])[0]) == 1
    with pytest.raises(ValueError, match="gold has no annotation"):
        annotation.load_annotator("gold", ["mrpc"])([text])


FIRST, SECOND, THIRD = "1 old ADJ 2 amod", "2 men NOUN 3 nsubj", "3 go"


def tree(first=FIRST, second=SECOND, third=THIRD):
    """A sentence of three words, or with other lines in place of its own."""
    return lines("|".join([first, second, third]))


ODD, NO_HEAD = "IDs do not count 1, 2, 3 …", "HEAD is missing or no number"
FAULTS = {
    "two sentences in one block": (tree() + tree(), 4, ODD),
    "an ID left out": (tree(second="3 men NOUN 3 nsubj"), 2, ODD),
    "an ID that is no number": (tree("x old ADJ 2 amod"), 1, ODD),
    "IDs from 0": (tree("0 old ADJ 2 amod"), 1, ODD),
    "a written word behind its parts": (tree(third="3 go|2-3 mengo"), 4, ODD),
    "a written word of words that are not there": (line("1-4", "oldmengo") + tree(), 1, ODD),
    "written words inside each other": (tree(f"1-3 x|{FIRST}", f"2-3 x|{SECOND}"), 3, ODD),
    "a word that is its own head": (tree("1 old ADJ 1 amod"), 1, "HEAD is the word itself"),
    "a head outside": (tree(second="2 men NOUN 9 x"), 2, "HEAD names no word of the sentence"),
    "a head below 0": (tree(third="3 go NOUN -1"), 3, NO_HEAD),
    "one word without a head": (tree(second="2 men NOUN _"), 2, NO_HEAD),
    "no relation": (tree("1 old ADJ 2 _"), 1, "no DEPREL"),
    "forms that were taken out": (lines("1 _ NOUN 2 det|2 _"), 1, "no FORM"),
}


@pytest.mark.parametrize(("odd", "at", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_sentence_that_is_no_tree_is_left_out_and_counted(conllu, odd, at, fault):
    right = lines("1 She PRON 2 nsubj|2 sings") + "\n" + line(1, "Stop")
    bank = annotation.read(conllu(f"# text = odd\n{odd}\n{right}"))
    assert list(bank.sentences) == ["She sings", "Stop"]
    assert bank.faults == {fault: [at + 1]} and bank.left_out == {fault: 1}
    told = re.escape(f"bank.conllu has no sentence in it (1 left out, {fault}, first in line {at})")
    with pytest.raises(ValueError, match=told):
        annotation.read(conllu(odd))


def test_a_paragraph_of_which_a_sentence_is_left_out_is_none(conllu):
    good, odd = line(1, "Go"), line(1, "Stop", head=7)
    bank = annotation.read(conllu(f"# newpar\n{good}\n{odd}\n# newpar\n{good}\n{line(1, 'Run')}"))
    assert set(bank.texts) == {"Go", "Run", "Go Run"}
    known = annotation.load_annotator(f"conllu:{conllu(f'{good}{chr(10)}{odd}')}")
    told = "bank.conllu .1 left out, HEAD .*, first in line 3. has no annotation of 'Stop'"
    with pytest.raises(ValueError, match=told):
        known(["Stop"])


RIGHT = {
    "cycle": tree(second="2 men NOUN 1 nsubj"),
    "two roots": tree(second="2 men"),
    "line ends of Windows": tree().replace("\n", "\r\n"),
    "a byte-order mark": "\ufeff" + tree(),
    "spaces for tabs": tree().replace("\t", "  "),
    "empty nodes": line("0.1", "it", head="_") + tree() + line("3.1", "it", head="_"),
    "a written word of one part": line("1-1", "old") + tree(),
    "one more column": tree().replace("\n", "\t*\n"),
    "columns in a header": "# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC X\n"
    + tree().replace("\n", "\t*\n"),
    "another text in the comment": "# text = something else\n" + tree(),
}


@pytest.mark.parametrize("content", RIGHT.values(), ids=RIGHT)
def test_what_is_odd_but_a_sentence_is_read(conllu, content):
    bank = annotation.read(conllu(content))
    ((sentence,),) = bank.sentences.values()
    assert list(bank.sentences) == ["old men go"] and not bank.faults
    assert [(word.start, word.end) for word in sentence] == [(0, 3), (4, 7), (8, 10)]
    assert sentence[0].deprel == "amod"
