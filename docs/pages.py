"""The tables of README.md, RESULTS.md and docs/, written from the committed results: ``python docs/pages.py``.

A part of a page stands between ``<!-- KIND: PLACE -->`` and ``<!-- end -->``; options follow the
place between bars, such as ``<!-- rows: figures/3_finetuning_drift | score | rows=task,kind |
columns=state -->``.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertology_utils.cache import write_atomically
from bertology_utils.common import one_of
from bertology_utils.glue import TITLES
from bertology_utils.record import project_root
from bertology_utils.results import RESULTS, Results, read_results, table_of, text_of
from bertology_utils.verdicts import (
    CLAIMS,
    FAILS,
    HOLDS,
    OUTCOMES,
    PRETRAINED,
    THIS_RUN,
    UNTESTABLE,
    Claim,
    in_words,
)

NOT_YET = "not yet"
PAGES = ("README.md", "RESULTS.md", "docs/*.md")
PUBLISHED = "bert-base-uncased"  # how models begin that published figures are of
COLUMNS = ("bert-base", "MiniLM, real data", "MiniLM, embedded")
Verdicts = Mapping[str, Mapping[str, str]]  # by claim
# What would open a tag or a comment, a link's address, or mathematics; "p < 0.05" and intervals
# stay as they are.
_SIGNS = {r"<(?=[A-Za-z/!?])": "&lt;", r"(?<=\])\(": r"\\(", r"\$": r"\\$"}


@dataclass(frozen=True)
class Place:
    """A folder of committed runs, a folder per notebook.

    Attributes:
        data: what was measured on, as people read it.
        folder: below the checkout.
        notebooks: those that belong there, by number; an appendix, "6a", belongs to its page.
        command: that makes them, with {} for their numbers.
    """

    data: str
    folder: str
    notebooks: tuple[str, ...]
    command: str

    def runs(self, root: Path) -> dict[str, Results]:
        """Its notebooks' results that are there and can be read, by number."""
        found = {}
        for path in sorted((root / self.folder).glob(f"[0-9]*_*/{RESULTS}")):
            try:
                found[path.parent.name.split("_")[0]] = read_results(path)
            except ValueError:  # damaged, or of an older form: told as missing
                continue
        return found

    def verdicts(self, root: Path, about: str = THIS_RUN) -> Verdicts:
        """Of its runs, by claim.

        Args:
            root: the checkout.
            about: how the model begins that they are about.
        """
        runs = self.runs(root).values()
        return {
            name: one
            for run in runs
            for (name, model), one in run.verdicts.items()
            if model.startswith(about)
        }


EMBEDDED = Place(
    "embedded data",
    "figures",
    (*"0123456789", "10"),
    "python -m bertology_utils run --in-place --only {}",
)
GLUE = Place(
    "GLUE",
    "benchmarks/minilm_glue",
    (*"13456789", "10"),
    "python -m bertology_utils run --profile glue -p data folder:PATH --only {}",
)
FRAMENET = Place(
    "FrameNet 1.5",
    "benchmarks/minilm_framenet15",
    ("2",),
    "python -m bertology_utils run --profile glue -p framenet folder:PATH --only {}",
)
BERT_BASE = Place("bert-base", "benchmarks/bert_base", ("8",), "make bert")
PLACES = (EMBEDDED, GLUE, FRAMENET, BERT_BASE)


def _columns(root: Path) -> dict[str, Verdicts]:
    """Verdicts on bert-base, on real data, and on the embedded data."""
    # Measured before read off a figure, and fine-tuned, as the paper's claims are, before
    # pre-trained.
    bert = {
        **EMBEDDED.verdicts(root, PUBLISHED),
        **GLUE.verdicts(root, PUBLISHED),
        **BERT_BASE.verdicts(root, PRETRAINED),
        **BERT_BASE.verdicts(root),
    }
    real = {**GLUE.verdicts(root, PRETRAINED), **FRAMENET.verdicts(root), **GLUE.verdicts(root)}
    embedded = {**EMBEDDED.verdicts(root, PRETRAINED), **EMBEDDED.verdicts(root)}
    return dict(zip(COLUMNS, (bert, real, embedded), strict=True))


def summary(root: Path, which: str) -> list[str]:
    """Outcomes alone: of all claims of papers, or of the README's ten ("first")."""
    entries = [
        one for one in CLAIMS.values() if (one.readme if which == "first" else not one.is_control)
    ]
    columns = _columns(root)
    if which == "first":
        del columns[COLUMNS[0]]  # most of it is still to be measured
    rows = [
        [
            one.section,
            one.text,
            one.paper,
            *(_outcome(verdicts.get(one.id)) for verdicts in columns.values()),
        ]
        for one in entries
    ]
    return table(["§", "claim", "the paper", *columns], rows)


def _outcome(verdict: Mapping[str, str] | None) -> str:
    """A verdict alone, and what it is about if that is not a run as the paper's."""
    if verdict is None:
        return NOT_YET
    if verdict["model"] == THIS_RUN:
        return _told(verdict)
    return (
        f"{_told(verdict)} ({'published figure' if _is_published(verdict) else verdict['model']})"
    )


def _told(verdict: Mapping[str, str]) -> str:
    """The outcome, with the tally of tasks. The authors' own figure can be consistent with their claim, but replicates nothing."""
    if _is_published(verdict):
        return {HOLDS: "consistent", FAILS: "not consistent"}.get(
            verdict["outcome"], verdict["outcome"]
        )
    return in_words(verdict["outcome"], verdict["tally"])


def _is_published(verdict: Mapping[str, str]) -> bool:
    return verdict["model"].startswith(PUBLISHED)


def tallies(root: Path, _: str) -> list[str]:
    """How many claims of papers hold, fail and stay open on real data, a row for each section of the paper."""
    found, outcomes = _columns(root)[COLUMNS[1]], (*OUTCOMES, NOT_YET)
    by_section: dict[str, list[str]] = {}
    for one in (one for one in CLAIMS.values() if not one.is_control):
        section = one.section if one.section[0].isdigit() else "other papers"
        by_section.setdefault(section, []).append(
            found[one.id]["outcome"] if one.id in found else NOT_YET
        )
    by_section["all"] = [outcome for several in by_section.values() for outcome in several]
    rows = [
        [name, len(several), *map(several.count, outcomes)] for name, several in by_section.items()
    ]
    return table(["§", "claims", *outcomes], rows)


def claims(root: Path, number: str) -> list[str]:
    """Every claim that a notebook judges, with the numbers."""
    return judged(
        [one for one in CLAIMS.values() if not one.is_control and one.notebook == int(number)],
        _columns(root),
    )


def controls(root: Path, number: str) -> list[str]:
    """Our controls of a notebook's claims, with the numbers."""
    columns = {name: verdicts for name, verdicts in _columns(root).items() if name != COLUMNS[0]}
    return judged(
        [one for one in CLAIMS.values() if one.is_control and one.notebook == int(number)],
        columns,
    )


def pretrained(root: Path, _: str) -> list[str]:
    """Every claim and control that is judged of a pre-trained encoder: of bert-base, and of MiniLM on real text and embedded."""
    found = (
        {name: {**one, "model": THIS_RUN} for name, one in place.verdicts(root, PRETRAINED).items()}
        for place in (BERT_BASE, GLUE, EMBEDDED)
    )
    columns = dict(zip(COLUMNS, found, strict=True))
    return judged([one for one in CLAIMS.values() if one.id in columns[COLUMNS[2]]], columns)


def verdicts(root: Path, file: str) -> list[str]:
    """Every verdict in a file of results, or in a benchmark's, with its number."""
    found = {one["id"]: one for one in _content(root / file)["verdicts"]}
    return judged([one for one in CLAIMS.values() if one.id in found], {"verdict": found})


def by_norm(root: Path, places: str) -> list[str]:
    """The claims and controls whose verdict changes when weights become norms; "A+B" are two folders."""
    weight, norm = (Place("", folder, (), "").verdicts(root) for folder in places.split("+"))
    both = [one for one in CLAIMS.values() if one.id in weight and one.id in norm]
    changed = [one for one in both if weight[one.id]["outcome"] != norm[one.id]["outcome"]]
    told = f"Of {len(both)} verdicts {len(changed)} change." if both else "Not run yet."
    return [told, "", *judged(changed, {"by weight": weight, "by norm": norm})]


def judged(entries: Iterable[Claim], columns: Mapping[str, Verdicts]) -> list[str]:
    """A table of verdicts with their numbers."""
    rows = [
        [
            one.section,
            one.text,
            one.paper or "(control)",
            *(cell(found.get(one.id)) for found in columns.values()),
        ]
        for one in entries
    ]
    return table(["§", "claim or control", "the paper", *columns], rows) if rows else []


def cell(verdict: Mapping[str, str] | None) -> str:
    """A verdict and its number; for what cannot be tested what is missing."""
    if verdict is None:
        return NOT_YET
    if verdict["outcome"] == UNTESTABLE:
        return f"**{verdict['outcome']}**; {verdict['why']}"
    model = verdict["model"].removeprefix(PUBLISHED).strip(" ,")
    return f"**{_told(verdict)}**: {verdict['number']}" + (
        "" if verdict["model"] == THIS_RUN else f" ({model})"
    )


def missing(root: Path, _: str) -> list[str]:
    """Which results are missing or of another form, and what makes them; nothing if all are there."""
    lines = []
    for place in PLACES:
        there = place.runs(root)
        if numbers := ",".join(number for number in place.notebooks if number not in there):
            lines.append(
                f"- Not yet run on {place.data} by the present rules: notebook {numbers.replace(',', ', ')}."
                f" `{place.command.format(numbers)}` does it."
            )
    return lines


def rows(root: Path, folder: str, what: str, **options: str) -> list[str]:
    """Numbers of a results.json as a table: ``rows=`` and ``columns=`` name labels, any other option chooses by a label."""
    names = {name: options.pop(name, "").split(",") for name in ("rows", "columns")}
    found = read_results(root / folder / RESULTS).find(what, **options)
    if not found:
        raise ValueError(f"{folder} has no numbers {what!r} {options or ''}; run its notebook anew")
    shown = table_of(
        found, names["rows"], [name for name in names["columns"] if name], TITLES
    ).reset_index()
    return table(list(shown.columns), shown.to_numpy().tolist())


def of_json(root: Path, file: str, place: str = "", **options: str) -> list[str]:
    """A part of a benchmark's file as a table: a list, or a mapping, of mappings; or several mappings, "one & other".

    Args:
        root: the checkout.
        file: below it.
        place: of the part, names with "/" between.
        options: ``columns=`` names with "/" inside a row; all by default. ``unit=`` is that of
            estimates.
    """
    content = _content(root / file)
    places = place.split(" & ")
    parts = [_inside(content, one) for one in places]
    if len(parts) > 1:
        part = {
            name: dict(zip(places, [one.get(name) for one in parts], strict=True))
            for name in parts[0]
        }
    else:
        part = parts[0]
    named = part.items() if isinstance(part, Mapping) else ((None, one) for one in part)
    found = list(named)
    columns = options["columns"].split(",") if "columns" in options else list(found[0][1])
    lines = [
        [
            *([] if name is None else [TITLES.get(name, name)]),
            *(_shown(_inside(one, at), options.get("unit", "")) for at in columns),
        ]
        for name, one in found
    ]
    first = [] if found[0][0] is None else [""]
    return table([*first, *(at.split("/")[-1] for at in columns)], lines)


def _inside(content: Any, place: str) -> Any:
    """What stands at a place; None where there is nothing."""
    for name in place.split("/") if place else ():
        content = content.get(name) if isinstance(content, Mapping) else None
    return content


def _shown(value: Any, unit: str) -> str:
    """A JSON value in a cell."""
    if isinstance(value, Mapping) and "value" in value:
        return text_of({**value, "unit": unit})
    if isinstance(value, (list, tuple)):
        return ", ".join(_shown(one, unit) for one in value)
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        return f"{value:.3g}" if math.isfinite(value) and abs(value) < 1000 else str(value)
    return str(value)


def _content(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        what = "missing" if isinstance(error, FileNotFoundError) else "damaged"
        raise ValueError(
            f"benchmarks/{path.name} is {what}; run the script of that name in benchmarks/ anew"
        ) from error


def table(head: Sequence[object], lines: Iterable[Sequence[object]]) -> list[str]:
    """Lines of a Markdown table; text of data and models stays text."""
    cells = [head, ["---"] * len(head), *lines]
    return [
        f"| {' | '.join(in_markdown(one).replace('|', chr(92) + '|') for one in line)} |"
        for line in cells
    ]


def in_markdown(text: object) -> str:
    """A text of data or models, or what it is written as, in which no browser finds a tag, a link or a formula."""
    told = str(text)
    for pattern, instead in _SIGNS.items():
        told = re.sub(pattern, instead, told)
    return told


KINDS = {
    "summary": summary,
    "tallies": tallies,
    "claims": claims,
    "controls": controls,
    "pretrained": pretrained,
    "verdicts": verdicts,
    "by-norm": by_norm,
    "missing": missing,
    "rows": rows,
    "json": of_json,
}


def renewed(text: str, root: Path) -> str:
    """A page's text with each part between marks written anew.

    Args:
        text: the page; KIND is one of :data:`KINDS`, PLACE what its function takes.
        root: the checkout.

    Raises:
        ValueError: an unknown kind; results that cannot be read, or that lack a table's numbers:
            says what to run.
    """

    def part(match: re.Match[str]) -> str:
        kind, _, place = match[1].partition(": ")
        given = [one.strip() for one in place.split(" | ")]
        options = dict(one.split("=", 1) for one in given[1:] if "=" in one)
        try:
            lines = KINDS[one_of("part of a page", kind, KINDS)](
                root, given[0], *[one for one in given[1:] if "=" not in one], **options
            )
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(f"{match[1]}: {type(error).__name__}: {error}") from error
        return "\n".join([f"<!-- {match[1]} -->", *lines, "<!-- end -->"])

    return re.sub(r"<!-- ([\w-]+: [^\n]*?) -->.*?<!-- end -->", part, text, flags=re.DOTALL)


def update(root: Path) -> list[Path]:
    """Renew all pages, or none. Returns those that changed.

    Raises:
        ValueError: see :func:`renewed`.
    """
    texts = {
        path: path.read_text(encoding="utf-8")
        for pattern in PAGES
        for path in sorted(root.glob(pattern))
    }
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
