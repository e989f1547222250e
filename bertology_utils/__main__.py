"""Command line: ``python -m bertology_utils run | prepare | check | list | bert | pretrainings | cache | publish``."""

from __future__ import annotations

import argparse
import sys

from .suite import bert, cache_command, publish_command, requirements, run_command
from .suite.check import Checked
from .suite.declarations import PARAMETERS, profile_values
from .suite.many import command as pretrainings
from .suite.notebooks import find_notebooks, select


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit code: 0 well, 1 something failed, 2 a wrong call, 130 interrupted, 143 terminated.
    """
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except KeyboardInterrupt as end:
        word, code = ("terminated", 143) if isinstance(end, run_command.Terminated) else ("interrupted", 130)
        print(f"{word}; finished models are kept in the cache, so a new run goes on from there", file=sys.stderr)
        return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bertology_utils", description="Run the suite's notebooks.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command, text in (
        ("run", run_command.run, "run notebooks, publish their figures, write an HTML report"),
        ("prepare", run_command.prepare, "train and sweep what the notebooks need; run none of them"),
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
        run_command.add_parameters(sub)
        if name != "check":
            run_command.add_workers(sub)
        if name == "run":
            run_command.add_run(sub)
    text = "measure bert-base by forward passes alone (notebook 8), and renew its column in the README and RESULTS.md"
    of_bert = commands.add_parser("bert", help=text, description=text, allow_abbrev=False)
    of_bert.set_defaults(command=bert.run)
    bert.add_bert(of_bert)
    text = "measure many encoders as bert does one, and tell in how many of them each claim holds"
    of_many = commands.add_parser("pretrainings", help=text, description=text, allow_abbrev=False)
    of_many.set_defaults(command=pretrainings.run)
    pretrainings.add_pretrainings(of_many)
    cache_command.add_to(commands)
    publish_command.add_to(commands)
    return parser


def _check(options) -> int:
    try:
        notebooks, checked = run_command.read_call(options)
    except (ValueError, TypeError, OSError) as error:
        return run_command.refused(error)
    problems = requirements.unmet()
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    given = ", ".join(f"{name}={value!r}" for name, value in checked.values.items()) or "default settings"
    print(
        f"{'not ready' if problems else 'ready'} to run {', '.join(nb.name for nb in notebooks)} with {given}",
        *checked.remarks,
        *_forecast(checked),
        sep="\n  ",
    )
    return 2 if problems else 0


def _forecast(checked: Checked) -> list[str]:
    """What the trainings would take, where it is known without looking."""
    if not any(settings.data.kind == "hub" for settings in checked.settings.values()):
        return []
    from .suite.work.forecast import on_t4  # with torch, which other calls do without

    return [text for text in [on_t4(checked.settings)] if text]


def _declaration(name: str) -> str:
    parameter = PARAMETERS[name]
    values = profile_values(name)
    return f"{name} ({parameter.kind.__name__}): {parameter.help()}" + (f" ({values})" if values else "")


def _list(options) -> int:
    try:
        notebooks = select(find_notebooks(), options.only)
    except (ValueError, OSError) as error:
        return run_command.refused(error)
    for notebook in notebooks:
        print(f"{notebook.number}  {notebook.title}")
        for name, value in notebook.parameters.items():
            kind, _, text = _declaration(name).partition(": ") if name in PARAMETERS else (name, "", "unknown")
            print(f"     {kind} = {value!r}: {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
