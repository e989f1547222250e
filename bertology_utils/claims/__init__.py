"""The paper's claims: what they are, what they need, and how a verdict follows.

``register``: every claim, in the paper's order, and our controls. ``support``:
from p values to a verdict. ``gates``: preconditions. ``verdict``: what a run
says of a claim. ``words``: its sentences. The rules themselves are in the sections' ``claims``.
"""

from .support import FAILS, HOLDS, OUTCOMES, UNDECIDED, UNTESTABLE, Support, above, all_of, any_of, some_head, within
from .verdict import Verdict, judged, verdict_table

__all__ = [
    "FAILS",
    "HOLDS",
    "OUTCOMES",
    "UNDECIDED",
    "UNTESTABLE",
    "Support",
    "Verdict",
    "above",
    "all_of",
    "any_of",
    "judged",
    "some_head",
    "verdict_table",
    "within",
]
