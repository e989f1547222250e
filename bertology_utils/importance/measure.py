"""Everything that notebook 9 measures, recorded and judged: would another measurement say the same of a head?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cache import cached
from ..common import track
from ..disabling import heads
from ..disabling.effects import compared_labels, compared_sweeps, sweep_run
from ..disabling.sweep import Sweep, sweep
from ..glue import Task
from . import agreement, luck
from .components import HEAD, Components, effects_on_parts

if TYPE_CHECKING:
    from ..lab import Lab

Sweeps = Mapping[Task, Mapping[tuple[int, str], Sweep]]  # by (number of the run, ablation)
RANDOM_ROWS = 100  # on which models of random weights are swept
AS_SHARE: dict[str, Any] = {"unit": "share", "tolerance": 0.05}
AGREEMENT: dict[str, Any] = {"by": ("task", "state"), "unit": "agreement", "tolerance": 0.1}


def run(lab: Lab) -> None:
    """Importance by seed, its variance components, reliability, other ablations, cheap measures, and luck."""
    uniform: Sweeps = {
        task: {(number, "uniform"): sweep_run(lab, task, number) for number in lab.trainings(task)}
        for task in lab.learned_tasks
    }
    costs = {
        task: effects_on_parts(task, several, lab.labels(task, "swept"), lab.settings.seed)
        for task, several in uniform.items()
    }  # (heads, runs, ablations, parts of the examples)
    record_runs(lab, costs)
    record_components(lab, uniform, costs)
    record_reliability(lab, costs)
    record_ablations(lab)
    record_controls(lab, costs)
    record_cheap_measures(lab, costs)
    record_luck(lab, uniform)


def record_runs(lab: Lab, costs: Mapping[Task, np.ndarray]) -> None:
    """What each head costs in every run, and whether two runs order the heads alike."""
    layers, per_layer = lab.config.num_hidden_layers, lab.config.num_attention_heads
    for task, effects in costs.items():
        n, rises = len(lab.labels(task, "swept")), effects.mean(axis=(2, 3)).T  # (runs, heads)
        shaped = [one.reshape(layers, per_layer) for one in rises]
        by = ("task", "training")
        lab.record("rise of the loss without a head", {task: shaped}, by, unit="loss", n=n)
    orders = {
        task: agreement.between_trainings(effects.mean(axis=(2, 3)), lab.settings.seed)
        for task, effects in costs.items()
    }
    what, unit = "rank correlation of heads' effects in two trainings", "correlation over heads"
    lab.record(what, orders, ("task",), unit=unit, tolerance=0.05)
    lab.judge("head-order")


def record_components(lab: Lab, uniform: Sweeps, costs: Mapping[Task, np.ndarray]) -> None:
    """How much of what heads differ by is the head's own, by loss and by score, and with each run in its own scale."""
    seed = lab.settings.seed
    by_score = {
        task: effects_on_parts(task, several, lab.labels(task, "swept"), seed, "score")
        for task, several in uniform.items()
    }
    scaled = {task: agreement.in_own_scale(effects) for task, effects in costs.items()}
    for what, state, several in (
        ("share of what heads differ by", {"state": "loss"}, costs),
        ("share of what heads differ by", {"state": "score"}, by_score),
        ("share in each training's own scale", {}, scaled),
    ):
        shares = {task: Components(effects).shares(seed) for task, effects in several.items()}
        lab.record(what, shares, ("task", "kind"), **state, **AS_SHARE)
    own = {task: Components(effects).above(0.5, seed) for task, effects in costs.items()}
    lab.judge("head-own", own)


def record_reliability(lab: Lab, costs: Mapping[Task, np.ndarray]) -> None:
    """How far two measurements with runs and examples of their own agree, computed from the components and counted."""
    seed, names = lab.settings.seed, agreement.STATEMENTS
    for task, effects in costs.items():
        scaled = Components(agreement.in_own_scale(effects))
        expected = [agreement.expected(scaled, runs, 1.0, seed) for runs in range(1, 6)]
        counted = [agreement.measured(effects[:, :, 0], runs, seed) for runs in (1, 2)]
        for what, several in (
            ("agreement of two measurements, by trainings", expected),
            ("agreement found between trainings", counted),
        ):
            by_name = {name: np.array([one[name] for one in several]) for name in names}
            kinds = [str(runs) for runs in range(1, len(several) + 1)]
            lab.record(what, {task: by_name}, over=("kind",), kinds=kinds, **AGREEMENT)
        for times in (1, 10):
            fewest = {task: agreement.enough(scaled, times, seed)}
            options = AGREEMENT | {"unit": "count", "tolerance": 3}
            kind = f"{times} × the examples"
            lab.record("trainings for an agreement of 0.8", fewest, kind=kind, **options)


def record_ablations(lab: Lab) -> None:
    """Whether other ablations order the heads of one run alike, and the ablation among the components."""
    task, seed = lab.tasks[0], lab.settings.seed  # that of which the first run has all ablations
    several, labels = compared_sweeps(lab, task), compared_labels(lab, task)
    by_ablation = {
        ablation: effects_on_parts(task, {(0, ablation): one}, labels, seed).mean(axis=(1, 2, 3))
        for (number, ablation), one in several.items()
        if number == 0
    }  # (heads,) each
    what, unit = "rank correlation of heads' effects by two ways", "correlation over heads"
    pairs = {task: agreement.ways_alike(by_ablation, seed)}
    lab.record(what, pairs, ("task", "kind"), unit=unit, tolerance=0.05)
    lab.judge("ways-agree")
    designs = {"one training, four ways": [key for key in several if key[0] == 0]}
    if (1, "zero") in several:
        both = [(number, ablation) for number in (0, 1) for ablation in ("uniform", "zero")]
        designs["two trainings, two ways"] = both
    for name, keys in designs.items():
        if keys:
            chosen = {key: several[key] for key in keys}
            effects = agreement.in_own_scale(effects_on_parts(task, chosen, labels, seed))
            shares = {task: Components(effects).shares(seed)}
            lab.record("share with several ways", shares, ("task", "kind"), state=name, **AS_SHARE)


def record_controls(lab: Lab, costs: Mapping[Task, np.ndarray]) -> None:
    """The head's own share where there is none to find: heads permuted within layers, and random weights."""
    seed, per_layer = lab.settings.seed, lab.config.num_attention_heads

    def own_share(effects: np.ndarray) -> dict[str, float]:
        return Components(effects).shares(seed)[HEAD]

    for task, effects in costs.items():
        shuffled = agreement.shuffled(effects, per_layer, seed)
        shares = {"as it is": own_share(effects), "shuffled within layers": own_share(shuffled)}
        lab.record("head's share, controls", {task: shares}, ("task", "kind"), **AS_SHARE)
    task = lab.tasks[0]
    labels = lab.labels(task, "swept", RANDOM_ROWS)
    batches = lab.lazy_batches(task, lab.rows(task, "swept", RANDOM_ROWS))
    random = {
        (number, "uniform"): cached(sweep, lab.untrained(task, "normal", number), batches)
        for number in range(2)
    }
    effects = agreement.in_own_scale(effects_on_parts(task, random, labels, seed))
    lab.record("head's share, random weights", own_share(effects), **AS_SHARE)


def measured_cheaply(lab: Lab, task: Task, number: int) -> dict[str, np.ndarray]:
    """Measures of a run's heads that need no ablation, each of shape (layers, heads), all from the cache."""
    rows = lab.rows(task, "swept", heads.DESCRIBED_ROWS)
    model, batches = lab.lazy_classifier(task, seed_offset=number), lab.lazy_batches(task, rows)
    described = heads.described(lab, task, number)
    near = [f"weight on {token}" for token in ("itself", "the previous token", "the next token")]
    return {
        "importance from gradients": cached(heads.gradient_importance, model, batches),
        "norm of its output": described["norm of its output"],
        "weight on [CLS] and [SEP]": described["weight on [CLS]"] + described["weight on [SEP]"],
        "weight on itself and its neighbours": np.sum([described[name] for name in near], axis=0),
        "distance from even weights": described["distance from even weights"],
    }


def record_cheap_measures(lab: Lab, costs: Mapping[Task, np.ndarray]) -> None:
    """How measures that need no ablation go with heads' effects: gradients, norms of outputs, attention maps."""
    for task, effects in track(list(costs.items()), "cheap importance"):
        by_run = [measured_cheaply(lab, task, number) for number in lab.trainings(task)]
        rises = effects.mean(axis=(2, 3))  # (heads, runs)
        correlations = {
            name: agreement.corrected(
                np.stack([one[name].ravel() for one in by_run], axis=1), rises
            )
            for name in by_run[0]
        }
        options: dict[str, Any] = {"unit": "correlation", "tolerance": 0.05}
        lab.record("cheap importance", {task: correlations}, ("task", "kind", "state"), **options)


def record_luck(lab: Lab, uniform: Sweeps) -> None:
    """What the largest published gains would be by luck, if heads turned as many answers as those measured here."""
    idle: dict[tuple[str, str], list[np.ndarray]] = {}  # of every run, shares of the answers
    for task, several in uniform.items():
        for what in ("head", "layer") if task.labels else ():
            labels, counts = lab.labels(task, "swept"), []
            for swept in several.values():
                outputs = swept.heads if what == "head" else swept.layers
                count, is_idle = luck.turned(task, swept.baseline, outputs, labels)
                counts.append(count.reshape(outputs.shape[:-2]))
                idle.setdefault((what, task.name), []).append(count[is_idle] / len(labels))
            options: dict[str, Any] = {"unit": "count", "tolerance": 2, "n": len(labels)}
            by = ("task", "training")
            lab.record(f"answers that a {what} turns", {task: counts}, by, **options)
            if what == "head":
                medians = {task: [np.median(count) for count in counts]}
                lab.record("answers that the median head turns", medians, by, **options)
    supports = {}
    for one in luck.PUBLISHED:
        for task in (task for task in uniform if task.name == one.task):
            supports[task] = luck.beyond(one, idle[one.what, one.task])
            chances = {
                f"{flips} answers each": luck.chance_of(one, [flips])
                for flips in (4, 5, 10, 20, 40)
            } | {"as many as here": supports[task].holds}
            what = "probability of such a gain by idle heads"
            lab.record(what, {task: chances}, ("task", "kind"), unit="p", tolerance=0.05)
    lab.judge("gains-beyond-luck", supports, model="bert-base-uncased, published gains")
    among = (144, 72, 36, 12)  # fewer than 144, as if heads of a layer turned the same answers
    table = {
        f"{flips} answers each": {
            f"{count} heads": luck.chance_of(luck.PUBLISHED[0], [flips], count) for count in among
        }
        for flips in (5, 6, 7, 8, 10, 20)
    }
    what = "probability of +1.2 on MRPC by idle heads"
    lab.record(what, table, ("state", "kind"), unit="p", tolerance=0.01)
