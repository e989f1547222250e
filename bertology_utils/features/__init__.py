"""Attention to tokens of one type, such as nouns or [SEP] (§4.4, Fig 6), also from [CLS] alone (§4.5, Fig 7).

``measure``: the measurement. ``compare``: types against each other.
``controls``: against other tokens at the same places. ``flow``: all of a
layer's attention, by type of token. ``claims``: the paper's claims, judged.
``findings``: what came out, in sentences. ``drawing``: the figures. ``needs``: what is trained.
"""

from importlib import import_module

# Imported when they are asked for: sentences are made without torch.
_NAMES = {
    "ATTENDING": "measure",
    "Features": "measure",
    "Rivals": "compare",
    "against_marks": "compare",
    "ahead": "compare",
    "disregard": "measure",
    "earlier_and_later": "compare",
    "kept_share": "compare",
    "resampled_type_means": "compare",
    "shares_of_heads": "compare",
    "side_by_side": "measure",
}
__all__ = list(_NAMES)


def __getattr__(name: str):
    if name in _NAMES:
        return getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
