"""One style for every figure, one labelled heatmap, one way to save."""

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.colors import ListedColormap, PowerNorm, to_rgb

from .cache import write_atomically
from .numbering import axis_numbers

COLOURS = {"blue": "#2f5d8a", "orange": "#d9822b", "grey": "#8a8f98", "green": "#3f8f6b", "red": "#b5483a"}
# The five patterns of §4.1, in the order of labelled_maps.PATTERNS; told apart without colour vision by lightness.
PATTERN_COLOURS = ListedColormap(["#2f5d8a", "#d9822b", "#7c5c8e", "#8fc1a9", "#c8584c"])
# Of flow.DESTINATIONS: special tokens dark, punctuation between, neighbours warm, the rest pale.
FLOW_COLOURS = ["#1f3d5c", "#5b8db8", "#b7a8cf", "#b5483a", "#e8a33d", "#f2d08b", "#e4e6e9"]
MAP = "mako_r"  # light to dark: dark is more, and it stays readable in grey


def set_style() -> None:
    """Apply the suite's style to matplotlib; call once, at the top of a notebook."""
    sns.set_theme(style="ticks", context="notebook", font_scale=0.85)
    plt.rcParams.update(
        {
            "figure.dpi": 110,
            "savefig.dpi": 160,
            "figure.constrained_layout.use": True,
            "axes.titleweight": "bold",
            "axes.titlesize": "medium",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
            "font.family": "DejaVu Sans",
            "svg.hashsalt": "bertology",  # the same ids, so the same bytes, on every run
        }
    )


def heatmap(ax, values: np.ndarray, label: str = "", limits: tuple[float, float] | None = None, cmap=MAP,
            colour_bar: bool = True):
    """Layers × heads in the paper's orientation: layer 1 at the top, head 1 at the left.

    Args:
        ax: matplotlib axes.
        values: shape (layers, heads).
        label: what the colours mean, with the unit.
        limits: values at the two ends of the colour scale; the data's own by default.
        cmap: colour map.
        colour_bar: draw the scale beside the map.

    Raises:
        ValueError: ``values`` is not two-dimensional.
    """
    if np.ndim(values) != 2:
        raise ValueError(f"a heatmap wants (layers, heads), not shape {np.shape(values)}")
    layers, heads = np.shape(values)
    low, high = limits or (np.nanmin(values), np.nanmax(values))
    sns.heatmap(
        values, ax=ax, cmap=cmap, vmin=low, vmax=high, linewidths=0.4, linecolor="white", cbar=colour_bar,
        cbar_kws={"label": label} if colour_bar else None,
        xticklabels=axis_numbers(heads), yticklabels=axis_numbers(layers),
    )
    ax.set(xlabel="head", ylabel="layer")
    ax.tick_params(length=0, rotation=0, labelsize=7)
    return ax


def heatmap_grid(values: dict[str, np.ndarray], label: str, limits: tuple[float, float] | list[tuple[float, float]],
                 cmap=MAP, columns: int = 4, panel: tuple[float, float] = (2.9, 2.5)):
    """Several heatmaps under their titles.

    Args:
        values: by title, each of shape (layers, heads).
        label: what the colours mean, with the unit; short, since it stands beside the scale.
        limits: values at the two ends of the one colour scale; or a list with those of each row of panels.
        cmap: colour map.
        columns: panels in a row.
        panel: width and height of a panel in inches.

    Returns:
        The figure.
    """
    rows = -(-len(values) // columns)
    width = min(columns, len(values))
    by_row = limits if isinstance(limits, list) else [limits] * rows
    figure, axes = plt.subplots(rows, width, figsize=(panel[0] * width + 0.8, panel[1] * rows + 0.2), squeeze=False)
    for index, (ax, (title, one)) in enumerate(zip(axes.flat, values.items(), strict=False)):
        heatmap(ax, one, limits=by_row[index // width], cmap=cmap, colour_bar=False).set_title(title)
        if index % width:
            ax.set(ylabel="", yticks=[])
        if index + width < len(values):  # another panel stands below
            ax.set(xlabel="", xticks=[])
    for ax in axes.flat[len(values):]:
        ax.set_axis_off()
    for some in axes if isinstance(limits, list) else [axes]:
        long = 15 * rows if some is axes else 12
        bar = figure.colorbar(some.flat[0].collections[0], ax=some, label=label, shrink=0.8, aspect=long, pad=0.01)
        bar.outline.set_visible(False)
    return figure


def panel_grid(count: int, width: float, height: float, columns: int = 4, sharey: bool = False):
    """A figure with so many axes in rows of ``columns``, each of a size in inches.

    Returns:
        The figure and the list of its axes.
    """
    rows, across = -(-count // columns), min(columns, count)
    size = max(5.5, width * across), height * rows  # wide enough for a legend
    figure, axes = plt.subplots(rows, across, figsize=size, squeeze=False, sharey=sharey)
    for ax in axes.flat[count:]:
        ax.set_axis_off()
    return figure, list(axes.flat[:count])


def score_maps(values: dict[str, tuple[np.ndarray, float, np.ndarray]], label: str):
    """Scores with each head disabled, one panel and one scale per task (Fig 8).

    Red is above the whole model, whose score an orange line marks on the
    scale, blue below. The colours end where 2 % of the cells begin. A dot marks
    a significant change.

    Args:
        values: by title, the scores, shape (layers, heads), the whole model's, and where the change is significant.
        label: what the colours mean, with the unit.

    Returns:
        The figure.
    """
    figure, axes = panel_grid(len(values), 3.5, 2.5)
    for ax, (title, (scores, baseline, significant)) in zip(axes, values.items(), strict=True):
        reach = max(np.quantile(np.abs(scores - baseline), 0.98), 1e-9)
        heatmap(ax, scores, label, limits=(baseline - reach, baseline + reach), cmap="vlag").set_title(title)
        ax.collections[0].colorbar.ax.axhline(baseline, color=COLOURS["orange"], lw=2.5)
        for layer, head in np.argwhere(significant):
            ax.plot(head + 0.5, layer + 0.5, "o", ms=3, color="black")
    return figure


def layer_bars(ax, gains, title: str):
    """What disabling a whole layer does: one point per layer with its interval, the whole model at 0 (Fig 9).

    Args:
        ax: matplotlib axes.
        gains: one Bootstrap per layer, from 0 to 1.
        title: above it.
    """
    layers = axis_numbers(len(gains))
    values = np.array([one.value for one in gains]) * 100
    intervals = np.array([one.interval for one in gains]) * 100
    ax.barh(layers, values, color=COLOURS["blue"], alpha=0.35, height=0.7)
    ax.hlines(layers, *intervals.T, color="black", lw=1)
    ax.plot(values, layers, "o", ms=4, color=COLOURS["blue"])
    ax.axvline(0, color=COLOURS["orange"], lw=2)
    ax.set(title=title, yticks=layers, xlabel="gain, points")
    ax.invert_yaxis()


def flow(ax, shares: np.ndarray, names: Sequence[str], title: str = ""):
    """Where each layer's attention goes: one bar per layer, layer 1 at the top, its parts in percent.

    Args:
        ax: matplotlib axes.
        shares: shape (layers, destinations), rows summing to 1.
        names: of the destinations, in order.
        title: above it.
    """
    left = np.zeros(len(shares))
    layers = axis_numbers(len(shares))
    for share, name, colour in zip(shares.T, names, FLOW_COLOURS, strict=True):
        ax.barh(layers, share, left=left, color=colour, label=name, height=0.86)
        dark = np.dot(to_rgb(colour), (0.299, 0.587, 0.114)) < 0.55
        for layer, width, start in zip(layers, share, left, strict=True):
            if width >= 0.055:
                ax.text(start + width / 2, layer, f"{100 * width:.0f}", ha="center", va="center", fontsize=7,
                        color="white" if dark else "black")
        left += share
    ax.set(title=title, xlim=(0, 1), yticks=layers, xlabel="share of attention, %")
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
    ax.invert_yaxis()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def flow_grid(panels: dict[str, np.ndarray], names: Sequence[str]):
    """Several :func:`flow` side by side under one legend.

    Args:
        panels: by title, each of shape (layers, destinations).
        names: of the destinations.

    Returns:
        The figure.
    """
    layers = max(len(one) for one in panels.values())
    figure, axes = plt.subplots(1, len(panels), figsize=(3.6 * len(panels), 0.34 * layers + 1.3), squeeze=False, sharey=True)
    for ax, (title, shares) in zip(axes.flat, panels.items(), strict=True):
        flow(ax, shares, names, title)
    axes.flat[0].set_ylabel("layer")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(names))
    return figure


def attention_map(ax, weights: np.ndarray, tokens: list[str], title: str = ""):
    """One self-attention map: queries from top to bottom, keys from left to right, dark for more (Fig 1).

    In another colour than heatmaps of similarity, where dark can mean little.

    Args:
        ax: matplotlib axes.
        weights: shape (tokens, tokens), rows summing to 1.
        tokens: the wordpieces.
        title: above the map.

    Returns:
        The image, for a colour bar.
    """
    image = ax.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    ax.set_xticks(range(len(tokens)), tokens, rotation=90, fontsize=7)
    ax.set_yticks(range(len(tokens)), tokens, fontsize=7)
    ax.set(title=title, xlabel="to token", ylabel="from token")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image


def frame_annotation(text: str, spans, title: str = ""):
    """A sentence with its predicate and frame elements marked (Fig 4).

    Args:
        text: the sentence.
        spans: (name, start, end, colour) of each mark, characters with ``end`` excluded.
        title: above it.

    Returns:
        The figure.
    """
    width = 0.105  # inches of one character of the monospaced font below
    figure, ax = plt.subplots(figsize=(width * len(text) + 0.6, 1.1))
    ax.set(xlim=(-0.5, len(text) + 0.5), ylim=(-1.5, 1.4))
    ax.set_axis_off()
    ax.set_title(title, loc="left")
    for position, character in enumerate(text):
        ax.text(position + 0.5, 0.4, character, family="DejaVu Sans Mono", fontsize=11, ha="center", va="center")
    for name, start, end, colour in spans:
        ax.add_patch(plt.Rectangle((start - 0.1, -0.2), end - start + 0.2, 1.2, color=colour, alpha=0.25, lw=0))
        ax.text((start + end) / 2, -0.75, name, fontsize=8, ha="center", va="center", color=colour, fontweight="bold")
    return figure


def map_picture(ax, weights: np.ndarray, separators=(), title: str = ""):
    """One self-attention map without its tokens, for its pattern (§4.1).

    The colour scale ends at the map's own maximum and lifts what is faint, so
    that the pattern shows whatever the weights' size. [SEP] is marked at both axes.

    Args:
        ax: matplotlib axes.
        weights: shape (tokens, tokens).
        separators: positions of [SEP].
        title: above the map.
    """
    ax.imshow(weights, cmap="Blues", norm=PowerNorm(0.5, 0, np.max(weights)))
    marks = [""] * len(separators)
    ax.set_xticks(separators, marks)
    ax.set_yticks(separators, marks)
    ax.tick_params(color=COLOURS["red"], length=4, width=1.5)
    ax.spines[:].set(visible=True, linewidth=0.5, color=COLOURS["grey"])
    ax.set_title(title, fontsize=7, fontweight="normal", pad=3)


def map_grid(maps, titles: list[str], columns: int):
    """Many maps side by side; see :func:`map_picture`.

    Args:
        maps: objects with ``weights`` and ``separators`` (positions of [SEP]).
        titles: one each.
        columns: maps in a row.

    Returns:
        The figure and its axes, shape (rows, columns).
    """
    rows = -(-len(maps) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(1.2 * columns, 1.36 * rows), squeeze=False)
    for ax in axes.flat[len(maps):]:
        ax.set_axis_off()
    for ax, one, title in zip(axes.flat, maps, titles, strict=False):
        map_picture(ax, one.weights, one.separators, title)
    return figure, axes


def table_map(ax, values: np.ndarray, rows: Sequence[str], columns: Sequence[str], limits: tuple[float, float], title: str):
    """A table of numbers, dark for more, each number in its cell (Fig 7).

    Args:
        ax: matplotlib axes.
        values: shape (rows, columns).
        rows, columns: their names.
        limits: values at the two ends of the colour scale.
        title: above it.
    """
    sns.heatmap(values, ax=ax, cmap=MAP, vmin=limits[0], vmax=limits[1], annot=True, fmt=".2f", cbar=False, linewidths=0.4,
                linecolor="white", annot_kws={"fontsize": 8}, xticklabels=list(columns), yticklabels=list(rows))
    ax.set_title(title)
    ax.tick_params(length=0, labelsize=8)
    ax.tick_params(axis="x", rotation=40)
    ax.tick_params(axis="y", rotation=0)


def confusion(ax, counts: np.ndarray, rows: list[str], columns: list[str], title: str):
    """Confusion matrix: numbers are counts, colours shares of the row.

    Args:
        ax: matplotlib axes.
        counts: shape (rows, columns).
        rows: what the maps are.
        columns: what they were taken for.
        title: above it.
    """
    sns.heatmap(counts / counts.sum(axis=1, keepdims=True), ax=ax, cmap=MAP, vmin=0, vmax=1, annot=counts, fmt="d",
                cbar=False, square=True, linewidths=0.4, linecolor="white", annot_kws={"fontsize": 8},
                xticklabels=[name.replace("+", "\n+ ") for name in columns],
                yticklabels=[name.replace("+", "\n+ ") for name in rows])
    ax.set(title=title, xlabel="the network says", ylabel="the label is")
    ax.tick_params(length=0, labelsize=7)
    ax.tick_params(axis="x", rotation=40)
    ax.tick_params(axis="y", rotation=0)


def save(figure, folder: Path, name: str) -> None:
    """Write ``name``.png and ``name``.pdf into ``folder``, without dates, each atomically."""
    for kind, metadata in (("png", {"Software": None}), ("pdf", {"CreationDate": None, "Creator": None, "Producer": None})):
        content = io.BytesIO()
        figure.savefig(content, format=kind, metadata=metadata, bbox_inches="tight")
        write_atomically(folder / f"{name}.{kind}", content.getvalue())
