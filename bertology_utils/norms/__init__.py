"""Norm-based attention analysis (Kobayashi et al., 2020 and 2021): the paper's figures by what weights carry; notebook 7.

``measure``: what is recorded of every task and run, and what claims are judged on; begin here.
``carried``: what heads carry from [CLS] and from words, and how much of a token's new vector comes
from other tokens. ``cuts``: attention to [CLS] cut. ``links``: heads along links by weight and by
norm. ``figures``: the page's. Attention by norm itself is
:mod:`bertology_utils.attention.norms`.

Not measured is whether the sink comes from pre-training or from the training that made the encoder
embed sentences: the same network before that, nreimers/MiniLM-L6-H384-uncased, is on the Hub alone.
``model="nreimers/MiniLM-L6-H384-uncased"`` runs notebook 7 with it.
"""

from .measure import run
