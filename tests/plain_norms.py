"""Norm-based attention of a BERT computed slowly and plainly, as an independent check: NumPy in float64, token by token.

Nothing comes from the package, and from transformers only parameters and configuration. An input is
one example without padding, ``input_ids`` and ``token_type_ids`` of L integers each. Head h gives
token i the sum over tokens j of a_ij f(x_j): a are its weights, x_j enters the layer, and f(x) = (x
W_V + b_V)[the head's columns] W_O[the head's rows]. The attention block then leaves LayerNorm(y_i),
y_i = Σ_h Σ_j a_ij f(x_j) + b_O + x_i. Sources: Kobayashi et al., EMNLP 2020 ("Attention is Not Only
a Weight") and 2021 ("Incorporating Residual and Normalization Layers into Analysis of Masked
Language Models").
"""

import math
from typing import NamedTuple

import numpy as np


class Layer(NamedTuple):
    """One layer's steps for one input."""

    entering: np.ndarray  # x, (L, hidden)
    weights: np.ndarray  # a, (heads, L, L)
    transformed: np.ndarray  # f(x), (heads, L, hidden)
    attended: np.ndarray  # attention's output with b_O, before the residual: (L, hidden)
    norm: tuple  # of the attention block's LayerNorm: gamma, (hidden,), and eps
    leaving: np.ndarray  # (L, hidden)


def forward(model, input_ids, token_type_ids) -> list[Layer]:
    """Every layer of a transformers BERT with gelu, without dropout."""
    config, eps = model.config, model.config.layer_norm_eps
    weights = model.base_model.state_dict()
    state = {name: value.double().cpu().numpy() for name, value in weights.items()}
    names = ("word", "position", "token_type")
    word, position, kind = (state[f"embeddings.{name}_embeddings.weight"] for name in names)
    rows = word[input_ids] + position[: len(input_ids)] + kind[token_type_ids]
    x, layers = np.array([layer_norm(row, state, "embeddings", eps) for row in rows]), []
    for n in range(config.num_hidden_layers):
        layers.append(one_layer(x, state, f"encoder.layer.{n}", config.num_attention_heads, eps))
        x = layers[-1].leaving
    return layers


def one_layer(x, state, name, heads, eps) -> Layer:
    """The layer of parameters ``name``, entered by x, (L, hidden)."""
    length, size = len(x), x.shape[1] // heads
    a, f = np.zeros((heads, length, length)), np.zeros((heads, *x.shape))
    attended, leaving, attention = 0 * x, 0 * x, f"{name}.attention"
    q, k, v = (
        [linear(row, state, f"{attention}.self.{part}") for row in x]
        for part in ("query", "key", "value")
    )
    # torch's matrices are (out, in)
    output, bias = (state[f"{attention}.output.dense.{part}"].T for part in ("weight", "bias"))
    for h, i in np.ndindex(heads, length):
        own = slice(h * size, (h + 1) * size)
        f[h, i] = v[i][own] @ output[own]
        scores = np.array([q[i][own] @ k[j][own] / math.sqrt(size) for j in range(length)])
        a[h, i] = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    for i in range(length):
        attended[i] = sum((a[h, i, j] * f[h, j] for h, j in np.ndindex(heads, length)), bias)
        block = layer_norm(attended[i] + x[i], state, f"{name}.attention.output", eps)
        wide = linear(block, state, f"{name}.intermediate.dense")
        inner = [z * (1 + math.erf(z / math.sqrt(2))) / 2 for z in wide]
        whole = linear(inner, state, f"{name}.output.dense") + block
        leaving[i] = layer_norm(whole, state, f"{name}.output", eps)
    norm = state[f"{attention}.output.LayerNorm.weight"], eps
    return Layer(x, a, f, attended, norm, leaving)


def linear(x, state, name):
    return state[f"{name}.weight"] @ x + state[f"{name}.bias"]


def layer_norm(x, state, name, eps):
    scale, shift = (state[f"{name}.LayerNorm.{part}"] for part in ("weight", "bias"))
    return normalised(x, x, scale, eps) + shift


def normalised(x, y, gamma, eps):
    """g(x) = (x − mean(x)) / std(y) · gamma, linear in x for a given y; std is √(variance over y's entries + eps)."""
    return (x - x.mean()) / math.sqrt(((y - y.mean()) ** 2).mean() + eps) * gamma


def terms(layer, i, by) -> tuple:
    """What token i takes from the others and what it keeps, (hidden,) each, as ``mixing`` defines them."""
    y = layer.attended[i] + layer.entering[i]
    mixed, kept = 0 * y, 0 * y if by == "norm" else layer.entering[i].copy()
    for h, j in np.ndindex(layer.transformed.shape[:2]):
        (kept if j == i else mixed)[:] += layer.weights[h, i, j] * layer.transformed[h, j]
    return tuple(
        normalised(term, y, *layer.norm) if by == "layernorm" else term for term in (mixed, kept)
    )


def mixing(model, input_ids, token_type_ids, by) -> np.ndarray:
    """Mixing ratio of each layer, (layers,), from 0 to 1: the mean over all tokens i, special ones included, of

    weight:    1 − mean over heads of a_ii
    norm:      ‖m‖ / (‖m‖ + ‖p‖), with m = Σ_{j≠i} Σ_h a_ij f(x_j) and p = Σ_h a_ii f(x_i)
    residual:  ‖m‖ / (‖m‖ + ‖p + x_i‖)
    layernorm: ‖g(m)‖ / (‖g(m)‖ + ‖g(p + x_i)‖), g the attention block's LayerNorm with the std of
        y_i (``normalised``)

    b_V is part of f; b_O and LayerNorm's bias are in neither term, as in the authors' code.
    """
    layers, tokens = forward(model, input_ids, token_type_ids), range(len(input_ids))
    if by == "weight":
        return np.array(
            [np.mean([1 - layer.weights[:, i, i].mean() for i in tokens]) for layer in layers]
        )
    sizes = [
        [[np.linalg.norm(term) for term in terms(layer, i, by)] for i in tokens] for layer in layers
    ]
    return np.array([np.mean([mixed / (mixed + kept) for mixed, kept in layer]) for layer in sizes])
