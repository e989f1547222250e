"""The list of tensors at the head of a SafeTensors file, read without loading a weight.

The format: eight bytes with the length of a JSON header, the header, the tensors' bytes
(https://huggingface.co/docs/safetensors).
"""

import json
from pathlib import Path


def tensor_shapes(folder: Path) -> dict[str, list[int]]:
    """Shapes of all tensors in a model folder's SafeTensors files, by name.

    Raises:
        ValueError: a file is none, or cut off; the message names it.
    """
    shapes: dict[str, list[int]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        shapes |= _shapes(path)
    return shapes


def _shapes(path: Path) -> dict[str, list[int]]:
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 0 < length <= size - 8:
                raise ValueError("it has no header")
            tensors = json.loads(file.read(length))
        tensors.pop("__metadata__", None)
        shapes = {name: tensor["shape"] for name, tensor in tensors.items()}
        end = 8 + length + max((tensor["data_offsets"][1] for tensor in tensors.values()), default=0)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a SafeTensors file: {error}") from None
    if size != end:
        raise ValueError(f"{path} has {size} bytes where its header says {end}; it is cut off or damaged: fetch it again")
    return shapes
