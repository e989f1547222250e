"""Heads and layers switched off: they attend to every token alike (§4.6, Figs 8 and 9; §5).

``switch``: a model with some heads disabled, one by one or many together, and what a disabled head
can give instead. ``sweep``: the outputs with every head, and every layer, disabled, the fast way
and the plain one. ``pieces``: what the fast way puts together. ``effects``: gains from a sweep and
their tests. ``needs``: which heads models need, whether they agree, and what claims are judged on.
``heads``: the examples on which one head shows, its importance from gradients, and what its maps
are like. ``plots``: the figures.
"""
