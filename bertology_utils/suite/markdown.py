"""Text of data and models inside Markdown: it stays text."""

import re

# What would open a tag or a comment, a link's address, or mathematics; "p < 0.05" and intervals stay as they are.
_SIGNS = re.compile(r"<(?=[A-Za-z/!?])|(?<=\])\(|\$")
_INSTEAD = {"<": "&lt;", "(": r"\(", "$": r"\$"}


def plain(text: object) -> str:
    """A text, or what it is written as, in which no browser finds a tag, a link or a formula."""
    return _SIGNS.sub(lambda found: _INSTEAD[found[0]], str(text))
