"""Every figure of the notebooks: ``style``, ``heatmaps``, ``maps`` and ``lines``, ``dots``, bars by ``layers``, a ``gallery``."""

from .dots import cut, dot_panels, dots
from .gallery import gallery
from .heatmaps import confusion, heatmap, heatmap_grid, table_map
from .layers import flow, flow_grid, layer_bars
from .lines import attention_lines, line_panels
from .maps import attention_map, frame_annotation, map_grid, map_picture, token_map
from .style import COLOURS, FLOW_COLOURS, GAIN, MAP, PATTERN_COLOURS, SOURCE_COLOURS, panel_grid, save, set_style

__all__ = [
    "COLOURS",
    "FLOW_COLOURS",
    "GAIN",
    "MAP",
    "PATTERN_COLOURS",
    "SOURCE_COLOURS",
    "attention_lines",
    "attention_map",
    "confusion",
    "cut",
    "dot_panels",
    "dots",
    "flow",
    "flow_grid",
    "frame_annotation",
    "gallery",
    "heatmap",
    "heatmap_grid",
    "layer_bars",
    "line_panels",
    "map_grid",
    "map_picture",
    "panel_grid",
    "save",
    "set_style",
    "table_map",
    "token_map",
]
