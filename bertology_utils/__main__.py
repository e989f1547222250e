"""Command line: ``python -m bertology_utils run | list | check``."""

import argparse
import sys

from .notebooks import find_notebooks, select
from .parameters import KNOWN


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0 well, 1 a notebook failed, 2 a wrong call."""
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except (ValueError, TypeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bertology_utils", description="Run the suite's notebooks.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command, text in (
        ("run", _run, "run notebooks, publish their figures, write an HTML report"),
        ("check", _check, "check parameters and the installation; run nothing"),
        ("list", _list, "list the notebooks and their parameters"),
    ):
        sub = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.set_defaults(command=command)
        if name == "list":
            continue
        sub.add_argument("--profile", help="embedded (the default), minilm or paper")
        sub.add_argument("--only", default="", metavar="N,N", help="numbers of the notebooks, for example 3,6")
        sub.add_argument("-p", dest="parameters", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
                         help="set a notebook parameter; may be repeated")
        if name == "run":
            sub.add_argument("--in-place", action="store_true",
                             help="also store the executed notebooks in notebooks/ (default settings only)")
    return parser


def _chosen(options):
    from .run import check_parameters

    notebooks = select(find_notebooks(), options.only)
    texts = dict(options.parameters)
    if options.profile is not None:
        if "profile" in texts:
            raise ValueError("profile is given twice, by --profile and by -p; give it once")
        texts = {"profile": options.profile, **texts}
    return notebooks, check_parameters(notebooks, texts)


def _run(options) -> int:
    from .report import write_report
    from .results import project_root
    from .run import is_default, keep_in_place, output_folder, run_notebook

    notebooks, values = _chosen(options)
    if options.in_place and not is_default(values):
        raise ValueError("--in-place keeps the committed notebooks, which are run with default settings only")
    output = output_folder(values)
    figures = project_root() / "figures" if is_default(values) else output / "figures"
    outcomes = []
    for number, notebook in enumerate(notebooks, start=1):
        print(f"[{number}/{len(notebooks)}] {notebook.name}: {notebook.title}", file=sys.stderr, flush=True)
        outcome = run_notebook(notebook, values, output, figures)
        outcomes.append(outcome)
        ending = f"failed, {outcome.error}; see {outcome.executed}" if outcome.error else "done"
        print(f"[{number}/{len(notebooks)}] {notebook.name}: {ending} ({outcome.seconds:.0f} s)", file=sys.stderr)
        if options.in_place and not outcome.error:
            keep_in_place(outcome)
    print(f"figures: {figures}\nreport:  {write_report(outcomes, output, figures)}")
    return 1 if any(outcome.error for outcome in outcomes) else 0


def _check(options) -> int:
    notebooks, values = _chosen(options)
    given = ", ".join(f"{name}={value!r}" for name, value in values.items()) or "default settings"
    print(f"ready to run {', '.join(notebook.name for notebook in notebooks)} with {given}")
    return 0


def _list(options) -> int:
    for notebook in find_notebooks():
        print(f"{notebook.number}  {notebook.title}")
        for name, value in notebook.parameters.items():
            print(f"     {name} ({KNOWN[name][0].__name__}) = {value!r}" if name in KNOWN else f"     {name}: unknown")
    return 0


if __name__ == "__main__":
    sys.exit(main())
