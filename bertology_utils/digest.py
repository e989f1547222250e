"""Stable hashes: of a value's content, and of a function's code with all that it uses of this package.

Code is followed from name to name through the functions, classes and constants of the running
process; its text is what this process imported. Comments, docstrings, annotations, layout and the
texts of errors do not count.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import functools
import hashlib
import importlib
import inspect
import re
import sys
from collections.abc import Collection, Iterable
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np
import torch
import xxhash
from torch import nn

from .attention.hooks import is_edited
from .common import SOURCES

_PACKAGE = __package__
_PLAIN = {type(None), bool, int, float, complex, str, bytes, range}
# Libraries whose versions are part of every key: a name of theirs tells the code.
_KNOWN = {"builtins", "numpy", "scipy", "sklearn", "tokenizers", "torch", "transformers"}
# What cannot change a result: it stores, hashes, reports or asks again; the device is in every key.
_NAMES = "cache digest common.note common.track common.device hub.hub_errors".split()
IGNORED = {f"{_PACKAGE}.{name}" for name in _NAMES}
_hash = xxhash.xxh3_128_hexdigest  # of weights, for which SHA-256 takes 18 times as long


class UnhashableError(TypeError):
    """The value has no stable hash."""


# Content


def fingerprint(value: object, code: set[Any] | None = None) -> str:
    """A hash of a value's content, 64 hexadecimal digits: the same for equal content, in every process.

    A model is identified by its weights, configuration and train/eval mode, not by its path; an
    object by its class's name, and by what its ``depends_on()`` or ``fingerprint`` gives, else by
    its attributes; a function by its text.

    Args:
        value: anything that :func:`bertology_utils.cache.cached` may be called with.
        code: is given the functions and classes of this package that occur in the value.

    Raises:
        UnhashableError: the value, or a part of it, is of another kind: an open file, a function of
            another package or with values of its own, a model whose attention is edited at the
            moment or that has hooks.
    """
    content = _content(value, set() if code is None else code)
    return hashlib.sha256(repr(content).encode()).hexdigest()


def _content(value: Any, code: set[Any]) -> object:
    """The value in plain lists and tuples, in which all but plain values begin with their kind."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, (FunctionType, type)):
        return _name(value, code)
    if isinstance(value, (list, tuple)):
        return kind.__name__, _items(value, code)
    if isinstance(value, dict):
        return "dict", _items([*value], code), _items([*value.values()], code)
    if isinstance(value, (set, frozenset)):
        return "set", sorted(repr(_content(part, code)) for part in value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return "array", value.dtype.str, value.shape, _hash(np.ascontiguousarray(value).data)
    if isinstance(value, torch.Tensor):
        flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        return "tensor", str(value.dtype), tuple(value.shape), _hash(flat.numpy().data)
    if isinstance(value, (np.generic, torch.dtype, torch.device)):
        return kind.__name__, repr(value)
    if isinstance(value, re.Pattern):
        return "pattern", value.pattern, value.flags
    if isinstance(value, nn.Module):
        return _model(value, code)
    if _root(kind) == "datasets":
        return "rows", _content(value.to_dict(), code)
    if hasattr(value, "__dict__"):
        return _name(kind, code), _content(_state(value), code)
    raise UnhashableError(f"a {kind.__module__}.{kind.__qualname__} has no stable hash")


def _items(parts: Collection[Any], code: set[Any]) -> object:
    if all(type(part) in _PLAIN for part in parts):  # positions and words, by the thousand
        return list(parts)
    if all(type(part) is np.ndarray and part.dtype != object for part in parts):
        whole = b"".join(part.tobytes() for part in parts)  # one array for each example
        return "arrays", [(part.dtype.str, part.shape) for part in parts], _hash(whole)
    return [_content(part, code) for part in parts]


def _name(thing: Any, code: set[Any]) -> object:
    """What tells a class or function: its name; of a function of this package its text, too."""
    thing = inspect.unwrap(thing)
    if _root(thing) in _KNOWN:
        return thing.__module__, thing.__qualname__
    nodes, _ = _nodes(thing)
    code.add(thing)
    text = map(ast.unparse, nodes if isinstance(thing, FunctionType) else ())
    return thing.__qualname__, *text


def _state(value: Any) -> object:
    """What an object says of itself, else its fields or attributes."""
    if hasattr(value, "depends_on"):
        return value.depends_on()
    if hasattr(value, "fingerprint") or not dataclasses.is_dataclass(value):
        return getattr(value, "fingerprint", vars(value))
    return [getattr(value, field.name) for field in dataclasses.fields(value)]


def _model(model: nn.Module, code: set[Any]) -> object:
    if is_edited(model):
        raise UnhashableError(f"attention of this {type(model).__name__} is edited, or disabled")
    modules, config = list(model.modules()), cast(Any, getattr(model, "config", None))
    kinds = sorted({repr(_name(type(part), code)) for part in modules})
    hooks = [
        one
        for part in modules
        for one in (*part._forward_pre_hooks.values(), *part._forward_hooks.values())
    ]
    # Those that transformers leaves where hidden states were read do nothing by themselves.
    if any(_root(hook) != "transformers" for hook in hooks):
        raise UnhashableError("the code of the model's hooks may be another the next time")
    if hasattr(config, "to_dict"):  # without where it was read from, and what wrote it
        about = config.to_dict() | {"_name_or_path": "", "transformers_version": ""}
    else:
        about = {name: part for name, part in vars(model).items() if not name.startswith("_")}
    state = dict(sorted(about.items())), dict(model.state_dict())
    return kinds, repr(model), [part.training for part in modules], _content(state, code)


def _root(thing: Any) -> str:
    """The library that a class, function or module belongs to."""
    name = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", "")
    return (name or "").split(".")[0]


# Code


@functools.cache
def code_digest(function: Any, others: frozenset[Any] = frozenset()) -> str:
    """SHA-256 of the code of a function of this package, with all that it uses of this package.

    Of a dataclass count its fields, its special methods, and those members whose names occur in the
    code that counts; of any other class all. Constants count by content.

    Args:
        function: whose.
        others: functions and classes that its arguments bring.

    Raises:
        UnhashableError: a function that is not of this package, or was made at run time.
    """
    texts, names, seen = set[str](), set[str](), set[Any]()
    new, todo, waiting = {inspect.unwrap(function), *others}, list[Any](), list[Any]()
    while new or todo:
        for thing in new:
            nodes, members = _nodes(thing)
            todo += [(thing.__module__, node) for node in nodes]
            waiting += [(thing.__module__, node) for node in members]
        seen |= new
        text, used, reached = _read(*todo.pop())
        texts.add(text)
        names |= used
        new = reached - seen
        todo += [member for member in waiting if member[1].name in names]
        waiting = [member for member in waiting if member[1].name not in names]
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()


@functools.cache
def _nodes(thing: Any) -> tuple[list[Any], list[Any]]:
    """Syntax trees of a function or class, and those of a dataclass's members, which count where they are used."""
    there = _index(thing.__module__ if _root(thing) == _PACKAGE else "")
    if isinstance(thing, FunctionType):
        line, name = thing.__code__.co_firstlineno, thing.__code__.co_name
        nodes = [node for node in there.get(line, []) if getattr(node, "name", "<lambda>") == name]
    else:
        nodes = there.get(thing.__qualname__, [])[:1]
    if not nodes or getattr(thing, "__closure__", None):
        raise UnhashableError(f"the code of {thing} may be another the next time")
    if not dataclasses.is_dataclass(thing):
        return nodes, []
    head = copy.copy(nodes[0])
    methods = [node for node in head.body if isinstance(node, ast.FunctionDef)]
    members = [node for node in methods if not node.name.startswith("__")]
    head.body = [node for node in head.body if node not in members]
    return [head], members


@functools.cache
def _index(module: str) -> dict[int | str, list[Any]]:
    """A module's functions by their first line, and its classes by name, without what decides nothing."""
    index: dict[int | str, list[Any]] = {}
    text = SOURCES.get(module, SOURCES.get(f"{module}.__init__", ""))
    nodes: Iterable[Any] = ast.walk(ast.parse(text))
    for node in nodes:
        if isinstance(getattr(node, "body", None), list):
            node.body = [one for one in node.body if not _is_constant(one)] or [ast.Pass()]
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc = node.exc.func
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(...)
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.ClassDef):
            index.setdefault(node.name, []).append(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            vars(node).pop("returns", None)
            first = [node, *getattr(node, "decorator_list", [])]
            index.setdefault(min(one.lineno for one in first), []).append(node)
    return index


def _is_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@functools.cache
def _read(module: str, node: ast.AST) -> tuple[str, set[str], set[Any]]:
    """A part's text with the constants that it names; all names in it; the code of this package among them."""
    text, inner = ast.unparse(node), list(ast.walk(node))
    names = _names(compile(text, module, "exec"))
    space, constants, code = dict(vars(sys.modules[module])), set[str](), set[Any]()
    for one in inner:
        if isinstance(one, ast.ImportFrom) and one.level:
            name = "." * one.level + (one.module or "")
            there = importlib.import_module(name, space["__package__"])
            space |= {alias.asname or alias.name: _member(there, alias.name) for alias in one.names}

    def meant(one: Any) -> Any:
        if isinstance(one, ast.Name) and one.id in names:
            return space.get(one.id)
        of: Any = meant(one.value) if isinstance(one, ast.Attribute) else None
        ours = isinstance(of, ModuleType) and _root(of) == _PACKAGE
        return _member(of, one.attr) if ours else None

    for one in inner:
        if not isinstance(getattr(one, "ctx", None), ast.Load) or (value := meant(one)) is None:
            continue
        value = inspect.unwrap(value)
        if isinstance(value, (FunctionType, type)):
            if _root(value) in (_PACKAGE, "__main__"):  # of which _nodes refuses the second
                code.add(value)
        elif not isinstance(value, ModuleType):
            with contextlib.suppress(UnhashableError):  # such as a path, which decides nothing
                constants.add(f"{ast.unparse(one)} = {_content(value, code)}")
    ignored = {
        one for one in code if IGNORED & {one.__module__, f"{one.__module__}.{one.__name__}"}
    }
    strings = {str(one.value) for one in inner if isinstance(one, ast.Constant)}  # as of getattr
    return "\n".join([text, *sorted(constants)]), names | strings, code - ignored


def _names(code: CodeType) -> set[str]:
    """Names of globals and attributes, not of local variables."""
    inner = (_names(one) for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*inner)


def _member(module: ModuleType, name: str) -> Any:
    if not hasattr(module, name):  # a submodule that was not imported yet
        importlib.import_module(f"{module.__name__}.{name}")
    return getattr(module, name)
