"""Reliability of head importance across runs, examples and ablations (§4.6).

``measure``: what is recorded and judged, and whether luck reaches the paper's gains; begin here.
``components``: how much of what heads' effects differ by is the head's own, the run's, the
ablation's and the examples', and whether another run orders heads alike. ``ablations``: what 1/L
does to heads that rest on [CLS], and what the effect of an ablation follows. ``figures``: the page's.
"""

from .measure import run
