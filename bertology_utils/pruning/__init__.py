"""How much of a fine-tuned BERT is needed? The causal test of what the paper concludes from repeated patterns (§5).

``cuts``: what a fine-tuning has to do without: layers that may not change, weights or heads that
stay zero. ``pairs``: can one head stand in for another of the same pattern? ``measure``: layers put
back, heads gone one after the other, and what all of it costs. ``plots``: the figures.
"""
