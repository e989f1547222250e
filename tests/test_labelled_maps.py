"""The hand-labelled attention maps: shape, coverage, agreement, refusals."""

import shutil
from collections import Counter

import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from bertology_utils.patterns.labels import FOLDER, PATTERNS, load_maps


def part(name):
    return [labelled for labelled in load_maps() if labelled.part == name]


def test_what_they_cover():
    assert len(part("natural")) == 240 and len(part("enriched")) == 160
    for maps in (load_maps(), part("natural")):
        assert {labelled.layer for labelled in maps} == set(range(6))
        assert {labelled.head for labelled in maps} == set(range(12))
        assert len({labelled.task for labelled in maps}) == 4
        assert min(len(labelled.weights) for labelled in maps) < 12 and max(len(labelled.weights) for labelled in maps) > 90
        assert {len(labelled.separators) for labelled in maps} == {1, 2}
    # Drawn evenly, so that shares need no weights.
    assert set(Counter((labelled.task, labelled.layer) for labelled in part("natural")).values()) == {10}
    assert len({(labelled.task, labelled.example) for labelled in load_maps()}) == len(load_maps()), "no input twice"
    assert len({labelled.group for labelled in load_maps()}) <= 72
    assert set(Counter(labelled.pattern for labelled in part("natural"))) == set(PATTERNS)
    assert min(Counter(labelled.pattern for labelled in load_maps()).values()) >= 30


def test_two_annotators_agree_and_the_card_says_how_far():
    both = [(labelled.first, labelled.second) for labelled in load_maps()]
    kappa = cohen_kappa_score(*zip(*both, strict=True))
    same = sum(first == second for first, second in both)
    assert kappa > 0.7
    card = (FOLDER / "README.md").read_text()
    assert f"{same} of {len(both)}" in card and f"κ = {kappa:.2f}" in card
    for labelled in load_maps():
        # Only a disagreement can have been settled otherwise than the first annotator had it.
        assert labelled.pattern == labelled.first or labelled.second != labelled.first
    for name in ("natural", "enriched"):
        counts = Counter(labelled.pattern for labelled in part(name))
        assert f"| {name} part | " + " | ".join(str(counts[pattern]) for pattern in PATTERNS) + " |" in card
    table = confusion_matrix(*zip(*both, strict=True), labels=PATTERNS)
    for pattern, row in zip(PATTERNS, table, strict=True):
        assert f"| {pattern.replace('+', ' + ')} | " + " | ".join(map(str, row)) + " |" in card
    for label, share in (("first", "91.5"), ("second", "95.8")):
        right = sum(getattr(labelled, label) == labelled.pattern for labelled in load_maps())
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
