"""Dependency trees in a model's vectors and in its attention (notebook 11).

Whatever says of two words how likely they are adjacent says which tree is the likeliest: the
spanning tree with the highest sum. Hewitt and Manning (2019) train a map under which squared
distances are distances in the tree. For adjacency, two covariance matrices suffice: of the
difference of two adjacent words, and of two others (Köstinger et al., 2012).

``Tree``: a sentence; ``word_vectors``, ``word_attention``: what a model makes of several. ``fit``: the probe in closed
form; ``train_probe``: Hewitt and Manning's. ``tree_probe``: for any encoder and treebank.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import xarray as xr
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree, shortest_path
from scipy.spatial.distance import pdist, squareform
from scipy.stats import rankdata

from . import stats
from .annotation import Treebank, Word, read
from .batches import make_batches, prepare
from .dependencies import word_maps
from .hooks import unwrap
from .words import AnnotatedInput, Positions, place_sentences

if TYPE_CHECKING:
    import pandas as pd
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

LEAST = 50  # sentences to fit a probe on, and to test it on
RANK, SHRINKAGE = 64, 0.1  # directions of a probe; share of the mean variance that is added
EPOCHS, PER_STEP, RATE = 40, 20, 0.001  # how Hewitt and Manning's probe is trained


@dataclass(frozen=True)
class Tree:
    """The dependency tree of one sentence without its punctuation.

    Attributes:
        ids: the sentence's wordpieces, special tokens included.
        words: those that are no punctuation.
        pieces: the wordpieces of each of these.
        heads: the governor of each, as a place among them; -1 for none.
        distances: arcs between any two of them, shape (words, words).
    """

    ids: Positions
    words: tuple[Word, ...]
    pieces: tuple[Positions, ...]
    heads: np.ndarray
    distances: np.ndarray

    @classmethod
    def of(cls, annotated: AnnotatedInput) -> Tree:
        """The tree of a sentence; ValueError where it is none, or has too few words or too many wordpieces."""
        if annotated.unusable:
            raise ValueError(annotated.unusable)
        (sentence,) = annotated.sentences
        # Of 32 bits: older releases of scipy refuse a graph of others.
        heads = np.array([word.head for word in sentence.words], dtype=np.int32)
        below = np.flatnonzero(heads >= 0).astype(np.int32)
        if len(below) != len(heads) - 1:
            raise ValueError("not one root")
        graph = csr_array((np.ones(len(below)), (below, heads[below])), shape=(len(heads),) * 2)
        if connected_components(graph, directed=False)[0] > 1:
            raise ValueError("a cycle")
        kept = np.flatnonzero([word.upos != "PUNCT" for word in sentence.words])
        if len(kept) < 3:
            raise ValueError("fewer than three words")
        place = np.full(len(heads) + 1, -1)  # the last one stands for no governor
        place[kept] = range(len(kept))
        words = tuple(sentence.words[at] for at in kept)
        pieces = tuple(sentence.pieces[at] for at in kept)
        distances = shortest_path(graph, directed=False, unweighted=True)[np.ix_(kept, kept)]
        return cls(annotated.ids, words, pieces, place[heads[kept]], distances)

    @property
    def arcs(self) -> np.ndarray:
        """Dependent and governor of each arc, shape (arcs, 2)."""
        below = np.flatnonzero(self.heads >= 0)
        return np.stack([below, self.heads[below]], axis=1)

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """First and second word of all pairs, in the order of scipy's ``pdist``."""
        return np.triu_indices(len(self.words), 1)

    @property
    def adjacent(self) -> np.ndarray:
        """Which pairs an arc joins, shape (pairs,)."""
        return self.distances[self.pairs] == 1


def trees_of(inputs: Iterable[AnnotatedInput]) -> tuple[list[Tree], Counter[str]]:
    """The trees of the sentences that are some and fit into the model; and how many are left out, by reason."""
    trees, left_out = [], Counter[str]()
    for one in inputs:
        try:
            trees.append(Tree.of(one))
        except ValueError as error:
            left_out[str(error)] += 1
    return trees, left_out


def arcs_right(trees: Sequence[Tree], scores: np.ndarray) -> np.ndarray:
    """How many arcs of each sentence the spanning tree with the highest sum of scores has: (…, pairs) to (…, sentences)."""
    counts = np.zeros((*scores.shape[:-1], len(trees)), np.uint8)
    of_trees = np.split(scores, ends(trees, "adjacent")[:-1], axis=-1)
    for at, (tree, own) in enumerate(zip(trees, of_trees, strict=True)):
        lengths = rankdata(-own, "ordinal", axis=-1)  # their order suffices; of ties the first
        for place in np.ndindex(own.shape[:-1]):
            found = minimum_spanning_tree(squareform(lengths[place], checks=False))
            counts[(*place, at)] = (tree.distances[found.nonzero()] == 1).sum()
    return counts


def ends(trees: Sequence[Tree], what: str = "words") -> np.ndarray:
    """Where each sentence ends among the words of all, or among the pairs ("adjacent"); shape (sentences,)."""
    return np.cumsum([len(getattr(tree, what)) for tree in trees])


def word_vectors(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, trees: Sequence[Tree]
) -> np.ndarray:
    """Vectors of the words of all trees, before the first layer and after each; (layers + 1, words, width).

    A word's vector is the mean over its wordpieces.
    """
    batches = make_batches({"input_ids": [[*tree.ids] for tree in trees]}, tokenizer)
    (encoder, batches), found = prepare(unwrap(model).base_model, batches), {}
    for batch in batches:
        with torch.inference_mode():
            out = encoder(**batch.inputs, output_hidden_states=True, return_dict=True)
            states = torch.stack(out.hidden_states, dim=1)
        for index, own in zip(batch.index, states.float().cpu(), strict=True):
            words = [own[:, list(pieces)].mean(dim=1) for pieces in trees[index].pieces]
            found[index] = torch.stack(words, dim=1).numpy()
    return np.concatenate([found[at] for at in sorted(found)], axis=1)


def word_attention(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, trees: Sequence[Tree]
) -> np.ndarray:
    """Attention from the first to the second word of all pairs, and back; (2, layers, heads, pairs)."""
    batches = make_batches({"input_ids": [[*tree.ids] for tree in trees]}, tokenizer)
    encoder, words, found = unwrap(model).base_model, [tree.pieces for tree in trees], {}
    for index, maps in word_maps(encoder, batches, words):
        first, second = trees[index].pairs
        both = maps[..., first, second], maps[..., second, first]
        found[index] = torch.stack(both).half().numpy()
    return np.concatenate([found[at] for at in sorted(found)], axis=-1)


def covariances(vectors: np.ndarray, trees: Sequence[Tree]) -> tuple[np.ndarray, np.ndarray]:
    """How the difference of two words' vectors is spread: of adjacent words, and of all other pairs of a sentence.

    Two arrays of shape (width, width), in units of the mean variance of other pairs; else as :func:`fit`.
    """
    own = np.split(vectors.astype(float), ends(trees)[:-1])
    both = zip(trees, own, strict=True)
    steps = np.concatenate([np.subtract(*words[tree.arcs.T]) for tree, words in both])
    # The squares of all pairs' differences sum to n times those of the words from their mean.
    centred = np.concatenate([len(words) ** 0.5 * (words - words.mean(axis=0)) for words in own])
    pairs, adjacent = ends(trees, "adjacent")[-1], steps.T @ steps
    others = (centred.T @ centred - adjacent) / (pairs - len(steps))
    unit = np.trace(others) / len(others)
    if not unit > 1e-12:
        raise ValueError("the words of each sentence have one vector: there is nothing to fit")
    return adjacent / len(steps) / unit, others / unit


def fit(vectors: np.ndarray, trees: Sequence[Tree], rank: int = 0) -> np.ndarray:
    """The probe in closed form: squared distances say how much less likely two words are adjacent.

    If differences d of adjacent words are normal with covariance A, and those of all other pairs of
    a sentence with covariance N, the log of the likelihood ratio is half of d'(A⁻¹ − N⁻¹)d but for
    a constant. A direction v with N v = λ A v and v'A v = 1 counts with 1 − 1/λ in it.

    Args:
        vectors: of the words of all trees, shape (words, width).
        trees: of the sentences, in their order.
        rank: directions, the columns of the probe; 0 for :data:`RANK`, or all where there are fewer.

    A rank above the width, and vectors that do not differ, raise ValueError.
    """
    width = vectors.shape[1]
    rank = _rank(rank, width)
    adjacent, others = covariances(vectors, trees)
    adjacent += SHRINKAGE * np.eye(width)
    ratios, directions = eigh(others, adjacent, subset_by_index=[width - rank, width - 1])
    return directions * np.sqrt(1 - 1 / np.maximum(ratios, 1))


def _rank(rank: int, width: int) -> int:
    if not 0 <= rank <= width:
        raise ValueError(f"rank={rank}: choose 1 to {width}, the width of the model's vectors")
    return rank or min(RANK, width)


def train_probe(
    vectors: np.ndarray, trees: Sequence[Tree], rank: int = 0, seed: int = 1, epochs: int = EPOCHS
) -> np.ndarray:
    """Hewitt and Manning's probe, whose squared distances are trained to be distances in the tree; as :func:`fit`."""
    torch.manual_seed(seed)
    states = torch.split(torch.as_tensor(vectors).float(), [len(tree.words) for tree in trees])
    wanted = [torch.as_tensor(tree.distances[tree.pairs]).float() for tree in trees]
    width, steps = vectors.shape[1], -(-len(trees) // PER_STEP)
    probe = states[0].new_empty(width, _rank(rank, width)).uniform_(-0.05, 0.05).requires_grad_()
    optimizer = torch.optim.Adam([probe], lr=RATE)
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, epochs * steps)
    for some in chain(*(torch.randperm(len(trees)).split(PER_STEP) for _ in range(epochs))):
        optimizer.zero_grad()
        for one in some.tolist():
            squared = torch.nn.functional.pdist(states[one] @ probe).square()
            ((squared - wanted[one]).abs().mean() / len(some)).backward()
        optimizer.step()
        decay.step()
    return probe.detach().numpy().astype(float)


def probe_scores(probe: np.ndarray, vectors: np.ndarray, trees: Sequence[Tree]) -> np.ndarray:
    """Minus the squared distance of all pairs under a probe, shape (pairs,)."""
    mapped = np.split(vectors @ probe, ends(trees)[:-1])
    return -np.concatenate([pdist(words, "sqeuclidean") for words in mapped])


def tree_probe(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    train: str | Path,
    test: str | Path,
    rank: int = 0,
) -> pd.DataFrame:
    """How much of the dependency tree each layer of an encoder holds: the probe of one treebank on another's sentences.

    A tree's nodes are the syntactic words of Universal Dependencies. Sentences that are no tree, have
    fewer than three words without punctuation or more than 128 wordpieces, or stand in both files are
    left out.

    Args:
        model: encoder or classifier in evaluation mode.
        tokenizer: its own, a fast one.
        train, test: CoNLL-U files, plain or packed (.conllu.gz).
        rank: directions of the probe; 0 for 64, or the width of the vectors where it is smaller.

    Returns:
        A row for each layer, 0 for the vectors before the first one: UUAS (the share of arcs that are
        found, without direction) with its 95 % interval over sentences, that of the chain of
        neighbours, and the seconds that the probe took. ``attrs["left out"]`` counts by file and reason.

    Raises:
        FileNotFoundError, ValueError: no such file, or it is not CoNLL-U; one file for both; fewer
            than 50 usable sentences; a rank above the width; vectors that do not differ.
    """
    import pandas as pd

    banks = read(train), read(test)
    if Path(train).expanduser().samefile(Path(test).expanduser()):
        raise ValueError(f"train and test are one file, {train}: give other sentences to test on")
    fitted, of_train = _usable(banks[0], tokenizer)
    tested, of_test = _usable(banks[1], tokenizer, banks[0].sentences)
    vectors = [word_vectors(model, tokenizer, trees) for trees in (fitted, tested)]
    arcs = np.array([len(tree.arcs) for tree in tested])
    lengths = np.concatenate([abs(np.subtract(*tree.arcs.T)) for tree in tested])
    rows = []
    for layer, (known, new) in enumerate(zip(*vectors, strict=True)):
        start = time.perf_counter()
        probe = fit(known, fitted, rank)
        seconds = time.perf_counter() - start
        right = arcs_right(tested, probe_scores(probe, new, tested))
        both = (xr.DataArray([of], dims=("run", "example")) for of in (right, arcs))
        one = stats.estimate({"": stats.share(*both)})
        share = (one[name].item() / 100 for name in ("value", "low", "high"))
        rows.append((layer, *share, (lengths == 1).mean(), seconds))
    table = pd.DataFrame(rows, columns=["layer", "UUAS", "low", "high", "chain", "seconds"])
    table.attrs["left out"] = {"train": of_train, "test": of_test}
    return table


def _usable(
    bank: Treebank, tokenizer: PreTrainedTokenizerBase, known: Collection[str] = ()
) -> tuple[list[Tree], dict[str, int]]:
    """The trees of a treebank's sentences that are not known already, and what is left out; ValueError where they are too few."""
    new = {text: one for text, one in bank.sentences.items() if text not in known}
    trees, others = trees_of(place_sentences(new, tokenizer).values())
    counts = Counter(bank.left_out) + others
    counts += Counter({"also in the training file": len(bank.sentences) - len(new)})
    if len(trees) < LEAST:
        raise ValueError(
            f"{bank.name} has {len(trees)} usable sentences of {LEAST}{bank.losses(counts)}"
        )
    return trees, dict(counts)
