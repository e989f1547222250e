"""What fine-tuning changes (§4.3): attention maps (``measure``, Fig 5) and scores (``table1``, Table 1).

``controls``: another seed, a random start. ``claims``: the paper's claims,
judged. ``findings``: what came out, in sentences. ``drawing``: the figures. ``needs``: what is trained.
"""
