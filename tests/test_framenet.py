"""FrameNet: reading releases, the paper's filters, scores of heads and their controls."""

import copy
import random
import re
import shutil
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import SHARED, loaded, make_bert, needs_shared
from made_up import many
from plain import replay
from precision import forward_tolerance

from bertology_utils.attention import attention_maps, observe
from bertology_utils.attention.batches import make_batches
from bertology_utils.corpora import FRAMENET
from bertology_utils.framenet import comparisons, frame_links, release
from bertology_utils.framenet.frame_links import PAPER, extract
from bertology_utils.framenet.measure import FrameLinkAttention, FrameLinkScores, FramePlaces, place
from bertology_utils.framenet.release import Exemplar, Span, read_unit
from bertology_utils.statistics import in_both, many_test
from bertology_utils.statistics.permutation import heads_by_size
from bertology_utils.verdicts import FAILS, HOLDS, UNDECIDED, WEIGHT, judge
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


def test_the_miniature_is_read_as_it_was_written_and_filters_keep_what_was_written_to_pass(mini):
    written = [
        (frame, unit, exemplar)
        for frame in mini_framenet.frames()
        for unit in frame.units
        for exemplar in unit.exemplars
    ]
    assert not mini.problems and len(mini.exemplars) == len(written)
    by_place = {
        (exemplar.frame, exemplar.unit, exemplar.text): exemplar for exemplar in mini.exemplars
    }
    kept = {sentence.exemplar.text for sentence in extract(mini, PAPER)[0]}
    for frame, unit, exemplar in written:
        read = by_place[frame.name, unit.name, exemplar.text]
        assert [(s.start, s.end) for s in read.target] == [
            (exemplar.target.start, exemplar.target.end)
        ]
        assert {(s.name, s.start, s.end) for s in read.elements} == {
            (s.name, s.start, s.end) for s in exemplar.elements
        }
        assert set(read.core) == set(frame.core)
        assert set(mini.core_sets.get(frame.name, ())) == {
            name for names in frame.coresets for name in names
        }
        assert (exemplar.text in kept) == (exemplar.expected == "pass"), exemplar.text


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('(name="Target" start=")', r"\g<1>9", "spans characters"),
        ('(name="Target" start="[0-9]+" end=")[0-9]+', r"\g<1>0", "spans characters"),
        ('(name="Target") start=', r"\1 begin=", "target is not marked"),
        (' end="', ' until="', "starts and does not end"),
        (
            'name="[A-Z][a-z]+" start="0" end="[0-9]+"',
            'name="Agent" start="{0}" end="{0}"',
            "nothing but spaces",
        ),
    ],
)
def test_odd_annotations_are_left_out_and_reported(folder, old, new, message):
    before = release.load_release(f"folder:{folder}")
    path = unit_files(folder)[0]
    text = path.read_text(encoding="utf-8")
    spoiled = re.sub(
        old, new.format(before.exemplars[0].text.index(" ")) if "{" in new else new, text, count=1
    )
    assert spoiled != text
    path.write_text(spoiled, encoding="utf-8")
    after = release.load_release(f"folder:{folder}")
    (problem,) = after.problems
    assert problem.file == path.name and message in problem.what
    assert len(after.exemplars) == len(before.exemplars) - 1


def test_a_broken_file_costs_itself_alone(folder):
    before = release.load_release(f"folder:{folder}")
    path = unit_files(folder)[0]
    lost = len(read_unit(path).exemplars)
    path.write_bytes(path.read_bytes()[:-200])
    after = release.load_release(f"folder:{folder}")
    assert [problem.file for problem in after.problems] == [
        path.name
    ] and "cannot be read" in after.problems[0].what
    assert len(after.exemplars) == len(before.exemplars) - lost


def test_units_and_frames_of_an_index_without_a_file_are_told(folder):
    before = release.load_release(f"folder:{folder}")
    paths = unit_files(folder)
    for path in [*paths[5:], *sorted((folder / "frame").glob("*.xml"))[1:]]:
        path.unlink()
    after = release.load_release(f"folder:{folder}")
    units, frames = (problem.what for problem in after.problems)
    assert units == f"{len(paths) - 5} of {len(paths)} units that luIndex.xml names have no file"
    assert re.fullmatch(r"[0-9]+ of [0-9]+ frames that frameIndex.xml names have no file", frames)
    assert after.units == 5 and 0 < len(after.exemplars) < len(before.exemplars)


@pytest.mark.parametrize("copy_first", [True, False])
def test_a_unit_counts_once(folder, copy_first):
    """Whatever the second file's name, and whichever comes first."""
    before = release.load_release(f"folder:{folder}")
    path = unit_files(folder)[0]
    second = path.with_name(f"{path.stem} (1).xml" if copy_first else "lu99999999.xml")
    shutil.copy(path, second)
    after = release.load_release(f"folder:{folder}")
    assert (after.exemplars, after.units) == (before.exemplars, before.units)
    unit = path.stem.removeprefix("lu")
    told = f"is a second file of unit {unit}: {path.name}"
    assert after.problems == ((second.name, told),)


def without_namespace(path):
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(' xmlns="http://framenet.icsi.berkeley.edu"', ""), "utf-8")


@pytest.mark.parametrize("name", ["frameIndex.xml", "luIndex.xml", "lu/*.xml"])
def test_xml_without_framenets_namespace_is_refused_with_what_is_wanted(folder, tmp_path, name):
    for path in folder.glob(name):
        without_namespace(path)
    packed = zipped(folder, tmp_path / "release.zip")
    for read in (release.check_release, release.load_release):
        for source in (f"folder:{folder}", f"zip:{packed}"):
            wanted = '<[a-zA-Z]+ xmlns="http://framenet.icsi.berkeley.edu">'
            with pytest.raises(ValueError, match=f"is not of a FrameNet release.*{wanted}"):
                read(source)


def test_one_unit_without_the_namespace_costs_itself_alone(folder):
    path = unit_files(folder)[1]
    without_namespace(path)
    (problem,) = release.load_release(f"folder:{folder}").problems
    assert problem.file == path.name and "it has no <lexUnit xmlns=" in problem.what


def test_a_release_without_a_sentence_is_refused(folder):
    for path in unit_files(folder)[1:]:
        path.unlink()
    path = unit_files(folder)[0]
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(
        ValueError, match=f"holds no annotated sentence .{path.name}: cannot be read"
    ):
        release.load_release(f"folder:{folder}")


def zipped(folder, target, extra=()):
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.rglob("*.xml")):
            archive.write(path, f"fndata/{path.relative_to(folder)}")
        for name in extra:
            archive.writestr(name, "<a/>")
    return target


@pytest.mark.parametrize(
    "name", ["../outside.xml", "/outside.xml", "a/../../outside.xml", "..\\outside.xml"]
)
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
    with pytest.raises(
        ValueError, match="bomb.zip is refused: it unpacks to 3.0 GiB .* less than 2 GiB"
    ):
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
        (lambda f: shutil.rmtree(f / "frame"), "lacks frame"),
        (lambda f: [p.unlink() for p in unit_files(f)], "no lexical units"),
        (
            lambda f: [shutil.rmtree(p) if p.is_dir() else p.unlink() for p in list(f.iterdir())],
            "no FrameNet release",
        ),
    ],
)
def test_a_release_is_checked_before_it_is_read(folder, tmp_path, monkeypatch, spoil, message):
    monkeypatch.setattr(release, "_read", lambda *arguments: pytest.fail("read"))
    for whole in ("embedded", f"folder:{folder}", f"zip:{zipped(folder, tmp_path / 'whole.zip')}"):
        release.check_release(whole)
    spoil(folder)
    for read in (release.check_release, release.load_release):
        with pytest.raises((FileNotFoundError, ValueError), match=message):
            read(f"folder:{folder}")
    if list(folder.rglob("*.xml")):
        with zipfile.ZipFile(zipped(folder, tmp_path / "half.zip"), "a") as archive:
            archive.writestr("fndata/lu/", "")
        with pytest.raises((FileNotFoundError, ValueError), match=message):
            release.check_release(f"zip:{tmp_path / 'half.zip'}")


def test_a_damaged_zip_is_refused(folder, tmp_path):
    target = tmp_path / "release.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "luIndex.xml", "fndata/luIndex.xml")
    content = bytearray(target.read_bytes())
    content[80:200] = bytes(120)
    for written, message in ((content, "damaged"), (b"no", "no zip archive")):
        target.write_bytes(written)
        with pytest.raises(ValueError, match=message):
            release.load_release(f"zip:{target}")


def test_entities_are_not_resolved(folder, tmp_path):
    (tmp_path / "secret").write_text("NOTFORYOU")
    path = unit_files(folder)[0]
    text = path.read_text(encoding="utf-8")
    head, rest = text.split("\n", 1)
    spoiled = (
        f'{head}\n<!DOCTYPE lexUnit [<!ENTITY x SYSTEM "file://{tmp_path / "secret"}">]>\n{rest}'
    )
    path.write_text(spoiled.replace("<text>", "<text>&x;", 1), encoding="utf-8")
    assert "NOTFORYOU" not in "".join(
        exemplar.text for exemplar in release.load_release(f"folder:{folder}").exemplars
    )


@needs_shared
def test_real_release_equals_nltk_on_100_units(tmp_path):
    """Every exemplar of 100 annotated units: text, target and elements as NLTK's reader has them."""
    import nltk
    from nltk.corpus.reader.framenet import FramenetCorpusReader

    with zipfile.ZipFile(ZIP) as archive:
        names = [name for name in archive.namelist() if name.endswith(".xml")]
        units = [
            name for name in names if "/lu/lu" in name and archive.getinfo(name).file_size > 8000
        ]
        chosen = random.Random(7).sample(units, 100)
        archive.extractall(
            tmp_path,
            [*chosen, *(name for name in names if "/lu/" not in name and "/fulltext/" not in name)],
        )
    root = release.find_root(tmp_path)
    (root / "fulltext").mkdir(exist_ok=True)
    nltk.data.path.append(str(root.parent))
    reader, seen = FramenetCorpusReader(str(root), []), 0
    for name in chosen:
        path = tmp_path / name
        _, _, ours, problems = read_unit(path)
        theirs = [
            (sentence, aset)
            for sentence in reader.lu(int(path.stem[2:])).exemplars
            for aset in sentence.annotationSet
            if aset.status != "UNANN" and "Target" in aset
        ]
        assert len(ours) == len(theirs) and all(
            "not marked" in problem.what for problem in problems
        )
        for mine, (sentence, aset) in zip(ours, theirs, strict=True):
            assert (mine.sentence_id, mine.set_id, mine.text) == (
                sentence.ID,
                aset.ID,
                sentence.text,
            )
            assert [(s.start, s.end) for s in mine.target] == sorted(aset.Target)
            assert [(s.start, s.end, s.name) for s in mine.elements] == sorted(aset.FE[0])
            assert mine.unit == sentence.LU.name and mine.frame == sentence.frame.name
            seen += 1
        frame = reader.frame(ours[0].frame) if ours else None
        if frame:
            assert set(ours[0].core) == {
                fe.name for fe in frame.FE.values() if fe.coreType == "Core"
            }
    assert seen > 1000


def exemplar(text, target, *elements, core=("Agent", "Theme")):
    """An exemplar of words: the target's, and (name, words) for each element."""

    def span(name, words):
        start = text.index(words)
        return Span(name, start, start + len(words))

    spans = tuple(sorted((span(*element) for element in elements), key=lambda s: s.start))
    return Exemplar("see.v", 1, "Seeing", 1, 1, text, (span("Target", target),), spans, core)


def kept(exemplar, **rules):
    core_sets = {"Seeing": ("Agent",)}
    sentences, _ = extract(
        release.Release("test", (exemplar,), core_sets, 1, ()), replace(PAPER, **rules)
    )
    return [
        span.name for sentence in sentences for spans in sentence.elements for span in spans[:1]
    ]


def test_every_rule_at_its_border():
    elements = ("Agent", "She"), ("Theme", "a big old red house"), ("Place", "near it")
    near = exemplar("She has seen a big old red house near it .", "seen", *elements)
    assert kept(near) == ["Agent"]  # the theme is too long and too near
    assert kept(near, sentence_tokens=11) == ["Agent"] and kept(near, sentence_tokens=10) == []
    assert kept(near, element_tokens=5, nearest=1) == ["Agent", "Theme"]
    assert kept(near, element_tokens=4, nearest=1) == ["Agent"]
    assert kept(near, nearest=3) == []  # "She" is two tokens away
    assert kept(near, scope="sentence") == []
    assert kept(near, core="sets") == ["Agent"]
    elements = ("Agent", "She"), ("Instrument", "the old glasses of hers")
    far = exemplar("She has often seen it with the old glasses of hers .", "seen", *elements)
    assert kept(far, scope="sentence") == ["Agent"]
    assert kept(far, scope="every element") == []
    # The first "the" stands beside the predicate, the element's own does not.
    twice = exemplar("He saw the dog and then the cat", "saw", ("Theme", "the cat"))
    assert kept(twice) == ["Theme"] and kept(twice, first_occurrence=True) == []
    broken = far._replace(target=(Span("Target", 14, 18), Span("Target", 19, 21)))
    assert kept(broken) == ["Agent"] and kept(broken, unbroken=True) == []


def test_the_funnel_counts_down_to_what_is_kept(mini):
    for rules in frame_links.RULES.values():
        sentences, steps = extract(mini, rules)
        counts = [step.sentences for step in steps]
        assert counts == sorted(counts, reverse=True) and counts[0] == len(mini.exemplars)
        assert counts[-1] == len(sentences) and steps[-1].elements == sum(
            len(sentence.elements) for sentence in sentences
        )


@pytest.fixture(scope="module")
def measured(tmp_path_factory, mini):
    model, tokenizer = loaded(
        make_bert(tmp_path_factory.mktemp("bert"), layers=2, heads=3, hidden=24)
    )
    placed, inputs, left_out = place(extract(mini, PAPER)[0], tokenizer)
    assert left_out == 0
    return model, tokenizer, placed, inputs


def test_places_hold_the_annotated_words(measured):
    _, tokenizer, placed, inputs = measured
    for linked, ids in zip(placed, inputs["input_ids"], strict=True):
        text = linked.sentence.exemplar.text
        for positions, spans in (
            (linked.predicate, linked.sentence.target),
            *zip(linked.elements, linked.sentence.elements, strict=True),
        ):
            pieces = tokenizer.convert_ids_to_tokens([ids[position] for position in positions])
            expected = (
                "".join(text[span.start : span.end] for span in spans).replace(" ", "").lower()
            )
            assert "".join(piece.removeprefix("##") for piece in pieces) == expected
        assert min(linked.predicate) > 0 and max(linked.predicate) < linked.length - 1


@pytest.mark.parametrize("direction", ["predicate to element", "element to predicate", "both"])
@pytest.mark.parametrize("pairing", ["product", "zip"])
def test_scores_and_hits_equal_a_plain_reading_of_the_map(measured, direction, pairing):
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
                assert scores.actual[index, layer, head] == pytest.approx(
                    best, abs=forward_tolerance(model)
                )
                linked = set(zip(*sentence.pairs(direction, pairing), strict=True))
                most = maps[0, head, :, 1:-1].argmax(dim=1) + 1  # among words
                assert scores.hits[index, layer, head] == any(
                    (row, int(most[row])) in linked for row, _ in linked
                )


@pytest.mark.parametrize("name", ["RoBERTa", "ALBERT", "ModernBERT"])
def test_words_are_what_the_tokenizer_calls_no_special_token(mini, name):
    """Two special tokens before the words and none behind them, besides each tokenizer's own."""
    from eight_models import model_and_tokenizer
    from tokenizers.processors import TemplateProcessing

    tokenizer = copy.deepcopy(model_and_tokenizer(name)[1])
    sentences = extract(mini, PAPER)[0][:20]
    placed, inputs, _ = place(sentences, tokenizer, max_length=500)
    assert {sentence.special for sentence in placed} == {
        (1, 1)
    } and "labels" not in inputs.column_names
    first = tokenizer.cls_token
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{first} {first} $A", special_tokens=[(first, tokenizer.cls_token_id)]
    )
    placed, inputs, _ = place(sentences, tokenizer, max_length=500)
    assert {sentence.special for sentence in placed} == {(2, 0)}
    rows, columns = zip(*FrameLinkAttention(placed, "both", elsewhere="moved")._cells, strict=True)
    assert min(int(cells.min()) for cells in rows + columns) == 2
    assert all(cells.max() < sentence.length for sentence, cells in zip(placed, rows, strict=True))
    assert any(
        cells.max() == sentence.length - 1 for sentence, cells in zip(placed, rows, strict=True)
    )


@pytest.mark.parametrize(
    "elsewhere, direction", [("moved", "predicate to element"), ("borrowed", "both")]
)
def test_other_places_are_the_links_moved_or_those_of_sentences_of_the_same_length(
    measured, elsewhere, direction
):
    model, tokenizer, placed, inputs = measured
    measurement = FrameLinkAttention(placed, direction, elsewhere=elsewhere, seed=1)
    scores = observe(model, make_batches(inputs, tokenizer), {"links": measurement})["links"]
    for index, sentence in list(enumerate(placed))[::9]:
        rows, columns = sentence.pairs(direction)
        used, own = [*rows, *columns], set(zip(rows, columns, strict=True))
        if elsewhere == "moved":
            shifts = range(1 - min(used), sentence.length - 1 - max(used))
            others = [(rows + shift, columns + shift) for shift in shifts]
        else:
            others = [other.pairs(direction) for other in placed if other.length == sentence.length]
        others = [cells for cells in others if not own & set(zip(*cells, strict=True))]
        (batch,) = make_batches(inputs.select([index]), tokenizer)
        maps = attention_maps(model, batch)[1][0]
        possible = [maps[:, rows, columns].amax(dim=1).numpy() for rows, columns in others]
        found = scores.places[index][1:, 1]
        assert len(found) == (len(possible) if elsewhere == "moved" else min(len(possible), 8))
        for at, score in enumerate(found):
            expected = possible[at : at + 1] if elsewhere == "moved" else possible
            assert any(np.allclose(score, one, atol=forward_tolerance(model)) for one in expected)


def made(actual, others, sentences=60, heads=(2, 3), seed=0):
    """Scores of heads that score ``actual`` on links and ``others`` elsewhere, with noise."""
    rng = np.random.default_rng(seed)
    actual, others = np.broadcast_to(actual, heads), np.broadcast_to(others, heads)
    places = [
        np.concatenate([actual[None], np.repeat(others[None], rng.integers(2, 8), axis=0)])
        for _ in range(sentences)
    ]
    places = tuple(
        scores + rng.normal(0, 0.1, heads) + rng.normal(0, 0.05, scores.shape) for scores in places
    )
    return FrameLinkScores(places, np.zeros((sentences, *heads), dtype=bool))


def test_the_matched_test_finds_heads_above_and_below_and_only_those():
    actual = np.full((2, 3), 0.2)
    actual[1, 2], actual[0, 1] = 0.35, 0.1
    found = comparisons.matched_test(made(actual, 0.2), seed=1)
    assert found.excess[1, 2] == pytest.approx(0.15, abs=0.03) and found.sentences == 60
    assert (found.above < 0.025).sum() == 1 and found.above[1, 2] < 0.01
    assert (found.below < 0.025).sum() == 1 and found.below[0, 1] < 0.01
    np.testing.assert_allclose(made(actual, 0.2).excess.mean(axis=0), found.excess)


def noise(seed, heads=(3, 4)):
    rng = np.random.default_rng(seed)
    return FrameLinkScores(
        tuple(rng.random((rng.integers(2, 8), *heads)) for _ in range(40)),
        np.zeros((40, *heads), dtype=bool),
    )


def test_the_matched_test_keeps_its_level():
    """Exchangeable places: the smallest corrected p is below 0.05 in about one of twenty cases, on either side."""
    tests = [comparisons.matched_test(noise(seed), seed=1, draws=200) for seed in range(100)]
    for smallest in ([test.above.min() for test in tests], [test.below.min() for test in tests]):
        assert 0 < np.mean(np.array(smallest) < 0.05) < 0.13


def planted(encoder, predicates, layer=0, head=4):
    """The encoder with one head by which every token attends to predicates, known by their embedding."""
    size = encoder.config.hidden_size // encoder.config.num_attention_heads
    attention = encoder.encoder.layer[layer].attention.self
    rows = slice(head * size, (head + 1) * size)
    with torch.no_grad():
        encoder.embeddings.word_embeddings.weight[predicates, 0] += (
            40.0  # survives the normalisation
        )
        for linear in (attention.query, attention.key):
            linear.weight[rows] = 0
            linear.bias[rows] = 0
        attention.query.bias[rows.start] = 30.0
        attention.key.weight[rows.start, 0] = 1.0
    return encoder


def test_a_planted_head_is_found_and_nothing_on_shuffled_labels(mini):
    encoder, tokenizer = loaded("embedded")
    placed, inputs, _ = place(extract(mini, PAPER)[0][::3], tokenizer)
    predicates = sorted(
        {
            ids[position]
            for sentence, ids in zip(placed, inputs["input_ids"], strict=True)
            for position in sentence.predicate
        }
    )
    # sentences where no other word is a predicate elsewhere: the head knows words, not sentences
    clear = [
        row
        for row, (sentence, ids) in enumerate(zip(placed, inputs["input_ids"], strict=True))
        if not set(predicates)
        & {one for position, one in enumerate(ids) if position not in sentence.predicate}
    ]
    placed, inputs = [placed[row] for row in clear], inputs.select(clear)
    assert len(placed) >= 100
    model = planted(encoder, predicates)

    def run(places):
        kinds = {
            kind: FrameLinkAttention(places, "element to predicate", elsewhere=kind)
            for kind in ("moved", "borrowed")
        }
        scores = observe(model, make_batches(inputs, tokenizer), kinds)
        return scores["moved"], {
            kind: comparisons.matched_test(of_kind, seed=1) for kind, of_kind in scores.items()
        }

    scores, tests = run(placed)
    means = scores.actual.mean(axis=0)
    assert heads_by_size(means)[:1] == [(0, 4)] and means[0, 4] > np.percentile(means, 99)
    assert scores.hits[:, 0, 4].mean() > 0.9
    for test in tests.values():
        assert test.above[0, 4] < 0.01 and heads_by_size(test.excess)[:1] == [(0, 4)]

    rng = np.random.default_rng(3)
    shuffled = []
    for sentence in placed:  # the same cells at a random one of all their places
        used = [
            *sentence.predicate,
            *(position for element in sentence.elements for position in element),
        ]
        shift = int(rng.integers(1 - min(used), sentence.length - 1 - max(used)))
        elements = tuple(tuple(p + shift for p in element) for element in sentence.elements)
        shuffled.append(
            replace(
                sentence, predicate=tuple(p + shift for p in sentence.predicate), elements=elements
            )
        )
    assert (run(shuffled)[1]["moved"].above > 0.05).all()


def test_published_heatmaps_hold_the_papers_two_heads():
    panel = comparisons.published_panel("framenet")
    assert panel.shape == (12, 12)
    assert heads_by_size(panel)[:2] == [(6, 5), (0, 1)]  # (7, 6) and (1, 2) from 1
    assert panel[6, 5] == pytest.approx(0.209, abs=0.002) and panel[0, 1] == pytest.approx(
        0.201, abs=0.002
    )
    for name in comparisons.PANELS:
        assert np.isfinite(comparisons.published_panel(name)).all()
    with pytest.raises(ValueError, match="unknown panel"):
        comparisons.published_panel("nouns")


@pytest.mark.parametrize("z, outcome", [(5, HOLDS), (-5, FAILS), (0, UNDECIDED)])
def test_the_largest_excess_and_the_highest_heads_are_judged_by_the_test_of_all_heads(z, outcome):
    assert judge("frame-links", {"": comparisons.largest_excess(many(z), -0.2)}).outcome == outcome
    assert (
        judge("frame-links", {"": comparisons.largest_excess(many(5), 0.5)}).outcome == UNDECIDED
    ), "random weights do"
    found = {
        kind: comparisons.tested_head(many(of), (0, 0))
        for kind, of in (("moved", z), ("borrowed", 5))
    }
    assert judge("frame-moved", found).outcome == outcome


def test_a_head_that_looks_at_certain_words_follows_no_links():
    """Excess over other sentences' places alone is passed by a head in which every token looks at the linked word."""
    rng = np.random.default_rng(0)
    placed, maps = [], []
    for _ in range(80):
        predicate, element = rng.choice(np.arange(1, 9), 2, replace=False)
        sentence = FramePlaces(
            sentence=None, predicate=(int(predicate),), elements=((int(element),),), length=10
        )
        popular, follows = np.full((10, 10), 0.05), np.full((10, 10), 1 / 10)
        popular[:, element] = 0.55
        follows[predicate] = 0.05
        follows[predicate, element] = 0.55
        placed.append(sentence)
        maps.append(np.stack([popular, follows])[None])  # (layers, heads, tokens, tokens)

    def test(centred):
        links = FrameLinkAttention(
            placed, "predicate to element", elsewhere="borrowed", seed=1, centred=centred
        )
        return many_test(replay(links, maps).excess, WEIGHT, 1)

    plain, centred = test(False), test(True)
    assert (plain.above[0] < 0.01).all(), "as before: both heads pass"
    both = in_both(plain, centred)
    assert both.above[0, 1] < 0.01 and both.above[0, 0] > 0.5
    number = comparisons.largest_excess(both, 0.0).number
    assert number.startswith("(1, 2) ") and "1 of 2 heads above" in number
    only = both[:, :1]
    assert judge("frame-links", {"": comparisons.largest_excess(only, 0.0)}).outcome == FAILS


def test_complements_are_told_by_the_release(folder):
    """The miniature annotates no grammatical functions; a file with them is read, null instantiations aside."""
    path = unit_files(folder)[0]
    first = read_unit(path).exemplars[0]
    assert set(first.functions) == {""}
    text, span = path.read_text(encoding="utf-8"), first.elements[0]
    labels = f'<layer rank="1" name="GF"><label name="Dep" start="{span.start}" end="{span.end - 1}"/></layer>'
    path.write_text(
        re.sub(r'<layer rank="1" name="GF" ?/>', labels, text, count=1), encoding="utf-8"
    )
    functions = read_unit(path).exemplars[0].functions
    assert functions == ("Dep", *[""] * (len(first.elements) - 1))

    def sentence(*functions):
        exemplar = first._replace(
            elements=(Span("Theme", 0, 2), Span("Goal", 3, 5)), functions=functions
        )
        return frame_links.FrameSentence(exemplar, first.target, ((exemplar.elements[1],),))

    found = comparisons.only_complements(
        [sentence("Ext", "Dep"), sentence("Dep", "Obj"), sentence("", "")]
    )
    assert [one.exemplar.functions for one in found] == [("Ext", "Dep")]


def test_the_second_head_above_the_third():
    scores = np.random.default_rng(0).normal([[0.3, 0.2, 0.1]], 0.01, (200, 1, 3))
    apart = comparisons.second_above_third(scores, 1)
    assert (
        apart.value == pytest.approx((scores[:, 0, 1] - scores[:, 0, 2]).mean()) and apart.n == 200
    )
    published = comparisons.published_second_above_third()
    assert published.value == pytest.approx(0.071, abs=0.001)
    assert published.error == pytest.approx(0.0163, abs=1e-4), (
        "of two readings, each anywhere within 0.02"
    )


def test_nltk_release_from_a_folder_or_packed(folder, tmp_path, monkeypatch):
    import nltk

    expected = release.load_release(f"folder:{folder}").exemplars
    monkeypatch.setattr(
        nltk.data, "find", lambda name: nltk.data.FileSystemPathPointer(str(folder))
    )
    assert release.load_release("nltk").exemplars == expected
    packed = zipped(folder, tmp_path / "framenet_v17.zip")
    monkeypatch.setattr(
        nltk.data, "path", [*nltk.data.path, str(tmp_path)]
    )  # NLTK opens nothing outside of these
    monkeypatch.setattr(
        nltk.data, "find", lambda name: nltk.data.ZipFilePathPointer(str(packed), "fndata/")
    )
    assert release.load_release("nltk").exemplars == expected


def test_nltk_without_a_network_says_what_to_do(monkeypatch):
    import nltk

    def missing(name):
        raise LookupError(name)

    monkeypatch.setattr(nltk.data, "find", missing)
    monkeypatch.setattr(nltk, "download", lambda *arguments, **keywords: False)
    with pytest.raises(ConnectionError, match="folder:PATH"):
        release.load_release("nltk")
