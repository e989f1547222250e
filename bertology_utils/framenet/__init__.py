"""FrameNet: links between a predicate and its core frame elements, and heads that follow them (§4.2, Figs 3 and 4).

``sources``: what the parameter ``framenet`` can say. ``release``: where the
sentences come from. ``exemplars``: reading them. ``frame_links``: the paper's filters
and those of its published code. ``measure``: how much each head attends along a
link. ``controls``: how much it attends along other pairs of tokens at the same
distance. ``breakdown``: scores by kind of link. ``official_heatmaps``: the
published figure, read off. ``claims``: the paper's claims, judged.
``findings``, ``summary``: what came out, in sentences and numbers. ``examples``: sentences
to look at. ``beside``: the paper, FrameNet 1.5 and this run. ``tables``, ``drawing``: tables and figures.
"""
