"""What the parameter ``framenet`` can name, checked before anything heavy is imported."""

from pathlib import Path

from ..common import one_of


def check_framenet(source: str) -> str:
    """Refuse a ``framenet`` parameter that names no FrameNet release.

    Returns:
        The parameter, with "~" in its path replaced.

    Raises:
        ValueError: neither "embedded" nor "nltk" nor "folder:PATH" nor "zip:PATH".
        FileNotFoundError: no such folder or file.
    """
    kind, _, path = source.partition(":")
    if kind not in ("folder", "zip") or not path:
        return one_of("framenet", source, ("embedded", "nltk", "folder:PATH", "zip:PATH"))
    place = Path(path).expanduser()
    if not (place.is_dir() if kind == "folder" else place.is_file()):
        raise FileNotFoundError(f"framenet={source!r}: there is no {'folder' if kind == 'folder' else 'file'} {path}")
    return f"{kind}:{place}"
