"""One style for every figure, one labelled heatmap, one way to save."""

import io
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.colors import ListedColormap, PowerNorm

from .cache import write_atomically
from .numbering import axis_numbers

COLOURS = {"blue": "#2f5d8a", "orange": "#d9822b", "grey": "#8a8f98", "green": "#3f8f6b", "red": "#b5483a"}
# The five patterns of §4.1, in the order of labelled_maps.PATTERNS; told apart without colour vision by lightness.
PATTERN_COLOURS = ListedColormap(["#2f5d8a", "#d9822b", "#7c5c8e", "#8fc1a9", "#c8584c"])
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


def heatmap_grid(values: dict[str, np.ndarray], label: str, limits: tuple[float, float], cmap=MAP, columns: int = 4):
    """Several heatmaps under their titles, on one colour scale.

    Args:
        values: by title, each of shape (layers, heads).
        label: what the colours mean, with the unit; short, since it stands beside the scale.
        limits: values at the two ends of the colour scale.
        cmap: colour map.
        columns: panels in a row.

    Returns:
        The figure.
    """
    rows = -(-len(values) // columns)
    width = min(columns, len(values))
    figure, axes = plt.subplots(rows, width, figsize=(2.9 * width + 0.8, 2.5 * rows + 0.2), squeeze=False)
    for ax, (title, panel) in zip(axes.flat, values.items(), strict=False):
        heatmap(ax, panel, limits=limits, cmap=cmap, colour_bar=False).set_title(title)
    for index, ax in enumerate(axes.flat[: len(values)]):
        if index % width:
            ax.set(ylabel="")
            ax.tick_params(labelleft=False)
        if index + width < len(values):  # another panel stands below
            ax.set(xlabel="")
            ax.tick_params(labelbottom=False)
    for ax in axes.flat[len(values):]:
        ax.set_axis_off()
    bar = figure.colorbar(axes.flat[0].collections[0], ax=axes, label=label, shrink=0.8, aspect=15 * rows)
    bar.outline.set_visible(False)
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
