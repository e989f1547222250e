"""Heads and layers disabled: they attend to every token alike (§4.6, Figures 8 and 9; §5).

``masking``: a model with some heads disabled, and what a disabled head can give instead. ``sweep``:
the outputs with every head, and every layer, disabled, the fast way and the plain one. ``effects``,
``heads``: how right answers are, and what a head does, for notebooks 0 and 6.
"""
