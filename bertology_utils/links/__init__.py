"""Attention from one token to another that belongs to it (§4.5, Fig 7).

``token_links``: verbs and their subjects, nouns and pronouns. ``measure``: the
attention along them, and beside them. ``controls``: links or neighbours?
``dependencies``: heads that point along a relation of a treebank. ``claims``:
the paper's claims, judged. ``findings``: what came out, in sentences. ``drawing``: the figures. ``needs``: what is trained.
"""
