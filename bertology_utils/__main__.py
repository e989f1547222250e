"""Command line: ``python -m bertology_utils run | check | measure | list``."""

from __future__ import annotations

import argparse
import io
import signal
import sys
from typing import Any

from . import run
from .common import describe_error, device, quiet
from .settings import STUDIES, StudySettings

# That a study names, and that may be elsewhere here.
PLACES = ("annotation", "treebank", "framenet")


def _end(number: int, _: object) -> None:
    raise KeyboardInterrupt(number)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit code: 0 well, 1 something failed, 2 a wrong call, 130 interrupted, 143 terminated.
    """
    for stream in (sys.stdout, sys.stderr):  # a terminal may not know all of UTF-8
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)  # ends a run in the way of Ctrl-C
    try:
        return options.command(options)
    except KeyboardInterrupt as end:
        word, code = ("terminated", 143) if end.args else ("interrupted", 130)
        text = f"{word}; finished measurements and models are kept, so a new run goes on from there"
    except (ValueError, FileNotFoundError, ConnectionError, ImportError) as error:
        text, code = f"error: {error}", 2
    except (OSError, RuntimeError) as error:
        text, code = f"error: {describe_error(error)}", 1
    print(text, file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bertology_utils", description="Run the suite's notebooks."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, function: Any, told: str) -> Any:
        sub = commands.add_parser(name, help=told, description=told, allow_abbrev=False)
        sub.set_defaults(command=function, dry_run=name == "check", in_place=False)
        return sub.add_argument

    run = command("run", _run, "run notebooks and publish their figures")
    told = "check the call, read all that the notebooks read from the disk, and run nothing"
    check = command("check", _run, told)
    measure = command("measure", _measure, "measure what a study's results lack")
    shown = command("list", _list, "list the notebooks and their parameters")
    for add in (run, check, shown):
        add("--only", default="", metavar="N,N-N", help="numbers of the notebooks: 3,6 or 1-3")
    text, pair = "set a notebook's parameter (see list); may be repeated", ("NAME", "VALUE")
    for add in (run, check):
        add("-p", dest="parameters", nargs=2, action="append", default=[], metavar=pair, help=text)
    text = "notebooks at once; 0 for one for each core, or one where there is a GPU"
    run("--jobs", type=_count, default=0, metavar="N", help=text)
    run("--in-place", action="store_true", help="also renew notebooks/ (default settings only)")
    measure("--study", default="e5", help=f"one of {', '.join(STUDIES)}")
    measure("--only", default="", metavar="NAME,NAME", help="measurements; all if none is named")
    measure("--tasks", default="", help="names with commas between; the study's if none is given")
    measure("--glue", default="", metavar="FOLDER", help="GLUE's own layout, instead of the Hub")
    for entry in PLACES:
        text = f"where the study's {entry} is here"
        measure(f"--{entry}", default="", metavar="PLACE", help=text)
    measure("--jobs", type=_count, default=1, metavar="N", help="processes at once")
    measure("--scheduler", default="", metavar="ADDRESS", help="a Dask scheduler instead")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give a whole number from 0")
    return int(text)


def _run(options: Any) -> int:
    """Check a call, and run it, or leave it at that."""
    try:
        notebooks = run.select(run.find_notebooks(), options.only)
        names = [name for name, _ in options.parameters]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise ValueError(f"{twice} is given twice; give it once")
        values, remarks = run.check_call(notebooks, dict(options.parameters))
        if options.in_place and values:
            raise ValueError("--in-place keeps the committed notebooks: default settings only")
    except (TypeError, OSError) as error:  # whatever it is, the call is wrong
        raise ValueError(str(error)) from None
    if options.dry_run:
        given = ", ".join(f"{name}={value!r}" for name, value in values.items())
        named = ", ".join(notebook.name for notebook in notebooks)
        print(f"ready to run {named} with {given or 'default settings'}", *remarks, sep="\n  ")
        return 0
    output = run.output_folder(values)
    figures = (output if values else run.ROOT) / "figures"
    for remark in remarks:
        print(f"note: {remark}", file=sys.stderr)
    failed = False
    outcomes = _side_by_side(options.jobs, notebooks, values, output, figures, options.in_place)
    for ended, outcome in enumerate(outcomes, start=1):
        failed = failed or bool(outcome.error)
        print(f"[{ended}/{len(notebooks)}] {outcome}", file=sys.stderr, flush=True)
    print(f"notebooks: {output}\nfigures:   {figures}\nresults:   {output / 'results'}")
    return int(failed)


def _side_by_side(jobs: int, notebooks: list[run.Notebook], *arguments: Any) -> Any:
    """Outcomes of notebooks as they end; each waits for a fine-tuning run that another one makes."""
    from joblib import Parallel, cpu_count, delayed

    quiet()
    most = jobs or (1 if device().type == "cuda" else cpu_count())
    with_kernels = Parallel(min(most, len(notebooks)), return_as="generator_unordered")
    return with_kernels(delayed(run.run_notebook)(one, *arguments) for one in notebooks)


def _measure(options: Any) -> int:
    """Make what a study lacks."""
    from . import measure
    from .study import Study

    settings = StudySettings.of(options.study, tasks=options.tasks)
    places = {entry: getattr(options, entry) for entry in PLACES}
    if options.glue and settings.data == "hub":
        places["data"] = f"folder:{options.glue}"
    study = Study(settings, measures=True, places=places)
    quiet()
    measure.measure(study, options.only, options.jobs or 1, options.scheduler)
    return 0


def _list(options: Any) -> int:
    for notebook in run.select(run.find_notebooks(), options.only):
        print(f"{notebook.number}  {notebook.title}")
        for name, value in notebook.parameters.items():
            print(f"     {name} = {value!r}: {notebook.meanings.get(name, '')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
