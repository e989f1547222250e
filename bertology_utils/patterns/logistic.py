"""The baseline at work: logistic regression that names the pattern of many maps at once."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from sklearn.pipeline import Pipeline

from . import labelled_maps, validation
from .augment import picture
from .evidence import load_rounds
from .images import check_maps


class Logistic:
    """A fitted logistic regression, in the place of the network.

    Args:
        model: from :func:`bertology_utils.patterns.validation.fitted_baseline`.
    """

    def __init__(self, model: Pipeline):
        self.model = model

    def to(self, device: torch.device) -> Logistic:
        """Itself: the statistics are computed where the maps are, the rest on the CPU."""
        return self

    def predict(self, maps: torch.Tensor, separators: torch.Tensor) -> np.ndarray:
        """The pattern of each map; as :meth:`bertology_utils.patterns.cnn.PatternCNN.predict`."""
        check_maps(maps)
        return self.model.predict(statistics_of(maps, separators).cpu().numpy())


@lru_cache(maxsize=1)
def load_logistic() -> Logistic:
    """Fitted to all labelled maps, with the penalty that the cross-validation prefers; it is fast enough not to be kept."""
    labelled = labelled_maps.load_maps()
    strength = validation.best_candidate(load_rounds("baseline"), validation.BASELINE_CANDIDATES)
    return Logistic(validation.fitted_baseline([picture(one) for one in labelled], validation.targets(labelled), strength))


def statistics_of(maps: torch.Tensor, separators: torch.Tensor) -> torch.Tensor:
    """:func:`bertology_utils.patterns.baseline.map_statistics` of many maps of one length.

    Args:
        maps: shape (maps, tokens, tokens), rows sum to 1, padding cut off.
        separators: True at [SEP], shape (maps, tokens).

    Returns:
        Shape (maps, statistics), in the order of ``baseline.STATISTICS``.
    """
    maps = maps.float()
    length = maps.shape[-1]
    parallels = _parallels(maps)
    middle = length - 1
    near = parallels[:, middle - length // 2 : middle + length // 2 + 1]  # the others are too short to tell
    counts = length - abs(torch.arange(-middle, length, device=maps.device))
    band = (parallels * counts)[:, max(middle - 2, 0) : middle + 3].sum(dim=1) / length
    columns = maps.mean(dim=1).sort(dim=1, descending=True).values
    entropy = torch.special.entr(maps.clamp_min(1e-12)).sum(dim=2).mean(dim=1) / np.log(length)
    two = (separators.sum(dim=1) > 1).float()
    found = [
        columns[:, 0],
        columns[:, :3].sum(dim=1),
        parallels[:, middle],
        parallels[:, middle + 1],
        parallels[:, middle - 1],
    ]
    found += [near.amax(dim=1), band, *(two * above for above in _within_sentences(maps, separators)), two, entropy]
    return torch.stack(found, dim=1)


def _parallels(maps: torch.Tensor) -> torch.Tensor:
    """Mean weight on every parallel to the diagonal, by row minus column from −(L−1): shape (maps, 2L − 1)."""
    length = maps.shape[-1]
    place = torch.arange(length, device=maps.device)
    offset = (place[:, None] - place + length - 1).flatten()
    sums = maps.new_zeros(len(maps), 2 * length - 1).index_add_(1, offset, maps.flatten(1))
    return sums / torch.bincount(offset)


def _within_sentences(maps: torch.Tensor, separators: torch.Tensor) -> list[torch.Tensor]:
    """Attention to words of the own and of the other sentence, minus what even attention gives them; (maps,) each."""
    sentence = separators.cumsum(dim=1) - separators.long()  # as augment.sentence_numbers
    words = ~separators
    words[:, 0] = False
    same = sentence[:, :, None] == sentence[:, None, :]
    return [
        torch.where(cells, maps - 1 / maps.shape[-1], 0).sum(dim=2).mean(dim=1)
        for cells in (same & words[:, None, :], ~same & words[:, None, :])
    ]
