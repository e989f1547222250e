"""Prunings of a fine-tuning run: frozen layers, and weights or heads that stay zero.

A weight that goes is zero before the first step, and its gradient is set to zero in every step.
AdamW's moments of it then stay zero, and decay leaves zero as it is, so it is exactly zero at the
end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common import one_of
from ..glue import Task, sample

if TYPE_CHECKING:
    import torch
    from datasets import Dataset
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from ..attention import Batch
    from ..finetune import Training
    from ..lab import Lab

FROZEN, SMALLEST = "frozen", "smallest weights"
# Of heads, those that are kept.
GOOD, RANDOM, BAD = "good heads", "random heads", "bad heads"
KINDS = (FROZEN, SMALLEST, GOOD, RANDOM, BAD)
RANKED_ON = 256  # training rows that say how important a head is


@dataclass(frozen=True)
class Pruning:
    """What a fine-tuning run goes without.

    Attributes:
        kind: "frozen": the embeddings and the lowest layers stay as they are. "smallest weights":
            of every matrix of the encoder's layers those of the smallest magnitude are zero (Gordon
            et al., 2020, §2). "good heads", "bad heads": only the most, or
            the least important ones are kept, by their gradients in the same run without pruning
            (Prasanna et al., 2020, §3); "random heads": any.
        size: the share that is frozen or goes, from 0 to 1.
    """

    kind: str
    size: float

    def __post_init__(self) -> None:
        one_of("pruning", self.kind, KINDS)
        if not 0 <= self.size <= 1:
            raise ValueError(f"size={self.size:g} is out of range; it is a share, from 0 to 1")
        if self.size == 1 and self.kind != FROZEN:
            raise ValueError(f"size=1 leaves nothing of the {self.kind}; choose less than 1")

    @property
    def name(self) -> str:
        """In messages."""
        return f"{self.kind} {self.size:.0%}"

    def count(self, of: int) -> int:
        """How many of so many are frozen or go."""
        return math.floor(self.size * of + 0.5)

    def masks(self, model: PreTrainedModel, training: Training) -> dict[str, torch.Tensor]:
        """True for the weights that are kept, by parameter; {} where layers are frozen.

        Args:
            model: as it is before the run.
            training: the run.
        """
        if self.kind == FROZEN:
            return {}
        if self.kind == SMALLEST:
            return weight_masks(model, self.size)
        return head_masks(model, self.kept_heads(training))

    def hold(self, model: PreTrainedModel, masks: Mapping[str, torch.Tensor]) -> None:
        """Prune the model, and let no training undo it.

        Args:
            model: on the device on which it is trained.
            masks: of :meth:`masks`.
        """
        if self.kind == FROZEN:
            lowest = layers_of(model)[: self.count(model.config.num_hidden_layers)]
            for part in (model.base_model.embeddings, *lowest):
                part.requires_grad_(False)
        keep_zero(model, masks)

    def ranked_by(self, training: Training) -> Training | None:
        """The same run without pruning, by whose gradients heads are ranked, if they are."""
        return replace(training, cut=None) if self.kind in (GOOD, BAD) else None

    def kept_heads(self, training: Training) -> np.ndarray:
        """True for the heads that are kept, shape (layers, heads)."""
        from ..models import load_config

        config = load_config(training.source)
        shape = config.num_hidden_layers, config.num_attention_heads
        if self.kind == RANDOM:
            rank = np.random.default_rng(training.seed).random(shape)
        else:
            rank = importance_in(training)
        order = np.argsort(rank.ravel(), kind="stable")  # the least important first
        count = self.count(order.size)
        kept = np.zeros(order.size, dtype=bool)
        kept[order[: order.size - count] if self.kind == BAD else order[count:]] = True
        return kept.reshape(shape)


HALVES = {kind: Pruning(kind, 0.5) for kind in (GOOD, RANDOM, BAD)}
FROZEN_THIRD, SMALLEST_40 = Pruning(FROZEN, 1 / 3), Pruning(SMALLEST, 0.4)


def runs_of(lab: Lab, task: Task) -> range:
    """The runs of a task that notebook 10 measures: all, in the small run the first."""
    return lab.trainings(task)[:1] if lab.settings.is_small else lab.trainings(task)


def prunings_of(lab: Lab, number: int) -> tuple[Pruning, ...]:
    """The prunings with which notebook 10 repeats a run: those that a claim needs.

    The small run, which is no evidence, makes fewer, and of the first run alone.

    Args:
        lab: of the notebook.
        number: of the run.
    """
    few = FROZEN_THIRD, HALVES[GOOD], HALVES[BAD]
    if lab.settings.is_small:
        return few if number == 0 else ()
    return *few, HALVES[RANDOM], SMALLEST_40


def importance_in(training: Training) -> np.ndarray:
    """Heads' :func:`importance` on some training rows in the same run without pruning."""
    from ..finetune import finetuned
    from ..models import load_tokenizer

    tokenizer, length = load_tokenizer(training.source), training.recipe.max_length
    batches = ranking_batches(training.task, training.rows, tokenizer, length, training.seed)
    return importance(finetuned(replace(training, cut=None)), batches)


def ranking_batches(
    task: Task, rows: Dataset, tokenizer: PreTrainedTokenizerFast, max_length: int, seed: int
) -> list[Batch]:
    """Inputs of the training rows by which heads are ranked, drawn by the seed."""
    from ..attention.batches import make_batches, tokenize

    return make_batches(
        tokenize(sample(rows, RANKED_ON, seed), task, tokenizer, max_length), tokenizer
    )


def importance(model: PreTrainedModel, batches: Sequence[Batch]) -> np.ndarray:
    """Heads' importance by gradients, in each layer's own scale, shape (layers, heads).

    Each layer's is divided by its root mean square.

    Undivided, whole layers would go first (Molchanov et al., 2017, as in Michel et al., 2019,
    §4.1).

    Args:
        model: classifier in evaluation mode.
        batches: with gold labels.
    """
    from ..disabling.heads import gradient_importance

    values = gradient_importance(model, batches)
    return values / np.maximum(np.sqrt((values**2).mean(axis=1, keepdims=True)), 1e-30)


def layers_of(model: PreTrainedModel) -> Any:  # torch knows a list of modules, and no names in them
    """The encoder's layers; raises ValueError for a model that is not built like BERT."""
    layers = getattr(getattr(model.base_model, "encoder", None), "layer", None)
    if layers is None:
        raise ValueError(
            f"{type(model).__name__} is not built like BERT, so its layers are not known; take one that is"
        )
    return layers


def weight_masks(model: PreTrainedModel, size: float) -> dict[str, torch.Tensor]:
    """True for the weights that are kept, by parameter, for every matrix of the encoder's layers.

    Args:
        model: BERT, or built like it.
        size: the share of each matrix that goes, those of the smallest magnitude.
    """
    import torch

    masks, prefix = {}, f"{model.base_model_prefix}.encoder.layer"
    for name, weight in layers_of(model).named_parameters():
        if weight.dim() == 2:
            order = weight.detach().abs().cpu().flatten().argsort(stable=True)
            mask = torch.ones(order.numel(), dtype=torch.bool)
            mask[order[: round(size * order.numel())]] = False
            masks[f"{prefix}.{name}"] = mask.view(weight.shape)
    return masks


def head_masks(model: PreTrainedModel, kept: np.ndarray) -> dict[str, torch.Tensor]:
    """True for the weights that are kept: of a head that goes, its output projection is not.

    Args:
        model: BERT, or built like it.
        kept: True for heads that are kept, shape (layers, heads).
    """
    import torch

    masks: dict[str, torch.Tensor] = {}
    for number, (layer, of_layer) in enumerate(zip(layers_of(model), kept, strict=True)):
        shape = layer.attention.output.dense.weight.shape  # (hidden, heads · head size)
        columns = torch.from_numpy(of_layer).repeat_interleave(shape[1] // len(of_layer))
        name = f"{model.base_model_prefix}.encoder.layer.{number}.attention.output.dense.weight"
        masks[name] = columns.expand(shape)
    return masks


def keep_zero(model: PreTrainedModel, masks: Mapping[str, torch.Tensor]) -> None:
    """Set the weights that are not kept to zero, and let no training change them.

    Args:
        model: any.
        masks: True for the weights that are kept, by parameter.
    """
    for name, mask in masks.items():
        parameter = model.get_parameter(name)
        mask = mask.to(parameter.device)
        parameter.data.mul_(mask)
        parameter.register_hook(lambda gradient, mask=mask: gradient * mask)
