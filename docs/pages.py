"""Tables of README.md, RESULTS.md and others, written from ``results/``: ``python docs/pages.py``.

A table stands between ``<!-- KIND: PLACE -->`` and ``<!-- end -->``. KIND is one of :data:`KINDS`;
PLACE is a page's number, or "all".
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import xarray as xr

from bertology_utils.cache import write_atomically
from bertology_utils.claims import FAILS, HOLDS, OTHERS, UNDECIDED, UNTESTED
from bertology_utils.common import one_of
from bertology_utils.glue import get_task
from bertology_utils.stats import majority, score
from bertology_utils.study import ROOT

PAGES = ("README.md", "RESULTS.md", "docs/*.md", "results/README.md")
VERDICTS = (HOLDS, FAILS, UNDECIDED, UNTESTED)
SHOWN = 4  # numbers of a claim; of more than these, the range
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
    lines, untested = [], []
    for text in texts:
        cells = [in_short(rows[text]) if text in rows else "" for rows in studies.values()]
        if set(cells) <= {UNTESTED, ""}:
            untested.append(f"{text} (the paper: {claimed[text]['paper'] or '–'})")
        else:
            row = claimed[text]
            lines.append((text, row["paper"] or "–", signs(row.get("holds if", "")), *cells))
    told_of = table(("claim", "the paper", "holds if", *map(OTHERS.get, studies)), lines)
    if untested:
        told_of += ["", in_markdown(f"Not testable here: {'; '.join(untested)}.")]
    return told_of


def in_short(row: dict) -> str:
    """A claim's verdict with every task's number, or with their range and how many."""
    verdict, tasks = row["verdict"], row["tasks"]
    if verdict == UNTESTED:
        return UNTESTED
    marks = {task: text.split(" ", 1)[0] for task, text in tasks.items()}
    texts = {task: text.split(" ", 1)[1] for task, text in tasks.items()}
    if len(tasks) > SHOWN:
        values = sorted((text.split(" [")[0] for text in texts.values()), key=_number)
        counts = Counter(marks.values())
        each = ", ".join(f"{counts[one]} {one}" for one in (HOLDS, FAILS, UNDECIDED) if counts[one])
        return signs(f"**{verdict}** {values[0]} to {values[-1]} ({each})")
    alike = set(marks.values()) == {verdict}
    each = (f"{task} {texts[task]}{'' if alike else ' ' + marks[task]}" for task in tasks)
    return signs(f"**{verdict}** {'; '.join(each)}")


def _number(text: str) -> float:
    return float(text.split(" ")[0])


def signs(text: str) -> str:
    """A text with minus signs as people write them, zero without one, and one % for an interval."""
    text = re.sub(r"\[(\S+) %, (\S+) %\]", r"[\1, \2]", text)
    text = re.sub(r"(?<![\w.])[-+](?=0(?:\.0+)?(?![\d.]))", "", text)
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text)


def count(root: Path, _: str) -> list[str]:
    """How many claims of all pages have each outcome, by study and by whose they are."""
    lines = []
    for study, name in OTHERS.items():
        pages = [told(root, study, str(number)).get("claims", {}) for number in range(12)]
        rows = [row for page in pages for row in page.values()]
        for whose, counted in {
            "claims of the paper": [row for row in rows if is_the_papers(row)],
            "claims of others and questions of ours": [
                row for row in rows if not is_the_papers(row)
            ],
        }.items():
            verdicts = [row["verdict"] for row in counted]
            if verdicts:
                lines.append((name, whose, len(verdicts), *map(verdicts.count, VERDICTS)))
    heads = ("", "", "all", "✓ hold", "✗ do not", "? undecided", "not testable")
    alike = [one[0] == other[0] for one, other in repeated(root)]
    return [
        *table(heads, lines),
        "",
        f"{sum(alike)} of the {len(alike)} numbers that E5 again repeats have the mark that they had before.",
    ]


def repeated(root: Path) -> Iterable[tuple[str, str]]:
    """Of each claim and task that e5 and e5-again share: mark and number of both."""
    for number in map(str, range(12)):
        first, again = (told(root, study, number).get("claims", {}) for study in ("e5", "e5-again"))
        for text in first.keys() & again.keys():
            before, after = first[text]["tasks"], again[text]["tasks"]
            yield from ((before[task], after[task]) for task in before.keys() & after.keys())


def is_the_papers(row: dict) -> bool:
    """Whether a claim is of Kovaleva et al.: those of others name their authors before a colon, ours name nobody."""
    return bool(row["paper"]) and ": " not in row["paper"]


# Measurements ------------------------------------------------------------


def files(root: Path) -> Iterable[tuple[str, str, list[tuple[dict, xr.Dataset, int]]]]:
    """Of each study and measurement on file: their names; and settings, arrays and bytes of each file."""
    for folder in sorted(root.glob("results/*/*/")):
        several = []
        for path in sorted(folder.glob("*.nc")):
            one = xr.open_dataset(path, engine="h5netcdf")  # arrays are read where they are used
            several.append((json.loads(one.attrs["settings"]), one, path.stat().st_size))
        if several:
            yield folder.parent.name, folder.name, several


def measurements(root: Path, _: str) -> list[str]:
    """What ``results/`` keeps of each measurement, in the order of the pages: axes, files, examples, hours and bytes."""
    source = (ROOT / "bertology_utils" / "measurements.py").read_text(encoding="utf-8")
    studies: dict[str, dict[str, list[tuple[dict, xr.Dataset, int]]]] = {}
    for study, name, several in files(root):
        studies.setdefault(name, {})[study] = several
    lines = []
    for name in sorted(studies, key=lambda name: source.find(f"def {name}(")):
        all_files = [one for several in studies[name].values() for one in several]
        _, arrays, sizes = zip(*all_files, strict=True)
        rows = sorted({one.sizes.get("example", one.sizes.get("word", 0)) for one in arrays})
        values = (f"`{key}` ({', '.join(map(str, one.dims))})" for key, one in arrays[0].items())
        lines.append(
            (
                f"`{name}`",
                arrays[0].attrs["description"].replace("``", "`"),
                ", ".join(values),
                "; ".join(f"{study}: {counted(of)}" for study, of in studies[name].items()),
                " to ".join(map(str, dict.fromkeys((rows[0], rows[-1])))),
                f"{sum(one.attrs['seconds'] for one in arrays) / 3600:.1f}",
                f"{sum(sizes) / 1e6:.1f}",
            )
        )
    head = ("measurement", "what it is", "values (axes)", "files", "examples", "hours", "MB")
    return table(head, lines)


def counted(several: list[tuple[dict, xr.Dataset, int]]) -> str:
    """How many files there are of each task, of the treebank or of FrameNet."""
    names = {"treebank": "treebank", "framenet": "FrameNet"}
    of = Counter(
        one.get("task") or next(names[key] for key in names if key in one) for one, _, _ in several
    )
    return ", ".join(f"{name} {number}" for name, number in of.items())


def scores_of_runs(root: Path) -> dict[tuple[str, str, int], tuple[xr.Dataset, int]]:
    """By study, task and run: answers on rows that the run was not trained on, and how many measurements it has."""
    found: dict[tuple[str, str, int], tuple[xr.Dataset, int]] = {}
    for study, name, several in files(root):
        for settings, one, _ in several:
            if "run" not in settings or settings.get("start", "pre-trained") != "pre-trained":
                continue
            at = study, settings["task"], settings["run"]
            best, number = found.get(at, (None, 0))
            if name == "answers":
                one = one.sel(trained="fine-tuned")
            whole = name in ("answers", "without_each_head")
            if whole and (best is None or one.sizes["example"] > best.sizes["example"]):
                best = one
            found[at] = best, number + 1
    return {at: (one, number) for at, (one, number) in found.items() if one is not None}


def papers_score(task: str) -> float:
    """The score of the paper's fine-tuned BERT in the metric that we compute."""
    one = get_task(task)
    return one.table1.finetuned[one.metrics.index("accuracy") if "accuracy" in one.metrics else 0]


def runs(root: Path, _: str) -> list[str]:
    """Every fine-tuning run that is measured, with its score on rows that it was not trained on."""
    lines = [
        (
            study,
            task,
            run,
            number,
            one.sizes["example"],
            f"{float(score(one).mean()):.1f}",
            one.attrs["classifier"],
        )
        for (study, task, run), (one, number) in scores_of_runs(root).items()
    ]
    return table(("study", "task", "run", "files", "rows", "score", "weights"), lines)


def scores(root: Path, _: str) -> list[str]:
    """Scores of the runs of each task, beside the majority class and the paper's."""
    by_task: dict[tuple[str, str], list[xr.Dataset]] = {}
    for (study, task, _run), (one, _number) in scores_of_runs(root).items():
        by_task.setdefault((study, task), []).append(one)
    lines = []
    for (study, task), several in by_task.items():
        own = ", ".join(f"{float(score(one).mean()):.1f}" for one in several)
        least = "–" if get_task(task).is_regression else f"{majority(several[0]):.1f}"
        rows = " to ".join(map(str, sorted({one.sizes["example"] for one in several})))
        asked = json.loads(several[0].attrs["settings"])
        rest = f"all but {asked['held_back']}" if asked["held_back"] else "all"
        on = rest if asked["train_rows"] < 0 else f"{asked['train_rows']:,}"
        lines.append((task, OTHERS[study], on, own, rows, least, papers_score(task)))
    head = (
        "task",
        "encoder",
        "training rows",
        "score of each run",
        "rows",
        "majority class",
        "the paper's BERT",
    )
    return table(head, lines)


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
    "count": count,
    "measurements": measurements,
    "runs": runs,
    "scores": scores,
    "sweep-speed": sweep_speed,
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
