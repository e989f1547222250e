"""Attention to types of token, such as nouns or [SEP] (§4.4, Fig 6): what one pass over a model's maps measures.

``measure`` has the parts of :func:`bertology_utils.measurements.features`.
"""

from .measure import Flow, marks
