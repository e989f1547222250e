"""Measured values as one SafeTensors file, without pickle: arrays, and as one of them the text of how they hang together."""

from __future__ import annotations

import dataclasses
import importlib
import json
from typing import Any

import numpy as np

KIND = "measured"  # of entries in the cache that hold such a file
_DESCRIBED = "described"  # the others are numbered
_ROOT = __package__.split(".")[0]
_PLAIN = (bool, int, float, str, type(None))


def pack(value: object) -> bytes:
    """The content of a file that holds arrays, numbers and texts, in lists, tuples, dicts and this package's dataclasses.

    Raises:
        TypeError: something else is in it.
    """
    from safetensors.numpy import save

    arrays: dict[str, np.ndarray] = {}
    described = json.dumps(_describe(value, arrays))
    return save(arrays | {_DESCRIBED: np.frombuffer(described.encode(), dtype=np.uint8)})


def unpack(content: bytes) -> Any:
    """What :func:`pack` packed.

    Raises:
        ValueError: it names a class that is no dataclass of this package.
    """
    from safetensors.numpy import load

    arrays = load(content)
    return _restore(json.loads(arrays.pop(_DESCRIBED).tobytes()), arrays)


def _describe(value: Any, arrays: dict[str, np.ndarray]) -> list[Any]:
    """[kind, parts]; what is an array goes into ``arrays``."""
    if isinstance(value, (np.ndarray, np.generic)):  # first, as np.float64 is a float, too
        name = str(len(arrays))
        arrays[name] = np.ascontiguousarray(value).reshape(np.shape(value))  # which makes an array of a scalar, and back
        return ["scalar" if isinstance(value, np.generic) else "array", name]
    if isinstance(value, _PLAIN):
        return ["plain", value]
    if type(value) in (list, tuple):
        return [type(value).__name__, [_describe(part, arrays) for part in value]]
    if isinstance(value, dict):
        return ["dict", [[_describe(part, arrays) for part in pair] for pair in value.items()]]
    if dataclasses.is_dataclass(value) and type(value).__module__.startswith(f"{_ROOT}."):
        fields = {field.name: _describe(getattr(value, field.name), arrays) for field in dataclasses.fields(value)}
        return [f"{type(value).__module__}:{type(value).__qualname__}", fields]
    raise TypeError(f"{type(value).__name__} cannot be kept; arrays, numbers and texts can, and what holds them")


def _restore(described: list[Any], arrays: dict[str, np.ndarray]) -> Any:
    kind, parts = described
    if kind == "plain":
        return parts
    if kind == "array":
        return arrays[parts]
    if kind == "scalar":
        return arrays[parts][()]
    if kind in ("list", "tuple"):
        restored = [_restore(part, arrays) for part in parts]
        return restored if kind == "list" else tuple(restored)
    if kind == "dict":
        return {_restore(key, arrays): _restore(value, arrays) for key, value in parts}
    return _record(kind)(**{name: _restore(part, arrays) for name, part in parts.items()})


def _record(name: str) -> Any:
    """A dataclass of this package, by its name "module:class"."""
    module, _, of_class = name.partition(":")
    found = getattr(importlib.import_module(module), of_class, None) if module.startswith(f"{_ROOT}.") else None
    if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
        raise ValueError(f"{name} is no dataclass of {_ROOT}; the file was not written by this version")
    return found
