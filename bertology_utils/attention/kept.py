"""Passes that are made once: what was measured is kept in the cache, under all that it depends on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common import cache
from ..common.devices import device_name
from ..common.packing import KIND, pack, unpack
from . import maps
from .contents import UnnamedError, fingerprint, own_name
from .maps import Batch, Measurement

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_FILE = "value.safetensors"
_LIBRARIES = ("torch", "transformers", "numpy", "scipy", "scikit-learn")


def once(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """``function(*arguments, **options)``, from the cache if it was called before with the same content.

    The key holds the content of all arguments, the whole package's code, the versions of libraries and the kind of device;
    what cannot be told from another value (see :func:`bertology_utils.attention.contents.fingerprint`) is computed each time.

    Args:
        function: of this package, without side effects; gives what :func:`bertology_utils.common.packing.pack` takes.
        arguments, options: its own.

    Raises:
        ValueError: a function that is not of this package, whose code could be another the next time.
    """
    try:
        name = own_name(function)
    except UnnamedError as error:
        raise ValueError(f"{error}; keep what functions of bertology_utils give") from error
    compute = functools.partial(function, *arguments, **options)
    try:
        key = _key(name, fingerprint((arguments, options)))
    except UnnamedError:
        return compute()
    return _entry(key, compute)


def observe(model: PreTrainedModel, batches: Sequence[Batch], measurements: dict[str, Measurement]) -> dict[str, Any]:
    """As :func:`bertology_utils.attention.observe`, in one pass for those measurements that are not in the cache yet.

    Args:
        model, batches, measurements: see there.

    Returns:
        What each measurement computed, by name.
    """
    try:
        seen = fingerprint((model.base_model, batches))  # maps do not depend on what stands above the encoder
        names = {name: fingerprint((seen, measurement)) for name, measurement in measurements.items()}
    except UnnamedError:
        return maps.observe(model, batches, measurements)
    keys = {name: _key("observe", of_one) for name, of_one in names.items()}
    missing = {name: one for name, one in measurements.items() if not cache.is_finished(KIND, keys[name])}
    found = maps.observe(model, batches, missing) if missing else {}

    def compute(name: str) -> Any:
        if name not in found:  # it was in the cache, and is damaged
            found.update(maps.observe(model, batches, {name: measurements[name]}))
        return found[name]

    return {name: _entry(key, functools.partial(compute, name)) for name, key in keys.items()}


def _key(name: str, of_arguments: str) -> dict[str, object]:
    depends_on: dict[str, object] = {"code": _package_code(), "versions": _versions(), "device": device_name()}
    return {"measured": name, "arguments": of_arguments} | depends_on


def _entry(key: dict[str, object], compute: Callable[[], Any]) -> Any:
    """An entry's value, computed if there is none; always as it comes out of the file, so that digits are the same."""

    def fill(target: Path, _: Path) -> None:
        (target / _FILE).write_bytes(pack(compute()))

    try:
        return unpack((cache.entry(KIND, key, fill) / _FILE).read_bytes())
    except PermissionError:  # a cache that can only be read
        return unpack(pack(compute()))


@functools.cache
def _package_code() -> str:
    """SHA-256 of the package's code, as any of it may decide what is measured."""
    root = Path(__file__).parent.parent
    return fingerprint([(path.relative_to(root).as_posix(), path.read_bytes()) for path in sorted(root.rglob("*.py"))])


@functools.cache
def _versions() -> dict[str, str]:
    return {name: version(name) for name in _LIBRARIES}
