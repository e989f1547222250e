"""The command line's part for the cache: ``python -m bertology_utils cache list | verify | prune``."""

import sys

from ..common.cache import cache_folder, damage
from . import cache_care


def add_to(commands) -> None:
    """Add the command to argparse's sub-commands."""
    text = "list, verify or prune the finished work that is kept"
    actions = commands.add_parser("cache", help=text, description=text).add_subparsers(required=True, metavar="ACTION")
    for name, command, text in (
        ("list", _list, "what is kept, with size and age"),
        ("verify", _verify, "compare every file with its hash"),
        ("prune", _prune, "remove what was not used for some time, or everything"),
    ):
        sub = actions.add_parser(name, help=text, description=text)
        sub.set_defaults(command=command)
        if name == "prune":
            which = sub.add_mutually_exclusive_group(required=True)
            which.add_argument("--older-than", type=not_negative, metavar="DAYS", help="not used for so many days")
            which.add_argument("--all", action="store_true", help="everything")


def not_negative(text: str) -> float:
    """A finite number from 0, for argparse."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError
    return number


not_negative.__name__ = "number from 0"  # what argparse calls it where it refuses a value


def _list(options) -> int:
    found = cache_care.entries()
    for entry in found:
        print(
            f"{entry.kind}/{entry.path.name[:12]}  {entry.state:<10} {entry.size / 2**20:9.1f} MiB"
            f"  {entry.days:.0f} days  {entry.what()}".rstrip()
        )
    print(f"{len(found)} entries, {sum(entry.size for entry in found) / 2**20:.1f} MiB in {cache_folder()}")
    return 0


def _verify(options) -> int:
    finished = [entry for entry in cache_care.entries() if entry.state == "finished"]
    problems = {entry: problem for entry in finished if (problem := damage(entry.path))}
    for entry, problem in problems.items():
        print(f"{entry.kind}/{entry.path.name[:12]}: {problem}", file=sys.stderr)
    print(f"{len(finished) - len(problems)} of {len(finished)} finished entries are whole")
    return 1 if problems else 0


def _prune(options) -> int:
    removed, busy = cache_care.prune(None if options.all else options.older_than)
    print(
        f"{len(removed)} entries removed, {sum(entry.size for entry in removed) / 2**20:.1f} MiB"
        + (f"; {len(busy)} stay, since they are in use" if busy else "")
    )
    return 0
