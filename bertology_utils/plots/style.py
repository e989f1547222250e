"""One style for every figure, and one way to save."""

import io
from pathlib import Path

import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure

from ..cache import write_atomically

COLOURS = {
    "blue": "#2f5d8a",
    "orange": "#d9822b",
    "grey": "#8a8f98",
    "green": "#3f8f6b",
    "red": "#b5483a",
}
# The five patterns of §4.1, in the order of patterns.labels.PATTERNS; told apart without colour
# vision by lightness.
PATTERN_COLOURS = ListedColormap(["#2f5d8a", "#d9822b", "#7c5c8e", "#8fc1a9", "#c8584c"])
# Of flow.DESTINATIONS: special tokens dark, punctuation between, neighbours warm, the rest pale.
FLOW_COLOURS = ["#1f3d5c", "#5b8db8", "#b7a8cf", "#b5483a", "#e8a33d", "#f2d08b", "#e4e6e9"]
MAP = "mako_r"  # light to dark: dark is more, and it stays readable in grey
# Below zero, zero and above it; zero is pure white, the middle one of an odd number of colours.
GAIN = LinearSegmentedColormap.from_list("gain", ["#1f4e8c", "#ffffff", "#a8322a"], N=255)


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


def show(figure: Figure, folder: Path, name: str, alt: str) -> None:
    """Save a figure as :func:`save` does, and show it on the page.

    Args:
        figure: of matplotlib.
        folder, name: of the files.
        alt: what the picture shows, for those who do not see it; it stands in the output's metadata
            (``image/png``, ``alt``), where pages read it.
    """
    from IPython.display import display

    save(figure, folder, name)
    display(figure, metadata={"image/png": {"alt": alt}})
    plt.close(figure)  # or the notebook would show it once more


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write ``name``.png and ``name``.pdf into ``folder``, without dates, each atomically."""
    dated = {"png": ["Software"], "pdf": ["CreationDate", "Creator", "Producer"]}
    for kind, entries in dated.items():
        content, metadata = io.BytesIO(), dict.fromkeys(entries)
        figure.savefig(content, format=kind, metadata=metadata, bbox_inches="tight")
        write_atomically(folder / f"{name}.{kind}", content.getvalue())
        # It stands; another layout for each format would take half of the time.
        figure.set_layout_engine("none")
