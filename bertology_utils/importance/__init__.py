"""Reliability of head importance across runs, examples and ablations (§4.6).

``measure``: what is recorded and judged; begin here. ``components``: how much of what heads' effects
differ by is the head's own, the run's, the ablation's and the examples'. ``agreement``: whether
another run orders heads alike, by the number of examples. ``ablations``: what 1/L does to heads that
rest on [CLS], and what the effect of an ablation follows. ``luck``: whether luck reaches the paper's
gains. ``figures``: the page's.
"""

from .measure import run
