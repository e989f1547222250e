"""What the parameters ``data`` and ``train_files`` can name, checked before anything heavy is imported."""

from dataclasses import dataclass
from pathlib import Path

from ..common import one_of
from .tasks import get_task

DATA_KINDS = ("embedded", "hub", "folder:PATH")


@dataclass(frozen=True)
class DataSource:
    """A parsed ``data`` parameter.

    Attributes:
        kind: "embedded", "hub" or "folder".
        path: the folder, for kind "folder".
        train_files: training files named on their own, by task name.
    """

    kind: str
    path: Path | None = None
    train_files: tuple[tuple[str, str], ...] = ()


def parse_data(data: str, train_files: str = "") -> DataSource:
    """Read the ``data`` parameter, and ``train_files`` such as "mnli=train_9k.tsv,qqp=…".

    Raises:
        ValueError: for an unknown kind, or training files without a folder.
        FileNotFoundError: if the folder is not there.
    """
    kind, _, rest = data.partition(":")
    if kind != "folder" or not rest:
        one_of("data source", data, DATA_KINDS)
        if train_files:
            raise ValueError(f"train_files={train_files!r} needs data='folder:PATH', not {data!r}")
        return DataSource(kind)
    path = Path(rest).expanduser().resolve()
    if not path.is_dir():
        raise FileNotFoundError(f"no folder {path}; data='folder:PATH' wants GLUE's layout, PATH/MRPC/dev.tsv and so on")
    return DataSource("folder", path, tuple(_train_files(train_files)))


def _train_files(text: str) -> list[tuple[str, str]]:
    """Files are relative to the task's folder, or absolute."""
    pairs = task_pairs("train_files", text, "mnli=train_subset.tsv")
    return [(task, str(Path(file).expanduser()) if file.startswith("~") else file) for task, file in pairs]


def task_pairs(parameter: str, text: str, example: str) -> list[tuple[str, str]]:
    """Read "TASK=PLACE,TASK=PLACE" into (task name, place).

    Args:
        parameter: its name, for the message.
        text: its value.
        example: of one pair, for the message.

    Raises:
        ValueError: not of that form, or an unknown task.
    """
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, separator, place = part.partition("=")
        if not separator or not place.strip():
            raise ValueError(f"{parameter}: {part!r} is not TASK=PLACE, for example {example}")
        pairs.append((get_task(name).name, place.strip()))
    return pairs
