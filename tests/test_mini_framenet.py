"""The mini-FrameNet: each sentence passes the paper's filters or fails one, as intended."""

from collections import Counter

import pytest
from conftest import ROOT

from corpora_generator import mini_framenet

# Of the paper's §4.2: at most 12 tokens, core elements of at most 3, at least 2 tokens apart.
LONGEST_SENTENCE, WIDEST_ELEMENT, NEAREST = 12, 3, 2


def positions(exemplar, span):
    """The tokens that a span of characters covers; single blanks part tokens."""
    before, inside = exemplar.text[: span.start], exemplar.text[span.start : span.end]
    assert before[-1:] in ("", " ") and exemplar.text[span.end :][:1] in ("", " ")
    first = before.count(" ")
    return range(first, first + inside.count(" ") + 1)


def failures(frame, exemplar):
    """The paper's filters that the sentence fails, whatever its tag says."""
    (target,) = positions(exemplar, exemplar.target)
    core = [positions(exemplar, span) for span in exemplar.elements if span.name in frame.core]
    far = {tokens: min(abs(at - target) for at in tokens) >= NEAREST for tokens in core}
    narrow = [tokens for tokens in core if len(tokens) <= WIDEST_ELEMENT]
    failed = {"long"} if exemplar.text.count(" ") + 1 > LONGEST_SENTENCE else set()
    if not narrow:
        failed.add("wide")
    if not any(far.values()):
        failed.add("near")
    elif narrow and not any(far[tokens] for tokens in narrow):
        failed |= {"near", "wide"}
    return failed


def test_each_sentence_passes_or_fails_as_it_says_and_the_data_card_has_the_counts():
    frames = mini_framenet.frames()
    units = [(frame, unit) for frame in frames for unit in frame.units]
    for frame, unit in units:
        for exemplar in unit.exemplars:
            failed = failures(frame, exemplar)
            assert failed == {exemplar.expected} - {"pass"}, (frame.name, exemplar.text)
    tags = Counter(exemplar.expected for _, unit in units for exemplar in unit.exemplars)
    card = (ROOT / "corpora_generator" / "README.md").read_text(encoding="utf-8")
    assert (
        f"{tags.total()} sentences of {len(units)} lexical units in {len(frames)} frames;"
        f" {tags['pass']} of them pass" in card
    )
    assert (
        f"{tags['long']} are too long, {tags['wide']} have core elements that are too wide,"
        f" {tags['near']} have core elements too close" in card
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pass [Buyer Ann] *buys* [Shop here] .", "line 4: Commerce_buy lists no element 'Shop'"),
        ("pass [Buyer Ann] buys .", "line 4: a sentence needs one target"),
        ("good [Buyer Ann] *buys* .", "line 4: 'good' is none of frame, core, coreset"),
    ],
)
def test_a_line_that_breaks_the_notation_is_named(tmp_path, monkeypatch, line, message):
    source = tmp_path / "frames.txt"
    source.write_text(f"frame Commerce_buy\ncore Buyer Goods\nlu buy.v\n{line}\n")
    monkeypatch.setattr(mini_framenet, "SOURCE", source)
    with pytest.raises(ValueError, match=message):
        mini_framenet.frames.__wrapped__()
