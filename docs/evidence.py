"""Measures the evidence in ``results/`` again, and draws its figures: ``make evidence``.

    python -m docs.evidence --glue FOLDER --framenet FOLDER --treebank FILE --only 3,6

Data whose place is left out come from the Hub (GLUE) or NLTK (FrameNet 1.7, for notebooks 6 to 8);
notebook 2 is about release 1.5, and needs its folder. What the cache has is not made again, so a
call that was cut off goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from bertology_utils.__main__ import main as command_line
from bertology_utils.cache import write_atomically
from bertology_utils.lab import Lab
from bertology_utils.links.dependencies import FOUND, WAYS, head_dependencies
from bertology_utils.record import as_text, project_root
from bertology_utils.results import MEASURED, P_VALUE
from bertology_utils.run import Notebook, find_notebooks

# Folder below results/, its notebooks, and the parameters that differ from the profile's.
RUNS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("glue", "1 3 4 5", {}),
    ("glue", "9", {"tasks": "mrpc,stsb,sst2,rte,qqp,mnli"}),
    ("glue", "6", {"tasks": "mrpc,stsb,sst2,rte"}),
    ("glue", "7 8", {"max_examples": "100"}),
    ("glue", "10", {"tasks": "mrpc,rte,sst2", "train_examples": "4000", "trainings": "2"}),
    ("framenet15", "2", {}),
    ("glue_norm", "1 4 5", {"attention": "norm"}),
)
COST = """\
All notebooks together fine-tune 102 models and sweep their heads: about six hours on two CPU cores
that compute in bf16, and 10 GiB of disk. One notebook alone takes less; what the cache has is not made again."""


def calls(options: argparse.Namespace) -> Iterator[list[str]]:
    """The arguments of each run of ``python -m bertology_utils``."""
    notebooks = {one.number: one for one in find_notebooks()}
    chosen = options.only.split(",") if options.only else list(notebooks)
    if unknown := sorted(set(chosen) - notebooks.keys()):
        raise ValueError(f"unknown notebook {unknown[0]!r}; choose of {','.join(notebooks)}")
    if not options.framenet and "2" in chosen:
        if options.only:
            raise ValueError("notebook 2 needs FRAMENET=FOLDER, the folder of FrameNet 1.5")
        chosen.remove("2")
    for folder, numbers, different in RUNS:
        own = [notebooks[number] for number in numbers.split() if number in chosen]
        if own:
            # Figures of the pages are those of the weights; others stay with their run.
            figures = [] if folder == "glue_norm" else ["--figures", "figures"]
            yield [
                *("run", "--profile", "glue", "--only", ",".join(one.number for one in own)),
                *(part for pair in parameters(options, own) for part in ("-p", *pair)),
                *(part for pair in different.items() for part in ("-p", *pair)),
                *("--results", f"results/{folder}", *figures),
                *(("--scheduler", options.scheduler) if options.scheduler else ()),
            ]


def parameters(options: argparse.Namespace, notebooks: list[Notebook]) -> list[tuple[str, str]]:
    """Where the data are, of the parameters that these notebooks have."""
    given = {
        "data": options.glue and f"folder:{options.glue}",
        # Notebook 7 has the mini-FrameNet by default, whatever the profile.
        "framenet": f"folder:{options.framenet}" if options.framenet else "nltk",
        "treebank": options.treebank,
        "annotation": options.annotation,
    }
    declared = {name for one in notebooks for name in one.parameters}
    return [(name, value) for name, value in given.items() if value and name in declared]


def measure_treebank(path: str) -> None:
    """Write results/ud: heads along a treebank's twelve commonest dependencies, in both directions."""
    lab = Lab("dependencies", profile="glue", treebank=path)
    for init, state in (("pretrained", "pre-trained"), ("normal", "random weights")):
        model, seed = lab.encoder(init), lab.settings.seed
        table = head_dependencies(model, lab.tokenizer, path, seed=seed)
        lab.fact(**{"left out": table.attrs["left out"]})
        table = table.head(12 * len(WAYS))
        table.index = table["relation"] + ", " + table["direction"]
        lab.fact(**{f"best heads, {state}": table["best head"].to_dict()})
        values = {
            what: table[[f"{part}: share of arcs", f"{part}: low", f"{part}: high"]]
            .set_axis(["value", "low", "high"], axis=1)
            .to_dict("index")
            for what, part in zip(FOUND, ("head", "distance"), strict=True)
        }
        values |= {what: table[what].to_dict() for what in ("p", "arcs", "best fixed distance")}
        for what, numbers in values.items():
            unit = "share" if what in FOUND else what if what == "p" else "count"
            tolerance = {"share": MEASURED, "p": P_VALUE}.get(unit, 0)
            labels = {"by": ("kind",), "state": state}
            lab.record(what, numbers, unit=unit, tolerance=tolerance, **labels)
    target = project_root() / "results" / "ud" / f"{lab.notebook}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, as_text(lab.content).encode())


def main(arguments: list[str] | None = None) -> int:
    """Check all that was asked for, then run it; returns the first exit code that is not 0, or 0."""
    options = read_options(arguments)
    try:
        todo = list(calls(options))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(COST, flush=True)
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
        ("annotation", "spacy:NAME", "another spaCy pipeline than the profile's"),
        ("only", "N,N", "numbers of notebooks"),
        ("scheduler", "ADDRESS", "a Dask scheduler that trains"),
    ):
        parser.add_argument(f"--{name}", default="", metavar=metavar, help=text)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
