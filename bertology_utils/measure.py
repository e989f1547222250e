"""``make measure``: what a study's ``results/`` lacks, from raw rows; it says hours and gigabytes before it begins."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .batches import batches_of
from .common import device, note, one_of, quiet
from .measurements import MEASUREMENTS, PLAN
from .store import Measurement
from .study import Study

SENTENCE = "Of sentences without a task one is timed that is about as long as most of them, with its comma, and its end."
TRIED = 16  # rows whose forward pass is timed for the estimate
OF_A_PASS = 3  # a step of fine-tuning takes as long as so many forward passes of its rows


# By task and run, or 0 for the run of what is measured on sentences: measurements and their options.
Missing = dict[tuple[str, int], list[tuple[Measurement, dict[str, Any]]]]


def missing(study: Study, only: str = "") -> Missing:
    """The measurements that a study lacks, run by run, so that each run is fine-tuned once.

    Args:
        study: whose.
        only: names of measurements with commas between; "" for all.

    Raises:
        ValueError: an unknown measurement, or one on file that was measured with other settings.
    """
    named = [name.strip() for name in only.split(",") if name.strip()]
    names = {one_of("measurement", name, MEASUREMENTS) for name in named or MEASUREMENTS}
    runs: Missing = {}
    for measurement, options in PLAN:
        for task, run in measurement.cases(study) if measurement.name in names else ():
            if measurement.path(study, task, run, **options).exists():
                measurement(study, task, run, **options)  # or refused
            else:
                runs.setdefault((task, run), []).append((measurement, options))
    return runs


def estimate(study: Study, runs: Missing) -> tuple[float, float]:
    """Hours of one core that what is missing takes here, and gigabytes of the classifiers that it needs."""
    import torch

    seconds, model = 0.0, study.encoder()
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    sentences = batches_of([SENTENCE] * TRIED, study.tokenizer)
    torch.set_num_threads(1)
    for (task, run), several in runs.items():
        batches = study.batches(task, TRIED) if run else sentences
        begun = time.monotonic()
        with torch.inference_mode():
            for batch in batches:
                model(**batch.to(model.device).inputs)
        of_a_row = (time.monotonic() - begun) / sum(len(batch.index) for batch in batches)
        if run:
            passes = OF_A_PASS * study.settings.recipe.epochs
            seconds += passes * len(study.train_rows(task)) * of_a_row
        for measurement, options in several:
            count = measurement.count(study, **options)
            rows = study.size(task, count, **measurement.options(options))
            each = measurement.passes
            seconds += (each(layers, heads) if callable(each) else each) * rows * of_a_row
    size = sum(4 * part.numel() for part in model.parameters())
    return seconds / 3600, size * sum(run > 0 for _, run in runs) / 2**30


def measure(study: Study, only: str = "", jobs: int = 1, scheduler: str = "") -> None:
    """Make what is missing, runs side by side.

    Args:
        study: whose; it must measure.
        only: see :func:`missing`.
        jobs: processes at once, with one thread each.
        scheduler: address of a Dask scheduler, whose workers see the same folders.
    """
    from joblib import Parallel, delayed
    from tqdm import tqdm

    runs = missing(study, only)
    if not runs:
        print(f"{study.name}: nothing is missing in {study.folder}")
        return
    hours, gigabytes = estimate(study, runs)
    total = sum(map(len, runs.values()))
    print(
        f"{study.name}: {total} measurements of {sum(run > 0 for _, run in runs)} fine-tuning runs; about {hours:.1f} hours"
        f" of one core here, {gigabytes:.1f} GB of classifiers in the cache",
        flush=True,
    )
    with tqdm(total=total, desc="measuring") as bar, _side_by_side(jobs, scheduler):
        arriving = Parallel(return_as="generator_unordered")(
            delayed(_make)(study, *case, several) for case, several in runs.items()
        )
        for made in arriving:
            bar.update(made)


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


def _make(
    study: Study, task: str, run: int, several: list[tuple[Measurement, dict[str, Any]]]
) -> int:
    import torch

    quiet()
    if device().type == "cpu":  # sums depend on their number; two on one core wait for each other
        torch.set_num_threads(1)
    for measurement, options in several:
        begun = time.monotonic()
        measurement(study, task, run, **options)
        name = ", ".join([measurement.name, *map(str, options.values())])
        note(f"{name}: {task}{f', run {run}' if run else ''}: {time.monotonic() - begun:.0f} s")
    return len(several)
