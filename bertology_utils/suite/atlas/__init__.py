"""The atlas of heads: one page, without a server, on which every head's numbers and maps are looked up.

``measures``: numbers per head out of results.json files; ``places``: where they stand there. ``example``: every
head's map of one sentence. ``page``: the page, drawn by Bokeh; ``atlas.js`` and
``atlas.css`` are its script and style.
"""

from .example import ExampleMaps, example_maps
from .measures import Measure, measures_of, read_measures
from .page import Page, head_atlas

__all__ = ["ExampleMaps", "Measure", "Page", "example_maps", "head_atlas", "measures_of", "read_measures"]
