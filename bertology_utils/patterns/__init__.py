"""The five patterns of self-attention maps and the network that tells them apart (§4.1, Figs 1 and 2).

``labelled_maps``: 400 maps, labelled by models that read pictures.
``examples``: what is shown of them. ``images``: a map brought to one size. ``augment``: changes that keep a map's
pattern. ``cnn``: the network. ``baseline``: statistics of a map; ``logistic``: a
regression on them, of many maps at once.
``validation``: how good both are. ``evidence``: what came out of that.
``controls``: maps of known pattern. ``measure``: the pattern of every map of a
pass over the data. ``shares``: how frequent each pattern is, corrected for the
network's errors. ``repeats``: do heads and tasks share patterns? ``claims``: the
paper's claims, judged. ``findings``: what came out, in sentences; ``summary``: the
notebook's. ``drawing`` and ``pictures``: the figures; ``beside``: what stands beside
this run in them. ``tables``: tables and the results file. ``needs``: what is trained.
"""
