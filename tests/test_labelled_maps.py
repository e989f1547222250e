"""The hand-labelled attention maps: shape, coverage, agreement, refusals."""

import shutil
from collections import Counter

import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from bertology_utils.patterns import labelled_maps
from bertology_utils.patterns.labelled_maps import FOLDER, PATTERNS, load_maps


def part(name):
    return [one for one in load_maps() if one.part == name]


def test_what_they_cover():
    assert len(part("natural")) == 240 and len(part("enriched")) == 160
    for maps in (load_maps(), part("natural")):
        assert {one.layer for one in maps} == set(range(6)) and {one.head for one in maps} == set(range(12))
        assert len({one.task for one in maps}) == 4
        assert min(len(one.weights) for one in maps) < 12 and max(len(one.weights) for one in maps) > 90
        assert {len(one.separators) for one in maps} == {1, 2}
    # Drawn evenly, so that shares need no weights.
    assert set(Counter((one.task, one.layer) for one in part("natural")).values()) == {10}


def test_no_input_twice():
    assert len({(one.task, one.example) for one in load_maps()}) == len(load_maps())


def test_every_pattern_occurs():
    assert set(Counter(one.pattern for one in part("natural"))) == set(PATTERNS)
    assert min(Counter(one.pattern for one in load_maps()).values()) >= 30


def test_two_annotators_agree_and_the_card_says_how_far():
    both = [(one.first, one.second) for one in load_maps()]
    kappa = cohen_kappa_score(*zip(*both, strict=True))
    same = sum(first == second for first, second in both)
    assert kappa > 0.7
    card = (FOLDER / "README.md").read_text()
    assert f"{same} of {len(both)}" in card and f"κ = {kappa:.2f}" in card
    for one in load_maps():
        # Only a disagreement can have been settled otherwise than the first annotator had it.
        assert one.pattern == one.first or one.second != one.first
    for name in ("natural", "enriched"):
        counts = Counter(one.pattern for one in part(name))
        assert f"| {name} part | " + " | ".join(str(counts[pattern]) for pattern in PATTERNS) + " |" in card
    table = confusion_matrix(*zip(*both, strict=True), labels=PATTERNS)
    for pattern, row in zip(PATTERNS, table, strict=True):
        assert f"| {pattern.replace('+', ' + ')} | " + " | ".join(map(str, row)) + " |" in card
    for label, share in (("first", "91.5"), ("second", "95.8")):
        right = sum(getattr(one, label) == one.pattern for one in load_maps())
        assert f"{100 * right / len(load_maps()):.1f}" == share and share in card


def copied(tmp_path):
    for name in ("labels.csv", "maps.safetensors"):
        shutil.copy(FOLDER / name, tmp_path)
    return tmp_path / "labels.csv"


def test_labels_without_maps_are_refused(tmp_path):
    labels = copied(tmp_path)
    labels.write_text("\n".join(labels.read_text().splitlines()[:-1]) + "\n")
    with pytest.raises(ValueError, match=r"do not hold the same maps: \['399'\]"):
        load_maps(tmp_path)


@pytest.mark.parametrize(
    "change, message",
    [
        ((",vertical,vertical,", ",wavy,vertical,"), "unknown pattern of map .* 'wavy'; choose one of: vertical, diagonal"),
        (("natural", "chosen"), "unknown part of map .* 'chosen'; choose one of: natural, enriched"),
    ],
)
def test_unknown_labels_are_refused(tmp_path, change, message):
    labels = copied(tmp_path)
    text = labels.read_text()
    assert change[0] in text
    labels.write_text(text.replace(*change, 1))
    with pytest.raises(ValueError, match=message):
        load_maps(tmp_path)


def test_a_map_of_another_size_is_refused(tmp_path):
    labels = copied(tmp_path)
    row = labels.read_text().splitlines()[1].split(",")
    wrong = [*row[:6], str(int(row[6]) + 1), *row[7:]]
    labels.write_text(labels.read_text().replace(",".join(row), ",".join(wrong)))
    with pytest.raises(ValueError, match=f"map {row[0]} is no"):
        load_maps(tmp_path)


def test_groups_keep_a_head_together():
    groups = Counter(one.group for one in load_maps())
    assert max(groups.values()) > 1 and len(groups) <= 72
    assert labelled_maps.PARTS == ("natural", "enriched")
