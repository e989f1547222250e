"""What a fine-tuning has to do without: layers that may not change, and weights or heads that are zero from start to end.

A weight that is taken is zero before the first step, and its gradient is set to zero in every step.
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

FROZEN, SMALLEST, ANY = "frozen", "smallest weights", "random weights"
GOOD, RANDOM, BAD, NONE = (
    "good heads",
    "random heads",
    "bad heads",
    "no heads",
)  # those that are kept
KINDS = (FROZEN, SMALLEST, ANY, GOOD, RANDOM, BAD, NONE)
WEIGHED_ON = 256  # training rows that say how important a head is
THIRD = 1 / 3


@dataclass(frozen=True)
class Cut:
    """What a fine-tuning has to do without.

    Attributes:
        kind: "frozen": the embeddings and the lowest layers stay as they are. "smallest weights":
            of every matrix of the encoder's layers those of the smallest magnitude are zero (Gordon
            et al., 2020, §2); "random weights": any. "good heads", "bad heads": only the most, or
            the least important ones are kept, by their gradients in the same training without a cut
            (Prasanna et al., 2020, §3); "random heads": any; "no heads": none, whatever the size.
        size: the share that is frozen or taken, from 0 to 1.
        shuffled: the training rows' labels are exchanged among them: a control, from which nothing
            can be learnt.
    """

    kind: str
    size: float
    shuffled: bool = False

    def __post_init__(self) -> None:
        one_of("cut", self.kind, KINDS)
        check_share(self.size)

    @property
    def name(self) -> str:
        """In messages."""
        return f"{self.kind} {self.size:.0%}" + (", labels shuffled" if self.shuffled else "")

    def count(self, of: int) -> int:
        """How many of so many are frozen or taken."""
        return math.floor(self.size * of + 0.5)

    def rows(self, training: Training) -> Dataset:
        """The rows that it trains on."""
        if not self.shuffled:
            return training.rows
        order = np.random.default_rng(training.seed).permutation(len(training.rows))
        labels = np.asarray(training.rows["label"])[order].tolist()
        return training.rows.remove_columns("label").add_column(
            "label", labels, feature=training.rows.features["label"]
        )

    def masks(self, model: PreTrainedModel, training: Training) -> dict[str, torch.Tensor]:
        """True for the weights that are kept, by parameter; {} where layers are frozen.

        Args:
            model: as it is before the training.
            training: which one.

        Raises:
            ValueError: no weight or head would be left.
        """
        if self.kind == FROZEN:
            return {}
        if self.kind in (SMALLEST, ANY):
            return weight_masks(model, self.size, None if self.kind == SMALLEST else training.seed)
        return head_masks(model, self.kept_heads(training))

    def hold(self, model: PreTrainedModel, masks: Mapping[str, torch.Tensor]) -> None:
        """Take from the model what it has to do without, and see to it that a training does not give it back.

        Args:
            model: on the device on which it is trained.
            masks: of :meth:`masks`.
        """
        if self.kind == FROZEN:
            freeze(model, self.count(model.config.num_hidden_layers))
        keep_zero(model, masks)

    def ranked_by(self, training: Training) -> Training | None:
        """The same run without a cut, by whose gradients heads are ranked; None if they are not."""
        return replace(training, cut=None) if self.kind in (GOOD, BAD) else None

    def kept_heads(self, training: Training) -> np.ndarray:
        """True for the heads that are kept, shape (layers, heads)."""
        from ..models import load_config

        config = load_config(training.source)
        shape = config.num_hidden_layers, config.num_attention_heads
        if self.kind == NONE:
            return np.zeros(shape, dtype=bool)
        weight = (
            np.random.default_rng(training.seed).random(shape)
            if self.kind == RANDOM
            else importance_of(training)
        )
        order = np.argsort(weight.ravel(), kind="stable")  # the least important first
        count = self.count(order.size)
        kept = order[count:] if self.kind != BAD else order[: order.size - count]
        if not kept.size:
            raise ValueError(f"size={self.size:g}: no head would be left; take less than all")
        mask = np.zeros(order.size, dtype=bool)
        mask[kept] = True
        return mask.reshape(weight.shape)


def cuts_of(at: int) -> tuple[Cut, ...]:
    """The cuts with which notebook 10 repeats a training: those that its claims are about, and in the first two all.

    Args:
        at: number of the training.
    """
    claimed = (
        Cut(FROZEN, THIRD),
        Cut(SMALLEST, 0.3),
        Cut(SMALLEST, 0.4),
        *(Cut(kind, 0.5) for kind in (GOOD, RANDOM, BAD)),
    )
    more = Cut(FROZEN, 2 * THIRD), Cut(SMALLEST, 0.6), Cut(ANY, 0.3), Cut(ANY, 0.6)
    controls = Cut(NONE, 1.0), Cut(GOOD, 0.5, shuffled=True)
    return claimed + (more + controls if at < 2 else ())


def check_share(size: float) -> None:
    """Refuse a share that is none; raises ValueError."""
    if not 0 <= size <= 1:
        raise ValueError(f"size={size:g} is out of range; it is a share, from 0 to 1")


def importance_of(training: Training) -> np.ndarray:
    """Heads' importance for the loss of some training rows after the same training without a cut; see :func:`importance`."""
    from ..finetune import finetuned
    from ..models import load_tokenizer

    tokenizer = load_tokenizer(training.source)
    batches = weighting_batches(
        training.task, training.rows, tokenizer, training.recipe.max_length, training.seed
    )
    return importance(finetuned(replace(training, cut=None)), batches)


def weighting_batches(
    task: Task, rows: Dataset, tokenizer: PreTrainedTokenizerFast, max_length: int, seed: int
) -> list[Batch]:
    """Inputs of the training rows on which heads are weighed: :data:`WEIGHED_ON` of ``rows``, drawn by the seed."""
    from ..attention.batches import make_batches, tokenize

    return make_batches(
        tokenize(sample(rows, WEIGHED_ON, seed), task, tokenizer, max_length), tokenizer
    )


def importance(model: PreTrainedModel, batches: Sequence[Batch]) -> np.ndarray:
    """Heads' importance by gradients, each layer's divided by its root mean square, shape (layers, heads).

    Undivided, whole layers would go first (Molchanov et al., 2017, as in Michel et al., 2019,
    §4.1).

    Args:
        model: classifier in evaluation mode.
        batches: with gold labels.
    """
    from ..disabling.heads import gradient_importance

    found = gradient_importance(model, batches)
    return found / np.maximum(np.sqrt((found**2).mean(axis=1, keepdims=True)), 1e-30)


def layers_of(model: PreTrainedModel) -> Any:  # torch knows a list of modules, and no names in them
    """The list of the encoder's layers; raises ValueError for a model that is not built like BERT."""
    there = getattr(getattr(model.base_model, "encoder", None), "layer", None)
    if there is None:
        raise ValueError(
            f"{type(model).__name__} is not built like BERT, so its layers are not known; take one that is"
        )
    return there


def freeze(model: PreTrainedModel, layers: int) -> None:
    """Let neither the embeddings nor the lowest layers learn.

    Args:
        model: BERT, or built like it.
        layers: how many.

    Raises:
        ValueError: more than the model has.
    """
    there = layers_of(model)
    if not 0 <= layers <= len(there):
        raise ValueError(f"layers={layers} is out of range; the model has {len(there)}")
    for part in (model.base_model.embeddings, *there[:layers]):
        part.requires_grad_(False)


def weight_masks(
    model: PreTrainedModel, size: float, seed: int | None = None
) -> dict[str, torch.Tensor]:
    """True for the weights that are kept, by parameter, for every matrix of the encoder's layers.

    Args:
        model: BERT, or built like it.
        size: the share that is taken of each matrix.
        seed: of a random choice; those of the smallest magnitude if None.

    Raises:
        ValueError: not a share, or all.
    """
    import torch

    check_share(size)
    if size == 1:
        raise ValueError("size=1: no weight would be left; take less than all")
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    masks, prefix = {}, f"{model.base_model_prefix}.encoder.layer"
    for name, weight in layers_of(model).named_parameters():
        if weight.dim() == 2:
            chosen = (
                weight.detach().abs().cpu()
                if generator is None
                else torch.rand(weight.shape, generator=generator)
            )
            order = chosen.flatten().argsort(stable=True)
            mask = torch.ones(order.numel(), dtype=torch.bool)
            mask[order[: round(size * order.numel())]] = False
            masks[f"{prefix}.{name}"] = mask.view(weight.shape)
    return masks


def head_masks(model: PreTrainedModel, kept: np.ndarray) -> dict[str, torch.Tensor]:
    """The same for heads: of a head that goes, what the output projection reads of it.

    Args:
        model: BERT, or built like it.
        kept: True for heads that are kept, shape (layers, heads).

    Raises:
        ValueError: of another shape than the model's heads.
    """
    import torch

    from ..attention.hooks import shape_of

    if kept.shape != shape_of(model):
        raise ValueError(f"a mask of {kept.shape} for a model of {shape_of(model)} (layers, heads)")
    masks: dict[str, torch.Tensor] = {}
    for layer, (part, of_layer) in enumerate(zip(layers_of(model), kept, strict=True)):
        shape = part.attention.output.dense.weight.shape  # (hidden, heads · head size)
        columns = torch.from_numpy(of_layer).repeat_interleave(shape[1] // len(of_layer))
        masks[f"{model.base_model_prefix}.encoder.layer.{layer}.attention.output.dense.weight"] = (
            columns.expand(shape)
        )
    return masks


def zero(model: PreTrainedModel, masks: Mapping[str, torch.Tensor]) -> None:
    """Set the weights that are not kept to zero.

    Args:
        model: any.
        masks: True for the weights that are kept, by parameter.

    Raises:
        ValueError: a mask has another shape than its parameter.
    """
    for name, mask in masks.items():
        parameter = model.get_parameter(name)
        if mask.shape != parameter.shape:
            raise ValueError(
                f"{name}: a mask of {tuple(mask.shape)} for a parameter of {tuple(parameter.shape)}"
            )
        parameter.data.mul_(mask.to(parameter.device))


def keep_zero(model: PreTrainedModel, masks: Mapping[str, torch.Tensor]) -> None:
    """As :func:`zero`, and no training changes them."""
    zero(model, masks)
    for name, mask in masks.items():
        model.get_parameter(name).register_hook(
            lambda gradient, mask=mask: gradient * mask.to(gradient.device)
        )
