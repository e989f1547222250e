"""A classifier in the pieces that a sweep puts together: embeddings, and each layer as attention, projection and the rest.

Of the last layer only [CLS] is read, so only its query matters: its scores are q·(K h) = (Kᵀq)·h,
and its context V(Σ a h). With the products in this order no token but [CLS] is ever projected.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from ..attention import Batch

TOLERANCE = 1e-4  # of the outputs of a model whose pieces are to be used


def pieces_of(model, batch: Batch) -> Pieces | None:
    """The model in pieces, if it is made of BERT's; else None. What the pieces give is checked on one example."""
    example = batch.example(0).to(next(model.parameters()).device).inputs
    try:
        pieces = Pieces(model)
        outputs = pieces.rest(pieces.embed(example), 0)
    except (AttributeError, RuntimeError, TypeError):
        return None
    expected = model(**example).logits
    tolerance = max(TOLERANCE, 16 * torch.finfo(expected.dtype).eps)  # lower precision rounds more
    same = outputs.shape == expected.shape and (outputs - expected).abs().max() <= tolerance * (
        1 + expected.abs().max()
    )
    return pieces if same else None


class Pieces:
    """A BERT, RoBERTa or ELECTRA classifier in the pieces that the sweep needs; inputs are not padded."""

    def __init__(self, model):
        base = model.base_model
        self.model, self.base = model, base
        self.heads = model.config.num_attention_heads
        self.layers = [Layer(layer, self.heads) for layer in base.encoder.layer]
        self.variants = self.heads + 1

    def embed(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Embeddings of inputs without padding, (inputs, tokens, hidden)."""
        wanted = {
            name: ids for name, ids in inputs.items() if name in ("input_ids", "token_type_ids")
        }
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
        inputs, tokens, _ = hidden.shape
        split = functional.linear(hidden, self.weight, self.bias).view(
            inputs, tokens, 3, self.heads, self.width
        )
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
        inputs, _, size = hidden.shape
        query = self.query(hidden[:, 0]).view(inputs, self.heads, self.width)
        # The key's bias adds the same to all scores of a query, which the softmax does not see.
        seen = torch.einsum(
            "ihw,hwd->ihd", query, self.key.weight.view(self.heads, self.width, size)
        )
        weights = torch.softmax(
            seen @ hidden.transpose(1, 2) * self.width**-0.5, dim=-1
        )  # (inputs, heads, tokens)
        gathered = weights @ hidden  # (inputs, heads, hidden)
        context = torch.einsum(
            "ihd,hwd->ihw", gathered, self.value.weight.view(self.heads, self.width, size)
        )
        context = (
            context.flatten(1) + self.value.bias
        )  # weights sum to 1, so the bias passes through
        return self.finish(self.output(context).unsqueeze(1), hidden[:, :1])

    def disabled(
        self,
        context: torch.Tensor,
        value: torch.Tensor,
        projected: torch.Tensor,
        instead: torch.Tensor | str | None,
    ) -> torch.Tensor:
        """The projected context with each head disabled, and with all of them, (heads + 1, inputs, tokens, hidden).

        Args:
            context: (inputs, heads, tokens, head size), at some tokens.
            value: (inputs, heads, all tokens, head size).
            projected: (inputs, tokens, hidden), of ``context``.
            instead: what each head gives instead, (heads, head size); a text for what it gives the
                next input, the first after the last; None for the mean of its values.
        """
        # (inputs or 1, heads, tokens or 1, head size)
        if instead is None:
            target = value.mean(dim=2, keepdim=True)
        else:
            target = (
                context.roll(-1, dims=0)
                if isinstance(instead, str)
                else instead[None, :, None].to(value)
            )
        change = self.by_head(target - context)
        all_disabled = self.join(target.expand_as(context)).unsqueeze(0)
        return torch.cat([projected + change, all_disabled])

    def by_head(self, context: torch.Tensor) -> torch.Tensor:
        """What each head adds to the projection, (heads, inputs, tokens, hidden), of (inputs, heads, tokens, head size)."""
        weight = self.output.weight.view(-1, self.heads, self.width).permute(
            1, 2, 0
        )  # (heads, head size, hidden)
        return torch.einsum("ihtw,hwd->hitd", context, weight)

    def without(
        self, context: torch.Tensor, projected: torch.Tensor, sets: torch.Tensor
    ) -> torch.Tensor:
        """The projected context without each set of heads, (sets, inputs, tokens, hidden); ``sets`` are (sets, heads)."""
        return projected - torch.einsum("sh,hitd->sitd", sets.to(projected), self.by_head(context))
