"""The mini-FrameNet: what it holds, its filters, and NLTK's reading of it."""

import hashlib
import zipfile
from collections import Counter
from itertools import combinations

from bertology_utils.corpora import FRAMENET
from corpora_generator import mini_framenet

DIGEST = "ccfefff7022a9a6d391409328f7fd2c9692dee6ac4f1947cacb28ab2f8c3be64"
# Of the paper's §4.2: at most 12 tokens, core elements of at most 3, at least 2 tokens apart.
LONGEST_SENTENCE, WIDEST_ELEMENT, NEAREST = 12, 3, 2


def exemplars():
    return [
        (frame, unit, e)
        for frame in mini_framenet.frames()
        for unit in frame.units
        for e in unit.exemplars
    ]


def tokens(exemplar):
    """The tokens' character spans; single blanks part them."""
    spans, start = [], 0
    for token in exemplar.text.split(" "):
        spans.append((start, start + len(token)))
        start += len(token) + 1
    return spans


def positions(exemplar, span):
    inside = [
        i
        for i, (start, end) in enumerate(tokens(exemplar))
        if start < span.end and span.start < end
    ]
    assert (
        tokens(exemplar)[inside[0]][0] == span.start and tokens(exemplar)[inside[-1]][1] == span.end
    )
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


def test_each_sentence_passes_or_fails_as_it_says():
    for frame, unit, exemplar in exemplars():
        assert failures(frame, exemplar) == {exemplar.expected} - {"pass"}, (
            frame.name,
            unit.name,
            exemplar.text,
        )
    tags = Counter(exemplar.expected for _, _, exemplar in exemplars())
    assert min(tags[tag] for tag in ("long", "wide", "near")) >= 15


def passing():
    return [(frame, unit, e) for frame, unit, e in exemplars() if e.expected == "pass"]


def test_sentences_are_enough_and_varied():
    """Enough to tell two heads apart; many frames, parts of speech, distances and both directions."""
    kept = passing()
    assert len(kept) >= 440
    of_frames = Counter(frame.name for frame, _, _ in kept)
    assert len(of_frames) >= 90 and max(of_frames.values()) <= 0.03 * len(kept)
    assert {unit.name[-1] for _, unit, _ in kept} == {"v", "n", "a"}
    far = Counter(
        distance
        for frame, _, exemplar in kept
        for width, distance in links(frame, exemplar)
        if width <= WIDEST_ELEMENT and abs(distance) >= NEAREST
    )
    assert max(far.values()) <= 0.25 * far.total() and len(far) >= 12
    assert (
        0.5 <= sum(number for distance, number in far.items() if distance < 0) / far.total() <= 0.65
    )


def test_no_sentence_is_another_with_words_exchanged():
    def runs(exemplar, length):
        words = exemplar.text.lower().split()
        return set(zip(*(words[start:] for start in range(length)), strict=False))

    every = [exemplar for _, _, exemplar in exemplars()]
    fours = Counter(run for exemplar in every for run in runs(exemplar, 4))
    assert max(fours.values()) <= 3, fours.most_common(1)
    for one, other in combinations([(exemplar.text, runs(exemplar, 3)) for exemplar in every], 2):
        assert len(one[1] & other[1]) <= 0.6 * min(len(one[1]), len(other[1])), (one[0], other[0])


def test_bytes_are_pinned():
    digest = hashlib.sha256()
    with zipfile.ZipFile(FRAMENET) as archive:
        for name in sorted(name for name in archive.namelist() if name.endswith(".xml")):
            digest.update(name.removeprefix("mini/").encode() + archive.read(name))
    assert digest.hexdigest() == DIGEST
