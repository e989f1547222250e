"""Words, parts of speech and dependencies of a text, and where they stand among a model's wordpieces.

Annotation is gold (the embedded corpora), a spaCy pipeline's, or a CoNLL-U
file's; all come as :class:`.base.Sentence`, and nothing downstream knows from
where. ``sources``: what the parameter ``annotation`` can say. ``annotators``:
the three of them. ``alignment``, ``inputs``: words among wordpieces.
``token_types``: the words of one kind.
"""
