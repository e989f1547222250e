"""Tables of README.md, RESULTS.md and others, written from ``results/``: ``python docs/pages.py``.

A table or a sentence stands between ``<!-- KIND: PLACE -->`` and ``<!-- end -->``. KIND is one of
:data:`KINDS`; PLACE is a page's number, a study's name, or "all".
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import xarray as xr

from bertology_utils.cache import write_atomically
from bertology_utils.claims import FAILS, HOLDS, OTHERS, UNDECIDED, UNTESTED, of_the_paper
from bertology_utils.common import one_of
from bertology_utils.glue import get_task, parse_tasks
from bertology_utils.measurements import MEASUREMENTS, PLAN
from bertology_utils.stats import majority, score
from bertology_utils.study import ROOT, Study

PAGES = ("README.md", "RESULTS.md", "docs/*.md", "results/README.md")
OUTCOMES = {
    HOLDS: "as the paper says",
    FAILS: "not as it says",
    UNDECIDED: "undecided",
    UNTESTED: "not testable",
}
SHOWN = 4  # numbers of a claim; of more than these, the range
TASKS = [task.title for task in parse_tasks("all")]
# What would open a tag or a comment, a link's address, or mathematics; intervals stay as they are.
_SIGNS = {r"<(?=[A-Za-z/!?])": "&lt;", r"(?<=\])\(": r"\\(", r"\$": r"\\$"}


def told(root: Path, study: str, number: str) -> dict:
    """What a page keeps of a study: its ``said`` numbers and its ``claims``; {} where it has not run.

    Args:
        root: the checkout.
        study: its name.
        number: the page's.
    """
    files = list((root / "results" / study / "pages").glob(f"{number}_*.json"))
    return json.loads(files[0].read_text(encoding="utf-8")) if files else {}


# Claims ------------------------------------------------------------------


def claims(root: Path, number: str) -> list[str]:
    """A page's claims: the paper's number, and of each study the verdict and every task's number; then what could not be tested."""
    studies = {study: told(root, study, number).get("claims", {}) for study in OTHERS}
    studies = {study: rows for study, rows in studies.items() if rows}
    if not studies:
        return ["No claim of this page is on file yet."]
    texts = list(dict.fromkeys(text for rows in studies.values() for text in rows))
    claimed = {text: row for rows in reversed(studies.values()) for text, row in rows.items()}
    tasks = {
        study: {task for row in rows.values() for task in row["tasks"]}
        for study, rows in studies.items()
    }
    lines, untested = [], []
    for text in texts:
        cells = [
            in_short(rows[text], named=len(tasks[study]) > 1) if text in rows else ""
            for study, rows in studies.items()
        ]
        if set(cells) <= {UNTESTED, ""}:
            untested.append(f"{text} (the paper: {claimed[text]['paper'] or '–'})")
        else:
            row = claimed[text]
            lines.append((text, of_the_paper(row), signs(row.get("holds if", "")), *cells))
    heads = (
        f"{OTHERS[study]}{f' ({next(iter(of))})' if len(of) == 1 else ''}"
        for study, of in tasks.items()
    )
    told_of = table(("claim", "the paper", "holds if", *heads), lines)
    if untested:
        told_of += ["", in_markdown(f"Not testable here: {'; '.join(untested)}.")]
    return told_of


def in_short(row: dict, named: bool = True, intervals: bool = True) -> str:
    """A claim's verdict with every task's number, or with their range and how many.

    Args:
        row: of the claim.
        named: whether the tasks are named.
        intervals: whether they have theirs.
    """
    verdict, tasks = row["verdict"], row["tasks"]
    if verdict == UNTESTED:
        return UNTESTED
    marks = {task: text.split(" ", 1)[0] for task, text in tasks.items()}
    texts = {task: text.split(" ", 1)[1] for task, text in tasks.items()}
    if not intervals:
        texts = {task: text.split(" [")[0] for task, text in texts.items()}
    if len(tasks) > SHOWN:
        values = sorted((text.split(" [")[0] for text in texts.values()), key=_number)
        counts = Counter(marks.values())
        each = ", ".join(f"{counts[one]} {one}" for one in (HOLDS, FAILS, UNDECIDED) if counts[one])
        return signs(f"**{verdict}** {values[0]} to {values[-1]} ({each})")
    alike = set(marks.values()) == {verdict}
    each = (
        f"{f'{task} ' if named else ''}{texts[task]}{'' if alike else ' ' + marks[task]}"
        for task in tasks
    )
    return signs(f"**{verdict}** {'; '.join(each)}")


def _number(text: str) -> float:
    return float(text.split(" ")[0])


def signs(text: str) -> str:
    """A text with minus signs as people write them, zero without one, and one % for an interval."""
    text = re.sub(r"\[(\S+) %, (\S+) %\]", r"[\1, \2]", text)
    text = re.sub(r"(?<![\w.])[-+](?=0(?:\.0+)?(?![\d.]))", "", text)
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text)


class Statement(NamedTuple):
    """What the paper says, the page and the claim that test it, and what a reader has to know."""

    text: str
    page: str
    claim: str
    remark: str = ""


STATEMENTS = (
    Statement(
        "32 to 61 % of the maps are heterogeneous (§4.1; percent)",
        "1",
        "At least 32 % of the maps are heterogeneous (network)",
        "language models labelled the maps; of STS-B up to 44, if the errors of layer 1 are counted apart",
    ),
    Statement(
        "Two heads stand out by their attention along frame-semantic links (§4.2; weight)",
        "2",
        "By score, two heads lie well above all others (rules of the paper's text)",
        "the second head above the third; position and popular words raise this score as well",
    ),
    Statement(
        "Some head attends along frame-semantic links (§4.2; weight)",
        "2",
        "Some head attends along links",
        "after position and popular words are taken off; most of these links are grammatical as well",
    ),
    Statement(
        "The last two layers change most (§4.3; distance)",
        "3",
        "The last two layers change most, by cosine",
        "significantly not so on MNLI-m alone; MiniLM's short interval rests on two runs that happen to agree",
    ),
    Statement(
        "The last two layers hold the gain (§4.3; points of balanced accuracy)",
        "3",
        "Resetting the last two layers costs more points than resetting an average pair",
        "of the ranking they cost significantly less than an average pair on MRPC and STS-B, and more on SST-2",
    ),
    Statement(
        "Most vertical stripes are on [CLS] and [SEP] (§4.4; percent)",
        "4",
        "Most stripes are on [CLS] or [SEP], by weight, pre-trained",
        "by norm, fewer than half; stripes have at least twice the uniform weight",
    ),
    Statement(
        "In early layers [CLS] receives more than [SEP] (§4.4; [SEP] − [CLS], hundredths)",
        "4",
        "In early layers [SEP] receives less than [CLS]",
    ),
    Statement(
        "In late layers [SEP] receives more than [CLS] (§4.4; [SEP] − [CLS], hundredths)",
        "4",
        "In late layers [SEP] receives more than [CLS]",
        "in E5 both have one vector from layer 5 on",
    ),
    Statement(
        "Fine-tuning turns heads to nouns (§4.4; hundredths of the attention)",
        "4",
        "In another run, a head that turned to nouns gains more on such words than on matched words",
        "some head always attends more to nouns; matched words have the same place and frequency",
    ),
    Statement(
        "The head with the most weight from subjects to verbs attends to neighbours (§4.5; weight)",
        "5",
        "The head with the most weight on subject → verb is diagonal (after)",
        "from verbs to subjects not in the run of STS-B",
    ),
    Statement(
        "No head can be told from attention to neighbours, from subjects to verbs (§4.5; points gained)",
        "5",
        "No head finds more links subject → verb than the best fixed distance (before)",
        "before fine-tuning; the nearest verb is right more often than any head",
    ),
    Statement(
        "Disabling some head helps (§4.6; points)",
        "6",
        "Disabling the head that gains most on half of the rows helps on the other half",
        "on the rows that chose it, the best head gains 0.3 to 2.7, and luck would give 0.4 to 2.2; these are other rows, where small gains cannot be excluded",
    ),
    Statement(
        "Disabling a random head helps (§4.6; points)",
        "6",
        "Disabling a random head helps",
        "it costs a fifth of a point in the one run of STS-B",
    ),
    Statement(
        "Models rely on heads that attend to words of both sentences (§5; points lost)",
        "6",
        "Disabling one of the two heads that attend to shared words most lowers the score",
        "undecided on RTE and MNLI-m; on QQP by its own interval only",
    ),
    Statement(
        "Disabling the first layer helps (§4.6; points)",
        "6",
        "Disabling the first layer helps",
    ),
)


def statements(root: Path, _: str) -> list[str]:
    """What the paper says in some sixteen lines: its number, that of E5 without intervals, and the marks from the paper's side.

    Raises:
        ValueError: a claim is not on its page any more.
    """
    lines = []
    for one in STATEMENTS:
        rows = {study: told(root, study, one.page).get("claims", {}) for study in OTHERS}
        claim = one_of(f"claim of STATEMENTS on page {one.page}", one.claim, rows["e5"])
        sides = {study: papers_side(of[claim]) for study, of in rows.items() if claim in of}
        marks = (sides[study]["verdict"] if study in sides else "–" for study in [*OTHERS][1:])
        first = in_short(sides["e5"], intervals=False)
        lines.append((one.text, sides["e5"]["paper"], first, *marks, one.remark, one.page))
    return table(
        ("the paper says", "its number or words", *OTHERS.values(), "caveat", "section"), lines
    )


def papers_side(row: dict) -> dict:
    """A claim whose marks say whether it is as the paper says."""
    if not row.get("paper denies"):
        return row
    other = {HOLDS: FAILS, FAILS: HOLDS}
    tasks = {
        task: f"{other.get(text[0], text[0])}{text[1:]}" for task, text in row["tasks"].items()
    }
    return row | {"verdict": other.get(row["verdict"], row["verdict"]), "tasks": tasks}


def tally(root: Path, place: str) -> list[str]:
    """How many claims of the paper have each outcome: of all studies in a table, or of one in a sentence."""
    counts = {}
    for study in OTHERS if place == "all" else [one_of("study", place, OTHERS)]:
        pages = [told(root, study, str(number)).get("claims", {}) for number in range(12)]
        verdicts = Counter(
            papers_side(row)["verdict"]
            for page in pages
            for row in page.values()
            if is_the_papers(row)
        )
        if verdicts:
            counts[study] = [verdicts.total(), *(verdicts[one] for one in OUTCOMES)]
    if place != "all":
        total, holds, fails, undecided, untested = counts[place]
        sentence = (
            f"Of the {total} rows about the paper's claims in {OTHERS[place]}'s column of RESULTS.md, {holds} come out as"
            f" the paper says and {fails} do not; {undecided} are undecided, and {untested} cannot be tested."
        )
        return [sentence]
    lines = [(OTHERS[study], *numbers) for study, numbers in counts.items()]
    head = ("claims of the paper", "all", *OUTCOMES.values())
    return [*table(head, lines), "", repeated(root)]


def repeated(root: Path) -> str:
    """Of the numbers that are decided in E5, how many have the same mark in E5 again.

    What is of the pre-trained encoder on the treebank is left out: the weights are the same, and
    about half of the sentences.
    """
    pairs: Counter[tuple[str, str]] = Counter()
    for number in map(str, [*range(8), *range(9, 12)]):
        first, again = (told(root, study, number).get("claims", {}) for study in ("e5", "e5-again"))
        for text in first.keys() & again.keys():
            before, after = first[text]["tasks"], again[text]["tasks"]
            shared = before.keys() & after.keys() - {"treebank"}
            pairs.update((before[task][0], after[task][0]) for task in shared)
    decided = {pair: number for pair, number in pairs.items() if pair[0] != UNDECIDED}
    same = sum(number for (old, new), number in decided.items() if old == new)
    lost = sum(number for (_, new), number in decided.items() if new == UNDECIDED)
    turned = sum(decided.values()) - same - lost
    return (
        f"Of the numbers that *E5 again* repeats with other rows and other fine-tuning runs, {sum(decided.values())}"
        f" were decided in E5 (✓ or ✗). The mark is the same again: {same}; undecided now:"
        f" {lost}; the opposite now: {turned or 'none'}. A number is the estimate of a claim on one task."
    )


def is_the_papers(row: dict) -> bool:
    """Whether a claim is of Kovaleva et al.: those of others name their authors before a colon, ours name nobody."""
    return bool(row["paper"]) and ": " not in row["paper"]


# Measurements ------------------------------------------------------------


@lru_cache
def files(root: Path) -> list[tuple[str, str, list[tuple[dict, xr.Dataset]]]]:
    """Of each study and measurement on file: their names; and settings and arrays of each file."""
    found = []
    for folder in sorted(root.glob("results/*/*/")):
        several = []
        for path in sorted(folder.glob("*.nc")):
            one = xr.open_dataset(path, engine="h5netcdf")  # arrays are read where they are used
            several.append((json.loads(one.attrs["settings"]), one))
        if several:
            found.append((folder.parent.name, folder.name, several))
    return found


_SENTENCES = {"treebank": "treebank", "framenet": "FrameNet"}


def measurements(root: Path, _: str) -> list[str]:
    """What ``results/`` keeps of each measurement, in the order of the pages: files, examples and hours."""
    studies: dict[str, dict[str, list[tuple[dict, xr.Dataset]]]] = {}
    asked = rows_asked(root)
    for study, name, several in files(root):
        studies.setdefault(name, {})[study] = several
    lines = []
    for name in (name for name in MEASUREMENTS if name in studies):
        all_files = [(study, *one) for study, of in studies[name].items() for one in of]
        sizes = {examples(one, asked.get(_row_key(study, by))) for study, by, one in all_files}
        lines.append(
            (
                f"`{name}`",
                all_files[0][2].attrs["description"].replace("``", "`"),
                "; ".join(f"{study}: {counted(of)}" for study, of in studies[name].items()),
                "; ".join(f"{each} {unit}" for unit, each in _by_unit(sizes).items()),
                f"{sum(one.attrs['seconds'] for _, _, one in all_files) / 3600:.1f}",
            )
        )
    return table(("measurement", "what it is", "files", "examples in a file", "hours"), lines)


def _row_key(study: str, settings: dict) -> tuple:
    return study, settings.get("task"), settings.get("rows")


def rows_asked(root: Path) -> dict[tuple, int]:
    """By study, task and the number of rows that was asked for: how many there are."""
    found: dict[tuple, int] = {}
    for study, _, several in files(root):
        for settings, one in several:
            if "task" in settings:
                key = _row_key(study, settings)
                found[key] = max(found.get(key, 0), one.sizes.get("example", 0))
    return found


def examples(one: xr.Dataset, rows: int | None) -> tuple[int, str]:
    """How many examples a file has, and what they are: rows, sentences, words, or groups of the former.

    Args:
        one: its arrays.
        rows: how many rows there are, of a task.
    """
    if "sentence" in one.sizes:
        return one.sizes["sentence"], "sentences"
    if "word" in one.sizes:
        return one.sizes["word"], "words"
    number = one.sizes["example"]
    if rows is not None:
        return number, "rows" if number == rows else f"groups of {-(-rows // number)} rows"
    sentences = int(one["number"].sum()) if "number" in one else number
    if sentences == number:
        return number, "sentences"
    return number, f"groups of sentences ({sentences:,} in all)"


def _by_unit(sizes: Iterable[tuple[int, str]]) -> dict[str, str]:
    """Numbers of examples by what they are, the lowest and the highest of each."""
    by_unit: dict[str, list[int]] = {}
    for number, unit in sorted(sizes):
        by_unit.setdefault(unit, []).append(number)
    return {
        unit: " to ".join(f"{each:,}" for each in dict.fromkeys((of[0], of[-1])))
        for unit, of in by_unit.items()
    }


def rows(root: Path, number: str) -> list[str]:
    """What a page loads: examples of each task and fine-tuning runs, with the studies that have them."""
    (page,) = (root / "notebooks").glob(f"{number}_*.ipynb")
    code = page.read_text(encoding="utf-8")
    asked, told_of = rows_asked(root), dict[str, list[str]]()
    for name in MEASUREMENTS:
        named = rf"measure\((measurements\.)?{name}\b|measurements import [^\n]*\b{name}\b"
        if not re.search(named, code):
            continue
        of: dict[tuple[str, str], list[tuple[tuple[int, str], int]]] = {}
        for study, _, several in (one for one in files(root) if one[1] == name):
            for settings, one in several:
                if (settings.get("task"), settings.get("run")) in left_out(study):
                    continue
                size = examples(one, asked.get(_row_key(study, settings)))
                key = settings.get("task", ""), OTHERS[study]
                of.setdefault(key, []).append((size, settings.get("run", 0)))
        by_text: dict[str, list[str]] = {}
        for task, study in sorted(
            of, key=lambda key: ([*TASKS, ""].index(key[0]), [*OTHERS.values()].index(key[1]))
        ):
            sizes, numbers = zip(*of[task, study], strict=True)
            size = " or ".join(f"{each} {unit}" for unit, each in _by_unit(set(sizes)).items())
            text = f"{task} {size} × {len(set(numbers))}" if task else size
            by_text.setdefault(text, []).append(study)
        each = "; ".join(f"{text} ({', '.join(studies)})" for text, studies in by_text.items())
        told_of.setdefault(each, []).append(f"`{name}`")
    loaded = (f"{', '.join(names)}: {each}." for each, names in told_of.items() if each)
    return [f"*Examples × fine-tuning runs.* {' '.join(loaded)}"]


def counted(several: list[tuple[dict, xr.Dataset]]) -> str:
    """How many files there are of each task, of the treebank or of FrameNet."""
    of = Counter(
        one.get("task") or next(_SENTENCES[key] for key in _SENTENCES if key in one)
        for one, _ in several
    )
    return ", ".join(f"{name} {of[name]}" for name in [*TASKS, *_SENTENCES.values()] if name in of)


def missing(root: Path, _: str) -> list[str]:
    """What the studies plan and no file holds, by task and run."""
    lines = []
    for name in OTHERS:
        study = Study.of(name, measures=False)
        lacking: dict[tuple[str, int], dict[str, list[str]]] = {}
        made: Counter[tuple[str, int]] = Counter()
        for measurement, options in PLAN:
            for case in measurement.cases(study):
                file = measurement.path(study, *case, **options).name
                if (root / "results" / name / measurement.name / file).exists():
                    made[case] += 1
                else:
                    of = lacking.setdefault(case, {})
                    of.setdefault(measurement.name, []).append(*(options.values() or ["usual"]))
        whole = [case for case in lacking if not made[case]]
        by_text: dict[str, list[tuple[str, int]]] = {}
        for case, of in lacking.items():
            by_text.setdefault("everything" if case in whole else _named(of), []).append(case)
        lines += [(name, _cases(cases), text) for text, cases in by_text.items()]
    return table(("study", "of", "lacks"), lines) if lines else ["Nothing."]


def _named(lacking: dict[str, list[str]]) -> str:
    """Names of measurements, with the options that lack where others are there."""
    planned = Counter(measurement.name for measurement, _ in PLAN)
    each = (
        f"`{name}`" + (f" ({', '.join(options)})" if len(options) < planned[name] else "")
        for name, options in lacking.items()
    )
    return ", ".join(each)


def _cases(cases: list[tuple[str, int]]) -> str:
    """ "MRPC 1 and 2; RTE 1": runs by task; sentences have none."""
    of: dict[str, list[str]] = {}
    for task, run in cases:
        of.setdefault(_SENTENCES.get(task, task), []).extend([str(run)] if run else [])
    return "; ".join(f"{task} {' and '.join(runs_of)}".strip() for task, runs_of in of.items())


class Run(NamedTuple):
    """A fine-tuning run with its weights: answers on rows that it was not trained on, and how many measurements it has."""

    study: str
    task: str
    run: int
    weights: str
    answers: xr.Dataset
    files: int


# Where the answers of the whole classifier are; "pruned" if nothing else has them.
_WHOLE = {
    "answers": {"trained": "fine-tuned"},
    "without_each_head": {},
    "pruned": {"order": "ranked once", "count": 0},
}


def scores_of_runs(root: Path) -> list[Run]:
    """All fine-tuning runs that are measured, each with its weights, in the paper's order of tasks."""
    found: dict[tuple[str, str, int, str], list[tuple[str, xr.Dataset]]] = {}
    for study, name, several in files(root):
        for settings, one in several:
            if "run" in settings and settings.get("start", "pre-trained") == "pre-trained":
                key = study, settings["task"], settings["run"], one.attrs["classifier"]
                found.setdefault(key, []).append((name, one))
    known = []
    for key, of in found.items():
        whole = [
            (name == "pruned", -one.sizes["example"], at)
            for at, (name, one) in enumerate(of)
            if name in _WHOLE
        ]
        if whole:
            last, _, at = min(whole)
            name, one = of[at]
            known.append((last, Run(*key, one.sel(_WHOLE[name]), len(of))))

    def order(one: tuple[bool, Run]) -> tuple[int, int, int, bool]:
        return [*OTHERS].index(one[1].study), TASKS.index(one[1].task), one[1].run, one[0]

    return [one for _, one in sorted(known, key=order)]


def papers_score(task: str) -> float:
    """The score of the paper's fine-tuned BERT in the metric that we compute."""
    one = get_task(task)
    return one.paper[one.metrics.index("accuracy") if "accuracy" in one.metrics else 0]


def runs(root: Path, _: str) -> list[str]:
    """Every fine-tuning run that is measured, with its score on rows that it was not trained on."""
    lines = [
        (
            one.study,
            one.task,
            one.run,
            one.files,
            one.answers.sizes["example"],
            f"{float(score(one.answers).mean()):.1f}",
            one.weights,
        )
        for one in scores_of_runs(root)
    ]
    return table(("study", "task", "run", "files", "rows", "score", "weights"), lines)


def scores(root: Path, _: str) -> list[str]:
    """Scores of the runs of each task, beside the majority class and the paper's; then what a score is."""
    by_task: dict[tuple[str, str], list[Run]] = {}
    for one in scores_of_runs(root):
        if (one.task, one.run) not in left_out(one.study):
            by_task.setdefault((one.study, one.task), []).append(one)
    lines, again = [], []
    for (study, task), several in by_task.items():
        first = {one.run: one for one in reversed(several)}  # of two weights the first
        own = [first[run] for run in sorted(first)]
        for one in several:
            if one.weights != first[one.run].weights:
                points = f"{float(score(one.answers).mean()):.1f}"
                again.append(
                    f"Run {one.run} of {task} was fine-tuned twice; with the other weights it has {points} on"
                    f" {one.answers.sizes['example']:,} rows."
                )
        least = "–" if get_task(task).is_regression else f"{majority(own[0].answers):.1f}"
        sizes = sorted({one.answers.sizes["example"] for one in own})
        asked = json.loads(own[0].answers.attrs["settings"])
        rest = f"all but {asked['held_back']}" if asked["held_back"] else "all"
        on = rest if asked["train_rows"] < 0 else f"{asked['train_rows']:,}"
        shown = ", ".join(f"{float(score(one.answers).mean()):.1f}" for one in own)
        lines.append(
            (
                task,
                OTHERS[study],
                on,
                shown,
                " to ".join(f"{size:,}" for size in sizes),
                least,
                papers_score(task),
            )
        )
    head = (
        "task",
        "encoder",
        "training rows",
        "score of each run",
        "rows",
        "majority class",
        "the paper's BERT",
    )
    regression = any(get_task(task).is_regression for _, task in by_task)
    of_regressions = ", for STS-B 100 times Pearson's *r*" if regression else ""
    what = f"Scores are accuracies in percent{of_regressions}."
    left = "; ".join(f"{task}, run {run}" for task, run in left_out("e5"))
    gone = f" A run that gave one answer to all rows is left out ({left})." if left else ""
    return [*table(head, lines), "", " ".join([what, *again]) + gone]


def left_out(study: str) -> list[tuple[str, int]]:
    """A study's runs that learned nothing, by task and number."""
    one = Study.of(study, measures=False)
    return [(task, run) for task in one.tasks for run in one.left_out(task)]


def sweep_speed(root: Path, _: str) -> list[str]:
    """Seconds of the sweep and of plainer ways, for each model and task that was measured."""
    lines, names = [], list[str]()
    for path in sorted((root / "benchmarks").glob("sweep_speed_*_*.json")):
        one = json.loads(path.read_text(encoding="utf-8"))
        names = list(one["seconds"])
        of = f"{one['shape']}, {one['examples']} pairs of {get_task(one['task']).title}"
        lines.append((of, *(f"{seconds:.3g} s" for seconds in one["seconds"].values())))
    return table(("", *names), lines)


# Markdown ----------------------------------------------------------------


def table(head: Sequence[object], lines: Iterable[Sequence[object]]) -> list[str]:
    """Lines of a Markdown table; text of data and models stays text."""
    cells = [head, ["---"] * len(head), *lines]
    return [
        f"| {' | '.join(in_markdown(one).replace('|', chr(92) + '|') for one in line)} |"
        for line in cells
    ]


def in_markdown(text: object) -> str:
    """A text in which no browser finds a tag, a link or a formula."""
    written = str(text)
    for pattern, instead in _SIGNS.items():
        written = re.sub(pattern, instead, written)
    return written


KINDS: dict[str, Callable[[Path, str], list[str]]] = {
    "claims": claims,
    "measurements": measurements,
    "missing": missing,
    "rows": rows,
    "runs": runs,
    "scores": scores,
    "statements": statements,
    "sweep-speed": sweep_speed,
    "tally": tally,
}


def renewed(text: str, root: Path) -> str:
    """A page's text with each table written anew.

    Args:
        text: the page.
        root: the checkout.

    Raises:
        ValueError: an unknown kind of table.
    """

    def part(match: re.Match[str]) -> str:
        kind, place = match[1], match[2]
        lines = KINDS[one_of("table", kind, KINDS)](root, place)
        return "\n".join([f"<!-- {kind}: {place} -->", *lines, "<!-- end -->"])

    return re.sub(r"<!-- ([\w-]+): ([^\n]*?) -->.*?<!-- end -->", part, text, flags=re.DOTALL)


def update(root: Path) -> list[Path]:
    """Renew all pages, or none; returns those that changed, and raises as :func:`renewed`."""
    paths = [path for pattern in PAGES for path in sorted(root.glob(pattern))]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    new = {path: renewed(text, root) for path, text in texts.items()}
    changed = [path for path in texts if new[path] != texts[path]]
    for path in changed:
        write_atomically(path, new[path].encode())
    return changed


if __name__ == "__main__":
    try:
        print(*(path.name for path in update(ROOT)), "renewed")
    except ValueError as error:
        sys.exit(f"error: {error}")
