"""How much of a fine-tuned BERT is needed? What the paper concludes in §5, tested.

``measure``: what is recorded of every task and run, and judged; begin here. ``skill``: which share
of what a model has learned another keeps. ``answers``: those of pruned models, from the cache.
``spec``: prunings that a fine-tuning run is repeated with: layers that may not change, weights or
heads that stay zero. ``alike``: whether heads of one layer attend alike. ``figures``: the page's.
"""

from .measure import run
