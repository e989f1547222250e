"""Every figure of the notebooks: ``style``, ``heatmaps``, attention ``maps``, and bars by ``layers``."""

from .heatmaps import confusion, heatmap, heatmap_grid, score_maps, table_map
from .layers import flow, flow_grid, layer_bars
from .maps import attention_map, frame_annotation, map_grid, map_picture
from .style import COLOURS, FLOW_COLOURS, MAP, PATTERN_COLOURS, panel_grid, save, set_style

__all__ = [
    "COLOURS",
    "FLOW_COLOURS",
    "MAP",
    "PATTERN_COLOURS",
    "attention_map",
    "confusion",
    "flow",
    "flow_grid",
    "frame_annotation",
    "heatmap",
    "heatmap_grid",
    "layer_bars",
    "map_grid",
    "map_picture",
    "panel_grid",
    "save",
    "score_maps",
    "set_style",
    "table_map",
]
