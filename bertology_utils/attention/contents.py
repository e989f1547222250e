"""A fingerprint of whatever a measurement depends on: models, inputs, arrays and the objects that hold them."""

from __future__ import annotations

import functools
import hashlib
import json
import weakref
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import numpy as np
import torch
import xxhash
from torch import nn

from .interface import is_edited

_PACKAGE = __package__.split(".")[0]
_records: dict[int, tuple[weakref.ref[Any], str]] = {}  # by identity, as long as they live
_PLAIN = {type(None), bool, int, float, complex, str, bytes}
_KNOWN = {_PACKAGE, "torch", "transformers", "sklearn"}  # whose code is told by their versions


class UnnamedError(TypeError):
    """There is no telling whether two such values are the same."""


def fingerprint(value: object) -> str:
    """A hash of a value's content, 64 hexadecimal digits: the same for equal content, in every process.

    Of a model count its weights, its configuration and whether it trains, not where they were read from; of an object its
    class and its attributes, or what its method ``depends_on()`` gives.

    Raises:
        UnnamedError: a value, or a part of it, of which nothing is known that would tell it from another: an open file, a
            function of one's own, a model whose heads are disabled at the moment or that has hooks of one's own.
    """
    walk = _Walk()
    walk.add(value)
    return walk.hash.hexdigest()


class _Walk:
    """Goes through a value, part by part, and feeds a hash."""

    def __init__(self, within_record: bool = False) -> None:
        self.hash = hashlib.sha256()
        self._within_record = within_record
        self._seen: dict[int, tuple[int, object]] = {}  # identity → number, and the part itself, so that it stays alive

    def _say(self, *words: object) -> None:
        self.hash.update(repr(words).encode())

    def add(self, value: object) -> None:
        """One part and all that is in it."""
        if type(value) in _PLAIN or isinstance(value, (np.generic, torch.dtype, torch.device)):
            self._say(type(value).__name__, value)
        elif isinstance(value, type):
            self._say("class", _name(value))
        elif isinstance(value, FunctionType):
            self._say("function", own_name(value))
        elif id(value) in self._seen:
            self._say("again", self._seen[id(value)][0])
        else:
            self._seen[id(value)] = len(self._seen), value
            self._add_parts(value)

    def _add_parts(self, value: Any) -> None:
        self._say(_name(type(value)))
        if isinstance(value, (list, tuple)):
            self._all(value)
        elif isinstance(value, dict):
            self._all([*value.keys(), *value.values()])
        elif isinstance(value, np.ndarray) and value.dtype != object:
            self._array(value)
        elif isinstance(value, torch.Tensor):
            self._say(str(value.dtype))
            self._array(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy(), value.shape)
        elif isinstance(value, torch.Generator):
            self.add(value.get_state())
        elif isinstance(value, nn.Module):
            self._model(value)
        elif isinstance(value, np.ndarray):
            self._all(value.tolist())
        elif isinstance(value, (set, frozenset)):
            self._say(sorted(map(fingerprint, value)))
        elif isinstance(value, functools.partial):
            self._all([value.func, value.args, value.keywords])
        elif _is_record(value) and not self._within_record:
            self._say(_of_record(value))
        elif hasattr(value, "__dict__") and _root(type(value)) in _KNOWN:
            self.add(value.depends_on() if hasattr(value, "depends_on") else vars(value))
        else:
            raise UnnamedError(f"nothing tells one {_name(type(value))} from another")

    def _all(self, parts: Sequence[object]) -> None:
        self._say(len(parts))
        if all(type(part) in _PLAIN for part in parts):  # positions and words, by the thousand
            self._say("plain", *parts)
            return
        for part in parts:
            self.add(part)

    def _array(self, array: np.ndarray, shape: tuple[int, ...] | None = None) -> None:
        self._say(array.dtype.str, tuple(array.shape if shape is None else shape))
        # Models are large and looked at often; SHA-256 would take 18 times as long here.
        self.hash.update(xxhash.xxh3_128_digest(np.ascontiguousarray(array).data))

    def _model(self, model: nn.Module) -> None:
        if is_edited(model):
            raise UnnamedError(f"the heads of this {type(model).__name__} are disabled, or its maps changed, at the moment")
        foreign = {_root(type(part)) for part in model.modules()} - _KNOWN
        if foreign:
            raise UnnamedError(f"the code of {', '.join(sorted(foreign))} may be another the next time")
        hooks = [part._forward_pre_hooks | part._forward_hooks for part in model.modules()]
        self._all([own_name(hook) for of_part in hooks for hook in of_part.values()])
        self._say(repr(model), model.training)
        config = getattr(model, "config", None)
        if config is not None and hasattr(config, "to_dict"):
            said = config.to_dict()
            for name in ("_name_or_path", "transformers_version"):  # where it was read from, and what wrote it
                said.pop(name, None)
            self._say(json.dumps(said, sort_keys=True, default=str))
        else:
            self.add({name: part for name, part in vars(model).items() if not name.startswith("_")})
        self.add(dict(model.state_dict()))


def _is_record(value: object) -> bool:
    """An instance of a frozen dataclass of this package, whose content stays."""
    parameters = getattr(type(value), "__dataclass_params__", None)
    return parameters is not None and parameters.frozen and _root(type(value)) == _PACKAGE


def _of_record(value: object) -> str:
    """Its fingerprint, taken once: an annotated input goes into many measurements."""
    key = id(value)
    found = _records.get(key)
    if found is None or found[0]() is not value:  # else: of one that is gone
        walk = _Walk(within_record=True)
        walk.add(vars(value))
        found = _records[key] = weakref.ref(value, functools.partial(_forget, key)), walk.hash.hexdigest()
    return found[1]


def _forget(key: int, _: object) -> None:
    _records.pop(key, None)


def _root(of_code: Any) -> str:
    """The library that a class or function is of."""
    return (getattr(of_code, "__module__", None) or "").split(".")[0]


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def own_name(function: Any) -> str:
    """The name of a function of this package; raises :class:`UnnamedError` for another, whose code may change."""
    if _root(function) != _PACKAGE:
        raise UnnamedError(f"the code of {function} may be another the next time")
    return f"{function.__module__}.{function.__qualname__}"
