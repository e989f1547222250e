"""Imported by every Python process with this folder on PYTHONPATH: makes this machine round like another.

What other kernels do to a training is like a start moved by about a rounding
error, so every initial weight is multiplied by 1 + 1e-6 times noise.
"""

import os

SEED = os.environ.get("BERTOLOGY_NOISE")
NOISE = 1e-6

if SEED:
    import wrapt

    @wrapt.when_imported("bertology_utils.models")
    def move_initial_weights(module) -> None:
        """Wrap the one function that loads or draws weights; checkpoints of finished trainings stay as they are."""
        load = module._load

        def moved(auto_class, source, init, seed, **changes):
            import torch

            model = load(auto_class, source, init, seed, **changes)
            if init != "finetuned" and os.environ.get(
                "BERTOLOGY_NOISE"
            ):  # a test may ask for weights as they are stored
                noise = torch.Generator().manual_seed(int(SEED))
                with torch.no_grad():
                    for weights in model.parameters():
                        weights.mul_(1 + NOISE * torch.randn(weights.shape, generator=noise))
            return model

        module._load = moved
