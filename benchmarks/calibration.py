"""How often verdicts err, and intervals cover, where trainings differ: whole verdicts on numbers whose truth is known.

    python benchmarks/calibration.py [--draws N]

Of each task a number is drawn as it comes about: its truth, plus an error that all trainings share
    (the examples, with standard deviation 1), plus one of each training's own. Its variance is
    ``ratio`` times that of the examples, differing between tasks by a factor whose logarithm has
    the standard deviation ``spread``. Compared are ways to say how trainings
differ: from each task's own trainings (as it was), from all tasks as if they were alike, and
    between both.

Where all truths lie on the border, "on every task" must not come out as failed, nor "on some task"
as holding; where one lies there and the others far above, "on every task" must not hold; each in
2.5 % of cases, so that at most 5 % err. Written to calibration.json beside this script: for each
way the worst case over ratios.
"""

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np

from bertology_utils import statistics
from bertology_utils.statistics import ONE_SIDED, Estimate, many_test, moderated
from bertology_utils.verdicts import CLAIMS, RULES, Support, above, all_of, any_of

WAYS = {
    "own trainings only": 0.0,
    "prior 1": 1.0,
    "prior 2": 2.0,
    "prior 4": 4.0,
    "all tasks alike": 1e6,
}
RATIOS, SPREADS, TASKS, TRAININGS = (
    (0.0, 0.5, 1.0, 3.0, 10.0),
    (0.0, 0.5, 0.8),
    (3, 4, 7),
    (2, 3, 5),
)
EXAMPLES, FAR = 320, 20.0


def drawn(
    rng: np.random.Generator, tasks: int, trainings: int, ratio: float, spread: float
) -> dict[int, Estimate]:
    """One estimate for each task, all of whose truths are 0; errors from its own trainings only."""
    deviations = np.sqrt(ratio * np.exp(spread * rng.normal(size=tasks)))
    found = {}
    for task, deviation in enumerate(deviations):
        values = rng.normal() + deviation * rng.normal(size=trainings)
        of_examples = rng.chisquare(EXAMPLES - 1) / (EXAMPLES - 1)
        found[task] = statistics._of_trainings(list(values), of_examples, EXAMPLES)
    return found


def case(
    tasks: int, trainings: int, ratio: float, spread: float, draws: int
) -> dict[str, np.ndarray]:
    """By way: shares of covered truths, of false failures, and of both kinds of false holding."""
    rng = np.random.default_rng([tasks, trainings, int(10 * ratio), int(10 * spread)])
    sums = {way: np.zeros(4) for way in WAYS}
    for _ in range(draws):
        plain = drawn(rng, tasks, trainings, ratio, spread)
        for way, prior in WAYS.items():
            found = list((moderated(plain, prior) if prior else plain).values())
            covered = np.mean([low <= 0 <= high for low, high in (one.interval for one in found)])
            each = [above(one) for one in found]
            others = [above(one - -FAR) for one in found[1:]]
            sums[way] += (
                covered,
                all_of(each).fails <= ONE_SIDED,
                all_of([each[0], *others]).holds <= ONE_SIDED,
                any_of(each).holds <= ONE_SIDED,
            )
    return {way: total / draws for way, total in sums.items()}


def some_head(
    draws: int, tasks: int = 4, trainings: int = 2, heads: int = 24, examples: int = 100
) -> dict[str, float]:
    """How often "on every task some head" errs where no head does anything, or every head lies on the border of one."""
    claim, rng = CLAIMS["more-nouns"], np.random.default_rng(0)
    errors = np.zeros(2)
    for seed in range(draws):
        for at, border in enumerate((0.0, claim.least)):
            tests = [
                [
                    many_test(border + rng.normal(0, 0.1, (examples, heads)), claim.least, seed)
                    for _ in range(trainings)
                ]
                for _ in range(tasks)
            ]
            support: Support = RULES[claim.rule](tests, claim)
            errors[at] += support.holds <= ONE_SIDED or (at and support.fails <= ONE_SIDED)
    return dict(
        zip(("nothing there", "all on the border"), (errors / draws).round(4).tolist(), strict=True)
    )


def table(draws: int) -> list[dict]:
    """A row for each way, number of tasks, of trainings, and spread: the worst case over ratios."""
    rows = []
    for tasks, trainings, spread in product(TASKS, TRAININGS, SPREADS):
        cases = [case(tasks, trainings, ratio, spread, draws) for ratio in RATIOS]
        for way in WAYS:
            found = np.array([one[way] for one in cases])  # (ratios, 4)
            rows.append(
                {
                    "way": way,
                    "tasks": tasks,
                    "trainings": trainings,
                    "spread": spread,
                    "coverage, least": round(float(found[:, 0].min()), 4),
                    "coverage, most": round(float(found[:, 0].max()), 4),
                    "every task, falsely failed": round(float(found[:, 1].max()), 4),
                    "every task, falsely held": round(float(found[:, 2].max()), 4),
                    "some task, falsely held": round(float(found[:, 3].max()), 4),
                }
            )
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=2000, help="of each case")
    draws = parser.parse_args().draws
    content = {"draws": draws, "some head in each": some_head(draws // 10), "rows": table(draws)}
    Path(__file__).with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
