"""Command line: ``python -m bertology_utils run | check | list | cache``."""

from __future__ import annotations

import argparse
import signal
import sys
from importlib import metadata

from packaging.requirements import Requirement

from .common.profiles import PROFILES
from .suite import cache_command
from .suite.check import Checked, check_call
from .suite.colab import repository_address
from .suite.declarations import PARAMETERS, profile_values
from .suite.notebooks import Notebook, find_notebooks, select
from .suite.results import project_root


class _Terminated(KeyboardInterrupt):
    """SIGTERM: ends a run in the way of Ctrl-C."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit code: 0 well, 1 something failed, 2 a wrong call, 130 interrupted, 143 terminated.
    """
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except KeyboardInterrupt as end:
        word, code = ("terminated", 143) if isinstance(end, _Terminated) else ("interrupted", 130)
        print(f"{word}; finished models are kept in the cache, so a new run goes on from there", file=sys.stderr)
        return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bertology_utils", description="Run the suite's notebooks.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command, text in (
        ("run", _run, "run notebooks, publish their figures, write an HTML report"),
        ("check", _check, "check parameters, what they name, installed versions and the embedded model; run nothing"),
        ("list", _list, "list the notebooks and their parameters"),
    ):
        sub = commands.add_parser(
            name, help=text, description=text, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        sub.set_defaults(command=command, in_place=False)
        sub.add_argument("--only", default="", metavar="N,N-N", help="numbers of the notebooks, for example 3,6 or 1-3")
        if name == "list":
            continue
        sub.epilog = "parameters:\n" + "\n".join(f"  {line}" for line in map(_declaration, PARAMETERS))
        sub.add_argument("--profile", help=f"{', '.join(PROFILES)}; without it {PARAMETERS['profile'].default}")
        sub.add_argument(
            "-p",
            dest="parameters",
            nargs=2,
            action="append",
            default=[],
            metavar=("NAME", "VALUE"),
            help="set a notebook parameter; may be repeated",
        )
        if name == "run":
            sub.add_argument(
                "--cell-limit",
                type=cache_command.not_negative,
                default=720,
                metavar="MINUTES",
                help="the longest that one cell may take, 0 for any time (%(default)s)",
            )
            sub.add_argument(
                "--in-place",
                action="store_true",
                help="also renew notebooks/ and the README's tables (default settings only)",
            )
    cache_command.add_to(commands)
    return parser


def _call(options) -> tuple[list[Notebook], Checked]:
    """The notebooks and checked parameters of a call; raises for anything wrong in it."""
    notebooks = select(find_notebooks(), options.only)
    names = [name for name, _ in options.parameters]
    texts = dict(options.parameters)
    if options.profile is not None:
        names.append("profile")
        texts["profile"] = options.profile
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"{', '.join(sorted(twice))} is given twice; give it once")
    checked = check_call(notebooks, texts)
    if options.in_place:
        if checked.values:
            raise ValueError("--in-place keeps the committed notebooks, which are run with default settings only")
        repository_address()
    return notebooks, checked


def _refused(error: Exception | str, code: int = 2) -> int:
    print(f"error: {error}", file=sys.stderr)
    return code


def _run(options) -> int:
    try:
        notebooks, checked = _call(options)
    except (ValueError, TypeError, OSError) as error:
        return _refused(error)
    from .suite.run import in_words, only_run, output_folder

    for remark in checked.remarks:
        print(f"note: {remark}", file=sys.stderr)
    output = output_folder(checked.values)
    figures = output / "figures" if checked.values else project_root() / "figures"
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        with only_run(output, figures):
            return _run_all(options, notebooks, checked.values, output, figures)
    except BlockingIOError as error:
        return _refused(error)
    except OSError as error:
        return _refused(in_words(error), code=1)
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(*_) -> None:
    raise _Terminated


def _run_all(options, notebooks: list[Notebook], values: dict[str, object], output, figures) -> int:
    from .suite.readme import update as update_readme
    from .suite.report import write_report
    from .suite.run import keep_in_place, run_notebook

    outcomes = []
    for number, notebook in enumerate(notebooks, start=1):
        print(f"[{number}/{len(notebooks)}] {notebook.name}: {notebook.title}", file=sys.stderr, flush=True)
        outcome = run_notebook(notebook, values, output, figures, options.cell_limit * 60)
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


def _check(options) -> int:
    try:
        notebooks, checked = _call(options)
    except (ValueError, TypeError, OSError) as error:
        return _refused(error)
    problems = unmet_requirements()
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    given = ", ".join(f"{name}={value!r}" for name, value in checked.values.items()) or "default settings"
    print(
        f"{'not ready' if problems else 'ready'} to run {', '.join(nb.name for nb in notebooks)} with {given}",
        *checked.remarks,
        sep="\n  ",
    )
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


def _declaration(name: str) -> str:
    parameter = PARAMETERS[name]
    values = profile_values(name)
    return f"{name} ({parameter.kind.__name__}): {parameter.help()}" + (f" ({values})" if values else "")


def _list(options) -> int:
    try:
        notebooks = select(find_notebooks(), options.only)
    except (ValueError, OSError) as error:
        return _refused(error)
    for notebook in notebooks:
        print(f"{notebook.number}  {notebook.title}")
        for name, value in notebook.parameters.items():
            kind, _, text = _declaration(name).partition(": ") if name in PARAMETERS else (name, "", "unknown")
            print(f"     {kind} = {value!r}: {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
