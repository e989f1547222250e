"""What a head does, to set beside what its disabling costs: gradients, maps, the vectors that it adds (§5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ..attention import Batch
from ..attention.hooks import attention_hooks, shape_of
from ..attention.norms import ValueNorms
from ..cache import cached
from ..glue import Task
from .masking import mean_outputs

if TYPE_CHECKING:
    from ..lab import Lab

DESCRIBED_ROWS = 300  # of a task, over which a head's maps and output are averaged


def gradient_importance(model, batches: Sequence[Batch]) -> np.ndarray:
    """A head's importance from one backward pass, shape (layers, heads), to compare with its exact effect.

    How much the loss of an example would change, to first order, if a head's
    output were scaled (Michel, Levy and Neubig, 2019, eq. 2): the mean over
    examples of ``|∂loss/∂ξ|`` at ξ = 1, where ξ multiplies the head's output,
    that is of the absolute sum of output × gradient over the example's tokens.

    Args:
        model: a classifier in evaluation mode.
        batches: with gold labels.

    Raises:
        ValueError: labels that are missing or not numbers, or see
            :func:`bertology_utils.attention.hooks.attention_hooks`.
    """
    outputs: list[torch.Tensor] = []  # per layer, (examples, tokens, heads, head size)

    def keep(layer: int, context: torch.Tensor) -> torch.Tensor:
        # The first is a leaf: below it no gradient is needed, and parameters may be frozen.
        outputs.append(context if layer else context.detach().requires_grad_())
        return outputs[-1]

    device, examples = next(model.parameters()).device, 0
    total = torch.zeros(shape_of(model), dtype=torch.float64, device=device)
    with torch.enable_grad(), attention_hooks(model, edit_outputs=keep):
        for batch in batches:
            batch = batch.to(device)
            if batch.labels is None or not torch.isfinite(batch.labels.float()).all():
                raise ValueError(
                    "some labels are missing; importance is that of the loss, which needs them"
                )
            outputs.clear()
            loss = _loss(model(**batch.inputs).logits, batch.labels)
            gradients = torch.autograd.grad(loss, outputs)
            products = torch.stack(
                [out.detach() * slope for out, slope in zip(outputs, gradients, strict=True)]
            )  # (layers, examples, tokens, heads, size)
            # Of every example summed before its absolute value is taken.
            total += products.double().sum(dim=(2, 4)).abs().sum(dim=1)
            examples += len(batch.index)
    return (total / examples).cpu().numpy()


def _loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Sum of the examples' losses, so that each example's gradient is its own."""
    if logits.shape[1] == 1:
        return functional.mse_loss(logits[:, 0], labels.to(logits), reduction="sum")
    return functional.cross_entropy(logits, labels, reduction="sum")


def described(lab: Lab, task: Task) -> dict[str, np.ndarray]:
    """The heads before fine-tuning, on :data:`DESCRIBED_ROWS` of the swept rows, from the cache; see :func:`describe_heads`.

    So what they are said to rest on is fixed before any effect of theirs is measured, and is the
    same for all runs.
    """
    rows = lab.rows(task, "swept", DESCRIBED_ROWS)
    return cached(describe_heads, lab.lazy_encoder("pretrained"), lab.lazy_batches(task, rows))


def describe_heads(model, batches: Sequence[Batch]) -> dict[str, np.ndarray]:
    """What every head attends to and what it adds: means over an input's tokens, then over inputs.

    Weights are of the average token on [CLS] (the first token), on all [SEP], on itself and on its
    neighbours; the distance from even weights is half the sum of ``|a_ij − 1/L|``, from 0 to 1. Norms
    are of vectors behind the output projection (Kobayashi et al., 2020): of the output Σ a_ij f(x_j),
    and of its change when the head gives instead the mean of the input's values (1/L), or its mean
    output over all tokens of the data; disabled by zero, the change is the output itself. "At [CLS]"
    is what the head adds to that token alone: of the last layer a classifier reads nothing else.

    Args:
        model: encoder or classifier in evaluation mode; heads that a context disables are described
            as they then are.
        batches: inputs that begin with [CLS] and end with [SEP].

    Returns:
        By name, each of shape (layers, heads).

    Raises:
        ValueError: see :class:`bertology_utils.attention.norms.ValueNorms`.
    """
    mean_output, norms = mean_outputs(model, batches), ValueNorms(model)
    device, sums = next(model.parameters()).device, dict[str, np.ndarray]()
    seen: list[Any] = []  # of the present layer: its module, values and maps
    share = ends = torch.empty(0)

    def see_values(layer: int, module: nn.Module, values: torch.Tensor) -> None:
        seen[:] = [module, values]

    def see_maps(layer: int, maps: torch.Tensor) -> None:
        seen.append(maps)

    def describe(layer: int, context: torch.Tensor) -> torch.Tensor:
        module, values, maps = seen

        def norm(vectors: torch.Tensor) -> torch.Tensor:
            """Of (examples, heads, tokens, head size), behind the projection: (examples, heads, tokens)."""
            norms.see(layer, module, vectors)
            return norms.lengths

        output = context.transpose(1, 2)  # (examples, heads, tokens, head size)
        mean_value = (values * share[:, None, :, None]).sum(dim=2, keepdim=True)
        change = norm(mean_value - output)
        by_token = {  # each (examples, heads, tokens), or of one token
            "weight on [CLS]": maps[..., 0],
            "weight on [SEP]": (maps * ends[:, None, None]).sum(dim=3),
            "weight on itself": maps.diagonal(dim1=2, dim2=3),
            "weight on the previous token": functional.pad(maps.diagonal(-1, 2, 3), (1, 0)),
            "weight on the next token": functional.pad(maps.diagonal(1, 2, 3), (0, 1)),
            "distance from even weights": (maps - share[:, None, None]).abs().sum(dim=3) / 2,
            "norm of its output": norm(output),
            "norm of its output at [CLS]": norm(output[:, :, :1]),
            "norm of its change by 1/L": change,
            "norm of its change by 1/L at [CLS]": change[:, :, :1],
            "norm of its change by the mean": norm(mean_output[layer][:, None].to(output) - output),
            "norm of the mean value": norm(mean_value),
        }
        for name, one in by_token.items():
            total = (one.double() * share[:, None]).sum(dim=(0, 2))  # shares sum to 1
            sums.setdefault(name, np.zeros(shape_of(model)))[layer] += total.cpu().numpy()
        return context

    hooks = attention_hooks(
        model, edit_outputs=describe, observe=see_maps, observe_values=see_values
    )
    with torch.inference_mode(), hooks:
        for batch in batches:
            batch = batch.to(device)
            ids, last = batch.inputs["input_ids"], batch.lengths[:, None] - 1
            share = batch.mask / batch.lengths[:, None]  # of each token in the mean: (examples, L)
            ends = (ids == ids.gather(1, last)) & batch.mask  # every [SEP]
            model(**batch.inputs)
    examples = sum(len(batch.index) for batch in batches)
    return {name: total / examples for name, total in sums.items()}


class TwinWords:
    """Measurement: what a word gives its twins in the other sentence minus what it gives that sentence's other words (§5).

    Mean over the words that have a twin, both ways. Punctuation and special
    tokens do not count as words.

    Args:
        tokenizer: tells words from special tokens and punctuation.
    """

    def __init__(self, tokenizer: Any):
        self._separator = tokenizer.sep_token_id
        tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        special = set(tokenizer.all_special_ids)
        is_word = [any(map(str.isalnum, token.strip("Ġ▁Ċ"))) for token in tokens]
        self._is_word = torch.tensor(
            [is_word[at] and at not in special for at in range(len(tokens))]
        )
        self._rows: dict[int, list[np.ndarray]] = {}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        ids = batch.inputs["input_ids"]
        words = self._is_word.to(ids.device)[ids] & batch.mask
        ends = (ids == self._separator) & batch.mask
        second = ends.cumsum(dim=1) - ends.long() > 0  # behind the first sentence; (examples, L)
        across = second[:, :, None] != second[:, None]  # (examples, queries, keys)
        across &= words[:, :, None] & words[:, None]
        twins = across & (ids[:, :, None] == ids[:, None])
        others = across & ~twins
        able = (twins.any(dim=2) & others.any(dim=2))[:, None]  # (examples, 1, queries)

        def mean_weight(cells: torch.Tensor) -> torch.Tensor:
            """Of these cells in each row: (examples, heads, queries)."""
            cells = cells[:, None].double()
            return (maps.double() * cells).sum(dim=3) / cells.sum(dim=3).clamp(min=1)

        excess = (mean_weight(twins) - mean_weight(others)) * able
        excess = excess.sum(dim=2) / able.sum(
            dim=2
        )  # (examples, heads); NaN where no word has a twin
        for index, values in zip(batch.index, excess.cpu().numpy(), strict=True):
            self._rows.setdefault(index, []).append(values)

    def compute(self) -> np.ndarray:
        """Shape (examples, layers, heads), NaN for an input without such words."""
        return np.stack([np.stack(self._rows[index]) for index in sorted(self._rows)])
