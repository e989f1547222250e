"""One tidy table of results per notebook: numbers as rows, with what they are of, in ``results.json``.

An entry of the file is one number, or one array over layers and heads, with its labels.
:func:`tidy` spreads entries into a DataFrame with one number per row; verdicts, comparisons of
runs, RESULTS.md, figures of an earlier run and the playground all read this one form.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .common import one_based
from .glue import TASKS

if TYPE_CHECKING:
    import pandas as pd

RESULTS = "results.json"
FORM = 2  # of the file; one of another form is refused
# What an entry can be labelled with, besides its name; and what an array can be over. Layers, heads
# and tokens are counted from 0.
LABELS = ("task", "training", "state", "kind")
AXES = ("layer", "head", "kind", "from", "to")
NUMBERS = ("value", "low", "high")
COLUMNS = ("what", *LABELS, *AXES[:2], *AXES[3:], *NUMBERS, *"n trainings unit tolerance".split())
DIGITS = 6  # behind the point, of every number in the file
Entry = dict[str, Any]

# How far a number may move from one processor to another, by kind: above what other processors,
# thread counts and a start moved by one part in a million change, and at most half of the smallest
# effect that is claimed from it.
# scores, weights and similarities: claims begin at 0.001, and three digits are printed at most
MEASURED = 0.0005
SHARE = 0.005  # shares of maps, given in whole percent; claims begin at 0.02
# of accuracy: claims begin at a point; one answer of 320 lies on the border of two classes
GAIN = 0.0035
P_VALUE = 0.01  # claims are decided at 0.05; above ALIKE_P nothing hangs on a p value
# with two trainings an end moves up to 6.5 times as far as they do; claims begin at a point
INTERVAL_END = 0.005
ALIKE_P = 0.1


def entries_of(
    what: str,
    values: Any,
    by: Sequence[str] = (),
    over: Sequence[str] = (),
    kinds: Sequence[str] = (),
    unit: str = "",
    tolerance: float = MEASURED,
    n: int | None = None,
    **labels: object,
) -> list[Entry]:
    """Entries for one kind of number, one for each combination of labels.

    Args:
        what: is measured, as people read it; unique in a notebook.
        values: a number, an estimate (anything with ``summary()``, or such a summary), an array, or
            these in nested mappings and lists, one level for each label in ``by``.
        by: labels of the levels, of :data:`LABELS`; the parts of a list are numbered from 1
            ("training").
        over: axes of the arrays, of :data:`AXES`; by default ("layer", "head"), as many as an array
            has.
        kinds: names along an axis "kind".
        unit: "share", "score", "weight", "cosine", "p", "count", …; with it numbers are put in
            words.
        tolerance: how far the number may move from one processor to another.
        n: examples behind each number (heads, where the unit says so); an estimate knows its own.
        labels: that all entries share, such as ``state="fine-tuned"``.

    Raises:
        ValueError: an unknown label or axis, a wrong number of levels, an array that does not fit
            ``over``.
    """
    if unknown := [name for name in (*by, *labels) if name not in LABELS]:
        raise ValueError(f"{what}: unknown label {unknown[0]!r}; labels are {', '.join(LABELS)}")
    entries = []
    for path, leaf in _leaves(values, len(by)):
        names = {"what": what} | labels | dict(zip(by, path, strict=True))
        entry = {name: _label(part) for name, part in names.items()}
        entry |= _numbers(what, leaf, over, kinds)
        if n is not None:
            entry.setdefault("n", n)
        entries.append(entry | {"unit": unit, "tolerance": tolerance})
    return entries


def _leaves(values: Any, depth: int, *path: object) -> Iterator[tuple[tuple[object, ...], Any]]:
    """Every leaf with the labels on the way to it."""
    if len(path) == depth:
        yield path, values
        return
    parts = values if isinstance(values, Mapping) else dict(enumerate(values, start=1))
    for label, part in parts.items():
        yield from _leaves(part, depth, *path, label)


def _label(value: object) -> object:
    """A label as it is written: a task by its name."""
    return value if isinstance(value, (int, str)) else getattr(value, "name", str(value))


def _numbers(what: str, leaf: Any, over: Sequence[str], kinds: Sequence[str]) -> Entry:
    """Value, interval and sizes of one leaf."""
    if hasattr(leaf, "summary"):
        leaf = leaf.summary()
    if isinstance(leaf, Mapping):
        if "value" not in leaf:
            names = ", ".join(map(str, leaf))
            raise ValueError(f"{what}: labels are missing for {names}; name them in by=")
        return _numbers(what, leaf["value"], over, kinds) | {
            name: plain(part) for name, part in leaf.items() if name != "value"
        }
    shape = np.shape(leaf)
    if not shape:
        return {"value": plain(leaf)}
    axes = list(over or AXES[: len(shape)])
    named = {"kinds": list(kinds)} if "kind" in axes else {}
    fits = len(axes) == len(shape) and set(axes) <= set(AXES)
    if not fits or (named and len(kinds) != shape[axes.index("kind")]):
        wanted = f"{axes or 'nothing'} with {len(kinds)} kinds"
        raise ValueError(f"{what}: an array of shape {shape} is over {wanted}")
    return {"over": axes} | named | {"value": plain(np.asarray(leaf))}


def plain(value: Any) -> Any:
    """JSON values, rounded to :data:`DIGITS`, with null for what was not measured: JSON knows no NaN and no infinity."""
    if isinstance(value, Mapping):
        return {str(_label(name)): plain(part) for name, part in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0 if math.isfinite(value) else None
    if isinstance(value, (str, int, type(None))):
        return value
    raise TypeError(f"cannot write {type(value).__name__} as JSON")


@dataclass(frozen=True)
class Results:
    """A notebook's ``results.json``.

    Attributes:
        content: the file, parsed: notebook, settings, versions, device, precision, verdicts, facts,
            rows.
    """

    content: Mapping[str, Any]

    @property
    def model_title(self) -> str:
        """What the run's model is called in figures."""
        model = self.content["settings"]["model"]
        return "MiniLM" if model == "embedded" else Path(model).name

    @property
    def weight(self) -> str:
        """What an attention map of this run holds, as axes call it."""
        return "share by norm" if self.content["settings"].get("attention") == "norm" else "weight"

    @property
    def entries(self) -> list[Entry]:
        """Numbers with their labels, as :func:`entries_of` makes them."""
        return self.content["rows"]

    @property
    def verdicts(self) -> dict[tuple[str, str], Mapping[str, Any]]:
        """Verdicts by claim and model."""
        return {(one["id"], one["model"]): one for one in self.content["verdicts"]}

    def find(self, what: str, **labels: object) -> list[Entry]:
        """Entries of one kind of number with these labels; none if the run has none."""
        wanted = {"what": what} | {name: _label(value) for name, value in labels.items()}
        return [each for each in self.entries if wanted == {at: each.get(at) for at in wanted}]

    def array(self, what: str, **labels: object) -> np.ndarray:
        """The values of one entry, with NaN for what was not measured.

        Raises:
            KeyError: there is not just one such entry.
        """
        entries = self.find(what, **labels)
        if len(entries) != 1:
            where = f"with {labels} in the results of {self.content['notebook']}"
            raise KeyError(f"{len(entries)} entries of {what!r} {where}")
        return np.asarray(entries[0]["value"], dtype=float)

    def table(self, what: str | Sequence[str], **labels: object) -> pd.DataFrame:
        """One or several kinds of number as a person reads them, a row each; see :mod:`bertology_utils.plots`.

        Args:
            what: a kind of number, or several.
            labels: that rows have, such as ``state="fine-tuned"``; a list where a label may have
                one of several values.

        Returns:
            The columns :data:`COLUMNS`: values and intervals in percent and points (by unit),
            intervals cut where nothing can lie, tasks by their titles and in GLUE's order, layers
            and heads counted from 1. Empty if the run has no such numbers.
        """
        import pandas as pd

        names = [what] if isinstance(what, str) else list(what)
        rows = tidy([entry for name in names for entry in self.find(name)])
        for label, value in labels.items():
            wanted: Sequence[object] = [value]
            if isinstance(value, Sequence) and not isinstance(value, str):
                wanted = value
            rows = rows[rows[label].isin([_label(one) for one in wanted])]
        rows = rows.dropna(subset="value").reset_index(drop=True)
        factors = rows.unit.map(lambda unit: factor_of({"unit": unit})).astype(float)
        possible = rows.unit.map(lambda unit: _POSSIBLE.get(unit, (-np.inf, np.inf)))
        least, most = possible.str[0], possible.str[1]
        for name in NUMBERS:
            rows[name] = pd.to_numeric(rows[name])
            rows[name] = factors * (rows[name] if name == "value" else rows[name].clip(least, most))
        for axis in ("layer", "head"):
            if rows[axis].notna().all():
                rows[axis] = one_based(rows[axis].astype(int))
        titles = {name: task.title for name, task in TASKS.items()}
        there = [titles[name] for name in TASKS if name in set(rows.task)]
        rows["task"] = pd.Categorical(rows.task.map(titles), there)
        return rows

    def by(self, label: str, what: str, **labels: object) -> dict[Any, Entry]:
        """Entries of one kind of number by one of their labels; empty if the run has none."""
        return {entry.get(label): entry for entry in self.find(what, **labels)}


def read_results(path: Path) -> Results:
    """A results.json.

    Raises:
        ValueError: it cannot be read, or is of another form; says which file it is and what renews
            it.
    """
    where = "/".join(path.parts[-3:])
    number = (path.parent.name if path.name == RESULTS else path.stem).split("_")[0]
    command = f"python -m bertology_utils run --only {number}"
    if path.parent.parent.name == "results":  # the evidence
        confirm = "CONFIRM=FOLDER " if path.parent.name == "confirm" else ""
        wanted = f"ONLY={number}" if number.isdigit() else "TREEBANK=FILE"
        command = f"make evidence {confirm}{wanted}"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.get("form") == FORM:
            return Results(content)
        problem = f"is of form {content.get('form', 1)}, and this version reads form {FORM}"
    except FileNotFoundError:
        problem = "cannot be read: it is missing"
    except (ValueError, AttributeError, OSError) as error:
        problem = f"cannot be read: it is damaged ({error})"
    raise ValueError(f"{where} {problem}; renew it: {command}")


def tidy(entries: Sequence[Entry]) -> pd.DataFrame:
    """One number per row, with the columns :data:`COLUMNS`; layers and heads counted from 0.

    Args:
        entries: from :func:`entries_of` or :attr:`Results.entries`.
    """
    import pandas as pd

    rows = []
    for entry in entries:
        if "over" not in entry:
            rows.append(entry)
            continue
        arrays = {name: np.asarray(entry[name], dtype=float) for name in NUMBERS if name in entry}
        for place in np.ndindex(arrays["value"].shape):
            at: dict[str, object] = dict(zip(entry["over"], place, strict=True))
            if "kind" in at:
                at["kind"] = entry["kinds"][at["kind"]]
            rows.append(entry | at | {name: float(of[place]) for name, of in arrays.items()})
    return pd.DataFrame(rows, columns=list(COLUMNS))


# How numbers are put in words, by unit: factor, digits behind the point, with a sign, and what
# stands behind them; those of other units as weights.
_WORDS = {
    "share": (100, 0, False, " %"),
    "score": (100, 1, False, " points"),
    "gain": (100, 1, True, " points"),
    "skill": (100, 0, False, " % of the skill"),  # may be below 0, and above 100
    "difference of shares": (100, 0, True, " points"),
    "share of the loss": (100, 1, True, " % of the loss"),
    "weight": (1, 3, False, ""),
    "difference": (1, 3, True, ""),
    "cosine": (1, 2, False, ""),
    "correlation": (1, 2, True, ""),
    "correlation over heads": (1, 2, True, ""),  # whose n counts heads
    "ratio over heads": (1, 2, False, ""),
    "interaction": (1000, 1, True, " thousandths of the loss"),
    "p": (1, 2, False, ""),
    "count": (1, 0, False, ""),
    "doublings": (1, 1, True, " doublings"),
}

# Where intervals end, by unit: symmetric ones go on to what cannot be.
_POSSIBLE = {
    "share": (0.0, 1.0),
    "weight": (0.0, 1.0),
    "difference of shares": (-1.0, 1.0),
    "correlation": (-1.0, 1.0),
}


def factor_of(entry: Mapping[str, Any]) -> int:
    """By what a number is multiplied where people read it: 100 for shares, scores and gains."""
    return _WORDS.get(entry.get("unit", ""), _WORDS["weight"])[0]


def text_of(entry: Mapping[str, Any], sizes: bool = False) -> str:
    """A number in words: "87 % [74, 100]", and with ``sizes`` "; n=320, 2 runs"; "–" where nothing was measured."""
    factor, digits, sign, unit = _WORDS.get(entry.get("unit", ""), _WORDS["weight"])
    if entry.get("value") is None:
        return "–"
    low, high = entry.get("low"), entry.get("high")
    ends = [] if low is None or high is None else [low, high]
    if ends and entry.get("unit") in _POSSIBLE:
        ends = np.clip(ends, *_POSSIBLE[entry["unit"]]).tolist()
    while digits and ends and (ends[1] - ends[0]) * factor / 2 > 100 * 10**-digits:
        digits -= 1  # a wide interval has fewer digits: another machine moves its ends by more

    def one(value: float) -> str:
        return f"{round(value * factor, digits) + 0.0:{'+' if sign else ''}.{digits}f}"

    text = one(entry["value"]) + unit + (f" [{', '.join(map(one, ends))}]" if ends else "")
    if sizes and entry.get("n"):
        trainings = entry.get("trainings") or 1
        heads = " heads" if entry.get("unit", "").endswith("over heads") else ""
        text += f"; n={entry['n']}{heads}" + (f", {trainings} runs" if trainings > 1 else "")
    return text


def title_of(name: str, value: Any) -> str:
    """A label's value as people read it: a task by its title, "run 2", layers and heads from 1."""
    if value is None:
        return ""
    if name in ("layer", "head"):
        return f"{name} {one_based(int(value))}"
    if name == "training":
        return f"run {int(value)}"
    return TASKS[value].title if name == "task" and value in TASKS else str(value)


def moved(expected: Results, got: Results) -> list[str]:
    """What another run says otherwise, by more than its tolerance, a line each; empty if it says the same.

    Settings, facts and outcomes of verdicts must be equal; versions and device may differ.

    Args:
        expected: whose tolerances decide.
        got: the other run.
    """
    lines = [
        f"{part}: {old!r} became {new!r}"
        for part in ("notebook", "settings", "facts")
        if (old := expected.content.get(part)) != (new := got.content.get(part))
    ]
    for (claim, model), old, new in _pairs(expected.verdicts, got.verdicts):
        one, other = (verdict and verdict["outcome"] for verdict in (old, new))
        if one != other:
            lines.append(f"verdict on {claim} ({model}): {one!r} became {other!r}")
    rows = [{place_of(entry): entry for entry in run.entries} for run in (expected, got)]
    for place, old, new in _pairs(*rows):
        if old is None or new is None:
            lines.append(f"{place}: {'is new' if old is None else 'is gone'}")
        else:
            lines += [f"{place}: {line}" for line in _differences(old, new)]
    return lines


def _pairs(one: Mapping, other: Mapping) -> Iterator[tuple[Any, Any, Any]]:
    for key in dict.fromkeys([*one, *other]):
        yield key, one.get(key), other.get(key)


def place_of(entry: Entry) -> str:
    """Which number it is, as a person would find it."""
    labels = (f"{name} {entry[name]}" for name in LABELS if name in entry)
    return ", ".join([entry["what"], *labels])


def _differences(old: Entry, new: Entry) -> Iterator[str]:
    for name in ("over", "kinds", "n", "trainings", "unit"):
        if old.get(name) != new.get(name):
            yield f"{name} {old.get(name)} became {new.get(name)}"
            return
    for name in NUMBERS:
        one, other = (np.asarray(entry.get(name), dtype=float) for entry in (old, new))
        if one.shape != other.shape:
            yield f"{name} of shape {one.shape} became {other.shape}"
            continue
        least = 0.0 if name == "value" else INTERVAL_END
        allowed = max(least, old["tolerance"])
        if old["unit"] == "p":
            one, other = np.minimum(one, ALIKE_P), np.minimum(other, ALIKE_P)
        far = ~np.isclose(one, other, rtol=0, atol=allowed + 1e-12, equal_nan=True)
        if far.any():
            at = tuple(int(index) for index in np.argwhere(far)[0])
            where = f" at {at}" if at else ""
            count = f" ({int(far.sum())} of {far.size} numbers)" if far.size > 1 else ""
            yield f"{name}{where} {one[at]:g} became {other[at]:g}; it may move by {allowed:g}{count}"
