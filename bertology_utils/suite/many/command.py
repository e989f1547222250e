"""The command ``pretrainings``: every encoder of a list measured as ``bert`` measures one, and all of them together."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from ...common.cache import write_atomically
from ...encoders.pickled import read_hashes
from .. import looking
from ..check import check_call
from ..execute import in_words
from ..looking import NUMBER, say
from ..notebooks import Notebook, find_notebooks, select
from ..results import RESULTS, project_root, without_nan
from ..run_command import refused, terminable
from . import candidates, runs
from .candidates import Candidate
from .lists import read_list, titles
from .page import lines

KEPT = "benchmarks/pretrainings"  # what RESULTS.md is made from


def add_pretrainings(parser: argparse.ArgumentParser) -> None:
    """Options of ``pretrainings``."""
    which = "folders and Hub names (NAME@REVISION) with commas between; multiberts, multiberts:0-4, multiberts-steps:SEED"
    parser.add_argument("--models", default="", metavar="LIST", help=which)
    looking.add_data(parser)
    pickled = "read these models' pickled weights where there are no SafeTensors, if they have this hash: NAME=SHA256,…"
    parser.add_argument("--weights-sha256", default="", metavar="NAMES", help=pickled)
    parser.add_argument("--keep", action="store_true", help=f"copy what came out to {KEPT}/, and renew RESULTS.md")


def run(options: argparse.Namespace) -> int:
    """``python -m bertology_utils pretrainings``; returns the exit code: 1 if an encoder failed after the start."""
    from ..quiet import quiet

    try:
        (notebook,) = select(find_notebooks(), str(NUMBER))
        names = titles(read_list(options.models))
        hashes = read_hashes(options.weights_sha256)
        if unknown := sorted(set(hashes) - set(names)):
            raise ValueError(f"--weights-sha256 names {', '.join(unknown)}, which --models does not")
        quiet()
        # The data first: what is wrong with them is no fault of an encoder's.
        check_call([notebook], looking.parameters(options, "embedded"))
        found, without = candidates.look(notebook, looking.parameters(options, ""), names, hashes)
        for title, why in without.items():
            say(f"left out: {title}: {why}")
        if not found:
            raise ValueError("no encoder is left to measure; why stands above")
        say(_estimate(notebook, found))
    except (ValueError, TypeError, OSError, ImportError) as error:
        return refused(error)
    try:
        with terminable():
            return _run(notebook, found, without, options.keep)
    except (BlockingIOError, ValueError) as error:
        return refused(error, code=1)
    except OSError as error:
        return refused(in_words(error), code=1)


def _estimate(notebook: Notebook, found: Sequence[Candidate]) -> str:
    """What is to be done, and what it will cost; opens all data.

    Raises:
        ValueError, FileNotFoundError, ConnectionError, OSError: see :func:`bertology_utils.suite.looking.open_data`.
    """
    root, read, work = project_root(), {}, []
    for one in found:
        vocabulary = frozenset(one.lab.tokenizer.get_vocab().items())  # of which lengths are
        if vocabulary not in read:
            read[vocabulary] = looking.open_data(one.lab)
        if not runs.is_finished(runs.folder_of(root, notebook, one), notebook):
            work.append(read[vocabulary].work(one.lab.config, passes=2))
    already = f", {len(found) - len(work)} of them finished before" if len(work) < len(found) else ""
    cost = f"; {looking.told(work)}" if work else ""
    data = next(iter(read.values())).text
    return f"pre-trainings: {len(found)}{already}; each on {data}{cost}"


def _run(notebook: Notebook, found: Sequence[Candidate], without: dict[str, str], keep: bool) -> int:
    from ..staging import only_run

    root = project_root()
    folder = root / runs.FOLDER
    measured: list[runs.Measured] = []
    failed: dict[str, str] = {}
    with only_run(folder, folder):
        for at, one in enumerate(found, start=1):
            own = runs.folder_of(root, notebook, one)
            try:
                done = runs.is_finished(own, notebook)
                say(f"[{at}/{len(found)}] {one.title}{': finished before' if done else ''}")
                problem = None if done else runs.measure(own, notebook, one)
                if problem is None:
                    measured.append(runs.read(own, notebook, one))
            except BlockingIOError:
                raise
            except (ValueError, OSError) as error:
                if type(error) is OSError or getattr(error, "errno", None):  # of this machine, such as a full disk
                    raise
                problem = str(error)
            if problem is not None:
                failed[one.title] = problem
                say(f"failed: {one.title}: {problem}")
        if measured:
            _collect(root, folder, measured, without | failed, keep)
    for title, why in without.items():
        say(f"left out: {title}: {why}")
    for title, why in failed.items():
        refused(f"{title}: {why}")
    return 1 if failed else 0


def _collect(root: Path, folder: Path, measured: list[runs.Measured], without: dict[str, str], keep: bool) -> None:
    from ... import figures
    from ...pretrained import many_drawing
    from . import collected

    results = without_nan(collected.collect(measured, without, measured[0].candidate.lab.settings.seed))
    content = (json.dumps(results, indent=1, ensure_ascii=False) + "\n").encode()
    figures.set_style()
    figure = many_drawing.claims(results)
    for place in (folder, *((root / KEPT,) if keep else ())):
        write_atomically(place / RESULTS, content)
        figures.save(figure, place, "claims")
    print(*lines(results), sep="\n", flush=True)
    say(f"results: {runs.FOLDER}/{RESULTS}, figure: {runs.FOLDER}/claims.png")
    if keep:
        from ..pages import update

        renewed = [path.name for path in update(root)]
        say(f"kept: {KEPT}/{RESULTS}; renewed: {', '.join(renewed) or 'no page'}")
