"""The paper's claims: what they are, what they need, and how a verdict follows.

``register``: every claim, in the paper's order, and our controls;
``companions`` and ``pretrained``: claims of other papers; ``entries``: all by name. ``support``:
from p values to a verdict. ``gates``: preconditions. ``verdict``: what a run
says of a claim. ``words``: its numbers. ``findings``: the same in sentences. The rules
themselves are in the sections' ``claims``, the sentences in their ``findings``.
"""

from .support import FAILS, HOLDS, OUTCOMES, UNDECIDED, UNTESTABLE, Support, above, all_of, any_of, some_head, within
from .verdict import Verdict, judged, outcomes, verdict_table

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
    "outcomes",
    "some_head",
    "verdict_table",
    "within",
]
