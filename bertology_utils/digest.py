"""What tells one computation from another: the content of its arguments, and the code that it runs.

Of code counts what a function uses, followed from name to name through the package: functions,
    classes, constants. What
decides nothing does not count: comments, docstrings, annotations, layout, the words of errors.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import json
import symtable
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import torch
import xxhash
from torch import nn

from .attention.hooks import is_edited
from .common import SOURCES

_PACKAGE = __package__
_PLAIN = {type(None), bool, int, float, complex, str, bytes, range}
_KNOWN = {
    _PACKAGE,
    "torch",
    "transformers",
    "sklearn",
}  # whose code is told by a digest, or by their versions
# What brings files and results to their places and words to people, and decides no result; and the
# device, which keys name.
_NAMES = "cache digest common.note common.track common.device hub.hub_errors".split()
IGNORED = {f"{_PACKAGE}.{name}" for name in _NAMES}


Part = tuple[str, str]  # module and name


class UnhashableError(TypeError):
    """There is no telling whether two such values are the same."""


# Code


class Code:
    """A package's code, and which parts of it each part uses.

    Args:
        sources: text by module, such as :data:`bertology_utils.common.SOURCES`; a package's name
            ends in ``.__init__``.
        ignored: modules, and dotted names of parts, that do not count.
    """

    def __init__(self, sources: Mapping[str, str], ignored: Iterable[str] = ()):
        self._sources, self._ignored = dict(sources), set(ignored)
        self._modules: dict[
            str, tuple[dict[str, list[ast.AST]], dict[str, set[tuple[str, ...]]]]
        ] = {}
        self._parts: dict[Part, tuple[str, set[Part]]] = {}
        self._digests: dict[Part, str] = {}

    def digest(self, module: str, name: str) -> str:
        """SHA-256 of what the function, class or constant ``name`` of a module consists of, with all that it uses.

        Names of modules do not count, so that what is moved stays the same.

        Raises:
            KeyError: there is no such name.
        """
        if (module, name) not in self._digests:
            reached: dict[Part, str] = {}
            left = self._find(module, (name,))
            if not left and not {module, f"{module}.{name}"} & self._ignored:
                raise KeyError(f"{module} has no {name}")
            while left:
                part = left.pop()
                reached[part], used = self._part(part)
                left |= used - reached.keys()
            self._digests[module, name] = hashlib.sha256(
                "\n".join(sorted(reached.values())).encode()
            ).hexdigest()
        return self._digests[module, name]

    def _place(self, module: str) -> str | None:
        """The name among the sources; None for another package's."""
        return next(
            (place for place in (module, f"{module}.__init__") if place in self._sources), None
        )

    def _find(self, module: str, names: Sequence[str]) -> set[Part]:
        """The parts that a dotted name means, as seen from a module: one, or all of a module that is used as a whole."""
        place = self._place(module)
        if place is None or module in self._ignored:
            return set()
        units, imports = self._module(place)
        if not names:
            return {(place, name) for name in units}
        first, *rest = names
        if first in units:
            return set() if f"{module}.{first}" in self._ignored else {(place, first)}
        if first in imports:
            return {
                part
                for there, *name in imports[first]
                for part in self._find(there, (*name, *rest))
            }
        if "__getattr__" in units and not self._place(
            f"{module}.{first}"
        ):  # which fetches it from a module below
            below = [
                other
                for other in self._sources
                if other.startswith(f"{module}.") and other != place
            ]
            return {(other, first) for other in below if first in self._module(other)[0]}
        return self._find(f"{module}.{first}", rest)

    def _module(
        self, place: str
    ) -> tuple[dict[str, list[ast.AST]], dict[str, set[tuple[str, ...]]]]:
        """Statements by the name that they bind ("" for those that bind none); imported names: (module, name there, …)."""
        if place not in self._modules:
            units: dict[str, list[ast.AST]] = {}
            imports: dict[str, set[tuple[str, ...]]] = {}
            tree = ast.parse(self._sources[place])
            tree.body = [statement for statement in tree.body if not _for_types(statement)]
            for node in ast.walk(tree):
                for alias in node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else ():
                    there: tuple[str, ...] = (
                        alias.name if alias.asname else alias.name.split(".")[0],
                    )
                    if isinstance(node, ast.ImportFrom):
                        above = place.split(".")[: -node.level] if node.level else []
                        there = (".".join([*above, *filter(None, [node.module])]), alias.name)
                    imports.setdefault(alias.asname or there[-1], set()).add(there)
            for statement in _Bare().visit(tree).body:
                for name in _bound(statement) or [""]:
                    units.setdefault(name, []).append(statement)
            self._modules[place] = units, imports
        return self._modules[place]

    def _part(self, part: Part) -> tuple[str, set[Part]]:
        """What a part says, and the parts that it uses."""
        if part not in self._parts:
            place, name = part
            units = self._module(place)[0]
            statements = units[name] + (units.get("", []) if name else [])
            text = "\n".join(map(ast.unparse, statements))
            dotted = {names for statement in statements for names in _dotted(statement)}
            free = _free_names(text)
            used = (
                self._find(place.removesuffix(".__init__"), names)
                for names in dotted
                if names[0] in free
            )
            self._parts[part] = text, set().union(*used)
        return self._parts[part]


class _Bare(ast.NodeTransformer):
    """Takes away what decides nothing."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [part for part in body if not _is_remark(part)] or [ast.Pass()]
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):  # a field, whose kind decides nothing
            node.annotation = ast.Constant(...)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc = node.exc.func
        return node


def _is_remark(node: ast.AST) -> bool:
    is_text = (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
    return is_text or isinstance(node, (ast.Import, ast.ImportFrom)) or _for_types(node)


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _bound(statement: ast.AST) -> set[str]:
    """Names that a statement of a module binds, or whose content it changes."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    stored = (
        node for node in ast.walk(statement) if isinstance(getattr(node, "ctx", None), ast.Store)
    )
    names = {dotted[0] for node in stored for dotted in _dotted(getattr(node, "value", node))}
    return names | {
        node.name
        for node in ast.walk(statement)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }


def _dotted(node: ast.AST) -> Iterator[tuple[str, ...]]:
    """The dotted names of an expression or statement, each as long as it goes."""
    chain, inner = [], node
    while isinstance(inner, ast.Attribute):
        chain.append(inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name):
        yield (inner.id, *reversed(chain))
    else:
        for child in ast.iter_child_nodes(node):
            yield from _dotted(child)


def _free_names(text: str) -> set[str]:
    """Names that a statement takes from its module."""
    names, tables = set(), [symtable.symtable(text, "", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        at_top = table.get_type() == "module"
        names |= {
            one.get_name()
            for one in table.get_symbols()
            if one.is_global() or (at_top and one.is_referenced())
        }
    return names


_code = Code(SOURCES, IGNORED)


def code_digest(*parts: Any) -> str:
    """SHA-256 of the code of functions or classes of this package, with all that they use of it.

    Raises:
        UnhashableError: one that is not of this package, whose code may change unseen.
    """
    return hashlib.sha256(" ".join(map(_of_code, parts)).encode()).hexdigest()


def _of_code(part: Any) -> str:
    if _root(part) != _PACKAGE:
        raise UnhashableError(f"the code of {part} may be another the next time")
    try:
        return _code.digest(part.__module__, part.__qualname__.split(".")[0])
    except KeyError as error:  # made at run time
        raise UnhashableError(str(error)) from error


# Content


def fingerprint(value: object) -> str:
    """A hash of a value's content, 64 hexadecimal digits: the same for equal content, in every process.

    Of a model count its weights, its configuration and whether it trains, not where they were read
    from; of an object its class with its code, and its attributes, or what its ``depends_on()`` or
    ``fingerprint`` says; of a function its code.

    Raises:
        UnhashableError: a value, or a part of it, of which nothing is known that would tell it from
            another: an open file, a function of one's own, a model whose heads are disabled at the
            moment or that has hooks of one's own.
    """
    walk = _Walk()
    walk.add(value)
    return walk.hash.hexdigest()


class _Walk:
    """Goes through a value, part by part, and feeds a hash."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self._seen: dict[
            int, tuple[int, object]
        ] = {}  # identity → number, and the part itself, so that it stays alive

    def _say(self, *words: object) -> None:
        self.hash.update(repr(words).encode())

    def add(self, value: object) -> None:
        """One part and all that is in it."""
        if type(value) in _PLAIN or isinstance(value, (np.generic, torch.dtype, torch.device)):
            self._say(type(value).__name__, value)
        elif isinstance(value, type):
            self._kind("class", value)
        elif isinstance(value, FunctionType):
            self._function(value)
        elif id(value) in self._seen:
            self._say("again", self._seen[id(value)][0])
        else:
            self._seen[id(value)] = len(self._seen), value
            self._add_parts(value)

    def _kind(self, word: str, kind: type) -> None:
        """A class: its name, and the code of one of this package."""
        self._say(
            word, kind.__qualname__, _of_code(kind) if _root(kind) == _PACKAGE else kind.__module__
        )

    def _function(self, function: FunctionType) -> None:
        self._say("function", function.__qualname__, _of_code(function))
        if "<" in function.__qualname__:  # of another function, whose values it has
            self._say(function.__code__.co_code, function.__code__.co_names)
            self._all(
                [
                    function.__defaults__,
                    *(cell.cell_contents for cell in function.__closure__ or ()),
                ]
            )

    def _add_parts(self, value: Any) -> None:
        self._kind("a", type(value))
        if isinstance(value, (tuple, list)):
            self._all(value)
        elif _is_record(value):  # of its own, as it may hold what stands beside it, too
            self._say(fingerprint(_content(value)))
        elif isinstance(value, dict):
            self._all([*value.keys(), *value.values()])
        elif isinstance(value, np.ndarray) and value.dtype != object:
            self._array(value)
        elif isinstance(value, torch.Tensor):
            self._say(str(value.dtype))
            self._array(
                value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy(), value.shape
            )
        elif isinstance(value, nn.Module):
            self._model(value)
        elif isinstance(value, np.ndarray):
            self._all(value.tolist())
        elif isinstance(value, (set, frozenset)):
            self._say(sorted(map(fingerprint, value)))
        elif isinstance(value, functools.partial):
            self._all([value.func, value.args, value.keywords])
        elif isinstance(value, MethodType):
            self._all([value.__func__, value.__self__])
        elif _root(type(value)) == "datasets":
            self._all([value.column_names, value.to_dict()])
        elif hasattr(value, "__dict__") and _root(type(value)) in _KNOWN:
            self.add(_content(value))
        else:
            raise UnhashableError(
                f"nothing tells one {type(value).__module__}.{type(value).__qualname__} from another"
            )

    def _all(self, parts: Sequence[object]) -> None:
        self._say(len(parts))
        if all(type(part) in _PLAIN for part in parts):  # positions and words, by the thousand
            self._say("plain", *parts)
            return
        arrays = [part for part in parts if type(part) is np.ndarray and part.dtype != object]
        if len(arrays) == len(parts):  # of every example one
            self._say("arrays", *((one.dtype.str, one.shape) for one in arrays))
            self.hash.update(xxhash.xxh3_128_digest(b"".join(one.tobytes() for one in arrays)))
            return
        for part in parts:
            self.add(part)

    def _array(self, array: np.ndarray, shape: tuple[int, ...] | None = None) -> None:
        self._say(array.dtype.str, tuple(array.shape if shape is None else shape))
        # Models are large and looked at often; SHA-256 would take 18 times as long here.
        self.hash.update(xxhash.xxh3_128_digest(np.ascontiguousarray(array).data))

    def _model(self, model: nn.Module) -> None:
        if is_edited(model):
            raise UnhashableError(
                f"the heads of this {type(model).__name__} are disabled, or its maps changed, at the moment"
            )
        kinds = {type(part) for part in model.modules()}
        foreign = {_root(kind) for kind in kinds} - _KNOWN
        if foreign:
            raise UnhashableError(
                f"the code of {', '.join(sorted(foreign))} may be another the next time"
            )
        self._say(sorted(_of_code(kind) for kind in kinds if _root(kind) == _PACKAGE))
        hooks = [part._forward_pre_hooks | part._forward_hooks for part in model.modules()]
        self._say([_of_code(hook) for of_part in hooks for hook in of_part.values()])
        self._say(repr(model), model.training)
        config = getattr(model, "config", None)
        if config is not None and hasattr(config, "to_dict"):
            said = config.to_dict()
            for name in (
                "_name_or_path",
                "transformers_version",
            ):  # where it was read from, and what wrote it
                said.pop(name, None)
            self._say(json.dumps(said, sort_keys=True, default=str))
        else:
            self.add({name: part for name, part in vars(model).items() if not name.startswith("_")})
        self.add(dict(model.state_dict()))


def _content(value: Any) -> object:
    """What an object says of itself, else its attributes; without what a frozen one or a cached property only keeps."""
    if hasattr(value, "depends_on"):
        return [value.depends_on()]  # a list, which may be another the next time
    if hasattr(value, "fingerprint"):
        return value.fingerprint
    if _is_record(value):
        return tuple(getattr(value, field.name) for field in dataclasses.fields(value))
    kept = {
        name
        for kind in type(value).__mro__
        for name, of in vars(kind).items()
        if isinstance(of, functools.cached_property)
    }
    return {name: part for name, part in vars(value).items() if name not in kept}


def _is_record(value: object) -> bool:
    parameters = getattr(type(value), "__dataclass_params__", None)
    return parameters is not None and parameters.frozen and _root(type(value)) == _PACKAGE


def _root(of_code: Any) -> str:
    """The library that a class or function is of."""
    return (getattr(of_code, "__module__", None) or "").split(".")[0]
