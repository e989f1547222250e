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
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load, save

from ..attention import Batch
from ..attention.interface import is_edited, shape_of
from ..common import axis_numbers, note, track
from ..common.cache import write_atomically
from ..encoders.evaluate import check
from .ablations import INTERCHANGE, Instead, replacement
from .groups import Group, by_length, partners
from .pieces import Layer, Pieces
from .reference import Sweep, reference_sweep

TOKENS_AT_ONCE = {"cpu": 4096, "cuda": 262_144}  # bounds the memory: variants × examples × length of one stack
TOLERANCE = 1e-4  # of the outputs of a model that the fast way is to be used for


def sweep(
    model,
    batches: Sequence[Batch],
    tokens_at_once: int = 0,
    layers: Sequence[int] | None = None,
    ablation: str = "uniform",
    scratch: Path | None = None,
) -> Sweep:
    """Outputs with every head, and every layer, disabled.

    Args:
        model: classifier in evaluation mode. BERT, RoBERTa and ELECTRA go the
            fast way; any other goes through :func:`reference_sweep`, which is
            said. So does one with heads disabled by a context around the
            call; these stay disabled in all outputs.
        batches: the dev set; see :mod:`bertology_utils.attention.batches`.
        tokens_at_once: bound on the tokens of one stack of inputs; 0 for
            :data:`TOKENS_AT_ONCE`.
        layers: from 0, in which heads are disabled; all by default.
        ablation: one of :data:`bertology_utils.disabling.ablations.ABLATIONS`.
        scratch: a folder for finished layers, from which a killed sweep of the
            same model and data goes on.

    Raises:
        ValueError: a model in training mode, or see :func:`bertology_utils.encoders.evaluate.check`.
        FloatingPointError: an output is NaN or infinite.
    """
    if model.training:
        raise ValueError("heads are disabled in evaluation mode; call model.eval() first")
    check(model, batches)
    layers = range(shape_of(model)[0]) if layers is None else layers
    with torch.inference_mode():
        edited = is_edited(model)  # the fast way reads the weights, and would not see what a context changes
        pieces = None if edited else _known(model, batches[0])
        if pieces is None:
            why = "has heads that are disabled already" if edited else "is not known to the fast sweep"
            note(f"{type(model).__name__} {why}; one forward pass per head instead")
            return reference_sweep(model, batches, layers, ablation)
        bound = tokens_at_once or TOKENS_AT_ONCE.get(next(model.parameters()).device.type, TOKENS_AT_ONCE["cpu"])
        groups = partners(batches) if ablation == INTERCHANGE else by_length(batches, pieces.variants, bound)
        return _fast(pieces, groups, bound, layers, replacement(model, batches, ablation), scratch)


def _known(model, batch: Batch) -> Pieces | None:
    """The model in pieces, if it is made of BERT's; else None. What the pieces give is checked on one example."""
    example = {name: ids[:1][:, batch.mask[0]] for name, ids in batch.inputs.items()}
    example = {name: ids.to(next(model.parameters()).device) for name, ids in example.items()}
    try:
        pieces = Pieces(model)
        outputs = pieces.rest(pieces.embed(example), 0)
    except (AttributeError, RuntimeError, TypeError):
        return None
    expected = model(**example).logits
    tolerance = max(TOLERANCE, 16 * torch.finfo(expected.dtype).eps)  # lower precision rounds more
    same = outputs.shape == expected.shape and (outputs - expected).abs().max() <= tolerance * (1 + expected.abs().max())
    return pieces if same else None


def _fast(
    pieces: Pieces, groups: list[Group], tokens_at_once: int, layers: Sequence[int], instead: Instead, scratch: Path | None
) -> Sweep:
    device = next(pieces.model.parameters()).device
    back = np.argsort([index for group in groups for index in group.index])
    hidden = [pieces.embed({name: ids.to(device) for name, ids in group.inputs.items()}) for group in groups]
    disabled = {}
    for number, _ in enumerate(track([f"layer {name}" for name in axis_numbers(len(pieces.layers))], "disabling heads")):
        finished = _finished(scratch, number)
        if number in layers and finished is None:
            pairs = [_one_layer(pieces, number, states, instead, tokens_at_once) for states in hidden]
            found, hidden = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            finished = torch.cat(found, dim=1).double().cpu().numpy()[:, back]  # (heads + 1, examples, labels)
            _finish(scratch, number, finished)
        else:
            hidden = [pieces.layers[number].whole(states) for states in hidden]
        disabled[number] = finished
    outputs = torch.cat([pieces.classify(states[:, :1]) for states in hidden]).double().cpu().numpy()[back]
    chosen = np.stack([disabled[number] for number in layers])  # type: ignore[misc]  # None only where not in ``layers``
    if not (np.isfinite(outputs).all() and np.isfinite(chosen).all()):
        raise FloatingPointError("some outputs are NaN or infinite")
    return Sweep(outputs, chosen[:, :-1], chosen[:, -1])


def _finished(scratch: Path | None, number: int) -> np.ndarray | None:
    """A layer's outputs from an earlier, unfinished sweep."""
    path = scratch / f"layer_{number}.safetensors" if scratch else None
    return load(path.read_bytes())["outputs"] if path and path.is_file() else None


def _finish(scratch: Path | None, number: int, outputs: np.ndarray) -> None:
    if scratch:
        write_atomically(scratch / f"layer_{number}.safetensors", save({"outputs": np.ascontiguousarray(outputs)}))


def _one_layer(
    pieces: Pieces, number: int, hidden: torch.Tensor, instead: Instead, tokens_at_once: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs (heads + 1, examples, labels) with each head, and all heads, of one layer disabled; and the layer's own output."""
    layer = pieces.layers[number]
    context, value = layer.attend(hidden)
    if number == len(pieces.layers) - 1:  # of the last layer only [CLS] is read
        context, hidden = context[:, :, :1], hidden[:, :1]
    projected = layer.join(context)
    stack = layer.disabled(context, value, projected, instead[number] if isinstance(instead, torch.Tensor) else instead)
    variants = torch.stack(list(_variants(pieces, layer, stack, hidden, number + 1, tokens_at_once)))
    return variants, layer.finish(projected, hidden)


def _variants(
    pieces: Pieces, layer: Layer, stack: torch.Tensor, hidden: torch.Tensor, start: int, tokens_at_once: int
) -> Iterator[torch.Tensor]:
    """Outputs (examples, labels) of every variant, from the projected contexts (variants, examples, tokens, hidden)."""
    _, examples, tokens, _ = stack.shape
    for part in stack.split(max(1, tokens_at_once // (examples * tokens))):
        after = layer.finish(part, hidden).flatten(0, 1)  # (variants · examples, tokens, hidden)
        yield from pieces.rest(after, start).unflatten(0, (len(part), examples))
