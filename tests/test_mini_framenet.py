"""The mini-FrameNet: what it holds, its filters, and NLTK's reading of it."""

import hashlib
import itertools
import zipfile
from collections import Counter

import pytest

from bertology_utils.corpora import FRAMENET
from corpora_generator import mini_framenet

DIGEST = "40523bd92e37c290c7018f3df37dca3b95f1203264d155e444d673e2e4c6f5c4"
# Of the paper's §4.2: at most 12 tokens, core elements of at most 3, at least 2 tokens apart.
LONGEST_SENTENCE, WIDEST_ELEMENT, NEAREST = 12, 3, 2


def exemplars():
    return [(frame, unit, e) for frame in mini_framenet.frames() for unit in frame.units for e in unit.exemplars]


def tokens(exemplar):
    """The tokens' character spans; single blanks part them."""
    spans, start = [], 0
    for token in exemplar.text.split(" "):
        spans.append((start, start + len(token)))
        start += len(token) + 1
    return spans


def positions(exemplar, span):
    inside = [i for i, (start, end) in enumerate(tokens(exemplar)) if start < span.end and span.start < end]
    assert tokens(exemplar)[inside[0]][0] == span.start and tokens(exemplar)[inside[-1]][1] == span.end
    return inside


def links(frame, exemplar):
    """(width, signed distance) of every expressed core element; negative before the target."""
    (target,) = positions(exemplar, exemplar.target)
    found = []
    for span in exemplar.elements:
        where = positions(exemplar, span)
        if span.name in frame.core:
            nearest = min(where, key=lambda i: abs(i - target))
            found.append((len(where), nearest - target))
    return found


def failures(frame, exemplar):
    """The paper's filters that the sentence fails, whatever its tag says."""
    found = links(frame, exemplar)
    failed = {"long"} if len(tokens(exemplar)) > LONGEST_SENTENCE else set()
    narrow = [distance for width, distance in found if width <= WIDEST_ELEMENT]
    if not narrow:
        failed.add("wide")
    if not any(abs(distance) >= NEAREST for _, distance in found):
        failed.add("near")
    if narrow and "near" not in failed and not any(abs(distance) >= NEAREST for distance in narrow):
        failed |= {"near", "wide"}
    return failed


def counting():
    """Signed distances of the links that pass all three filters."""
    return [
        distance
        for frame, _, e in exemplars()
        if not failures(frame, e)
        for width, distance in links(frame, e)
        if width <= WIDEST_ELEMENT and abs(distance) >= NEAREST
    ]


def test_sizes():
    everything = exemplars()
    assert len(everything) >= 150 and len(mini_framenet.frames()) >= 40
    assert len({e.text for _, _, e in everything}) == len(everything)
    assert sum(not failures(frame, e) for frame, _, e in everything) >= 100


def test_each_sentence_passes_or_fails_as_it_says():
    for frame, unit, exemplar in exemplars():
        assert failures(frame, exemplar) == {exemplar.expected} - {"pass"}, (frame.name, unit.name, exemplar.text)
    tags = Counter(exemplar.expected for _, _, exemplar in exemplars())
    assert min(tags[tag] for tag in ("long", "wide", "near")) >= 15


def test_elements_stand_before_and_after_at_many_distances():
    distances = counting()
    assert 0.4 < sum(distance < 0 for distance in distances) / len(distances) < 0.6
    spread = Counter(abs(distance) for distance in distances)
    assert set(spread) == set(range(2, 9)) and min(spread.values()) >= 3
    assert sum(count for distance, count in spread.items() if distance >= 4) > len(distances) / 4


def test_annotation_is_sound():
    for frame, _, exemplar in exemplars():
        spans = sorted([*exemplar.elements, exemplar.target], key=lambda span: span.start)
        assert all(before.end < after.start for before, after in itertools.pairwise(spans)), exemplar.text
        overt = [span.name for span in exemplar.elements]
        null = [name for name, _ in exemplar.nulls]
        assert len({*overt, *null}) == len(overt) + len(null), exemplar.text
        assert any(name in frame.core for name in overt), exemplar.text
        assert exemplar.text.isascii() and exemplar.text[-1] in ".?!"


def test_openings_vary():
    first = Counter(e.text.split()[0].lower() for _, _, e in exemplars())
    assert first.most_common(1)[0][1] < 0.25 * len(exemplars())


def test_a_bad_line_is_named(tmp_path, monkeypatch):
    source = tmp_path / "mini.txt"
    for line, message in {
        "pass [Buyer Ann] will *buy* [Price it] .": "lists no element 'Price'",
        "pass [Buyer Ann] will buy it .": "one target",
        "maybe [Buyer Ann] will *buy* it .": "'maybe' is none of frame",
        "pass [Buyer Ann] will *buy* . {Goods gone}": "DNI, INI, CNI",
        "pass [Buyer Ann] will *buy* . {Goods}": "belongs to no",
        "pass [ Buyer Ann] will *buy* it .": "belongs to no",
        "other Seller( Place": "neither NAME nor",
        "coreset Buyer Price": "core elements only",
    }.items():
        source.write_text(f"frame Commerce_buy\ncore Buyer Goods\nlu buy.v\n{line}\n")
        monkeypatch.setattr(mini_framenet, "SOURCE", source)
        mini_framenet.frames.cache_clear()
        with pytest.raises(ValueError, match=f"mini.txt, line 4: .*{message}"):
            mini_framenet.frames()
    mini_framenet.frames.cache_clear()


def test_nltk_reads_what_the_source_says(tmp_path, monkeypatch):
    import nltk
    from nltk.corpus.reader.framenet import FramenetCorpusReader

    with zipfile.ZipFile(FRAMENET) as archive:
        archive.extractall(tmp_path)
    # NLTK opens nothing outside its data path.
    monkeypatch.setattr(nltk.data, "path", [*nltk.data.path, str(tmp_path)])
    indexes = [f"{name}.xml" for name in ("frRelation", "frameIndex", "fulltextIndex", "luIndex", "semTypes")]
    reader = FramenetCorpusReader(str(tmp_path / "mini"), indexes)

    frames = mini_framenet.frames()
    assert len(reader.frames()) == len(frames)
    assert len(reader.lus()) == sum(len(frame.units) for frame in frames)
    assert len(reader.exemplars()) == len(exemplars())
    for frame in frames:
        read = reader.frame(frame.name)
        assert {name: element.coreType for name, element in read.FE.items()} == frame.elements
        declared = [tuple(element.name for element in group) for group in read.FEcoreSets]
        assert declared == list(frame.coresets)
        assert list(read.lexUnit) == [unit.name for unit in frame.units]
        for unit in frame.units:
            assert len(read.lexUnit[unit.name].exemplars) == len(unit.exemplars)
            for got, exemplar in zip(read.lexUnit[unit.name].exemplars, unit.exemplars, strict=True):
                assert got.text == exemplar.text and got.frame.name == frame.name
                assert got.Target == [(exemplar.target.start, exemplar.target.end)]
                overt, null = got.FE
                assert overt == [(span.start, span.end, span.name) for span in exemplar.elements]
                assert null == dict(exemplar.nulls)
    assert "Seller" in str(reader.frame("Commerce_buy")) and str(reader.exemplars()[0])


def test_bytes_are_pinned():
    digest = hashlib.sha256()
    with zipfile.ZipFile(FRAMENET) as archive:
        for name in sorted(name for name in archive.namelist() if name.endswith(".xml")):
            digest.update(name.removeprefix("mini/").encode() + archive.read(name))
    assert digest.hexdigest() == DIGEST
