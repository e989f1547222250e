"""The commands ``run`` and ``prepare``: what they are called with, and what they do in which order."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..common.profiles import PROFILES
from . import cache_command
from .address import published
from .cache_care import forget_measurements
from .check import Checked, check_call
from .declarations import PARAMETERS
from .execute import in_words
from .notebooks import Notebook, find_notebooks, select
from .results import project_root

if TYPE_CHECKING:
    from .work.plan import Plan
    from .work.workers import Failure


class Terminated(KeyboardInterrupt):
    """SIGTERM: ends a run in the way of Ctrl-C."""


def add_parameters(parser: argparse.ArgumentParser) -> None:
    """Options that set the notebooks' parameters."""
    parser.add_argument("--profile", help=f"{', '.join(PROFILES)}; without it {PARAMETERS['profile'].default}")
    parser.add_argument(
        "-p",
        dest="parameters",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="set a notebook parameter; may be repeated",
    )


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Options that say who works."""
    workers = "workers at once; 0 for one for each GPU, or else for each core, as far as memory reaches (%(default)s)"
    parser.add_argument("--jobs", type=_count, default=0, metavar="N", help=workers)
    parser.add_argument("--scheduler", default="", metavar="ADDRESS", help="train on the workers of a Dask scheduler")


def _count(text: str) -> int:
    if int(text) < 0:
        raise ValueError
    return int(text)


_count.__name__ = "whole number from 0"  # what argparse calls it where it refuses a value


def add_run(parser: argparse.ArgumentParser) -> None:
    """Options of ``run`` alone."""
    limit = "the longest that one cell may take, 0 for any time (%(default)s)"
    parser.add_argument("--cell-limit", type=cache_command.not_negative, default=720, metavar="MINUTES", help=limit)
    in_place = "also renew notebooks/, the README, RESULTS.md and docs/ (default settings only)"
    parser.add_argument("--in-place", action="store_true", help=in_place)


def read_call(options) -> tuple[list[Notebook], Checked]:
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
        published()
    return notebooks, checked


def refused(error: Exception | str, code: int = 2) -> int:
    """Say why a call is refused, or failed; returns its exit code."""
    print(f"error: {error}", file=sys.stderr)
    return code


def run(options) -> int:
    """``python -m bertology_utils run``; returns the exit code."""
    try:
        notebooks, checked = read_call(options)
    except (ValueError, TypeError, OSError) as error:
        return refused(error)
    from .staging import only_run, output_folder

    output = output_folder(checked.values)
    figures = output / "figures" if checked.values else project_root() / "figures"
    try:
        with terminable(), only_run(output, figures):
            for remark in checked.remarks:
                print(f"note: {remark}", file=sys.stderr)
            return _run_all(options, notebooks, checked.values, output, figures)
    except BlockingIOError as error:
        return refused(error)
    except OSError as error:
        return refused(in_words(error), code=1)


def prepare(options) -> int:
    """``python -m bertology_utils prepare``; returns the exit code."""
    try:
        notebooks, checked = read_call(options)
        plan, jobs = _plan(options, notebooks, checked.values)
    except (ValueError, TypeError, OSError, ImportError) as error:
        return refused(error)
    from .work.workers import carry_out

    try:
        with terminable():
            return _tell(carry_out(plan, jobs, options.scheduler))
    except (OSError, RuntimeError) as error:
        return refused(in_words(error), code=1)


@contextmanager
def terminable() -> Iterator[None]:
    """A context in which SIGTERM ends the run in the way of Ctrl-C."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(*_) -> None:
    raise Terminated


def _plan(options, notebooks: list[Notebook], values: dict[str, object]) -> tuple[Plan, int]:
    """What some notebooks need, and by how many workers it will be made; says both."""
    from .quiet import quiet
    from .work import machine, plan, workers

    quiet()
    forget_measurements()
    todo = plan.plan(notebooks, values)
    if options.scheduler:
        jobs = workers.cluster_size(options.scheduler)
    else:
        jobs = plan.jobs_for(todo.memory or machine.KERNEL, options.jobs)
    if todo.items or todo.finished:
        print(todo.text(jobs), file=sys.stderr, flush=True)
    return todo, jobs


def _tell(failures: list[Failure]) -> int:
    for failure in failures:
        print(f"error: {failure.item.title}: {failure.problem}", file=sys.stderr)
    return 1 if failures else 0


def _run_all(options, notebooks: list[Notebook], values: dict[str, object], output, figures) -> int:
    from .pages import update as update_pages
    from .report import write_report
    from .run import keep_in_place, side_by_side
    from .work.machine import KERNEL
    from .work.plan import jobs_for
    from .work.workers import carry_out

    try:
        plan, jobs = _plan(options, notebooks, values)
    except (ValueError, FileNotFoundError, ConnectionError, ImportError) as error:
        return refused(error)
    try:
        failures = carry_out(plan, jobs, options.scheduler)
    except (ConnectionError, RuntimeError) as error:
        return refused(error, code=1)
    jobs = min(jobs_for(KERNEL), options.jobs or jobs)
    without = {name for failure in failures for name in failure.item.notebooks}
    ready = [notebook for notebook in notebooks if notebook.name not in without]
    ready.sort(key=lambda notebook: -plan.wanted.get(notebook.name, 0))  # what looks at most models takes longest
    outcomes = []
    for outcome in side_by_side(ready, values, output, figures, options.cell_limit * 60, jobs):
        outcomes.append(outcome)
        where = f"; see {outcome.executed}" if outcome.executed else ""
        ending = f"failed, {outcome.error}{where}" if outcome.error else "done"
        head = f"[{len(outcomes)}/{len(ready)}] {outcome.notebook.name}"
        print(f"{head}: {ending} ({outcome.seconds:.0f} s)", file=sys.stderr, flush=True)
        for change in outcome.changes:
            print(f"  changed: {change}", file=sys.stderr)
        if options.in_place and not outcome.error:
            keep_in_place(outcome)
    outcomes.sort(key=lambda outcome: int(outcome.notebook.number))
    print(f"figures: {figures}\nreport:  {write_report(outcomes, output, figures)}")
    for name in sorted(without):
        print(f"not run: {name}, since what it needs was not made", file=sys.stderr)
    code = _tell(failures) or int(any(outcome.error for outcome in outcomes))
    if options.in_place:
        try:
            update_pages(project_root())
        except ValueError as error:
            return refused(error, code=1)
    return code
