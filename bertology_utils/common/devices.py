"""The device that computes, and how precisely: results depend on both in their last digits."""

import platform


def device_name() -> str:
    """The kind of GPU, or of processor where there is none."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()


def precision() -> str:
    """Of trainings: "float32" on a CPU; on a GPU "bf16" where the hardware has it, else "fp16"."""
    import torch

    if not torch.cuda.is_available():
        return "float32"
    return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
