"""Claims about the heads of a pre-trained encoder that are published of bert-base, and our control; counted apart."""

from __future__ import annotations

from .companions import CLARK
from .register import Entry

BERT_BASE = "bert-base-uncased, whose heads are published"
PANELS = "the paper's published notebook"

# fmt: off
PRETRAINED_CLAIMS = (
    Entry("panels-rank", PANELS, "Heads rank as on the published panels", "144 heads on three panels",
          "Spearman's ρ over heads above 0.8 for each panel that can be measured", "below 0.8 for one", (BERT_BASE,), 8),
    Entry("sep-half", CLARK, "In layers 6 to 10 over half of the attention goes to [SEP]", "over half",
          "above one half in each, mean over heads and tasks", "below in one", (BERT_BASE,), 8),
    Entry("relations-ahead", CLARK, "Along each dependency some head beats the best fixed distance",
          "nsubj 58.5 against 45.5, obj 86.8 against 40.0, amod 75.6 against 68.3, det 94.3 against 51.7",
          "some head, corrected over heads, for each relation with 30 arcs of which a fixed distance gets at most 96 % right", "the best head not 2 points ahead for one", (), 8),
    Entry("clark-heads", CLARK, "The heads that Clark et al. name beat the best fixed distance on other text", "(8, 2), (8, 10), (4, 10), (8, 11)",
          "each does, corrected over heads", "none does", (BERT_BASE,), 8),
)
PRETRAINED_CONTROLS = (
    Entry("relations-random", CLARK, "With random weights no head points along a dependency better than the best fixed distance", "",
          "no head, corrected over heads", "some head", (), 8),
)
# fmt: on
