"""Do the checks pass on other machines? ``python tests/machines`` runs them on emulated ones (hours; see ``--help``).

Each machine has a cache and an output folder of its own under ``runs/machines/``,
so a second run does not train again.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

from bertology_utils.results import read_results, tidy

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
OUTPUT = ROOT / "runs" / "machines"

# What makes each round otherwise. Together they have three seeds of noise, one and two threads,
# PyTorch's plain and AVX2 kernels, and oneDNN and MKL held to older instructions (MKL listens on
# Intel's processors only). fmt: off
MACHINES = {
    "as-it-is": {},
    "noise-1-one-thread": {"BERTOLOGY_NOISE": "1", "OMP_NUM_THREADS": "1"},
    "noise-2-old-kernels": {
        "BERTOLOGY_NOISE": "2",
        "OMP_NUM_THREADS": "2",
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    },
    "noise-3-avx2-one-thread": {
        "BERTOLOGY_NOISE": "3",
        "OMP_NUM_THREADS": "1",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
}
# fmt: on


def main() -> int:
    """Run the checks on the machines that were asked for; returns 1 if any fails."""
    parser = argparse.ArgumentParser(prog="python tests/machines", description=__doc__)
    parser.add_argument(
        "machines",
        nargs="*",
        metavar="MACHINE",
        help=f"any of {', '.join(MACHINES)}; all by default",
    )
    parser.add_argument("--only", choices=("tests", "notebooks"), help="one of the two checks")
    options = parser.parse_args()
    if unknown := sorted(set(options.machines) - set(MACHINES)):
        parser.error(f"unknown machine {', '.join(unknown)}; choose from {', '.join(MACHINES)}")
    rows = [check(name, options.only) for name in options.machines or MACHINES]
    (OUTPUT / "table.json").write_text(json.dumps(rows, indent=1) + "\n")
    print("\n" + "\n".join(table(rows)))
    return int(any(row["failures"] for row in rows))


def check(name: str, only: str | None) -> dict:
    """Run both checks on one machine; returns a row of the table."""
    folder = OUTPUT / name
    fresh = folder / "notebooks"
    fresh.mkdir(parents=True, exist_ok=True)
    environment = (
        os.environ | MACHINES[name] | {"PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT)])}
    )
    own = {"BERTOLOGY_CACHE": str(folder / "cache"), "BERTOLOGY_OUTPUT": str(fresh)}
    row = {"machine": name, "failures": []}
    commands = {
        "tests": ["tests"],
        "notebooks": ["--nbval", "--nbval-cell-timeout=7200", "notebooks"],
    }
    for kind, arguments in commands.items():
        if only in (None, kind):
            report = folder / f"{kind}.xml"
            print(f"{name}: {kind}", flush=True)
            call = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *arguments]
            # Unit tests have folders of their own.
            of_kind = environment | (own if kind == "notebooks" else {})
            if kind == "notebooks":
                subprocess.run(
                    [sys.executable, "-m", "bertology_utils", "prepare"], cwd=ROOT, env=of_kind
                )
            subprocess.run(call, cwd=ROOT, env=of_kind)
            row[kind], failures = outcome(report)
            row["failures"] += failures
    row["largest"] = largest_differences(fresh)
    return row


def outcome(report: Path) -> tuple[int, list[str]]:
    """Number of tests in a JUnit report, and the names of those that failed."""
    if not report.exists():
        return 0, ["no report was written"]
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [
        f"{case.get('classname')} {case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    return len(cases), failed


def largest_differences(fresh: Path) -> dict[str, list]:
    """By kind of number: the largest difference from the committed results, what is allowed, and where it is."""
    largest: dict[str, list] = defaultdict(lambda: [0.0, 0.0, ""])
    for path in sorted(fresh.glob("*/results.json")):
        runs = [
            tidy(read_results(file).entries)
            for file in (ROOT / "figures" / path.parent.name / path.name, path)
        ]
        if len(runs[0]) != len(runs[1]):  # the check of the notebook says what is gone or new
            continue
        sizes = (runs[0]["value"].astype(float) - runs[1]["value"].astype(float)).abs()
        for unit, part in sizes.dropna().groupby(runs[0]["unit"]):
            row = runs[0].loc[part.idxmax()]
            if part.max() > largest[str(unit)][0]:
                largest[str(unit)] = [
                    part.max(),
                    row["tolerance"],
                    f"{path.parent.name}: {row['what']}",
                ]
    return dict(largest)


def table(rows: list[dict]) -> list[str]:
    """The rows as text."""
    lines = []
    for row in rows:
        lines.append(
            f"{row['machine']}: {row.get('tests', 0)} tests, {row.get('notebooks', 0)} cells and results,"
            f" {len(row['failures'])} failures"
        )
        lines += [f"  failed: {name}" for name in row["failures"]]
        lines += [
            f"  {kind}: at most {size:.1e} ({allowed} allowed), {place}"
            for kind, (size, allowed, place) in row["largest"].items()
        ]
    return lines


if __name__ == "__main__":
    sys.exit(main())
