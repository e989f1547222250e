"""Which encoders a call of ``pretrainings`` names."""

from pathlib import Path

from ...encoders.multiberts import expanded


def read_list(text: str) -> list[str]:
    """Names with commas between: folders, Hub names, "embedded", and shorthands of the MultiBERTs.

    Raises:
        ValueError: none, one twice, or a shorthand for what there is not.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    names = [name for word in words for name in expanded(word)]
    if not names:
        raise ValueError("no encoder is named; give --models, such as multiberts:0-4 or FOLDER,OWNER/NAME")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{', '.join(twice)} is named twice; a pre-training counts once")
    return names


def titles(names: list[str]) -> dict[str, str]:
    """A short title for each name, without folders' places and revisions, no two the same."""
    found: dict[str, str] = {}
    for name in names:
        title = Path(name).name if Path(name).expanduser().is_dir() else name.split("@")[0].split("/")[-1]
        number = sum(other == title or other.startswith(f"{title} (") for other in found.values())
        found[name] = f"{title} ({number + 1})" if number else title
    return found
