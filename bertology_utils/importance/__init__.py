"""Reliability of head importance across runs, ablations and examples (§4.6).

``measure``: what is recorded and judged; begin here. ``components``: how much of what heads' effects
differ by is the head's own, the run's, the ablation's and the examples'. ``agreement``: how often
another measurement would say the same, and how many runs and examples that takes. ``luck``: what
idle heads would gain. ``figures``: the page's.
"""

from .measure import run
