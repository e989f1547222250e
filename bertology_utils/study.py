"""What a page starts from: an encoder, tasks, rows, fine-tuning runs; and its measurements.

A page of the project loads what ``results/`` holds. What is missing there, as everything is for a
model of one's own, is measured now.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from . import glue
from .cache import artefact, checksum, write_atomically
from .common import device
from .glue import Task, get_task, parse_tasks
from .settings import ALL, ModelSource, StudySettings, check_fit, parse_data, parse_model

if TYPE_CHECKING:
    from datasets import Dataset
    from matplotlib.figure import Figure
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from .annotation import Annotated, Annotator
    from .batches import Batch
    from .claims import Claims
    from .disabling import Cut
    from .finetune import Training
    from .framenet import FrameSentence, Release
    from .store import Measurement
    from .words import AnnotatedInput

RESULTS_VARIABLE = "BERTOLOGY_RESULTS"  # a folder that stands for results/
MEASURED_VARIABLE = "BERTOLOGY_MEASURED"  # for what results/ does not keep; else runs/measured
OUTPUT_VARIABLE = "BERTOLOGY_OUTPUT"  # where a page writes figures and claims; else runs/
ROOT = Path(__file__).parents[1]
SCALE_ROWS = 64  # by which the scale of a regression of one's own is told
STARTS = {"pre-trained": "pretrained", "random": "normal"}  # as models call the same
EXAMPLE = Path(__file__).with_name("example_classifier.safetensors")


def _slice(part: slice | int) -> slice:
    """A number of the first ones, or a slice, as a slice."""
    return part if isinstance(part, slice) else slice(part if part != ALL else None)


def _by_task(cases: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """The runs of each task."""
    runs: dict[str, list[int]] = {}
    for task, run in cases:
        runs.setdefault(task, []).append(run)
    return runs


def output_folder() -> Path:
    """Where a page writes."""
    return Path(os.environ.get(OUTPUT_VARIABLE) or ROOT / "runs")


def results_folder() -> Path:
    """Where measurements and claims are committed."""
    return Path(os.environ.get(RESULTS_VARIABLE) or ROOT / "results")


class Study:
    """One study as a page uses it: rows, encoders, classifiers.

    Args:
        settings: its entries.
        page: name of the notebook, which its figures and claims go by.
        measures: whether what is missing is measured; by default only for studies that ``results/`` does not
            keep.
        places: where here is what the study names as "data", "annotation", "treebank" or "framenet".
    """

    def __init__(
        self,
        settings: StudySettings,
        page: str = "",
        measures: bool | None = None,
        places: dict[str, str] | None = None,
    ):
        self.settings, self.page, self.places = settings, page, places or {}
        self._weights: dict[tuple[str, int], str] = {}  # what identifies those of each loaded run
        self.measures = not settings.is_kept if measures is None else measures

    @classmethod
    def of(
        cls,
        name: str,
        tasks: str = "",
        page: str = "",
        measures: bool | None = None,
        **entries: Any,
    ) -> Study:
        """A study by its name, on some of its tasks, with entries of one's own; raises as :meth:`StudySettings.of`."""
        return cls(StudySettings.of(name, tasks=tasks, **entries), page, measures)

    def __getstate__(self) -> dict[str, Any]:
        """Go to other processes without rows and models, and with the folder that is meant here."""
        kept = ("settings", "page", "places", "measures", "folder", "_weights")
        return {name: getattr(self, name) for name in kept}

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.settings.name

    @cached_property
    def folder(self) -> Path:
        """Where its measurements are kept: in ``results/``, or among the runs."""
        if self.settings.is_kept:
            return results_folder() / self.name
        measured = Path(os.environ.get(MEASURED_VARIABLE) or ROOT / "runs" / "measured")
        return measured / f"{self.name}-{self.settings.digest}"

    @property
    def tasks(self) -> list[str]:
        """The tasks, as the paper writes them ("SST-2")."""
        return [task.title for task in parse_tasks(self.settings.tasks)]

    def runs(self, task: str) -> list[int]:
        """Numbers of a task's fine-tuning runs, from 1; without those that learned nothing."""
        count = 1 if get_task(task).name in self.settings.checkpoint else self.settings.runs
        return [run for run in range(1, count + 1) if run not in self.left_out(task)]

    def left_out(self, task: str) -> list[int]:
        """Numbers of a task's runs that learned nothing."""
        name, s = get_task(task).name, self.settings
        return [] if name in s.checkpoint else s.learned_nothing.get(name, [])

    def another_run(self, task: str, run: int) -> int:
        """The next run of a task, the first one after the last; the same where it is alone."""
        runs = self.runs(task)
        return runs[(runs.index(run) + 1) % len(runs)]

    # Rows

    def _place(self, entry: str) -> str:
        """What the study names, or where that is here."""
        return self.places.get(entry) or getattr(self.settings, entry)

    @lru_cache  # noqa: B019 - one per page, as long as its kernel
    def _split(self, task: Task) -> tuple[Dataset, Dataset]:
        """Training rows; and all rows on which the study can be measured, in the order in which they are taken.

        Measured are dev rows in random order, then training rows that no run trains on; or those
        that are held back. Rows that say the same as a training row are left out.
        """
        from datasets import concatenate_datasets

        s, rng = self.settings, np.random.default_rng(self.settings.seed)
        source = parse_data(self._place("data"))
        all_rows = glue.load_rows(task, "train", source)
        order = rng.permutation(len(all_rows))
        held, rest = order[: s.held_back], np.sort(order[s.held_back :])
        count = s.train_rows_of(task)
        drawn = np.sort(rng.permutation(rest)[:count]) if count != ALL else rest
        train, unused = all_rows.select(drawn), rng.permutation(np.setdiff1d(rest, drawn))
        if s.held_back:
            others = all_rows.select(np.concatenate([held, unused]))
        else:
            dev = glue.load_rows(task, "dev", source)
            rest = glue.without(task, all_rows.select(unused), dev)
            others = concatenate_datasets([dev.select(rng.permutation(len(dev))), rest])
        kept = glue.without(task, others, train)
        if 2 * len(kept) < len(others):
            raise ValueError(
                f"{task.title}: {len(others) - len(kept)} of the {len(others)} rows to measure on are training rows as well; give others"
            )
        return train, kept

    def train_rows(self, task: str) -> Dataset:
        """Rows on which every run of a task is fine-tuned."""
        return self._split(get_task(task))[0]

    def rows(self, task: str, part: slice | int | str | None = None) -> Dataset:
        """Rows that no run was trained on, in a fixed random order.

        Args:
            task: as the paper writes it.
            part: which of them; a number of the first ones; by default as many as maps are looked at on.
                Or "train", for the rows on which every run is fine-tuned.
        """
        if isinstance(part, str):  # "train"
            return self.train_rows(task)
        rows = self._split(get_task(task))[1]
        part = _slice(self.settings.rows if part is None else part)
        return rows.select(range(*part.indices(len(rows))))

    def labels(self, task: str, part: slice | int | str | None = None) -> np.ndarray:
        """Gold labels of such rows; of STS-B closeness, from 0 to 1."""
        labels = np.asarray(self.rows(task, part)["label"])
        return labels / 5 if get_task(task).is_regression else labels

    def batches(self, task: str, part: slice | int | str | None = None) -> list[Batch]:
        """Model inputs of such rows, for any model of the study."""
        from .batches import make_batches, tokenize

        inputs = tokenize(
            self.rows(task, part), get_task(task), self.tokenizer, self.settings.recipe.max_length
        )
        return make_batches(inputs, self.tokenizer)

    @cached_property
    def _annotator(self) -> Annotator:
        from .annotation import load_annotator

        tasks = [get_task(task).name for task in self.tasks]
        return load_annotator(self._place("annotation"), tasks)

    @lru_cache  # noqa: B019 - as above
    def words(self, task: str, start: int, stop: int) -> list[AnnotatedInput]:
        """The words of rows ``start`` to ``stop`` among their wordpieces, with parts of speech and dependencies."""
        from .words import annotate_inputs

        rows, fields = self.rows(task, slice(start, stop)), get_task(task).fields
        longest = self.settings.recipe.max_length
        return annotate_inputs(rows, fields, self.tokenizer, longest, self._annotator)

    @cached_property
    def _bank(self) -> dict[str, Annotated]:
        """The treebank's sentences by their text, in a fixed random order."""
        from .annotation import sentences_of

        place = self._place("treebank")
        bank = sentences_of(
            glue.EMBEDDED / "MRPC" / "dev.conllu.gz" if place == "embedded" else place
        )
        texts = sorted(bank.sentences)
        order = np.random.default_rng(self.settings.seed).permutation(len(texts))
        return {texts[at]: bank.sentences[texts[at]] for at in order}

    @cached_property
    def _treebank(self) -> list[AnnotatedInput]:
        from .words import place_sentences

        return [*place_sentences(self._bank, self.tokenizer).values()]

    def texts(self, part: slice | int = ALL) -> list[str]:
        """Sentences of the treebank as they are written, in the order of :meth:`sentences`."""
        return list(self._bank)[_slice(part)]

    def sentences(self, part: slice | int = ALL) -> list[AnnotatedInput]:
        """Sentences of the treebank in a fixed random order, among their wordpieces; a number of the first ones, or a slice."""
        return self._treebank[_slice(part)]

    @cached_property
    def _release(self) -> Release:
        from .framenet import load_release

        return load_release(self._place("framenet"))

    @lru_cache  # noqa: B019 - as above
    def _frames(self, rules: str) -> list[FrameSentence]:
        from .framenet import extract

        kept = extract(self._release, rules)
        order = np.random.default_rng(self.settings.seed).permutation(len(kept))
        return [kept[at] for at in order]

    def frames(self, part: slice | int, rules: str) -> list[FrameSentence]:
        """FrameNet's sentences that rules of extraction keep, in a fixed random order; a number of the first ones, or a slice."""
        return self._frames(rules)[_slice(part)]

    def size(self, of: str, count: int, **options: Any) -> int:
        """How many of so many rows there are: of a task, of the "treebank" or of "framenet" (by an option ``rules``)."""
        if of == "treebank":
            return len(self.sentences(count))
        if of == "framenet":
            return len(self.frames(count, options["rules"]))
        return len(self.rows(of, count))

    # Models

    @cached_property
    def _model(self) -> ModelSource:
        """The encoder's source; a branch on the Hub is pinned to its present commit."""
        from .models import pinned

        return pinned(parse_model(self.settings.model))

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The encoder's."""
        from .models import load_tokenizer

        return load_tokenizer(self._model)

    def encoder(self, start: str = "pre-trained") -> PreTrainedModel:
        """The encoder before any fine-tuning, or with random weights ("random")."""
        from .models import load_encoder

        return load_encoder(self._model, STARTS[start], self.settings.seed).to(device())

    def before_fine_tuning(
        self, task: str, run: int = 1, start: str = "pre-trained"
    ) -> PreTrainedModel:
        """The classifier before any fine-tuning: its classification layer, or with the start "random" all of it, drawn by the run's seed."""
        from .models import load_classifier

        seed, one = self.settings.seed + run - 1, get_task(task)
        return load_classifier(self._model, one, STARTS[start], seed).to(device())

    def training(
        self, task: str, run: int = 1, start: str = "pre-trained", cut: Cut | None = None
    ) -> Training:
        """All that determines a fine-tuning run; of one that goes without heads or layers, what it is that is cut."""
        from .finetune import Training

        s, rows = self.settings, self.train_rows(task)
        seed = s.seed + run - 1
        return Training(get_task(task), self._model, rows, s.recipe, STARTS[start], seed, cut=cut)

    def classifier(
        self, task: str, run: int = 1, start: str = "pre-trained", cut: Cut | None = None
    ) -> PreTrainedModel:
        """The classifier of a fine-tuning run, fine-tuned now if it is not there yet.

        Args:
            task, run: which.
            start: "pre-trained" or "random".
            cut: heads or layers that the run goes without; then it is fine-tuned by the study's recipe
                even where a classifier is given for the task.
        """
        from .models import check_tokens, load_classifier, to_unit_scale

        one = get_task(task)
        given = self.settings.checkpoint.get(one.name)
        if given and start == "pre-trained" and not cut:
            check_fit(one, source := parse_model(given), self._model)
            check_tokens(source, self._model)
            model = load_classifier(source, one, "finetuned").to(device())
            if one.is_regression:
                to_unit_scale(model, self.batches(task, SCALE_ROWS))
            return model
        folder = self._finetuned(task, run, start, cut)
        return load_classifier(ModelSource(task, str(folder)), one, "finetuned").to(device())

    def _finetuned(self, task: str, run: int, start: str, cut: Cut | None = None) -> Path:
        from .finetune import rows_digest, train

        training = self.training(task, run, start, cut)
        before = self._before(task, run) if start == "pre-trained" else None
        key = {
            "model": self._model.fingerprint,
            "start": start,
            "rows": rows_digest(training.rows),
            "seed": training.seed,
            "recipe": self.settings.recipe.model_dump(),
            **({"after": [*before, rows_digest(self.train_rows(before[0]))]} if before else {}),
            **({"frozen": cut.frozen, "removed": cut.removed} if cut else {}),
        }

        def fill(target: Path, scratch: Path) -> None:
            begun = self._finetuned(*before, start) if before else None
            source = ModelSource(before[0], str(begun)) if before else training.source
            train(replace(training, source=source), target, scratch)

        return artefact("classifiers", key, fill)

    def _before(self, task: str, run: int) -> tuple[str, int] | None:
        """The task and run with whose encoder a run begins; there may be fewer of them, which then take turns."""
        if not (before := self.settings.after.get(get_task(task).name)):
            return None
        runs = self.runs(before)
        return get_task(before).title, runs[(run - 1) % len(runs)]

    def fingerprint(self, task: str, run: int) -> str:
        """What identifies the weights of a run's classifier; the same run on another machine has others."""
        if given := self.settings.checkpoint.get(get_task(task).name):
            return parse_model(given).fingerprint[:16]
        return checksum(self._finetuned(task, run, "pre-trained") / "model.safetensors")[:16]

    # Measurements

    def measure(
        self, measurement: Measurement, needed: bool = True, **options: Any
    ) -> dict[str, xr.Dataset]:
        """A measurement of every run, by task; each with an axis ``run``.

        What is on file is loaded, the rest is made, one after the other; ``make measure`` works side by side.

        Args:
            measurement: of :mod:`bertology_utils.measurements`.
            needed: whether the page ends here where no task has it.
            options: the measurement's own.

        Returns:
            By task; of what is measured on sentences alone, by "treebank" or "framenet", without an axis ``run``.

        Raises:
            ValueError, FileNotFoundError, OSError: see :class:`bertology_utils.store.Measurement`.
        """
        measurement.options(options)
        cases = measurement.cases(self)
        missing = [one for one in cases if not measurement.path(self, *one, **options).exists()]
        there = [one for one in cases if one not in missing]
        wanted = [*there, *missing] if self.measures else there  # or refused, before any is made
        kept = {one: measurement(self, *one, **options) for one in wanted}
        if missing and not self.measures:
            named = "; ".join(
                task
                if runs == _by_task(cases)[task]
                else f"{task}, run {' and '.join(map(str, runs))}"
                for task, runs in _by_task(missing).items()
            )
            command = f"make measure STUDY={self.name} ONLY={measurement.name}"
            self._tell(f"not measured yet: {named} ({command})")
        of_task = measurement.of == "task"
        for task in dict(cases) if of_task else ():
            for run in self.left_out(task):
                self._tell(f"left out: {task}, run {run}, which learned nothing")
        if needed and not kept:
            named = ", ".join(dict(cases))
            raise FileNotFoundError(
                f"nothing is measured of {named}; see the line above"
                if cases
                else f"{measurement.name} is of pairs of sentences, and {', '.join(self.tasks)} has none; add a task such as"
                " mrpc"
            )
        for (task, run), one in kept.items():
            weights = one.attrs.get("classifier", "")
            if weights != self._weights.setdefault((task, run), weights):
                raise ValueError(
                    f"{measurement.name} of {task}, run {run}, was measured with other weights than another measurement"
                )
        if not of_task:
            return {of: one for (of, _), one in kept.items()}
        runs = _by_task(one for one in cases if one in kept)
        return {
            task: xr.concat(
                [kept[task, run] for run in of],
                xr.IndexVariable("run", of),
                combine_attrs="drop_conflicts",
            )
            for task, of in runs.items()
        }

    @lru_cache  # noqa: B019 - as above; not again for another option
    def _tell(self, line: str) -> None:
        print(line)

    # What a page leaves behind

    @cached_property
    def claims(self) -> Claims:
        """The page's claims."""
        from .claims import Claims

        return Claims(self)

    def say(self, **numbers: Any) -> None:
        """Keep numbers that the page's text states behind a comment with their name, ``0.64<!-- best_gain -->``.

        Of numbers by task, such as a Series, each has a name of its own: ``gain_SST2`` of SST-2. A
        number that is not there, NaN, is not kept.
        """
        flat: dict[str, Any] = {}
        for name, value in numbers.items():
            if hasattr(value, "items"):
                flat |= {f"{name}_{task}".replace("-", ""): one for task, one in value.items()}
            else:
                flat[name] = value
        there = {name: float(value) for name, value in flat.items() if np.isfinite(value)}
        self.keep("said", {name: round(value, 6) for name, value in there.items()})

    def figure(self, figure: Figure, name: str, alt: str) -> None:
        """Save a figure as PNG and PDF, and show it.

        Args:
            figure: of matplotlib.
            name: of the files.
            alt: what the picture shows, for those who do not see it.
        """
        from .plots import show

        show(figure, output_folder() / self.page, name, alt)

    def keep(self, kind: str, content: dict[str, Any]) -> None:
        """Add claims or numbers to what the page leaves behind: PAGE/STUDY.json in the output folder."""
        path = output_folder() / self.page / f"{self.name}.json"
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        kept[kind] = (kept.get(kind, {}) if kind == "said" else {}) | content
        text = json.dumps(kept, ensure_ascii=False, indent=1) + "\n"
        write_atomically(path, text.encode())

    def committed(self, study: str) -> Path:
        """The file with claims and numbers of this page that are committed for a study."""
        return results_folder() / study / "pages" / f"{self.page}.json"

    # The example

    @contextmanager
    def live(self) -> Iterator[None]:
        """Within it, what needs an encoder that is not installed is left out, and said; the page goes on."""
        try:
            yield
        except FileNotFoundError as error:
            print(f"not run here: {error}")

    def example_classifier(self) -> PreTrainedModel:
        """E5 as a classifier of film reviews, by low-rank updates that come with the package; an example, never evidence.

        Each linear layer of the encoder is W + BA, with B and A of rank 8 (LoRA; Hu et al., 2021).
        ``benchmarks/example_classifier.py`` makes them.

        Raises:
            FileNotFoundError: the encoder's package is not installed.
        """
        import torch
        from safetensors.torch import load_file

        from .models import load_classifier

        model = load_classifier("e5", "sst2")
        update = {name: part.float() for name, part in load_file(EXAMPLE).items()}
        with torch.no_grad():
            for name, linear in model.named_modules():
                own = name.removeprefix("bert.")
                if f"{own}.a" in update:
                    linear.weight += update[f"{own}.b"] @ update[f"{own}.a"]
                elif f"{own}.weight" in update:
                    linear.weight.copy_(update[f"{own}.weight"])
                    linear.bias.copy_(update[f"{own}.bias"])
        return model.to(device())
