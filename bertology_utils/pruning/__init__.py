"""How much of a fine-tuned BERT is needed? What the paper concludes in §5, tested.

``measure``: what is recorded of every task and run, and judged; begin here. ``pairs``: can one head
stand in for another of the same pattern? ``spec``: prunings that a fine-tuning run is repeated with:
layers that may not change, weights or heads that stay zero. ``figures``: the page's.
"""

from .measure import run
