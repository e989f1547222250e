"""A BERT, RoBERTa or ELECTRA classifier in the pieces that the fast sweep needs; inputs are not padded."""

from __future__ import annotations

import torch
from torch.nn import functional


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

    def disabled(
        self, context: torch.Tensor, value: torch.Tensor, projected: torch.Tensor, instead: torch.Tensor | str | None
    ) -> torch.Tensor:
        """The projected context with each head disabled, and with all of them.

        Args:
            context: (inputs, heads, tokens, head size), at some tokens.
            value: (inputs, heads, all tokens, head size).
            projected: (inputs, tokens, hidden), of ``context``.
            instead: what each head gives instead, (heads, head size); a text for what it gives the next input, the first
                after the last; None for the mean of its values.

        Returns:
            Shape (heads + 1, inputs, tokens, hidden).
        """
        # (inputs or 1, heads, tokens or 1, head size)
        if instead is None:
            target = value.mean(dim=2, keepdim=True)
        else:
            target = context.roll(-1, dims=0) if isinstance(instead, str) else instead[None, :, None].to(value)
        by_head = self.output.weight.view(-1, self.heads, self.width).permute(1, 2, 0)  # (heads, head size, hidden)
        change = torch.einsum("ihtw,hwd->hitd", target - context, by_head)  # (heads, inputs, tokens, hidden)
        all_disabled = self.join(target.expand_as(context)).unsqueeze(0)
        return torch.cat([projected + change, all_disabled])


class Pieces:
    """A BERT, RoBERTa or ELECTRA classifier in the pieces that the sweep needs."""

    def __init__(self, model):
        base = model.base_model
        self.model, self.base = model, base
        self.heads = model.config.num_attention_heads
        self.layers = [Layer(layer, self.heads) for layer in base.encoder.layer]
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
