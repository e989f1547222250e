"""A notebook's outputs against those of a new run of it."""

from __future__ import annotations

from collections.abc import Iterator

from .texts import differences

# Pictures are compared where they are files, see :mod:`bertology_utils.regression.pictures`.
_PICTURES = ("image/png", "image/svg+xml", "application/pdf")


def cell_differences(expected: list[dict], got: list[dict]) -> Iterator[str]:
    """What one cell's new outputs change, a sentence each; nothing if they say the same.

    Of an output in several forms the plain text is compared; HTML and LaTeX
    repeat it.

    Args:
        expected, got: outputs in the notebook format, in their order.
    """
    old, new = _readable(expected), _readable(got)
    kinds = [[kind for kind, _ in outputs] for outputs in (old, new)]
    if kinds[0] != kinds[1]:
        yield f"outputs: expected {_listed(kinds[0])}, got {_listed(kinds[1])}"
        return
    for number, ((kind, before), (_, after)) in enumerate(zip(old, new, strict=True), start=1):
        if kind == "error":
            yield f"output {number}: an error, {after}"
        for difference in differences(before, after):
            yield f"output {number} ({kind}), {difference}"


def _listed(kinds: list[str]) -> str:
    return ", ".join(kinds) or "none"


def _readable(outputs: list[dict]) -> list[tuple[str, str]]:
    """Kind and text of each output; neighbouring pieces of one stream are one output."""
    found: list[tuple[str, str]] = []
    for output in outputs:
        kind, text = _form(output)
        if found and kind == found[-1][0] and kind in ("stdout", "stderr"):
            text = found.pop()[1] + text
        found.append((kind, text))
    return found


def _form(output: dict) -> tuple[str, str]:
    kind = output["output_type"]
    if kind == "stream":
        return output["name"], _joined(output["text"])
    if kind == "error":
        return "error", f"{output['ename']}: {output['evalue']}"
    data = output["data"]
    if any(form in data for form in _PICTURES):
        return "picture", ""
    for form in ("text/plain", "text/markdown", "text/html", *data):
        if form in data:
            return form, _joined(data[form])
    return "nothing", ""


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(map(str, text))


def unfit(content: dict) -> str | None:
    """Why a committed notebook cannot be compared with a new run of it, in words; None if it can.

    Args:
        content: the notebook as parsed JSON.
    """
    counts = []
    for position, cell in enumerate(content["cells"], start=1):
        if cell["cell_type"] != "code":
            continue
        counts.append(cell.get("execution_count"))
        for output in cell["outputs"]:
            if output["output_type"] == "error":
                return f"cell {position} (In [{counts[-1]}]) ended with an error: {output['ename']}: {output['evalue']}"
    if not any(counts):
        return "no cell has been executed, so there are no outputs to compare with"
    if None in counts:
        return f"code cell {counts.index(None) + 1} was added and never executed"
    if counts != list(range(1, len(counts) + 1)):
        first = next(number for number, count in enumerate(counts, start=1) if count != number)
        return (
            f"code cell {first} was executed as In [{counts[first - 1]}]: a cell was removed, added or moved, or the"
            " cells were run out of order"
        )
    return None


def notebook_differences(expected: dict, got: dict) -> list[str]:
    """What a new run of a notebook changes, a sentence each; empty if it says the same.

    Args:
        expected, got: notebooks as parsed JSON.
    """
    if [_source(cell) for cell in expected["cells"]] != [_source(cell) for cell in got["cells"]]:
        return ["its cells have changed"]
    if problem := unfit(expected):
        return [problem]
    return [
        f"In [{cell['execution_count']}], {difference}"
        for cell, new in zip(expected["cells"], got["cells"], strict=True)
        if cell["cell_type"] == "code"
        for difference in cell_differences(cell["outputs"], new["outputs"])
    ]


def _source(cell: dict) -> tuple[str, str]:
    return cell["cell_type"], _joined(cell["source"])
