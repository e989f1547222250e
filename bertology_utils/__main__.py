"""Command line: ``python -m bertology_utils run | list | check``."""

import argparse
import sys
from importlib import metadata

from packaging.requirements import Requirement

from .suite.colab import repository_address
from .suite.notebooks import Notebook, find_notebooks, select
from .suite.parameters import KNOWN
from .suite.results import project_root


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0 well, 1 a notebook failed, 2 a wrong call, 130 interrupted."""
    options = _parser().parse_args(arguments)
    try:
        chosen = _chosen(options)
    except (ValueError, TypeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        return options.command(options, *chosen)
    except KeyboardInterrupt:
        print("interrupted; finished models are kept in the cache, so a new run goes on from there", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bertology_utils", description="Run the suite's notebooks.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command, text in (
        ("run", _run, "run notebooks, publish their figures, write an HTML report"),
        ("check", _check, "check parameters, installed versions and the embedded model; run nothing"),
        ("list", _list, "list the notebooks and their parameters"),
    ):
        sub = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.set_defaults(command=command, profile=None, only="", parameters=[], in_place=False)
        if name == "list":
            continue
        sub.add_argument("--profile", help="embedded (the default), minilm or paper")
        sub.add_argument("--only", default="", metavar="N,N", help="numbers of the notebooks, for example 3,6")
        sub.add_argument("-p", dest="parameters", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
                         help="set a notebook parameter; may be repeated")
        if name == "run":
            sub.add_argument("--in-place", action="store_true",
                             help="also renew notebooks/ and the README's tables (default settings only)")
    return parser


def _chosen(options) -> tuple[list[Notebook], dict[str, object]]:
    """The notebooks and checked parameters of a call; raises for anything wrong in it."""
    from .suite.run import check_parameters

    notebooks = select(find_notebooks(), options.only)
    names = [name for name, _ in options.parameters]
    texts = dict(options.parameters)
    if options.profile is not None:
        names.append("profile")
        texts["profile"] = options.profile
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"{', '.join(sorted(twice))} is given twice; give it once")
    values = check_parameters(notebooks, texts)
    if options.in_place:
        if values:
            raise ValueError("--in-place keeps the committed notebooks, which are run with default settings only")
        repository_address()
    return notebooks, values


def _run(options, notebooks: list[Notebook], values: dict[str, object]) -> int:
    from .suite.readme import update as update_readme
    from .suite.report import write_report
    from .suite.run import keep_in_place, output_folder, run_notebook

    output = output_folder(values)
    figures = output / "figures" if values else project_root() / "figures"
    outcomes = []
    for number, notebook in enumerate(notebooks, start=1):
        print(f"[{number}/{len(notebooks)}] {notebook.name}: {notebook.title}", file=sys.stderr, flush=True)
        outcome = run_notebook(notebook, values, output, figures)
        outcomes.append(outcome)
        ending = f"failed, {outcome.error}; see {outcome.executed}" if outcome.error else "done"
        print(f"[{number}/{len(notebooks)}] {notebook.name}: {ending} ({outcome.seconds:.0f} s)", file=sys.stderr)
        for change in outcome.changes:
            print(f"  changed: {change}", file=sys.stderr)
        if options.in_place and not outcome.error:
            keep_in_place(outcome)
    if options.in_place:
        update_readme(project_root())
    print(f"figures: {figures}\nreport:  {write_report(outcomes, output, figures)}")
    return 1 if any(outcome.error for outcome in outcomes) else 0


def _check(options, notebooks: list[Notebook], values: dict[str, object]) -> int:
    problems = unmet_requirements()
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    given = ", ".join(f"{name}={value!r}" for name, value in values.items()) or "default settings"
    print(f"{'not ready' if problems else 'ready'} to run {', '.join(nb.name for nb in notebooks)} with {given}")
    return 2 if problems else 0


def unmet_requirements() -> list[str]:
    """What the installation lacks of the package's own requirements, a line each."""
    problems = []
    for text in metadata.requires("bertology-utils") or []:
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            found = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            found = "none"
        if found == "none" or not requirement.specifier.contains(found, prereleases=True):
            problems.append(f"{requirement} is needed, {found} is installed")
    return problems


def _list(options, notebooks: list[Notebook], values: dict[str, object]) -> int:
    for notebook in notebooks:
        print(f"{notebook.number}  {notebook.title}")
        for name, value in notebook.parameters.items():
            print(f"     {name} ({KNOWN[name][0].__name__}) = {value!r}" if name in KNOWN else f"     {name}: unknown")
    return 0


if __name__ == "__main__":
    sys.exit(main())
