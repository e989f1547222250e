"""The closed-form structural probe beside Hewitt and Manning's: UUAS and processor time, on the same sentences and in pairs.

    python benchmarks/tree_probe.py TREEBANK.conllu OUT.json [--layer 2] [--splits 10]

Each split draws half of the sentences to fit and tests on the rest. Their probe is trained twice as
it is told apart here: with distances by the Gram matrix (``trees.train_probe``, whole), and one
epoch with all differences of words as an array, as in their published code, whose cost for as many
epochs is that of one times their number. All have one rank. Time is that of this process on one
thread, so that others on the machine do not count.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from bertology_utils import load_encoder, load_tokenizer, trees
from bertology_utils.annotation.annotators import sentences_of
from bertology_utils.cache import write_atomically
from bertology_utils.statistics import bootstrap_mean


def by_differences(vectors):
    """Squared distances of all words, from an array of all differences."""
    return ((vectors[:, :, None] - vectors[:, None]) ** 2).sum(dim=-1)


def timed(call, *arguments, **options):
    start = time.process_time()
    value = call(*arguments, **options)
    return value, time.process_time() - start


def one_split(vectors, all_trees, seed):
    order = np.random.default_rng(seed).permutation(len(all_trees))
    halves = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    (known, fitted), (new, tested) = (
        (np.concatenate([vectors[at] for at in half]), [all_trees[at] for at in half])
        for half in halves
    )
    closed, seconds = timed(trees.fit, known, fitted)
    trained, by_gram = timed(trees.train_probe, known, fitted, seed=seed)
    plain, trees.squared_distances = trees.squared_distances, by_differences
    trees.Tree.distances, kept = property(lambda tree: distances[id(tree)]), trees.Tree.distances
    distances = {id(tree): plain(trees.ancestors(tree.heads).astype(float)) for tree in fitted}
    try:
        _, epoch = timed(trees.train_probe, known, fitted, seed=seed, epochs=1)
    finally:
        trees.squared_distances, trees.Tree.distances = plain, kept
    shares = [trees.arcs_of_probe(tested, new, probe).mean() for probe in (closed, trained)]
    return {
        "UUAS": {"closed form": shares[0], "trained": shares[1]},
        "seconds": {
            "closed form": seconds,
            "trained, by the Gram matrix": by_gram,
            "trained, by all differences": epoch * trees.EPOCHS,
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("treebank")
    parser.add_argument("out", type=Path)
    parser.add_argument("--layer", type=int, default=2)
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model, tokenizer = load_encoder("embedded"), load_tokenizer("embedded")
    corpus = trees.Corpus.of(sentences_of(options.treebank), tokenizer)
    ends = trees.sentence_ends(corpus.trees)
    vectors = np.split(corpus.vectors(model, tokenizer)[options.layer], ends[:-1])
    splits = [one_split(vectors, corpus.trees, seed) for seed in range(1, options.splits + 1)]
    for split in splits:
        print(split, flush=True)
    lead = np.array([one["UUAS"]["closed form"] - one["UUAS"]["trained"] for one in splits])
    mean = {
        part: {
            name: float(np.mean([one[part][name] for one in splits])) for name in splits[0][part]
        }
        for part in splits[0]
    }
    content = {
        "sentences": len(corpus.trees),
        "words": int(ends[-1]),
        "layer": options.layer,
        "rank": trees.RANK,
        "epochs": trees.EPOCHS,
        "mean": mean,
        "lead in UUAS": bootstrap_mean(lead, 1).summary(),
        "splits": splits,
    }
    write_atomically(options.out, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
