"""README.md, RESULTS.md and docs/: what the results files say is written into them, so that they cannot differ.

A part of a page stands between ``<!-- KIND: PLACE -->`` and ``<!-- end -->``.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from ..claims.companions import COMPANIONS
from ..claims.entries import ENTRIES, OURS
from ..claims.register import CLAIMS, FIRST, NOTEBOOKS, Entry
from ..claims.support import UNTESTABLE
from ..claims.verdict import THIS_RUN
from ..common import one_of
from ..common.cache import write_atomically
from .committed import EMBEDDED, FRAMENET, GLUE, PLACES, Place
from .opening import SECTIONS, sentences
from .results import RESULTS
from .tables import TABLES, maker_of, name_of, read, table

NOT_YET = "not yet"  # no such run, or none that was judged by the present rules
PAGES = ("README.md", "RESULTS.md", "docs/*.md")
Verdicts = Mapping[str, Mapping]  # from results.json, by claim


def _columns(root: Path) -> tuple[Verdicts, Verdicts, Verdicts]:
    """Verdicts on bert-base, on real data, and on the embedded data."""
    real = FRAMENET.verdicts(root) | GLUE.verdicts(root)
    return EMBEDDED.verdicts(root, models=True), real, EMBEDDED.verdicts(root)


def first_claims(root: Path, _: str) -> str:
    """The README's ten claims: only what is said of them."""
    bert, real, embedded = _columns(root)
    rows = []
    for entry in (ENTRIES[name] for name in FIRST):
        published = f"{bert[entry.id]['outcome']} (published figure)" if entry.id in bert else NOT_YET
        said = [verdicts[entry.id]["outcome"] if entry.id in verdicts else NOT_YET for verdicts in (real, embedded)]
        rows.append([entry.section, entry.claim, entry.paper, published, *said])
    return _block(table(["§", "claim", "the paper", "bert-base", "MiniLM, real data", "MiniLM, embedded"], rows))


def claims(root: Path, number: str) -> str:
    """Every claim that a notebook judges, with the numbers."""
    columns = _columns(root)
    rows = [
        [entry.section, entry.claim, entry.paper, *(_cell(entry, verdicts) for verdicts in columns)]
        for entry in (*CLAIMS, *COMPANIONS)
        if entry.notebook == int(number)
    ]
    return _block(table(["§", "claim", "the paper", "bert-base", "MiniLM, real data", "MiniLM, embedded"], rows))


def controls(root: Path, number: str) -> str:
    """Our controls of a notebook's claims, with the numbers."""
    _, *columns = _columns(root)
    rows = [
        [entry.claim, *(_cell(entry, verdicts) for verdicts in columns)] for entry in OURS if entry.notebook == int(number)
    ]
    return _block(table(["control of ours", "MiniLM, real data", "MiniLM, embedded"], rows))


def _cell(entry: Entry, verdicts: Verdicts) -> str:
    """A verdict and its number; for what cannot be tested what is missing."""
    if entry.id not in verdicts:
        return NOT_YET
    one = verdicts[entry.id]
    if one["outcome"] == UNTESTABLE:
        return f"**{one['outcome']}**; {one['why']}"
    model = "" if one["model"] == THIS_RUN else f" ({one['model'].removeprefix('bert-base-uncased').strip(' ,')})"
    return f"**{one['outcome']}**: {one['ours']}{model}"


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
    return _block([told, "", *table(["§", "claim or control", "by weight", "by norm"], rows)] if rows else [told])


def finding(root: Path, number: str) -> str:
    """What came out of a notebook, in a sentence."""
    one_of("notebook with findings", number, map(str, SECTIONS))
    if int(number) in EMBEDDED.missing(root):
        return f"No results of this version; `{EMBEDDED.command(int(number))}` makes them."
    found = _told(sentences, root / EMBEDDED.folder / NOTEBOOKS[int(number)] / RESULTS)
    return found[0].replace("|", "\\|") if found else "Nothing was measured."


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
    "finding": finding,
    "by-norm": by_norm,
    "missing": missing,
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
