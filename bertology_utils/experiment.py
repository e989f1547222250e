"""What the notebooks share: from parameters to rows, models and inputs."""

from functools import cached_property

import numpy as np
import torch
from datasets import Dataset

from . import batches, evaluate, finetune, loading, models
from .attention import Batch
from .parameters import Settings, resolve
from .results import Record
from .tasks import Task, predictions


class Experiment:
    """One run of one notebook.

    Args:
        notebook: the notebook's name without suffix ("3_finetuning_drift").
        parameters: the notebook's parameters.

    Raises:
        ValueError, TypeError, FileNotFoundError: a parameter is wrong; the
            message names what is allowed.
    """

    def __init__(self, notebook: str, **parameters):
        self.settings: Settings = resolve(**parameters)
        self.record = Record(notebook, self.settings)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that were asked for."""
        return self.settings.tasks

    @cached_property
    def tokenizer(self):
        """The model's tokenizer."""
        return models.load_tokenizer(self.settings.model)

    def train_rows(self, task: Task) -> Dataset:
        """Training rows, at most ``train_examples``, drawn by the seed."""
        rows = loading.load_rows(task, "train", self.settings.data)
        return loading.sample(rows, self.settings.train_examples, self.settings.seed)

    def dev_rows(self, task: Task) -> Dataset:
        """All dev rows."""
        return loading.load_rows(task, "dev", self.settings.data)

    def finetuned(self, task: Task, init: str = "pretrained", seed_offset: int = 0):
        """The classifier fine-tuned on the task; ``seed_offset`` gives another training of the same kind."""
        seed = self.settings.seed + seed_offset
        rows, recipe = self.train_rows(task), self.settings.profile.recipe
        return finetune.finetuned(finetune.Training(task, self.settings.model, rows, recipe, init, seed)).to(self.device)

    def untrained(self, task: Task, init: str = "pretrained", seed_offset: int = 0):
        """The classifier before any fine-tuning: its classification layer is drawn by the seed."""
        seed = self.settings.seed + seed_offset
        return models.load_classifier(self.settings.model, task, init, seed).to(self.device)

    def batches(self, task: Task, rows: Dataset, pad_to: int | None = None) -> list[Batch]:
        """Model inputs for ``rows``, cut by length."""
        length = self.settings.profile.recipe.max_length
        return batches.make_batches(batches.tokenize(rows, task, self.tokenizer, length), self.tokenizer, pad_to=pad_to)

    def measured_batches(self, task: Task, count: int = 0, pad_to: int | None = None) -> list[Batch]:
        """Inputs of the dev rows whose maps are measured: ``max_examples`` at most, drawn by the seed (footnote 5)."""
        rows = loading.sample(self.dev_rows(task), count or self.settings.max_examples, self.settings.seed)
        return self.batches(task, rows, pad_to)

    def predictions(self, model, task: Task) -> np.ndarray:
        """Predicted labels (or scores from 0 to 1, for a regression) of all dev rows, shape (rows,)."""
        return predictions(task, evaluate.predict_logits(model, self.batches(task, self.dev_rows(task))))

    def labels(self, task: Task) -> np.ndarray:
        """Gold labels of all dev rows, shape (rows,)."""
        return np.asarray(self.dev_rows(task)["label"])
