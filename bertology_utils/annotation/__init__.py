"""Words, parts of speech and dependencies of a text, and where they stand among a model's wordpieces.

Annotation is gold (the embedded corpora), a spaCy pipeline's, or a CoNLL-U
file's; all come as :class:`.annotators.Sentence`, and nothing downstream knows
from where. ``annotators``: the three of them. ``inputs``: words among
wordpieces, and the words of one kind.
"""
