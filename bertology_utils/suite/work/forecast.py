"""What a run on GLUE itself would take, said before any of it is fetched: from GLUE's sizes and a GPU's known speed."""

from __future__ import annotations

from collections.abc import Mapping

from ...common.profiles import HUB_SHAPES
from ...disabling.needs import SweepOf
from ...disabling.sweep import TOKENS_AT_ONCE
from ...encoders import cost
from ..parameters import Settings
from . import estimates
from .needs import Need, needs_of

# Rows, and wordpieces of an input on average (uncased BERT, at most 128): (training, dev). Of QQP and QNLI, whose rows
# were not all at hand, the wordpieces are rounded.
GLUE_SIZES = {
    "mrpc": ((3668, 53.1), (408, 53.2)),
    "stsb": ((5749, 27.9), (1500, 31.5)),
    "sst2": ((67349, 13.3), (872, 25.2)),
    "qqp": ((363846, 30.0), (40430, 30.0)),
    "rte": ((2490, 66.6), (277, 64.6)),
    "qnli": ((104743, 50.0), (5463, 50.0)),
    "mnli": ((392702, 39.0), (9815, 39.1)),
}
BERT_BASE_SIZE = cost.Size(12, 12, 768, 3072, 30522)
# NVIDIA's data sheet of the T4: 65 TFLOP/s in half precision, 8.1 in single. A product of matrices is taken to reach
# half of either, so that a training (TRAINING_SHARE of that) comes to 30 % of the peak. Not measured.
T4_HALF, T4_SINGLE = 0.5 * 65e12, 0.5 * 8.1e12


def on_t4(settings: Mapping[str, Settings]) -> str:
    """Time, memory of the GPU and disk of all trainings and sweeps on a T4, in a sentence; "" where it is not known.

    Args:
        settings: of each notebook, by name. Known is bert-base-uncased on GLUE from the Hub.
    """
    wanted = {
        need: one
        for name, one in settings.items()
        if one.data.kind == "hub" and one.model.name.partition("@")[0] in HUB_SHAPES
        for need in needs_of(name, one)
    }
    found = [_estimate(need, one) for need, one in wanted.items()]
    if not found:
        return ""
    hours = sum(one.seconds for one in found) / 3600
    disk = sum(one.kept for one in found) + max(one.passing for one in found)
    memory = max(one.on_gpu for one in found)
    sweeps = sum(isinstance(need, SweepOf) for need in wanted)
    return (
        f"on a T4, by its data sheet, {len(wanted) - sweeps} trainings and {sweeps} sweeps of heads take about"
        f" {hours:.1f} hours, {memory / 2**30:.1f} GiB of the GPU's memory and {disk / 2**30:.0f} GiB of disk;"
        " then the notebooks themselves. `prepare` measures the machine that it runs on"
    )


def _estimate(need: Need, settings: Settings) -> estimates.Estimate:
    swept, training = isinstance(need, SweepOf), need.training if isinstance(need, SweepOf) else need
    there, tokens = GLUE_SIZES[training.task.name][swept]
    limit = settings.sweep_examples if swept else settings.train_examples
    rows = min(there, limit or there)
    if swept:
        found = cost.of_sweep(BERT_BASE_SIZE, rows, tokens, TOKENS_AT_ONCE["cuda"])
        return estimates.of_cost(BERT_BASE_SIZE, found, T4_SINGLE, estimates.SWEEP_SHARE, on_gpu=True)
    recipe = settings.profile.recipe_of(training.init)
    found = cost.of_training(BERT_BASE_SIZE, rows, tokens, recipe.epochs, recipe.batch_size, recipe.max_length, mixed=True)
    steps = -(-rows // recipe.batch_size) * recipe.epochs
    return estimates.of_cost(BERT_BASE_SIZE, found, T4_HALF, estimates.TRAINING_SHARE, steps, on_gpu=True)
