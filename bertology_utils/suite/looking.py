"""What ``bert`` and ``pretrainings`` share: their data, opened beforehand, the estimate, and the run of notebook 8."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .check import Checked
from .notebooks import Notebook

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

    from ..pretrained.cost import Looking
    from .experiment import Experiment
    from .run import Outcome

NUMBER = 8  # of the notebook
PROFILE = "bert-forward"
FIGURES = "figures"  # below a run's folder


def add_data(parser: argparse.ArgumentParser) -> None:
    """Options that say what is measured on."""
    for name, of, text in (
        ("--glue", "FOLDER", "GLUE's own .tsv files; else from the Hub"),
        ("--framenet", "SOURCE", "nltk (release 1.7), folder:PATH, zip:PATH, or embedded (the project's miniature)"),
        ("--annotation", "SOURCE", "spacy:NAME or conllu:PATH; else spaCy's en_core_web_sm"),
        ("--tasks", "NAMES", "all, or names with commas between"),
        ("--examples", "N", "dev rows of each task; else the profile's"),
    ):
        parser.add_argument(name, default="", metavar=of, help=text)


def parameters(options: argparse.Namespace, model: str) -> dict[str, str]:
    """The notebook's parameters that a call gives, as texts; an empty model is the profile's."""
    given = {
        "model": model,
        "data": f"folder:{options.glue}" if options.glue else "",
        "framenet": options.framenet,
        "annotation": options.annotation,
        "tasks": options.tasks,
    }
    return {"profile": PROFILE, "max_examples": options.examples or "0"} | {
        name: text for name, text in given.items() if text
    }


@dataclass(frozen=True)
class Read:
    """The data of a run, opened.

    Attributes:
        tasks: lengths of each task's measured inputs, in wordpieces.
        frames: those of FrameNet's sentences by the paper's rules, and by those of its code.
        release: FrameNet's.
    """

    tasks: tuple[tuple[int, ...], ...]
    frames: tuple[tuple[int, ...], tuple[int, ...]]
    release: str

    @property
    def text(self) -> str:
        """How much there is, in words."""
        examples = f"{sum(map(len, self.tasks))} examples of {len(self.tasks)} tasks"
        return f"{examples}, {len(self.frames[0])} sentences of {self.release}"

    def work(self, config: PreTrainedConfig, passes: int = 1) -> Looking:
        """What an encoder has to do.

        Args:
            config: of the encoder.
            passes: over the tasks' examples.
        """
        from ..encoders.cost import Size
        from ..pretrained.cost import Looking

        return Looking.of(Size.of(config), self.tasks * passes, *self.frames)


def open_data(lab: Experiment) -> Read:
    """Open all that will be read, so that what is missing is said before any long work.

    Raises:
        ValueError: data that are damaged, or a task without dev rows.
        FileNotFoundError, ConnectionError, OSError: what cannot be had.
    """
    from ..framenet import frame_links, measure, release
    from ..pretrained import sentences

    _ = lab.annotator  # a pipeline that is not installed is said here
    source = release.load_release(lab.settings.framenet)
    by_rules = [frame_links.extract(source, of)[0] for of in (frame_links.rules("paper"), frame_links.OFFICIAL)]
    placed, by_code = (measure.place(sentences.drawn(some, lab.settings.seed), lab.tokenizer)[0] for some in by_rules)
    lengths = [[len(ids) for ids in lab.dev_inputs(task)["input_ids"]] for task in lab.tasks]
    measured = tuple(_some(of_task, lab.settings.max_examples) for of_task in lengths)
    for task, of_task in zip(lab.tasks, measured, strict=True):
        if not of_task:
            raise ValueError(f"{task.title} has no dev rows; leave it out: --tasks")
    frames = tuple(place.length for place in placed), tuple(place.length for place in by_code)
    return Read(measured, frames, source.name)


def _some(lengths: list[int], count: int) -> tuple[int, ...]:
    """As many of the lengths as will be measured, spread over all."""
    return tuple(sorted(lengths)[:: max(1, len(lengths) // count)][:count] if count else lengths)


def told(work: Sequence[Looking]) -> str:
    """Time and memory of encoders, one after the other, in words."""
    from .work import machine

    speed = machine.operations_per_second()
    memory, free = max(one.memory for one in work), machine.free_memory()
    short = f"; only {free / 2**30:.1f} GiB are free" if memory > free else ""
    minutes = sum(one.seconds(speed) for one in work) / 60
    return f"about {minutes:.0f} minutes and {memory / 2**30:.1f} GiB{short}"


def say(text: str) -> None:
    """To the terminal, at once."""
    print(text, file=sys.stderr, flush=True)


def run(notebook: Notebook, checked: Checked, output: Path) -> Outcome:
    """Run the notebook into a folder, its figures below it.

    Raises:
        BlockingIOError: another run is writing there.
        OSError: nothing can be written.
    """
    from .run import run_notebook
    from .staging import only_run

    with only_run(output, output / FIGURES):
        for remark in checked.remarks:
            say(f"note: {remark}")
        return run_notebook(notebook, checked.values, output, output / FIGURES, cell_limit=0)
