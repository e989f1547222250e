"""What this machine can do: its cores, GPUs and free memory, and how fast it multiplies."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
KERNEL = 2.5 * 2**30  # bytes that a notebook's kernel takes at most with the embedded model (measured: 2.2 GiB)


def cores() -> int:
    """Cores that this process may use, limits of a container included."""
    import joblib

    return joblib.cpu_count()


def gpus() -> int:
    """GPUs that this process sees."""
    import torch

    return torch.cuda.device_count()


def free_memory() -> int:
    """Bytes that can still be taken, limits of a container included."""
    import psutil

    free = psutil.virtual_memory().available
    try:
        limit, used = (int((_CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        statistics = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        cached = int(statistics["inactive_file"])  # counted as used, and given up where it is needed
    except (OSError, ValueError, KeyError):  # no such limit: "max"
        return free
    return min(free, max(0, limit - used + cached))


def fitting(memory: float) -> int:
    """How many processes of so many bytes fit into the free memory; at least one."""
    return max(1, int(free_memory() // memory))


def gpu_memory() -> int:
    """Bytes of the smallest GPU's memory; 0 without one."""
    import torch

    return min((torch.cuda.get_device_properties(number).total_memory for number in range(gpus())), default=0)


def free_disk(folder: Path) -> int:
    """Bytes that can still be written below a folder, which need not be there yet."""
    folder = folder.absolute()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def operations_per_second(seconds: float = 0.1, precision: str = "float32") -> float:
    """Multiplications and additions per second of a product of matrices: of one core, or of one GPU.

    Args:
        seconds: for how long it is measured.
        precision: "float32", "bf16" or "fp16".
    """
    import torch

    device = "cuda" if gpus() else "cpu"
    size = 4096 if gpus() else 768
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        types = {"float32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
        matrix = torch.rand(size, size, device=device).to(types[precision])
        (matrix @ matrix).sum().item()  # waits for the GPU
        start, count = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            (matrix @ matrix).sum().item()
            count += 1
        return 2 * size**3 * count / (time.perf_counter() - start)
    finally:
        torch.set_num_threads(threads)
