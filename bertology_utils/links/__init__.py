"""Attention from one token to another that belongs to it (§4.5, Fig 7).

``token_links``: verbs and their subjects, nouns and pronouns.
``dependencies``: heads that point along a relation of a treebank.
"""
