"""Annotation: words stand where they should among wordpieces, whatever the text, and every source is understood."""

import gzip
import re

import pytest
from conftest import SHARED, needs_shared
from hypothesis import given, settings
from hypothesis import strategies as st

from bertology_utils.annotation import annotators, treebank
from bertology_utils.annotation.base import Sentence, Word
from bertology_utils.annotation.inputs import AnnotatedInput, PlacedSentence, annotate_inputs
from bertology_utils.annotation.sources import parse_annotation
from bertology_utils.annotation.token_types import TOKEN_TYPES, token_types
from bertology_utils.encoders.embedded import embedded_folder
from bertology_utils.suite import Experiment
from bertology_utils.suite.parameters import resolve
from corpora_generator import generate


@pytest.fixture(scope="module")
def tokenizer():
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(embedded_folder())


class ByWhiteSpace:
    """Every text is one sentence of words between spaces; all are nouns unless said otherwise."""

    name, antecedents = "white space", False

    def __init__(self, **classes):
        self.classes = classes

    def annotate(self, texts):
        return [self.sentence(text) for text in texts]

    def sentence(self, text):
        found = re.finditer(r"\S+", text)
        words = tuple(
            Word(token[0], token[0], token.start(), token.end(), self.classes.get(token[0], "NOUN"), -1, "dep")
            for token in found
        )
        return (Sentence(text, words),) if words else ()


def annotate(tokenizer, *texts, max_length=64, **classes) -> AnnotatedInput:
    columns = {f"text{number}": [text] for number, text in enumerate(texts)}
    return annotate_inputs(columns, list(columns), tokenizer, max_length, ByWhiteSpace(**classes))[0]


def marked(annotated, kind, protocol="paper"):
    """The wordpieces of a type."""
    of_type = token_types(annotated, protocol)[TOKEN_TYPES.index(kind)]
    return [piece for piece, at in zip(annotated.pieces, of_type, strict=True) if at]


CHUNKS = st.sampled_from(
    [
        "lamp",
        "Unbelievably",
        "don't",
        "x",
        "cafe\u0301",
        "\u0301",
        "🙂",
        "👩\u200d🌾",
        "日本語",
        "река",
        "كتاب",
        "\x07",
        "\x00",
        "\u200b",
        "...",
        "-",
        "naïve",
        "ﬁre",
        "İz",
        "ß",
        "\u00a0",
        "1,000",
        "[UNK",
        "a" * 120,
    ]
)
GAPS = st.sampled_from([" ", "  ", "\t", "\n", "", "\u3000"])
TEXTS = st.lists(st.tuples(CHUNKS, GAPS), max_size=14).map(lambda parts: "".join(a + b for a, b in parts))


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
        whole = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        for word, pieces in zip(sentence.words, sentence.pieces, strict=True):
            wanted = [
                at
                for at, ((a, b), owner) in enumerate(zip(offsets, owners, strict=True))
                if owner == field and set(range(a, b)) & set(range(word.start, word.end))
            ]
            complete = len([1 for a, b in whole if set(range(a, b)) & set(range(word.start, word.end))]) == len(wanted)
            lost += not pieces
            placed += pieces
            assert list(pieces) in ([wanted] if complete and len(annotated.ids) < max_length else [wanted, []])
            if not complete:
                assert pieces == ()
            elif len(annotated.ids) < max_length and any("a" <= letter.lower() <= "z" for letter in word.form):
                assert pieces, "nothing was cut, so the word must be there"
            if field == 1:
                assert all(at > annotated.separators[0] for at in pieces)
    assert len(placed) == len(set(placed)), "no wordpiece in two words"
    assert not set(placed) & set(annotated.special)
    assert annotated.lost == lost


def test_what_fell_off_the_end_is_counted_and_of_no_type(tokenizer):
    annotated = annotate(tokenizer, "the boats never sank", max_length=4, sank="VERB")
    assert annotated.pieces == ("[CLS]", "the", "boats", "[SEP]")
    assert annotated.lost == 2 and annotated.negation == ()
    assert marked(annotated, "verbs") == marked(annotated, "negation") == []
    assert marked(annotated, "nouns") == ["the", "boats"]


def test_a_word_that_the_limit_splits_is_lost_as_a_whole(tokenizer):
    annotated = annotate(tokenizer, "harpists unbelievability", max_length=5)
    assert annotated.length == 5 and annotated.sentences[0].pieces[1] == () and annotated.lost == 1
    assert len(marked(annotated, "nouns")) < 3
    cut = annotate(tokenizer, "we don't", max_length=5)
    assert cut.pieces[2:4] == ("don", "'") and cut.negation == () and marked(cut, "negation", "official") == []


def test_a_whole_word_at_the_very_end_is_not_lost(tokenizer):
    annotated = annotate(tokenizer, "red lamps glow", max_length=4)
    assert annotated.sentences[0].pieces == ((1,), (2,), ()) and annotated.lost == 1


def test_a_whole_word_whose_last_character_leaves_no_trace_is_not_lost(tokenizer):
    annotated = annotate(tokenizer, "a cafe\u0301 opens today", max_length=4)
    assert annotated.pieces == ("[CLS]", "a", "cafe", "[SEP]")
    assert annotated.sentences[0].pieces[1] == (2,)


@pytest.mark.parametrize(("texts", "pieces"), [
    (("",), ("[CLS]", "[SEP]")),
    (("", ""), ("[CLS]", "[SEP]", "[SEP]")),
    (("boats", ""), ("[CLS]", "boats", "[SEP]", "[SEP]")),
    (("", "boats"), ("[CLS]", "[SEP]", "boats", "[SEP]")),
    (("  \t ", "boats"), ("[CLS]", "[SEP]", "boats", "[SEP]")),
])  # fmt: skip
def test_empty_texts(tokenizer, texts, pieces):
    annotated = annotate(tokenizer, *texts)
    assert annotated.pieces == pieces and annotated.lost == 0
    assert annotated.cls == (0,) and annotated.separators == tuple(at for at, piece in enumerate(pieces) if piece == "[SEP]")
    known = [annotated.pieces[at] for _, own in annotated.words for at in own]
    assert known == [piece for piece in pieces if piece == "boats"]


@pytest.mark.parametrize(("text", "word", "pieces", "lost"), [
    ("boats 🙂 sink", 2, ["sink"], 0),
    ("cafe\u0301 boats", 0, ["cafe"], 0),
    ("boats\t\tsink", 1, ["sink"], 0),
    ("\u0301 boats", 1, ["boats"], 1),
    ("boats \x07 sink", 2, ["sink"], 1),
    ("река boats", 1, ["boats"], 0),
])  # fmt: skip
def test_odd_texts(tokenizer, text, word, pieces, lost):
    annotated = annotate(tokenizer, text)
    assert [annotated.pieces[at] for at in annotated.sentences[0].pieces[word]] == pieces
    assert annotated.lost == lost


def test_a_text_of_ten_thousand_characters(tokenizer):
    annotated = annotate(tokenizer, "boats " * 1666 + "sank", "never mind", max_length=64)
    assert annotated.length == 64
    assert annotated.lost == 1667 - 59 and len(annotated.negation) == 1
    assert annotated.pieces[annotated.negation[0][0]] == "never"


@pytest.mark.parametrize("text", ["we don't", "we don’t", "we do n't", "we don 't", "we do n’t", "We DON'T", "we Do Not", "NOT us",
                                  "not.", "(nor)", "nowhere", "can't", "ca n't", "won't", "not-so-old"])  # fmt: skip
def test_negation(tokenizer, text):
    assert len(annotate(tokenizer, text).negation) == 1


@pytest.mark.parametrize(
    "text", ["north", "minor", "knot", "doesn't", "cannot", "nothings", "do", "I do not_this", "Nora", ""]
)
def test_no_negation(tokenizer, text):
    annotated = annotate(tokenizer, text)
    assert annotated.negation == () and marked(annotated, "negation") == []


@pytest.mark.parametrize("text", ["he said 'never' again", "the word ‘not’ is short"])
def test_negation_in_single_quotes(tokenizer, text):
    assert len(annotate(tokenizer, text).negation) == 1


def test_negation_is_all_of_its_wordpieces(tokenizer):
    annotated = annotate(tokenizer, "we don't sail")
    assert [annotated.pieces[at] for at in annotated.negation[0]] == ["don", "'", "t"]


def test_the_official_protocol_goes_by_strings(tokenizer):
    annotated = annotate(tokenizer, "the north wind blew north", "boats sail north")
    assert marked(annotated, "negation") == []
    assert marked(annotated, "negation", "official") == ["north"] * 3
    annotated = annotate(tokenizer, "the boats race the race", race="VERB", the="DET")
    annotated = AnnotatedInput(
        annotated.ids,
        annotated.pieces,
        annotated.cls,
        annotated.separators,
        (  # only the first is a verb
            PlacedSentence(annotated.sentences[0].words[:3], annotated.sentences[0].pieces[:3]),
        ),
        (),
        0,
    )
    assert marked(annotated, "verbs") == ["race"] and marked(annotated, "verbs", "official") == ["race"] * 2
    annotated = annotate(tokenizer, "we don't", "Tom's tent isn't t")
    assert marked(annotated, "negation", "official").count("'") == 3, "also that of Tom's"
    assert marked(annotated, "negation").count("'") == 2
    assert "[CLS]" not in marked(annotated, "nouns", "official")


@pytest.mark.parametrize(
    ("deprel", "kind"),
    [
        ("nsubj", "subjects"),
        ("nsubj:pass", "subjects"),
        ("nsubjpass", "subjects"),
        ("obj", "objects"),
        ("dobj", "objects"),
        ("iobj", None),
        ("csubj", None),
    ],
)
def test_both_sets_of_labels_are_understood(deprel, kind):
    word = Word("x", "x", 0, 1, "X", -1, deprel)
    annotated = AnnotatedInput((1, 5, 2), ("[CLS]", "x", "[SEP]"), (0,), (2,), (PlacedSentence((word,), ((1,),)),), (), 0)
    assert [name for name in TOKEN_TYPES[:-3] if marked(annotated, name)] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("upos", "kinds"),
    [
        ("NOUN", ["nouns"]),
        ("PROPN", ["nouns"]),
        ("VERB", ["verbs"]),
        ("AUX", []),
        ("PRON", ["pronouns"]),
        ("PUNCT", ["punctuation"]),
        ("ADJ", []),
    ],
)
def test_parts_of_speech(tokenizer, upos, kinds):
    annotated = annotate(tokenizer, "x", x=upos)
    assert [name for name in TOKEN_TYPES if marked(annotated, name) == ["x"]] == kinds


def test_unknown_protocol_is_refused(tokenizer):
    with pytest.raises(ValueError, match="paper, official"):
        token_types(annotate(tokenizer, "x"), "mine")


def test_gold_annotation_is_the_corpora_s_own():
    gold = annotators.load_annotator("gold", ["mrpc"])
    row = generate("mrpc")["validation"][0]
    assert gold.antecedents and gold.annotate([*row.text.values(), ""]) == [*row.sentences.values(), ()]
    with pytest.raises(ValueError, match="(?s)Otters juggle.*annotation='spacy:NAME'"):
        gold.annotate(["Otters juggle pebbles."])


# --- spaCy ---


@pytest.fixture
def pipeline(tmp_path, monkeypatch):
    """Makes a folder with a spaCy pipeline whose components follow simple rules."""
    spacy = pytest.importorskip("spacy")
    from spacy.language import Language

    def rebuilt(doc, **layers):
        return spacy.tokens.Doc(
            doc.vocab, [token.text for token in doc], [bool(token.whitespace_) for token in doc], **layers
        )

    def pos(doc):
        return rebuilt(doc, pos=[{"sold": "VERB", ".": "PUNCT", "the": "DET"}.get(token.lower_, "NOUN") for token in doc])

    def parse(doc):
        verb = next((token.i for token in doc if token.lower_ == "sold"), 0)
        deps = ["ROOT" if token.i == verb else "nsubj" if token.i < verb else "dobj" for token in doc]
        layers = {"pos": [token.pos_ for token in doc]} if doc.has_annotation("POS") else {}
        return rebuilt(doc, heads=[verb] * len(doc), deps=deps, **layers)

    for name, function in {"test_pos": pos, "test_parse": parse}.items():
        if not Language.has_factory(name):
            Language.component(name, func=function)

    def make(*components, version="1.0.0", name="toy"):
        nlp = spacy.blank("en", meta={"name": name, "version": version})
        for component in components:
            nlp.add_pipe(component)
        folder = tmp_path / f"{name}-{version}-{len(components)}"
        nlp.to_disk(folder)
        return str(folder)

    return make


def test_a_pipeline_s_words_stand_at_their_characters(pipeline):
    made = annotators.load_annotator(f"spacy:{pipeline('test_pos', 'test_parse')}")
    assert "toy 1.0.0" in made.name and not made.antecedents
    text = "Ravens  sold\tthe pearls."
    ((sentence,), nothing, again) = made.annotate([text, "", text])
    assert [text[word.start : word.end] for word in sentence.words] == ["Ravens", "sold", "the", "pearls", "."]
    assert [word.form for word in sentence.words] == ["Ravens", "sold", "the", "pearls", "."]
    assert [word.head for word in sentence.words] == [1, -1, 1, 1, 1]
    assert [word.deprel for word in sentence.words] == ["nsubj", "ROOT", "dobj", "dobj", "dobj"]
    assert nothing == () and again == (sentence,)
    assert made.annotate([" \t "]) == [()]


@pytest.mark.parametrize(("components", "named", "other"), [
    (["test_pos"], "a parser", "morphologizer"), (["test_parse"], "morphologizer, or a tagger", "a parser"),
])  # fmt: skip
def test_a_pipeline_that_lacks_a_component_is_refused(pipeline, components, named, other):
    with pytest.raises(ValueError, match=f"{named}.*it has: {components[0]}") as caught:
        annotators.load_annotator(f"spacy:{pipeline(*components)}")
    assert other not in str(caught.value)


@pytest.mark.parametrize("annotation", ["spacy:xx_no_such_pipeline", "spacy:/nowhere/at/all"])
def test_an_unknown_pipeline_is_refused_with_the_command(annotation):
    with pytest.raises(FileNotFoundError, match=f"python -m spacy download {annotation[6:].rsplit('/', 1)[-1]}"):
        annotators.load_annotator(annotation)


def test_a_folder_without_a_pipeline_is_refused(tmp_path):
    pytest.importorskip("spacy")
    with pytest.raises(FileNotFoundError, match="neither installed nor a folder with a pipeline"):
        annotators.load_annotator(f"spacy:{tmp_path}")


def test_texts_are_parsed_once(pipeline, own_cache, monkeypatch):
    places = [pipeline("test_pos", "test_parse", version=version) for version in ("1.0.0", "1.0.1")]
    texts = ["Moles sold maps.", "Moles sold."]
    first = annotators.load_annotator(f"spacy:{places[0]}").annotate(texts)
    same, newer = (annotators.load_annotator(f"spacy:{place}") for place in places)
    for annotator in (same, newer):
        monkeypatch.setattr(annotator._nlp, "pipe", lambda texts: pytest.fail("parsed again"))
    assert same.annotate(texts) == first and same.annotate(texts[::-1]) == first[::-1]
    for annotator, unknown in ((same, ["Moles sold tunnels."]), (newer, texts)):
        with pytest.raises(pytest.fail.Exception, match="parsed again"):
            annotator.annotate(unknown)


def test_other_weights_of_the_same_version_are_parsed_anew(pipeline):
    from bertology_utils.annotation.pipeline import Pipeline

    place = pipeline("test_pos", "test_parse")
    first, second = Pipeline(place), Pipeline(place)
    assert first._fingerprint == second._fingerprint
    other = Pipeline(pipeline("test_pos", "test_parse", "sentencizer"))
    assert other.name == first.name and other._fingerprint != first._fingerprint


def test_other_code_annotates_anew(pipeline, monkeypatch):
    from bertology_utils.annotation import pipeline as module

    made = module.Pipeline(pipeline("test_pos", "test_parse"))
    ((before,),) = made.annotate(["Moles sold maps."])
    old = module._sentences
    monkeypatch.setattr(
        module, "_sentences", lambda doc: [Sentence(sentence.text, sentence.words[:-1]) for sentence in old(doc)]
    )
    ((after,),) = made.annotate(["Moles sold maps."])
    assert after.words == before.words[:-1]


@needs_shared
def test_a_real_pipeline():
    pytest.importorskip("spacy")
    text = "The tired farmer sold his horses to a merchant."
    ((sentence,),) = annotators.load_annotator(f"spacy:{SHARED / 'models' / 'en_ud_small'}").annotate([text])
    assert all(text[word.start : word.end] == word.form for word in sentence.words)
    assert "".join(word.form for word in sentence.words) == text.replace(" ", "")
    by_form = {word.form: word for word in sentence.words}
    assert by_form["sold"].upos == "VERB" and by_form["sold"].head == -1
    assert by_form["farmer"].upos == "NOUN" and by_form["farmer"].deprel == "nsubj"
    assert by_form["horses"].deprel == "obj" and sentence.words[by_form["horses"].head].form == "sold"


# --- CoNLL-U ---


def line(number, form, upos="NOUN", head=0, deprel="root", misc="_"):
    return f"{number}\t{form}\t{form}\t{upos}\t_\t_\t{head}\t{deprel}\t_\t{misc}\n"


CONLLU = "".join([
    "# sent_id = 1\n", "# text = I don't fly im Nebel, yet.\n", line(1, "I", "PRON", 4, "nsubj"), line("2-3", "don't"),
    line(2, "do", "AUX", 4, "aux"), line(3, "n't", "PART", 4, "advmod"), line(4, "fly", "VERB"), line("5-6", "im"),
    line(5, "in", "ADP", 7, "case"), line(6, "dem", "DET", 7, "det"), line(7, "Nebel", "NOUN", 4, "obl", "SpaceAfter=No"),
    line(8, ",", "PUNCT", 4, "punct"), line("8.1", "fly", "VERB", "_", "_"), line(9, "yet", "ADV", 4, "advmod", "SpaceAfter=No"),
    line(10, ".", "PUNCT", 4, "punct", "SpaceAfter=No"), "\n", "# sent_id = 2\n", line(1, "Stop"), "\n",
])  # fmt: skip


@pytest.fixture
def conllu(tmp_path):
    pytest.importorskip("conllu")

    def write(content):
        (tmp_path / "bank.conllu").write_text(content, encoding="utf-8")
        return tmp_path / "bank.conllu"

    return write


def test_a_treebank_is_read(conllu):
    known = annotators.load_annotator(f"conllu:{conllu(CONLLU)}")
    assert known.name == "CoNLL-U file bank.conllu" and not known.antecedents
    text = "I don't fly im Nebel, yet."
    ((sentence,), (second,)) = known.annotate([text, "Stop"])
    assert sentence.text == text and [word.form for word in second.words] == ["Stop"]
    assert [(word.form, text[word.start : word.end]) for word in sentence.words] == [
        ("I", "I"),
        ("do", "do"),
        ("n't", "n't"),
        ("fly", "fly"),
        ("in", "im"),
        ("dem", "im"),
        ("Nebel", "Nebel"),
        (",", ","),
        ("yet", "yet"),
        (".", "."),
    ]
    assert [word.head for word in sentence.words] == [3, 3, 3, -1, 6, 6, 3, 3, 3, 3]
    assert sentence.words[2].deprel == "advmod" and sentence.words[0].upos == "PRON"
    with pytest.raises(ValueError, match="(?s)bank.conllu has no annotation of 'Go'.*annotation='spacy:NAME'"):
        known.annotate(["Go"])


@pytest.mark.parametrize("content", ["Ravens sold pearls.\n", "", "a\tb\tc\n1\t2\t3\n", '{"a": 1}\n'])
def test_what_is_no_treebank_is_refused(conllu, content):
    with pytest.raises(ValueError, match=r"bank\.conllu"):
        treebank.read(conllu(content))


@pytest.mark.parametrize("content", [b"1\tcat\n\n", b"\xff\xfe\x00", b"# only a comment\n\n"])
def test_other_files_that_are_no_treebank_are_refused(tmp_path, content):
    pytest.importorskip("conllu")
    (tmp_path / "bank.conllu").write_bytes(content)
    with pytest.raises(ValueError, match=r"bank\.conllu"):
        treebank.read(tmp_path / "bank.conllu")


def test_negation_in_feats_and_antecedents_are_read(conllu):
    path = conllu(
        "".join(
            [
                "1\tNobody\tnobody\tPRON\t_\tNumber=Sing|PronType=Neg\t2\tnsubj\t_\t_\n",
                line(2, "says", "VERB"),
                line(3, "she", "PRON", 5, "nsubj", "Antecedent=6"),
                "4\tdidn't\tdo\tAUX\t_\tPolarity=Neg\t5\taux\t_\t_\n",
                line(5, "see", "VERB", 2, "ccomp"),
                line(6, "Ann", "PROPN", 5, "obj", "SpaceAfter=No|Antecedent=no"),
                line(7, "!", "PUNCT", 2, "punct"),
            ]
        )
    )
    known = annotators.load_annotator(f"conllu:{path}")
    assert known.antecedents
    (((sentence),),) = known.annotate(["Nobody says she didn't see Ann!"])
    assert [word.form for word in sentence.words if word.negation] == ["Nobody", "didn't"]
    assert [word.antecedent for word in sentence.words] == [None, None, 5, None, None, None, None]


def test_a_marked_paragraph_is_a_text_of_several_sentences(conllu):
    ends = "SpaceAfter=No"
    known = treebank.read(
        conllu(
            "\n".join(
                [
                    line(1, "Alone"),
                    "# newpar id = a\n# sent_id = 1\n" + line(1, "Go", misc=ends) + line(2, "!", "PUNCT", 1, "punct"),
                    line(1, "Run"),
                    "# newpar\n" + line(1, "(", "PUNCT", 2, "punct", ends) + line(2, "Stop", misc=ends),
                    line(1, ")", misc=ends),
                    "# newdoc id = 2\n" + line(1, "Alone"),
                    "",
                ]
            )
        )
    )
    assert set(known) == {"Alone", "Go!", "Run", "Go! Run", "(Stop", ")", "(Stop)"}
    assert len(known["Alone"]) == len(known["Run"]) == 1 and known["Run"][0].words[0].start == 0
    for text, sentences in known.items():
        assert [text[word.start : word.end] for sentence in sentences for word in sentence.words] == [
            word.form for sentence in sentences for word in sentence.words
        ]
    assert [[word.head for word in sentence.words] for sentence in known["Go! Run"]] == [[-1, 0], [-1]]


def test_packed_and_windows_treebanks_are_read(conllu):
    wanted = treebank.read(conllu(CONLLU))
    path = conllu("")
    path.write_bytes(CONLLU.replace("\n", "\r\n").encode())
    assert treebank.read(path) == wanted
    packed = path.with_name("bank.conllu.gz")
    packed.write_bytes(gzip.compress(CONLLU.encode()))
    assert treebank.read(packed) == wanted


@pytest.mark.parametrize(("content", "message"), [
    ('{"a": 1}\n', "is not a CoNLL-U file"), ('{\n "a": [1]\n}', "is not a CoNLL-U file"), ("", "no sentence in it"),
    ("1\tcat\n\n", "lacks a column"),
])  # fmt: skip
def test_a_treebank_is_checked_by_its_first_sentence(conllu, content, message):
    with pytest.raises(ValueError, match=f"bank.conllu .*{message}"):
        treebank.check_treebank(conllu(content))
    treebank.check_treebank(conllu(CONLLU + "\nno such line\n"))
    with pytest.raises(ValueError, match="is not a CoNLL-U file"):
        treebank.read(conllu(CONLLU + "\nno such line\n"))


@needs_shared
def test_a_real_treebank():
    pytest.importorskip("conllu")
    place = SHARED / "ud" / "en_ewt-ud-dev.conllu"
    texts = re.findall(r"^# text = (.*)$", place.read_text(encoding="utf-8"), re.MULTILINE)
    known = {text: sentences for text, sentences in treebank.read(place).items() if len(sentences) == 1}
    assert {" ".join(text.split()) for text in known} == {" ".join(text.split()) for text in texts}
    words = [(text, word) for text, (sentence,) in known.items() for word in sentence.words]
    differing = [word.form for text, word in words if text[word.start : word.end] != word.form]
    assert len(words) > 20_000 and not differing


# --- parameters ---


@pytest.mark.parametrize("annotation", ["gold:x", "spacy", "spacy:", "conllu", "conllu:", "stanza:en", "Gold"])
def test_wrong_kinds_are_refused_with_the_choices(annotation):
    message = f"unknown annotation '{annotation}'; choose one of: gold, spacy:NAME, conllu:PATH"
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_annotation(annotation)
    with pytest.raises(ValueError, match=re.escape(message)):
        resolve(annotation=annotation)


def test_a_missing_treebank_is_refused():
    with pytest.raises(FileNotFoundError, match="there is no file /nowhere/bank.conllu"):
        resolve(annotation="conllu:/nowhere/bank.conllu")


@pytest.mark.parametrize("annotation", ["spacy:no.such", "spacy:.hidden"])
def test_a_name_with_a_dot_is_refused_like_any_other(annotation):
    with pytest.raises(FileNotFoundError, match="no spaCy pipeline"):
        parse_annotation(annotation)


def test_gold_is_for_embedded_data_only(tmp_path):
    lab = Experiment("4_feature_attention", data=f"folder:{tmp_path}", annotation="gold", tasks="mrpc")
    with pytest.raises(ValueError, match="annotation='gold' goes with data='embedded' only.*spacy:NAME"):
        _ = lab.annotator


def test_annotation_goes_by_the_data():
    assert resolve().annotation == "gold"
    assert resolve(profile="minilm").annotation == "spacy:en_core_web_sm"


def test_no_rows(tokenizer):
    assert annotate_inputs({"text": []}, ["text"], tokenizer, 64, ByWhiteSpace()) == []
