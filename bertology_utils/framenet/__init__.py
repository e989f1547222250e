"""§4.2: do single heads link a predicate with its core frame elements? (Figs 3 and 4, notebook 2.)

- ``release`` reads FrameNet's annotated sentences, and keeps those with a link, by the paper's rules
  or by those of its published code.
- ``measure`` scores every head along links and at other places, tests the difference, and has
  ``run``, which records all that this section measures.
- ``figures`` draws it.
"""
