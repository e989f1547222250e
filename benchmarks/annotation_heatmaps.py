"""How much the heatmaps of §4.4 change if a spaCy pipeline annotates the embedded corpora instead of their grammar.

    python benchmarks/annotation_heatmaps.py PIPELINE

Writes its figures to annotation_heatmaps.json beside it: per type of token the correlation over all
heads, and the mean and largest difference of a head's mean weight. Pre-trained model, dev rows of
all seven tasks.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.stats import pearsonr, spearmanr

from bertology_utils.annotation import annotators
from bertology_utils.annotation.inputs import TOKEN_TYPES, annotate_inputs, token_types
from bertology_utils.attention import observe
from bertology_utils.common import quiet
from bertology_utils.features import Features
from bertology_utils.lab import Lab


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipeline")
    options = parser.parse_args()
    quiet()
    lab = Lab("4_feature_attention")
    sources = {
        "gold": lab.annotator,
        "spaCy": annotators.load_annotator(f"spacy:{options.pipeline}"),
    }
    values = {name: [] for name in sources}
    alike = {
        kind: [0, 0, 0] for kind in TOKEN_TYPES
    }  # wordpieces of the type: in both, gold, spaCy
    for task in lab.tasks:
        types = {}
        for name, annotator in sources.items():
            inputs = annotate_inputs(
                lab.rows(task, "dev"),
                task.fields,
                lab.tokenizer,
                lab.settings.profile.recipe.max_length,
                annotator,
            )
            types[name] = [token_types(annotated) for annotated in inputs]
        found = observe(
            lab.encoder(),
            lab.batches(task),
            {name: Features(masks) for name, masks in types.items()},
        )
        for name in sources:
            values[name].append(found[name])
        for at, kind in enumerate(TOKEN_TYPES):
            pairs = [(gold[at], other[at]) for gold, other in zip(*types.values(), strict=True)]
            for part, count in enumerate(
                [
                    sum((a & b).sum() for a, b in pairs),
                    sum(a.sum() for a, _ in pairs),
                    sum(b.sum() for _, b in pairs),
                ]
            ):
                alike[kind][part] += int(count)
    means = {
        name: np.nanmean(np.concatenate(of_tasks), axis=0) for name, of_tasks in values.items()
    }  # (types, layers, heads)
    found = {
        "pipeline": sources["spaCy"].name,
        "examples": sum(map(len, values["gold"])),
        "types": {},
    }
    for at, kind in enumerate(TOKEN_TYPES):
        a, b = (means[name][at].ravel() for name in sources)
        both, gold, parsed = alike[kind]
        found["types"][kind] = {
            "Pearson": round(float(pearsonr(a, b).statistic), 4),
            "Spearman": round(float(spearmanr(a, b).statistic), 4),
            "mean difference": round(float(np.abs(a - b).mean()), 5),
            "largest difference": round(float(np.abs(a - b).max()), 5),
            "mean weight": round(float(a.mean()), 5),
            "wordpieces": gold,
            "F1 of wordpieces": round(2 * both / (gold + parsed), 4),
        }
        print(kind, found["types"][kind])
    Path(__file__).with_suffix(".json").write_text(
        json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    )


if __name__ == "__main__":
    main()
