"""Do heads point along dependencies, as Clark et al. (2019, §4) ask it? The §4.5 question for whole relations.

Maps of wordpieces become maps of words: attention to a word is the sum over
its pieces, attention from a word the mean. A head points from a word at the
other word of the sentence to which it attends most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import xarray as xr

from .annotation import UPOS, Treebank, read, too_few_arcs
from .attention import attention_maps
from .batches import Batch, batches_of
from .common import head_name, listed, note
from .stats import corrected_p
from .words import LONGEST, NOUNS, PlacedSentence, Positions, place_sentences

if TYPE_CHECKING:
    import pandas as pd
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ARC_DIRECTIONS = ("dependent → head", "head → dependent")
RESAMPLES = 1000
LEAST_EXAMPLES = 30  # sentences of a relation in either half
FURTHEST = 10  # words; how far the fixed offsets reach
# A rule points from a word at the nearest word of one part of speech, as Universal Dependencies has
# them ("NOUN" with proper nouns), on one side or on either.
TAGS = tuple(tag for tag in UPOS if tag != "PROPN")
NEAREST = tuple(f"{tag} {side}" for tag in TAGS for side in ("before", "after", "on either side"))


# Where heads and rules point.


def between_words(maps: torch.Tensor, words: Sequence[Positions]) -> torch.Tensor:
    """Attention between words, (…, tokens, tokens) to (…, words, words): from a word the mean over its wordpieces, to a word the sum."""
    member = maps.new_zeros(len(words), maps.shape[-1])
    for word, pieces in enumerate(words):
        member[word, list(pieces)] = 1
    return member / member.sum(dim=1, keepdim=True) @ maps @ member.T


def word_maps(
    model: PreTrainedModel, batches: Iterable[Batch], words: Sequence[Sequence[Positions]]
) -> Iterator[tuple[int, torch.Tensor]]:
    """Each example's number, and the attention between its words, (layers, heads, words, words); in the order of the batches."""
    for batch in batches:
        maps = torch.stack(attention_maps(model, batch), dim=1).float().cpu()
        for index, own in zip(batch.index, maps, strict=True):
            yield index, between_words(own, words[index])


def points_at(maps: torch.Tensor) -> np.ndarray:
    """The word, from 0, to which each word attends most, itself apart: (…, words, words) to (…, words)."""
    itself = torch.eye(maps.shape[-1], dtype=torch.bool, device=maps.device)
    return maps.masked_fill(itself, -1).argmax(dim=-1).short().numpy()


def nearest_words(sentence: PlacedSentence) -> np.ndarray:
    """The written word at which each of :data:`NEAREST` points from every one, -1 for none: shape (rules, written words)."""
    numbers = np.arange(len(sentence.written_pieces))
    apart = numbers - numbers[:, None]  # from each word to each other
    points_at = []
    for tag in TAGS:
        of_tag = NOUNS if tag == "NOUN" else {tag}
        both = zip(sentence.written, sentence.words, strict=True)
        there = np.isin(numbers, [at for at, word in both if word.upos in of_tag])
        for side in (apart < 0, apart > 0, apart != 0):
            distance = np.where(side & there, abs(apart), len(numbers))
            nearest = distance.argmin(axis=1)  # the first of two that are as near
            points_at.append(np.where(distance.min(axis=1) < len(numbers), nearest, -1))
    return np.stack(points_at)


def found_arcs(sentences: Sequence[PlacedSentence], by_heads: Sequence[np.ndarray]) -> xr.Dataset:
    """Which heads, and which rules, point along each arc of some sentences.

    Args:
        sentences: all of whose words are there.
        by_heads: at which written word each head points from every one, shape (layers, heads, words).

    Returns:
        Of each arc its ``example``, the sentence's number, ``relation`` and ``offset``: head minus
        dependent in words. ``by_head`` and ``by_rule`` say in each direction which attention heads
        find it, and which of :data:`NEAREST`.
    """

    def found(pointers: Iterable[np.ndarray]) -> np.ndarray:
        """Which arcs are found, (directions, …, arcs), by the word at which each word points, (…, words)."""
        parts = []
        for sentence, points_at in zip(sentences, pointers, strict=True):
            ends = np.array([arc[:2] for arc in sentence.arcs], dtype=int)
            dependents, heads = ends.reshape(-1, 2).T
            both = points_at[..., dependents] == heads, points_at[..., heads] == dependents
            parts.append(np.stack(both))
        return np.concatenate(parts, axis=-1)

    arcs = [(example, *arc) for example, one in enumerate(sentences) for arc in one.arcs]
    examples, dependents, heads, relations = zip(*arcs, strict=True)
    by_rules = map(nearest_words, sentences)
    values = {
        "example": ("arc", list(examples)),
        "relation": ("arc", list(relations)),
        "offset": ("arc", np.subtract(heads, dependents)),
        "by_head": (("direction", "layer", "head", "arc"), found(by_heads)),
        "by_rule": (("direction", "rule", "arc"), found(by_rules)),
    }
    return xr.Dataset(values, {"direction": list(ARC_DIRECTIONS), "rule": list(NEAREST)})


# The best head against the best fixed distance, and against the nearest word of a kind.


def choose_and_measure(arcs: xr.Dataset, seed: int) -> dict[str, object]:
    """A relation's best head, distance and rule in one direction, on examples that chose none of them.

    They are chosen on one half of the examples and measured on the other, so that no luck of the
    choice is in the numbers. Examples are resampled, since their arcs share a map; p is corrected
    for the choice among all heads (:func:`bertology_utils.stats.corrected_p`).

    Args:
        arcs: from :func:`found_arcs`, of one relation in one direction, in two examples at least.
        seed: of halving, resampling and signs.

    Returns:
        A row of the table of :func:`head_dependencies`, without the relation.
    """
    direction = str(arcs.direction.values)
    examples, of_arcs = np.unique(arcs.example, return_inverse=True)
    drawn = np.random.default_rng(seed).permutation(len(examples))
    chooses = (drawn < len(examples) // 2)[of_arcs]  # True at arcs of the one half
    chosen_on, measured_on = arcs.isel(arc=chooses), arcs.isel(arc=~chooses)
    at = chosen_on.by_head.mean("arc").argmax(["layer", "head"])
    sign = 1 if direction == ARC_DIRECTIONS[0] else -1
    # The most frequent one, of several the nearest.
    offsets = [way * distance for distance in range(1, FURTHEST + 1) for way in (-1, 1)]
    counts = [np.count_nonzero(sign * chosen_on.offset == offset) for offset in offsets]
    offset = offsets[np.argmax(counts)]
    rule = chosen_on.by_rule.mean("arc").argmax("rule").item()
    rivals = {
        "distance": sign * measured_on.offset == offset,
        "rule": measured_on.by_rule.isel(rule=rule),
    }
    _, starts, sizes = np.unique(measured_on.example, return_index=True, return_counts=True)
    again = np.random.default_rng(seed).integers(len(sizes), size=(RESAMPLES, len(sizes)))
    hits = measured_on.by_head.astype(float)
    row: dict[str, object] = {"direction": direction, "arcs": measured_on.sizes["arc"]}
    row["best head"] = head_name(at["layer"].item(), at["head"].item())
    for title, right in {"head": hits.isel(at), **rivals}.items():
        of_examples = np.add.reduceat(right.values.astype(float), starts)
        shares = of_examples[again].sum(axis=1) / sizes[again].sum(axis=1)
        low, high = np.percentile(shares, [2.5, 97.5])
        row[f"{title}: share of arcs"] = right.mean().item()
        row |= {f"{title}: low": float(low), f"{title}: high": float(high)}
    p = {}
    for title, right in rivals.items():
        ahead = (hits - right).transpose("arc", "layer", "head")
        of_examples = np.add.reduceat(ahead.values, starts)
        over = xr.DataArray(of_examples, dims=["example", "layer", "head"])
        p[title] = corrected_p(over, seed=seed).isel(at).item()
    row |= {"best fixed distance": offset, "p": p["distance"]}
    return row | {"best rule": NEAREST[rule], "p, rule": p["rule"]}


# Any encoder on any treebank.


def head_dependencies(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    treebank: str | Path,
    relations: Iterable[str] = (),
    seed: int = 1,
) -> pd.DataFrame:
    """The head that points best along each dependency of a treebank, beside the best fixed distance (Clark et al., 2019).

    A head points from a word at the word of its sentence to which it attends most. Words that
    share a wordpiece, such as "de" and "le" in "du" or "can" and "not" in "cannot", count as one
    word, and arcs between them are left out. Head, distance and rule ("the nearest verb") are
    chosen on one half of the sentences and measured on the other, so that no luck of the choice is
    in the numbers. Sentences of more than :data:`LONGEST` wordpieces are left out.

    Args:
        model: encoder or classifier in evaluation mode.
        tokenizer: its own, a fast one.
        treebank: a CoNLL-U file, plain or packed (.conllu.gz). Of a sentence that stands there
            twice, one counts.
        relations: labels, such as "nsubj", or one of them; by default all that enough sentences of either half
            have, but no punctuation.
        seed: of the halving, of resampling and random signs.

    Returns:
        A row for each relation and direction ("dependent → head", "head → dependent"), in the order
        of their arcs: the measured arcs; the best head, "(layer, head)" from 1; the shares of arcs
        that it, the best fixed distance and the best of :data:`NEAREST` find, with 95 % intervals over
        sentences; that distance in words, and that rule; and the p of the head beating either,
        corrected over all heads.
        ``attrs["left out"]`` says by reason how many sentences, or arcs, are not measured. Without
        parts of speech as of Universal Dependencies a rule's columns are NaN, which is said, and
        ``attrs["rules"]`` says why.

    Raises:
        FileNotFoundError, ValueError: no such file, or it is not CoNLL-U; a relation that too few
            of its sentences have.
    """
    import pandas as pd

    bank = read(treebank)
    sentences, left_out = inputs_of(bank, tokenizer)
    counts = Counter(
        label for one in sentences.values() for label in {label for *_, label in one.arcs}
    )
    most = sorted(counts, key=lambda label: (-counts[label], label))
    enough = [label for label in most if counts[label] >= 2 * LEAST_EXAMPLES]
    if not enough:
        raise ValueError(
            f"{bank.name} is too small: no relation is in {2 * LEAST_EXAMPLES} of its sentences{bank.losses(left_out)}"
        )
    relations = listed("relations", relations)
    if few := [label for label in relations if label not in enough]:
        raise ValueError(
            f"{few[0]!r} is in {counts[few[0]]} sentences of {bank.name}, and {2 * LEAST_EXAMPLES} are"
            f" wanted; choose of: {', '.join(enough)}"
        )
    batches = batches_of(list(sentences), tokenizer, max_length=LONGEST)
    words = [one.written_pieces for one in sentences.values()]
    by_heads = {index: points_at(maps) for index, maps in word_maps(model, batches, words)}
    arcs = found_arcs([*sentences.values()], [by_heads[at] for at in range(len(words))])
    rows = []
    for name in enough:
        if name in (relations or {*enough} - {"punct"}):
            own = arcs.isel(arc=arcs.relation.values == name)
            both = [choose_and_measure(own.sel(direction=one), seed) for one in ARC_DIRECTIONS]
            rows += [{"relation": name} | row for row in both]
    table = pd.DataFrame(rows)
    table.attrs["left out"] = left_out
    if why := bank.lacks_tags:
        table[[name for name in table if "rule" in name]] = np.nan
        table.attrs["rules"] = f"not testable: {why}"
        note(f"rules are {table.attrs['rules']}")
    return table


def inputs_of(
    bank: Treebank, tokenizer: PreTrainedTokenizerBase, least: int = 0
) -> tuple[dict[str, PlacedSentence], dict[str, int]]:
    """A treebank's sentences among a model's wordpieces, by their text, and what is left out.

    Args:
        bank: from :func:`bertology_utils.annotation.read`.
        tokenizer: the model's, a fast one.
        least: arcs that one of :data:`bertology_utils.annotation.RELATIONS` must have.

    Returns:
        The sentences; and by reason, how many sentences or arcs are left out.

    Raises:
        ValueError: too few arcs are left.
    """
    left_out, sentences = Counter(bank.left_out), {}
    for text, one in place_sentences(bank.sentences, tokenizer).items():
        if one.unusable:
            left_out[one.unusable] += 1
            continue
        (sentence,) = one.sentences
        sentences[text] = sentence
        inside = sum(word.head >= 0 for word in sentence.words) - len(sentence.arcs)
        left_out["arcs between words that share a wordpiece"] += inside
    labels = (label for one in sentences.values() for *_, label in one.arcs)
    if counted := too_few_arcs(labels, least):
        raise ValueError(
            f"{bank.name} is too small: left are {counted} dependencies, and {least} of one of them are wanted"
            f"{bank.losses(+left_out)}"
        )
    return sentences, dict(+left_out)
