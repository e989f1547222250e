"""Attention from one token to another that belongs to it (§4.5, Fig 7).

``token_links``: verbs and their subjects, nouns and pronouns. ``measure``: the
attention along them, and beside them. ``pooled``: over all tasks. ``controls``: links or neighbours?
``dependencies``: heads that point along a relation of a treebank. ``claims``:
the paper's claims, judged. ``findings`` and ``summary``: what came out, in sentences; ``tables``. ``examples``: one input to
look at. ``drawing`` and ``from_cls_drawing``: the figures; ``beside``: with other runs. ``needs``: what is trained.
"""
