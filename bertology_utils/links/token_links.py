"""Attention between two linked tokens, such as a verb and its subject (§4.5), beside others at the same distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..annotation.inputs import AnnotatedInput, PlacedSentence, Positions, mask
from ..annotation.token_types import NOUNS, PRONOUNS, SUBJECTS, is_punctuation
from ..attention import Batch
from ..features import received
from ..statistics import Seed, ties

PREDICATES = {"VERB", "AUX"}  # ClearNLP makes the copula the subject's head, UD the adjective or noun beside it
LINK_TYPES = ("verb → subject", "subject → verb", "noun → pronoun", "pronoun → noun")


@dataclass(frozen=True)
class Link:
    """One pair of words, the first attending to the second.

    Attributes:
        rows, columns: the map's cells that belong to the pair, each of shape (pairs,).
        shifts: by how many positions the cells can be moved along the
            sentence so that they stand on words, and on no link of the same
            type; shape (places,).
    """

    rows: np.ndarray
    columns: np.ndarray
    shifts: np.ndarray


def links(one: AnnotatedInput, antecedents: bool) -> dict[str, list[Link]]:
    """The links of an input, by type.

    Args:
        one: the input.
        antecedents: True to link a pronoun with the word it refers to; False,
            the paper's reading for parsed text, with every noun of its sentence.

    Returns:
        A list for each of :data:`LINK_TYPES`; words that the length limit took away are in none.
    """
    found: dict[str, list[Link]] = {name: [] for name in LINK_TYPES}
    for sentence in one.sentences:
        pairs = {"verb → subject": _verbs_and_subjects(sentence),
                 "noun → pronoun": _nouns_and_pronouns(sentence, antecedents)}
        pairs |= {"subject → verb": [(b, a) for a, b in pairs["verb → subject"]],
                  "pronoun → noun": [(b, a) for a, b in pairs["noun → pronoun"]]}
        words = {at for word, pieces in zip(sentence.words, sentence.pieces, strict=True)
                 if not is_punctuation(word) for at in pieces}
        for name, some in pairs.items():
            # A parser can call a punctuation mark a subject; its place has nothing to be compared with.
            found[name] += _links([(a, b) for a, b in some if words.issuperset(a + b)], words)
    return found


def _verbs_and_subjects(sentence: PlacedSentence) -> list[tuple[Positions, Positions]]:
    return [(sentence.pieces[word.head], pieces) for word, pieces in zip(sentence.words, sentence.pieces, strict=True)
            if word.deprel in SUBJECTS and word.head >= 0 and sentence.words[word.head].upos in PREDICATES]


def _nouns_and_pronouns(sentence: PlacedSentence, antecedents: bool) -> list[tuple[Positions, Positions]]:
    words, pieces = sentence.words, sentence.pieces
    if antecedents:
        return [(pieces[word.antecedent], own) for word, own in zip(words, pieces, strict=True)
                if word.upos in PRONOUNS and word.antecedent is not None]
    nouns = [own for word, own in zip(words, pieces, strict=True) if word.upos in NOUNS]
    return [(noun, own) for word, own in zip(words, pieces, strict=True) if word.upos in PRONOUNS for noun in nouns]


def _links(pairs: list[tuple[Positions, Positions]], words: set[int]) -> list[Link]:
    """Pairs of words as cells, each with its moves; ``words`` are the positions that these may stand on."""
    whole = [(np.repeat(a, len(b)), np.tile(b, len(a))) for a, b in pairs if a and b]
    if not whole:
        return []
    size = max(words) + 1
    allowed = mask(size, words)
    linked = np.zeros((size, size), dtype=bool)
    for rows, columns in whole:
        linked[rows, columns] = True
    found = []
    for rows, columns in whole:
        used = np.concatenate([rows, columns])
        shifts = np.arange(min(words) - used.min(), size - used.max())
        free = allowed[used[:, None] + shifts].all(axis=0)
        free &= ~linked[rows[:, None] + shifts, columns[:, None] + shifts].any(axis=0)
        found.append(Link(rows, columns, shifts[free]))
    return found


@dataclass(frozen=True)
class LinkAttention:
    """What :class:`TokenLinks` computes. An example's value is the mean over its links; NaN where it has none.

    Attributes:
        actual: largest weight among a link's cells, shape (examples, types, layers, heads).
        matched: the same of the links that can be moved.
        elsewhere: mean over the places to which these can be moved.
        counts: links per type, and how many of them can be moved, shape (types, 2).
    """

    actual: np.ndarray
    matched: np.ndarray
    elsewhere: np.ndarray
    counts: np.ndarray


class TokenLinks:
    """Measurement: the weight along every link, and at the same distance elsewhere in its sentence.

    Args:
        links: per example of the data, from :func:`links`.
        centred: subtract from every weight what the token gets from the
            average token, so that a head's preference for certain words,
            whoever is looking, does not count.
    """

    def __init__(self, links: Sequence[dict[str, list[Link]]], centred: bool = False):
        self._links = links
        self._centred = centred
        self._rows: dict[int, list[np.ndarray]] = {}
        self._places = _Places([], 0)

    def start(self, batch: Batch) -> None:
        """List the cells of the batch's links."""
        starts = batch.mask.int().argmax(dim=1).tolist()
        self._places = _Places([self._links[index] for index in batch.index], batch.mask.shape[1], starts)
        self._rows |= {index: [] for index in batch.index}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        if self._centred:
            maps = maps - received(maps, batch)[:, :, None]
        values = self._places.means(maps)  # (3, examples, types, heads)
        for row, index in enumerate(batch.index):
            self._rows[index].append(values[:, row])

    def compute(self) -> LinkAttention:
        """The values of all examples, in the order of the data."""
        values = np.stack([np.stack(self._rows[index], axis=2) for index in sorted(self._rows)], axis=1)
        all_links = [[link for one in self._links for link in one[name]] for name in LINK_TYPES]
        counts = np.array([[len(some), sum(len(link.shifts) > 0 for link in some)] for some in all_links])
        return LinkAttention(*values, counts)


class _Places:
    """The cells of a batch's links and of the places to which they can be moved, as indices into its flattened maps."""

    def __init__(self, examples: list[dict[str, list[Link]]], tokens: int, starts: Sequence[int] = ()):
        self.shape = len(examples), len(LINK_TYPES)
        cells, sizes, self.places, group = [], [], [], []  # per link
        for row, one in enumerate(examples):
            for number, name in enumerate(LINK_TYPES):
                for link in one[name]:
                    shifts = np.concatenate([[0], link.shifts])[:, None] + starts[row]
                    cells.append((((row * tokens) + link.rows + shifts) * tokens + link.columns + shifts).ravel())
                    sizes += [len(link.rows)] * len(shifts)
                    self.places.append(len(shifts))
                    group.append(row * len(LINK_TYPES) + number)
        self.group = np.array(group, dtype=int)
        self.cells = torch.from_numpy(np.concatenate(cells)) if cells else None
        self.place_starts = np.cumsum(sizes) - sizes
        self.places = np.array(self.places, dtype=int)
        self.link_starts = np.cumsum(self.places) - self.places

    def means(self, maps: torch.Tensor) -> np.ndarray:
        """Means over links of (actual, matched, elsewhere), shape (3, examples, types, heads)."""
        heads = maps.shape[1]
        found = np.full((3, *self.shape, heads), np.nan)
        if self.cells is None:
            return found
        by_head = maps.transpose(0, 1).reshape(heads, -1)  # (heads, examples · tokens · tokens)
        weights = by_head[:, self.cells.to(maps.device)].cpu().double().numpy()
        largest = np.maximum.reduceat(weights, self.place_starts, axis=1)  # (heads, places)
        actual = largest[:, self.link_starts]  # (heads, links)
        movable = self.places > 1
        others = (np.add.reduceat(largest, self.link_starts, axis=1) - actual)[:, movable] / (self.places[movable] - 1)
        for part, (values, group) in enumerate([(actual, self.group), (actual[:, movable], self.group[movable]),
                                                (others, self.group[movable])]):
            self._mean(values, group, found[part].reshape(-1, heads))
        return found

    @staticmethod
    def _mean(values: np.ndarray, group: np.ndarray, into: np.ndarray) -> None:
        """Means of (heads, links) over the links of each group, into (groups, heads)."""
        if len(group):
            groups, starts, counts = np.unique(group, return_index=True, return_counts=True)  # links stand group by group
            into[groups] = (np.add.reduceat(values, starts, axis=1) / counts).T


def candidates_are_diagonal(scores: np.ndarray, neighbours: np.ndarray, seed: Seed, count: int = 5,
                            draws: int = 10_000) -> tuple[float, float]:
    """Do the heads with the highest scores attend to neighbours more than others do (§4.5)?

    Args:
        scores: along links, shape (heads,).
        neighbours: attention to the previous or next token, shape (heads,).
        seed: of the draws.
        count: how many heads are candidates.
        draws: random sets of heads to compare with.

    Returns:
        The share of random sets that attend to neighbours less, by mean rank;
        and the candidates' mean rank, 1 for the head that does so most.
    """
    ranks = ties.ranks(neighbours)
    candidates = ranks[ties.by_size(scores)[:count]].mean()
    rng = np.random.default_rng(seed)
    drawn = np.array([ranks[rng.choice(ranks.size, count, replace=False)].mean() for _ in range(draws)])
    return float(np.mean(drawn > candidates)), float(candidates)
