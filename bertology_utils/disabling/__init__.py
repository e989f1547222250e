"""Heads and layers disabled: they attend to every token alike (§4.6, Figures 8 and 9; §5).

``measure``: what is recorded of every task and run, and what claims are judged on; begin here.
``masking``: a model with some heads disabled, and what a disabled head can give instead. ``sweep``:
the outputs with every head, and every layer, disabled, the fast way and the plain one;
``measure.run`` asks for them by ``effects.sweep_run``, through the cache. ``effects``:
gains from a sweep, and their tests. ``across``: heads followed across runs and tasks. ``heads``:
what a head does, to set beside what its disabling costs. ``figures``: the page's.
"""

from .measure import run
