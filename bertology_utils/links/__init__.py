"""Attention from one token to another that belongs to it (§4.5).

``measure``: verbs and their subjects, nouns and pronouns in annotated inputs, every head's weight
along these links, beside that at the places to compare them with and on neighbours, and tests of
both. ``dependencies``: does a head point along a relation of a treebank, as Clark et al. (2019) ask
it? ``treebank``: the same in one call, for any encoder and any CoNLL-U file. ``looks``: what
notebook 5 asks of its models, as rows and estimates. ``plots``: the figures, with Figure 7. What
[CLS] looks at in the last layer is measured by :mod:`bertology_utils.features`.
"""
