"""Every head and every layer disabled, exactly, at a fraction of the cost (§4.6).

What a forward pass per head would compute again and again is computed once:

- below the disabled head nothing changes: its layer's input is shared by all
  heads of the layer;
- at its layer only its own context changes, from what its attention gathers to
  the mean of its values, so the projection is the old one plus the projected
  difference of that head;
- the classifier reads [CLS] alone, so in the last layer only its query
  matters. Its scores are q·(K h) = (Kᵀq)·h, and its context V(Σ a h): with the
  products in this order no token but [CLS] is ever projected;
- the heads of a layer, and the layer as a whole, are stacked into one batch of
  inputs of one length, so that nothing is padded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from ..attention import Batch
from ..progress import note, track
from .reference import Sweep, reference_sweep

TOKENS_AT_ONCE = 4096  # bounds the memory: variants × examples × length of one stack
TOLERANCE = 1e-4  # of the outputs of a model that the fast way is to be used for


def sweep(model, batches: Sequence[Batch], tokens_at_once: int = TOKENS_AT_ONCE) -> Sweep:
    """Outputs with every head, and every layer, attending with the constant weight 1/L.

    Args:
        model: classifier in evaluation mode. BERT, RoBERTa and ELECTRA go the
            fast way; any other goes through :func:`reference_sweep`, which is
            said.
        batches: the dev set; see :mod:`bertology_utils.batches`.
        tokens_at_once: bound on the tokens of one stack of inputs.

    Raises:
        ValueError: a model in training mode.
        FloatingPointError: an output is NaN or infinite.
    """
    if model.training:
        raise ValueError("heads are disabled in evaluation mode; call model.eval() first")
    with torch.inference_mode():
        encoder = _known(model, batches[0])
        if encoder is None:
            note(f"{type(model).__name__} is not known to the fast sweep; one forward pass per head instead")
            return reference_sweep(model, batches)
        return _fast(encoder, _by_length(batches, encoder.variants, tokens_at_once), tokens_at_once)


@dataclass(frozen=True)
class _Group:
    """Examples of one length: their positions in the data and model inputs without padding."""

    index: list[int]
    inputs: dict[str, torch.Tensor]


def _by_length(batches: Sequence[Batch], variants: int, tokens_at_once: int) -> list[_Group]:
    """The examples anew, in groups of one length small enough that all variants of a layer make one stack."""
    examples = []  # (length, index, inputs without padding)
    for batch in batches:
        for row, index in enumerate(batch.index):
            real = batch.mask[row]
            examples.append((int(real.sum()), index, {name: ids[row][real] for name, ids in batch.inputs.items()}))
    examples.sort(key=lambda one: one[:2])
    groups: list[list] = []
    for one in examples:
        room = groups and groups[-1][0][0] == one[0] and (len(groups[-1]) + 1) * one[0] * variants <= tokens_at_once
        if room:
            groups[-1].append(one)
        else:
            groups.append([one])
    return [_Group([index for _, index, _ in group],
                   {name: torch.stack([inputs[name] for *_, inputs in group]) for name in group[0][2]})
            for group in groups]


class _Layer:
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
        inputs, tokens, _ = hidden.shape
        split = functional.linear(hidden, self.weight, self.bias).view(inputs, tokens, 3, self.heads, self.width)
        query, key, value = split.permute(2, 0, 3, 1, 4)  # each (inputs, heads, tokens, head size)
        return functional.scaled_dot_product_attention(query, key, value), value

    def join(self, context: torch.Tensor) -> torch.Tensor:
        """Heads' context (inputs, heads, tokens, head size) projected to (inputs, tokens, hidden)."""
        return self.output(context.transpose(1, 2).flatten(2))

    def finish(self, projected: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """From the projected context to the layer's output, same shape."""
        middle = self.norm(projected + hidden)
        return self.last_norm(self.outer(self.act(self.inner(middle))) + middle)

    def whole(self, hidden: torch.Tensor) -> torch.Tensor:
        """The layer's output, (inputs, tokens, hidden)."""
        return self.finish(self.join(self.attend(hidden)[0]), hidden)

    def first_token(self, hidden: torch.Tensor) -> torch.Tensor:
        """The layer's output at [CLS] alone, (inputs, 1, hidden)."""
        inputs, _, size = hidden.shape
        query = self.query(hidden[:, 0]).view(inputs, self.heads, self.width)
        # The key's bias adds the same to all scores of a query, which the softmax does not see.
        seen = torch.einsum("ihw,hwd->ihd", query, self.key.weight.view(self.heads, self.width, size))
        weights = torch.softmax(seen @ hidden.transpose(1, 2) * self.width**-0.5, dim=-1)  # (inputs, heads, tokens)
        gathered = weights @ hidden  # (inputs, heads, hidden)
        context = torch.einsum("ihd,hwd->ihw", gathered, self.value.weight.view(self.heads, self.width, size))
        context = context.flatten(1) + self.value.bias  # weights sum to 1, so the bias passes through
        return self.finish(self.output(context).unsqueeze(1), hidden[:, :1])

    def disabled(self, context: torch.Tensor, value: torch.Tensor, projected: torch.Tensor) -> torch.Tensor:
        """The projected context with each head disabled, and with all of them.

        Args:
            context: (inputs, heads, tokens, head size), at some tokens.
            value: (inputs, heads, all tokens, head size).
            projected: (inputs, tokens, hidden), of ``context``.

        Returns:
            Shape (heads + 1, inputs, tokens, hidden).
        """
        mean = value.mean(dim=2, keepdim=True)  # (inputs, heads, 1, head size)
        by_head = self.output.weight.view(-1, self.heads, self.width).permute(1, 2, 0)  # (heads, head size, hidden)
        change = torch.einsum("ihtw,hwd->hitd", mean - context, by_head)  # (heads, inputs, tokens, hidden)
        all_disabled = self.join(mean.expand_as(context)).unsqueeze(0)
        return torch.cat([projected + change, all_disabled])


class _Encoder:
    """A BERT, RoBERTa or ELECTRA classifier in the pieces that the sweep needs."""

    def __init__(self, model):
        base = model.base_model
        self.model, self.base = model, base
        self.heads = model.config.num_attention_heads
        self.layers = [_Layer(layer, self.heads) for layer in base.encoder.layer]
        self.variants = self.heads + 1

    def embed(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Embeddings of inputs without padding, (inputs, tokens, hidden)."""
        wanted = {name: ids for name, ids in inputs.items() if name in ("input_ids", "token_type_ids")}
        hidden = self.base.embeddings(**wanted)
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


def _known(model, batch: Batch) -> _Encoder | None:
    """The model in pieces, if it is made of BERT's; else None. What the pieces give is checked on one example."""
    example = {name: ids[:1][:, batch.mask[0]] for name, ids in batch.inputs.items()}
    example = {name: ids.to(next(model.parameters()).device) for name, ids in example.items()}
    try:
        encoder = _Encoder(model)
        outputs = encoder.rest(encoder.embed(example), 0)
    except (AttributeError, RuntimeError, TypeError):
        return None
    expected = model(**example).logits
    same = outputs.shape == expected.shape and (outputs - expected).abs().max() <= TOLERANCE * (1 + expected.abs().max())
    return encoder if same else None


def _fast(encoder: _Encoder, groups: list[_Group], tokens_at_once: int) -> Sweep:
    device = next(encoder.model.parameters()).device
    order = [index for group in groups for index in group.index]
    baseline, disabled = [], []  # per group: (examples, labels) and (layers, heads + 1, examples, labels)
    for group in track(groups, "disabling heads, examples of one length"):
        hidden = encoder.embed({name: ids.to(device) for name, ids in group.inputs.items()})
        by_layer = []
        for number, layer in enumerate(encoder.layers):
            context, value = layer.attend(hidden)
            projected = layer.join(context)
            last = number == len(encoder.layers) - 1
            at = slice(0, 1) if last else slice(None)  # of the last layer only [CLS] is read
            stack = layer.disabled(context[:, :, at], value, projected[:, at])
            by_layer.append(torch.stack([outputs for outputs in _variants(encoder, layer, stack, hidden[:, at], number + 1,
                                                                          tokens_at_once)]))
            hidden = layer.finish(projected, hidden)
        baseline.append(encoder.classify(hidden[:, :1]))
        disabled.append(torch.stack(by_layer))
    back = np.argsort(order)
    outputs = torch.cat(baseline).double().cpu().numpy()[back]
    all_disabled = torch.cat(disabled, dim=2).double().cpu().numpy()[:, :, back]
    if not (np.isfinite(outputs).all() and np.isfinite(all_disabled).all()):
        raise FloatingPointError("some outputs are NaN or infinite")
    return Sweep(outputs, all_disabled[:, :-1], all_disabled[:, -1])


def _variants(encoder: _Encoder, layer: _Layer, stack: torch.Tensor, hidden: torch.Tensor, start: int,
              tokens_at_once: int) -> Iterator[torch.Tensor]:
    """Outputs (examples, labels) of every variant, from the projected contexts (variants, examples, tokens, hidden)."""
    _, examples, tokens, _ = stack.shape
    for part in stack.split(max(1, tokens_at_once // (examples * tokens))):
        after = layer.finish(part, hidden).flatten(0, 1)  # (variants · examples, tokens, hidden)
        yield from encoder.rest(after, start).unflatten(0, (len(part), examples))
