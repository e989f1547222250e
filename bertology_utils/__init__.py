"""Experiments of *Revealing the Dark Secrets of BERT* (Kovaleva et al., EMNLP 2019).

One file per concept. The package imports nothing heavy by itself, so that
``python -m bertology_utils`` can refuse a wrong parameter at once.
"""

__version__ = "0.1.0"
