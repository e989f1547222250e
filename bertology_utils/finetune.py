"""Fine-tuned classifiers (§3, §4.3): a thin wrapper on transformers' Trainer, with a cache."""

import dataclasses
import hashlib
import json
import platform
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from datasets import Dataset
from transformers import DataCollatorWithPadding, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from . import cache
from .batches import tokenize
from .models import NORMAL_STD, load_classifier, load_tokenizer
from .profiles import Recipe
from .sources import ModelSource
from .tasks import Task

LOSS_CHECK_STEPS = 10  # steps between two looks at the loss


@dataclass(frozen=True)
class Training:
    """All that determines one fine-tuned classifier.

    Attributes:
        task: the task.
        source: the model to start from.
        rows: training rows, from :func:`bertology_utils.loading.load_rows`.
        recipe: how it is trained.
        init: "pretrained" or "normal" (see :mod:`bertology_utils.models`).
        seed: of the classifier's first weights, the order of the rows, dropout.
    """

    task: Task
    source: ModelSource
    rows: Dataset
    recipe: Recipe
    init: str = "pretrained"
    seed: int = 1

    def key(self) -> dict:
        """The cache key: what the result depends on, down to library versions and the kind of device."""
        return {
            "task": self.task.name,
            "model": self.source.fingerprint(),
            "rows": rows_digest(self.rows),
            "recipe": {k: v for k, v in dataclasses.asdict(self.recipe).items() if k != "save_steps"},
            "init": self.init,
            "normal_std": NORMAL_STD if self.init == "normal" else None,
            "seed": self.seed,
            "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
            "device": torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine(),
        }


def rows_digest(rows: Dataset) -> str:
    """SHA-256 of the rows' content and column names, independent of where they are stored."""
    content = json.dumps([rows.column_names, rows.to_dict()], ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def finetuned(training: Training):
    """The fine-tuned classifier, from the cache if it was trained before; in evaluation mode.

    A killed training goes on from its last saved step.

    Raises:
        ValueError: no rows, or only one class among the labels.
        FloatingPointError: the loss or a weight became infinite or NaN.
    """
    check_rows(training.task, training.rows)
    folder = cache.entry("classifiers", training.key(), lambda target, scratch: _train(training, target, scratch))
    checkpoint = ModelSource(f"fine-tuned {training.task.title}", str(folder))
    return load_classifier(checkpoint, training.task)


def check_rows(task: Task, rows: Dataset) -> None:
    """Refuse rows from which nothing can be learnt, before any time is spent.

    Raises:
        ValueError: no rows, an empty text, or one label only.
    """
    if len(rows) == 0:
        raise ValueError(f"{task.title}: no training rows")
    labels = set(rows["label"])
    if len(labels) == 1:
        raise ValueError(
            f"{task.title}: all {len(rows)} training rows have the label {labels.pop()}; at least two are wanted"
        )


def _train(training: Training, target: Path, scratch: Path) -> None:
    tokenizer = load_tokenizer(training.source)
    model = load_classifier(training.source, training.task, training.init, training.seed)
    inputs = tokenize(training.rows, training.task, tokenizer, training.recipe.max_length)
    if training.task.is_regression:
        inputs = inputs.cast_column("labels", _float32())
    trainer = Trainer(
        model=model,
        args=_arguments(training, len(inputs), scratch),
        train_dataset=inputs,
        data_collator=DataCollatorWithPadding(tokenizer),
        callbacks=[_StopAtNaN()],
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(scratch)))
    _check_finite(model, training.task)
    model.save_pretrained(target, safe_serialization=True)
    tokenizer.save_pretrained(target)


def _float32():
    from datasets import Value

    return Value("float32")


def _arguments(training: Training, rows: int, scratch: Path) -> TrainingArguments:
    recipe = training.recipe
    steps = -(-rows // recipe.batch_size) * recipe.epochs
    bf16 = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    return TrainingArguments(
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
        bf16=bf16,
        use_cpu=not torch.cuda.is_available(),
        dataloader_pin_memory=torch.cuda.is_available(),
        seed=training.seed,
        save_strategy="steps",
        save_steps=recipe.save_steps,
        save_total_limit=1,
        logging_steps=LOSS_CHECK_STEPS,
        logging_nan_inf_filter=False,
        disable_tqdm=True,
        report_to="none",
    )


class _StopAtNaN(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        loss = (logs or {}).get("loss")
        if loss is not None and not torch.isfinite(torch.tensor(float(loss))):
            raise FloatingPointError(
                f"the training loss is {loss} at step {state.global_step};"
                f" a learning rate below {args.learning_rate:g} usually helps"
            )


def _check_finite(model, task: Task) -> None:
    broken = [name for name, parameter in model.named_parameters() if not torch.isfinite(parameter).all()]
    if broken:
        raise FloatingPointError(f"{task.title}: training left NaN or infinite values in {', '.join(broken[:3])}")
