"""What the notebooks share: from parameters to rows, models and inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..annotation import annotators
from ..annotation.base import Annotator
from ..annotation.inputs import AnnotatedInput, annotate_inputs
from ..attention import Batch, Measurement, batches, kept, weighed
from ..claims import gates
from ..common import note, to_code, to_people
from ..disabling.needs import SweepOf
from ..disabling.reference import Sweep
from ..disabling.saved import KIND as SWEEPS
from ..disabling.saved import saved_sweep, sweep_key
from ..drift.saved import saved_grafts
from ..encoders import evaluate, finetune, models
from ..encoders.needs import FineTuning
from ..encoders.saved import saved_logits
from ..encoders.sources import ModelSource
from ..glue import loading
from ..glue.tasks import TASKS, Task, predictions
from .parameters import Settings, resolve
from .results import Record
from .work.needs import Need, needs_of

if TYPE_CHECKING:
    from datasets import Dataset


class Experiment:
    """One run of one notebook. Rows and trainings are read once and kept.

    Args:
        notebook: the notebook's name without suffix ("3_finetuning_drift").
        parameters: the notebook's parameters.

    Raises:
        ValueError, TypeError, FileNotFoundError: a parameter is wrong; the
            message names what is allowed.
        ConnectionError: the model is on the Hub, which cannot be reached.
    """

    def __init__(self, notebook: str, **parameters):
        settings = resolve(**parameters)
        self._parameters = parameters
        source, shape = models.pinned(settings.model)
        if settings.head is not None:
            for kind, index, count in zip(("layer", "head"), settings.head, shape, strict=True):
                to_code(to_people(index), count, kind)
        self.settings: Settings = replace(settings, model=source)
        self.record = Record(notebook, self.settings)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that were asked for."""
        return self.settings.tasks

    @cached_property
    def config(self):
        """The model's configuration."""
        return models.load_config(self.settings.model)

    @cached_property
    def tokenizer(self):
        """The model's tokenizer."""
        return models.load_tokenizer(self.settings.model)

    def resampling_seed(self, task: Task) -> tuple[int, int]:
        """Seed of the task's bootstrap: another one for each task, so that tasks are independent."""
        return self.settings.seed, list(TASKS).index(task.name)

    @cache
    def train_rows(self, task: Task) -> Dataset:
        """Training rows, at most ``train_examples``, drawn by the seed."""
        rows = loading.load_rows(task, "train", self.settings.data)
        return loading.sample(rows, self.settings.train_examples, self.settings.seed)

    @cache
    def dev_rows(self, task: Task) -> Dataset:
        """All dev rows."""
        return loading.load_rows(task, "dev", self.settings.data)

    @cache
    def _training(self, task: Task, init: str, seed_offset: int) -> finetune.Training:
        s = self.settings
        recipe = s.profile.recipe_of(init)
        return finetune.Training(task, s.model, self.train_rows(task), recipe, init, s.seed + seed_offset)

    def _checkpoint(self, task: Task, init: str, seed_offset: int) -> ModelSource | None:
        """The classifier that was given instead of this training."""
        source = dict(self.settings.checkpoints).get(task.name) if init == "pretrained" else None
        if source and seed_offset:
            raise ValueError(
                f"{task.title}: there is one training only, the checkpoint {source.name}; another, to compare it with,"
                " needs trainings by this suite: leave checkpoint empty"
            )
        return source

    def finetuned(self, task: Task, init: str = "pretrained", seed_offset: int = 0):
        """The classifier fine-tuned on the task, or the checkpoint that was given for it.

        Args:
            task: the task.
            init: what the training starts from; see :func:`bertology_utils.encoders.models.load_classifier`.
            seed_offset: another number gives another training of the same kind.

        Raises:
            ValueError: another training is wanted where a checkpoint was given.
        """
        checkpoint = self._checkpoint(task, init, seed_offset)
        if checkpoint:
            return models.load_classifier(checkpoint, task, "finetuned").to(self.device)
        return finetune.finetuned(self._training(task, init, seed_offset)).to(self.device)

    def trainings(self, task: Task) -> range:
        """Numbers of the task's trainings, for ``seed_offset``: one where a checkpoint was given."""
        return range(self.settings.trainings_of(task))

    def finetunings(self, task: Task) -> list:
        """The classifiers fine-tuned on the task, which differ in their seed."""
        return [self.finetuned(task, seed_offset=number) for number in self.trainings(task)]

    @property
    def random_tasks(self) -> tuple[Task, ...]:
        """Of the tasks those that the profile trains a random start on."""
        return tuple(task for task in self.tasks if self.settings.random_starts_of(task))

    def random_starts(self, task: Task) -> np.ndarray:
        """What the classifiers that were fine-tuned from random weights answer, shape (trainings, dev rows).

        Args:
            task: one of :attr:`random_tasks`.
        """
        numbers = range(self.settings.random_starts_of(task))
        return np.stack([self.answers(task, init="normal", seed_offset=number) for number in numbers])

    def untrained(self, task: Task, init: str = "pretrained", seed_offset: int = 0):
        """The classifier before any fine-tuning: its classification layer is drawn by the seed."""
        seed = self.settings.seed + seed_offset
        return models.load_classifier(self.settings.model, task, init, seed).to(self.device)

    def encoder(self, init: str = "pretrained"):
        """The bare encoder, without a classifier and before any fine-tuning."""
        return models.load_encoder(self.settings.model, init, self.settings.seed).to(self.device)

    @cache
    def dev_inputs(self, task: Task) -> Dataset:
        """Model inputs of all dev rows, not yet in batches."""
        return batches.tokenize(self.dev_rows(task), task, self.tokenizer, self.settings.profile.recipe.max_length)

    def dev_batches(self, task: Task) -> list[Batch]:
        """Inputs of all dev rows."""
        return batches.make_batches(self.dev_inputs(task), self.tokenizer, self._tokens_per_batch)

    @cached_property
    def _tokens_per_batch(self) -> int:
        layers, heads = self.config.num_hidden_layers, self.config.num_attention_heads
        return batches.tokens_per_batch(layers, heads, self.settings.profile.recipe.max_length)

    @cached_property
    def annotator(self) -> Annotator:
        """What gives words, parts of speech and dependencies.

        Raises:
            ValueError, FileNotFoundError: see :func:`bertology_utils.annotation.annotators.load_annotator`;
                or gold annotation is wanted for data that have none.
        """
        settings = self.settings
        if settings.annotation == "gold" and settings.data.kind != "embedded":
            raise ValueError(
                "annotation='gold' goes with data='embedded' only; for other texts choose annotation='spacy:NAME', such as"
                " spacy:en_core_web_sm, or annotation='conllu:PATH'"
            )
        return annotators.load_annotator(settings.annotation, [task.name for task in self.tasks])

    @cache
    def annotated_inputs(self, task: Task, count: int = 0) -> list[AnnotatedInput]:
        """Annotation of the inputs of :meth:`measured_batches`, by their ``index``."""
        rows = loading.sample(self.dev_rows(task), self._measured(count), self.settings.seed)
        max_length = self.settings.profile.recipe.max_length
        return annotate_inputs(rows, task.fields, self.tokenizer, max_length, self.annotator)

    def _measured(self, count: int) -> int:
        limits = [limit for limit in (count, self.settings.max_examples) if limit]
        return min(limits, default=0)

    def measured_batches(self, task: Task, count: int = 0, pad_to: int | None = None) -> list[Batch]:
        """Inputs of the dev rows whose maps are measured, drawn by the seed (footnote 5).

        Args:
            task: the task.
            count: fewer rows than ``max_examples``; 0 for ``max_examples`` (which is 0 for all rows).
            pad_to: pad every input to this many tokens.
        """
        inputs = loading.sample(self.dev_inputs(task), self._measured(count), self.settings.seed)
        return batches.make_batches(inputs, self.tokenizer, self._tokens_per_batch, pad_to)

    def observe(self, model, task: Task, measurements: dict[str, Measurement], count: int = 0, weighing: str = "") -> dict:
        """One pass over the inputs of :meth:`measured_batches`; see :func:`bertology_utils.attention.kept.observe`.

        Args:
            model: encoder or classifier.
            task: the task.
            measurements: by name.
            count: fewer rows than ``max_examples``.
            weighing: of the maps; by default the notebook's parameter.
        """
        weighing = weighing or self.settings.weighing
        fed = {name: weighed(measurement, weighing) for name, measurement in measurements.items()}
        return kept.observe(model, self.measured_batches(task, count), fed)

    @cache
    def swept_rows(self, task: Task) -> Dataset:
        """The dev rows on which heads are disabled, drawn by the seed."""
        return loading.sample(self.dev_rows(task), self.settings.sweep_examples, self.settings.seed)

    def swept_labels(self, task: Task) -> np.ndarray:
        """Gold labels of these rows, shape (rows,)."""
        return np.asarray(self.swept_rows(task)["label"])

    def swept_batches(self, task: Task) -> list[Batch]:
        """Inputs of these rows."""
        max_length = self.settings.profile.recipe.max_length
        return batches.make_batches(
            batches.tokenize(self.swept_rows(task), task, self.tokenizer, max_length), self.tokenizer, self._tokens_per_batch
        )

    def sweep(self, task: Task, seed_offset: int = 0, ablation: str = "uniform") -> Sweep:
        """Outputs of the fine-tuned classifier on these rows with every head and every layer disabled (§4.6)."""
        need = SweepOf(FineTuning(task, seed_offset=seed_offset), ablation)

        def load() -> tuple[object, list[Batch]]:
            return self.finetuned(task, seed_offset=seed_offset), self.swept_batches(task)

        return saved_sweep(self.entry(need)[1], ablation, load)

    @cached_property
    def needs(self) -> list[Need]:
        """What this notebook needs to have been trained or swept."""
        return needs_of(self.record.notebook, self.settings)

    def entry(self, need: Need) -> tuple[str, dict]:
        """Where the cache keeps what is needed: kind and key."""
        if isinstance(need, FineTuning):
            return finetune.KIND, self._training(need.task, need.init, need.seed_offset).key
        task, seed_offset = need.training.task, need.training.seed_offset
        rows, max_length = self.swept_rows(task), self.settings.profile.recipe.max_length
        of_model = self._of_model(task, "pretrained", seed_offset)
        return SWEEPS, sweep_key(of_model, finetune.rows_digest(rows), max_length, need.ablation)

    def _of_model(self, task: Task, init: str, seed_offset: int) -> dict:
        """What a fine-tuned classifier depends on."""
        checkpoint = self._checkpoint(task, init, seed_offset)
        if checkpoint:
            return {"checkpoint": checkpoint.fingerprint, "task": task.name}
        return self._training(task, init, seed_offset).key

    def make(self, need: Need) -> None:
        """Leave in the cache what is needed."""
        if isinstance(need, FineTuning):
            finetune.trained(self._training(need.task, need.init, need.seed_offset))
        else:
            self.sweep(need.training.task, need.training.seed_offset, need.ablation)

    def prepare(self) -> None:
        """Make all that this notebook needs, in workers; where the cache has it, nothing is done.

        Raises:
            RuntimeError: something cannot be made; the message says what and why.
        """
        from .work.plan import jobs_for, plan_of
        from .work.workers import carry_out

        name = self.record.notebook
        plan = plan_of({name: self}, {name: self._parameters})
        if plan.items:
            jobs = jobs_for(plan.memory)
            note(plan.text(jobs))
            failures = carry_out(plan, jobs)
            if failures:
                raise RuntimeError("; ".join(f"{failure.item.title}: {failure.problem}" for failure in failures))

    def title(self, need: Need) -> str:
        """What it is called in messages."""
        if isinstance(need, FineTuning):
            return self._training(need.task, need.init, need.seed_offset).name
        return f"{need.training.task.title}, seed {self.settings.seed + need.training.seed_offset}, heads {need.ablation}"

    def predictions(self, model, task: Task) -> np.ndarray:
        """Predicted labels (or scores from 0 to 1, for a regression) of all dev rows, shape (rows,)."""
        return predictions(task, evaluate.predict_logits(model, self.dev_batches(task)))

    def answers(self, task: Task, init: str = "pretrained", seed_offset: int = 0) -> np.ndarray:
        """What the fine-tuned classifier predicts of all dev rows, from the cache; as :meth:`predictions`."""

        def load() -> tuple[object, list[Batch]]:
            return self.finetuned(task, init, seed_offset), self.dev_batches(task)

        rows, max_length = finetune.rows_digest(self.dev_rows(task)), self.settings.profile.recipe.max_length
        return predictions(task, saved_logits(self._of_model(task, init, seed_offset), rows, max_length, load))

    def put_back(self, task: Task, groups: Sequence[Sequence[int]], seed_offset: int = 0) -> list[np.ndarray]:
        """What the fine-tuned classifier outputs, from the cache, and then what with each group of layers put back (§4.3).

        Args:
            task: the task.
            groups: layers from 0, to get their weights from before fine-tuning.
            seed_offset: of the training; see :meth:`finetuned`.

        Returns:
            Each of shape (rows, labels), of all dev rows; NaN for a model whose layers cannot be exchanged.
        """

        def load() -> tuple[object, object, list[Batch]]:
            return self.finetuned(task, seed_offset=seed_offset), self.untrained(task), self.dev_batches(task)

        rows, max_length = finetune.rows_digest(self.dev_rows(task)), self.settings.profile.recipe.max_length
        return saved_grafts(self._of_model(task, "pretrained", seed_offset), rows, max_length, [(), *groups], load)

    @cached_property
    def learned(self) -> dict[Task, bool]:
        """Which tasks every training learned, so that claims can be judged on them."""
        found = {}
        for task in self.tasks:
            answers = np.stack([self.answers(task, seed_offset=number) for number in self.trainings(task)])
            found[task] = gates.learned(task, answers, self.labels(task), self.resampling_seed(task))
        return found

    @property
    def real_data(self) -> bool:
        """The rows are GLUE's own, not the project's corpora under GLUE's names."""
        return self.settings.data.kind != "embedded"

    def labels(self, task: Task) -> np.ndarray:
        """Gold labels of all dev rows, shape (rows,)."""
        return np.asarray(self.dev_rows(task)["label"])
