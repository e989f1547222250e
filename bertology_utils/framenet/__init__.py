"""§4.2: do single heads link a predicate with its core frame elements? (Figs 3 and 4, notebook 2.)

- ``release`` reads FrameNet's annotated sentences, and keeps those with a link, by the paper's rules
  or by those of its published code.
- ``measure`` says where links stand among wordpieces, and measures every head along them and
  elsewhere.
"""
