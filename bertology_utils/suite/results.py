"""A notebook's figures, numbers and verdicts on disk."""

import dataclasses
import json
import math
import os
import tomllib
from importlib import metadata
from pathlib import Path

import numpy as np

from ..claims import Verdict, verdict_table
from ..common import to_people
from ..common.cache import write_atomically
from ..common.devices import device_name, precision
from ..common.profiles import GLUE, HUB_REVISIONS
from .parameters import Settings

OUTPUT_VARIABLE = "BERTOLOGY_OUTPUT"  # the runner's staging folder
RESULTS = "results.json"
_VERSIONS = ("bertology-utils", "torch", "transformers", "datasets", "numpy", "scikit-learn", "scipy", "spacy")
__all__ = ["OUTPUT_VARIABLE", "RESULTS", "Record", "Verdict", "project_root", "verdict_table"]


class Record:
    """Collects what a notebook writes.

    Without the runner everything goes to ``runs/interactive/NOTEBOOK``; under
    it to a staging folder, which the runner publishes when the notebook
    succeeded.

    Args:
        notebook: the notebook's name without suffix.
        settings: what it ran with.
    """

    def __init__(self, notebook: str, settings: Settings):
        self.notebook = notebook
        self.settings = settings
        root = os.environ.get(OUTPUT_VARIABLE)
        self.folder = Path(root) / notebook if root else project_root() / "runs" / "interactive" / notebook
        self.verdicts: list[Verdict] = []
        self.written: list[str] = []

    def figure(self, figure, name: str, alt: str = "") -> None:
        """Save a matplotlib figure as PNG and PDF, and with ``alt`` show it.

        Args:
            figure: the figure. Without ``alt`` it stays open, and the notebook shows it without a description.
            name: of the files, without suffix.
            alt: what the picture shows, in words, for those who do not see it. It stands in the output's metadata
                (``image/png``, ``alt``), where nbconvert's "classic" pages and this suite's report read it.
        """
        from ..figures import save

        save(figure, self.folder, name)
        self.written += [f"{name}.png", f"{name}.pdf"]
        if alt:
            import matplotlib.pyplot as plt
            from IPython.display import display

            display(figure, metadata={"image/png": {"alt": alt}})
            plt.close(figure)  # or the notebook would show it once more

    def results(self, **numbers) -> None:
        """Write the run's numbers, settings, versions, device and verdicts as JSON; the notebook's last act."""
        content = {
            "notebook": self.notebook,
            "settings": self._settings(),
            "versions": {name: metadata.version(name) for name in _VERSIONS},
            "device": device_name(),
            "precision": precision(),
            "verdicts": [dataclasses.asdict(verdict) for verdict in self.verdicts],
            **numbers,
        }
        text = json.dumps(without_nan(content), indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(self.folder / RESULTS, (text + "\n").encode())
        self.written.append(RESULTS)

    def _settings(self) -> dict:
        s = self.settings
        local_file = s.model.is_local and s.model.name != "embedded"
        return {
            "profile": s.profile.name,
            # The last part of a path: a folder's place on one machine says nothing to others.
            "model": Path(s.model.location).name if local_file else s.model.name,
            "model_fingerprint": s.model.fingerprint,
            "data": f"folder:{s.data.path.name}" if s.data.path else s.data.kind,
            "data_revision": HUB_REVISIONS[GLUE] if s.data.kind == "hub" else None,
            "train_files": {task: Path(file).name for task, file in s.data.train_files},
            "tasks": [task.name for task in s.tasks],
            "seed": s.seed,
            "max_examples": s.max_examples,
            "train_examples": s.train_examples,
            "protocol": s.protocol,
            "head": s.head and [to_people(index) for index in s.head],
            "recipe": dataclasses.asdict(s.profile.recipe),
            **({"weighing": s.weighing} if s.weighing != "weight" else {}),  # only where it is not the paper's
            # Only where there are some: a run that trains its classifiers says so by its recipe.
            **({"checkpoints": {task: source.fingerprint for task, source in s.checkpoints}} if s.checkpoints else {}),
        }


def project_root() -> Path:
    """The suite's checkout, seen from the working folder; else the working folder."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        try:
            project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
        except (OSError, ValueError):
            continue
        if project.get("name") == "bertology-utils" and (folder / "notebooks").is_dir():
            return folder
    return Path.cwd()


def without_nan(value):
    """Plain JSON values, with null for what was not measured: JSON knows no NaN and no infinity."""
    if isinstance(value, dict):
        return {name: without_nan(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (str, int, type(None))) else without_nan(_plain(value))


def _plain(value):
    if isinstance(value, np.ndarray):
        return np.round(value, 6).tolist()
    if isinstance(value, np.generic):
        return value.item()
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    raise TypeError(f"cannot write {type(value).__name__} as JSON")
