"""Are the variance components of notebook 9 right, and do their intervals cover what they should?

python benchmarks/importance_calibration.py    # renews importance_calibration.json, about three
minutes

Effects of 72 heads with known components are made up many times: of heads that differ as a normal
    distribution says; of heads of which a few do nearly all, as in fine-tuned models; and of such
    heads where trainings move those most that do most.
For each case: the bias of each component, in percent of the true one, and how often the 95 %
    interval of its share has it.
"""

import json
from pathlib import Path

import numpy as np

from bertology_utils.importance.components import EXAMPLES, HEAD, NOISE, PARTS, TRAINING, Components

HEADS, TIMES = 72, 1000
# Of one measurement: variance of the head, head × training, head × examples (of all), the rest (of
# all); as MRPC, SST-2.
KINDS = ("normal", "a few heads do most", "a few heads do most and are moved most")
CASES = {"mostly the head": (0.5, 0.4, 0.04, 0.06), "mostly the examples": (0.2, 0.1, 0.25, 0.45)}


def made_up(trainings, truth, kind, rng):
    """Effects (heads, trainings, 1, parts), and the true components of these heads by name."""
    own, moved, shared, rest = truth
    size = rng.standard_normal(HEADS) if kind == KINDS[0] else rng.standard_t(4, HEADS)
    size -= size.mean()
    size *= np.sqrt(own / size.var(ddof=1))
    by_head = 0.3 * own + size**2 if kind == KINDS[2] else np.ones(HEADS)
    by_head = np.sqrt(by_head / by_head.mean())[:, None, None, None]
    shape = (HEADS, trainings, 1, PARTS)
    effects = size[:, None, None, None] + by_head * np.sqrt(moved) * rng.standard_normal(
        (HEADS, trainings, 1, 1)
    )
    effects = effects + np.sqrt(PARTS * shared) * rng.standard_normal((HEADS, 1, 1, PARTS))
    effects = effects + np.sqrt(PARTS * rest) * rng.standard_normal(shape)
    return effects, dict(zip((HEAD, TRAINING, EXAMPLES, NOISE), truth, strict=True))


def calibrated(trainings, truth, kind, times=TIMES):
    """Bias in percent of the truth, and coverage of the share in percent, by component."""
    found, covered = [], []
    for number in range(times):
        effects, true = made_up(
            trainings, truth, kind, np.random.default_rng((number, trainings, KINDS.index(kind)))
        )
        one, total = Components(effects), sum(true.values())
        raw, shares = one.raw, one.shares(0)
        found.append(
            [raw[()], raw["training",], raw["part",] / PARTS, raw["training", "part"] / PARTS]
        )
        covered.append(
            [
                shares[name]["low"] <= value / total <= shares[name]["high"]
                for name, value in true.items()
            ]
        )
    bias = 100 * (np.mean(found, axis=0) / np.array(truth) - 1)
    names = (HEAD, TRAINING, EXAMPLES, NOISE)
    return {
        name: {"bias, %": round(float(b), 1), "coverage, %": round(100 * float(c), 1)}
        for name, b, c in zip(names, bias, np.mean(covered, axis=0), strict=True)
    }


def main():
    """Every case with two, three and five trainings."""
    table = {
        f"{case}; {kind}; {trainings} trainings": calibrated(trainings, truth, kind)
        for case, truth in CASES.items()
        for kind in KINDS
        for trainings in (2, 3, 5)
    }
    for name, row in table.items():
        print(name, row)
    content = {"heads": HEADS, "times": TIMES, "parts": PARTS, "cases": table}
    Path(__file__).with_suffix(".json").write_text(
        json.dumps(content, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
