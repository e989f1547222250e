"""Every figure of the notebooks: numbers from one tidy table (``charts``), colours for heads and maps (``maps``), ``style``.

A section's figure is a function of one table of rows, the committed evidence or a run on somebody's
own data, and returns a matplotlib Figure; nothing draws a second run beside it. How to draw::

    def gain_figure(results: Results) -> Figure:
        table = results.table("gain without a layer", training=1)  # points, tasks by their titles
        first = (table.task == "RTE") & (table.layer == 1)
        table["the paper"] = np.where(first, 3.2, np.nan)  # numbers to compare with
        return plots.dots(
            table, y="layer", panel="task", label="gain, points", marks={"the paper": "D"}
        )

- ``dots``: values with intervals; rows by ``y``, what shares a row by ``colour``, panels by
  ``panel``.
- ``lines``: numbers by layer, with bands; ``each="task"`` draws tasks thin and their mean thick.
- ``scatter``: two numbers of each head; ``name=`` is a column of labels. ``stacked``: bars of parts that sum to 100 %.
- ``head_grid``: layers × heads for each title, on one scale (``cmap=GAIN`` around zero);
  ``head_arrays`` makes its panels from a table.
- ``token_maps``, ``attention_lines``: maps of one input; ``map_grid``: many small ones;
  ``outline``: cells of a map, or heads of a grid. ``table_map``: a table with coloured cells.
- ``tree_arcs``: a sentence's tree, and those that methods find.

Rows, colours and panels stand in the order of a column's categories, else in that of the table:
sort or rename the table with pandas before drawing. What else a figure needs is added to
``figure.axes`` by matplotlib. Layers and heads of a table count from 1, those of an array from 0.
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
from .charts import BORDER, dots, lines, scatter, stacked
from .maps import (
    attention_lines,
    draw_map,
    head_arrays,
    head_grid,
    head_map,
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
    panel_grid,
    save,
    set_style,
    show,
)
