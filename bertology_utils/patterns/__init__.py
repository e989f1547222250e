"""The five patterns of self-attention maps: which do heads show, and how often (§4.1, Figs 1 and 2)?

``labels``: 400 labelled maps, and maps whose label is known by construction. ``classifiers``: the
network of eight convolutional layers that tells patterns apart, logistic regression beside it, and
how good both are; ``pattern_trainer``, beside the package, trains and validates them. ``measure``:
the pattern of every map of a pass over the data; how frequent each is, corrected for the network's
errors; whether heads and tasks share them; and :func:`run`, which records all of it. ``figures``:
those of notebook 1.
"""

from .measure import run
