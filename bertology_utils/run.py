"""The notebooks as files: a call of them is checked before a kernel starts, run, and published whole or not at all."""

from __future__ import annotations

import ast
import json
import logging
import os
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .annotation import load_annotator, sentences_of
from .cache import key_digest, write_atomically
from .common import HUB_GLUE, SILENT, describe_error, is_full, one_of, quiet
from .compare import picture_differences, told_difference
from .e5 import LAYERS
from .framenet import check_nltk, load_release
from .glue import check_split, get_task, parse_tasks
from .settings import STUDIES, StudySettings, check_fit, parse_data, parse_model, parse_source
from .study import OUTPUT_VARIABLE, ROOT, Study, results_folder

# What a shell would decide of a page otherwise. One thread, however many cores there are: sums of
# floats depend on it in their last digits. Python's and matplotlib's defaults: the page's own way to
# show figures, UTF-8, no warning an error, no file of a person's that runs first.
NEUTRAL = (
    dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    | dict.fromkeys(("MPLBACKEND", "PYTHONWARNINGS", "PYTHONSTARTUP", "PYTHONOPTIMIZE"), "")
    | {"PYTHONUTF8": "1"}
)
# The cell of the parameters that a reader changes, and a folded one before it with the others.
PARAMETERS_TAG, DEFAULTS_TAG = "parameters", "defaults"
# In an executed notebook; of the alternative text, which stands under the same name, it is no line.
_PICTURE = re.compile(r'"image/png": ".*"')
IN_PARTS = ("3", "10")  # notebooks that reset or freeze parts of a model
# Several notebooks read the same.
_split, _release = cache(check_split), cache(load_release)
_annotator, _treebank = cache(load_annotator), cache(sentences_of)


@dataclass(frozen=True)
class Notebook:
    """One notebook.

    Attributes:
        path: the file.
        title: its first heading.
        parameters: name → default, in the order of the parameters cells.
        meanings: what each means, as its cell says.
    """

    path: Path
    title: str
    parameters: dict[str, object]
    meanings: dict[str, str]

    @property
    def name(self) -> str:
        """File name without suffix ("3_finetuning_drift")."""
        return self.path.stem

    @property
    def number(self) -> str:
        """Number by which the command line selects it."""
        return self.name.split("_")[0]

    def declared(self, values: dict[str, object]) -> dict[str, object]:
        """Those of a call's values that it has parameters for."""
        return {name: value for name, value in values.items() if name in self.parameters}


def find_notebooks() -> list[Notebook]:
    """All notebooks of the checkout, by number.

    Raises:
        FileNotFoundError: the package was installed without them.
        ValueError: a notebook without one literal parameters cell.
    """
    folder = ROOT / "notebooks"
    notebooks = [read_notebook(path) for path in sorted(folder.glob("[0-9]*_*.ipynb"))]
    if not notebooks:
        raise FileNotFoundError(
            f"no notebooks in {folder}; work in the folder of a checkout of the project"
        )
    return sorted(notebooks, key=lambda notebook: int(notebook.number))


def select(notebooks: list[Notebook], only: str) -> list[Notebook]:
    """The notebooks whose numbers are listed in ``only`` ("3,6" or "1-3,6"); all if it is empty.

    Raises:
        ValueError: for a number that no notebook has, or a range without one.
    """
    if not only:
        return notebooks
    by_number = {notebook.number: notebook for notebook in notebooks}
    numbers: set[str] = set()
    for part in only.split(","):
        ends = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", part)
        span = map(str, range(int(ends[1]), int(ends[2]) + 1)) if ends else ()
        inside = by_number.keys() & set(span)
        numbers.update(inside or [one_of("notebook", part.strip(), by_number)])
    return [notebook for notebook in notebooks if notebook.number in numbers]


def read_notebook(path: Path) -> Notebook:
    """Title and parameters of one notebook file; see :func:`find_notebooks`.

    papermill's own inspection passes over lines that its pattern does not match.
    """
    sources = defaultdict[str, list[str]](list)  # by the cells' types and tags
    parameters: dict[str, object] = {}
    try:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for kind in (cell["cell_type"], *cell["metadata"].get("tags", ())):
                sources[kind].append("".join(cell["source"]))
        (shown,) = sources[PARAMETERS_TAG]
        cells = "\n".join([*sources[DEFAULTS_TAG], shown])
        for statement in ast.parse(cells).body:
            (target,) = statement.targets  # type: ignore[attr-defined]
            parameters[target.id] = ast.literal_eval(statement.value)  # type: ignore[attr-defined]
        _ = parameters["study"]  # whose measurements a page loads
    except (SyntaxError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is no page: wanted is one cell tagged {PARAMETERS_TAG!r} with lines NAME = VALUE only, texts and"
            f" numbers, one of them the study ({type(error).__name__}: {error})"
        ) from None
    title = re.search(r"^# (.*)", "\n".join(sources["markdown"]), re.MULTILINE)
    meanings = dict(re.findall(r"^(\w+) = .*  # (.+)$", cells, re.MULTILINE))
    return Notebook(path, title[1] if title else path.stem, parameters, meanings)


# A call, checked. -------------------------------------------------------


def check_call(
    notebooks: list[Notebook], texts: dict[str, str]
) -> tuple[dict[str, object], list[str]]:
    """Values for the notebooks' parameters, checked as the notebooks will; all that they read from the disk is read.

    Args:
        notebooks: those that will run; each parameter must be declared by one at least.
        texts: name → text, from the command line.

    Returns:
        The parameters that change something for some notebook; and lines that say what could not be looked
        at, and which notebooks do not take a value.

    Raises:
        ValueError, FileNotFoundError: naming what is wrong and what is allowed.
    """
    defaults = {name: value for one in notebooks for name, value in one.parameters.items()}
    values: dict[str, object] = {}
    for name, text in texts.items():
        whole = isinstance(defaults[one_of("parameter", name, defaults)], int)
        if whole and not re.fullmatch(r"\s*-?\d+\s*", text):
            raise ValueError(f"{name}={text!r} is no whole number")
        value = int(text) if whole else text
        # Without those that every notebook has by default.
        if any(one.parameters.get(name, value) != value for one in notebooks):
            values[name] = value
    studies = [(one, study_of(one, values)) for one in notebooks]
    unknown = [what for notebook, study in studies for what in _read_all(notebook, study)]
    own = {
        (one.digest, "checkpoint" in page.parameters, page.number in IN_PARTS): one
        for page, one in studies
    }
    for (_, classifies, in_parts), study in own.items():
        _try_models(study, classifies, in_parts)
    remarks = [f"not checked: {what}" for what in dict.fromkeys(unknown)]
    remarks += [
        f"{', '.join(without)}: takes no {name}"
        for name in values
        if (without := [one.name for one in notebooks if name not in one.parameters])
    ]
    return values, remarks


def study_of(notebook: Notebook, values: dict[str, object]) -> StudySettings:
    """The study that a notebook runs with; raises ValueError for what is wrong in it, FileNotFoundError for a missing file."""
    given = notebook.parameters | notebook.declared(values)
    name = given.pop("study")
    # What a page calls otherwise, such as the seed, is of its own draws.
    entries = StudySettings.model_fields.keys() - {"seed"}
    settings = StudySettings.of(
        str(name), **{entry: value for entry, value in given.items() if entry in entries}
    )
    if settings.model != STUDIES[settings.name]["model"] or settings.checkpoint:
        model = parse_model(settings.model)
        for name, place in settings.checkpoint.items():
            check_fit(get_task(name), parse_model(place), model)
    return settings


def _read_all(notebook: Notebook, settings: StudySettings) -> Iterator[str]:
    """Read what a notebook will read from the disk; yields what only the network can answer. A kept study reads results/ alone."""
    own = () if settings.is_kept else notebook.parameters
    data = parse_data(settings.data)
    model = None if settings.model in ("embedded", *LAYERS) else parse_model(settings.model)
    if model and not model.is_local:
        yield f"the model {model.location} on the Hub"
    kind = parse_source("annotation", settings.annotation)[0] if "annotation" in own else ""
    annotator = _annotator(settings.annotation) if kind in ("conllu", "spacy") else None
    if "treebank" in own and settings.treebank != "embedded":
        from .dependencies import LEAST_EXAMPLES, inputs_of
        from .models import load_tokenizer

        bank = _treebank(settings.treebank, LEAST_EXAMPLES)
        if model is None or model.is_local:  # too few may be left in the model's wordpieces
            tokenizer = load_tokenizer(model or parse_model(settings.model))
            inputs_of(bank, tokenizer, least=LEAST_EXAMPLES)
    if "data" in own and data is None:
        yield f"the data set {HUB_GLUE} on the Hub"
    for task in parse_tasks(settings.tasks) if data else ():
        _split(task, "dev", data)
        _split(task, "train", data)
        if annotator and kind == "conllu":
            rows = Study(settings).rows(task.title)
            annotator([text for field in task.fields for text in rows[field]])
    if "framenet" in own and settings.framenet == "nltk":
        check_nltk()
        yield "FrameNet, which NLTK downloads if it is not there"
    elif "framenet" in own:
        _release(settings.framenet)


def _try_models(settings: StudySettings, classifies: bool, in_parts: bool) -> None:
    """Load models of one's own that are here, and look at their maps of one text: what cannot be measured, or read its rows, is refused now."""
    own, rows_are_here = settings.model != STUDIES[settings.name]["model"], settings.data != "hub"
    # Rows tell a regression's scale.
    given = [one for one in settings.checkpoint if rows_are_here or get_task(one).labels]
    if not (own or given) or not parse_model(settings.model).is_local:
        return
    from .attention import attention_maps
    from .batches import batches_of, prepare
    from .hooks import layers_of

    quiet()
    study = Study(settings)
    models = (
        [study.before_fine_tuning(study.tasks[0]) if classifies else study.encoder()] if own else []
    )
    (batch,) = batches_of(["one"], study.tokenizer)
    rows = [*map(study.batches, study.tasks)] if classifies and rows_are_here else []
    for model in (*models, *map(study.classifier, given)):
        attention_maps(model, batch)
        if in_parts:
            layers_of(model)
        for batches in rows:
            prepare(model, batches)


# Runs. ------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """Outcome of one notebook's run.

    Attributes:
        notebook: which.
        seconds: wall time.
        error: what went wrong, in a line, or None.
        executed: the executed notebook, also of a failed run; None if it could not be written.
        changes: what differs from the earlier figures by more than rounding, a line for each.
    """

    notebook: Notebook
    seconds: float
    error: str | None
    executed: Path | None
    changes: list[str]

    def __str__(self) -> str:
        ending = f"failed, {self.error}" if self.error else "done"
        seen = f"; see {self.executed}" if self.executed else ""
        first = f"{self.notebook.name}: {ending} ({self.seconds:.0f} s){seen}"
        return "\n  changed: ".join([first, *self.changes])


def run_notebook(
    notebook: Notebook,
    values: dict[str, object],
    output: Path,
    figures: Path,
    in_place: bool = False,
) -> Outcome:
    """Execute one notebook; publish its figures and claims if, and only if, it succeeds.

    Where nothing can be written, as on a full disk, that is the outcome.

    Args:
        notebook: which.
        values: checked parameters; those that it does not declare are left out.
        output: folder for the executed notebook; and in its folder "results", NOTEBOOK.json with the claims
            and the numbers of the text, which of a committed study go to results/STUDY/pages.
        figures: folder of the notebook's own folder of figures.
        in_place: whether the executed notebook becomes the committed one, unless only its pictures differ,
            by rounding.
    """
    print(f"{notebook.name}: {notebook.title}", file=sys.stderr, flush=True)
    start, place, changes = time.monotonic(), None, list[str]()
    own, failed = notebook.declared(values), output / f"failed_{notebook.path.name}"
    try:
        with tempfile.TemporaryDirectory(prefix="bertology-") as folder:
            executed = Path(folder) / notebook.path.name
            error = execute(notebook, own, executed)
            source = executed if executed.exists() else notebook.path
            text = notebook_text(_own_run(source, notebook, own))
            to = failed if error else output / notebook.path.name
            write_atomically(to, text.encode())
            place = to  # not before it is there
            if not error:
                failed.unlink(missing_ok=True)
                written, study = Path(folder) / notebook.name, study_of(notebook, values)
                changes = publish(written, figures / notebook.name)
                committed = study.is_kept and own.keys() <= {"study"}
                told = results_folder() / study.name / "pages" if committed else output / "results"
                said, kept = written / f"{study.name}.json", told / f"{notebook.name}.json"
                if said.exists() and told_difference(kept, said):
                    write_atomically(kept, said.read_bytes())
                before = notebook.path.read_text(encoding="utf-8")
                if in_place and (changes or _PICTURE.sub("", text) != _PICTURE.sub("", before)):
                    write_atomically(notebook.path, text.encode())
    except OSError as problem:
        error = describe_error(problem)
    return Outcome(notebook, time.monotonic() - start, error, place, changes)


def execute(notebook: Notebook, own: dict[str, object], executed: Path) -> str | None:
    """Execute a notebook with its own parameters into ``executed``; returns what went wrong, in a line, or None.

    What the page writes goes into the same folder.
    """
    import matplotlib
    import papermill
    from jupyter_client.manager import AsyncKernelManager

    variables = {
        **os.environ,
        OUTPUT_VARIABLE: str(executed.parent),
        SILENT: "1",
        # Or the debugger of an old ipykernel warns at every start.
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        **NEUTRAL,
        "MATPLOTLIBRC": str(Path(matplotlib.get_data_path(), "matplotlibrc")),
        "IPYTHONDIR": str(executed.parent),  # without a person's profile
    }

    class QuietKernel(AsyncKernelManager):
        """A kernel that keeps the terminal free of what is no cell's output (notices, tracebacks of zmq)."""

        async def start_kernel(self, **options):
            with open(os.devnull, "wb") as nowhere:
                streams = dict.fromkeys(("stdout", "stderr"), nowhere)
                await super().start_kernel(**options, **streams, env=variables)

    # They tell of parameters whose comments have colons, of errors, which are put into words below, and
    # of a kernel that Ctrl-C has ended as well.
    for library in ("papermill", "asyncio"):
        logging.getLogger(library).setLevel(logging.CRITICAL)
    try:
        papermill.execute_notebook(
            notebook.path,
            executed,
            own,
            kernel_name="python3",
            progress_bar=False,
            kernel_manager_class=QuietKernel,
            record_timing=False,
        )
    except papermill.PapermillExecutionError as failure:
        inside = Exception(failure.evalue)  # papermill's own text is its traceback
        what = describe_error(inside) if is_full(inside) else f"{failure.ename}: {failure.evalue}"
        return f"cell {failure.exec_count}: {what}"
    except RuntimeError:  # also DeadKernelError
        return "the kernel died; a common cause is too little memory"
    return None


def notebook_text(content: dict[str, object]) -> str:
    """A notebook's content as Jupyter writes it."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _own_run(path: Path, notebook: Notebook, own: dict[str, object]) -> dict:
    """A notebook without papermill's metadata, which hold clock times and paths of this machine.

    Where its parameters are not the committed ones, its title says so.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    for part in (content, *content["cells"]):
        part["metadata"].pop("papermill", None)
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = _joined(cell["outputs"])
    if own:
        values = ", ".join(f"{name} = {value}" for name, value in own.items())
        told = f"The text tells the study {notebook.parameters['study']}; outputs and figures are this run's."
        title = next(cell for cell in content["cells"] if "".join(cell["source"]).startswith("# "))
        title["source"] += [f"\n\n*A run with {values}. {told}*"]
    return content


def _joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Outputs with prints that follow one another as one: where a kernel cuts them depends on its speed."""
    joined: list[dict[str, Any]] = []
    for one in outputs:
        before = joined[-1] if joined else {}
        if one["output_type"] == "stream" and one["name"] == before.get("name"):
            before["text"] += one["text"]
        else:
            joined.append(one)
    return joined


def publish(new: Path, old: Path) -> list[str]:
    """Put a run's figures in the place of an earlier run's, each unless it differs by rounding only.

    Args:
        new, old: folders of a finished run and of an earlier one, if any.

    Returns:
        What changed, a line for each picture; empty if nothing did, or if there was nothing before.
    """
    earlier, reasons = old.is_dir(), picture_differences(old, new)
    for name in reasons:
        for file in (new / f"{name}.png", new / f"{name}.pdf"):
            if file.exists():
                write_atomically(old / file.name, file.read_bytes())
            else:
                (old / file.name).unlink(missing_ok=True)
    return [f"{name}: {reason}" for name, reason in sorted(reasons.items()) if earlier]


def output_folder(values: dict[str, object]) -> Path:
    """Where a run's executed notebooks go: in ``runs/``, named by what differs from the default."""
    parts = [
        f"{name}-{re.sub(r'[^A-Za-z0-9.]+', '_', str(value))}" for name, value in values.items()
    ]
    # Two settings may look alike in a folder's name.
    unique = f"+{key_digest(values)[:8]}" if values else ""
    return ROOT / "runs" / (("+".join(parts) or "pages")[:100] + unique)
