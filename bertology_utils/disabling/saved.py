"""Sweeps kept in the cache, layer by layer while they run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from safetensors.numpy import load_file, save

from ..common import cache
from .ablations import replacement
from .groups import Group
from .pieces import Pieces
from .reference import Sweep
from .sweep import sweep

KIND = "sweeps"  # of entries in the cache
_FILE = "outputs.safetensors"


def sweep_key(of_model: dict, rows: str, max_length: int, ablation: str) -> dict:
    """All that a sweep depends on, its code included; JSON values only.

    Args:
        of_model: what the classifier depends on.
        rows: digest of the dev rows.
        max_length: wordpieces at which their inputs are cut.
        ablation: see :func:`bertology_utils.disabling.sweep.sweep`.
    """
    code = cache.code_digest(
        *map(sys.modules.get, (sweep.__module__, Pieces.__module__, replacement.__module__, Group.__module__))
    )
    return {"code": code, "ablation": ablation, "training": of_model, "rows": rows, "max_length": max_length}


def saved_sweep(key: dict, ablation: str, load: Callable) -> Sweep:
    """A sweep from the cache, made if it is not there; a killed one goes on from its last finished layer.

    Args:
        key: from :func:`sweep_key`.
        ablation: see :func:`bertology_utils.disabling.sweep.sweep`.
        load: gives (model, batches); called only if the sweep has to be made.
    """

    def fill(target: Path, scratch: Path) -> None:
        model, batches = load()
        found = sweep(model, batches, ablation=ablation, scratch=scratch)
        content = save({"baseline": found.baseline, "heads": found.heads.copy(), "layers": found.layers.copy()})
        (target / _FILE).write_bytes(content)

    return Sweep(**load_file(cache.entry(KIND, key, fill) / _FILE))
