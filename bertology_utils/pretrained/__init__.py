"""What one encoder's heads do before any fine-tuning, beside published figures (notebook 8).

``measure``: one pass over the tasks' rows, the claims of §4.1, §4.4, §4.5 and notebook 7 on the
encoder as it is, and bert-base's published heads. ``figures``: the figures of the page.
"""

from .measure import run
