"""Text files as people have them: UTF-8, plain or packed with gzip."""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

LARGEST = 2**30  # bytes of an unpacked file, more than any of GLUE's


class _Limited(gzip.GzipFile):
    """An unpacked file that ends with an error where it grows too large: a few bytes can unpack to any number."""

    def read1(self, size: int = -1) -> bytes:
        content = super().read1(size)
        if self.tell() > LARGEST:
            raise ValueError(f"{self.name} is refused: it unpacks to more than {LARGEST / 2**30:g} GiB; unpack it yourself")
        return content


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """A UTF-8 file, open for reading; a name in ".gz" is unpacked.

    A byte-order mark is dropped. Only a line feed ends a line: stray carriage
    returns and Unicode's other line breaks stay inside it.

    Raises:
        ValueError: no UTF-8 text, a damaged .gz, or one that unpacks to too much; the message names the file.
    """
    try:
        content = _Limited(path) if path.suffix == ".gz" else path.open("rb")
        with io.TextIOWrapper(content, encoding="utf-8-sig", newline="\n") as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is no gzip file, or a damaged one: {error}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8: {error}") from None
