"""Reliability of head importance across trainings, ways of disabling and examples (§4.6).

``components``: how much of what heads' effects differ by is of which. ``agreement``: how often
another measurement would say the same, for what papers report, and how many trainings and examples
that takes. ``luck``: what idle heads would gain. ``plots``: the figures.
"""
