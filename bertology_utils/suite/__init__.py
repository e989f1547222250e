"""The notebooks as one suite: ``parameters``, ``experiment`` and ``results`` inside them, ``run`` around them.

``work``: what they need to have been trained, and who does it.
``staging``, ``execute``, ``kernel``, ``publish``: around one notebook.
``run_command``, ``cache_command``, ``publish_command``, ``bert``, ``many``: the command line's parts; ``looking``: what
the last two share.
``notebooks``: which there are. ``html_page``, ``report``, ``pages``, ``tables``,
``opening``, ``site``, ``atlas``: what is made of their results, those in
``committed``; ``beside``: one of these inside another run of its notebook.
``address``, ``stamp``: where the project can be had, and the cells that say so.
``colab``, ``requirements``, ``quiet``: where they run, on what, and how loudly.
"""

from importlib import import_module

_NAMES = {"Experiment": "experiment", "verdict_table": "results"}


def __getattr__(name: str):
    """Names that notebooks begin with, imported when they are asked for."""
    if name in _NAMES:
        return getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
