"""The mini-FrameNet: what it holds, its filters, and NLTK's reading of it."""

import hashlib
import zipfile
from collections import Counter

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


def test_each_sentence_passes_or_fails_as_it_says():
    for frame, unit, exemplar in exemplars():
        assert failures(frame, exemplar) == {exemplar.expected} - {"pass"}, (frame.name, unit.name, exemplar.text)
    tags = Counter(exemplar.expected for _, _, exemplar in exemplars())
    assert min(tags[tag] for tag in ("long", "wide", "near")) >= 15


def test_bytes_are_pinned():
    digest = hashlib.sha256()
    with zipfile.ZipFile(FRAMENET) as archive:
        for name in sorted(name for name in archive.namelist() if name.endswith(".xml")):
            digest.update(name.removeprefix("mini/").encode() + archive.read(name))
    assert digest.hexdigest() == DIGEST
