"""One fine-tuning run (§3, §4.3): a thin wrapper on transformers' Trainer that can be resumed.

A training that is killed at any moment goes on to the same weights, also within an epoch. Trainer
saves weights, optimizer, schedule and generators, and skips the batches that an epoch has behind
it. But the order of an epoch's rows is drawn from the global generator when the epoch begins. So
the state that the generator had then is kept beside the points to resume from, and set again before
the order is drawn anew.

Weights and that state are SafeTensors. What else Trainer writes (optimizer, schedule, generators)
is read by ``torch.load(weights_only=True)``, which runs no code.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .batches import make_batches, prepare, tokenize
from .cache import replaced
from .common import device, note, precision
from .glue import Task, check_labels
from .models import load_classifier, load_tokenizer
from .settings import ModelSource, Recipe

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel, TrainerCallback, TrainingArguments

    from .disabling import Cut

LOSS_CHECK_STEPS = 10  # steps between two looks at the loss
SECONDS_BETWEEN = 600.0  # that a kill can cost; a point of bert-base has 1.3 GB


@dataclass(frozen=True)
class Training:
    """All that determines one fine-tuned classifier.

    Attributes:
        task: the task.
        source: the model to start from.
        rows: training rows, from :func:`bertology_utils.glue.load_rows`.
        recipe: how it is trained.
        init: "pretrained" or "normal" (see :mod:`bertology_utils.models`).
        seed: of the classifier's first weights, the order of the rows, dropout.
        on_cpu: number format on a CPU that has instructions for it, "bf16" (mixed) or "float32".
        cut: what it goes without, heads or layers, if anything.
    """

    task: Task
    source: ModelSource
    rows: Dataset
    recipe: Recipe
    init: str = "pretrained"
    seed: int = 1
    on_cpu: str = "bf16"
    cut: Cut | None = None

    @property
    def name(self) -> str:
        """Name of the training, for messages."""
        cut = f", {self.cut.name}" if self.cut else ""
        return f"{self.task.title}, {self.init}, seed {self.seed}{cut}"


def rows_digest(rows: Dataset) -> str:
    """SHA-256 of the rows' content and column names, independent of where they are stored."""
    content = json.dumps([rows.column_names, rows.to_dict()], ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def train(training: Training, target: Path, scratch: Path) -> None:
    """Fine-tune, and save classifier and tokenizer into ``target``; ``scratch`` holds points to resume from."""
    from datasets import Value
    from transformers import DataCollatorWithPadding, PrinterCallback, Trainer

    check_labels(training.task.title, training.rows["label"][:])  # row by row takes long
    tokenizer = load_tokenizer(training.source)
    model = load_classifier(training.source, training.task, training.init, training.seed)
    inputs = tokenize(training.rows, training.task, tokenizer, training.recipe.max_length)
    prepare(model, make_batches(inputs, tokenizer))  # whether it can read them
    if training.task.is_regression:
        inputs = inputs.cast_column("labels", Value("float32"))
    tokens = {tokenizer.pad_token_id or 0}.union(*inputs["input_ids"])
    with only_embeddings_of(tokens, model):
        trainer = Trainer(
            model=model,
            args=_arguments(training, len(inputs), scratch),
            train_dataset=inputs,
            data_collator=DataCollatorWithPadding(tokenizer),
            callbacks=[_watch(training.name)],
        )
        trainer.remove_callback(PrinterCallback)
        if training.cut:  # on its device: moving the model may give it new parameters
            training.cut.apply(model)
        trainer.train(resume_from_checkpoint=last_whole_checkpoint(scratch))
    if broken := [name for name, one in model.named_parameters() if not one.isfinite().all()]:
        named = ", ".join(broken[:3])
        raise FloatingPointError(
            f"{training.name}: training left NaN or infinite values in {named}"
        )
    model.save_pretrained(target, safe_serialization=True)
    tokenizer.save_pretrained(target)


class _FewTokens(torch.nn.Module):
    """Word embeddings of some tokens, and below them a row of ones, which no token uses."""

    row: torch.Tensor  # of each token of the vocabulary

    def __init__(self, whole: torch.nn.Embedding, tokens: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("row", torch.zeros(whole.num_embeddings, dtype=torch.long))
        self.row[tokens] = torch.arange(len(tokens))
        ones = whole.weight.new_ones(1, whole.embedding_dim)
        # (tokens + 1, hidden)
        self.weight = torch.nn.Parameter(torch.cat([whole.weight.detach()[tokens], ones]))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.embedding(self.row[tokens], self.weight)


@contextmanager
def only_embeddings_of(tokens: Iterable[int], model: PreTrainedModel) -> Iterator[None]:
    """Within it, let a training go through the word embeddings of these tokens alone; then all are there again.

    Otherwise each step goes through those of the whole vocabulary, half of MiniLM's weights. A
    token that no input has gets no gradient; only weight decay shrinks it, by as much as it shrinks
    a row of ones.

    Args:
        tokens: all that the inputs have.
        model: on the CPU.
    """
    whole: Any = model.get_input_embeddings()
    used = torch.tensor(sorted(tokens))
    few = _FewTokens(whole, used)
    model.set_input_embeddings(few)
    yield
    with torch.no_grad():
        trained = few.weight.cpu()
        whole.weight.mul_(trained[-1, 0])
        whole.weight[used] = trained[:-1]
    model.set_input_embeddings(whole)


def _arguments(training: Training, rows: int, scratch: Path) -> TrainingArguments:
    from transformers import TrainingArguments

    recipe = training.recipe
    number_format = precision(training.on_cpu)
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
        bf16=number_format == "bf16",
        fp16=number_format == "fp16",
        use_cpu=device().type == "cpu",
        dataloader_pin_memory=device().type == "cuda",
        seed=training.seed,
        save_strategy="epoch",  # and within an epoch, see _watch
        save_total_limit=1,
        logging_steps=LOSS_CHECK_STEPS,
        logging_nan_inf_filter=False,
        disable_tqdm=True,
        report_to="none",
    )
    # Several GPUs would share each batch, and sums would round otherwise.
    arguments._n_gpu = min(1, arguments.n_gpu)
    return arguments


def last_whole_checkpoint(scratch: Path) -> str | None:
    """The latest point from which to resume; what a kill left half-written after it is removed."""
    steps = {int(folder.name.split("-")[1]): folder for folder in scratch.glob("checkpoint-*")}
    for _, folder in sorted(steps.items(), reverse=True):
        try:  # Trainer writes this file last
            json.loads((folder / "trainer_state.json").read_text())
        except (OSError, ValueError):
            shutil.rmtree(folder)
        else:
            return str(folder)
    return None


def keep_order(scratch: Path, epoch: int) -> None:
    """Keep the state of the generator that the order of the epoch's rows is about to be drawn from."""
    from safetensors.torch import save_file

    with replaced(_order(scratch, epoch)) as temporary:
        save_file({"generator": torch.random.get_rng_state()}, temporary)


def _order(scratch: Path, epoch: int) -> Path:
    return scratch / f"order-{epoch}.safetensors"


def _watch(name: str) -> TrainerCallback:
    """A callback that reports progress, makes a training resumable, and stops it if it diverges.

    Args:
        name: of the training, in messages.
    """
    from safetensors.torch import load_file
    from transformers import TrainerCallback

    def epoch_of(args: Any, state: Any) -> tuple[int, int]:
        """The epoch that the next step belongs to, from 0, and how many of its steps are done."""
        return divmod(state.global_step, state.max_steps // int(args.num_train_epochs))

    class Watch(TrainerCallback):
        saved = 0.0  # time of the last saved step, by the monotonic clock

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.saved = time.monotonic()
            if state.global_step == 0:
                keep_order(Path(args.output_dir), 0)

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            epoch, done = epoch_of(args, state)
            if done:  # resumed within it
                kept = load_file(_order(Path(args.output_dir), epoch))
                torch.random.set_rng_state(kept["generator"])

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            _, done = epoch_of(args, state)
            if done and time.monotonic() - self.saved >= SECONDS_BETWEEN:
                control.should_save = True

        def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step >= state.max_steps:  # the result is written at once
                control.should_save = False
            else:  # before the epoch's own save, so that none stands without it
                keep_order(Path(args.output_dir), epoch_of(args, state)[0])

        def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.saved = time.monotonic()

        def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if (loss := kwargs["logs"].get("loss")) is None:
                return
            if not math.isfinite(float(loss)):
                raise FloatingPointError(
                    f"{name}: the loss is {loss} at step {state.global_step}; a learning rate below {args.learning_rate:g} helps"
                )
            note(f"{name}: step {state.global_step} of {state.max_steps}, loss {float(loss):.3f}")

    return Watch()
