"""Measurements as files: arrays with named axes, kept once they are made.

A measurement is a function of a study, a task and a run that returns an ``xarray.Dataset``. What it
returns is kept as ``results/STUDY/MEASUREMENT/TASK-RUN.nc`` (NetCDF, an HDF5 file), together with
all that decided it. A file that was measured with other settings is refused, not used.

A measurement of many rows is made in blocks of rows, which are kept in the cache until it is whole:
one that was killed goes on where it was.
"""

from __future__ import annotations

import functools
import inspect
import json
import platform
import shutil
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from .cache import cache_folder, check_writable, key_digest, locked, replaced
from .common import device_name, is_full, one_of
from .glue import get_task

if TYPE_CHECKING:
    from .study import Study

LIBRARIES = ("bertology_utils", "torch", "transformers")


WHOLE = 10**9  # in place of a block: all rows at once


@dataclass(eq=False)
class Measurement:
    """A measurement: a function, and how what it returns is kept.

    Attributes:
        function: of a study, a task, a run, a slice of the rows, and options; returns a Dataset.
        rows: the study's entry that says how many rows it takes; or, by an option's value, another
            entry.
        passes: how many forward passes of one example it takes, or a function of layers and heads
            that says so; for the estimate of hours.
        version: raised when the meaning of what it returns changes.
        block: rows between two points from which it can go on; :data:`WHOLE` for one that does not.
        pairs: whether it is of tasks with two sentences only.
        of: what its rows are: those of a "task", or sentences of the "treebank" or of "framenet".
            The latter two need no fine-tuning: the function takes a study, a slice and options.
        annotated: whether it depends on the study's annotation of words.
        axis: the axis of what it returns that grows from block to block; "example", or what
            sentences are made of.
    """

    function: Callable[..., xr.Dataset]
    rows: str | dict[str, str]
    passes: float | Callable[[int, int], float]
    version: int = 1
    block: int = 100
    pairs: bool = False
    of: str = "task"
    annotated: bool = False
    axis: str = "example"

    def __post_init__(self) -> None:
        """Look like the function."""
        functools.update_wrapper(self, self.function)

    def __reduce__(self) -> str:
        """Let other processes find it by its name."""
        return self.name

    @property
    def name(self) -> str:
        """Name of the function, and of its folder."""
        return self.function.__name__

    def cases(self, study: Study) -> list[tuple[str, int]]:
        """What it is made of in a study: each run of each task; or, without a run, the sentences."""
        if self.of != "task":
            return [(self.of, 0)]
        return [
            (task, run)
            for task in study.tasks
            if not self.pairs or len(get_task(task).fields) == 2
            for run in study.runs(task)
        ]

    def options(self, given: dict[str, Any]) -> dict[str, Any]:
        """Its options, those that are not given by their defaults; raises ValueError for an unknown one."""
        first = 4 if self.of == "task" else 2
        own = list(inspect.signature(self.function).parameters.values())[first:]
        if unknown := given.keys() - {one.name for one in own}:
            allowed = ", ".join(one.name for one in own) or "none"
            raise ValueError(f"{self.name} has no option {unknown.pop()!r}; it has: {allowed}")
        return {one.name: given.get(one.name, one.default) for one in own}

    def count(self, study: Study, **options: Any) -> int:
        """How many rows it takes; -1 for all."""
        entry = self.rows
        if isinstance(entry, dict):
            name, value = next(iter(self.options(options).items()))
            entry = entry[one_of(name, value, entry)]
        return int(getattr(study.settings, entry))

    def settings(self, study: Study, task: str, run: int, **options: Any) -> dict[str, Any]:
        """All that decides what it returns."""
        rows = self.count(study, **options)
        own = {"rows": rows, "version": self.version, **self.options(options)}
        if self.of != "task":
            return study.settings.deciding_sentences(self.of) | own
        words = {"annotation": study.settings.annotation} if self.annotated else {}
        return study.settings.deciding(get_task(task)) | words | {"run": run} | own

    def path(self, study: Study, task: str, run: int, **options: Any) -> Path:
        """The file that keeps it."""
        values, defaults = self.options(options), self.options({})
        others = [str(value) for name, value in values.items() if value != defaults[name]]
        names = [task, str(run), *others] if self.of == "task" else [*map(str, values.values())]
        return study.folder / self.name / ("-".join(names or [self.of]) + ".nc")

    def __call__(self, study: Study, task: str, run: int, **options: Any) -> xr.Dataset:
        """What is on file, measured now if nothing is.

        Raises:
            ValueError: the file is damaged, or was measured with other settings.
            FileNotFoundError: there is none, and the study does not measure.
            OSError: it cannot be written.
        """
        path = self.path(study, task, run, **options)
        asked = self.settings(study, task, run, **options)
        if path.exists():
            return load(path, asked, self._command(study, task))
        if not study.measures:
            raise FileNotFoundError(
                f"{path} is not there, and not measured on a page; measure it by: {self._command(study, task)}"
            )
        instead = (
            "BERTOLOGY_RESULTS (of a study that results/ does not keep, in BERTOLOGY_MEASURED)"
        )
        check_writable(path.parent, str(path.parent), instead)
        key = {name: value for name, value in asked.items() if name != "rows"}  # more go on behind
        weights = key["classifier"] = study.fingerprint(task, run) if self.of == "task" else ""
        parts = cache_folder() / "parts" / f"{study.name}-{self.name}-{key_digest(key)[:16]}"
        with locked(parts, why=f"{path.name} is measured in parts"):
            if not path.exists():  # another process may have made it meanwhile
                whole = self._in_blocks(study, task, run, parts, asked["rows"], options)
                attributes = {
                    "settings": json.dumps(asked, sort_keys=True),
                    "device": f"{device_name()}, {platform.system()}",
                    "versions": json.dumps({n: version(n.replace("_", "-")) for n in LIBRARIES}),
                    "classifier": weights,
                    "description": (inspect.getdoc(self.function) or "").split("\n")[0],
                }
                write(path, whole.assign_attrs(attributes))
                shutil.rmtree(parts, ignore_errors=True)  # it is whole
        return load(path, asked, self._command(study, task))

    def _in_blocks(
        self, study: Study, task: str, run: int, parts: Path, rows: int, given: dict[str, Any]
    ) -> xr.Dataset:
        """All rows, of blocks that are kept in a folder; with the seconds that they took."""
        options, made = self.options(given), []
        case = (study, task, run) if self.of == "task" else (study,)
        count = study.size(task, rows, **options)
        for start in range(0, count, self.block):
            stop = min(start + self.block, count)
            part = parts / f"{start:06}-{stop:06}.nc"
            if not part.exists():
                begun = time.monotonic()
                one = self.function(*case, slice(start, stop), **options)
                write(part, one.assign_attrs(seconds=time.monotonic() - begun))
            made.append(xr.load_dataset(part, engine="h5netcdf"))
        whole = xr.concat(made, self.axis, data_vars="minimal", coords="minimal", compat="override")
        return whole.assign_attrs(seconds=round(sum(one.attrs["seconds"] for one in made)))

    def _command(self, study: Study, task: str) -> str:
        if not study.settings.is_kept:
            return "run this again"
        tasks = f" TASKS={task}" if self.of == "task" else ""
        return f"make measure STUDY={study.name} ONLY={self.name}{tasks}"


def measured(
    rows: str | dict[str, str], passes: float | Callable[[int, int], float], **others: Any
) -> Callable[[Callable[..., xr.Dataset]], Measurement]:
    """Make a function a :class:`Measurement`, with these attributes."""
    return lambda function: Measurement(function, rows, passes, **others)


def load(path: Path, asked: dict[str, Any], command: str) -> xr.Dataset:
    """A measurement's file, if it is whole and was measured with the settings that are asked for; else ValueError."""
    try:
        kept = xr.load_dataset(path, engine="h5netcdf")
        settings = json.loads(kept.attrs["settings"])
    except (OSError, KeyError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged ({str(error)[:80]}); remove it, and measure it again: {command}"
        ) from None
    if settings != json.loads(json.dumps(asked)):
        differ = sorted(name for name in settings | asked if settings.get(name) != asked.get(name))
        told = "; ".join(
            f"{name}: {settings.get(name)!r} on file, {asked.get(name)!r} asked for"
            for name in differ
        )
        raise ValueError(
            f"{path} was measured with other settings ({told}). Ask for those on file; or remove it, and measure"
            f" again: {command}"
        )
    return kept


def write(path: Path, values: xr.Dataset) -> None:
    """Write a Dataset so that a reader sees the old file or the whole new one: 16-bit floats, bits as bytes, packed.

    Raises:
        OSError: no room, or no right to write there, in words.
    """
    packed = {"compression": "gzip", "compression_opts": 9, "shuffle": True}
    letters = {"dtype": "S1"}  # texts as rows of letters, packed like numbers
    kinds = {"f": {"dtype": "float16"}, "U": letters, "O": letters}
    packing: dict[Hashable, dict[str, Any]] = {
        name: packed | kinds.get(one.dtype.kind, {}) for name, one in values.items()
    }
    try:
        with replaced(path) as temporary:
            values.to_netcdf(temporary, engine="h5netcdf", encoding=packing)
    except OSError as error:
        if is_full(error):
            raise OSError(f"no room to write {path}, the disk is full; free some space") from error
        raise
