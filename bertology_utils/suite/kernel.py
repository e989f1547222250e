"""A notebook's kernel as a process: its own messages kept apart, and the most memory it took."""

import sys
from pathlib import Path

from jupyter_client.manager import AsyncKernelManager


def quiet_kernel(log: Path, started: list[int]) -> type:
    """A class of kernels that keep the terminal free of what is no cell's output (notices, tracebacks of zmq).

    Args:
        log: file that takes it.
        started: list to which the process id of each kernel is added.
    """

    class QuietKernel(AsyncKernelManager):
        async def start_kernel(self, **options):
            with log.open("ab") as file:
                await super().start_kernel(**options, stdout=file, stderr=file)
            started.append(self.provisioner.pid)

    return QuietKernel


class PeakMemory:
    """The most memory that any of some processes took, in ``bytes``, as far as :meth:`look` was called in time.

    Args:
        processes: their ids; more may be added while it looks.
    """

    def __init__(self, processes: list[int]):
        self.processes = processes
        self.bytes = 0

    def look(self) -> None:
        """Take notice of what they have taken up to now."""
        self.bytes = max([self.bytes, *map(_peak, self.processes)])


def _peak(process: int) -> int:
    """Peak memory of a process in bytes; 0 if it has ended."""
    if sys.platform == "linux":
        try:
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
    import psutil

    try:
        memory = psutil.Process(process).memory_info()
    except psutil.Error:
        return 0
    return getattr(memory, "peak_wset", memory.rss)  # elsewhere than on Windows only the present size is known
