"""The command ``bert``: what bert-base itself says, from forward passes alone, into the column of the pages that is its own."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from ..common.hub import hub_errors
from ..common.profiles import BERT_BASE as MODEL
from .check import Checked, check_call
from .committed import BERT_BASE
from .execute import in_words
from .notebooks import Notebook, find_notebooks, select
from .results import RESULTS, project_root
from .run_command import refused, terminable

NUMBER = 8  # of the notebook
PROFILE = "bert-forward"


def add_bert(parser: argparse.ArgumentParser) -> None:
    """Options of ``bert``."""
    for name, of, text in (
        (
            "--model",
            "FOLDER",
            "bert-base-uncased in a folder: config.json, tokenizer and model.safetensors; else from the Hub",
        ),
        ("--glue", "FOLDER", "GLUE's own .tsv files; else from the Hub"),
        ("--framenet", "SOURCE", "nltk (release 1.7), folder:PATH, zip:PATH, or embedded (the project's miniature)"),
        ("--annotation", "SOURCE", "spacy:NAME or conllu:PATH; else spaCy's en_core_web_sm"),
        ("--tasks", "NAMES", "all, or names with commas between"),
        ("--examples", "N", "dev rows of each task; else the profile's"),
    ):
        parser.add_argument(name, default="", metavar=of, help=text)


def parameters(options: argparse.Namespace) -> dict[str, str]:
    """The notebook's parameters that a call gives, as texts."""
    given = {
        "model": options.model,
        "data": f"folder:{options.glue}" if options.glue else "",
        "framenet": options.framenet,
        "annotation": options.annotation,
        "tasks": options.tasks,
    }
    return {"profile": PROFILE, "max_examples": options.examples or "0"} | {
        name: text for name, text in given.items() if text
    }


def run(options: argparse.Namespace) -> int:
    """``python -m bertology_utils bert``; returns the exit code."""
    try:
        (notebook,) = select(find_notebooks(), str(NUMBER))
        checked = check_call([notebook], parameters(options))
        say(look_ahead(notebook, checked))
    except (ValueError, TypeError, OSError, ImportError) as error:
        return refused(error)
    try:
        with terminable():
            return _run(notebook, checked)
    except (BlockingIOError, ValueError) as error:
        return refused(error, code=1)
    except OSError as error:
        return refused(in_words(error), code=1)


def look_ahead(notebook: Notebook, checked: Checked) -> str:
    """Open all that will be read, so that what is missing is said before any long work; returns what it will cost.

    Raises:
        ValueError: the model is not bert-base-uncased, or does not fit its architecture; or data that are damaged.
        FileNotFoundError, ConnectionError, OSError: what cannot be had.
    """
    from ..encoders import cost
    from ..framenet import frame_links, measure, release
    from ..pretrained import bert_base, sentences
    from ..pretrained.cost import Looking
    from .experiment import Experiment
    from .quiet import quiet
    from .work import machine

    quiet()
    lab = Experiment(notebook.name, **(notebook.parameters | notebook.declared(checked.values)))
    name = lab.settings.model.name
    if not lab.settings.model.is_local and lab.settings.model.location != MODEL:
        raise ValueError(f"model {name!r} is not {MODEL}; leave it out, or give the folder in which that model is")
    if difference := bert_base.differs(lab.config, lab.tokenizer):
        raise ValueError(
            f"model {name!r} is not bert-base-uncased: {difference}. The column bert-base is of {MODEL} alone; another"
            f" encoder is measured by: python -m bertology_utils run --only {NUMBER} -p model {name}"
        )
    _ = lab.annotator  # a pipeline that is not installed is said here
    source = release.load_release(lab.settings.framenet)
    by_rules = [frame_links.extract(source, of)[0] for of in (frame_links.rules("paper"), frame_links.OFFICIAL)]
    placed, by_code = (measure.place(sentences.drawn(some, lab.settings.seed), lab.tokenizer)[0] for some in by_rules)
    lengths = [[len(ids) for ids in lab.dev_inputs(task)["input_ids"]] for task in lab.tasks]
    measured = [_some(of_task, lab.settings.max_examples) for of_task in lengths]
    for task, of_task in zip(lab.tasks, measured, strict=True):
        if not of_task:
            raise ValueError(f"{task.title} has no dev rows; leave it out: --tasks")
    with hub_errors("model", name, lab.settings.model.revision):
        lab.encoder()  # fetched, and every tensor there
    frames = [[place.length for place in some] for some in (placed, by_code)]
    work = Looking.of(cost.Size.of(lab.config), measured, *frames)
    minutes = work.seconds(machine.operations_per_second()) / 60
    free = machine.free_memory()
    short = f"; only {free / 2**30:.1f} GiB are free" if work.memory > free else ""
    return (
        f"bert-base: {sum(map(len, measured))} examples of {len(measured)} tasks, {len(placed)} sentences of {source.name};"
        f" about {minutes:.0f} minutes and {work.memory / 2**30:.1f} GiB{short}"
    )


def _some(lengths: list[int], count: int) -> list[int]:
    """As many of the lengths as will be measured, spread over all."""
    return sorted(lengths)[:: max(1, len(lengths) // count)][:count] if count else lengths


def say(text: str) -> None:
    """To the terminal, at once."""
    print(text, file=sys.stderr, flush=True)


def _run(notebook: Notebook, checked: Checked) -> int:
    from .pages import update
    from .run import run_notebook
    from .staging import only_run, output_folder

    root, output = project_root(), output_folder(checked.values)
    figures = output / "figures"
    with only_run(output, figures):
        for remark in checked.remarks:
            say(f"note: {remark}")
        outcome = run_notebook(notebook, checked.values, output, figures, cell_limit=0)
    if outcome.error:
        return refused(f"{outcome.error}; see {outcome.executed}", code=1)
    kept = keep(root, figures / notebook.name / RESULTS)
    renewed = [path.name for path in update(root)]
    gigabytes = outcome.memory / 2**30
    say(f"done in {outcome.seconds / 60:.1f} minutes with {gigabytes:.1f} GiB; executed notebook: {outcome.executed}")
    say(f"results: {kept.relative_to(root)}; renewed: {', '.join(renewed) or 'no page'}")
    return 0


def keep(root: Path, results: Path) -> Path:
    """Copy a run's results to where the column bert-base is made from; returns the place."""
    place = root / BERT_BASE.folder / results.parent.name / RESULTS
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(results, place)
    return place
