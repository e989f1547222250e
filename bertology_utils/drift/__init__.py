"""What fine-tuning changes (§4.3), in the order of the section.

``measure``: how alike attention maps are before and after fine-tuning (Figure 5), what fine-tuning
and pre-training are worth (Table 1), and, a test of ours, what the score loses with layers reset to
their pre-trained weights. ``figures``: the figures of notebook 3.
"""

from .measure import run
