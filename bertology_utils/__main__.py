"""Command line: ``python -m bertology_utils run | prepare | check | list | cache``."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from . import cache, colab
from .notebooks import Checked, Notebook, check_call, find_notebooks, select
from .record import project_root
from .settings import PARAMETERS, PROFILES, describe

if TYPE_CHECKING:
    from .plan import Failure, Plan
    from .run import Outcome

WRONG_CALL = (ValueError, TypeError, OSError, ImportError)


class Terminated(KeyboardInterrupt):
    """SIGTERM: ends a run in the way of Ctrl-C."""


def _end(*_) -> None:
    raise Terminated


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit code: 0 well, 1 something failed, 2 a wrong call, 130 interrupted, 143 terminated.
    """
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    try:
        return options.command(options)
    except KeyboardInterrupt as end:
        word, code = ("terminated", 143) if isinstance(end, Terminated) else ("interrupted", 130)
        print(
            f"{word}; finished models are kept in the cache, so a new run goes on from there",
            file=sys.stderr,
        )
        return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bertology_utils", description="Run the suite's notebooks."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command, text in (
        ("run", _run, "run notebooks, publish their figures, write an HTML report"),
        ("prepare", _prepare, "train and sweep what the notebooks need; run none of them"),
        (
            "check",
            _check,
            "check parameters, what they name, installed versions and the embedded model; run nothing",
        ),
        ("list", _list, "list the notebooks and their parameters"),
    ):
        sub = commands.add_parser(
            name,
            help=text,
            description=text,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(command=command, in_place=False, figures=None)
        sub.add_argument(
            "--only",
            default="",
            metavar="N,N-N",
            help="numbers of the notebooks, for example 3,6 or 1-3",
        )
        if name == "list":
            continue
        sub.epilog = "parameters:\n" + "\n".join(f"  {line}" for line in map(describe, PARAMETERS))
        sub.add_argument(
            "--profile", help=f"{', '.join(PROFILES)}; without it {PARAMETERS['profile'].default}"
        )
        text = "set a notebook parameter; may be repeated"
        sub.add_argument(
            "-p",
            dest="parameters",
            nargs=2,
            action="append",
            default=[],
            metavar=("NAME", "VALUE"),
            help=text,
        )
        if name == "check":
            continue
        workers = "workers at once; 0 for one for each GPU, or else for each core, as far as memory reaches (%(default)s)"
        sub.add_argument("--jobs", type=_count, default=0, metavar="N", help=workers)
        sub.add_argument(
            "--scheduler",
            default="",
            metavar="ADDRESS",
            help="train on the workers of a Dask scheduler",
        )
        if name == "run":
            limit = "the longest that one cell may take, 0 for any time (%(default)s)"
            sub.add_argument(
                "--cell-limit", type=cache.not_negative, default=720, metavar="MINUTES", help=limit
            )
            where = "a folder for figures and results instead of the run's own"
            sub.add_argument("--figures", type=Path, metavar="FOLDER", help=where)
            in_place = "also renew notebooks/ (default settings only)"
            sub.add_argument("--in-place", action="store_true", help=in_place)
    cache.add_to(commands)
    return parser


def _count(text: str) -> int:
    if int(text) < 0:
        raise ValueError
    return int(text)


_count.__name__ = "whole number from 0"  # what argparse calls it where it refuses a value


def _read_call(options) -> tuple[list[Notebook], Checked]:
    """The notebooks and checked parameters of a call; raises for anything wrong in it."""
    notebooks = select(find_notebooks(), options.only)
    pairs = [
        *options.parameters,
        *([("profile", options.profile)] if options.profile is not None else []),
    ]
    names = [name for name, _ in pairs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{', '.join(twice)} is given twice; give it once")
    checked = check_call(notebooks, dict(pairs))
    if options.in_place and checked.values:
        raise ValueError(
            "--in-place keeps the committed notebooks, which are run with default settings only"
        )
    return notebooks, checked


def _refused(error: Exception | str, code: int = 2) -> int:
    """Say why a call is refused, or failed; returns its exit code."""
    print(f"error: {error}", file=sys.stderr)
    return code


def _plan(options, notebooks: list[Notebook], values: dict[str, object]) -> tuple[Plan, int]:
    """What some notebooks need, and by how many workers it will be made; says both."""
    from .common import quiet
    from .lab import Lab
    from .plan import plan
    from .workers import cluster_size, jobs_for

    quiet()
    cache.evict_measurements()
    todo = plan(notebooks, values, Lab)
    jobs = (
        cluster_size(options.scheduler)
        if options.scheduler
        else jobs_for(todo.memory, options.jobs)
    )
    if todo.items or todo.finished:
        print(todo.text(jobs), file=sys.stderr, flush=True)
    return todo, jobs


def _prepare(options) -> int:
    try:
        notebooks, checked = _read_call(options)
        todo, jobs = _plan(options, notebooks, checked.values)
    except WRONG_CALL as error:
        return _refused(error)
    from .plan import carry_out
    from .workers import in_words

    try:
        return _tell(carry_out(todo.items, jobs, options.scheduler))
    except (OSError, RuntimeError) as error:
        return _refused(in_words(error), code=1)


def _tell(failures: list[Failure]) -> int:
    for failure in failures:
        print(f"error: {failure.item.title}: {failure.problem}", file=sys.stderr)
    return 1 if failures else 0


def _run(options) -> int:
    try:
        notebooks, checked = _read_call(options)
    except WRONG_CALL as error:
        return _refused(error)
    from .run import only_run, output_folder
    from .workers import in_words

    output = output_folder(checked.values)
    figures = (
        options.figures or (output if checked.values else project_root()) / "figures"
    ).resolve()
    try:
        with only_run(output, figures):
            for remark in checked.remarks:
                print(f"note: {remark}", file=sys.stderr)
            return _run_all(options, notebooks, checked.values, output, figures)
    except BlockingIOError as error:
        return _refused(error)
    except OSError as error:
        return _refused(in_words(error), code=1)


def _run_all(
    options, notebooks: list[Notebook], values: dict[str, object], output: Path, figures: Path
) -> int:
    from .plan import carry_out
    from .run import keep_in_place, run_notebooks, write_report
    from .workers import KERNEL, jobs_for

    try:
        todo, jobs = _plan(options, notebooks, values)
    except (ValueError, FileNotFoundError, ConnectionError, ImportError) as error:
        return _refused(error)
    outcomes: list[Outcome] = []
    failures: list[Failure] = []
    at_once = min(jobs_for(KERNEL), options.jobs or jobs)
    for stage, items in todo.stages(notebooks):
        try:
            failures += carry_out(items, jobs, options.scheduler)
        except (ConnectionError, RuntimeError) as error:
            return _refused(error, code=1)
        without = {name for failure in failures for name in failure.item.notebooks}
        ready = [notebook for notebook in stage if notebook.name not in without]
        for outcome in run_notebooks(
            ready, values, output, figures, options.cell_limit * 60, at_once
        ):
            outcomes.append(outcome)
            _tell_outcome(outcome, f"[{len(outcomes)}/{len(notebooks)}]")
            if options.in_place and not outcome.error:
                keep_in_place(outcome)
    print(f"figures: {figures}\nreport:  {write_report(outcomes, output)}")
    for notebook in notebooks:
        if notebook not in [outcome.notebook for outcome in outcomes]:
            print(f"not run: {notebook.name}, since what it needs was not made", file=sys.stderr)
    return _tell(failures) or int(any(outcome.error for outcome in outcomes))


def _tell_outcome(outcome: Outcome, count: str) -> None:
    page = f"; see {outcome.executed.with_suffix('.html')}" if outcome.executed else ""
    ending = f"failed, {outcome.error}" if outcome.error else "done"
    print(
        f"{count} {outcome.notebook.name}: {ending} ({outcome.seconds:.0f} s){page}",
        file=sys.stderr,
        flush=True,
    )
    for change in outcome.changes:
        print(f"  changed: {change}", file=sys.stderr)


def _check(options) -> int:
    try:
        notebooks, checked = _read_call(options)
    except WRONG_CALL as error:
        return _refused(error)
    problems = colab.unmet()
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    given = (
        ", ".join(f"{name}={value!r}" for name, value in checked.values.items())
        or "default settings"
    )
    ready = f"{'not ready' if problems else 'ready'} to run {', '.join(nb.name for nb in notebooks)} with {given}"
    print(ready, *checked.remarks, sep="\n  ")
    return 2 if problems else 0


def _list(options) -> int:
    try:
        notebooks = select(find_notebooks(), options.only)
    except (ValueError, OSError) as error:
        return _refused(error)
    for notebook in notebooks:
        print(f"{notebook.number}  {notebook.title}")
        for name, value in notebook.parameters.items():
            print(f"     {describe(name, value) if name in PARAMETERS else name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
