"""In how many runs each claim holds, does not hold, or is undecided: one run for each pre-trained encoder.

    python benchmarks/count_holds.py runs/pretrainings/*/*.json

A pre-training is the unit: the interval is Clopper and Pearson's (1934) of the share of encoders in
which a claim holds, of those in which it could be tested. Checkpoints of one pre-training are not
independent; give one of each. Claims about bert-base's own heads by their numbers are left out, as
these mean nothing in another pre-training.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from scipy.stats import binomtest

from bertology_utils.verdicts import FAILS, HOLDS, UNDECIDED, UNTESTABLE

BY_NUMBER = ("panels-rank", "clark-heads")


def count(paths: list[Path]) -> dict[str, Counter]:
    """Number of results files with each outcome, by claim.

    Raises:
        ValueError: a notebook twice of the same encoder, by its fingerprint.
    """
    counts: dict[str, Counter] = {}
    seen: dict[tuple[str, str], Path] = {}
    for path in paths:
        results = json.loads(path.read_text(encoding="utf-8"))
        encoder = results["notebook"], results["settings"]["model_fingerprint"]
        if encoder in seen:
            raise ValueError(
                f"{path} and {seen[encoder]} are of the same encoder; a pre-training counts once"
            )
        seen[encoder] = path
        for verdict in results["verdicts"]:
            if verdict["id"] not in BY_NUMBER:
                counts.setdefault(verdict["id"], Counter())[verdict["outcome"]] += 1
    return counts


def line(claim: str, counts: Counter) -> str:
    """One row of the table."""
    tested = sum(counts.values()) - counts[UNTESTABLE]
    share = "–"
    if tested:
        interval = binomtest(counts[HOLDS], tested).proportion_ci(0.95, method="exact")
        share = f"{counts[HOLDS] / tested:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
    return f"| {claim} | {counts[HOLDS]} of {tested} | {share} | {counts[FAILS]} | {counts[UNDECIDED]} |"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print("| claim | holds in | share, 95 % | does not hold | undecided |\n|---|---|---|---|---|")
    for name, found in count([Path(argument) for argument in sys.argv[1:]]).items():
        print(line(name, found))
