"""Which heads point along dependencies of a treebank with gold annotation, as Clark et al. (2019) ask it.

    python benchmarks/ud_heads.py FILE.conllu [FILE.conllu …] [--model embedded] [--seed 1]

Writes its table to ud_heads.json beside it; a model with random weights is measured beside the model.
"""

import argparse
import json
from pathlib import Path

from datasets import Dataset, disable_progress_bar

from bertology_utils import models
from bertology_utils.annotation.annotators import Known, read
from bertology_utils.annotation.inputs import annotate_inputs
from bertology_utils.attention import batches, observe
from bertology_utils.common import head_name
from bertology_utils.glue import TASKS
from bertology_utils.links import dependencies
from bertology_utils.sources import parse_model

MAX_LENGTH = 128
ONE_TEXT = TASKS["sst2"]  # any task of one sentence: only its field matters here


def row(test):
    """One relation's line of the table beside Clark et al.'s, in points."""
    clark = dependencies.CLARK[test.relation]
    head = "-".join(head_name(*clark.at).strip("()").split(", "))
    return {
        "relation": test.relation,
        "arcs": test.arcs,
        "attention": test.way,
        "best head": head_name(*test.head),
        "its accuracy": test.accuracy.text(100),
        "best distance": f"{test.offset:+d}",
        "that": test.baseline.text(100),
        "difference": test.difference.text(100, sign=True),
        "held out": f"{100 * test.held_out:+.1f}",
        "heads that beat it": len(test.beats),
        "Clark et al. (distance)": f"{head} {clark.accuracy} ({clark.offset})",
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    disable_progress_bar()
    sentences = {text: parsed for path in options.files for text, parsed in read(path).items() if len(parsed) == 1}
    source = parse_model(options.model)
    tokenizer = models.load_tokenizer(source)
    rows = Dataset.from_dict({"sentence": list(sentences), "label": [0] * len(sentences)})
    inputs = annotate_inputs(rows, ONE_TEXT.fields, tokenizer, MAX_LENGTH, Known("treebank", sentences, antecedents=False))
    made = batches.make_batches(batches.tokenize(rows, ONE_TEXT, tokenizer, MAX_LENGTH), tokenizer)
    found = {"files": [Path(path).name for path in options.files], "sentences": len(sentences), "relations": {}}
    for init in ("pretrained", "normal"):
        pointing = dependencies.Pointing(inputs)
        arcs = observe(models.load_encoder(source, init, options.seed), made, {"pointing": pointing})["pointing"]
        found["sentences not whole"] = pointing.left_out
        found["relations"][init] = [
            row(dependencies.relation_test(name, of_relation, options.seed)) for name, of_relation in arcs.items()
        ]
        for line in found["relations"][init]:
            print(init, line)
    Path(__file__).with_suffix(".json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
