"""FrameNet: links between a predicate and its core frame elements, and heads that follow them (§4.2, Figs 3 and 4).

``release``: a release's annotated sentences. ``frame_links``: the paper's filters, and those of its
published code. ``measure``: how much each head attends along a link, and at other places.
``comparisons``: tests against these places, kinds of elements, the best fixed distance, and the
published heatmaps. ``plots``: the figures.
"""
