"""What the mini-FrameNet is written from; test_framenet.py reads it, and filters it as intended."""

from collections import Counter

import pytest
from conftest import ROOT

from corpora_generator import mini_framenet


def test_the_data_card_has_the_counts():
    frames = mini_framenet.frames()
    units = [unit for frame in frames for unit in frame.units]
    tags = Counter(exemplar.expected for unit in units for exemplar in unit.exemplars)
    card = (ROOT / "corpora_generator" / "README.md").read_text(encoding="utf-8")
    sizes = f"{tags.total()} sentences of {len(units)} lexical units in {len(frames)} frames"
    assert f"{sizes}; {tags['pass']} of them pass" in card
    wide = f"{tags['wide']} have core elements that are too wide"
    assert f"{tags['long']} are too long, {wide}, {tags['near']} have core elements too" in card


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
