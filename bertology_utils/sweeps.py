"""Every head and every layer disabled, exactly, at a fraction of the cost (§4.6).

What a forward pass per head would compute again and again is computed once:

- below the disabled head nothing changes: its layer's input is shared by all
  heads of the layer;
- at its layer only its own context changes, from what its attention gathers to
  the mean of its values, so the projection is the old one plus the projected
  difference of that head;
- the classifier reads [CLS] alone, so of the last layer nothing else is computed: its query's
  scores are q·(K h) = (Kᵀq)·h and its context V(Σ a h), and in this order no other token is
  projected;
- the heads of a layer, and the layer as a whole, are stacked into one batch of
  inputs of one length, so that nothing is padded.

:func:`reference_sweep` is the same as one would write it, a forward pass for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from .batches import Batch, in_order, prepare
from .common import note, track
from .disabling import Instead, layer_heads, logits_without, replacement
from .hooks import device_of, is_edited, shape_of
from .models import outputs_of, predict_logits

# Bounds the memory: variants × examples × length of one stack of inputs.
TOKENS_AT_ONCE = {"cpu": 4096, "cuda": 262_144}
TOLERANCE = 1e-4  # of the outputs of a model whose pieces are to be used


@dataclass(frozen=True)
class Sweep:
    """Outputs of a classifier with each head, and each layer, disabled.

    Attributes:
        baseline: with all heads in place, shape (examples, labels).
        heads: shape (layers, heads, examples, labels).
        layers: with all heads of a layer disabled, shape (layers, examples, labels).
    """

    baseline: np.ndarray
    heads: np.ndarray
    layers: np.ndarray


def sweep(
    model,
    batches: Sequence[Batch],
    ablation: str = "uniform",
    mean_over: Sequence[Batch] | None = None,
) -> Sweep:
    """Outputs with every head, and every layer, disabled.

    Args:
        model: classifier in evaluation mode. BERT, RoBERTa and ELECTRA go the
            fast way; any other goes through :func:`reference_sweep`, which is
            said. So does one with heads disabled by a context around the
            call; these stay disabled in all outputs.
        batches: the dev set; see :mod:`bertology_utils.batches`.
        ablation: one of :data:`bertology_utils.disabling.ABLATIONS`.
        mean_over: for "mean", the data over which the mean is taken; by default ``batches``.

    Raises:
        ValueError: a model in training mode, or see :func:`bertology_utils.batches.prepare`.
        FloatingPointError: an output is NaN or infinite.
    """
    model, batches = prepare(model, batches, classifier=True)
    instead = replacement(model, mean_over or batches, ablation)
    pieces = pieces_of(model, batches)
    if pieces is None:
        return _reference(model, batches, instead)
    return _fast(pieces, batches, instead)


def reference_sweep(model, batches: Sequence[Batch], ablation: str = "uniform") -> Sweep:
    """As :func:`sweep`, by one pass for each head and layer: the check, and the way for unknown models."""
    model, batches = prepare(model, batches, classifier=True)
    return _reference(model, batches, replacement(model, batches, ablation))


def _reference(model, batches: Sequence[Batch], instead: Instead) -> Sweep:
    heads, layers = [], []
    for number in track(range(shape_of(model)[0]), "disabling heads"):
        own = layer_heads(model, number)
        heads.append([logits_without(model, batches, [head], instead) for head in own])
        layers.append(logits_without(model, batches, own, instead))
    return Sweep(predict_logits(model, batches), np.array(heads), np.array(layers))


# The fast way: a classifier in the pieces that a sweep puts together.


def pieces_of(model, batches: Sequence[Batch]) -> Pieces | None:
    """The model in pieces, if it is made of BERT's and no context edits it; else None, which is said.

    What the pieces give is compared with what the model gives, for the shortest and the longest
    example of the batch with the most padding.
    """
    # The fast way reads the weights, and would not see what a context changes.
    why = "has heads that are disabled already"
    if any((batch.mask[:, 1:] > batch.mask[:, :-1]).any() for batch in batches):
        why = "is given inputs with masked tokens between others"
    elif not is_edited(model):
        why = "is not known to the fast sweep"
        padded = max(batches, key=lambda batch: int((~batch.mask).sum()))
        ends = dict.fromkeys([int(padded.lengths.argmin()), int(padded.lengths.argmax())])
        inputs = {name: one[[*ends]] for name, one in padded.inputs.items()}
        pair = Batch(inputs, [*range(len(ends))])
        try:
            with torch.inference_mode():
                pieces, expected = Pieces(model), outputs_of(model, pair)
                alone = by_length([pair], 1)
                outputs = torch.cat([pieces.rest(pieces.embed(one.inputs), 0) for one in alone])
            # Lower precision rounds more.
            tolerance = max(TOLERANCE, 16 * torch.finfo(expected.dtype).eps)
            tolerance *= 1 + float(expected.abs().max())
            if outputs.shape == expected.shape and (outputs - expected).abs().max() <= tolerance:
                return pieces
        except (AttributeError, RuntimeError, TypeError):
            pass
    note(f"{type(model).__name__} {why}; a forward pass for each head instead")
    return None


class Pieces:
    """A BERT, RoBERTa or ELECTRA classifier in the pieces that the sweep needs; inputs are not padded."""

    def __init__(self, model):
        self.model, self.base = model, model.base_model
        self.heads = model.config.num_attention_heads
        self.layers = [Layer(layer, self.heads) for layer in self.base.encoder.layer]
        kind = device_of(model).type
        self.bound = TOKENS_AT_ONCE.get(kind, TOKENS_AT_ONCE["cpu"])

    def embed(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Embeddings of inputs without padding, (inputs, tokens, hidden)."""
        given = {name: one for name, one in inputs.items() if name != "attention_mask"}
        hidden = self.base.embeddings(**given)
        project = getattr(self.base, "embeddings_project", None)
        return project(hidden) if project is not None else hidden

    def classify(self, first: torch.Tensor) -> torch.Tensor:
        """Outputs, (inputs, labels), of the last layer at [CLS], (inputs, 1, hidden)."""
        pooler = getattr(self.base, "pooler", None)
        return self.model.classifier(pooler(first) if pooler is not None else first)

    def rest(self, hidden: torch.Tensor, start: int) -> torch.Tensor:
        """Outputs of the input of layer ``start``, or of the last layer's output at [CLS]."""
        if start == len(self.layers):
            return self.classify(hidden[:, :1])
        for layer in self.layers[start:-1]:
            hidden = layer.whole(hidden)
        return self.classify(self.layers[-1].first_token(hidden))


class Layer:
    """One layer's weights, and the parts of its computation."""

    def __init__(self, layer, heads: int):
        attention = layer.attention.self
        self.heads, self.width = heads, attention.query.out_features // heads
        self.query, self.key, self.value = attention.query, attention.key, attention.value
        linears = (self.query, self.key, self.value)
        self.weight = torch.cat([linear.weight for linear in linears])  # (3 · hidden, hidden)
        self.bias = torch.cat([linear.bias for linear in linears])
        self.output, self.norm = layer.attention.output.dense, layer.attention.output.LayerNorm
        self.inner, self.act = layer.intermediate.dense, layer.intermediate.intermediate_act_fn
        self.outer, self.last_norm = layer.output.dense, layer.output.LayerNorm

    def attend(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Context and values of every head, each (inputs, heads, tokens, head size), of (inputs, tokens, hidden)."""
        split = functional.linear(hidden, self.weight, self.bias)  # (inputs, tokens, 3 · hidden)
        split = split.unflatten(2, (3, self.heads, self.width))
        query, key, value = split.permute(2, 0, 3, 1, 4)  # each (inputs, heads, tokens, head size)
        return functional.scaled_dot_product_attention(query, key, value), value

    def join(self, context: torch.Tensor) -> torch.Tensor:
        """Heads' context (inputs, heads, tokens, head size) projected to (inputs, tokens, hidden)."""
        return self.output(context.transpose(1, 2).flatten(2))

    def finish(self, projected: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """The layer's output from the projected context, same shape."""
        middle = self.norm(projected + hidden)
        return self.last_norm(self.outer(self.act(self.inner(middle))) + middle)

    def whole(self, hidden: torch.Tensor) -> torch.Tensor:
        """The layer's output, (inputs, tokens, hidden)."""
        return self.finish(self.join(self.attend(hidden)[0]), hidden)

    def first_token(self, hidden: torch.Tensor) -> torch.Tensor:
        """The layer's output at [CLS] alone, (inputs, 1, hidden)."""
        split = self.heads, self.width
        query = self.query(hidden[:, 0]).unflatten(1, split)  # (inputs, heads, head size)
        # The key's bias adds the same to all scores of a query, which the softmax does not see.
        seen = torch.einsum("ihw,hwd->ihd", query, self.key.weight.unflatten(0, split))
        scores = seen @ hidden.transpose(1, 2) * self.width**-0.5
        gathered = torch.softmax(scores, dim=-1) @ hidden  # (inputs, heads, hidden)
        context = torch.einsum("ihd,hwd->ihw", gathered, self.value.weight.unflatten(0, split))
        context = context.flatten(1) + self.value.bias  # weights sum to 1: the bias passes through
        return self.finish(self.output(context).unsqueeze(1), hidden[:, :1])

    def disable(
        self,
        context: torch.Tensor,
        value: torch.Tensor,
        sets: torch.Tensor,
        instead: Instead,
    ) -> torch.Tensor:
        """What disabling each set of heads changes in the projected context, (sets, inputs, tokens, hidden).

        Args:
            context: (inputs, heads, tokens, head size), at some tokens.
            value: (inputs, heads, all tokens, head size).
            sets: 1 for the heads that are disabled, shape (sets, heads).
            instead: what each head gives instead, (heads, head size or 1); None for the mean of its values.
        """
        if instead is None:
            target = value.mean(dim=2, keepdim=True)  # (inputs, heads, 1, head size)
        else:
            target = instead[None, :, None].to(value)  # (1, heads, 1, head size)
        weight = self.output.weight.unflatten(1, (self.heads, self.width))
        of_heads = torch.einsum("ihtw,dhw->hitd", target - context, weight)
        return torch.einsum("sh,hitd->sitd", sets.to(of_heads), of_heads)


@torch.inference_mode()
def _fast(pieces: Pieces, batches: Sequence[Batch], instead: Instead) -> Sweep:
    sets = torch.cat([torch.eye(pieces.heads), torch.ones(1, pieces.heads)])  # the last: the layer
    groups = by_length(batches, pieces.bound // len(sets))
    hidden = [pieces.embed(group.inputs) for group in groups]
    without = []
    for number in track(range(len(pieces.layers)), "disabling heads"):
        own = None if instead is None else instead[number]
        pairs = [_one_layer(pieces, number, states, sets, own) for states in hidden]
        hidden = [states for _, states in pairs]
        without.append(in_order([changed.double() for changed, _ in pairs], groups))
    whole = in_order([pieces.classify(states[:, :1]).double() for states in hidden], groups)
    every = np.stack(without).transpose(0, 2, 1, 3)  # (layers, sets, examples, labels)
    if not (np.isfinite(whole).all() and np.isfinite(every).all()):
        raise FloatingPointError("some outputs are NaN or infinite")
    return Sweep(whole, every[:, :-1], every[:, -1])


def _one_layer(
    pieces: Pieces, number: int, hidden: torch.Tensor, sets: torch.Tensor, instead: Instead
) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs (examples, sets, labels) with each set of one layer's heads disabled; and the layer's own output."""
    layer = pieces.layers[number]
    context, value = layer.attend(hidden)
    if number == len(pieces.layers) - 1:  # of the last layer only [CLS] is read
        context, hidden = context[:, :, :1], hidden[:, :1]
    projected = layer.join(context)
    stack = projected + layer.disable(context, value, sets, instead)

    def outputs() -> Iterator[torch.Tensor]:
        _, examples, tokens, _ = stack.shape
        for part in stack.split(max(1, pieces.bound // (examples * tokens))):
            after = layer.finish(part, hidden).flatten(0, 1)  # (part · examples, tokens, hidden)
            yield from pieces.rest(after, number + 1).unflatten(0, (len(part), examples))

    return torch.stack(list(outputs()), dim=1), layer.finish(projected, hidden)


def by_length(batches: Sequence[Batch], tokens: int) -> list[Batch]:
    """The examples in groups of one length that have at most so many tokens, or one example; without padding."""
    groups = []
    for batch in batches:
        for length in batch.lengths.unique().tolist():
            rows = (batch.lengths == length).nonzero()[:, 0]
            for part in rows.split(max(1, tokens // length)):
                inputs = {name: one[part, :length] for name, one in batch.inputs.items()}
                groups.append(Batch(inputs, [batch.index[row] for row in part.tolist()]))
    return groups
