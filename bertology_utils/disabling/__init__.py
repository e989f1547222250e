"""Heads and layers switched off: they attend to every token alike (§4.6, Figs 8 and 9).

``switch``: a model with some heads disabled. ``reference``: the sweep over all
heads and layers, one forward pass for each. ``sweep``: the same at a fraction
of the cost.
"""
