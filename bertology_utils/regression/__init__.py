"""Is a new run the same as an earlier one, but for rounding?

Processors, thread counts and libraries' kernels round sums differently, and
trainings carry that on. The rules of how far each kind of number may move:
:mod:`~bertology_utils.regression.texts` for what notebooks print,
:mod:`~bertology_utils.regression.numbers` for results.json,
:mod:`~bertology_utils.regression.pictures` for figures.
"""
