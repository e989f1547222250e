"""Attention to tokens of one type, such as nouns or [SEP] (§4.4, Fig 6), also from [CLS] alone (§4.5, Fig 7).

``measure``: the measurement. ``compare``: types against each other.
``controls``: against other tokens at the same places. ``flow``: all of a
layer's attention, by type of token. ``reading``: all of these on one task's
examples, one of which ``examples`` chooses to look at. ``stripes``,
``separators``: what is estimated from it. ``from_cls``: Figure 7's numbers. ``claims``: the paper's claims, judged.
``findings``, ``summary``: what came out, in sentences. ``beside``: the committed
run on real data. ``drawing``, ``tables``: how it is shown. ``needs``: what is trained.
"""

from importlib import import_module

# Imported when they are asked for: sentences are made without torch.
_NAMES = {
    "ATTENDING": "measure",
    "Examples": "reading",
    "Features": "measure",
    "Rivals": "compare",
    "Stripes": "stripes",
    "against_marks": "compare",
    "ahead": "compare",
    "ahead_of_pairs": "separators",
    "alone": "examples",
    "darkest": "examples",
    "disregard": "measure",
    "earlier_and_later": "compare",
    "in_even_shares": "reading",
    "kept_share": "compare",
    "of_length": "examples",
    "over_tasks": "reading",
    "pooled": "reading",
    "resampled_type_means": "compare",
    "shares_of_heads": "compare",
    "side_by_side": "measure",
    "typical": "examples",
}
__all__ = list(_NAMES)


def __getattr__(name: str):
    if name in _NAMES:
        return getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
