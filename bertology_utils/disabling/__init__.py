"""Heads and layers switched off: they attend to every token alike (§4.6, Figs 8 and 9).

``switch``: a model with some heads disabled. ``ablations``: other things that
a disabled head can give. ``reference``: the sweep over all heads and layers,
one forward pass for each. ``sweep``: the same at a fraction of the cost, with
the model in ``pieces``; ``saved`` keeps its outputs.
``measure``: gains, of heads and of layers. ``controls``: are they real?
``cases``: single examples whose answer changes; ``examples``: taken out of batches. ``needed``: which heads models
share. ``cumulative``: several heads at once. ``importance``: the estimate from
gradients. ``claims``: the paper's claims, judged. ``findings``: what came out, in
sentences; ``sentences``: those under the figures. ``summary``: for the results
file; ``tables``. ``drawing``, ``gain_dots``: the figures. ``needs``: what is trained and swept.
"""
