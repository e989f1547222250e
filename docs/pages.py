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
from bertology_utils.claims import FAILS, HOLDS, OTHERS, UNDECIDED, UNTESTED
from bertology_utils.common import one_of
from bertology_utils.glue import get_task, parse_tasks
from bertology_utils.measurements import MEASUREMENTS
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
    """A page's claims: the paper's number, and of each study the verdict and its numbers."""
    studies = {study: told(root, study, number).get("claims", {}) for study in OTHERS}
    studies = {study: rows for study, rows in studies.items() if rows}
    if not studies:
        return ["No claim of this page is on file yet."]
    claimed = {text: row for rows in reversed(studies.values()) for text, row in rows.items()}
    tasks = {
        study: {task for row in rows.values() for task in row["tasks"]}
        for study, rows in studies.items()
    }
    lines, untested = [], []
    for text in dict.fromkeys(text for rows in studies.values() for text in rows):
        cells = [
            in_short(rows[text], named=len(tasks[study]) > 1) if text in rows else ""
            for study, rows in studies.items()
        ]
        paper = claimed[text]["paper"] or "–"
        if set(cells) <= {UNTESTED, ""}:
            untested.append(f"{text} (the paper: {paper})")
        else:
            lines.append((text, paper, signs(claimed[text].get("holds if", "")), *cells))
    heads = (
        f"{OTHERS[study]}{f' ({next(iter(of))})' if len(of) == 1 else ''}"
        for study, of in tasks.items()
    )
    told_of = table(("claim", "the paper", "holds if", *heads), lines)
    if untested:
        told_of += ["", in_markdown(f"Not testable here: {'; '.join(untested)}.")]
    return told_of


def in_short(row: dict, named: bool = True, intervals: bool = True) -> str:
    """A claim's verdict with every task's number, or of many tasks the marks, the lowest and the highest.

    Args:
        row: of the claim.
        named: whether the tasks are named.
        intervals: whether they have theirs.
    """
    verdict = row["verdict"]
    if verdict == UNTESTED:
        return UNTESTED
    marks = {task: text.split(" ", 1)[0] for task, text in row["tasks"].items()}
    texts = {task: text.split(" ", 1)[1] for task, text in row["tasks"].items()}
    values = {task: text.split(" [")[0] for task, text in texts.items()}
    alike = set(marks.values()) == {verdict}
    if len(marks) > SHOWN:
        counts = Counter(marks.values())
        each = (f"{counts[one]} {one}" for one in (HOLDS, FAILS, UNDECIDED) if counts[one])
        ends = sorted(values, key=lambda task: float(values[task].split(" ")[0]))
        of = f"all {len(marks)}" if alike else ", ".join(each)
        low, high = (f"{values[task]} ({task})" for task in (ends[0], ends[-1]))
        return signs(f"**{verdict}** ({of}) {low} to {high}")
    shown = (
        f"{f'{task} ' if named else ''}{(texts if intervals else values)[task]}"
        f"{'' if alike else ' ' + marks[task]}"
        for task in marks
    )
    return signs(f"**{verdict}** {'; '.join(shown)}")


def signs(text: str) -> str:
    """A text with minus signs as people write them, zero without one, and one % for an interval."""
    text = re.sub(r"\[(\S+) %, (\S+) %\]", r"[\1, \2]", text)
    text = re.sub(r"(?<![\w.])[-+](?=0(?:\.0+)?(?![\d.]))", "", text)
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text)


_ENDS = {  # of a sentence on one statement, with an s, or on several
    HOLDS: "come{} out as the paper says",
    FAILS: "come{} out otherwise",
    UNDECIDED: "stay{} undecided",
    UNTESTED: "cannot be tested",
}


class Statement(NamedTuple):
    """A row of the first table of RESULTS.md: what is written there by hand, and its claim's rows by study."""

    text: str
    paper: str
    caveat: str
    page: str
    rows: dict[str, dict]


# The text, with the page and the claim in a comment; the paper's words; marks; caveat; the page.
_STATEMENT = re.compile(r"\| (.+ <!-- page (\d+), (.+) -->) \| (.+?) \|.*\| (.*?) ?\| \2 \|")


def main_statements(root: Path) -> list[Statement]:
    """The main statements of the paper by what E5 says of them; within one outcome as they stand.

    Raises:
        ValueError: a row names no claim, or one that is not on its page any more.
    """
    found = []
    text = (root / "RESULTS.md").read_text(encoding="utf-8")
    block = text.partition("<!-- statements: all -->\n")[2].partition("<!-- end -->")[0]
    for line in block.splitlines()[2:]:  # below the head
        match = _STATEMENT.fullmatch(line)
        if not match:
            raise ValueError(
                "RESULTS.md: a statement is | TEXT <!-- page NUMBER, CLAIM --> | WORDS | … |"
                f" CAVEAT | NUMBER |, and not: {line}"
            )
        says, page, claim, paper, caveat = match.groups()
        of = {study: told(root, study, page).get("claims", {}) for study in OTHERS}
        one_of(f"claim of a statement on page {page}", claim, of["e5"])
        rows = {study: of[study][claim] for study in of if claim in of[study]}
        found.append(Statement(says, paper, caveat, page, rows))
    return sorted(found, key=lambda one: [*OUTCOMES].index(one.rows["e5"]["verdict"]))


def statements(root: Path, _: str) -> list[str]:
    """The paper's main statements: E5's verdict and numbers, and the marks of the other studies."""
    lines = table(("the paper says", "what it reports", *OTHERS.values(), "caveat", "section"), [])
    for one in main_statements(root):
        marks = [one.rows[study]["verdict"] if study in one.rows else "–" for study in OTHERS][1:]
        first = in_markdown(in_short(one.rows["e5"], intervals=False))
        cells = [one.text, one.paper, first, *marks, one.caveat, one.page]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def outcomes(root: Path, _: str) -> list[str]:
    """How many of the main statements have each outcome in E5, with the first one as an example."""
    found = main_statements(root)
    lines = [f"We tested {len(found)} main statements of the paper on E5:", ""]
    for outcome, verb in _ENDS.items():
        if of := [one for one in found if one.rows["e5"]["verdict"] == outcome]:
            ends = verb.format("s" if len(of) == 1 else "")
            like = ", such as" if len(of) > 1 else ":"
            example = re.sub(r" \(§.*", "", of[0].text)
            lines.append(f"- **{len(of)} {ends}**{like} “{example}”.")
    return lines


def tally(root: Path, _: str) -> list[str]:
    """How many rows of the tables of claims have each outcome, of those about the paper."""
    lines = []
    for study in OTHERS:
        pages = [told(root, study, str(number)).get("claims", {}) for number in range(12)]
        verdicts = Counter(
            row["verdict"] for page in pages for row in page.values() if is_the_papers(row)
        )
        if verdicts:
            lines.append((OTHERS[study], verdicts.total(), *(verdicts[one] for one in OUTCOMES)))
    head = ("rows about the paper", "all", *OUTCOMES.values())
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
        "*E5 again* repeats many of E5's estimates on MRPC, with other rows and other fine-tuning"
        " runs. Over all claims of the notebooks, those of other papers and ours included,"
        f" {sum(decided.values())} of these estimates are decided in E5 (✓ or ✗): {same} have the"
        f" same mark again, {lost} are undecided there, and {turned or 'none has'}"
        f"{' have' * (turned > 0)} the opposite mark."
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
_EXAMPLES = ("sentence", "word", "example")  # the axis over which an estimate is a mean


def measurements(root: Path, _: str) -> list[str]:
    """What ``results/`` keeps of each measurement, in the order of the pages: files, examples and hours."""
    studies: dict[str, dict[str, list[tuple[dict, xr.Dataset]]]] = {}
    for study, name, several in files(root):
        studies.setdefault(name, {})[study] = several
    lines = []
    for name in (name for name in MEASUREMENTS if name in studies):
        arrays = [one for of in studies[name].values() for _, one in of]
        (axis,) = {next(axis for axis in _EXAMPLES if axis in one.sizes) for one in arrays}
        sizes = sorted({one.sizes[axis] for one in arrays})
        lines.append(
            (
                f"`{name}`",
                arrays[0].attrs["description"].replace("``", "`"),
                "; ".join(f"{study}: {counted(of)}" for study, of in studies[name].items()),
                " to ".join(f"{size:,}" for size in dict.fromkeys((sizes[0], sizes[-1])))
                + f" {axis}s",
                f"{sum(one.attrs['seconds'] for one in arrays) / 3600:.1f}",
            )
        )
    return table(("measurement", "what it is", "files", "examples in a file", "hours"), lines)


def counted(several: list[tuple[dict, xr.Dataset]]) -> str:
    """How many files there are of each task, of the treebank or of FrameNet."""
    of = Counter(
        one.get("task") or next(_SENTENCES[key] for key in _SENTENCES if key in one)
        for one, _ in several
    )
    return ", ".join(f"{name} {of[name]}" for name in [*TASKS, *_SENTENCES.values()] if name in of)


# Where the answers of the whole classifier are; "pruned" if nothing else has them.
_WHOLE: dict[str, dict[str, str | int]] = {
    "answers": {"trained": "fine-tuned"},
    "without_each_head": {},
    "pruned": {"order": "ranked once", "count": 0},
}


class Run(NamedTuple):
    """A fine-tuning run with its weights: how many measurements it has, and its score on how many rows."""

    study: str
    task: str
    run: int
    files: int
    rows: int
    score: str
    weights: str
    answers: xr.Dataset


@lru_cache
def scored(root: Path) -> list[Run]:
    """All fine-tuning runs that are measured, each with its weights, in the paper's order of tasks."""
    found: dict[tuple[str, str, int, str], list[tuple[str, xr.Dataset]]] = {}
    for study, name, several in files(root):
        for settings, one in several:
            if "run" in settings and settings.get("start", "pre-trained") == "pre-trained":
                key = study, settings["task"], settings["run"], one.attrs["classifier"]
                found.setdefault(key, []).append((name, one))
    known = []
    for (study, task, run, weights), of in found.items():
        whole = [(name, one) for name, one in of if name in _WHOLE]
        if whole:
            name, one = max(whole, key=lambda of: (of[0] != "pruned", of[1].sizes["example"]))
            answers = one.sel(_WHOLE[name])
            points = f"{float(score(answers).mean()):.1f}"
            rows = answers.sizes["example"]
            known.append(Run(study, task, run, len(of), rows, points, weights, answers))

    def order(one: Run) -> tuple[int, int, int]:
        return [*OTHERS].index(one.study), TASKS.index(one.task), one.run

    return sorted(known, key=order)


def runs(root: Path, _: str) -> list[str]:
    """Every fine-tuning run that is measured, with its score on rows that it was not trained on."""
    head = ("study", "task", "run", "files", "rows", "score", "weights")
    return table(head, [one[:-1] for one in scored(root)])


def scores(root: Path, _: str) -> list[str]:
    """Scores of the runs of each task, beside the majority class and the paper's; then what a score is."""
    by_task: dict[tuple[str, str], dict[int, Run]] = {}
    for one in scored(root):
        if (one.task, one.run) not in left_out(one.study):
            by_task.setdefault((one.study, one.task), {}).setdefault(one.run, one)
    lines = []
    for (study, title), of in by_task.items():
        own, task = [*of.values()], get_task(title)
        asked = json.loads(own[0].answers.attrs["settings"])
        rest = f"all but {asked['held_back']}" if asked["held_back"] else "all"
        trained = rest if asked["train_rows"] < 0 else f"{asked['train_rows']:,}"
        least = "–" if task.is_regression else f"{majority(own[0].answers):.1f}"
        rows = " to ".join(f"{size:,}" for size in sorted({one.rows for one in own}))
        paper = task.paper[task.metrics.index("accuracy") if "accuracy" in task.metrics else 0]
        points = ", ".join(one.score for one in own)
        lines.append((title, OTHERS[study], trained, points, rows, least, paper))
    head = "task, encoder, training rows, score of each run, rows, majority class, the paper's BERT"
    left = "; ".join(f"{task}, run {run}" for task, run in left_out("e5"))
    gone = f" A run that gave one answer to all rows is left out ({left})." if left else ""
    what = "Scores are accuracies in percent, for STS-B 100 times Pearson's *r*."
    return [*table(head.split(", "), lines), "", what + gone]


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
    "outcomes": outcomes,
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
