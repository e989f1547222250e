"""FrameNet: reading releases, the paper's filters, scores of heads and their controls."""

import copy
import os
import random
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import ROOT, SHARED, make_bert, needs_shared
from lxml import etree
from precision import forward_tolerance

from bertology_utils.annotation.alignment import wordpieces
from bertology_utils.attention import attention_maps, observe
from bertology_utils.attention.batches import make_batches
from bertology_utils.corpora import FRAMENET
from bertology_utils.encoders.models import load_encoder, load_tokenizer
from bertology_utils.encoders.sources import parse_model
from bertology_utils.framenet import breakdown, controls, frame_links, official_heatmaps, release
from bertology_utils.framenet.exemplars import Exemplar, Span, read_unit
from bertology_utils.framenet.frame_links import OFFICIAL, PAPER, Rules, extract
from bertology_utils.framenet.measure import FrameLinkAttention, FrameLinkScores, FramePlaces, place
from corpora_generator import mini_framenet

ZIP = SHARED / "framenet" / "framenet_v15.zip"


@pytest.fixture(scope="module")
def mini(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERTOLOGY_CACHE", str(tmp_path_factory.mktemp("cache")))
        return release.load_release("embedded")


@pytest.fixture
def folder(own_cache):
    """A copy of the miniature release, to be spoiled."""
    target = own_cache / "copy"
    shutil.copytree(release.find_root(release._unpacked(FRAMENET)), target)
    return target


def unit_files(folder):
    return sorted((folder / "lu").glob("lu*.xml"))


def test_the_miniature_is_read_as_it_was_written(mini):
    written = [
        (frame, unit, exemplar) for frame in mini_framenet.frames() for unit in frame.units for exemplar in unit.exemplars
    ]
    assert not mini.problems and len(mini.exemplars) == len(written)
    by_place = {(exemplar.frame, exemplar.unit, exemplar.text): exemplar for exemplar in mini.exemplars}
    for frame, unit, exemplar in written:
        read = by_place[frame.name, unit.name, exemplar.text]
        assert [(s.start, s.end) for s in read.target] == [(exemplar.target.start, exemplar.target.end)]
        assert {(s.name, s.start, s.end) for s in read.elements} == {(s.name, s.start, s.end) for s in exemplar.elements}
        assert set(read.core) == set(frame.core)
        assert set(mini.core_sets.get(frame.name, ())) == {name for names in frame.coresets for name in names}


def test_filters_keep_what_was_written_to_pass(mini):
    kept = {sentence.exemplar.text for sentence in extract(mini, PAPER)[0]}
    for frame in mini_framenet.frames():
        for unit in frame.units:
            for exemplar in unit.exemplars:
                assert (exemplar.text in kept) == (exemplar.expected == "pass"), exemplar.text


def test_a_second_reading_comes_from_the_cache(folder, monkeypatch):
    first = release.load_release(f"folder:{folder}")
    monkeypatch.setattr(release, "_read", lambda *arguments: pytest.fail("read again"))
    assert release.load_release(f"folder:{folder}") == first


def test_more_processes_read_the_same(folder, monkeypatch):
    alone = release.load_release(f"folder:{folder}", processes=1)
    monkeypatch.setattr(release, "FILES_AT_ONCE", 20)
    monkeypatch.setenv("BERTOLOGY_CACHE", str(folder / "other"))
    assert release.load_release(f"folder:{folder}", processes=2) == alone


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda f: (f / "luIndex.xml").unlink(), "lacks luIndex.xml"),
        (lambda f: shutil.rmtree(f / "frame"), "lacks frame"),
        (lambda f: [p.unlink() for p in unit_files(f)], "empty"),
        (lambda f: [shutil.rmtree(p) if p.is_dir() else p.unlink() for p in list(f.iterdir())], "no FrameNet release"),
    ],
)
def test_incomplete_releases_are_refused(folder, spoil, message):
    spoil(folder)
    with pytest.raises((FileNotFoundError, ValueError), match=message):
        release.load_release(f"folder:{folder}")


@pytest.mark.parametrize(
    "source, error, message",
    [
        ("framenet", ValueError, "unknown framenet 'framenet'; choose one of: embedded, nltk, folder:PATH, zip:PATH"),
        ("folder:", ValueError, "folder:PATH"),
        ("folder:/nowhere/at/all", FileNotFoundError, "no folder"),
        ("zip:/nowhere.zip", FileNotFoundError, "no file"),
    ],
)
def test_sources_that_name_nothing_are_refused(source, error, message):
    with pytest.raises(error, match=message):
        release.load_release(source)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('name="Target" start="', 'name="Target" start="9', "spans characters"),
        ('name="Target" start=', 'name="Target" begin=', "target is not marked"),
        (' end="', ' until="', "starts and does not end"),
    ],
)
def test_odd_annotations_are_left_out_and_reported(folder, old, new, message):
    before = release.load_release(f"folder:{folder}")
    path = unit_files(folder)[0]
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    after = release.load_release(f"folder:{folder}")
    (problem,) = after.problems
    assert problem.file == path.name and message in problem.what
    assert len(after.exemplars) == len(before.exemplars) - 1


def test_a_label_that_ends_before_it_starts_is_reported(folder):
    path = unit_files(folder)[0]
    text = path.read_text(encoding="utf-8")
    start = text.index('end="', text.index('name="Target" start="')) + 5
    path.write_text(text[:start] + "0" + text[text.index('"', start) :], encoding="utf-8")
    assert "spans characters" in release.load_release(f"folder:{folder}").problems[0].what


def test_a_broken_file_costs_itself_alone(folder):
    before = release.load_release(f"folder:{folder}")
    path = unit_files(folder)[0]
    lost = len(read_unit(path)[0])
    path.write_bytes(path.read_bytes()[:-200])
    after = release.load_release(f"folder:{folder}")
    assert [problem.file for problem in after.problems] == [path.name] and "cannot be read" in after.problems[0].what
    assert len(after.exemplars) == len(before.exemplars) - lost


def zipped(folder, target, extra=()):
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.rglob("*.xml")):
            archive.write(path, f"fndata/{path.relative_to(folder)}")
        for name in extra:
            archive.writestr(name, "<a/>")
    return target


def test_a_zip_reads_like_its_folder(folder, tmp_path):
    packed = release.load_release(f"zip:{zipped(folder, tmp_path / 'release.zip')}")
    assert packed.exemplars == release.load_release(f"folder:{folder}").exemplars and packed.name == "fndata"


@pytest.mark.parametrize("name", ["../outside.xml", "/outside.xml", "a/../../outside.xml", "..\\outside.xml"])
def test_a_zip_that_would_write_outside_is_refused(folder, tmp_path, name):
    with pytest.raises(ValueError, match="outside its folder"):
        release.load_release(f"zip:{zipped(folder, tmp_path / 'release.zip', [name])}")
    assert not list(tmp_path.rglob("outside.xml"))


def claiming(target, size):
    """A zip whose directory says that its one file unpacks to so many bytes."""
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("frameIndex.xml", "<a/>")
    content = bytearray(target.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = size.to_bytes(4, "little")
    target.write_bytes(content)
    return target


def test_a_zip_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(release, "LARGEST", 2**31)
    with pytest.raises(ValueError, match="bomb.zip is refused: it unpacks to 3.0 GiB .* less than 2 GiB"):
        release.check_release(f"zip:{claiming(tmp_path / 'bomb.zip', 3 * 2**30)}")
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(31):
            archive.writestr(f"lu/lu{number}.xml", "")
    monkeypatch.setattr(release, "MOST", 30)
    for read in (release.check_release, release.load_release):
        with pytest.raises(ValueError, match="many.zip is refused: .* in 31 files; .* in 30"):
            read(f"zip:{tmp_path / 'many.zip'}")


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda f: (f / "luIndex.xml").unlink(), "lacks luIndex.xml"),
        (lambda f: [p.unlink() for p in unit_files(f)], "no lexical units"),
        (lambda f: [shutil.rmtree(p) if p.is_dir() else p.unlink() for p in list(f.iterdir())], "no FrameNet release"),
    ],
)
def test_a_release_is_checked_before_it_is_read(folder, tmp_path, monkeypatch, spoil, message):
    monkeypatch.setattr(release, "_read", lambda *arguments: pytest.fail("read"))
    release.check_release("embedded")
    release.check_release(f"folder:{folder}")
    release.check_release(f"zip:{zipped(folder, tmp_path / 'whole.zip')}")
    spoil(folder)
    with pytest.raises((FileNotFoundError, ValueError), match=message):
        release.check_release(f"folder:{folder}")
    if list(folder.rglob("*.xml")):
        with zipfile.ZipFile(zipped(folder, tmp_path / "half.zip"), "a") as archive:
            archive.writestr("fndata/lu/", "")
        with pytest.raises((FileNotFoundError, ValueError), match=message):
            release.check_release(f"zip:{tmp_path / 'half.zip'}")


def test_what_is_missing_is_named_by_the_check(monkeypatch):
    for source, error in (("folder:/nowhere/at/all", FileNotFoundError), ("framenet", ValueError)):
        with pytest.raises(error):
            release.check_release(source)
    release.check_release("nltk")
    monkeypatch.setattr(release, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install nltk"):
        release.check_release("nltk")


def test_a_release_is_known_by_its_content_not_by_its_times(folder, monkeypatch):
    """A changed file is read anew though size and time are the old ones; an unchanged copy is not."""
    before = release.load_release(f"folder:{folder}")
    path = unit_files(folder)[0]
    about, text = path.stat(), path.read_text(encoding="utf-8")
    sentence = before.exemplars[0].text
    path.write_text(text.replace(sentence, sentence.swapcase()), encoding="utf-8")
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert path.stat().st_size == about.st_size
    assert release.load_release(f"folder:{folder}").exemplars[0].text == sentence.swapcase()
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(release, "_read", lambda *arguments: pytest.fail("read again"))
    assert release.load_release(f"folder:{folder}") == before


def test_other_code_reads_anew(folder, monkeypatch):
    release.load_release(f"folder:{folder}")
    monkeypatch.setattr(release.cache, "code_digest", lambda *parts: "other")
    monkeypatch.setattr(release, "_read", lambda *arguments: {"exemplars": [], "core_sets": {}, "problems": []})
    assert release.load_release(f"folder:{folder}").exemplars == ()


def test_what_is_no_zip_is_refused(tmp_path):
    (tmp_path / "release.zip").write_text("no")
    with pytest.raises(ValueError, match="no zip archive"):
        release.load_release(f"zip:{tmp_path / 'release.zip'}")


def test_a_damaged_zip_is_refused(folder, tmp_path):
    target = tmp_path / "release.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "luIndex.xml", "fndata/luIndex.xml")
    content = bytearray(target.read_bytes())
    content[80:200] = bytes(120)
    target.write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        release.load_release(f"zip:{target}")


def test_an_element_of_spaces_is_reported(folder):
    path = unit_files(folder)[0]
    tree = etree.parse(str(path))
    label = tree.find(".//{*}layer[@name='FE']/{*}label[@start]")
    sentence = next(label.iterancestors("{*}sentence"))
    label.set("start", str(sentence.findtext("{*}text").index(" ")))
    label.set("end", label.get("start"))
    tree.write(str(path), xml_declaration=True, encoding="UTF-8")
    assert "nothing but spaces" in release.load_release(f"folder:{folder}").problems[0].what


def test_half_a_release_beside_a_whole_one_does_no_harm(folder, tmp_path):
    (tmp_path / "a" / "lu").mkdir(parents=True)
    shutil.copytree(folder, tmp_path / "b")
    assert release.find_root(tmp_path).name == "b"


def test_entities_are_not_resolved(folder, tmp_path):
    (tmp_path / "secret").write_text("NOTFORYOU")
    path = unit_files(folder)[0]
    text = path.read_text(encoding="utf-8")
    head, rest = text.split("\n", 1)
    spoiled = f'{head}\n<!DOCTYPE lexUnit [<!ENTITY x SYSTEM "file://{tmp_path / "secret"}">]>\n{rest}'
    path.write_text(spoiled.replace("<text>", "<text>&x;", 1), encoding="utf-8")
    assert "NOTFORYOU" not in "".join(exemplar.text for exemplar in release.load_release(f"folder:{folder}").exemplars)


@needs_shared
def test_real_release_equals_nltk_on_300_units(tmp_path):
    """Every exemplar of 300 annotated units: text, target and elements as NLTK's reader has them."""
    import nltk
    from nltk.corpus.reader.framenet import FramenetCorpusReader

    with zipfile.ZipFile(ZIP) as archive:
        names = [name for name in archive.namelist() if name.endswith(".xml")]
        units = [name for name in names if "/lu/lu" in name and archive.getinfo(name).file_size > 8000]
        chosen = random.Random(7).sample(units, 300)
        archive.extractall(tmp_path, [*chosen, *(name for name in names if "/lu/" not in name and "/fulltext/" not in name)])
    root = release.find_root(tmp_path)
    (root / "fulltext").mkdir(exist_ok=True)
    nltk.data.path.append(str(root.parent))
    reader, seen = FramenetCorpusReader(str(root), []), 0
    for name in chosen:
        path = tmp_path / name
        ours, problems = read_unit(path)
        theirs = [
            (sentence, aset)
            for sentence in reader.lu(int(path.stem[2:])).exemplars
            for aset in sentence.annotationSet
            if aset.status != "UNANN" and "Target" in aset
        ]
        assert len(ours) == len(theirs) and all("not marked" in problem.what for problem in problems)
        for mine, (sentence, aset) in zip(ours, theirs, strict=True):
            assert (mine.sentence_id, mine.set_id, mine.text) == (sentence.ID, aset.ID, sentence.text)
            assert [(s.start, s.end) for s in mine.target] == sorted(aset.Target)
            assert [(s.start, s.end, s.name) for s in mine.elements] == sorted(aset.FE[0])
            assert mine.unit == sentence.LU.name and mine.frame == sentence.frame.name
            seen += 1
        frame = reader.frame(ours[0].frame) if ours else None
        if frame:
            assert set(ours[0].core) == {fe.name for fe in frame.FE.values() if fe.coreType == "Core"}
    assert seen > 3000


def exemplar(text, target, *elements, core=("Agent", "Theme")):
    """An exemplar of words: the target's, and (name, words) for each element."""

    def span(name, words):
        start = text.index(words)
        return Span(name, start, start + len(words))

    return Exemplar(
        "see.v",
        1,
        "Seeing",
        1,
        1,
        text,
        (span("Target", target),),
        tuple(sorted((span(*element) for element in elements), key=lambda s: s.start)),
        core,
    )


def kept(exemplar, **rules):
    core_sets = {"Seeing": ("Agent",)}
    sentences, _ = extract(release.Release("test", (exemplar,), core_sets, 1, ()), replace(PAPER, **rules))
    return [span.name for sentence in sentences for spans in sentence.elements for span in spans[:1]]


def test_every_rule_at_its_border():
    near = exemplar(
        "She has seen a big old red house near it .",
        "seen",
        ("Agent", "She"),
        ("Theme", "a big old red house"),
        ("Place", "near it"),
    )
    assert kept(near) == ["Agent"]  # the theme is too long and too near
    assert kept(near, sentence_tokens=11) == ["Agent"] and kept(near, sentence_tokens=10) == []
    assert kept(near, element_tokens=5, nearest=1) == ["Agent", "Theme"]
    assert kept(near, element_tokens=4, nearest=1) == ["Agent"]
    assert kept(near, nearest=3) == []  # "She" is two tokens away
    assert kept(near, scope="sentence") == []
    assert kept(near, core="sets") == ["Agent"]
    far = exemplar(
        "She has often seen it with the old glasses of hers .",
        "seen",
        ("Agent", "She"),
        ("Instrument", "the old glasses of hers"),
    )
    assert kept(far, scope="sentence") == ["Agent"]
    assert kept(far, scope="every element") == []
    # The first "the" stands beside the predicate, the element's own does not.
    twice = exemplar("He saw the dog and then the cat", "saw", ("Theme", "the cat"))
    assert kept(twice) == ["Theme"] and kept(twice, first_occurrence=True) == []
    broken = replace(far, target=(Span("Target", 14, 18), Span("Target", 19, 21)))
    assert kept(broken) == ["Agent"] and kept(broken, unbroken=True) == []


@pytest.mark.parametrize(
    "wrong", [{"core": "both"}, {"scope": "word"}, {"nearest": 0}, {"sentence_tokens": -1}, {"element_tokens": 0}]
)
def test_rules_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Rules(**wrong)


def test_the_funnel_counts_down_to_what_is_kept(mini):
    for rules in frame_links.RULES.values():
        sentences, steps = extract(mini, rules)
        counts = [step.sentences for step in steps]
        assert counts == sorted(counts, reverse=True) and counts[0] == len(mini.exemplars)
        assert counts[-1] == len(sentences) and steps[-1].elements == sum(len(sentence.elements) for sentence in sentences)


def test_differences_one_at_a_time(mini):
    def count(rules):
        return len(extract(mini, rules)[0])

    table = {difference.name: difference for difference in frame_links.one_at_a_time(mini, PAPER, OFFICIAL)}
    assert list(table) == [
        "nearest: 3",
        "core: sets",
        "scope: sentence",
        "scope: every element",
        "unbroken: True",
        "first occurrence: True",
    ]
    first, last = table["nearest: 3"], table["first occurrence: True"]
    assert first.alone == first.together == count(replace(PAPER, nearest=3)) and last.together == count(OFFICIAL)
    assert first.without == count(replace(OFFICIAL, nearest=2))
    assert table["scope: every element"].without == count(replace(OFFICIAL, scope="sentence"))
    assert table["scope: sentence"].without == count(replace(OFFICIAL, scope="link"))


def test_wordpieces_by_offsets():
    offsets = [(0, 0), (0, 2), (2, 5), (6, 9), (0, 0)]  # [CLS] un ##der now [SEP]
    assert wordpieces(offsets, 0, 5) == [1, 2] and wordpieces(offsets, 6, 9) == [3]
    assert wordpieces(offsets, 4, 7) == [2, 3] and wordpieces(offsets, 5, 6) == []


@pytest.fixture(scope="module")
def measured(tmp_path_factory, mini):
    source = parse_model(str(make_bert(tmp_path_factory.mktemp("bert"), layers=2, heads=3, hidden=24)))
    tokenizer = load_tokenizer(source)
    placed, inputs, left_out = place(extract(mini, PAPER)[0], tokenizer)
    assert left_out == 0
    return load_encoder(source), tokenizer, placed, inputs


def test_places_hold_the_annotated_words(measured):
    _, tokenizer, placed, inputs = measured
    for linked, ids in zip(placed, inputs["input_ids"], strict=True):
        text = linked.sentence.exemplar.text
        for positions, spans in (
            (linked.predicate, linked.sentence.target),
            *zip(linked.elements, linked.sentence.elements, strict=True),
        ):
            pieces = tokenizer.convert_ids_to_tokens([ids[position] for position in positions])
            expected = "".join(text[span.start : span.end] for span in spans).replace(" ", "").lower()
            assert "".join(piece.removeprefix("##") for piece in pieces) == expected
        assert min(linked.predicate) > 0 and max(linked.predicate) < linked.length - 1


@pytest.mark.parametrize("direction", ["predicate to element", "element to predicate", "both"])
@pytest.mark.parametrize("pairing", ["product", "zip"])
def test_scores_equal_a_plain_reading_of_the_map(measured, direction, pairing):
    model, tokenizer, placed, inputs = measured
    measurement = FrameLinkAttention(placed, direction, pairing)
    scores = observe(model, make_batches(inputs, tokenizer, 300), {"links": measurement})["links"]
    for index in range(0, len(placed), 17):
        sentence = placed[index]
        (batch,) = make_batches(inputs.select([index]), tokenizer)
        for layer, maps in enumerate(attention_maps(model, batch)):
            for head in range(3):
                best = 0.0
                for element in sentence.elements:
                    pairs = (
                        [(p, e) for p in sentence.predicate for e in element]
                        if pairing == "product"
                        else list(zip(sentence.predicate, element, strict=False))
                    )
                    for p, e in pairs:
                        if direction != "element to predicate":
                            best = max(best, maps[0, head, p, e].item())
                        if direction != "predicate to element":
                            best = max(best, maps[0, head, e, p].item())
                assert scores.actual[index, layer, head] == pytest.approx(best, abs=forward_tolerance(model))


@pytest.mark.parametrize("name", ["RoBERTa", "ALBERT", "ModernBERT"])
def test_words_are_what_the_tokenizer_calls_no_special_token(mini, name):
    """Two special tokens before the words and none behind them, besides each tokenizer's own."""
    from eight_models import model_and_tokenizer
    from tokenizers.processors import TemplateProcessing

    tokenizer = copy.deepcopy(model_and_tokenizer(name)[1])
    sentences = extract(mini, PAPER)[0][:20]
    placed, inputs, _ = place(sentences, tokenizer, max_length=500)
    assert {sentence.special for sentence in placed} == {(1, 1)} and "labels" not in inputs.column_names
    first = tokenizer.cls_token
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{first} {first} $A", special_tokens=[(first, tokenizer.cls_token_id)]
    )
    placed, inputs, _ = place(sentences, tokenizer, max_length=500)
    assert {sentence.special for sentence in placed} == {(2, 0)}
    rows, columns = zip(*FrameLinkAttention(placed, "both", elsewhere="moved")._cells, strict=True)
    assert min(int(cells.min()) for cells in rows + columns) == 2
    assert all(cells.max() < sentence.length for sentence, cells in zip(placed, rows, strict=True))
    assert any(cells.max() == sentence.length - 1 for sentence, cells in zip(placed, rows, strict=True))


def test_moved_cells_keep_their_distances_and_stay_on_words(measured):
    model, tokenizer, placed, inputs = measured
    measurement = FrameLinkAttention(placed, "predicate to element", elsewhere="moved")
    scores = observe(model, make_batches(inputs, tokenizer), {"links": measurement})["links"]
    for index, sentence in list(enumerate(placed))[::9]:
        rows, columns = sentence.pairs("predicate to element")
        used, linked = [*rows, *columns], set(zip(rows, columns, strict=True))
        possible = [
            shift
            for shift in range(-40, 40)
            if min(used) + shift >= 1
            and max(used) + shift <= sentence.length - 2
            and not linked & set(zip(rows + shift, columns + shift, strict=True))
        ]
        assert len(scores.places[index]) == 1 + len(possible) and 0 not in possible
        (batch,) = make_batches(inputs.select([index]), tokenizer)
        maps = attention_maps(model, batch)[1][0]
        for at, shift in enumerate(possible, start=1):
            expected = maps[:, rows + shift, columns + shift].amax(dim=1)
            np.testing.assert_allclose(scores.places[index][at, 1], expected, atol=forward_tolerance(model))


def test_borrowed_cells_are_those_of_sentences_of_the_same_length(measured):
    model, tokenizer, placed, inputs = measured
    measurements = (FrameLinkAttention(placed, "both", elsewhere="borrowed", seed=seed) for seed in (1, 1))
    both = [observe(model, make_batches(inputs, tokenizer), {"links": measurement})["links"] for measurement in measurements]
    for first, again in zip(both[0].places, both[1].places, strict=True):
        np.testing.assert_array_equal(first, again)
    for index, sentence in list(enumerate(placed))[::9]:
        own = set(zip(*sentence.pairs("both"), strict=True))
        (batch,) = make_batches(inputs.select([index]), tokenizer)
        maps = attention_maps(model, batch)[0][0]
        candidates = [other.pairs("both") for other in placed if other.length == sentence.length]
        possible = [
            maps[:, rows, columns].amax(dim=1).numpy()
            for rows, columns in candidates
            if not own & set(zip(rows, columns, strict=True))
        ]
        assert len(both[0].places[index]) == 1 + min(len(possible), 8)
        for borrowed in both[0].places[index][1:, 0]:
            assert any(np.allclose(borrowed, expected, atol=forward_tolerance(model)) for expected in possible)


def test_hits_are_rows_whose_largest_weight_among_words_is_a_link(measured):
    model, tokenizer, placed, inputs = measured
    measurement = FrameLinkAttention(placed, "predicate to element")
    scores = observe(model, make_batches(inputs, tokenizer), {"links": measurement})["links"]
    for index, sentence in list(enumerate(placed))[::9]:
        (batch,) = make_batches(inputs.select([index]), tokenizer)
        linked = set(zip(*sentence.pairs("predicate to element"), strict=True))
        for layer, maps in enumerate(attention_maps(model, batch)):
            for head in range(3):
                words = maps[0, head, :, 1:-1].argmax(dim=1) + 1
                assert scores.hits[index, layer, head] == any((row, int(words[row])) in linked for row, _ in linked)


def test_a_sentence_that_is_cut_off_is_counted(mini):
    tokenizer = load_tokenizer(parse_model("embedded"))
    sentences = extract(mini, PAPER)[0]
    placed, inputs, left_out = place(sentences, tokenizer, max_length=7)
    assert left_out > 0 and len(placed) + left_out == len(sentences) and len(inputs) == len(placed)


def made(actual, others, sentences=60, heads=(2, 3), seed=0):
    """Scores of heads that score ``actual`` on links and ``others`` elsewhere, with noise."""
    rng = np.random.default_rng(seed)
    actual, others = np.broadcast_to(actual, heads), np.broadcast_to(others, heads)
    places = [np.concatenate([actual[None], np.repeat(others[None], rng.integers(2, 8), axis=0)]) for _ in range(sentences)]
    places = tuple(scores + rng.normal(0, 0.1, heads) + rng.normal(0, 0.05, scores.shape) for scores in places)
    return FrameLinkScores(places, np.zeros((sentences, *heads), dtype=bool))


def test_the_matched_test_finds_heads_above_and_below_and_only_those():
    actual = np.full((2, 3), 0.2)
    actual[1, 2], actual[0, 1] = 0.35, 0.1
    found = controls.matched_test(made(actual, 0.2), seed=1)
    assert found.excess[1, 2] == pytest.approx(0.15, abs=0.03) and found.sentences == 60
    assert (found.above < 0.025).sum() == 1 and found.above[1, 2] < 0.01
    assert (found.below < 0.025).sum() == 1 and found.below[0, 1] < 0.01
    np.testing.assert_allclose(made(actual, 0.2).excess.mean(axis=0), found.excess)


def noise(seed, heads=(3, 4)):
    rng = np.random.default_rng(seed)
    return FrameLinkScores(
        tuple(rng.random((rng.integers(2, 8), *heads)) for _ in range(40)), np.zeros((40, *heads), dtype=bool)
    )


def test_the_matched_test_keeps_its_level():
    """Exchangeable places: the smallest corrected p is below 0.05 in about one of twenty cases, on either side."""
    tests = [controls.matched_test(noise(seed), seed=1, draws=200) for seed in range(100)]
    for smallest in ([test.above.min() for test in tests], [test.below.min() for test in tests]):
        assert 0 < np.mean(np.array(smallest) < 0.05) < 0.13


def test_nothing_to_compare_with_is_said():
    with pytest.raises(ValueError, match="second place"):
        controls.matched_test(FrameLinkScores((np.ones((1, 2, 2)),), np.ones((1, 2, 2), dtype=bool)), seed=1)


def test_best_offset_of_constructed_links():
    def at(predicate, element):
        return FramePlaces(None, (predicate,), ((element,),), 12)

    placed = [at(5, 3), at(6, 4), at(4, 2), at(3, 8)]
    offset, score = controls.fixed_offset_baseline(placed, "predicate to element", seed=1)
    assert offset == -2 and score.value == 0.75
    assert controls.fixed_offset_baseline(placed, "element to predicate", seed=1)[0] == 2


def test_top_heads():
    assert controls.top_heads(np.array([[0.1, 0.3], [0.2, 0.4]]), 3) == [(1, 1), (0, 1), (1, 0)]


def planted(encoder, predicates, layer=0, head=4):
    """The encoder with one head by which every token attends to predicates, known by their embedding."""
    size = encoder.config.hidden_size // encoder.config.num_attention_heads
    attention = encoder.encoder.layer[layer].attention.self
    rows = slice(head * size, (head + 1) * size)
    with torch.no_grad():
        encoder.embeddings.word_embeddings.weight[predicates, 0] += 40.0  # survives the normalisation
        for linear in (attention.query, attention.key):
            linear.weight[rows] = 0
            linear.bias[rows] = 0
        attention.query.bias[rows.start] = 30.0
        attention.key.weight[rows.start, 0] = 1.0
    return encoder


def test_a_planted_head_is_found_and_nothing_on_shuffled_labels(mini):
    source = parse_model("embedded")
    tokenizer = load_tokenizer(source)
    placed, inputs, _ = place(extract(mini, PAPER)[0], tokenizer)
    predicates = sorted(
        {ids[position] for sentence, ids in zip(placed, inputs["input_ids"], strict=True) for position in sentence.predicate}
    )
    model = planted(load_encoder(source), predicates)

    def run(places):
        kinds = {kind: FrameLinkAttention(places, "element to predicate", elsewhere=kind) for kind in ("moved", "borrowed")}
        scores = observe(model, make_batches(inputs, tokenizer), kinds)
        return scores["moved"], {kind: controls.matched_test(of_kind, seed=1) for kind, of_kind in scores.items()}

    scores, tests = run(placed)
    means = scores.actual.mean(axis=0)
    assert controls.top_heads(means, 1) == [(0, 4)] and means[0, 4] > np.percentile(means, 99)
    assert scores.hits[:, 0, 4].mean() > 0.9
    for test in tests.values():
        assert test.above[0, 4] < 0.01 and controls.top_heads(test.excess, 1) == [(0, 4)]

    rng = np.random.default_rng(3)
    shuffled = []
    for sentence in placed:  # the same cells at a random one of all their places
        used = [*sentence.predicate, *(position for element in sentence.elements for position in element)]
        shift = int(rng.integers(1 - min(used), sentence.length - 1 - max(used)))
        shuffled.append(
            replace(
                sentence,
                predicate=tuple(p + shift for p in sentence.predicate),
                elements=tuple(tuple(p + shift for p in element) for element in sentence.elements),
            )
        )
    assert (run(shuffled)[1]["moved"].above > 0.05).all()


def test_official_heatmaps_hold_the_papers_two_heads():
    panel = official_heatmaps.panel("framenet")
    assert panel.shape == (12, 12)
    assert controls.top_heads(panel, 2) == [(6, 5), (0, 1)]  # (7, 6) and (1, 2) from 1
    assert panel[6, 5] == pytest.approx(0.209, abs=0.002) and panel[0, 1] == pytest.approx(0.201, abs=0.002)
    for name in official_heatmaps.PANELS:
        assert np.isfinite(official_heatmaps.panel(name)).all()
    with pytest.raises(ValueError, match="unknown panel"):
        official_heatmaps.panel("nouns")


def placed_at(exemplar, names=("Agent",)):
    elements = tuple((span,) for span in exemplar.elements if span.name in names)
    return FramePlaces(
        frame_links.FrameSentence(exemplar, exemplar.target, elements), (3,), tuple((1,) for _ in elements), 9
    )


def test_breakdown_by_role_element_and_frame():
    pronoun = placed_at(exemplar("She has often seen it all .", "seen", ("Agent", "She")))
    noun = placed_at(exemplar("Cats have often seen it all .", "seen", ("Agent", "Cats")))
    after = placed_at(exemplar("It was seen again by her .", "seen", ("Agent", "by her")))
    two = placed_at(
        exemplar("She has often seen the dog .", "seen", ("Agent", "She"), ("Theme", "the dog")), ("Agent", "Theme")
    )
    assert [breakdown.role(place) for place in (pronoun, noun, after)] == list(breakdown.ROLES)
    placed = [pronoun, noun, noun, after, two]
    places = tuple(np.full((3, 1, 1), value) * np.array([2, 1, 1])[:, None, None] for value in (1, 2, 3, 4, 100))
    scores = FrameLinkScores(places, np.zeros((5, 1, 1), dtype=bool))
    rows = {row["element"]: row for row in breakdown.by_role(placed, scores, [(0, 0)], seed=1)}
    assert {name: row["n"] for name, row in rows.items()} == {"pronoun before": 1, "other before": 2, "after": 1}
    assert rows["other before"]["score"] == "few"
    many = breakdown.by_role(placed[1:3] * 5, scores.of([1, 2] * 5), [(0, 0)], seed=1)[1]
    assert many["score"].startswith("5.000") and many["excess"].startswith("+2.500")
    assert breakdown.by_element(placed, scores, [(0, 0)], least=1) == [
        {"frame element": "Agent", "n": 4, "head (1, 1)": "5.000"}
    ]
    assert breakdown.by_frame(placed, scores, [(0, 0)], least=5) == []
    assert [values[0, 0, 0] for values in breakdown.without_pronouns(placed, scores).places] == [4, 6, 8]


def test_reading_works_where_processes_cannot_be_spawned(folder):
    """From standard input there is no module that a spawned process could import."""
    script = (
        f"from bertology_utils.framenet import release\nrelease.FILES_AT_ONCE = 20\n"
        f"print(len(release.load_release('folder:{folder}').exemplars))\n"
    )
    result = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, cwd=ROOT)
    assert result.stdout.strip() == "237", result.stderr[-500:]


def test_nltk_release_from_a_folder_or_packed(folder, tmp_path, monkeypatch):
    import nltk

    expected = release.load_release(f"folder:{folder}").exemplars
    monkeypatch.setattr(nltk.data, "find", lambda name: nltk.data.FileSystemPathPointer(str(folder)))
    assert release.load_release("nltk").exemplars == expected
    packed = zipped(folder, tmp_path / "framenet_v17.zip")
    monkeypatch.setattr(nltk.data, "path", [*nltk.data.path, str(tmp_path)])  # NLTK opens nothing outside of these
    monkeypatch.setattr(nltk.data, "find", lambda name: nltk.data.ZipFilePathPointer(str(packed), "fndata/"))
    assert release.load_release("nltk").exemplars == expected


def test_nltk_without_a_network_says_what_to_do(monkeypatch):
    import nltk

    def missing(name):
        raise LookupError(name)

    monkeypatch.setattr(nltk.data, "find", missing)
    monkeypatch.setattr(nltk, "download", lambda *arguments, **keywords: False)
    with pytest.raises(ConnectionError, match="folder:PATH"):
        release.load_release("nltk")
