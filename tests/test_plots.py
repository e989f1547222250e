"""Pictures of arrays show what the arrays say."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from bertology_utils import plots

TASKS = {"task": ["MRPC", "RTE"]}


@pytest.fixture(autouse=True)
def _closed():
    plots.set_style()
    yield
    plt.close("all")


def estimate(value, half=0.5):
    value = np.asarray(value, float)
    axes = ("task", "layer")[: value.ndim]
    coordinates = TASKS | {"layer": range(1, value.shape[-1] + 1)}
    parts = {"value": value, "low": value - half, "high": value + half}
    return xr.Dataset(
        {name: (axes, part) for name, part in parts.items()},
        {name: coordinates[name] for name in axes},
    )


def test_rows_have_dots_in_their_intervals_and_ticks_without():
    ticks = xr.DataArray([0.5, 0.25], TASKS)
    columns = {"gain": (estimate([1, -20]), plots.RISE), "luck": (ticks, plots.NULL)}
    (ax,) = plots.rows_with_intervals(columns, "points").axes
    assert [text.get_text() for text in ax.get_yticklabels()] == ["MRPC", "RTE"]
    by_label = {line.get_label(): line for line in ax.lines}
    assert by_label["gain"].get_xdata().tolist() == [1, -20]
    assert by_label["luck"].get_xdata().tolist() == [0.5, 0.25]
    rows = by_label["gain"].get_ydata()
    assert rows[0] > rows[1], "the first task is above"
    ends = sorted(tuple(one[:, 0]) for one in ax.collections[0].get_segments())
    assert ends == [(-20.5, -19.5), (0.5, 1.5)]
    assert any(set(line.get_xdata()) == {0} for line in ax.lines), "zero is not marked"


def test_an_empty_estimate_gets_a_figure_that_says_so():
    none = estimate([1, 2]).isel(task=[])
    figure = plots.rows_with_intervals({"gain": (none, plots.RISE)}, "points")
    assert "not testable" in figure.texts[0].get_text()


def test_lines_stand_at_their_layers_in_the_panel_of_their_task():
    columns = {"a": (estimate([[1, 2, 3], [4, 5, 6]]), plots.RISE)}
    figure = plots.lines_by_layer(columns, "points")
    drawn = {ax.get_title(): ax.lines[0].get_xydata().tolist() for ax in figure.axes}
    assert drawn == {"MRPC": [[1, 1], [2, 2], [3, 3]], "RTE": [[1, 4], [2, 5], [3, 6]]}


def heads(values):
    values = np.asarray(values, float)
    numbers = {"layer": range(1, values.shape[-2] + 1), "head": range(1, values.shape[-1] + 1)}
    return xr.DataArray(values, TASKS | numbers, dims=("task", "layer", "head"))


def test_grids_are_on_one_scale_around_zero_that_tells_of_values_beyond_it():
    values = heads([[[-2, 1]], [[0.5, 0]]])
    first, *_ = plots.head_grids(values, marked=values < -1).axes
    assert first.images[0].get_clim() == (-2, 2)
    assert first.lines[0].get_xydata().tolist() == [[0, 0]], "the marked head, layer 1, head 1"
    assert [text.get_text() for text in first.get_xticklabels()] == ["1", "2"]
    *_, scale = plots.head_grids(values, limit=1).axes
    assert scale._colorbar.extend == "both"


def test_names_of_heads_count_from_1_and_stand_where_no_other_dot_is():
    _, ax = plt.subplots()
    x, y = heads([[[0, 3], [1, 0]], [[0, 1], [1, 0]]])  # (1, 2) and (2, 1) are as high
    plots.name_heads(ax, x, y, [(1, 2), (2, 1)])
    assert {text.get_text(): text.get_ha() for text in ax.texts} == {
        " (1, 2)": "left",
        "(2, 1) ": "right",
    }
