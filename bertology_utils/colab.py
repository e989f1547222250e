"""The notebooks' set-up cell on Colab, and which of the package's requirements are not met.

Imported before the package's dependencies are there: it needs the standard library and
``packaging`` alone.
"""

import importlib
import os
import platform
import sys
from importlib import metadata
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement

from .common import on_colab, quiet

DISTRIBUTION = "bertology-utils"
# A GPU's least memory in GiB for a study that is measured on it, the largest first: a T4 has 15, an
# L4 22, an A100 40 or 80.
FITTING = ((20, "paper"), (12, "colab"), (0, "e5"))
MOUNTED = Path("/content/drive")
_SHOWN = ("torch", "transformers", "datasets", "numpy", DISTRIBUTION)


def unmet() -> list[str]:
    """The package's own requirements that are not met, a line each, without those of the extras."""
    problems = []
    for wanted in map(Requirement, metadata.requires(DISTRIBUTION) or []):
        if not wanted.marker or wanted.marker.evaluate({"extra": ""}):
            there = installed(wanted.name)
            if not (there and wanted.specifier.contains(there, prereleases=True)):
                problems.append(f"{wanted} is needed, {there or 'none'} is installed")
    return problems


def installed(name: str) -> str:
    """The version of a distribution; "" if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def set_up(drive: str = "") -> None:
    """Keep libraries' notices out of the page; on Colab, print versions, the GPU and which study fits it.

    Args:
        drive: on Colab, a folder on the reader's Google Drive for models and results; "" for none.

    Raises:
        SystemExit: in words, what is missing or too old, and what to do.
    """
    if on_colab():
        if lacking := unmet():
            todo = "Runtime > Restart session, and run this cell; else Runtime version: Latest."
            sys.exit("\n".join([*lacking, todo]))
        versions = [f"{name} {installed(name)}" for name in _SHOWN]
        print(f"Python {platform.python_version()}", *versions, sep=", ")
        print(_gpu())
        if drive:
            _keep_on_drive(drive)
    elif drive:
        sys.exit("DRIVE is for Colab; elsewhere BERTOLOGY_CACHE names a folder for models.")
    quiet()


def _gpu() -> str:
    """The GPU and the study that fits it, in a line."""
    import torch

    if not torch.cuda.is_available():
        return 'No GPU: study = "e5", which is measured, fits. Runtime > Change runtime type offers one.'
    memory = torch.cuda.get_device_properties(0).total_memory / 2**30
    study = next(study for least, study in FITTING if memory >= least)
    return f'GPU {torch.cuda.get_device_name()}, {memory:.0f} GiB: study = "{study}" fits.'


def _keep_on_drive(folder: str) -> None:
    """Mount the reader's Drive, and keep models and results in a folder of it."""
    place = PurePosixPath(folder)
    if place.is_absolute() or ".." in place.parts:
        sys.exit(f"DRIVE = {folder!r} is not a folder below your Drive, such as bertology")
    from .cache import CACHE_VARIABLE
    from .study import MEASURED_VARIABLE, OUTPUT_VARIABLE

    try:
        importlib.import_module("google.colab.drive").mount(str(MOUNTED))
        places = {CACHE_VARIABLE: "models", OUTPUT_VARIABLE: "pages", MEASURED_VARIABLE: "measured"}
        for variable, name in places.items():
            kept = MOUNTED / "MyDrive" / folder / name
            kept.mkdir(parents=True, exist_ok=True)
            os.environ[variable] = str(kept)
    except (OSError, ValueError, RuntimeError, AttributeError) as error:  # what its mount raises
        sys.exit(f"your Drive cannot be used: {error}. Run this cell again, or leave DRIVE empty.")
    print(f"Models and results are kept on your Drive, in {folder}.")
