"""The comparison of a new run with an earlier one: what it lets pass, what it does not, and what it says."""

import json

import matplotlib.pyplot as plt
import pytest
from conftest import contents

from bertology_utils import compare
from bertology_utils.compare import picture_difference
from bertology_utils.run import publish


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
def test_only_a_picture_that_is_drawn_otherwise_is_another_and_replaces_the_earlier_one(
    tmp_path, change, message
):
    old, new = draw(tmp_path / "old"), draw(tmp_path / "new", **change)
    before = contents(old)
    reasons = publish(new, old)
    assert contents(old) == (before if message is None else contents(new))
    assert [reason.split(": ")[0] for reason in reasons] == ["picture"] * bool(message)
    assert all(message in reason for reason in reasons)
    (old / "picture.png").write_bytes(b"")
    damaged = picture_difference(old / "picture.png", new / "picture.png")
    assert damaged.startswith("cannot be compared")


def test_what_differs_from_the_committed_run_is_named(tmp_path, capsys, monkeypatch):
    figures, fresh = tmp_path / "figures", tmp_path / "fresh"
    monkeypatch.chdir(tmp_path)

    def tell(path, value, verdict="✓"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            json.dumps({"claims": {"a": {"verdict": verdict}}, "said": {"gain": value}})
        )

    draw(figures / "8_trial")
    tell(tmp_path / "results" / "e5" / "pages" / "8_trial.json", 0.5)
    draw(fresh / "8_trial", 0.3 + 2e-5, pad=0.101)  # another machine's canvas
    tell(fresh / "8_trial" / "e5.json", 0.5001)
    assert compare.main(figures, fresh) == 0
    draw(fresh / "8_trial", colour="C1")
    tell(fresh / "8_trial" / "e5.json", 0.6, "✗")
    draw(fresh / "9_new")
    assert compare.main(figures, fresh) == 1
    lines = capsys.readouterr().out.splitlines()[1:]
    assert lines[0].startswith("8_trial/picture: the picture changed by ")
    assert lines[1].endswith("8_trial.json: gain is 0.6, was 0.5")
    assert lines[2].endswith("8_trial.json: the claims have changed")
    assert lines[3] == "9_new/picture: new"
