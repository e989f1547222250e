"""The comparison of a new run with an earlier one: what it lets pass, what it does not, and what it says."""

import re

import matplotlib.pyplot as plt
import pytest
from conftest import ROOT, write_results
from nbval.plugin import get_sanitize_patterns

from bertology_utils import compare
from bertology_utils.compare import picture_difference
from bertology_utils.run import publish, publish_results

# --- printed texts: numbers have their own comparison ---


def sanitised(text):
    """What nbval compares of a printed text."""
    patterns = (ROOT / "tests" / "printed_numbers.cfg").read_text(encoding="utf-8")
    for regex, replacement in get_sanitize_patterns(patterns):
        text = re.sub(regex, replacement, text)
    return text


SAME = [
    ("MRPC  0.81 [0.74, 0.88]", "MRPC 0.8 [0.7, 0.9]"),
    ("p = 0.01", "p < 0.01"),
    ("43 of 72", "44 of 72"),
    ("64 [62, 65]", "65 [61, 65]"),
    ("88%", "89%"),
    ("9 % of", "10 % of"),
    ("−1.5", "+1.4"),
    ("1e-05", "2.5e-05"),
    ("score\n-----", "score\n------"),
]
OTHERS = [
    ("6 of 7 tasks", "5 of 7 tasks"),
    ("agrees", "disagrees"),
    ("(3, 11)", "(3, 12)"),
    ("320 rows", "321 rows"),
    ("layer_1.png", "layer_2.png"),
    ("1.0 2.0", "1.0"),
]


def test_printed_decimals_may_move_and_words_and_heads_may_not():
    for old, new in [*SAME, *OTHERS]:
        assert (sanitised(old) == sanitised(new)) == ((old, new) in SAME), (old, new)


# --- figures, and what a run publishes ---


@plt.style.context("default")  # another test may have set the suite's
def draw(folder, value=0.3, title="a title", colour="C0", marker="s", cmap="viridis", pad=0.1):
    """A folder of one picture; ``pad`` is the margin in inches."""
    folder.mkdir(parents=True, exist_ok=True)
    figure, ax = plt.subplots(figsize=(6, 4))
    ax.plot([0, value, 1], [0, 1, 0.4], color=colour, marker=marker)
    ax.imshow([[value, 0.2], [0.3, 0.4]], extent=(0, 1, 0, 1), vmin=0, vmax=1, cmap=cmap)
    ax.set_title(title)
    for kind in ("png", "pdf"):
        figure.savefig(folder / f"picture.{kind}", bbox_inches="tight", pad_inches=pad)
    plt.close(figure)
    return folder


CHANGED = "the picture changed by "


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": 0.3 + 2e-4}, None),
        ({"title": "a litle"}, CHANGED),
        ({"marker": "o"}, CHANGED),
        ({"colour": "#3b84bf"}, CHANGED),  # 6 % lighter
        ({"value": 0.35}, CHANGED),
        ({"cmap": "magma_r"}, CHANGED),
        ({"pad": 0.11}, " pixels, was "),
    ],
)
def test_a_picture_that_is_drawn_otherwise_is_another_and_rounding_is_not(
    tmp_path, change, message
):
    old, new = draw(tmp_path / "old"), draw(tmp_path / "new", **change)
    reason = picture_difference(old / "picture.png", new / "picture.png")
    assert reason is None if message is None else message in reason


def test_a_picture_that_cannot_be_read_is_another(tmp_path):
    old, new = draw(tmp_path / "old"), draw(tmp_path / "new")
    (old / "picture.png").write_bytes(b"")
    reason = picture_difference(old / "picture.png", new / "picture.png")
    assert reason.startswith("cannot be compared")


@pytest.mark.parametrize(("change", "kept"), [({"value": 0.30002}, 2), ({"title": "another"}, 0)])
def test_a_run_replaces_only_pictures_that_really_changed(tmp_path, change, kept):
    old = draw(tmp_path / "old")
    before = {file.name: file.read_bytes() for file in old.iterdir()}
    changes = publish(draw(tmp_path / "new", **change), old)
    same = [name for name, content in before.items() if (old / name).read_bytes() == content]
    assert len(same) == kept and len(before) == 2
    assert [change.split(": ")[0] for change in changes] == ["picture"] * (kept == 0)
    assert sorted(file.name for file in old.iterdir()) == sorted(before), "nothing half-written"


def results(path, value=0.5):
    """A results file with one number."""
    row = {"what": "answer", "value": value, "unit": "share", "tolerance": 0.001}
    return write_results(path.parent, [row]).replace(path)


def test_results_are_replaced_only_where_a_number_moved_by_more_than_its_tolerance(tmp_path):
    old = results(tmp_path / "8_trial.json")
    before = old.read_bytes()
    assert publish_results(results(tmp_path / "new" / "results.json", 0.5001), old) == []
    assert old.read_bytes() == before
    (change,) = publish_results(results(tmp_path / "new" / "results.json", 0.6), old)
    assert change.startswith("8_trial.json: answer: value 0.5 became 0.6")
    assert old.read_bytes() != before and not list((tmp_path / "new").iterdir())


def test_what_differs_from_the_committed_run_is_named(tmp_path, capsys):
    figures, reference, fresh = (tmp_path / name for name in ("figures", "reference", "fresh"))
    draw(figures / "8_trial")
    results(reference / "8_trial.json")
    draw(fresh / "8_trial", 0.3 + 2e-5, pad=0.101)  # another machine's canvas
    results(fresh / "8_trial" / "results.json", 0.5001)
    assert compare.main(figures, reference, fresh) == 0
    draw(fresh / "8_trial", colour="C1")
    results(fresh / "8_trial" / "results.json", 0.6)
    draw(fresh / "9_new")
    assert compare.main(figures, reference, fresh) == 1
    lines = capsys.readouterr().out.splitlines()[1:]
    assert lines[0].startswith("8_trial/picture: the picture changed by ")
    assert lines[1].startswith("8_trial/results.json: answer: value 0.5 became 0.6")
    assert lines[2] == "9_new/picture: new"
