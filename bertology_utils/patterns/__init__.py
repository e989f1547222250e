"""The five patterns of self-attention maps and the network that tells them apart (§4.1, Figs 1 and 2).

``labels``: 400 labelled maps, and maps whose label is known by construction. ``classifiers``: a
network of eight convolutional layers, and the statistics of a map that logistic regression looks
at. ``validation``: how good both are, by nested cross-validation; ``pattern_trainer``, beside the
package, makes it, and the network, anew. ``measure``: the pattern of every map of a pass over the
data; how frequent each is, corrected for the network's errors; whether heads and tasks share them.
``plots``: the figures of notebook 1.
"""
