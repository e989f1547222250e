"""Command line: ``python -m bertology_utils run | prepare | check | list | cache``."""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from . import cache, colab
from .common import quiet
from .record import project_root
from .run import Checked, Notebook, check_call, find_notebooks, select
from .settings import PARAMETERS, PROFILES, describe

if TYPE_CHECKING:
    from .jobs import Plan


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
        return _refuse(
            f"{word}; finished models are kept in the cache, so a new run goes on from there", code
        )


def _refuse(message: object, code: int) -> int:
    print(message, file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bertology_utils", description="Run the suite's notebooks."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command, text in (
        ("run", _run, "run notebooks and publish their figures"),
        ("prepare", _run, "train and sweep what the notebooks need; run none of them"),
        ("check", _run, "the same as run --dry-run"),
        ("list", _list, "list the notebooks and their parameters"),
    ):
        sub = commands.add_parser(
            name,
            help=text,
            description=text,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(command=command, name=name, dry_run=name == "check", in_place=False)
        add = sub.add_argument
        text = "numbers of the notebooks, for example 3,6 or 1-3"
        add("--only", default="", metavar="N,N-N", help=text)
        if name == "list":
            continue
        sub.epilog = "parameters:\n" + "\n".join(f"  {line}" for line in map(describe, PARAMETERS))
        text = f"{', '.join(PROFILES)}; without it {PARAMETERS['profile'].default}"
        add("--profile", help=text)
        text = "set a notebook parameter; may be repeated"
        pair = ("NAME", "VALUE")
        add("-p", dest="parameters", nargs=2, action="append", default=[], metavar=pair, help=text)
        if name == "check":
            continue
        text = "workers at once; 0 for one for each GPU, or else for each core, as far as memory reaches (%(default)s)"
        add("--jobs", type=_count, default=0, metavar="N", help=text)
        text = "train on the workers of a Dask scheduler"
        add("--scheduler", default="", metavar="ADDRESS", help=text)
        if name == "prepare":
            continue
        text = "check the call, read all that the notebooks read from the disk, and run nothing"
        add("--dry-run", action="store_true", help=text)
        text = "the longest that one cell may take, 0 for any time (%(default)s)"
        add("--cell-limit", type=_count, default=720, metavar="MINUTES", help=text)
        text = "a folder for figures and results instead of the run's own"
        add("--figures", type=Path, metavar="FOLDER", help=text)
        text = "also renew notebooks/ (default settings only)"
        add("--in-place", action="store_true", help=text)
    cache.add_to(commands, _count)
    return parser


def _count(text: str) -> int:
    if int(text) < 0:
        raise ValueError
    return int(text)


_count.__name__ = "whole number from 0"  # what argparse calls it where it refuses a value


def _read_call(options) -> tuple[list[Notebook], Checked]:
    """The notebooks and checked parameters of a call; raises for anything wrong in it."""
    notebooks = select(find_notebooks(), options.only)
    pairs = list(options.parameters)
    if options.profile is not None:
        pairs.append(("profile", options.profile))
    names = [name for name, _ in pairs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{', '.join(twice)} is given twice; give it once")
    checked = check_call(notebooks, dict(pairs))
    if options.in_place and checked.values:
        raise ValueError(
            "--in-place keeps the committed notebooks, which are run with default settings only"
        )
    return notebooks, checked


def _run(options) -> int:
    """Check a call, and run it, prepare it, or leave it at that."""
    try:
        notebooks, checked = _read_call(options)
    except (ValueError, TypeError, OSError, ImportError) as error:
        return _refuse(f"error: {error}", 2)
    if options.dry_run:
        return _say_what_would_run(notebooks, checked)
    from .run import only_run, output_folder
    from .workers import describe_error

    try:
        if options.name == "prepare":
            return _make_and_run(options, notebooks, checked.values)
        output = output_folder(checked.values)
        figures = options.figures or (output if checked.values else project_root()) / "figures"
        with only_run(output, figures.resolve()):
            for remark in checked.remarks:
                print(f"note: {remark}", file=sys.stderr)
            return _make_and_run(options, notebooks, checked.values, output, figures.resolve())
    except (BlockingIOError, ValueError, FileNotFoundError, ConnectionError, ImportError) as error:
        return _refuse(f"error: {error}", 2)
    except (OSError, RuntimeError) as error:
        return _refuse(f"error: {describe_error(error)}", 1)


def _say_what_would_run(notebooks: list[Notebook], checked: Checked) -> int:
    problems = colab.unmet()
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    given = ", ".join(f"{name}={value!r}" for name, value in checked.values.items())
    names = ", ".join(notebook.name for notebook in notebooks)
    ready = (
        f"{'not ready' if problems else 'ready'} to run {names} with {given or 'default settings'}"
    )
    print(ready, *checked.remarks, sep="\n  ")
    return 2 if problems else 0


def _plan(options, notebooks: list[Notebook], values: dict[str, object]) -> tuple[Plan, int]:
    """What some notebooks need, and by how many workers it will be made; prints both."""
    from .jobs import plan_jobs
    from .workers import count_workers

    quiet()
    cache.evict_measurements()
    plan = plan_jobs(notebooks, values)
    workers = 0 if options.scheduler else count_workers(plan.memory, options.jobs)
    if plan.orders or plan.finished:
        print(plan.describe(), file=sys.stderr, flush=True)
    return plan, workers


def _make_and_run(
    options,
    notebooks: list[Notebook],
    values: dict[str, object],
    output: Path | None = None,
    figures: Path | None = None,
) -> int:
    """Make what the notebooks need, and with an output folder run them; returns the exit code."""
    from .jobs import explain
    from .run import Outcome, keep_in_place, run_notebook
    from .workers import NeedFailedError, Task, connect, describe_error, run_tasks

    plan, workers = _plan(options, notebooks, values)
    by_name = {notebook.name: notebook for notebook in sorted(notebooks, key=plan.turn_of)}
    orders, runs = plan.tasks(bool(options.scheduler)), dict[str, Task]()
    if output is not None:
        for name, notebook in by_name.items():
            call = (notebook, values, output, figures, options.cell_limit * 60)
            runs[name] = Task(run_notebook, call, plan.notebooks.get(name, ()))
    # Notebook 0 comes before all that it does not need, so that a first result is early.
    first = {name: run for name, run in runs.items() if by_name[name].number == "0"}
    early = {name: orders[name] for run in first.values() for name in run.needs}
    counts, problems, failed = Counter[str](), list[str](), False
    with connect(workers, options.scheduler) as client:
        for name, result, error in run_tasks(early | first | orders | runs, client):
            if name in plan.orders:
                counts["orders"] += 1
                problem = explain(plan, name, error)
                ending = f"failed, {problem}" if problem else f"{result:.0f} s"
                title = plan.orders[name].title
                count = f"[{counts['orders']}/{len(plan.orders)}]"
                print(f"{count} {title}: {ending}", file=sys.stderr, flush=True)
                problems += [f"error: {title}: {problem}"] if problem else []
            elif isinstance(error, NeedFailedError):
                problems.append(f"not run: {name}, since what it needs was not made")
            else:
                counts["notebooks"] += 1
                outcome = result or Outcome(by_name[name], 0, describe_error(error), None)
                count = f"[{counts['notebooks']}/{len(notebooks)}]"
                print(f"{count} {outcome}", file=sys.stderr, flush=True)
                failed = failed or bool(outcome.error)
                if options.in_place and not outcome.error:
                    keep_in_place(outcome)
    if output is not None:
        print(f"figures:   {figures}\nnotebooks: {output}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return int(bool(problems) or failed)


def _list(options) -> int:
    try:
        notebooks = select(find_notebooks(), options.only)
    except (ValueError, OSError) as error:
        return _refuse(f"error: {error}", 2)
    for notebook in notebooks:
        print(f"{notebook.number}  {notebook.title}")
        for name, value in notebook.parameters.items():
            print(f"     {describe(name, value) if name in PARAMETERS else name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
