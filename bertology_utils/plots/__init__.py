"""Pictures of named arrays (``arrays``), of attention maps and trees (``maps``), in one style (``style``).

- ``rows_with_intervals``: estimates with intervals, a row for each task. ``lines_by_layer``: the same
  by layer, a panel for each task. ``head_scatter``: two numbers of each head. ``head_grids``: layers by
  heads on one scale around zero. ``panels``: empty axes for anything else.
- ``token_maps``, ``draw_map``, ``attention_lines``: maps of one input; ``map_grid``: many small ones;
  ``outline``: cells of a map. ``table_map``: a table with coloured cells. ``tree_arcs``: a sentence's
  tree, and those that methods find.
"""

from .arrays import (
    FALL,
    NULL,
    RISE,
    head_grids,
    head_scatter,
    lines_by_layer,
    panels,
    rows_with_intervals,
)
from .maps import (
    attention_lines,
    draw_map,
    map_grid,
    map_picture,
    outline,
    table_map,
    token_maps,
    tree_arcs,
)
from .style import (
    COLOURS,
    FLOW_COLOURS,
    GAIN,
    MAP,
    PATTERN_COLOURS,
    save,
    set_style,
    show,
)
