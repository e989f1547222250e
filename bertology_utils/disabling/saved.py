"""Sweeps kept in the cache, layer by layer while they run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from safetensors.numpy import load_file, save

from ..common import cache
from .ablations import replacement
from .pieces import Pieces
from .reference import Sweep
from .sweep import sweep

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

    code = cache.code_digest(*map(sys.modules.get, (sweep.__module__, Pieces.__module__, replacement.__module__)))
    folder = cache.entry("sweeps", {"code": code, "ablation": ablation, **key}, fill)
    return Sweep(**load_file(folder / _FILE))
