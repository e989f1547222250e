"""Command line: ``python -m bertology_utils run | prepare | check | measure | list``."""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import cache, colab, run
from .common import quiet
from .record import project_root
from .settings import PARAMETERS, PROFILES, describe
from .studies import STUDIES
from .workers import (
    KERNEL,
    NeedFailedError,
    Task,
    connect,
    count_workers,
    describe_error,
    run_tasks,
)

REFERENCE = Path("tests", "reference")  # of the small run's results


def _end(number: int, _: object) -> None:
    raise KeyboardInterrupt(number)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit code: 0 well, 1 something failed, 2 a wrong call, 130 interrupted, 143 terminated.
    """
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)  # ends a run in the way of Ctrl-C
    try:
        return options.command(options)
    except KeyboardInterrupt as end:
        word, code = ("terminated", 143) if end.args else ("interrupted", 130)
        text = f"{word}; finished models are kept in the cache, so a new run goes on from there"
    except (ValueError, FileNotFoundError, ConnectionError, ImportError) as error:
        text, code = f"error: {error}", 2
    except (OSError, RuntimeError) as error:
        text, code = f"error: {describe_error(error)}", 1
    print(text, file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    description = "Run the suite's notebooks."
    parser = argparse.ArgumentParser(prog="python -m bertology_utils", description=description)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    form: dict[str, Any] = {
        "allow_abbrev": False,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }
    for name, command, text in (
        ("run", _run, "run notebooks and publish their figures"),
        ("prepare", _run, "train and sweep what the notebooks need; run none of them"),
        ("check", _run, "the same as run --dry-run"),
        ("measure", _measure, "measure what a study's results lack"),
        ("list", _list, "list the notebooks and their parameters"),
    ):
        sub = commands.add_parser(name, help=text, description=text, **form)
        sub.set_defaults(command=command, name=name, dry_run=name == "check", in_place=False)
        add = sub.add_argument
        if name == "measure":
            add("--study", default="e5", help="name in studies.toml")
            add(
                "--only", default="", metavar="NAME,NAME", help="measurements; all if none is named"
            )
            add(
                "--tasks",
                default="",
                help="names with commas between; the study's if none is given",
            )
            add(
                "--glue", default="", metavar="FOLDER", help="GLUE's own layout, instead of the Hub"
            )
            for entry in ("annotation", "treebank", "framenet"):
                text = f"where the study's {entry} is here"
                add(f"--{entry}", default="", metavar="PLACE", help=text)
            add("--jobs", type=_count, default=1, metavar="N", help="processes at once")
            add("--scheduler", default="", metavar="ADDRESS", help="a Dask scheduler instead")
            continue
        add("--only", default="", metavar="N,N-N", help="numbers of the notebooks: 3,6 or 1-3")
        if name == "list":
            continue
        sub.epilog = "parameters:\n" + "\n".join(f"  {line}" for line in map(describe, PARAMETERS))
        add("--profile", help=f"{', '.join(PROFILES)}; the first if none is given")
        text, pair = "set a notebook parameter; may be repeated", ("NAME", "VALUE")
        add("-p", dest="parameters", nargs=2, action="append", default=[], metavar=pair, help=text)
        if name == "check":
            continue
        text = "workers at once; 0 for one for each GPU or core, as far as memory reaches"
        add("--jobs", type=_count, default=0, metavar="N", help=text)
        add("--scheduler", default="", metavar="ADDRESS", help="a Dask scheduler that trains")
        if name == "prepare":
            continue
        text = "check the call, read all that the notebooks read from the disk, and run nothing"
        add("--dry-run", action="store_true", help=text)
        for name in ("figures", "results"):
            text = f"a folder for {name} instead of the run's own"
            add(f"--{name}", type=Path, metavar="FOLDER", help=text)
        add("--in-place", action="store_true", help="also renew notebooks/ (default settings only)")
    return parser


def _count(text: str) -> int:
    if int(text) < 0:
        raise ValueError
    return int(text)


_count.__name__ = "whole number from 0"  # what argparse calls it where it refuses a value


def _read_call(options) -> tuple[list[run.Notebook], dict[str, object], list[str]]:
    """The notebooks, checked parameters and remarks of a call; raises for anything wrong in it."""
    notebooks = run.select(run.find_notebooks(), options.only)
    profile = [] if options.profile is None else [("profile", options.profile)]
    counts = Counter(name for name, _ in [*options.parameters, *profile])
    if twice := sorted(name for name, count in counts.items() if count > 1):
        raise ValueError(f"{', '.join(twice)} is given twice; give it once")
    values, remarks = run.check_call(notebooks, dict([*options.parameters, *profile]))
    if options.in_place and values:
        raise ValueError("--in-place keeps the committed notebooks: default settings only")
    return notebooks, values, remarks


def _run(options) -> int:
    """Check a call, and run it, prepare it, or leave it at that."""
    try:
        notebooks, values, remarks = _read_call(options)
    except (TypeError, OSError) as error:  # whatever it is, the call is wrong
        raise ValueError(str(error)) from None
    if options.dry_run:
        return _say_what_would_run(notebooks, values, remarks)
    if options.name == "prepare":
        return _make_and_run(options, notebooks, values)
    output = run.output_folder(values)
    own = output if values else project_root()
    figures = (options.figures or own / "figures").resolve()
    results = (options.results or (own / "results" if values else own / REFERENCE)).resolve()
    for remark in remarks:
        print(f"note: {remark}", file=sys.stderr)
    code = _make_and_run(options, notebooks, values, output, figures, results)
    print(f"notebooks: {output}\nfigures:   {figures}\nresults:   {results}")
    return code


def _say_what_would_run(
    notebooks: list[run.Notebook], values: dict[str, object], remarks: list[str]
) -> int:
    problems = colab.unmet()
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    given = ", ".join(f"{name}={value!r}" for name, value in values.items()) or "default settings"
    names = ", ".join(notebook.name for notebook in notebooks)
    ready = "not ready" if problems else "ready"
    print(f"{ready} to run {names} with {given}", *remarks, sep="\n  ")
    return 2 if problems else 0


def _make_and_run(
    options, notebooks: list[run.Notebook], values: dict[str, object], *places: Path
) -> int:
    """Make what the notebooks need, and run them, with folders for them, figures and results; returns the exit code."""
    from .jobs import explain, plan_jobs

    quiet()
    cache.evict_measurements()
    plan = plan_jobs(notebooks, values)
    workers = count_workers(KERNEL if options.scheduler else plan.memory, options.jobs)
    if plan.orders or plan.finished:
        print(plan.describe(), file=sys.stderr, flush=True)
    by_name = {notebook.name: notebook for notebook in sorted(notebooks, key=plan.turn_of)}
    orders, runs = plan.tasks(), dict[str, Task]()
    for name, notebook in by_name.items() if places else ():
        needs = tuple(plan.notebooks.get(name, ()))
        runs[name] = Task(run.run_notebook, (notebook, values, *places), needs)
    # Notebook 0 comes before all that it does not need, so that a first result is early.
    first = {name: one for name, one in runs.items() if by_name[name].number == "0"}
    stages = [("", first | orders | runs)]
    if options.scheduler:  # whose workers see the cache, and may not see the notebooks' folders
        stages = [(options.scheduler, orders), ("", runs)]
    made, ended, failed = 0, 0, False
    problems, not_run = list[str](), list[str]()
    for name, result, error in _carry_out(stages, workers):
        if name in orders:
            made, title, problem = made + 1, plan.orders[name].title, explain(plan, name, error)
            problems += [f"error: {title}: {problem}"] if problem else []
            ending = f"failed, {problem}" if problem else f"{result:.0f} s"
            line = f"[{made}/{len(orders)}] {title}: {ending}"
        elif isinstance(error, NeedFailedError):
            not_run.append(f"not run: {name}, since what it needs was not made")
            continue
        else:
            outcome = result or run.Outcome(by_name[name], 0, describe_error(error), None)
            ended, failed = ended + 1, failed or bool(outcome.error)
            line = f"[{ended}/{len(notebooks)}] {outcome}"
            if options.in_place and not outcome.error:
                run.keep_in_place(outcome)
        print(line, file=sys.stderr, flush=True)
    for problem in problems + not_run:
        print(problem, file=sys.stderr)
    return int(bool(problems) or failed)


def _carry_out(
    stages: list[tuple[str, dict[str, Task]]], workers: int
) -> Iterator[tuple[str, Any, Any]]:
    """Yield (name, result, error) of the tasks of each stage as they end: (scheduler, tasks)."""
    failed = set[str]()
    for scheduler, tasks in stages:
        ready = {name: task for name, task in tasks.items() if failed.isdisjoint(task.needs)}
        for name in tasks.keys() - ready.keys():
            yield name, None, NeedFailedError("what it needs failed")
        with connect(min(workers, len(ready)) or 1, scheduler) as client:
            for name, result, error in run_tasks(ready, client):
                failed |= set() if error is None else {name}
                yield name, result, error


def _measure(options) -> int:
    """Make what a study lacks."""
    from . import measure
    from .study import PLACE_VARIABLES, Study

    study = Study.of(options.study, options.tasks, measures=True)
    measure.use_places(
        options.glue, **{entry: getattr(options, entry) for entry in PLACE_VARIABLES}
    )
    quiet()
    measure.measure(study, options.only, options.jobs or 1, options.scheduler)
    return 0


def _list(options) -> int:
    for notebook in run.select(run.find_notebooks(), options.only):
        print(f"{notebook.number}  {notebook.title}")
        for name, value in notebook.parameters.items():
            told = f"{name} (str) = {value!r}: whose measurements: {', '.join(STUDIES)}"
            print(f"     {describe(name, value) if name in PARAMETERS else told}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
