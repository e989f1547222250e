"""What fine-tuning changes (§4.3): attention maps (``measure``, Fig 5), scores (``table1``, Table 1), layers (``grafts``).

``comparisons``: all models of a task in one pass; ``controls``: another seed, a random start. ``claims``: the paper's
claims, judged. ``findings``, ``wording``, ``summary``: what came out, in sentences and for the results file.
``drawing``, ``dots``: the figures; ``tables``. ``examples``: what is shown. ``needs``: what is trained.
"""
