"""Text files as people have them: UTF-8, plain or packed with gzip."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """A UTF-8 file, open for reading; a name in ".gz" is unpacked.

    A byte-order mark is dropped. Only a line feed ends a line: stray carriage
    returns and Unicode's other line breaks stay inside it.

    Raises:
        ValueError: no UTF-8 text, or a damaged .gz; the message names the file.
    """
    how = gzip.open if path.suffix == ".gz" else open
    try:
        with how(path, "rt", encoding="utf-8-sig", newline="\n") as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is no gzip file, or a damaged one: {error}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8: {error}") from None
