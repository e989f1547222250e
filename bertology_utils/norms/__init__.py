"""Norm-based attention analysis (Kobayashi et al., 2020 and 2021): the paper's figures by what weights carry; notebook 7.

``measure``: what is recorded of every task and run, and what claims are judged on; begin here.
``special_tokens``: the lengths of vectors, and attention to [CLS] cut. ``mixing``: how much of a
token's new vector comes from other tokens. ``figures``: the page's. Attention by norm itself is
:mod:`bertology_utils.attention.norms`.
"""

from .measure import run
