"""How long all measurements of §4.1, §4.3, §4.4 and §4.5 take for one task, in one pass per model.

    python benchmarks/one_pass.py --data folder:PATH --annotation spacy:NAME [--task stsb] [--examples 1000] [--shape minilm]

Writes its figures to one_pass_SHAPE.json beside it. The bert-base-shaped models have random weights: time does not
depend on what the weights are. Annotation is counted apart; it is kept in the cache.
"""

import argparse
import json
import time
from pathlib import Path

import torch
from datasets import disable_progress_bar
from sweep_speed import SHAPES, load

from bertology_utils import features, glue, models
from bertology_utils.annotation import annotators
from bertology_utils.annotation.inputs import annotate_inputs, token_types
from bertology_utils.attention import ByNorm, batches, observe
from bertology_utils.drift.measure import Drift
from bertology_utils.features.reading import match
from bertology_utils.glue import get_task
from bertology_utils.links import dependencies, measure
from bertology_utils.links.measure import TokenLinkAttention
from bertology_utils.patterns import classifiers
from bertology_utils.patterns.measure import Patterns
from bertology_utils.sources import parse_data, parse_model

MAX_LENGTH = 128


def measurements(inputs, annotator, tokenizer) -> dict:
    """Every measurement of one model but drift, which needs two."""
    types = [token_types(annotated) for annotated in inputs]
    return {
        "patterns": Patterns(classifiers.load_network(), tokenizer.sep_token_id),
        "types": features.Features(types),
        "types, official": features.Features([token_types(annotated, "official") for annotated in inputs]),
        "from [CLS]": features.Features(types, "[CLS]"),
        "matched": features.Features(match(inputs, 1).masks),
        "flow": features.Flow([features.marks(annotated) for annotated in inputs]),
        "links": TokenLinkAttention([measure.find_links(annotated, annotator.antecedents) for annotated in inputs]),
        "pointing": dependencies.Pointing(inputs),
    }


def main() -> None:
    """Time annotation, preparation and the pass; write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--annotation", required=True)
    parser.add_argument("--task", default="stsb")
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--shape", choices=SHAPES, default="minilm")
    options = parser.parse_args()
    disable_progress_bar()
    task, tokenizer = get_task(options.task), models.load_tokenizer(parse_model("embedded"))
    rows = glue.sample(glue.load_rows(task, "dev", parse_data(options.data)), options.examples, 1)
    seconds, start = {}, time.perf_counter()

    def lap(name: str) -> None:
        nonlocal start
        seconds[name] = round(time.perf_counter() - start, 1)
        start = time.perf_counter()

    annotator = annotators.load_annotator(options.annotation)
    inputs = annotate_inputs(rows, task.fields, tokenizer, MAX_LENGTH, annotator)
    lap("annotation")
    made = batches.make_batches(batches.tokenize(rows, task, tokenizer, MAX_LENGTH), tokenizer)
    model, reference = load(options.shape, task), load(options.shape, task)
    of_reference = measurements(inputs, annotator, tokenizer)
    of_model = measurements(inputs, annotator, tokenizer) | {"drift": Drift(reference, of_reference=of_reference)}
    lap("preparation")
    observe(model, made, of_model)
    computed = [measurement.compute() for measurement in of_reference.values()]
    lap("one pass of both models with all measurements")
    observe(reference, made, {"drift": Drift(model)})
    lap("for comparison: both models with drift alone")
    observe(model, made, {"patterns": of_model["patterns"]})
    lap("for comparison: one model with patterns alone")
    observe(model, made, measurements(inputs, annotator, tokenizer))
    lap("for comparison: one model with all measurements but drift, by weight")
    observe(model, made, {name: ByNorm(one) for name, one in measurements(inputs, annotator, tokenizer).items()})
    lap("for comparison: the same by norm")
    lengths = [annotated.length for annotated in inputs]
    found = {
        "shape": options.shape,
        "task": task.name,
        "examples": len(inputs),
        "mean length": sum(lengths) / len(lengths),
        "measurements": len(of_model) + len(computed),
        "threads": torch.get_num_threads(),
        "seconds": seconds,
    }
    Path(__file__).with_name(f"one_pass_{options.shape}.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
