"""``make measure``: what a study's ``results/`` lacks, from raw rows; it says hours and gigabytes before it begins."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .batches import batches_of
from .common import device, note, one_of, quiet
from .measurements import MEASUREMENTS, PLAN
from .store import Measurement
from .study import Study

SENTENCE = "Of sentences without a task one is timed that is about as long as most of them, with its comma, and its end."
TRIED = 16  # rows whose forward pass is timed for the estimate
OF_A_PASS = 3  # a step of fine-tuning takes as long as so many forward passes of its rows


@dataclass(frozen=True)
class Call:
    """One measurement of one run; or, with 0 for the run, of sentences."""

    measurement: Measurement
    options: dict[str, Any]
    task: str
    run: int

    def __str__(self) -> str:
        """What it is, in messages."""
        options = "".join(f", {value}" for value in self.options.values())
        run = f", run {self.run}" if self.run else ""
        return f"{self.measurement.name}{options}: {self.task}{run}"


def missing(study: Study, only: str = "") -> list[Call]:
    """The measurements that a study lacks, run by run, so that each run is fine-tuned once.

    Args:
        study: whose.
        only: names of measurements with commas between; "" for all.

    Raises:
        ValueError: an unknown measurement, or one on file that was measured with other settings.
    """
    names = [
        one_of("measurement", name.strip(), MEASUREMENTS)
        for name in only.split(",")
        if name.strip()
    ]
    calls = []
    for measurement, options in PLAN:
        if names and measurement.name not in names:
            continue
        for task, run in measurement.cases(study):
            if measurement.path(study, task, run, **options).exists():
                measurement(study, task, run, **options)  # or refused
            else:
                calls.append(Call(measurement, options, task, run))
    cases = list(dict.fromkeys((call.task, call.run) for call in calls))
    return sorted(calls, key=lambda call: cases.index((call.task, call.run)))


def estimate(study: Study, calls: list[Call]) -> tuple[float, float]:
    """Hours of one core that the calls take here, and gigabytes of the classifiers that they need."""
    import torch

    hours, seconds, layers, heads, size = 0.0, dict[str, float](), 0, 0, 0
    torch.set_num_threads(1)
    for task, of in {call.task: call.measurement.of for call in calls}.items():
        if of == "task":
            model, batches = study.before_fine_tuning(task), study.batches(task, TRIED)
        else:
            model, batches = study.encoder(), batches_of([SENTENCE] * TRIED, study.tokenizer)
        begun = time.monotonic()
        with torch.inference_mode():
            for batch in batches:
                model(**batch.to(model.device).inputs)
        seconds[task] = (time.monotonic() - begun) / sum(
            map(len, (batch.index for batch in batches))
        )
        layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
        size = sum(4 * part.numel() for part in model.parameters())
    runs = {(call.task, call.run) for call in calls if call.run}
    for task, _ in runs:
        passes = OF_A_PASS * study.settings.recipe.epochs
        hours += passes * len(study.train_rows(task)) * seconds[task] / 3600
    for call in calls:
        count = call.measurement.count(study, **call.options)
        rows = study.size(call.task, count, **call.measurement.options(call.options))
        hours += call.measurement.passes(layers, heads) * rows * seconds[call.task] / 3600
    return hours, len(runs) * size / 2**30


def measure(study: Study, only: str = "", jobs: int = 1, scheduler: str = "") -> int:
    """Make what is missing, runs side by side; returns how many measurements were made.

    Args:
        study: whose; it must measure.
        only: see :func:`missing`.
        jobs: processes at once, with one thread each.
        scheduler: address of a Dask scheduler, whose workers see the same folders.
    """
    from joblib import Parallel, delayed
    from tqdm import tqdm

    calls = missing(study, only)
    if not calls:
        print(f"{study.name}: nothing is missing in {study.folder}")
        return 0
    hours, gigabytes = estimate(study, calls)
    print(
        f"{study.name}: {len(calls)} measurements of {len({(one.task, one.run) for one in calls if one.run})} fine-tuning runs;"
        f" about {hours:.1f} hours of one core here, {gigabytes:.1f} GB of classifiers in the cache",
        flush=True,
    )
    of_runs: dict[tuple[str, int], list[Call]] = {}
    for call in calls:
        of_runs.setdefault((call.task, call.run), []).append(call)
    with tqdm(total=len(calls), desc="measuring") as bar, _side_by_side(jobs, scheduler):
        arriving = Parallel(return_as="generator_unordered")(
            delayed(_make)(study, several) for several in of_runs.values()
        )
        for made in arriving:
            bar.update(made)
    return len(calls)


@contextmanager
def _side_by_side(jobs: int, scheduler: str) -> Iterator[None]:
    from joblib import parallel_config

    if not scheduler:
        with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
            yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(
            "a scheduler needs Dask: pip install 'bertology-utils[cluster]', on all of its workers as well"
        ) from None

    with Client(scheduler), parallel_config("dask"):
        yield


def _make(study: Study, calls: list[Call]) -> int:
    import torch

    quiet()
    if device().type == "cpu":  # sums depend on their number; two on one core wait for each other
        torch.set_num_threads(1)
    for call in calls:
        begun = time.monotonic()
        call.measurement(study, call.task, call.run, **call.options)
        note(f"{call}: {time.monotonic() - begun:.0f} s")
    return len(calls)
