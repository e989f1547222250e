"""The network that tells patterns of attention maps apart (§4.1), and how well it does on heads that it has not seen.

    python benchmarks/pattern_network.py

writes ``bertology_utils/pattern_network.safetensors``, a network trained on all labelled maps, and the column "network"
of the tables of labels: what a network called each map that was trained on the other folds. A head shows much the same
map for every input, and fine-tuning changes few heads, so a head's maps are always held out together. Some five minutes
on one core.
"""

import sys

import numpy as np
import pandas as pd
import safetensors.torch
import torch
from torch import nn

from bertology_utils.patterns import (
    ENCODERS,
    FOLDER,
    PATTERNS,
    SHORTEST,
    WEIGHTS,
    PatternCNN,
    as_tensors,
    classify,
    indices,
    load_maps,
    pictures,
    to_images,
)

BATCH, RATE, SEED, EPOCHS = 32, 2e-3, 1, 60


def main():
    torch.set_num_threads(1)
    labelled = load_maps()
    maps, patterns = pictures(labelled), indices(labelled["pattern"])
    network = train(maps, patterns)
    safetensors.torch.save_file(network.state_dict(), WEIGHTS)
    called = np.full(len(maps), -1)
    for fold in sorted(set(labelled["fold"])):
        held_out = np.flatnonzero(labelled["fold"] == fold)
        rest = np.flatnonzero(labelled["fold"] != fold)
        network = train([maps[row] for row in rest], patterns[rest])
        called[held_out] = classify(network, [maps[row] for row in held_out])
        right = np.mean(called[held_out] == patterns[held_out])
        print(f"fold {fold}: {right:.2f} of {len(held_out)} right", file=sys.stderr, flush=True)
    for encoder, folder in ENCODERS.items():
        path = FOLDER / folder / "labels.csv"
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        table["network"] = np.take(PATTERNS, called[labelled["encoder"] == encoder])
        table.to_csv(path, index=False)


def train(maps, patterns, seed=SEED):
    """A network trained on labelled maps, in evaluation mode; on one core somewhat less than a minute for 500 maps.

    The seed is that of its first weights, the order of the maps, their random changes, and dropout.
    """
    rng, targets = np.random.default_rng(seed), torch.from_numpy(patterns.astype(np.int64))
    torch.manual_seed(seed)
    network = PatternCNN()
    for layer in network.layers:
        if isinstance(layer, nn.Conv2d):  # else eight layers with ReLU hardly start to learn
            nn.init.kaiming_normal_(layer.weight)
            nn.init.zeros_(layer.bias)
    per_pass = -(-len(maps) // BATCH)
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=EPOCHS * per_pass)
    for _ in range(EPOCHS):
        for rows in np.array_split(rng.permutation(len(maps)), per_pass):
            changed = [as_tensors(*augmented(maps[row], rng)) for row in rows]
            images = torch.cat([to_images(one.float()) for one, _ in changed])
            # Smoothed labels: two readers give one map in ten different ones.
            loss = nn.functional.cross_entropy(
                network.of_images(images), targets[rows], label_smoothing=0.1
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return network.eval()


# Random changes that keep a map's pattern, to make more of few maps. ---


def augmented(picture, rng):
    """One random change of each kind, each with probability one half; the reversal last, as others look for [CLS] first."""
    for change in (swapped_sentences, merged_tokens, sharpened, with_ground, reversed_tokens):
        if rng.random() < 0.5:
            picture = change(picture, rng)
    return picture


def reordered(picture, order):
    """The map with its tokens in another order."""
    weights, separators = picture
    return weights[np.ix_(order, order)], separators[order]


def reversed_tokens(picture, rng):
    """From last to first: a column stays a column, the previous token becomes the next, blocks stay blocks."""
    return reordered(picture, np.arange(len(picture[0]))[::-1])


def swapped_sentences(picture, rng):
    """The words of two sentences change places, whose [SEP] stay where sentences meet; one sentence stays as it is."""
    separators = np.flatnonzero(picture[1])
    if len(separators) < 2:
        return picture
    places = np.arange(len(picture[0]))
    first, second = places[1 : separators[0]], places[separators[-2] + 1 : separators[-1]]
    end = places[separators[-1] :]
    return reordered(picture, np.concatenate([[0], second, separators[:-1], first, end]))


def merged_tokens(picture, rng, most=0.2):
    """Up to a fifth of the tokens become one with the next, as wordpieces become a word; never [CLS] and [SEP].

    The merged token attends as its parts do on average, and is attended to as much as they are together (Clark et al.,
    2019, §4.1). Leaving tokens out instead could remove the column that makes the pattern.
    """
    weights, separators = picture
    apart = rng.random(len(weights)) >= rng.uniform(0, most)
    apart |= separators
    apart[:2] = True  # [CLS] and what follows it
    apart[1:] |= separators[:-1]
    member = np.cumsum(apart) - 1  # (tokens,): the merged token that each becomes part of
    if member[-1] + 1 < SHORTEST:
        return picture
    joins = (member == np.arange(member[-1] + 1)[:, None]).astype(weights.dtype)  # (merged, tokens)
    merged = joins / joins.sum(axis=1, keepdims=True) @ weights @ joins.T  # (merged, merged)
    return merged, separators[apart]


def sharpened(picture, rng):
    """Weights to a power from 0.8 to 1.25, as if the softmax had another temperature."""
    weights, separators = picture
    sharp = weights ** np.exp(rng.uniform(np.log(0.8), np.log(1.25)))
    return sharp / sharp.sum(axis=1, keepdims=True), separators


def with_ground(picture, rng, most=0.15):
    """A little uniform attention mixed in."""
    weights, separators = picture
    share = rng.uniform(0, most)
    return (1 - share) * weights + share / len(weights), separators


if __name__ == "__main__":
    main()
