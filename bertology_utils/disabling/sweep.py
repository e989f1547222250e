"""Every head and every layer disabled, exactly, at a fraction of the cost (§4.6).

What a forward pass per head would compute again and again is computed once:

- below the disabled head nothing changes: its layer's input is shared by all
  heads of the layer;
- at its layer only its own context changes, from what its attention gathers to
  the mean of its values, so the projection is the old one plus the projected
  difference of that head;
- the classifier reads [CLS] alone, so of the last layer nothing else is computed;
- the heads of a layer, and the layer as a whole, are stacked into one batch of
  inputs of one length, so that nothing is padded.

:func:`reference_sweep` is the same as one would write it, a forward pass for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load, save

from ..attention import Batch
from ..attention.hooks import check_heads, is_edited, shape_of, unwrap
from ..cache import write_atomically
from ..common import axis_numbers, note, one_based, track
from ..models import check, predict_logits
from .pieces import Layer, Pieces, pieces_of
from .masking import INTERCHANGE, layer_heads, logits_without, replacement

TOKENS_AT_ONCE = {
    "cpu": 4096,
    "cuda": 262_144,
}  # bounds the memory: variants × examples × length of one stack
# Of a layer, its number, its context, values and projected context: the projected context in every
# variant.
Change = Callable[["Layer", int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
PARTNERS = 8  # fewest inputs that exchange among each other, where there are as many of one length


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
        ablation: one of :data:`bertology_utils.disabling.masking.ABLATIONS`.
        scratch: a folder for finished layers, from which a killed sweep of the
            same model and data goes on.

    Raises:
        ValueError: a model in training mode, or see :func:`bertology_utils.models.check`.
        FloatingPointError: an output is NaN or infinite.
    """
    model = unwrap(model)
    check(model, batches)
    layers = _chosen(model, layers)
    with torch.inference_mode():
        edited = is_edited(
            model
        )  # the fast way reads the weights, and would not see what a context changes
        pieces = None if edited else pieces_of(model, batches[0])
        if pieces is None:
            why = (
                "has heads that are disabled already"
                if edited
                else "is not known to the fast sweep"
            )
            note(f"{type(model).__name__} {why}; one forward pass per head instead")
            return reference_sweep(model, batches, layers, ablation)
        bound = tokens_at_once or _bound(model)
        groups = (
            partners(batches)
            if ablation == INTERCHANGE
            else by_length(batches, pieces.variants, bound)
        )
        instead = replacement(model, batches, ablation)

        def disable(
            layer: Layer,
            number: int,
            context: torch.Tensor,
            value: torch.Tensor,
            projected: torch.Tensor,
        ):
            own = instead[number] if isinstance(instead, torch.Tensor) else instead
            return layer.disabled(context, value, projected, own)

        outputs, changed = _fast(pieces, groups, bound, layers, disable, scratch)
        return Sweep(outputs, changed[:, :-1], changed[:, -1])


def without_sets(
    model, batches: Sequence[Batch], sets: np.ndarray, scratch: Path | None = None
) -> np.ndarray:
    """Outputs without each of some sets of heads, in each layer: what these heads give is zero.

    Args:
        model: classifier in evaluation mode; see :func:`sweep`.
        batches: the dev set.
        sets: True for the heads of a layer that go, shape (sets, heads); the same in every layer.
        scratch: a folder for finished layers.

    Returns:
        Shape (layers, sets, examples, labels).

    Raises:
        ValueError: sets of another number of heads, or see :func:`bertology_utils.models.check`.
        FloatingPointError: an output is NaN or infinite.
    """
    model = unwrap(model)
    layers, heads = shape_of(model)
    if sets.ndim != 2 or sets.shape[1] != heads:
        raise ValueError(f"sets of shape {sets.shape}: (sets, {heads} heads) are wanted")
    check(model, batches)
    with torch.inference_mode():
        pieces = None if is_edited(model) else pieces_of(model, batches[0])
        if pieces is None:
            note(
                f"{type(model).__name__} is not known to the fast sweep; one forward pass per set of heads instead"
            )
            zeros = replacement(model, batches, "zero")
            gone = [
                [[(layer, int(head)) for head in np.flatnonzero(one)] for one in sets]
                for layer in range(layers)
            ]
            return np.array(
                [
                    [logits_without(model, batches, some, zeros) for some in of_layer]
                    for of_layer in gone
                ]
            )

        def take(
            layer: Layer,
            number: int,
            context: torch.Tensor,
            value: torch.Tensor,
            projected: torch.Tensor,
        ):
            return layer.without(context, projected, torch.from_numpy(sets))

        bound = _bound(model)
        return _fast(
            pieces, by_length(batches, len(sets), bound), bound, range(layers), take, scratch
        )[1]


def _chosen(model, layers: Sequence[int] | None) -> list[int]:
    """The layers in which heads are disabled, all by default; raises ValueError for one that is not there."""
    if layers is None:
        return list(range(shape_of(model)[0]))
    return [layer for layer, _ in check_heads(model, [(layer, 0) for layer in layers])]


def _bound(model) -> int:
    return TOKENS_AT_ONCE.get(next(model.parameters()).device.type, TOKENS_AT_ONCE["cpu"])


def reference_sweep(
    model, batches: Sequence[Batch], layers: Sequence[int] | None = None, ablation: str = "uniform"
) -> Sweep:
    """Outputs with every head, and every layer, disabled, one pass each: the check, and the way for unknown models.

    Within :func:`bertology_utils.disabling.masking.disable_heads` all that is disabled there stays
    disabled.

    Args:
        model: classifier in evaluation mode.
        batches: the dev set; see :mod:`bertology_utils.attention.batches`.
        layers: from 0, in which heads are disabled; all by default.
        ablation: one of :data:`bertology_utils.disabling.masking.ABLATIONS`.

    Raises:
        ValueError: see :func:`bertology_utils.disabling.masking.disable_heads`.
        FloatingPointError: an output is NaN or infinite.
    """
    instead = replacement(model, batches, ablation)
    if isinstance(instead, str):
        batches = partners(batches)

    heads, whole = [], []
    layers = _chosen(model, layers)
    for layer, _ in zip(
        layers,
        track([f"layer {one_based(layer)}" for layer in layers], "disabling heads"),
        strict=True,
    ):
        own = layer_heads(model, layer)
        heads.append([logits_without(model, batches, [head], instead) for head in own])
        whole.append(logits_without(model, batches, own, instead))
    return Sweep(predict_logits(model, batches), np.array(heads), np.array(whole))


def _fast(
    pieces: Pieces,
    groups: list[Batch],
    tokens_at_once: int,
    layers: Sequence[int],
    change: Change,
    scratch: Path | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Outputs of the whole model, (examples, labels), and of every variant, (layers, variants, examples, labels)."""
    device = next(pieces.model.parameters()).device
    back = np.argsort([index for group in groups for index in group.index])
    hidden = [pieces.embed(group.to(device).inputs) for group in groups]
    disabled = {}
    for number, _ in enumerate(
        track([f"layer {name}" for name in axis_numbers(len(pieces.layers))], "disabling heads")
    ):
        finished = _finished(scratch, number)
        if number in layers and finished is None:
            pairs = [
                _one_layer(pieces, number, states, change, tokens_at_once) for states in hidden
            ]
            found, hidden = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            finished = (
                torch.cat(found, dim=1).double().cpu().numpy()[:, back]
            )  # (variants, examples, labels)
            _finish(scratch, number, finished)
        else:
            hidden = [pieces.layers[number].whole(states) for states in hidden]
        disabled[number] = finished
    outputs = (
        torch.cat([pieces.classify(states[:, :1]) for states in hidden])
        .double()
        .cpu()
        .numpy()[back]
    )
    chosen = np.stack([disabled[number] for number in layers])  # type: ignore[misc]  # None only where not in ``layers``
    if not (np.isfinite(outputs).all() and np.isfinite(chosen).all()):
        raise FloatingPointError("some outputs are NaN or infinite")
    return outputs, chosen


def _finished(scratch: Path | None, number: int) -> np.ndarray | None:
    """A layer's outputs from an earlier, unfinished sweep."""
    path = scratch / f"layer_{number}.safetensors" if scratch else None
    return load(path.read_bytes())["outputs"] if path and path.is_file() else None


def _finish(scratch: Path | None, number: int, outputs: np.ndarray) -> None:
    if scratch:
        write_atomically(
            scratch / f"layer_{number}.safetensors",
            save({"outputs": np.ascontiguousarray(outputs)}),
        )


def _one_layer(
    pieces: Pieces, number: int, hidden: torch.Tensor, change: Change, tokens_at_once: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs (variants, examples, labels) with one layer's projected context changed; and the layer's own output."""
    layer = pieces.layers[number]
    context, value = layer.attend(hidden)
    if number == len(pieces.layers) - 1:  # of the last layer only [CLS] is read
        context, hidden = context[:, :, :1], hidden[:, :1]
    projected = layer.join(context)
    stack = change(layer, number, context, value, projected)
    variants = torch.stack(
        list(_variants(pieces, layer, stack, hidden, number + 1, tokens_at_once))
    )
    return variants, layer.finish(projected, hidden)


def _variants(
    pieces: Pieces,
    layer: Layer,
    stack: torch.Tensor,
    hidden: torch.Tensor,
    start: int,
    tokens_at_once: int,
) -> Iterator[torch.Tensor]:
    """Outputs (examples, labels) of every variant, from the projected contexts (variants, examples, tokens, hidden)."""
    _, examples, tokens, _ = stack.shape
    for part in stack.split(max(1, tokens_at_once // (examples * tokens))):
        after = layer.finish(part, hidden).flatten(0, 1)  # (variants · examples, tokens, hidden)
        yield from pieces.rest(after, start).unflatten(0, (len(part), examples))


# Inputs of one length side by side, without padding: for the fast way, and for heads that exchange
# their outputs.


def by_length(batches: Sequence[Batch], variants: int, tokens_at_once: int) -> list[Batch]:
    """The examples anew, in groups small enough that all variants of a layer make one stack.

    Args:
        batches: the data.
        variants: of every example in a stack.
        tokens_at_once: bound on variants × examples × length.
    """
    groups = []
    for length, examples in _of_lengths(batches).items():
        room = max(1, tokens_at_once // (length * variants))
        groups += [
            _joined(examples[start : start + room]) for start in range(0, len(examples), room)
        ]
    return groups


def partners(batches: Sequence[Batch]) -> list[Batch]:
    """The examples anew: in a group each one's partner is the next, and the last one's the first.

    Groups have 2 to 15 examples, whatever the batches were; one whose length no other has is alone.

    Args:
        batches: the data, with labels or without.
    """
    groups = []
    for examples in _of_lengths(batches).values():
        parts = np.array_split(np.arange(len(examples)), max(1, len(examples) // PARTNERS))
        groups += [_joined([examples[at] for at in places]) for places in parts]
    return groups


def without_partner(batches: Sequence[Batch]) -> int:
    """Number of inputs whose length no other has."""
    return sum(len(examples) == 1 for examples in _of_lengths(batches).values())


def _of_lengths(batches: Sequence[Batch]) -> dict[int, list[Batch]]:
    """By length, the shortest first: each example as a batch of its own, without padding, in the order of the data."""
    found: dict[int, list[Batch]] = {}
    places = {index: (batch, row) for batch in batches for row, index in enumerate(batch.index)}
    for _, (batch, row) in sorted(places.items()):
        found.setdefault(int(batch.lengths[row]), []).append(batch.example(row))
    return dict(sorted(found.items()))


def _joined(examples: Sequence[Batch]) -> Batch:
    inputs = {
        name: torch.cat([one.inputs[name] for one in examples]) for name in examples[0].inputs
    }
    labels = [one.labels for one in examples if one.labels is not None]
    return Batch(
        inputs,
        [index for one in examples for index in one.index],
        torch.cat(labels) if labels else None,
    )
