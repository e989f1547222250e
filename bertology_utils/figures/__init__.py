"""Every figure of the notebooks: ``style``, ``heatmaps``, attention ``maps`` and ``lines``, bars by ``layers``, a ``gallery``."""

from .gallery import gallery
from .heatmaps import confusion, heatmap, heatmap_grid, score_maps, table_map
from .layers import flow, flow_grid, layer_bars
from .lines import attention_lines, line_panels
from .maps import attention_map, frame_annotation, map_grid, map_picture, token_map
from .style import COLOURS, FLOW_COLOURS, GAIN, MAP, PATTERN_COLOURS, panel_grid, save, set_style

__all__ = [
    "COLOURS",
    "FLOW_COLOURS",
    "GAIN",
    "MAP",
    "PATTERN_COLOURS",
    "attention_lines",
    "attention_map",
    "confusion",
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
    "score_maps",
    "set_style",
    "table_map",
    "token_map",
]
