"""Which heads point along dependencies of a treebank with gold annotation, beside Clark et al.'s table.

    python benchmarks/ud_heads.py FILE.conllu [--model embedded] [--seed 1]

Writes its table to ud_heads.json beside it; a model with random weights is measured beside the
model.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import pandas as pd

from bertology_utils import head_dependencies, load_encoder, load_tokenizer
from bertology_utils.common import head_name
from bertology_utils.links.dependencies import CLARK
from bertology_utils.settings import parse_model
from bertology_utils.statistics import p_text


def row(one: pd.Series) -> dict[str, object]:
    """A line of the table, in percent, with Clark et al.'s number where they have one: of the better direction of theirs."""
    clark = CLARK.get(one["relation"])
    shares = {
        title: f"{100 * one[f'{part}: share of arcs']:.1f} [{100 * one[f'{part}: low']:.1f}, {100 * one[f'{part}: high']:.1f}]"
        for part, title in (("head", "it finds"), ("distance", "that finds"))
    }
    return {
        "relation": one["relation"],
        "direction": one["direction"],
        "arcs": one["arcs"],
        "best head": one["best head"],
        "it finds": shares["it finds"],
        "best distance": f"{one['best fixed distance']:+d}",
        "that finds": shares["that finds"],
        "p": p_text(one["p"]),
        "Clark et al. (distance)": f"{head_name(*clark.at)} {clark.accuracy} ({clark.offset})"
        if clark
        else "–",
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    source = parse_model(options.model)
    tokenizer = load_tokenizer(source)
    found: dict[str, Any] = {"file": Path(options.file).name, "relations": {}}
    for init in ("pretrained", "normal"):
        table = head_dependencies(
            load_encoder(source, init, options.seed), tokenizer, options.file, seed=options.seed
        )
        found["sentences not whole"] = sum(table.attrs["left out"].values())
        found["relations"][init] = [
            row(one) for _, one in table.head(24).iterrows()
        ]  # the twelve commonest, both ways
        print(init, table.to_string(), sep="\n")
    Path(__file__).with_suffix(".json").write_text(
        json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    )


if __name__ == "__main__":
    main()
