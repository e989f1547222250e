"""What the Hub's many errors mean, said in one way."""

from contextlib import contextmanager


@contextmanager
def hub_errors(kind: str, name: str, revision: str | None):
    """Turn any failure to fetch from the Hub into one readable error.

    Args:
        kind: "model" or "data set", for the message.
        name: repository.
        revision: pinned commit or branch; None for the default branch.

    Raises:
        ConnectionError: from the library's own error, naming repository,
            revision and the offline alternatives.
    """
    try:
        yield
    except Exception as error:  # of four libraries, with no common class
        raise ConnectionError(
            f"the {kind} {name!r} at revision {revision or 'main'} could not be loaded from the Hub"
            f" ({type(error).__name__}: {_first_line(error)}). Check the name and the connection, or work offline: "
            + _OFFLINE[kind]
        ) from error


_OFFLINE = {
    "model": "model='embedded', or model='PATH' of a folder with config.json and model.safetensors.",
    "data set": "data='embedded', or data='folder:PATH' of GLUE's own .tsv files.",
}


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else "no message"
