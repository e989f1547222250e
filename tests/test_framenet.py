"""FrameNet: reading releases, the paper's filters, scores of heads and their controls (§4.2)."""

import copy
import random
import re
import shutil
import zipfile
from itertools import product

import nltk
import numpy as np
import pytest
from conftest import SHARED, needs_shared
from nltk.corpus.reader.framenet import FramenetCorpusReader
from small_models import model_and_tokenizer
from tokenizers.processors import TemplateProcessing

from bertology_utils import framenet, links, measurements
from bertology_utils.attention import attention_maps
from bertology_utils.batches import make_batches
from bertology_utils.framenet import OFFICIAL, PAPER, Span, extract, load_release, read_unit
from bertology_utils.links import DIRECTIONS, place_frames
from bertology_utils.measurements import PANELS, frame_links, published_panel
from bertology_utils.study import Study


@pytest.fixture(scope="module")
def mini(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERTOLOGY_CACHE", str(tmp_path_factory.mktemp("cache")))
        return load_release("embedded")


@pytest.fixture
def folder(own_cache):
    """A copy of the miniature release, to be spoiled."""
    with zipfile.ZipFile(framenet.MINIATURE) as archive:
        archive.extractall(own_cache / "copy")
    return own_cache / "copy" / "mini"


def read(folder):
    return load_release(f"folder:{folder}")


def unit_files(folder):
    return sorted((folder / "lu").glob("lu*.xml"))


def changed(old, new):
    """A pattern of a unit's file is replaced once; SPACE is where the first space of its first sentence stands."""

    def spoil(path):
        text = path.read_text(encoding="utf-8")
        start = text.index("<text>") + len("<text>")
        space = text.index(" ", start) - start
        spoiled = re.sub(old, new.replace("SPACE", str(space)), text, count=1)
        assert spoiled != text
        path.write_text(spoiled, encoding="utf-8")

    return spoil


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-200])


without_namespace = changed(' xmlns="http://framenet.icsi.berkeley.edu"', "")
ANY, NOTHING = 'name="[A-Z][a-z]+" start="0" end="[0-9]+"', 'name="Agent" start="SPACE" end="SPACE"'


@pytest.mark.parametrize(
    "spoil, message, is_whole",
    [
        (changed('(name="Target" start=")', r"\g<1>9"), "spans characters", False),
        (changed('(name="Target") start=', r"\1 begin="), "target is not marked", False),
        (changed(' end="', ' until="'), "starts and does not end", False),
        (changed(ANY, NOTHING), "nothing but spaces", False),
        (cut_off, "cannot be read", True),
        (without_namespace, "it begins with lexUnit, not with <lexUnit xmlns=", True),
    ],
)
def test_an_odd_annotation_or_a_broken_file_costs_itself_alone(folder, spoil, message, is_whole):
    before, path = read(folder), unit_files(folder)[0]
    lost = len(read_unit(path)[1]) if is_whole else 1
    spoil(path)
    after = read(folder)
    assert after.problems[0].startswith(path.name) and message in after.problems[0]
    assert len(after.problems) == 1 + is_whole  # a unit without its file is told as well
    assert len(after.exemplars) == len(before.exemplars) - lost > 0


def test_units_of_the_index_without_a_file_are_told(folder):
    before, paths = read(folder), unit_files(folder)
    for path in paths[5:]:
        path.unlink()
    after = read(folder)
    missing = f"{len(paths) - 5} of {len(paths)} units that luIndex.xml names have no file"
    assert after.problems == (missing,)
    assert 0 < len(after.exemplars) < len(before.exemplars)


@pytest.mark.parametrize("second_comes_first", [True, False])
def test_a_unit_counts_once(folder, second_comes_first):
    before, path = read(folder), unit_files(folder)[0]
    second = f"{path.stem} (1).xml" if second_comes_first else "lu99999999.xml"
    shutil.copy(path, path.with_name(second))
    after = read(folder)
    assert after.exemplars == before.exemplars
    (problem,) = after.problems
    assert f"is a second file of unit {path.stem.removeprefix('lu')}" in problem


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda f: (f / "luIndex.xml").unlink(), "is no FrameNet release: it lacks luIndex.xml"),
        (lambda f: shutil.rmtree(f / "frame"), "lacks frame"),
        (lambda f: [p.unlink() for p in unit_files(f)], "holds no annotated sentence"),
        (lambda f: [*map(without_namespace, unit_files(f))], r"lu9.*\.xml cannot be read"),
        (lambda f: cut_off(f / "luIndex.xml"), "luIndex.xml is no XML, or is cut off"),
    ],
)
def test_what_is_no_release_is_refused_with_what_is_missing(folder, tmp_path, spoil, message):
    expected = read(folder).exemplars
    assert load_release(f"folder:{folder.parent}").exemplars == expected  # a level deeper
    assert load_release(f"zip:{zipped(folder, tmp_path / 'whole.zip')}").exemplars == expected
    spoil(folder)
    packed = zipped(folder, tmp_path / "half.zip")
    for source in (f"folder:{folder}", f"zip:{packed}"):
        with pytest.raises((FileNotFoundError, ValueError), match=message):
            load_release(source)


def zipped(folder, target):
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in [folder / "lu", *sorted(folder.rglob("*.xml"))]:
            archive.write(path, f"fndata/{path.relative_to(folder)}")
    return target


def torn(path):
    """One of its packed files is overwritten."""
    with zipfile.ZipFile(path) as archive:
        start = next(one.header_offset for one in archive.infolist() if "/lu/lu" in one.filename)
    content = bytearray(path.read_bytes())
    content[start + 80 : start + 300] = bytes(220)
    path.write_bytes(content)


def flagged(place, bits):
    """All of its files have other bits at this place of their headers in the zip's directory."""
    header = re.compile(rb"(PK\x01\x02.{%d})." % place, re.DOTALL)
    return lambda path: path.write_bytes(header.sub(rb"\g<1>" + bits, path.read_bytes()))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.write_bytes(b"no"), "not a zip file"),
        (torn, "."),
        (
            flagged(6, b"\t"),
            "compression method is not supported",
        ),  # as Windows packs large folders
        (flagged(4, b"\x01"), "is encrypted, password required"),
    ],
)
def test_a_zip_that_cannot_be_unpacked_is_refused(folder, tmp_path, spoil, message):
    packed = zipped(folder, tmp_path / "framenet.zip")
    spoil(packed)
    told = f"framenet.zip cannot be unpacked: .*{message}.*; get it again, or unpack it"
    with pytest.raises(ValueError, match=told):
        load_release(f"zip:{packed}")


def test_entities_are_not_resolved(folder, tmp_path):
    (tmp_path / "secret").write_text("NOTFORYOU")
    path = unit_files(folder)[0]
    head, rest = path.read_text(encoding="utf-8").split("\n", 1)
    entity = f'<!DOCTYPE lexUnit [<!ENTITY x SYSTEM "file://{tmp_path / "secret"}">]>'
    spoiled = f"{head}\n{entity}\n{rest}".replace("<text>", "<text>&x;", 1)
    path.write_text(spoiled, encoding="utf-8")
    assert "NOTFORYOU" not in "".join(exemplar.text for exemplar in read(folder).exemplars)


@pytest.mark.parametrize(
    "release, count, size",
    [
        (framenet.MINIATURE, 10, 0),
        pytest.param(SHARED / "framenet" / "framenet_v15.zip", 100, 8000, marks=needs_shared),
    ],
)
def test_units_are_read_as_nltk_reads_them(release, count, size, tmp_path):
    """Every exemplar of some annotated units: text, target, elements and which are core."""
    with zipfile.ZipFile(release) as archive:
        names = [name for name in archive.namelist() if name.endswith(".xml")]
        units = [
            name for name in names if "/lu/lu" in name and archive.getinfo(name).file_size > size
        ]
        chosen = random.Random(7).sample(units, count)
        others = [name for name in names if "/lu/" not in name and "/fulltext/" not in name]
        archive.extractall(tmp_path, [*chosen, *others])
    root = framenet.find_root(tmp_path)
    (root / "fulltext").mkdir(exist_ok=True)
    nltk.data.path.append(str(root.parent))
    reader, compared = FramenetCorpusReader(str(root), []), 0
    for name in chosen:
        number, ours, problems = read_unit(tmp_path / name)
        theirs = [
            (sentence, annotation)
            for sentence in reader.lu(int(number)).exemplars
            for annotation in sentence.annotationSet
            if annotation.status != "UNANN" and "Target" in annotation
        ]
        assert all("not marked" in problem for problem in problems)
        for mine, (sentence, annotation) in zip(ours, theirs, strict=True):
            assert mine.text == sentence.text
            assert [(s.start, s.end) for s in mine.target] == sorted(annotation.Target)
            assert [(s.start, s.end, s.name) for s in mine.elements] == sorted(annotation.FE[0])
            assert mine.unit == sentence.LU.name and mine.frame == sentence.frame.name
            compared += 1
        if ours:
            elements = reader.frame(ours[0].frame).FE.values()
            assert set(ours[0].core) == {fe.name for fe in elements if fe.coreType == "Core"}
    assert compared >= count


def test_the_papers_filters_keep_of_the_miniature_what_its_card_says(mini):
    assert not mini.problems and len(mini.exemplars) == 730 and len(extract(mini, PAPER)) == 668


def exemplar(text, target, *elements, core=("Agent", "Theme")):
    """An exemplar of words: the target's, and (name, words) for each element."""

    def span(name, words):
        start = text.index(words)
        return Span(name, start, start + len(words))

    spans = tuple(sorted((span(*element) for element in elements), key=lambda s: s.start))
    return framenet.Exemplar("see.v", "Seeing", text, (span("Target", target),), spans, core)


def kept(exemplar, rules=PAPER):
    one = framenet.Release((exemplar,), {"Seeing": ("Agent", "Theme")})
    sentences = extract(one, rules)
    return [span.name for sentence in sentences for span, *_ in sentence.elements]


def test_every_rule_at_its_border(monkeypatch):
    elements = ("Agent", "She"), ("Theme", "a big old red house"), ("Place", "near it")
    near = exemplar("She has seen a big old red house near it .", "seen", *elements)
    assert kept(near) == ["Agent"]  # the theme is too long and too near
    for most, left in ((11, ["Agent"]), (10, [])):  # it has eleven tokens
        monkeypatch.setattr(framenet, "SENTENCE_TOKENS", most)
        assert kept(near) == left
    monkeypatch.undo()
    there = exemplar("She has seen us in a big old house", "seen", ("Theme", "a big old house"))
    for most, left in ((4, ["Theme"]), (3, [])):
        monkeypatch.setattr(framenet, "ELEMENT_TOKENS", most)
        assert kept(there) == left
    monkeypatch.undo()
    elements = ("Agent", "She"), ("Instrument", "the old glasses of hers")
    far = exemplar("She has often seen it with the old glasses of hers .", "seen", *elements)
    alone = far._replace(elements=far.elements[:1])
    assert kept(far) == ["Agent"] and kept(far, OFFICIAL) == []  # for the instrument's sake
    assert kept(alone) == kept(alone, OFFICIAL) == ["Agent"]
    two = exemplar("She has seen it", "seen", ("Agent", "She"))  # tokens away
    assert kept(two) == ["Agent"] and kept(two, OFFICIAL) == []
    for core, rules in (((), OFFICIAL), (("Agent",), PAPER)):  # whose word it is
        assert kept(alone._replace(core=core), rules) == ["Agent"]
        assert kept(alone._replace(core=core, frame="Other"), rules) == ["Agent"] * bool(core)
    # The first "the" stands beside the predicate, the element's own does not.
    twice = exemplar("He saw the dog and then the cat", "saw", ("Theme", "the cat"))
    assert kept(twice) == ["Theme"] and kept(twice, OFFICIAL) == []
    broken = alone._replace(target=(Span("Target", 14, 18), Span("Target", 19, 21)))
    assert kept(broken) == ["Agent"] and kept(broken, OFFICIAL) == []


def test_places_hold_the_annotated_words(mini, tokenizer):
    sentences = extract(mini, PAPER)
    placed, inputs = place_frames(sentences, tokenizer)
    assert len(placed) == len(sentences) > len(extract(mini, framenet.OFFICIAL)) > 0
    for linked, ids in zip(placed, inputs["input_ids"], strict=True):
        text, sentence = linked.sentence.exemplar.text, linked.sentence
        elements = zip(linked.elements, sentence.elements, strict=True)
        for positions, spans in ((linked.predicate, sentence.target), *elements):
            pieces = tokenizer.convert_ids_to_tokens([ids[position] for position in positions])
            words = "".join(text[span.start : span.end] for span in spans)
            joined = "".join(piece.removeprefix("##") for piece in pieces)
            assert joined == words.replace(" ", "").lower()
        assert min(linked.predicate) > 0 and max(linked.predicate) < linked.length - 1


@pytest.mark.parametrize("name", ["Albert", "ModernBert"])
def test_words_are_what_the_tokenizer_calls_no_special_token(mini, name):
    """Two special tokens before the words and none after them, besides each tokenizer's own."""
    tokenizer = copy.deepcopy(model_and_tokenizer(name)[1])
    sentences = extract(mini, PAPER)[:20]
    placed, inputs = place_frames(sentences, tokenizer, max_length=500)
    assert all(one.words == range(1, one.length - 1) for one in placed)
    assert "labels" not in inputs
    first = tokenizer.cls_token
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{first} {first} $A", special_tokens=[(first, tokenizer.cls_token_id)]
    )
    placed, _ = place_frames(sentences, tokenizer, max_length=500)
    assert all(one.words == range(2, one.length) for one in placed)


@pytest.fixture
def study(tiny_bert):
    return Study.of("small", model=str(tiny_bert), frames=300)


@pytest.mark.parametrize("rules, start", [("paper", "pre-trained"), ("official", "random")])
def test_weights_along_links_by_loops_over_single_maps(study, rules, start):
    found = study.measure(frame_links, rules=rules, start=start)["framenet"]
    placed, inputs = place_frames(study.frames(300, rules), study.tokenizer)
    assert found.sizes["example"] == len(placed) < measurements.SETS, "sets of one sentence"
    others, model = links.partners(placed, 1), study.encoder(start)

    def maps_of(at):
        """A sentence's maps, and what of them is beyond the means of its words' rows and columns."""
        one = {name: [values[at]] for name, values in inputs.items()}
        (batch,) = make_batches(one, study.tokenizer)
        maps = np.concatenate([one.numpy() for one in attention_maps(model, batch)])
        begin, end = placed[at].words.start, placed[at].words.stop
        inner = maps[:, :, begin:end, begin:end]
        rows, columns = inner.mean(axis=3, keepdims=True), inner.mean(axis=2, keepdims=True)
        beyond = np.full_like(maps, np.nan)
        beyond[:, :, begin:end, begin:end] = inner - rows - columns + rows.mean(2, keepdims=True)
        return maps, beyond

    def kind(at):
        return placed[at].sentence.exemplar.part_of_speech

    in_order = sorted(range(len(placed)), key=kind)
    for at, index in list(enumerate(in_order))[:: 1 + len(placed) // 9]:
        own, one = placed[index], found.isel(example=at)
        assert one.even == pytest.approx(1 / own.length, rel=1e-3) and one.function == "other"
        assert one.predicate == own.sentence.exemplar.unit.split(".")[1] and one.number == 1
        along = product if rules == "paper" else zip
        pairs = {pair for element in own.elements for pair in along(own.predicate, element)}
        read = [maps_of(sentence) for sentence in (index, *others[index])]
        for direction, layer, head in product(DIRECTIONS, (1, 3), (2, 4)):
            ends = [*zip(*pairs, strict=True)]
            where = (layer - 1, head - 1, *(ends if direction == DIRECTIONS[0] else ends[::-1]))
            largest, beyond = (
                [one[where].max() for one in each] for each in zip(*read, strict=True)
            )
            expected = {"nothing": largest[0]}
            for name, (first, *rest) in (("place", largest), ("place and words", beyond)):
                expected[name] = first - np.mean(rest) if rest else np.nan
            values = one.weight.sel(direction=direction, layer=layer, head=head)
            for name, value in expected.items():
                assert values.sel(beyond=name) == pytest.approx(value, abs=7e-4, nan_ok=True)


def test_sets_of_sentences_are_alike_in_grammar_and_hold_their_means(study, monkeypatch):
    single = study.measure(frame_links)["framenet"]
    monkeypatch.setattr(measurements, "SETS", 20)
    few = frame_links.function(study, slice(0, 300))
    assert few.sizes["example"] == 20 and few.number.sum() == single.number.sum()
    assert set(few.number.values) <= {len(single.number) // 20, len(single.number) // 20 + 1}
    ends = np.cumsum(few.number.values)
    for at, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        part = single.isel(example=slice(begin, end))
        np.testing.assert_allclose(few.weight[:, :, at], part.weight.mean("example"), atol=1e-3)
        kinds = set(part.predicate.values)
        assert few.predicate[at] == (kinds.pop() if len(kinds) == 1 else "several")


def test_partners_are_mutual_and_have_no_cell_in_common(mini, tokenizer):
    placed, _ = place_frames(extract(mini, PAPER), tokenizer)
    others = links.partners(placed, 1)
    for own, several in enumerate(others):
        assert len(set(several)) == len(several) <= 8 and own not in several
        cells = set(zip(*placed[own].cells().tolist(), strict=True))
        for other in several:
            assert own in others[other] and placed[own].length == placed[other].length
            assert cells.isdisjoint(zip(*placed[other].cells().tolist(), strict=True))
    assert np.median([len(several) for several in others]) == 8


def test_published_heatmaps_hold_the_papers_two_heads():
    panel = published_panel("framenet")
    assert panel.shape == (12, 12)
    assert np.argsort(-panel, axis=None)[:2].tolist() == [6 * 12 + 5, 1]  # (7, 6) and (1, 2) from 1
    assert panel[6, 5] == pytest.approx(0.209, abs=0.002)
    assert panel[0, 1] == pytest.approx(0.201, abs=0.002)
    assert all(np.isfinite(published_panel(name)).all() for name in PANELS)
    with pytest.raises(ValueError, match="unknown panel"):
        published_panel("nouns")


def test_functions_in_grammar_are_told_by_the_release(folder):
    """The miniature annotates no grammatical functions; a file with them is read, null instantiations aside."""
    path = unit_files(folder)[0]
    first = read_unit(path)[1][0]
    assert {span.function for span in first.elements} == {""}
    text, span = path.read_text(encoding="utf-8"), first.elements[0]
    label = f'<label name="Dep" start="{span.start}" end="{span.end - 1}"/>'
    layer = f'<layer rank="1" name="GF">{label}</layer>'
    annotated = re.sub(r'<layer rank="1" name="GF" ?/>', layer, text, count=1)
    path.write_text(annotated, encoding="utf-8")
    functions = [span.function for span in read_unit(path)[1][0].elements]
    assert functions == ["Dep", *[""] * (len(first.elements) - 1)]
    cases = {"Dep": "dependent", "Obj": "object", "": "other", "Dep Obj": "several"}
    for functions, told in cases.items():
        spans = tuple((Span("Theme", 0, 2, function),) for function in functions.split(" "))
        assert framenet.grammar(framenet.FrameSentence(first, first.target, spans)) == told


def test_nltk_release_from_a_folder_or_packed(folder, tmp_path, monkeypatch):
    expected = read(folder).exemplars
    packed = zipped(folder, tmp_path / "framenet_v17.zip")
    monkeypatch.setattr(nltk.data, "path", [*nltk.data.path, str(tmp_path)])  # nothing else opens
    for where in (
        nltk.data.FileSystemPathPointer(str(folder)),
        nltk.data.ZipFilePathPointer(str(packed), "fndata/"),
    ):
        monkeypatch.setattr(nltk.data, "find", lambda name, where=where: where)
        assert load_release("nltk").exemplars == expected


def test_nltk_without_a_network_says_what_to_do(monkeypatch):
    def missing(name):
        raise LookupError(name)

    monkeypatch.setattr(nltk.data, "find", missing)
    monkeypatch.setattr(nltk, "download", lambda *arguments, **keywords: False)
    with pytest.raises(ConnectionError, match="folder:PATH"):
        load_release("nltk")
