"""The five patterns of self-attention maps (§4.1, Figure 1): labelled maps, and what tells the patterns apart.

``labels``: 640 labelled maps of two encoders, and maps whose label is known by construction.
``classifiers``: logistic regression on eleven statistics of a map, a network of eight convolutional
layers (``benchmarks/pattern_network.py`` trains it), and both on all maps of a pass.
"""

from .classifiers import (
    Patterns,
    load_network,
    load_regression,
    map_statistics,
    regression,
    statistics_of,
    to_images,
)
from .labels import PATTERNS, load_maps, pictures
