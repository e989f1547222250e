"""Tables as people read them, and what figures draw of them."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from bertology_utils import plots
from bertology_utils.results import Results, entries_of


@pytest.fixture(autouse=True)
def _closed():
    plots.set_style()
    yield
    plt.close("all")


def results(*entries) -> Results:
    return Results({"notebook": "x", "rows": [one for some in entries for one in some]})


GAINS = results(
    entries_of(
        "gain",
        {
            "rte": {"value": -0.2, "low": -0.3, "high": -0.1},
            "mrpc": {"value": 0.01, "low": -0.02, "high": 0.04},
        },
        ("task",),
        unit="gain",
    )
)


def positions(ax) -> dict[str, float]:
    """By the label of its row, where a dot stands."""
    rows = [text.get_text() for text in ax.get_yticklabels()]
    dots = np.concatenate([points.get_offsets() for points in ax.collections])
    return {rows[round(y)]: round(x, 6) for x, y in dots.tolist()}


def test_a_table_has_titles_in_glues_order_and_numbers_in_points():
    table = GAINS.table("gain")
    assert list(table.task.cat.categories) == ["MRPC", "RTE"]
    row = table.set_index("task").loc["RTE"]
    assert (row.value, row.low, row.high) == (-20, -30, -10)


def test_an_array_becomes_a_row_for_each_head_counted_from_1():
    values = np.arange(6.0).reshape(2, 3)
    run = results(entries_of("weight", {"a": values, "b": values}, ("kind",), unit="weight"))
    table = run.table("weight", kind="a")
    assert table.set_index(["layer", "head"]).value[2, 1] == 3
    both = plots.head_arrays(run.table("weight", kind=["a", "b"]), "kind")
    assert list(both) == ["a", "b"]
    assert (both["a"] == values).all()


def test_dots_stand_at_their_values_in_their_rows():
    (ax,) = plots.dots(GAINS.table("gain"), label="gain, points").axes
    assert positions(ax) == {"MRPC": 1, "RTE": -20}
    assert any(set(line.get_xdata()) == {0} for line in ax.lines), "zero is not marked"


def test_values_beyond_the_limits_are_written_at_arrowheads():
    figure = plots.dots(GAINS.table("gain"), panel="task", limits=(-10, 0.5))
    written = {ax.get_title(): [text.get_text().strip() for text in ax.texts] for ax in figure.axes}
    assert written == {"MRPC": ["1"], "RTE": ["−20"]}


def test_rows_that_are_numbers_keep_their_places_where_some_lie_beyond_the_limits():
    run = results(entries_of("gain", np.array([0.01, -0.9, 0.02]), over=("layer",), unit="gain"))
    (ax,) = plots.dots(run.table("gain"), y="layer", limits=(-10, 5)).axes
    assert positions(ax) == {"1": 1, "2": -10, "3": 2}


def test_two_numbers_in_one_place_are_refused():
    twice = pd.concat([GAINS.table("gain")] * 2)
    with pytest.raises(ValueError, match="one place; select one kind"):
        plots.dots(twice)


def test_a_run_without_such_numbers_gets_a_figure_that_says_so():
    for draw in (plots.dots, plots.lines, plots.stacked):
        (ax,) = draw(GAINS.table("another number")).axes
        assert "not measured" in ax.texts[0].get_text()


def test_thin_lines_are_of_each_and_the_thick_one_is_their_mean():
    values = {"rte": np.array([0.1, 0.3]), "mrpc": np.array([0.3, 0.5])}
    table = results(entries_of("weight", values, ("task",), over=("layer",))).table("weight")
    (ax,) = plots.lines(table, each="task").axes
    drawn = sorted(tuple(np.round(line.get_ydata(), 6)) for line in ax.lines)
    assert drawn == [(0.1, 0.3), (0.2, 0.4), (0.3, 0.5)]


def test_stacked_parts_end_at_100_percent():
    shares = np.array([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]])
    run = results(
        entries_of("share", shares, over=("layer", "kind"), kinds=("a", "b", "c"), unit="share")
    )
    (ax,) = plots.stacked(run.table("share")).axes
    ends = {round(bar.get_window_extent().x1) for bar in ax.patches}
    assert round(ax.transData.transform((100, 0))[0]) in ends
    assert sorted(text.get_text() for text in ax.texts) == ["10", "20", "30", "30", "50", "60"]


def test_a_grid_around_zero_is_symmetric_and_tells_of_values_beyond_its_scale():
    panels = {"a": np.array([[-2.0, 1.0]]), "b": np.array([[0.5, np.nan]])}
    figure = plots.head_grid(panels, "gain, points", cmap=plots.GAIN)
    assert figure.axes[0].collections[0].norm.vmin == -2
    assert figure.axes[0].collections[0].norm.vmax == 2
    narrow = plots.head_grid(panels, "gain, points", (-1, 1), plots.GAIN)
    assert narrow.axes[1].collections[0].colorbar.extend == "min"
