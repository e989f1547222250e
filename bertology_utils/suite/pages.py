"""README.md, RESULTS.md and docs/: what the results files say is written into them, so that they cannot differ.

A part of a page stands between ``<!-- KIND: PLACE -->`` and ``<!-- end -->``.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ..claims.entries import ENTRIES, OTHERS, OURS
from ..claims.register import CLAIMS, FIRST, NOTEBOOKS, Entry
from ..claims.support import UNTESTABLE
from ..claims.verdict import PRETRAINED, THIS_RUN
from ..common import one_of
from ..common.cache import write_atomically
from .committed import BERT_BASE, EMBEDDED, FRAMENET, GLUE, PLACES, Place
from .many.page import over_pretrainings
from .opening import SECTIONS, sentences
from .results import RESULTS
from .tables import TABLES, further, maker_of, name_of, one_estimate, read, table

NOT_YET = "not yet"  # no such run, or none that was judged by the present rules
PAGES = ("README.md", "RESULTS.md", "docs/*.md")
PUBLISHED = "bert-base-uncased"  # how models begin that published figures are of
Verdicts = Mapping[str, Mapping]  # from results.json, by claim


def _columns(root: Path) -> tuple[Verdicts, Verdicts, Verdicts]:
    """Verdicts on bert-base, on real data, and on the embedded data."""
    real = FRAMENET.verdicts(root) | GLUE.verdicts(root)
    # Measured before read off a figure, and fine-tuned, as the paper's claims are, before pre-trained.
    bert = EMBEDDED.verdicts(root, PUBLISHED) | BERT_BASE.verdicts(root, PRETRAINED) | BERT_BASE.verdicts(root)
    return bert, real, EMBEDDED.verdicts(root)


def first_claims(root: Path, _: str) -> str:
    """The README's ten claims: only what is said of them."""
    bert, real, embedded = _columns(root)
    rows = []
    for entry in (ENTRIES[name] for name in FIRST):
        of_bert = _short(bert[entry.id]) if entry.id in bert else NOT_YET
        said = [verdicts[entry.id]["outcome"] if entry.id in verdicts else NOT_YET for verdicts in (real, embedded)]
        rows.append([entry.section, entry.claim, entry.paper, of_bert, *said])
    return _block(table(["§", "claim", "the paper", "bert-base", "MiniLM, real data", "MiniLM, embedded"], rows))


def _short(one: Mapping) -> str:
    """A verdict alone, and what it is about if that is not a run as the paper's."""
    about = "published figure" if one["model"].startswith(PUBLISHED) else one["model"]
    return one["outcome"] if about == THIS_RUN else f"{one['outcome']} ({about})"


def claims(root: Path, number: str) -> str:
    """Every claim that a notebook judges, with the numbers."""
    columns, entries = _columns(root), _of([*CLAIMS, *OTHERS], number)
    rows = [
        [entry.section, entry.claim, entry.paper, *(_cell(entry, verdicts) for verdicts in columns)] for entry in entries
    ]
    head = ["§", "claim", "the paper", "bert-base", "MiniLM, real data", "MiniLM, embedded"]
    return _block([*table(head, rows), *numbers_beside(entries, dict(zip(head[3:], columns, strict=True)))])


def controls(root: Path, number: str) -> str:
    """Our controls of a notebook's claims, with the numbers."""
    _, *columns = _columns(root)
    entries = _of(OURS, number)
    rows = [[entry.claim, *(_cell(entry, verdicts) for verdicts in columns)] for entry in entries]
    head = ["control of ours", "MiniLM, real data", "MiniLM, embedded"]
    return _block([*table(head, rows), *numbers_beside(entries, dict(zip(head[1:], columns, strict=True)))])


def _of(entries: Iterable[Entry], number: str) -> list[Entry]:
    """Those of a notebook."""
    return [entry for entry in entries if entry.notebook == int(number)]


def numbers_beside(entries: Iterable[Entry], columns: Mapping[str, Verdicts]) -> list[str]:
    """The numbers that verdicts have beside their first estimates, below their table.

    Args:
        entries: of the table's rows.
        columns: the table's verdicts, by title.
    """
    told = [
        (f"{entry.claim} ({title})", verdicts[entry.id]["ours"])
        for entry in entries
        for title, verdicts in columns.items()
        if entry.id in verdicts and verdicts[entry.id]["outcome"] != UNTESTABLE
    ]
    lines = further(told)
    return ["", *lines] if lines else []


def before_fine_tuning(root: Path, _: str) -> str:
    """Every claim and control that is judged of a pre-trained encoder: of bert-base, and of the default run's."""
    bert, here = (
        {name: {**one, "model": THIS_RUN} for name, one in place.verdicts(root, PRETRAINED).items()}
        for place in (BERT_BASE, EMBEDDED)
    )
    entries = [entry for entry in ENTRIES.values() if entry.id in here]
    rows = [[e.notebook, e.claim, e.paper or "(control of ours)", _cell(e, bert), _cell(e, here)] for e in entries]
    return _block(table(["rule of notebook", "claim", "the paper", "bert-base", "MiniLM, embedded"], rows))


def about(root: Path, _: str) -> str:
    """Whether verdicts are about bert-base."""
    if BERT_BASE.missing(root):
        return "**No verdict is about bert-base yet**, but for the few read off its published figures."
    return "**Verdicts about bert-base are few**: of its pre-trained state, or read off its published figures."


def _cell(entry: Entry, verdicts: Verdicts) -> str:
    """A verdict and its number; for what cannot be tested what is missing."""
    if entry.id not in verdicts:
        return NOT_YET
    return shown(verdicts[entry.id])


def shown(verdict: Mapping) -> str:
    """A verdict from results.json in a cell: its first estimate; what else it has is for :func:`tables.further`."""
    if verdict["outcome"] == UNTESTABLE:
        return f"**{verdict['outcome']}**; {verdict['why']}"
    model = verdict["model"].removeprefix("bert-base-uncased").strip(" ,")
    of = "" if verdict["model"] == THIS_RUN else f" ({model})"
    return f"**{verdict['outcome']}**: {one_estimate(verdict['ours'])[0]}{of}"


def verdicts_of(results: dict) -> list[str]:
    """Every verdict in a file that a benchmark made, with its number."""
    found = {one["id"]: one for one in results["verdicts"]}
    entries = [ENTRIES[name] for name in found]
    rows = [[entry.section, entry.claim, entry.paper or "(control)", _cell(entry, found)] for entry in entries]
    return [*table(["§", "claim", "the paper", "verdict"], rows), *numbers_beside(entries, {"all these trainings": found})]


def by_norm(root: Path, places: str) -> str:
    """The claims and controls whose verdict changes when weights become norms.

    Args:
        root: the checkout.
        places: two folders with "+" between: results by weight, and by norm.
    """
    weight, norm = (Place("", folder, (), "").verdicts(root) for folder in places.split("+"))
    both = [entry for entry in ENTRIES.values() if entry.id in weight and entry.id in norm]
    changed = [entry for entry in both if weight[entry.id]["outcome"] != norm[entry.id]["outcome"]]
    rows = [[e.section, e.claim, _cell(e, weight), _cell(e, norm)] for e in changed]
    told = f"Of {len(both)} verdicts {len(changed)} change." if both else "Not run yet."
    head = ["§", "claim or control", "by weight", "by norm"]
    beside = numbers_beside(changed, dict(zip(head[2:], (weight, norm), strict=True)))
    return _block([told, "", *table(head, rows), *beside] if rows else [told])


def finding(root: Path, number: str) -> str:
    """What came out of a notebook, in a sentence."""
    one_of("notebook with findings", number, map(str, SECTIONS))
    if int(number) in EMBEDDED.missing(root):
        return f"No results of this version; `{EMBEDDED.command(int(number))}` makes them."
    found = _told(sentences, root / EMBEDDED.folder / NOTEBOOKS[int(number)] / RESULTS)
    return f"{one_estimate(found[0].removesuffix('.'))[0]}.".replace("|", "\\|") if found else "Nothing was measured."


def missing(root: Path, _: str) -> str:
    """Which results are missing or of another version, and what makes them; nothing if all are there."""
    lines = []
    for place in PLACES:
        if numbers := place.missing(root):
            which = f"notebook{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
            lines.append(
                f"- Not yet judged on {place.data} by the present rules: {which}. `{place.command(*numbers)}` does it."
            )
    return _block(lines)


def _of_file(lines: Callable[[dict], list[str]]) -> Callable[[Path, str], str]:
    def part(root: Path, place: str) -> str:
        return _block(_told(lines, root / place if place.endswith(".json") else root / place / RESULTS))

    return part


def _told(lines: Callable[[dict], list[str]], path: Path) -> list[str]:
    """What a results file says."""
    results = read(path)
    try:
        return lines(results)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"{name_of(path)} is of another version (no {error}); {maker_of(path)} anew") from error


def _block(lines: list[str]) -> str:
    return "\n".join(["", *lines, ""])


KINDS: dict[str, Callable[[Path, str], str]] = {
    "first": first_claims,
    "claims": claims,
    "controls": controls,
    "pretrained": before_fine_tuning,
    "about": about,
    "finding": finding,
    "by-norm": by_norm,
    "pretrainings": over_pretrainings,
    "missing": missing,
    "verdicts": _of_file(verdicts_of),
    **{name: _of_file(lines) for name, lines in TABLES.items()},
}


def renewed(text: str, root: Path) -> str:
    """A page's text with each part between marks written anew.

    Args:
        text: the page; KIND is one of :data:`KINDS`, PLACE what its function takes.
        root: the checkout.

    Raises:
        ValueError: an unknown kind; results that cannot be read, or that lack a table's numbers: says what to run.
    """

    def part(match: re.Match) -> str:
        kind, place = match.groups()
        make = KINDS[one_of("part of a page", kind, KINDS)]
        return f"<!-- {kind}: {place} -->{make(root, place)}<!-- end -->"

    return re.sub(r"<!-- ([\w-]+): (\S+) -->.*?<!-- end -->", part, text, flags=re.DOTALL)


def update(root: Path) -> list[Path]:
    """Renew all pages of the checkout; all or, if one cannot be, none. Returns those that changed.

    Raises:
        ValueError: see :func:`renewed`.
    """
    paths = [path for pattern in PAGES for path in sorted(root.glob(pattern))]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    new = {path: renewed(text, root) for path, text in texts.items()}
    changed = [path for path in paths if new[path] != texts[path]]
    for path in changed:
        write_atomically(path, new[path].encode())
    return changed
