"""Measures the evidence in ``results/`` again, and draws its figures: ``make evidence``.

    python -m docs.evidence --glue FOLDER --framenet FOLDER --treebank FILE --confirm FOLDER --only 3,4
    python -m docs.evidence --freeze

Data whose place is left out come from the Hub (GLUE) or NLTK (FrameNet 1.7, for notebook 8);
notebook 2 is about release 1.5, and needs its folder; notebook 11 needs the treebank. What the cache
has is not made again, so a call that was cut off goes on where it was.

The confirmatory study runs with ``--confirm``, a folder in GLUE's layout whose dev files hold rows
that nothing has touched, and by the rules that ``--freeze`` froze before.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bertology_utils.__main__ import main as command_line
from bertology_utils.cache import write_atomically
from bertology_utils.lab import Lab
from bertology_utils.links.dependencies import FOUND, WAYS, head_dependencies
from bertology_utils.models import load_encoder
from bertology_utils.record import as_text, project_root
from bertology_utils.results import MEASURED, P_VALUE
from bertology_utils.run import Notebook, find_notebooks, select
from bertology_utils.statistics import ONE_SIDED
from bertology_utils.verdicts import CLAIMS, CONFIRMATORY, FROZEN, read_frozen

if TYPE_CHECKING:
    import pandas as pd

# Folder below results/, its notebooks, and the parameters that differ from the profile's.
RUNS: tuple[tuple[str, str, dict[str, str]], ...] = (
    # Measured on a CPU, with fewer runs and rows.
    ("glue", "10", {"tasks": "mrpc,rte,sst2", "trainings": "2", "sweep_examples": "1000"}),
    ("ud", "11", {}),
    # The confirmatory study: another seed, and dev rows that nothing touched, all of them.
)
AHEAD = "relations with a head ahead of the best distance, and of the nearest word of a kind"
RANDOM_ENCODERS = 3
COST = """\
All notebooks together fine-tune 59 models and sweep the heads of 25: about a night on two CPU cores
that compute in bf16, and up to 9 GiB of disk. The confirmatory study fine-tunes 29 more and sweeps 25.
One notebook alone takes less; what the cache has is not made again."""


def notebooks_with_changed_rules() -> dict[str, str]:
    """The notebooks of the confirmatory study whose rules are not the frozen ones any more, and the reason.

    Raises:
        ValueError: nothing was frozen, or rules of a notebook that the study has run have changed.
    """
    results, changed = project_root() / "results", {}
    read_frozen(results)
    for number in " ".join(one[1] for one in RUNS if one[0] == CONFIRMATORY).split():
        try:
            read_frozen(results, [int(number)])
        except ValueError as error:
            changed[number] = str(error)
    return changed


def calls(
    options: argparse.Namespace, left_out: Mapping[str, str] | None = None
) -> Iterator[list[str]]:
    """The arguments of each run of ``python -m bertology_utils``.

    Args:
        options: of the command line.
        left_out: notebooks that the confirmatory study leaves out, and why.

    Raises:
        ValueError: a notebook that was asked for cannot be measured.
    """
    left_out, notebooks = left_out or {}, {one.number: one for one in find_notebooks()}
    chosen = [one.number for one in select(list(notebooks.values()), options.only)]
    measured = {number for _, numbers, _ in RUNS for number in numbers.split()}
    if options.only and (without := sorted(set(chosen) - measured)):
        raise ValueError(f"notebook {without[0]} has no evidence; choose another")
    if options.only and (refused := left_out.keys() & chosen):
        raise ValueError(left_out[min(refused)])
    needed = {
        "11": (options.treebank, "TREEBANK=FILE, dev and test of UD English-EWT in one file"),
    }
    for number in [one for one in chosen if one in needed and not needed[one][0]]:
        if options.only:
            raise ValueError(f"notebook {number} needs {needed[number][1]}")
        chosen.remove(number)
    for folder, numbers, different in RUNS:
        skipped = left_out if folder == CONFIRMATORY else ()
        own = [notebooks[one] for one in numbers.split() if one in chosen and one not in skipped]
        if own and (folder != CONFIRMATORY or options.confirm):
            data = options.confirm if folder == CONFIRMATORY else options.glue
            # Figures of the pages are those of the weights; others stay with their run.
            figures = [] if folder in ("glue_norm", CONFIRMATORY) else ["--figures", "figures"]
            yield [
                *("run", "--profile", "glue", "--only", ",".join(one.number for one in own)),
                *(part for pair in parameters(options, own, data) for part in ("-p", *pair)),
                *(part for pair in different.items() for part in ("-p", *pair)),
                *("--results", f"results/{folder}", *figures),
                *(("--scheduler", options.scheduler) if options.scheduler else ()),
            ]


def parameters(
    options: argparse.Namespace, notebooks: list[Notebook], data: str
) -> list[tuple[str, str]]:
    """Where the data are, of the parameters that these notebooks have."""
    given = {
        "data": data and f"folder:{data}",
        # Notebook 7 has the mini-FrameNet by default, whatever the profile.
        "framenet": f"folder:{options.framenet}" if options.framenet else "nltk",
        "treebank": options.treebank,
        "annotation": options.annotation,
    }
    declared = {name for one in notebooks for name in one.parameters}
    return [(name, value) for name, value in given.items() if value and name in declared]


def measure_treebank(path: str) -> None:
    """Write results/ud: heads along a treebank's twelve commonest dependencies, in both directions.

    Args:
        path: of the CoNLL-U file.
    """
    lab = Lab("dependencies", profile="glue", treebank=path)
    seed, random = lab.settings.seed, "random weights"
    encoders = {"pre-trained": lab.encoder(), random: lab.encoder("normal")}
    # Of further random weights no more than counts.
    for number in range(2, RANDOM_ENCODERS + 1):
        encoder = load_encoder(lab.settings.model, "normal", seed + number)
        encoders[f"{random}, {number}"] = encoder.to(lab.device)
    for state, encoder in encoders.items():
        table = head_dependencies(encoder, lab.tokenizer, path, seed=seed)
        left_out, table = table.attrs["left out"], table.head(12 * len(WAYS))
        lab.record(AHEAD, relations_ahead(table), by=("kind",), state=state, unit="count")
        if "," in state:
            continue
        lab.fact(**{"left out": left_out})
        table.index = table["relation"] + ", " + table["direction"]
        for what in ("best head", "best rule"):
            lab.fact(**{f"{what}s, {state}": table[what].to_dict()})
        values = {
            what: table[[f"{part}: share of arcs", f"{part}: low", f"{part}: high"]]
            .set_axis(["value", "low", "high"], axis=1)
            .to_dict("index")
            for what, part in zip(FOUND, ("head", "distance", "rule"), strict=True)
        }
        plain = "p", "p, rule", "arcs", "best fixed distance"
        for what, numbers in (values | {what: table[what].to_dict() for what in plain}).items():
            unit = "share" if what in FOUND else "p" if what[:1] == "p" else "count"
            tolerance = {"share": MEASURED, "p": P_VALUE}.get(unit, 0)
            labels = {"by": ("kind",), "state": state}
            lab.record(what, numbers, unit=unit, tolerance=tolerance, **labels)
    target = project_root() / "results" / "ud" / f"{lab.notebook}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, as_text(lab.content).encode())


def relations_ahead(table: pd.DataFrame) -> dict[str, int]:
    """How many relations have a head ahead of the best fixed distance, and of the best rule, and of how many.

    Either of a relation's two directions counts, so that each has half of the level.

    Args:
        table: of :func:`bertology_utils.links.dependencies.head_dependencies`.
    """
    ahead = table.groupby("relation")[["p", "p, rule"]].min() <= ONE_SIDED / 2
    counts = {"distance": int(ahead["p"].sum()), "nearest word": int(ahead["p, rule"].sum())}
    return counts | {"relations": len(ahead)}


def freeze(results: Path, notebooks: Sequence[int], commit: str) -> Path:
    """Write the rules of the claims that these notebooks judge on rows of GLUE.

    Args:
        results: the folder ``results``.
        notebooks: their numbers.
        commit: which has these rules.

    Raises:
        ValueError: there are results of the study already.
    """
    folder = results / CONFIRMATORY
    if old := sorted(folder.glob("*.json")):
        raise ValueError(
            f"results/{CONFIRMATORY} has results already ({old[0].name}), made under the frozen rules; for"
            f" another study, with other rows, move the folder away first"
        )
    frozen = [one for one in CLAIMS.values() if one.glue and one.notebook in notebooks]
    rules = [f'{one.id} = "{one.digest}"  # {one.rule_in_words}\n' for one in frozen]
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / FROZEN, f'commit = "{commit}"\n\n[rules]\n{"".join(rules)}'.encode())
    return folder / FROZEN


def freeze_rules() -> Path:
    """Freeze the rules of the confirmatory study's notebooks, which must stand in a commit.

    Raises:
        ValueError: there are confirmatory results already, or ``claims.toml`` is not committed.
    """
    root, rules = project_root(), "bertology_utils/claims.toml"
    try:
        commit, changed = (
            subprocess.check_output(["git", *words], cwd=root, text=True, stderr=subprocess.DEVNULL)
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "--", rules])
        )
    except (OSError, subprocess.CalledProcessError):
        raise ValueError("rules are frozen in a commit, which needs git and a clone") from None
    if changed:
        raise ValueError(f"{rules} is not committed; commit the rules before you freeze them")
    notebooks = {
        int(number) for run, numbers, _ in RUNS if run == CONFIRMATORY for number in numbers.split()
    }
    return freeze(root / "results", notebooks, commit.strip())


def main(arguments: list[str] | None = None) -> int:
    """Check all that was asked for, then run it; returns the first exit code that is not 0, or 0."""
    options = read_options(arguments)
    try:
        if options.freeze:
            path = freeze_rules().relative_to(project_root())
            print(f"{path} written; commit it before the confirmatory study is run")
            return 0
        changed = notebooks_with_changed_rules() if options.confirm else {}
        todo = list(calls(options, changed))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(COST, flush=True)
    if not options.confirm:
        print("No confirmatory study: it needs CONFIRM=FOLDER, with dev rows that nothing touched.")
    for number, error in changed.items():
        print(f"The confirmatory study leaves out notebook {number}: {error}")
    steps = [[*call, "--dry-run"] for call in todo] + todo
    code = next((code for step in steps if (code := command_line(step))), 0)
    if options.treebank and not options.only and not code:
        measure_treebank(options.treebank)
    return code


def read_options(arguments: list[str] | None) -> argparse.Namespace:
    """The options of a call."""
    parser = argparse.ArgumentParser(prog="python -m docs.evidence", allow_abbrev=False)
    for name, metavar, text in (
        ("glue", "FOLDER", "GLUE's own files, a folder for each task"),
        ("framenet", "FOLDER", "FrameNet 1.5 as it is distributed"),
        ("treebank", "FILE", "UD English-EWT, dev and test in one CoNLL-U file"),
        (
            "confirm",
            "FOLDER",
            "GLUE with dev rows that nothing touched: runs the confirmatory study",
        ),
        ("annotation", "spacy:NAME", "another spaCy pipeline than the profile's"),
        ("only", "N,N", "numbers of notebooks"),
        ("scheduler", "ADDRESS", "a Dask scheduler that trains"),
    ):
        parser.add_argument(f"--{name}", default="", metavar=metavar, help=text)
    parser.add_argument(
        "--freeze",
        action="store_true",
        help="freeze the confirmatory study's rules, and run nothing",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
