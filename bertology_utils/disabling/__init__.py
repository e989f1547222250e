"""Heads and layers disabled: they attend to every token alike (§4.6, Figures 8 and 9; §5).

``masking``: a model with some heads disabled, and what a disabled head can give instead. ``sweep``:
the outputs with every head, and every layer, disabled, the fast way and the plain one. ``heads``:
attention to shared words, for notebook 6.
"""
