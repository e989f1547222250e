"""Attention from one token to another that belongs to it (§4.5).

``measure``: links between verbs and subjects, nouns and pronouns; every head's weight along them,
against other inputs' places, rivals and neighbours. ``dependencies``: do heads point along whole
relations, as Clark et al. (2019) ask it, on the tasks' rows or, for any encoder, on a treebank?
"""
