"""Dependency trees in a model's vectors, or in its attention: a structural probe in closed form (notebook 11).

Hewitt and Manning (2019) look for a linear map under which the squared distance of two words is
their distance in the tree, and train it by gradient descent. But UUAS, the score, asks only which
words are adjacent. For that it suffices to know how the difference of two adjacent words is spread,
and how that of two others is: both covariances say how much likelier two words are adjacent
(Köstinger et al., 2012), and then the minimum spanning tree is the likeliest tree. The map comes
from generalised eigenvectors, without training.

``Tree``, ``Corpus``: annotated sentences, and a model's vectors of their words. ``fit``: the probe;
``train_probe``: Hewitt and Manning's. ``tree_probe``: for any encoder and treebank. Controls, and
all that notebook 11 records, are in ``tree_controls``.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .annotation.annotators import Treebank, Word, sentences_of
from .annotation.inputs import PUNCTUATION, Positions
from .attention import attention_maps
from .attention.batches import batches_of
from .attention.hooks import check_eval, unwrap
from .attention.maps import check_length
from .links.dependencies import MAX_LENGTH, inputs_of
from .statistics import Bootstrap, Seed, whole_and_resampled

if TYPE_CHECKING:
    import pandas as pd
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

LEAST = 50  # sentences to fit a probe on, and to test it on
RANK, SHRINKAGE = 64, 0.1  # directions of a probe; share of the mean variance that is added
EPOCHS, PER_STEP, RATE = 40, 20, 0.001  # how Hewitt and Manning's probe is trained


@dataclass(frozen=True)
class Tree:
    """The dependency tree of one sentence.

    Attributes:
        words: annotated.
        heads: each word's governor, -1 for the root; shape (words,).
        kept: the words that are scored, all but punctuation.
        arcs: dependent and governor of each arc between these, as places among them; shape (arcs, 2).
    """

    words: tuple[Word, ...]
    heads: np.ndarray
    kept: np.ndarray
    arcs: np.ndarray

    @classmethod
    def of(cls, words: Iterable[Word]) -> Tree:
        """The tree of annotated words; ValueError where they are none, or too few."""
        words = tuple(words)
        heads = np.array([word.head for word in words], dtype=int)
        if (heads < 0).sum() != 1:
            raise ValueError("not one root")
        ancestors(heads)
        is_kept = np.array([word.upos not in PUNCTUATION for word in words])
        if is_kept.sum() < 3:
            raise ValueError("fewer than three words")
        ends = np.flatnonzero(is_kept & (heads >= 0) & is_kept[heads])
        place = is_kept.cumsum() - 1
        return cls(words, heads, np.flatnonzero(is_kept), place[np.stack([ends, heads[ends]], 1)])

    @property
    def in_chain(self) -> np.ndarray:
        """Which arcs join neighbours, punctuation left out: those of the chain of neighbours."""
        return abs(self.arcs[:, 0] - self.arcs[:, 1]) == 1

    @property
    def distances(self) -> np.ndarray:
        """Arcs between any two words, shape (words, words): squared distances, if a word's vector has a 1 for each word on its path."""
        return squared_distances(ancestors(self.heads).astype(float))


def ancestors(heads: np.ndarray) -> np.ndarray:
    """True at a word and at all words above it, shape (words, words); ValueError for a cycle."""
    paths, at = np.eye(len(heads), dtype=bool), heads.copy()
    for _ in heads:
        below = np.flatnonzero(at >= 0)
        paths[below, at[below]] = True
        at[below] = heads[at[below]]
    if (at >= 0).any():
        raise ValueError("a cycle")
    return paths


def squared_distances(vectors: Any) -> Any:
    """Of any two words, by the Gram matrix: (…, words, width) to (…, words, words), in numpy or torch."""
    gram = vectors @ vectors.swapaxes(-1, -2)
    norms = gram.diagonal(0, -2, -1)
    return norms[..., :, None] + norms[..., None, :] - 2 * gram


def spanning_tree(distances: np.ndarray) -> np.ndarray:
    """Minimum spanning trees by Prim's algorithm, many at once.

    Args:
        distances: shape (…, words, words).

    Returns:
        The word to which each one was joined, -1 for the first; shape (…, words).
    """
    words = distances.shape[-1]
    flat = distances.reshape(-1, words, words)
    trees, links = np.arange(len(flat)), np.zeros((len(flat), words), dtype=int)
    nearest, inside = flat[:, 0].copy(), np.zeros((len(flat), words), dtype=bool)
    links[:, 0], nearest[:, 0], inside[:, 0] = -1, np.inf, True
    for _ in range(words - 1):
        new = nearest.argmin(axis=1)
        nearest[trees, new], inside[trees, new] = np.inf, True
        closer = (flat[trees, new] < nearest) & ~inside
        nearest = np.where(closer, flat[trees, new], nearest)
        links = np.where(closer, new[:, None], links)
    return links.reshape(distances.shape[:-1])


def arcs_found(tree: Tree, distances: np.ndarray) -> np.ndarray:
    """Which arcs the minimum spanning tree of its words has: distances (…, words, words) to (…, arcs)."""
    links = spanning_tree(distances[..., tree.kept[:, None], tree.kept])
    child, head = tree.arcs.T
    return (links[..., child] == head) | (links[..., head] == child)


def share_found(
    found: np.ndarray, trees: Sequence[Tree], seed: Seed, chosen: np.ndarray | slice = slice(None)
) -> Bootstrap:
    """UUAS: the share of the arcs, or of the chosen ones, that were found; sentences are resampled.

    Args:
        found: shape (arcs,).
        trees: whose arcs these are.
        seed: of the resampling.
        chosen: True at arcs that count.
    """
    of = np.repeat(np.arange(len(trees)), [len(tree.arcs) for tree in trees])[chosen]
    right, total = (np.bincount(of, each, len(trees)) for each in (found[chosen], None))
    weights = whole_and_resampled(len(trees), seed)
    counted = weights @ total
    share = weights @ right / np.maximum(counted, 1)
    # Sentences drawn without any such arc say nothing of how many are found.
    return Bootstrap.of(np.where(counted > 0, share, share[0]), len(trees), seed)


@dataclass(frozen=True)
class Corpus:
    """Sentences that a model reads one by one.

    Attributes:
        texts, trees: of each sentence.
        pieces: of each sentence, the wordpieces of each word.
        left_out: how many other sentences there are, by reason.
    """

    texts: tuple[str, ...]
    trees: tuple[Tree, ...]
    pieces: tuple[tuple[Positions, ...], ...]
    left_out: Mapping[str, int]

    @classmethod
    def of(
        cls,
        bank: Treebank,
        tokenizer: PreTrainedTokenizerBase,
        known: Collection[str] = (),
        least: int = LEAST,
    ) -> Corpus:
        """The sentences that are trees and fit into the model, without known ones; ValueError where they are too few."""
        inputs, left_out = inputs_of(bank, tokenizer)
        counts = Counter({why: n for why, n in left_out.items() if not why.startswith("arcs")})
        found = []
        for text, one in inputs.items():
            try:
                if text in known:
                    raise ValueError("also in the training file")
                found.append((text, Tree.of(one.sentences[0].words), one.sentences[0].pieces))
            except ValueError as error:
                counts[str(error)] += 1
        if len(found) < least:
            why = "; ".join(f"{n} left out, {why}" for why, n in counts.items())
            raise ValueError(f"{bank.name} has {len(found)} usable sentences of {least} ({why})")
        texts, trees, pieces = zip(*found, strict=True)
        return cls(texts, trees, pieces, dict(counts))

    def __getitem__(self, part: slice) -> Corpus:
        """Some of the sentences."""
        return Corpus(self.texts[part], self.trees[part], self.pieces[part], self.left_out)

    def read(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, heads: bool = False
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Each sentence's number and the vectors of its words, before the first layer and after each, or the heads' attention between them.

        A word's vector is the mean over its wordpieces; so is attention from a word, and attention
        to a word is the sum.

        Yields:
            Arrays (layers + 1, words, width), or (layers, heads, words, words).
        """
        check_eval(model)
        encoder = unwrap(model).base_model
        for batch in batches_of(list(self.texts), tokenizer, max_length=MAX_LENGTH):
            check_length(encoder, batch)
            batch = batch.to(encoder.device)
            if heads:
                layers = attention_maps(encoder, batch)
            else:
                with torch.inference_mode():
                    layers = encoder(**batch.inputs, output_hidden_states=True).hidden_states
            values = torch.stack([*layers], dim=1).float().cpu()  # (examples, layers, …)
            for row, index in enumerate(batch.index):
                to = torch.zeros(len(self.pieces[index]), batch.mask.shape[1])  # (words, tokens)
                for word, places in enumerate(self.pieces[index]):
                    to[word, list(places)] = 1
                own = to / to.sum(dim=1, keepdim=True) @ values[row]
                yield index, (own @ to.T if heads else own).numpy()

    def vectors(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> np.ndarray:
        """Vectors of the words of all sentences one after the other, shape (layers + 1, words, width)."""
        parts = dict(self.read(model, tokenizer))
        return np.concatenate([parts[at] for at in sorted(parts)], axis=1)


def sentence_ends(trees: Sequence[Tree]) -> np.ndarray:
    """Where each sentence ends among the words of all, shape (sentences,)."""
    return np.cumsum([len(tree.heads) for tree in trees])


def _width(rank: int, width: int) -> int:
    if not 0 <= rank <= width:
        raise ValueError(f"rank={rank}: choose 1 to {width}, the width of the model's vectors")
    return rank or min(RANK, width)


def fit(vectors: np.ndarray, trees: Sequence[Tree], rank: int = 0) -> np.ndarray:
    """The probe in closed form: squared distances say how much less likely two words are adjacent.

    If differences d of adjacent words are normal with covariance A, and those of all other pairs of
    a sentence with covariance N, the log of the likelihood ratio is half of d'(A⁻¹ − N⁻¹)d but for
    a constant. A direction v with N v = λ A v and v'A v = 1 counts with 1 − 1/λ in it. Differences
    of all pairs sum to n times a sentence's scatter about its mean: nothing of n × n is formed.

    Args:
        vectors: of all words, shape (words, width).
        trees: of the sentences, in their order.
        rank: directions; 0 for :data:`RANK`, or the width where it is smaller.

    Returns:
        Shape (width, rank).

    Raises:
        ValueError: a rank above the width, or vectors that do not differ.
    """
    from scipy.linalg import eigh

    width, ends = vectors.shape[1], sentence_ends(trees)
    rank, sizes = _width(rank, width), np.diff(ends, prepend=0)
    heads, each = np.concatenate([tree.heads for tree in trees]), np.repeat(sizes, sizes)
    below = np.flatnonzero(heads >= 0)
    steps = vectors[below] - vectors[(np.repeat(ends - sizes, sizes) + heads)[below]]
    means = (np.add.reduceat(vectors, ends - sizes) / sizes[:, None]).astype(vectors.dtype)
    centred = vectors - np.repeat(means, sizes, axis=0)
    centred *= np.sqrt(each.astype(vectors.dtype))[:, None]
    adjacent, scatter = ((of.T @ of).astype(float) for of in (steps, centred))
    others = (scatter - adjacent) / ((sizes * (sizes - 1) // 2).sum() - len(below))
    spread = np.trace(others) / width
    if not spread > 1e-12:
        raise ValueError("the words of each sentence have one vector: there is nothing to fit")
    adjacent = adjacent / len(below) + SHRINKAGE * spread * np.eye(width)
    ratios, directions = eigh(others, adjacent, subset_by_index=[width - rank, width - 1])
    return directions * np.sqrt(1 - 1 / np.maximum(ratios, 1))


def train_probe(
    vectors: np.ndarray, trees: Sequence[Tree], rank: int = 0, seed: int = 1, epochs: int = EPOCHS
) -> np.ndarray:
    """Hewitt and Manning's probe, whose squared distances are trained to be distances in the tree; as :func:`fit`."""
    torch.manual_seed(seed)
    states = torch.split(torch.as_tensor(vectors).float(), [len(tree.heads) for tree in trees])
    # In the order of length, so that little is padded.
    order = sorted(range(len(trees)), key=lambda at: len(trees[at].heads))
    steps = []
    for at in range(0, len(order), PER_STEP):
        some = order[at : at + PER_STEP]
        inputs = torch.nn.utils.rnn.pad_sequence([states[one] for one in some], batch_first=True)
        wanted, weights = torch.zeros(2, *inputs.shape[:2], inputs.shape[1])
        for row, one in enumerate(some):
            size = len(trees[one].heads)
            wanted[row, :size, :size] = torch.as_tensor(trees[one].distances)
            weights[row, :size, :size] = 1 / (size**2 * len(some))
        steps.append((inputs, wanted, weights))
    width = vectors.shape[1]
    probe = torch.empty(width, _width(rank, width)).uniform_(-0.05, 0.05).requires_grad_()
    optimizer = torch.optim.Adam([probe], lr=RATE)
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, epochs * len(steps))
    for step in (int(one) for _ in range(epochs) for one in torch.randperm(len(steps))):
        inputs, wanted, weights = steps[step]
        optimizer.zero_grad()
        (weights * (squared_distances(inputs @ probe) - wanted).abs()).sum().backward()
        optimizer.step()
        decay.step()
    return probe.detach().numpy().astype(float)


def arcs_of_probe(trees: Sequence[Tree], vectors: np.ndarray, probe: np.ndarray) -> np.ndarray:
    """Which arcs a probe finds, shape (arcs,), in the vectors of all words, shape (words, width)."""
    parts = zip(trees, np.split(vectors @ probe, sentence_ends(trees)[:-1]), strict=True)
    return np.concatenate([arcs_found(tree, squared_distances(mapped)) for tree, mapped in parts])


def tree_probe(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    train: str | Path,
    test: str | Path,
    rank: int = 0,
    seed: int = 1,
) -> pd.DataFrame:
    """How much of the dependency tree each layer of an encoder holds: the probe of one treebank on another's sentences.

    Sentences that are no tree, have fewer than three words without punctuation, or more than
    :data:`bertology_utils.links.dependencies.MAX_LENGTH` wordpieces are left out, and so is what
    stands in both files. Multiword tokens and empty nodes are read as Universal Dependencies has
    them: a tree's nodes are the syntactic words.

    Args:
        model: encoder or classifier in evaluation mode.
        tokenizer: its own, a fast one.
        train, test: CoNLL-U files, plain or packed (.conllu.gz).
        rank: directions of the probe; 0 for 64, or the width of the vectors where it is smaller.
        seed: of the resampling of sentences.

    Returns:
        A row for each layer, 0 for the vectors before the first one: UUAS (the share of arcs that
        are found, their direction and punctuation left out) with its 95 % interval over sentences,
        that of the chain of neighbours, and the seconds that the probe took.
        ``attrs["left out"]`` says by file and reason how many sentences are not used.

    Raises:
        FileNotFoundError, ValueError: no such file, or it is not CoNLL-U; one file for both; fewer
            than 50 usable sentences; a rank above the width; vectors that do not differ.
    """
    import pandas as pd

    banks = sentences_of(train), sentences_of(test)
    if Path(train).expanduser().samefile(Path(test).expanduser()):
        raise ValueError(f"train and test are one file, {train}: give other sentences to test on")
    fitted = Corpus.of(banks[0], tokenizer)
    tested = Corpus.of(banks[1], tokenizer, fitted.texts)
    vectors = [corpus.vectors(model, tokenizer) for corpus in (fitted, tested)]
    chain = np.concatenate([tree.in_chain for tree in tested.trees]).mean()
    rows = []
    for layer, (known, new) in enumerate(zip(*vectors, strict=True)):
        start = time.perf_counter()
        probe = fit(known, fitted.trees, rank)
        seconds = time.perf_counter() - start
        share = share_found(arcs_of_probe(tested.trees, new, probe), tested.trees, seed)
        rows.append((layer, share.value, *share.interval, chain, seconds))
    table = pd.DataFrame(rows, columns=["layer", "UUAS", "low", "high", "chain", "seconds"])
    table.attrs["left out"] = {"train": dict(fitted.left_out), "test": dict(tested.left_out)}
    return table
