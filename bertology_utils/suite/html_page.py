"""An executed notebook as an HTML page."""

import html
from pathlib import Path

import nbformat

from ..common.cache import write_atomically


def page_of(notebook: Path) -> Path:
    """Where a notebook's page lies: beside it."""
    return notebook.with_suffix(".html")


def write_page(notebook: Path) -> None:
    """Write a notebook's page, with its pictures inside."""
    from nbconvert import HTMLExporter

    content = nbformat.read(notebook, as_version=4)
    body, _ = HTMLExporter(embed_images=True).from_notebook_node(
        with_descriptions(content), resources={"metadata": {"path": str(notebook.parent)}}
    )
    write_atomically(page_of(notebook), body.encode())


def with_descriptions(content: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A notebook whose described pictures are HTML, in place: nbconvert's default page shows no ``alt`` of a PNG."""
    for cell in content.cells:
        for output in cell.get("outputs", []):
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            if alt:
                source = f"data:image/png;base64,{output.data['image/png'].strip()}"
                output.data["text/html"] = f'<img alt="{html.escape(alt)}" src="{source}">'
    return content
