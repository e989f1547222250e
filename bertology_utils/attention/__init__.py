"""Attention maps of a model: read and changed inside its forward pass (``maps``), fed by ``batches`` (§3).

``hooks``: how a forward pass is reached into. ``norms``: attention weights
times what they multiply, and measurements of that. ``cells``: the largest
weight in sets of a map's cells, such as those of a link between two words.
"""

from .batches import Batch, Measurement, begin, make_batches, received
from .hooks import head_weights
from .maps import attention_maps, observe
from .norms import ByNorm, vectors, weighed
