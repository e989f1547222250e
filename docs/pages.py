"""The tables of README.md and RESULTS.md, written from the evidence in ``results/``: ``python docs/pages.py``.

A table stands between ``<!-- KIND: PLACE -->`` and ``<!-- end -->``. KIND is one of :data:`KINDS`;
PLACE is a notebook's number, or a file below ``results/`` without its suffix.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bertology_utils.cache import write_atomically
from bertology_utils.claims import OTHERS
from bertology_utils.common import head_name, one_of
from bertology_utils.glue import get_task, plain_metric
from bertology_utils.record import EVIDENCE, project_root
from bertology_utils.results import (
    LABELS,
    Entry,
    Results,
    read_results,
    text_of,
    tidy,
    title_of,
)
from bertology_utils.statistics import ONE_SIDED, p_text
from bertology_utils.stats import majority as majority_of
from bertology_utils.stats import score
from bertology_utils.verdicts import (
    CLAIMS,
    LEARNED,
    MARKS,
    NO_TEST,
    OUTCOMES,
    PRETRAINED,
    SYMBOLS,
    THIS_RUN,
    UNTESTABLE,
    Verdicts,
    in_words,
    mark_of,
    number_of,
    read_confirmed,
    read_frozen,
    text_of_claim,
)

PAGES = ("README.md", "RESULTS.md", "docs/*.md", "results/README.md")
_JUDGING = [str(number) for number in sorted({one.notebook for one in CLAIMS.values()})]
# What would open a tag or a comment, a link's address, or mathematics; "p < 0.05" and intervals
# stay as they are.
_SIGNS = {r"<(?=[A-Za-z/!?])": "&lt;", r"(?<=\])\(": r"\\(", r"\$": r"\\$"}

NUMBER = r"\d+(?:\.\d+)?"  # in a text


def evidence(root: Path, place: str) -> Results:
    """The evidence at a place: a notebook's, by its number, or a file below ``results/``.

    Raises:
        ValueError: there is none, or it cannot be read; says which command renews it.
    """
    if "/" in place:
        return read_results(root / "results" / f"{place}.json")
    # Notebook 0 explains one example, which is of the small run.
    folder = root / (
        "tests/reference" if place == "0" else f"results/{EVIDENCE.get(place, 'glue')}"
    )
    paths = sorted(folder.glob(f"{place}_*.json")) if place else []
    return read_results(paths[0] if paths else folder / f"{place or 'no_notebook'}.json")


def all_verdicts(root: Path) -> Verdicts:
    """The evidence's verdicts on its own model; of a claim about fine-tuned models these, not the pre-trained encoder's."""
    return _on_own_model(evidence(root, number).verdicts for number in _JUDGING)


def all_confirmatory(root: Path) -> Verdicts | None:
    """The confirmatory study's verdicts on the same model; None if there is no such study."""
    studies = [read_confirmed(root / "results", number) for number in _JUDGING]
    found = [study for study in studies if study is not None]
    return _on_own_model(found) if found else None


def _on_own_model(runs: Iterable[Verdicts]) -> Verdicts:
    found: dict[str, dict] = {PRETRAINED: {}, THIS_RUN: {}}
    for run in runs:
        for (name, model), one in run.items():
            if model in found:
                found[model][name] = one
    joined = found[PRETRAINED] | found[THIS_RUN]
    return {(name, THIS_RUN): joined[name] for name in CLAIMS if name in joined}


def count(root: Path, _: str) -> list[str]:
    """How many claims of papers have each outcome, in a sentence."""
    outcomes = [
        one["outcome"]
        for (name, _), one in all_verdicts(root).items()
        if not CLAIMS[name].is_control
    ]
    numbers = [outcomes.count(outcome) for outcome in OUTCOMES]
    said = "{} hold here, {} do not, {} are undecided, and {} cannot be tested here".format(
        *numbers
    )
    return [f"Of {len(outcomes)} claims of this and other papers, {said}."]


def untestable(root: Path, _: str) -> list[str]:
    """The claims of papers that could not be tested, by what is missing; where notebooks differ in a number, from the lowest to the highest."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for (name, _), one in all_verdicts(root).items():
        if one["outcome"] == UNTESTABLE and not CLAIMS[name].is_control:
            reason = one["why"].removeprefix("missing: ")
            reasons, claims = found.setdefault(re.sub(NUMBER, "", reason), ([], []))
            reasons.append(reason)
            claims.append(CLAIMS[name].text)
    rows = [[with_ranges(reasons), "; ".join(claims)] for reasons, claims in found.values()]
    return table(["what is missing", "for which claims"], rows)


def with_ranges(texts: Sequence[str]) -> str:
    """Texts that differ in their numbers as one, each number from its lowest to its highest: "0.7 to 0.8"."""
    ends = [
        dict.fromkeys([min(each, key=float), max(each, key=float)])
        for each in zip(*(re.findall(NUMBER, text) for text in texts), strict=True)
    ]
    ranges = iter(ends)
    return re.sub(NUMBER, lambda _: " to ".join(next(ranges)), texts[0])


def confirmation(root: Path, place: str) -> list[str]:
    """What the confirmatory study says of the papers' claims, by their exploratory outcome, and how many verdicts may be false.

    At the place "sum" only all claims together, without the sentences.
    """
    first, second = all_verdicts(root), all_confirmatory(root)
    tested, again = (
        sum(one["outcome"] != UNTESTABLE for one in study.values())
        for study in (first, second or {})
    )
    chance = (
        f"A test errs to one side in at most {100 * ONE_SIDED:g} % of cases. So of {tested} claims and"
        f" controls that were tested at most {ONE_SIDED * tested:.1f} are expected to be decided"
        " falsely, as far as their rules were fixed before the numbers were seen."
    )
    if second is None:
        return [
            "There is no confirmatory study yet: every verdict is exploratory.",
            *([] if place == "sum" else ["", chance]),
        ]
    marks: dict[str, list[str]] = {outcome: [] for outcome in OUTCOMES}
    for at, one in first.items():
        if not CLAIMS[at[0]].is_control:
            mark = mark_of(one["outcome"], second[at]["outcome"]) if at in second else NO_TEST
            marks[one["outcome"]].append(mark)
    marks["all"] = [mark for several in marks.values() for mark in several]
    # A row for each mark: a table with nine columns does not fit beside the site's list of pages.
    titles = {mark: mark for mark in MARKS} | {NO_TEST: "no confirmatory test"}
    if place == "sum":
        counts = [[title, marks["all"].count(mark)] for mark, title in titles.items()]
        return table(("confirmatory study", "claims"), counts)
    rows = [
        [title, *(several.count(mark) for several in marks.values())]
        for mark, title in titles.items()
    ]
    rows.append(["claims", *map(len, marks.values())])
    names = [f"{SYMBOLS.get(outcome, '')} {outcome}".strip() for outcome in marks]
    frozen = read_frozen(root / "results")
    frozen_rules = (
        f"The study tested {again} of {len(frozen.rules)} claims and controls whose rules were frozen"
        f" in commit {frozen.commit[:10]}: at most {ONE_SIDED * again:.1f} false ones are expected."
    )
    return [*table(["confirmatory study", *names], rows), "", f"{chance} {frozen_rules}"]


def tally(root: Path, _: str) -> list[str]:
    """How many claims of papers have each outcome, a row for each section of the paper."""
    by_section: dict[str, list[str]] = {}
    for (name, _model), verdict in all_verdicts(root).items():
        claim = CLAIMS[name]
        if not claim.is_control:
            section = claim.section if claim.section[0].isdigit() else "other papers"
            by_section.setdefault(section, []).append(verdict["outcome"])
    by_section["all"] = [outcome for several in by_section.values() for outcome in several]
    rows = [
        [section, len(outcomes), *map(outcomes.count, OUTCOMES)]
        for section, outcomes in by_section.items()
    ]
    return table(["§", "claims", *(f"{SYMBOLS[one]} {one}" for one in OUTCOMES)], rows)


def verdicts(root: Path, place: str) -> list[str]:
    """Every verdict of a notebook's evidence on a paper's claim, with its numbers."""
    return _verdicts(root, place, controls=False)


def controls(root: Path, place: str) -> list[str]:
    """Every verdict of a notebook's evidence on a control of ours, with its numbers."""
    return _verdicts(root, place, controls=True)


def _verdicts(root: Path, place: str, controls: bool) -> list[str]:
    """A table in the claims' order; nothing where a notebook has no such claim."""
    run = evidence(root, place)
    found = {
        (name, model): dict(one) | (number_by_task(run, name) if model == THIS_RUN else {})
        for (name, model), one in run.verdicts.items()
        if name in CLAIMS and CLAIMS[name].is_control is controls
    }
    if not found:
        return []
    confirmed, rows = read_confirmed(root / "results", place), []
    for name, model in sorted(found, key=lambda one: list(CLAIMS).index(one[0])):
        one, paper = found[name, model], CLAIMS[name].paper or "(control)"
        outcome = f"{SYMBOLS[one['outcome']]} {in_words(one['outcome'], one['tally'])}"
        row = [text_of_claim(name, model), paper, number_of(one), outcome]
        if confirmed is not None:
            # Other rows of GLUE change nothing that was published or pre-trained.
            own = confirmed if model == THIS_RUN else {}
            second = own.get((name, model), {"outcome": UNTESTABLE})
            mark = mark_of(one["outcome"], second["outcome"])
            row.append(mark if mark == NO_TEST else f"{mark}: {second['number']}")
        rows.append(row)
    titles = ["claim", "the paper", "here", "verdict"]
    return table(titles + ["confirmatory study"] * (confirmed is not None), rows)


def number_by_task(run: Results, name: str) -> dict[str, str]:
    """The numbers behind a claim by task, as a verdict's "number"; {} where there is not one for each task."""
    claim = CLAIMS[name]
    rows = [row for row in run.find(claim.estimate) if not row.get("over")]
    if claim.tasks:
        rows = [row for row in rows if row.get("task") in claim.tasks]
    if LEARNED in claim.needs:
        learned = run.content.get("facts", {}).get("learned", {})
        rows = [row for row in rows if learned.get(row.get("task"), True)]
    tasks = [row.get("task") for row in rows]
    if len(tasks) < 2 or None in tasks or len(set(tasks)) < len(tasks):
        return {}
    return {"number": "; ".join(f"{title_of('task', row['task'])} {text_of(row)}" for row in rows)}


def by_norm(root: Path, number: str) -> list[str]:
    """A notebook's verdicts that change where its weights become norms."""
    weight = evidence(root, number)
    norm = evidence(root, f"glue_norm/{weight.content['notebook']}").verdicts
    rows = [
        [CLAIMS[name].text, *(f"{SYMBOLS[one['outcome']]} {one['number']}" for one in (old, new))]
        for (name, model), old in weight.verdicts.items()
        if name in CLAIMS and (new := norm.get((name, model))) and old["outcome"] != new["outcome"]
    ]
    return table(["claim or control", "by weight", "by norm"], rows)


def numbers(root: Path, place: str) -> list[str]:
    """All numbers of a run as tables, those of single heads left out: a column for each layer, task or state."""
    by_name: dict[str, list[Entry]] = {}
    for entry in evidence(root, place).entries:
        if "head" not in entry.get("over", ()):
            by_name.setdefault(entry["what"], []).append(entry)
    by_form: dict[tuple, list[Entry]] = {}
    for entries in by_name.values():
        by_form.setdefault(_form(entries), []).extend(entries)
    lines: list[str] = []
    for (labels, column, _), entries in by_form.items():
        numbers = tidy(entries).astype(object)
        cells: dict[tuple[str, ...], dict[str, str]] = {}
        for number in numbers.where(numbers.notna(), None).to_dict("records"):
            row = tuple(title_of(name, number[name]) for name in ("what", *labels))
            cells.setdefault(row, {})[title_of(column, number[column])] = text_of(number)
        columns = list(dict.fromkeys(name for texts in cells.values() for name in texts))
        rows, before = [], ""
        for (what, *names), texts in cells.items():
            texts_in_order = [texts.get(name, "–") for name in columns]
            rows.append(["" if what == before else what, *names, *texts_in_order])
            before = what
        lines += ["", *table(["number", *labels, *columns], rows)]
    return lines[1:]


def _form(entries: Sequence[Entry]) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """By what one kind of number is shown: labels of the rows, label of the columns, and the columns unless they are tasks."""
    over = entries[0].get("over", ())
    labels = {label for one in entries for label in one} | set(over)
    choices = ("layer", "task", "state", "training")  # the last one, too, where there is none
    column = next((one for one in choices if one in labels), choices[-1])
    rows = tuple(one for one in LABELS if one in labels - {column})
    if column == "layer":
        return rows, column, (str(len(entries[0]["value"])),)
    return rows, column, tuple({one["state"]: None for one in entries} if column == "state" else ())


def dependencies(root: Path, place: str) -> list[str]:
    """The best head along each of a treebank's relations, the best fixed distance, and what Clark et al. found."""
    from bertology_utils.links.dependencies import CLARK, FOUND  # imports torch

    run = evidence(root, place)
    parts = (FOUND[0], "best fixed distance", FOUND[1], "p")
    found = {what: run.by("kind", what, state="pre-trained") for what in parts}
    random = run.by("kind", FOUND[0], state="random weights")
    rows = []
    for kind, head in run.content["facts"]["best heads, pre-trained"].items():
        own, distance, theirs, p = (found[what][kind] for what in parts)
        name, _, direction = kind.partition(", ")
        clark = CLARK.get(name)
        published = f"{head_name(*clark.at)} {clark.accuracy} ({clark.offset})" if clark else "–"
        shares = text_of(own), f"{distance['value']:+d}", text_of(theirs), p_text(p["value"])
        rows.append([name, direction, head, *shares, text_of(random[kind]), published])
    titles = "it finds", "best distance", "that finds", "p", "random weights find", "Clark et al."
    return table(["relation", "direction", "best head", *titles], rows)


def sweep_speed(root: Path, _: str) -> list[str]:
    """Seconds of the sweep and of plainer ways, for each model and task that was measured."""
    found = {}
    for path in sorted((root / "benchmarks").glob("sweep_speed_*_*.json")):
        model, task = path.stem.removeprefix("sweep_speed_").split("_", 1)
        content = json.loads(path.read_text(encoding="utf-8"))
        found[f"{model}, {task}"] = content["seconds"]
    names = list(next(iter(found.values())))
    rows = [[run, *(f"{seconds[name]:.3g} s" for name in names)] for run, seconds in found.items()]
    return table(["", *names], rows)


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


def experiment(root: Path, page: str) -> list[str]:
    """The claims of a page that computes on measurements, with every task's number, for each study that has them."""
    files = {study: root / "results" / study / "pages" / f"{page}.json" for study in OTHERS}
    studies = {
        study: json.loads(path.read_text(encoding="utf-8"))["claims"]
        for study, path in files.items()
        if path.is_file()
    }
    lines = [
        (text, row["paper"], OTHERS[study], row["verdict"], task, number)
        for text in {text: None for rows in studies.values() for text in rows}
        for study, rows in studies.items()
        if (row := rows.get(text))
        for task, number in (row["tasks"] or {"": ""}).items()
    ]
    head = ("claim", "the paper", "study", "verdict", "task", "estimate [95 % interval]")
    return table(head, _without_repeats(lines))


def _without_repeats(lines: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Lines in which what stands above is not written again, as far as all to its left is the same."""
    short = []
    for above, line in zip([(), *lines], lines, strict=False):
        same = [line[: at + 1] == above[: at + 1] for at in range(len(line))]
        short.append(tuple("" if like else part for part, like in zip(line, same, strict=True)))
    return short


def measurements(root: Path, _: str) -> list[str]:
    """What ``results/`` keeps of each measurement and study: its axes, runs, rows, hours and bytes."""
    import xarray as xr

    lines = []
    for folder in sorted(root.glob("results/*/*/")):
        several = [xr.load_dataset(path, engine="h5netcdf") for path in sorted(folder.glob("*.nc"))]
        if not several:
            continue
        first, sizes = several[0], [path.stat().st_size for path in folder.glob("*.nc")]
        settings = [json.loads(one.attrs["settings"]) for one in several]
        of_task = Counter(
            next(one[of] for of in ("task", "treebank", "framenet") if of in one)
            for one in settings
        )
        rows = sorted({one.sizes.get("example", one.sizes.get("word")) for one in several})
        values = (f"`{name}` ({', '.join(map(str, one.dims))})" for name, one in first.items())
        lines.append(
            (
                f"`{folder.parent.name}/{folder.name}`",
                first.attrs["description"],
                ", ".join(values),
                ", ".join(f"{task}: {files} files" for task, files in of_task.items()),
                " to ".join(map(str, dict.fromkeys((rows[0], rows[-1])))),
                f"{sum(one.attrs['seconds'] for one in several) / 3600:.1f}",
                f"{sum(sizes) / 1e6:.1f}",
            )
        )
    head = (
        "measurement",
        "what it is",
        "values (axes)",
        "files",
        "rows",
        "hours",
        "MB",
    )
    return table(head, lines)


def runs(root: Path, _: str) -> list[str]:
    """Every fine-tuning run that is measured: its score on rows that it was not trained on, beside the majority class and the paper."""
    import xarray as xr

    lines = []
    for path in sorted(root.glob("results/*/without_each_head/*.nc")):
        one = xr.load_dataset(path, engine="h5netcdf")
        settings = json.loads(one.attrs["settings"])
        if settings["ablation"] != "uniform":
            continue
        task = get_task(settings["task"])
        majority = "–" if task.is_regression else f"{majority_of(one):.1f}"
        paper = task.table1.finetuned[task.metrics.index(plain_metric(task))]
        marks = path.parts[-3], task.title, settings["run"], one.sizes["example"]
        lines.append(
            (*marks, f"{float(score(one).mean()):.1f}", majority, paper, one.attrs["classifier"])
        )
    head = ("study", "task", "run", "rows", "score", "majority class", "the paper", "weights")
    return table(head, lines)


KINDS: dict[str, Callable[[Path, str], list[str]]] = {
    "confirmation": confirmation,
    "count": count,
    "untestable": untestable,
    "tally": tally,
    "verdicts": verdicts,
    "controls": controls,
    "by-norm": by_norm,
    "numbers": numbers,
    "dependencies": dependencies,
    "sweep-speed": sweep_speed,
    "experiment": experiment,
    "measurements": measurements,
    "runs": runs,
}


def renewed(text: str, root: Path) -> str:
    """A page's text with each table written anew.

    Args:
        text: the page.
        root: the checkout.

    Raises:
        ValueError: an unknown kind of table, or results that cannot be read; says what to run.
    """

    def part(match: re.Match[str]) -> str:
        kind, place = match[1], match[2]
        lines = KINDS[one_of("table", kind, KINDS)](root, place)
        return "\n".join([f"<!-- {kind}: {place} -->", *lines, "<!-- end -->"])

    return re.sub(r"<!-- ([\w-]+): ([^\n]*?) -->.*?<!-- end -->", part, text, flags=re.DOTALL)


def update(root: Path) -> list[Path]:
    """Renew all pages, or none. Returns those that changed.

    Raises:
        ValueError: see :func:`renewed`.
    """
    paths = [path for pattern in PAGES for path in sorted(root.glob(pattern))]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    new = {path: renewed(text, root) for path, text in texts.items()}
    changed = [path for path in texts if new[path] != texts[path]]
    for path in changed:
        write_atomically(path, new[path].encode())
    return changed


if __name__ == "__main__":
    try:
        print(*(path.name for path in update(project_root())), "renewed")
    except ValueError as error:
        sys.exit(f"error: {error}")
