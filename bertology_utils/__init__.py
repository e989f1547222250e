"""Experiments of *Revealing the Dark Secrets of BERT* (Kovaleva et al., EMNLP 2019).

One file per concept. What a person needs to measure a model of their own comes
from here, and is imported when it is first asked for: the package imports
nothing heavy by itself, so that ``python -m bertology_utils`` can refuse a
wrong parameter at once.
"""

from importlib import import_module

__version__ = "0.2.0"

# Public name: (module, its name there).
_PUBLIC = {
    "load_encoder": ("models", "load_encoder"),
    "load_classifier": ("models", "load_classifier"),
    "load_tokenizer": ("models", "load_tokenizer"),
    "Batch": ("batches", "Batch"),
    "batches_of": ("batches", "batches_of"),
    "attention_maps": ("attention", "attention_maps"),
    "observe": ("attention", "observe"),
    "name_patterns": ("patterns", "name_patterns"),
    "pattern_network": ("patterns", "load_network"),
    "map_similarity": ("attention", "map_similarity"),
    "disable_heads": ("disabling", "disable_heads"),
    "sweep": ("sweeps", "sweep"),
    "predict_logits": ("models", "predict_logits"),
    "head_dependencies": ("dependencies", "head_dependencies"),
    "tree_probe": ("trees", "tree_probe"),
}
__all__ = list(_PUBLIC)


def __getattr__(name: str):
    name = "name_patterns" if name == "Patterns" else name  # as it was called when it was a class
    if name not in _PUBLIC:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}; it offers: {', '.join(__all__)}"
        )
    module, there = _PUBLIC[name]
    value = globals()[name] = getattr(import_module(f".{module}", __name__), there)
    return value
