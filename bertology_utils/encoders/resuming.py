"""A training that is killed at any moment goes on to the same weights: points to resume from, also within an epoch.

Trainer saves weights, optimizer, schedule and generators, and skips the batches that an epoch has behind it. But the
order of an epoch's rows is drawn from the global generator when the epoch begins. So the state that the generator had
then is kept beside the points to resume from, and set again before the order is drawn anew.

Weights and that state are SafeTensors. What else Trainer writes (optimizer, schedule, generators) is read by
``torch.load(weights_only=True)``, which runs no code.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ..common import note

if TYPE_CHECKING:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

SECONDS_BETWEEN = 600.0  # that a kill can cost; a point of bert-base has 1.3 GB


def last_whole_checkpoint(scratch: Path) -> str | None:
    """The latest point from which to resume; what a kill left half-written after it is removed."""
    folders = sorted(scratch.glob("checkpoint-*"), key=lambda p: int(p.name.split("-")[1]), reverse=True)
    for folder in folders:
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

    temporary = scratch / f".order-{epoch}"
    save_file({"generator": torch.random.get_rng_state()}, temporary)
    os.replace(temporary, _order(scratch, epoch))


def restore_order(scratch: Path, epoch: int) -> None:
    """Set the generator as it was when the epoch began."""
    from safetensors.torch import load_file

    torch.random.set_rng_state(load_file(_order(scratch, epoch))["generator"])


def _order(scratch: Path, epoch: int) -> Path:
    return scratch / f"order-{epoch}.safetensors"


def watch(name: str) -> TrainerCallback:
    """A callback that says how far the training is, makes it resumable, and stops it when the loss is no number.

    Args:
        name: of the training, in messages.
    """
    from transformers import TrainerCallback

    def epoch_of(args: TrainingArguments, state: TrainerState) -> tuple[int, int]:
        """The epoch that the next step belongs to, from 0, and how many of its steps are done."""
        return divmod(state.global_step, state.max_steps // int(args.num_train_epochs))

    class Watch(TrainerCallback):
        saved = 0.0  # when, by a clock that nobody sets

        def on_train_begin(
            self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object
        ) -> None:
            self.saved = time.monotonic()
            if state.global_step == 0:
                keep_order(Path(args.output_dir), 0)

        def on_epoch_begin(
            self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object
        ) -> None:
            epoch, done = epoch_of(args, state)
            if done:  # resumed within it
                restore_order(Path(args.output_dir), epoch)

        def on_step_end(
            self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object
        ) -> None:
            epoch, done = epoch_of(args, state)
            # Without the order (a point of an older version was resumed), only the ends of epochs are saved.
            if done and time.monotonic() - self.saved >= SECONDS_BETWEEN and _order(Path(args.output_dir), epoch).exists():
                control.should_save = True

        def on_epoch_end(
            self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object
        ) -> None:
            if state.global_step >= state.max_steps:
                control.should_save = False  # the result is written at once; there is nothing to resume
            else:  # before the point itself, so that there is none without it
                keep_order(Path(args.output_dir), epoch_of(args, state)[0])

        def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object) -> None:
            self.saved = time.monotonic()

        def on_log(
            self,
            args: TrainingArguments,
            state: TrainerState,
            control: TrainerControl,
            logs: dict[str, float] | None = None,
            **kwargs: object,
        ) -> None:
            loss = (logs or {}).get("loss")
            if loss is None:
                return
            if not torch.isfinite(torch.tensor(float(loss))):
                raise FloatingPointError(
                    f"{name}: the training loss is {loss} at step {state.global_step};"
                    f" a learning rate below {args.learning_rate:g} usually helps"
                )
            note(f"{name}: step {state.global_step} of {state.max_steps}, loss {float(loss):.3f}")

    return Watch()
