"""Sweeps kept in the cache, layer by layer while they run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from safetensors.numpy import load_file, save

from ..common import cache
from .reference import Sweep
from .sweep import sweep

SWEEP_VERSION = 1  # to be raised when the sweep gives other outputs than before
_FILE = "outputs.safetensors"


def saved_sweep(key: dict, ablation: str, load: Callable) -> Sweep:
    """A sweep from the cache, made if it is not there; a killed one goes on from its last finished layer.

    Args:
        key: what model and dev set depend on, JSON values only.
        ablation: see :func:`bertology_utils.disabling.sweep.sweep`.
        load: gives (model, batches); called only if the sweep has to be made.
    """

    def fill(target: Path, scratch: Path) -> None:
        model, batches = load()
        found = sweep(model, batches, ablation=ablation, scratch=scratch)
        content = save({"baseline": found.baseline, "heads": found.heads.copy(), "layers": found.layers.copy()})
        (target / _FILE).write_bytes(content)

    folder = cache.entry("sweeps", {"sweep_version": SWEEP_VERSION, "ablation": ablation, **key}, fill)
    return Sweep(**load_file(folder / _FILE))
