"""Do the tests pass on other machines? ``python tests/machines [MACHINE ...]`` runs `make test` on emulated ones (hours).

Each machine has a cache and an output folder of its own under ``runs/machines/``, so a second run
does not train again.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

# What makes each round otherwise. Together they have three seeds of noise, one and two threads,
# PyTorch's plain and AVX2 kernels, and oneDNN and MKL held to older instructions (MKL listens on
# Intel's processors only).
MACHINES = {
    "as-it-is": "",
    "noise-1-one-thread": "BERTOLOGY_NOISE=1 OMP_NUM_THREADS=1",
    "noise-2-old-kernels": "BERTOLOGY_NOISE=2 OMP_NUM_THREADS=2 ATEN_CPU_CAPABILITY=default"
    " ONEDNN_MAX_CPU_ISA=SSE41 MKL_ENABLE_INSTRUCTIONS=SSE4_2",
    "noise-3-avx2-one-thread": "BERTOLOGY_NOISE=3 OMP_NUM_THREADS=1 ATEN_CPU_CAPABILITY=avx2"
    " ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2",
}


def passes(name: str) -> bool:
    """Whether all tests pass on one machine; they say themselves what does not."""
    folder = Path("runs", "machines", name)
    environment = os.environ | dict(one.split("=") for one in MACHINES[name].split())
    environment |= {"BERTOLOGY_CACHE": str(ROOT / folder / "cache")}
    environment |= {"PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT)])}
    print(f"{name}:", flush=True)
    call = ["make", "test", f"FRESH={folder / 'notebooks'}"]
    return subprocess.run(call, cwd=ROOT, env=environment).returncode == 0


if __name__ == "__main__":
    machines = sys.argv[1:] or list(MACHINES)
    if unknown := sorted(set(machines) - set(MACHINES)):
        sys.exit(f"unknown machine {', '.join(unknown)}; choose from {', '.join(MACHINES)}")
    failed = [name for name in machines if not passes(name)]
    sys.exit(f"not all tests pass on: {', '.join(failed)}" if failed else 0)
