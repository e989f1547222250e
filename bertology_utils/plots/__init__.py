"""Every figure of the notebooks: ``style``, ``heatmaps`` with maps, ``dots`` with bars and lines."""

from .dots import (
    attention_lines,
    cut,
    dot_panels,
    dots,
    flow,
    flow_grid,
    layer_lines,
    line_panels,
    panels_of,
)
from .heatmaps import (
    attention_map,
    frame,
    frame_annotation,
    gallery,
    heatmap,
    heatmap_grid,
    map_grid,
    map_picture,
    table_map,
    token_map,
    token_maps,
)
from .style import (
    COLOURS,
    FLOW_COLOURS,
    GAIN,
    MAP,
    PATTERN_COLOURS,
    SOURCE_COLOURS,
    panel_grid,
    save,
    set_style,
)
