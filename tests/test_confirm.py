"""The confirmatory study: its rules are frozen, and it repeats the exploratory one on other rows."""

import dataclasses
import json
import re
import shutil
import subprocess

import pytest
from conftest import load_script, write_results

from bertology_utils import verdicts
from bertology_utils.glue import TASKS
from bertology_utils.record import EVIDENCE, Record
from bertology_utils.run import find_notebooks
from bertology_utils.settings import resolve
from bertology_utils.statistics import Estimate
from bertology_utils.verdicts import CLAIMS, FAILS, HOLDS, UNDECIDED, UNTESTABLE, judge, mark_of
from docs import evidence
from docs.pages import renewed

EVERY_NOTEBOOK = find_notebooks()
NOTEBOOKS = (1, 3, 4, 5, 7, 9)
# What the study ran; its notebooks compute on measurements now, and RUNS has them no longer.
FORMER = (
    ("confirm", "1 5", {"seed": "101", "trainings": "2"}),
    ("confirm", "3", {"seed": "101", "trainings": "2", "sweep_examples": "-1"}),
    ("confirm", "4", {"seed": "101"}),
    ("confirm", "9", {"seed": "101", "sweep_examples": "-1"}),
    ("confirm", "7", {"seed": "101", "max_examples": "100"}),
)
DRIFT = "3_finetuning_drift"


def change(monkeypatch, name, **entries):
    """Another table of the claim in claims.toml."""
    monkeypatch.setitem(CLAIMS, name, dataclasses.replace(CLAIMS[name], **entries))


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A checkout's folder of results, with frozen rules."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "bertology-utils"\n')
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path)
    evidence.freeze(tmp_path / "results", NOTEBOOKS, "c0ffee")
    return tmp_path / "results"


def study(results, *judged, folder="confirm", notebook=DRIFT):
    """Results of a study with these verdicts."""
    path = write_results(results / "made", [], notebook)
    content = json.loads(path.read_text())
    content["verdicts"] = [dataclasses.asdict(one) for one in judged]
    content["settings"] = {"protocol": "paper"}
    (results / folder).mkdir(exist_ok=True)
    (results / folder / f"{notebook}.json").write_text(json.dumps(content))


def test_only_claims_that_rows_of_glue_decide_are_frozen(results):
    frozen = verdicts.read_frozen(results)
    assert frozen.commit == "c0ffee"
    assert {"repeat-heads", "last-layers", "random-heterogeneous"} <= frozen.rules.keys()
    others = {"classifier", "frames-rank", "frame-links", "panels-rank", "heads-gone"}
    assert not others & frozen.rules.keys()


@pytest.mark.parametrize(
    "entries", [{"least": 0.03}, {"tasks": ("mrpc",)}, {"needs": ()}, {"rule": "each below"}]
)
def test_a_changed_rule_is_refused_and_named_before_anything_runs(
    results, monkeypatch, capsys, entries
):
    change(monkeypatch, "last-layers", **entries)
    made = []
    monkeypatch.setattr(evidence, "RUNS", (*evidence.RUNS, *FORMER))
    monkeypatch.setattr(evidence, "find_notebooks", lambda: EVERY_NOTEBOOK)
    monkeypatch.setattr(evidence, "command_line", lambda call: made.append(call) or 0)
    assert evidence.main(["--confirm", "fresh", "--only", "3,4"]) == 2 and not made
    differs = "differ from those frozen in c0ffee: last-layers; restore them in claims.toml"
    assert differs in capsys.readouterr().err
    # Where it is not asked for, the study of the others begins without it.
    assert evidence.main(["--confirm", "fresh"]) == 0
    studied = [call[call.index("--only") + 1] for call in made if "results/confirm" in call]
    assert set(studied) == {"1,5", "4", "9", "7"}
    assert re.search(f"leaves out notebook 3: .*{differs}", capsys.readouterr().out)
    study(results, judge("last-layers-gain", {"": Estimate(0.5, 0.01, 320)}))
    with pytest.raises(ValueError, match="frozen in c0ffee: last-layers;"):
        verdicts.read_confirmed(results, "3")


def test_a_rule_of_a_notebook_that_was_not_run_may_change_and_is_no_longer_frozen(
    results, monkeypatch
):
    study(results, judge("last-layers", {"": Estimate(0.5, 0.01, 320)}))
    change(monkeypatch, "norm-cls", least=0.03)
    frozen = verdicts.read_frozen(results)
    assert "norm-cls" not in frozen.rules and "last-layers" in frozen.rules
    with pytest.raises(ValueError, match="frozen in c0ffee: norm-cls;"):
        verdicts.read_frozen(results, [7])


def test_other_words_are_no_other_rule(results, monkeypatch):
    change(monkeypatch, "last-layers", text="Layers 5 and 6 change most", paper="all")
    assert "last-layers" in verdicts.read_frozen(results).rules


def test_a_confirmatory_study_needs_frozen_rules_that_can_be_read(tmp_path, capsys):
    with pytest.raises(ValueError, match="needs frozen rules: .*--freeze"):
        verdicts.read_frozen(tmp_path)
    (tmp_path / "confirm").mkdir()
    (tmp_path / "confirm/frozen.toml").write_text("commit = ")
    with pytest.raises(ValueError, match=r"frozen.toml cannot be read"):
        verdicts.read_frozen(tmp_path)


def test_verdicts_by_another_rule_are_refused_and_unfrozen_claims_left_out(results, monkeypatch):
    found = {"": Estimate(0.5, 0.01, 320)}
    study(results, judge("last-layers-gain", found), judge("classifier", found))
    assert list(verdicts.read_confirmed(results, "3")) == [("last-layers-gain", "this run")]
    assert verdicts.read_confirmed(results, "4") is None
    with monkeypatch.context() as patch:
        change(patch, "last-layers-gain", least=0.2)
        judged = judge("last-layers-gain", found)
    study(results, judged)
    with pytest.raises(ValueError, match="other rules .* last-layers-gain; renew it: .* ONLY=3"):
        verdicts.read_confirmed(results, "3")


def test_rules_are_not_frozen_anew_once_there_are_results(results):
    evidence.freeze(results, NOTEBOOKS, "c0ffee2")
    assert verdicts.read_frozen(results).commit == "c0ffee2"
    study(results)
    with pytest.raises(ValueError, match="has results already"):
        evidence.freeze(results, NOTEBOOKS, "c0ffee3")
    assert verdicts.read_frozen(results).commit == "c0ffee2"


def test_rules_are_frozen_in_a_commit(results, capsys):
    root, claims = results.parent, results.parent / "bertology_utils/claims.toml"
    assert evidence.main(["--freeze"]) == 2
    assert "frozen in a commit, which needs git and a clone" in capsys.readouterr().err
    if shutil.which("git") is None:
        pytest.skip("git is not here")

    def git(*words):
        options = "-c", "user.name=a", "-c", "user.email=a@example.org"
        call = ["git", "-C", str(root), *options, *words]
        return subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip()

    claims.parent.mkdir()
    claims.write_text("least = 1")
    git("init")
    assert evidence.main(["--freeze"]) == 2
    git("add", "bertology_utils")
    git("commit", "-m", "rules")
    assert evidence.main(["--freeze"]) == 0
    assert verdicts.read_frozen(results).commit == git("rev-parse", "HEAD")
    claims.write_text("least = 2")
    assert evidence.main(["--freeze"]) == 2
    assert "claims.toml is not committed" in capsys.readouterr().err


def test_without_fresh_rows_nothing_is_confirmed(monkeypatch):
    monkeypatch.setattr(evidence, "RUNS", (*evidence.RUNS, *FORMER))
    assert not [
        call
        for call in evidence.calls(evidence.read_options(["--glue", "old"]))
        if "results/confirm" in call
    ]


# Its rows


def test_rows_to_confirm_with_occur_in_nothing_that_explores(tmp_path, monkeypatch):
    script = load_script("glue_folder")
    source, target = tmp_path / "glue", tmp_path / "laid_out"
    for task, (train, dev, *_) in script.TASKS.items():
        (source / task).mkdir(parents=True)
        for name in filter(None, (train, dev)):
            rows = [f"{name} {number}\t0" for number in range(40)]
            (source / task / f"{name}.tsv").write_text("\n".join(["sentence\tlabel", *rows, ""]))
    smaller = {task: (*names, 10) for task, (*names, _) in script.TASKS.items()}
    monkeypatch.setattr(script, "TASKS", smaller)
    monkeypatch.setattr(script, "QQP_DEV", 10)
    script.write(source, target)

    def rows(folder, pattern):
        (path,) = folder.glob(pattern)
        return path.read_text().splitlines()[1:]

    for task in smaller:
        explore, confirm_ = target / "explore" / task, target / "confirm" / task
        seen = rows(explore, "train.tsv") + rows(explore, "dev*.tsv")
        fresh = rows(confirm_, "dev*.tsv")
        assert len(fresh) == 10 and not set(fresh) & set(seen), task
        assert rows(confirm_, "train.tsv") == rows(explore, "train.tsv"), task
        assert len(seen) + 10 == (40 if task == "QQP" else 80), "no row is lost"


# What it says of the exploratory study


@pytest.mark.parametrize(
    ("exploratory", "confirmatory", "mark"),
    [
        (FAILS, FAILS, "confirmed"),
        (HOLDS, FAILS, "contradicted"),
        (HOLDS, UNDECIDED, "not confirmed"),
        (FAILS, UNDECIDED, "not confirmed"),
        (UNTESTABLE, FAILS, "decided: does not hold"),
        (UNDECIDED, UNDECIDED, "still undecided"),
        (HOLDS, UNTESTABLE, "–"),
    ],
)
def test_marks(exploratory, confirmatory, mark):
    assert mark_of(exploratory, confirmatory) == mark


def made_up(name, value, error=0.01):
    """A verdict on a claim by a rule about estimates."""
    return judge(name, {TASKS["mrpc"]: Estimate(value, error, 320)}, unit="gain")


PAGE = """\
<!-- confirmation: all -->
<!-- end -->
<!-- confirmation: sum -->
<!-- end -->
<!-- verdicts: 3 -->
<!-- end -->
<!-- controls: 3 -->
<!-- end -->
"""


@pytest.fixture
def page(results):
    """A page of a checkout whose notebooks judge nothing but what the test says."""
    for number in {claim.notebook for claim in CLAIMS.values()}:
        folder = EVIDENCE.get(str(number), "glue")
        study(results, folder=folder, notebook=f"{number}_other" if number != 3 else DRIFT)
    study(
        results,
        made_up("last-layers", 0.5),
        made_up("last-layers-gain", -0.5),
        made_up("pretraining-helps", 0.01),
        made_up("random-start-layers", 0.5),
        folder="glue",
    )
    return lambda: renewed(PAGE, results.parent)


def test_a_page_tells_exploratory_from_confirmed(page, results):
    before = page()
    assert "There is no confirmatory study yet: every verdict is exploratory." in before
    assert "of 4 claims and controls that were tested at most 0.1 are expected" in before
    assert "confirmatory study |" not in before
    study(
        results,
        made_up("last-layers", 0.4),
        made_up("last-layers-gain", 0.5),
        made_up("pretraining-helps", 0.02, error=0.001),
    )
    after = page()
    last = CLAIMS["last-layers"].text
    (row,) = [line for line in after.splitlines() if line.startswith(f"| {last} |")]
    assert "| ✓ holds here | confirmed: MRPC +40.0 points [+38.0, +42.0]; n=320 |" in row
    (row,) = [line for line in after.splitlines() if CLAIMS["last-layers-gain"].text in line]
    assert "| ✗ does not hold here | contradicted: MRPC +50.0 points" in row
    (row,) = [line for line in after.splitlines() if CLAIMS["random-start-layers"].text in line]
    assert row.endswith("| – |"), "a control that the study could not test"
    whole, short = (one.splitlines() for one in after.split("<!-- confirmation: ")[1:])
    assert "| contradicted | 0 | 1 | 0 | 0 | 1 |" in whole
    assert "| claims | 1 | 1 | 1 | 0 | 3 |" in whole
    assert short[3:10] == [
        f"| {mark} | {number} |"
        for mark, number in {
            "confirmed": 1,
            "contradicted": 1,
            "not confirmed": 0,
            "decided: holds": 1,
            "decided: does not hold": 0,
            "still undecided": 0,
            "no confirmatory test": 0,
        }.items()
    ]
    assert (
        "The study tested 3 of" in after and "frozen in commit c0ffee: at most 0.1 false" in after
    )


def test_a_notebook_marks_what_is_confirmed_and_has_no_column_without_a_study(page, results):
    page()
    assert "Confirmatory study" not in Record(DRIFT, resolve()).show_verdicts().data
    study(results, made_up("last-layers", 0.4))
    shown = Record(DRIFT, resolve()).show_verdicts("last-layers", "last-layers-gain").data
    confirmed, untested = shown.splitlines()
    assert confirmed.endswith("Confirmatory study: confirmed.")
    assert "Confirmatory study" not in untested
    own = Record(DRIFT, resolve(profile="glue"))
    assert own.confirmatory is None, "a run of one's own"


# Claims that need more runs


def judged(name, found, learned=None, **parameters):
    lab = type("Lab", (Record,), {"learned": learned or {}})
    record = lab("4_feature_attention", resolve(profile="glue", **parameters))
    record.judge(name, found)
    (one,) = record.verdicts
    return one


def test_a_claim_that_needs_more_runs_than_there_are_says_how_many(monkeypatch):
    change(monkeypatch, "tuned-above-untuned", runs=4)
    sure = {TASKS["mrpc"]: Estimate(0.5, 0.01, 320), TASKS["sst2"]: Estimate(-0.5, 0.01, 320)}
    one = judged("tuned-above-untuned", sure, tasks="mrpc,sst2", trainings=2)
    assert (one.outcome, one.why) == (
        UNTESTABLE,
        "missing: fine-tuning runs of a task: 2, of 4 at least",
    )
    # MRPC has five runs, SST-2 three: it does not count.
    assert judged("tuned-above-untuned", sure, tasks="mrpc,sst2").outcome == HOLDS
    change(monkeypatch, "pretraining-helps", runs=4)
    unlearned = {TASKS["mrpc"]: False, TASKS["sst2"]: True}
    one = judged("pretraining-helps", sure, unlearned, tasks="mrpc,sst2")
    assert one.why == "missing: fine-tuning runs of a task: 3, of 4 at least"


def test_what_cannot_be_tested_is_listed_by_what_is_missing(page, results):
    missing = [
        f"a model with a [SEP] sink: [SEP] gets 0.{digit} of a uniform share" for digit in "78"
    ]
    judged_claims = [
        judge(name, {}, unmet=why)
        for name, why in zip(("last-layers", "pretraining-helps"), missing, strict=True)
    ]
    tested = made_up("last-layers-gain", 0.5)
    study(results, *judged_claims, judge("random-start-layers", {}), tested, folder="glue")
    text = renewed(
        "<!-- count: all --><!-- end --><!-- untestable: all --><!-- end -->", results.parent
    )
    assert "Of 3 claims of this and other papers, 1 hold here, 0 do not, 0 are undecided" in text
    assert text.count("of a uniform share") == 1 and "network" not in text
    both = f"{CLAIMS['last-layers'].text}; {CLAIMS['pretraining-helps'].text}"
    assert f"| {missing[0].replace('0.7', '0.7 to 0.8')} | {both} |" in text
