"""Fine-tuned classifiers (§3, §4.3): a thin wrapper on transformers' Trainer, with a cache."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ..attention.batches import tokenize
from ..common import cache
from ..common.devices import device_name, precision
from ..common.profiles import Recipe
from ..glue.tasks import Task
from . import models
from .models import NORMAL_STD, load_classifier, load_tokenizer
from .resuming import last_whole_checkpoint
from .resuming import watch as _watch  # the name is part of the cache key, by the code of _train
from .sources import ModelSource

if TYPE_CHECKING:  # Trainer takes seconds to import; whoever only measures does not wait for it
    from datasets import Dataset
    from transformers import PreTrainedModel, TrainingArguments

KIND = "classifiers"  # of entries in the cache
LOSS_CHECK_STEPS = 10  # steps between two looks at the loss


@dataclass(frozen=True)
class Training:
    """All that determines one fine-tuned classifier.

    Attributes:
        task: the task.
        source: the model to start from.
        rows: training rows, from :func:`bertology_utils.glue.loading.load_rows`.
        recipe: how it is trained.
        init: "pretrained" or "normal" (see :mod:`bertology_utils.encoders.models`).
        seed: of the classifier's first weights, the order of the rows, dropout.
    """

    task: Task
    source: ModelSource
    rows: Dataset
    recipe: Recipe
    init: str = "pretrained"
    seed: int = 1

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"{self.task.title}, {self.init}, seed {self.seed}"

    @cached_property
    def key(self) -> dict[str, object]:
        """The cache key: what the result depends on, down to library versions and the kind of device."""
        return {
            "code": cache.code_digest(
                _train, _arguments, tokenize, load_classifier, models._load, models._draw_head, models.draw_normal
            ),
            "task": self.task.name,
            "model": self.source.fingerprint,
            "rows": rows_digest(self.rows),
            "recipe": dataclasses.asdict(self.recipe),
            "init": self.init,
            "normal_std": NORMAL_STD if self.init == "normal" else None,
            "seed": self.seed,
            "versions": {name: version(name) for name in ("torch", "transformers", "accelerate", "tokenizers")},
            "device": device_name(),
            "precision": precision(),
        }


def rows_digest(rows: Dataset) -> str:
    """SHA-256 of the rows' content and column names, independent of where they are stored."""
    content = json.dumps([rows.column_names, rows.to_dict()], ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def finetuned(training: Training) -> PreTrainedModel:
    """The fine-tuned classifier, from the cache if it was trained before; in evaluation mode.

    A killed training goes on from its last saved step, to the same weights: saved are ends of epochs and, within
    long ones, a step every ten minutes (:mod:`bertology_utils.encoders.resuming`).

    Raises:
        ValueError: no rows, or only one class among the labels.
        FloatingPointError: the loss or a weight became infinite or NaN.
    """
    return load_classifier(ModelSource(training.name, str(trained(training))), training.task, init="finetuned")


def trained(training: Training) -> Path:
    """The folder of the fine-tuned classifier in the cache; see :func:`finetuned`."""
    check_rows(training.task, training.rows)
    return cache.entry(KIND, training.key, lambda target, scratch: _train(training, target, scratch))


def check_rows(task: Task, rows: Dataset) -> None:
    """Refuse rows from which nothing can be learnt, before any time is spent.

    Raises:
        ValueError: no rows, or one label only.
    """
    if len(rows) == 0:
        raise ValueError(f"{task.title}: no training rows")
    labels = set(rows["label"][:])  # the column as a whole: row by row takes a second per 100,000
    if len(labels) == 1:
        raise ValueError(
            f"{task.title}: all {len(rows)} training rows have the label {labels.pop()}; at least two are wanted"
        )


def _train(training: Training, target: Path, scratch: Path) -> None:
    from datasets import Value
    from transformers import DataCollatorWithPadding, PrinterCallback, Trainer

    tokenizer = load_tokenizer(training.source)
    model = load_classifier(training.source, training.task, training.init, training.seed)
    inputs = tokenize(training.rows, training.task, tokenizer, training.recipe.max_length)
    if training.task.is_regression:
        inputs = inputs.cast_column("labels", Value("float32"))
    trainer = Trainer(
        model=model,
        args=_arguments(training, len(inputs), scratch),
        train_dataset=inputs,
        data_collator=DataCollatorWithPadding(tokenizer),
        callbacks=[_watch(training.name)],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=last_whole_checkpoint(scratch))
    _check_finite(model, training.task)
    model.save_pretrained(target, safe_serialization=True)
    tokenizer.save_pretrained(target)


def _arguments(training: Training, rows: int, scratch: Path) -> TrainingArguments:
    from transformers import TrainingArguments

    recipe = training.recipe
    steps = -(-rows // recipe.batch_size) * recipe.epochs
    arguments = TrainingArguments(
        output_dir=str(scratch),
        learning_rate=recipe.learning_rate,
        num_train_epochs=recipe.epochs,
        per_device_train_batch_size=recipe.batch_size,
        warmup_steps=round(recipe.warmup * steps),
        weight_decay=recipe.weight_decay,
        adam_epsilon=recipe.adam_epsilon,
        lr_scheduler_type="linear",
        optim="adamw_torch_fused",
        train_sampling_strategy="group_by_length",
        bf16=precision() == "bf16",
        fp16=precision() == "fp16",
        use_cpu=not torch.cuda.is_available(),
        dataloader_pin_memory=torch.cuda.is_available(),
        seed=training.seed,
        save_strategy="epoch",  # and within an epoch, see resuming.py
        save_total_limit=1,
        logging_steps=LOSS_CHECK_STEPS,
        logging_nan_inf_filter=False,
        disable_tqdm=True,
        report_to="none",
    )
    arguments._n_gpu = min(1, arguments.n_gpu)  # several would share each batch, and the sums would round otherwise
    return arguments


def _check_finite(model: PreTrainedModel, task: Task) -> None:
    broken = [name for name, parameter in model.named_parameters() if not torch.isfinite(parameter).all()]
    if broken:
        raise FloatingPointError(f"{task.title}: training left NaN or infinite values in {', '.join(broken[:3])}")
