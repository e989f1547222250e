"""How far fine-tuning moves each head's attention maps, and whether another training moves them alike (§4.3, Figure 5)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..attention import Batch, attention_maps, make_batches
from ..attention.hooks import shape_of
from ..cache import cached
from ..common import ATTENTIONS, PROTOCOLS, Head, one_based, one_of, track
from ..glue import Task
from ..statistics import (
    RESAMPLES,
    Bootstrap,
    Estimate,
    Seed,
    bootstrap_mean,
    mean_over_seeds,
    resampled_means,
)
from ..statistics.permutation import MARGIN, by_size, largest
from ..verdicts import WEIGHT, learned

if TYPE_CHECKING:
    from ..lab import Lab

MOVEMENTS = (
    "same way",
    "other task",
)  # comparisons of changes, whose direction hangs on rounding where a map hardly moves
OFFICIAL_LENGTH = 200  # the published code pads every input to this many tokens


def map_cosine(
    maps: torch.Tensor, others: torch.Tensor, mask: torch.Tensor, protocol: str = "paper"
) -> torch.Tensor:
    """Cosine similarity of flattened attention maps, per example and head (§4.3).

    Args:
        maps, others: shape (examples, heads, tokens, tokens).
        mask: True at real tokens, shape (examples, tokens).
        protocol: "paper" compares the L × L maps of the real tokens. "official"
            flattens all that is there, as the published code did: rows of
            padded queries are compared, too.

    Returns:
        float64 tensor of shape (examples, heads), from 0 to 1.
    """
    one_of("protocol", protocol, PROTOCOLS)
    if protocol == "paper":
        # Padded keys are 0 already; only padded queries have to go.
        real = mask[:, None, :, None]  # (examples, 1, queries, 1)
        maps, others = maps * real, others * real
    maps, others = (
        maps.double().flatten(2),
        others.double().flatten(2),
    )  # (examples, heads, queries · keys)
    return torch.nn.functional.cosine_similarity(maps, others, dim=2)


class Drift:
    """Measurement: similarity between the observed model's maps and a reference model's.

    Args:
        reference: a model with as many layers and heads, in evaluation mode.
            Edits of the observed model, such as disabled heads, do not reach it.
        protocol: see :func:`map_cosine`.
        attention: "weight", or "norm": the maps of both models are of what the weights carry.

    Raises:
        ValueError: another protocol or attention.
    """

    def __init__(self, reference, protocol: str = "paper", attention: str = "weight"):
        self.reference = reference
        self.protocol = one_of("protocol", protocol, PROTOCOLS)
        self.attention = one_of("attention", attention, ATTENTIONS)  # ``observe`` looks at it, too
        self._reference_maps: dict[
            int, torch.Tensor
        ] = {}  # by layer, of the current batch, until they are compared
        self._layers = 0  # of the reference
        self._rows: dict[int, np.ndarray] = {}

    def start(self, batch: Batch) -> None:
        """Run the reference model on the batch; its maps are held for this batch only."""
        self._check_all_compared()
        reference_maps = attention_maps(self.reference, batch, self.attention)
        self._reference_maps, self._layers = dict(enumerate(reference_maps)), len(reference_maps)
        shape = (self._layers, reference_maps[0].shape[1])  # (layers, heads)
        self._rows |= {index: np.full(shape, np.nan) for index in batch.index}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Compare one layer; see :class:`bertology_utils.attention.Measurement`.

        Raises:
            ValueError: the reference has fewer layers, or another number of heads.
        """
        if layer >= self._layers:
            raise ValueError(
                f"the reference has {self._layers} layers and the observed model has more;"
                " drift compares layer by layer, so give a reference of the same shape"
            )
        others = self._reference_maps[layer]
        if maps.shape != others.shape:
            raise ValueError(
                f"the reference has {others.shape[1]} heads per layer and the observed model"
                f" {maps.shape[1]}; drift compares head by head, so give a reference of the same shape"
            )
        del self._reference_maps[layer]  # compared once, then dropped
        similarity = map_cosine(maps, others, batch.mask, self.protocol).cpu().numpy()
        for row, index in enumerate(batch.index):
            self._rows[index][layer] = similarity[row]

    def compute(self) -> np.ndarray:
        """Similarities, shape (examples, layers, heads), examples in the order of the data.

        Raises:
            ValueError: no example was observed, or the reference has more layers.
        """
        self._check_all_compared()
        if not self._rows:
            raise ValueError(
                "no example was observed, so there is nothing to compare; give at least one batch"
            )
        return np.stack([self._rows[index] for index in sorted(self._rows)])

    def _check_all_compared(self) -> None:
        left = len(self._reference_maps)
        if left:
            raise ValueError(
                f"the reference has {self._layers} layers and the observed model {self._layers - left};"
                " drift compares layer by layer, so give a reference of the same shape"
            )


def last_layers_lead(similarity: np.ndarray, seed: Seed, count: int = 2) -> dict[str, Bootstrap]:
    """By how much each of the last layers changes more than each other layer (§4.3).

    The similarity of another layer minus that of one of the last ``count``, by both ("layer 6 above
    2"): all are above 0 if these are the ones that change most. Compared pair by pair, since the
    least of several leads is biased towards failing. NaN for a model with no other layers.

    Args:
        similarity: shape (examples, layers, heads).
        seed: of the resampling of examples.
        count: how many layers; the paper says two.
    """
    by_layer = similarity.mean(axis=2)  # (examples, layers)
    first, layers = similarity.shape[1] - count, similarity.shape[1]
    if first < 1:
        return {"last layers": Bootstrap(np.nan, np.full(RESAMPLES, np.nan), len(similarity), seed)}
    means = np.vstack(
        [by_layer.mean(axis=0), resampled_means(by_layer, seed)]
    )  # (1 + resamples, layers)
    return {
        f"layer {one_based(last)} above {one_based(other)}": Bootstrap.of(
            means[:, other] - means[:, last], len(similarity), seed
        )
        for last in range(first, layers)
        for other in range(first)
    }


def over_trainings(leads: Sequence[Mapping[str, Bootstrap]]) -> dict[str, Estimate]:
    """Means over trainings of what :func:`last_layers_lead` gives of each, by pair of layers."""
    return {pair: mean_over_seeds([of_one[pair] for of_one in leads]) for pair in leads[0]}


def drifts(
    pairs: Mapping[str, tuple[torch.nn.Module, torch.nn.Module]],
    batches: Iterable[Batch],
    protocol: str = "paper",
    displacements: Mapping[str, tuple[torch.nn.Module, torch.nn.Module, torch.nn.Module]]
    | None = None,
    attention: str = "weight",
) -> dict[str, np.ndarray]:
    """Similarities within several pairs of models, from one pass of each model, however many pairs it is in.

    The maps of all models are held for one batch.

    Args:
        pairs: (model, other model) by name, all with as many layers and heads.
        batches: inputs.
        protocol: see :func:`map_cosine`.
        displacements: (start, one end, another end) by name: do both ends lie in the same
            direction? The cosine between the changes of the maps, from −1 to 1; 0 if two trainings
            moved them independently. NaN where a map stayed.
        attention: see :class:`Drift`.

    Returns:
        As :class:`Drift` gives them, by name: shape (examples, layers, heads).

    Raises:
        ValueError: models of different shapes.
    """
    triples = displacements or {}
    models = list(
        {
            id(model): model
            for several in (*pairs.values(), *triples.values())
            for model in several
        }.values()
    )
    shapes = {shape_of(model) for model in models}
    if len(shapes) > 1:
        raise ValueError(
            f"drift compares head by head; these models have (layers, heads) of {sorted(shapes)}"
        )
    place = {id(model): at for at, model in enumerate(models)}
    found: dict[str, list[np.ndarray]] = {name: [] for name in (*pairs, *triples)}
    order: list[int] = []
    for batch in batches:
        batch = batch.to(next(models[0].parameters()).device)
        of_models = [attention_maps(model, batch, attention) for model in models]
        of_layers = [
            dot_products(maps, batch.mask, protocol) for maps in zip(*of_models, strict=True)
        ]
        order += batch.index
        for name, several in (*pairs.items(), *triples.items()):
            at = [place[id(model)] for model in several]
            compare = cosine if len(at) == 2 else displacement_cosine
            found[name].append(
                torch.stack([compare(products, *at) for products in of_layers], dim=1).cpu().numpy()
            )
    return {name: np.concatenate(parts)[np.argsort(order)] for name, parts in found.items()}


def dot_products(
    maps: Sequence[torch.Tensor], mask: torch.Tensor, protocol: str = "paper"
) -> torch.Tensor:
    """Dot products of the flattened maps of every two models, which every cosine between them comes from.

    Args:
        maps: of each model, shape (examples, heads, tokens, tokens).
        mask, protocol: see :func:`map_cosine`.

    Returns:
        float64, shape (examples, heads, models, models).
    """
    real = (
        mask[:, None, :, None] if protocol == "paper" else torch.ones_like(mask)[:, None, :, None]
    )
    flat = torch.stack(
        [(of_one * real).double().flatten(2) for of_one in maps], dim=2
    )  # (examples, heads, models, cells)
    return flat @ flat.transpose(2, 3)


def cosine(products: torch.Tensor, one: int, other: int) -> torch.Tensor:
    """Cosine between two models' maps, shape (examples, heads), from :func:`dot_products`; as :func:`map_cosine`."""
    lengths = products[..., one, one] * products[..., other, other]
    return products[..., one, other] / lengths.clamp(min=1e-16).sqrt()


def displacement_cosine(products: torch.Tensor, start: int, end: int, other: int) -> torch.Tensor:
    """Cosine between two changes of the same maps, end − start and other − start.

    Args:
        products: from :func:`dot_products`.
        start, end, other: places of the three models.

    Returns:
        Shape (examples, heads), NaN where a map did not change.
    """

    def moved(a: int, b: int) -> torch.Tensor:
        """The dot product of two changes."""
        return (
            products[..., a, b]
            - products[..., a, start]
            - products[..., start, b]
            + products[..., start, start]
        )

    ends = moved(end, end), moved(other, other)
    # A change below one part in a million is the rounding of single precision.
    still = [of_one <= 1e-12 * products[..., start, start] for of_one in ends]
    found = moved(end, other) / (ends[0] * ends[1]).clamp(min=1e-300).sqrt()
    return found.masked_fill(still[0] | still[1], torch.nan)


def of_lab(lab: Lab) -> dict[Task, dict[str, np.ndarray]]:
    """What :func:`drifts` says of a lab's tasks, from the cache, by task and comparison.

    "fine-tuning" and its like are the pre-trained model against each training, "another seed" two
    trainings, "random start" random weights against what training made of them; "same way" and
    "other task" compare the changes of two trainings, the latter where there are two tasks.
    """
    found = {}
    for task in track(lab.tasks, "comparing maps"):
        start, (tuned, again, *more) = lab.untrained(task), lab.finetunings(task)
        names = names_of_trainings(len(more) + 2)
        pairs = {name: (start, one) for name, one in zip(names, (tuned, again, *more), strict=True)}
        pairs["another seed"] = tuned, again
        if task in lab.random_tasks:
            pairs["random start"] = lab.untrained(task, "normal"), lab.finetuned(task, "normal")
        movements = {"same way": (start, tuned, again)}
        next_task = lab.tasks[(lab.tasks.index(task) + 1) % len(lab.tasks)]
        if next_task != task:
            movements["other task"] = start, tuned, lab.finetuned(next_task)
        protocol, attention = lab.settings.protocol, lab.settings.attention
        inputs = lab.batches(task, pad_to=OFFICIAL_LENGTH if protocol == "official" else None)
        found[task] = cached(drifts, pairs, inputs, protocol, movements, attention)
    return found


def leads_of(
    similarity: Mapping[Task, Mapping[str, np.ndarray]], lab: Lab
) -> dict[Task, dict[str, Estimate]]:
    """By task, what :func:`last_layers_lead` gives over all trainings."""
    return {
        task: over_trainings(
            [
                last_layers_lead(found[name], lab.resampling_seed(task))
                for name in trainings_in(found)
            ]
        )
        for task, found in similarity.items()
    }


def leads_at_random(
    similarity: Mapping[Task, Mapping[str, np.ndarray]], lab: Lab
) -> dict[Task, dict[str, Estimate]]:
    """As :func:`leads_of`, of the random starts that learned their task and changed the maps of some layer by an effect.

    Where no layer changed, none changed most: random weights attend almost evenly, and may go on
        doing so.
    """
    found = {}
    for task in lab.random_tasks:
        of_task, seed = similarity[task]["random start"], lab.resampling_seed(task)
        moved = of_task.mean(axis=(0, 2)).min() <= 1 - WEIGHT
        if moved and learned(task, lab.random_starts(task), lab.labels(task), seed):
            found[task] = over_trainings([last_layers_lead(of_task, seed)])
    return found


def mean_by_head(similarity: np.ndarray) -> np.ndarray:
    """Mean over examples, shape (layers, heads); NaN for a head whose map stayed in every example.

    Args:
        similarity: shape (examples, layers, heads), with NaN where a map stayed.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        return np.nanmean(similarity, axis=0)


def mean_over_heads(cosines: np.ndarray, seed: Seed) -> Bootstrap:
    """Mean over layers and heads, examples resampled; what did not move does not count.

    Args:
        cosines: shape (examples, layers, heads), from :func:`drifts`.
        seed: of the resampling.
    """
    by_example = np.nanmean(cosines.reshape(len(cosines), -1), axis=1)
    return bootstrap_mean(by_example[np.isfinite(by_example)], seed)


def trainings_in(comparisons: Iterable[str]) -> list[str]:
    """Of the names of comparisons, those of a training with the pre-trained model; see :func:`names_of_trainings`."""
    return [name for name in comparisons if name.startswith("fine-tuning")]


def names_of_trainings(count: int) -> list[str]:
    """Names of that many comparisons of a training with the pre-trained model."""
    return [
        "fine-tuning",
        "fine-tuning again",
        *(f"fine-tuning {number}" for number in range(3, count + 1)),
    ][:count]


def changed_most(by_layer: np.ndarray, count: int = 2) -> str:
    """The layers of the lowest similarity, from 1: "5, 6"; "all alike" where no layer changed more than another.

    Args:
        by_layer: similarity, shape (layers,).
        count: how many.
    """
    if np.ptp(by_layer) <= MARGIN:
        return "all alike"
    return ", ".join(str(one_based(int(layer))) for layer in sorted(by_size(-by_layer)[:count]))


def short_example(lab: Lab, task: Task, wordpieces: int = 12) -> Batch:
    """The first dev input whose length is nearest to so many wordpieces, alone: long enough to see, short enough to read."""
    inputs = lab.tokenize(task, lab.rows(task, "dev"))
    row = min(range(len(inputs)), key=lambda row: abs(len(inputs[row]["input_ids"]) - wordpieces))
    return make_batches(inputs.select([row]), lab.tokenizer)[0].to(lab.device)


def middle_head(similarity: np.ndarray) -> Head:
    """In the layer that changed most, the head in the middle of the order by change: neither the best case nor the worst.

    Args:
        similarity: shape (layers, heads).
    """
    (layer,) = largest(-similarity.mean(axis=1))
    order = by_size(-similarity[layer])  # the most changed first
    return layer, int(order[len(order) // 2])
