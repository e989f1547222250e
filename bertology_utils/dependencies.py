"""Do heads point along dependencies, as Clark et al. (2019, §4) ask it? The §4.5 question for whole relations.

Maps of wordpieces become maps of words: attention to a word is the sum over
its pieces, attention from a word the mean. A head points from a word at the
other word of the sentence to which it attends most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import xarray as xr

from .annotation import UPOS, Treebank, read, too_few_arcs
from .attention import observe
from .batches import Batch, batches_of
from .common import head_name, listed, note
from .stats import corrected_p
from .words import LONGEST, NOUNS, TOO_LONG, AnnotatedInput, PlacedSentence, place_sentences

if TYPE_CHECKING:
    import pandas as pd
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ARC_DIRECTIONS = ("dependent → head", "head → dependent")
RESAMPLES = 1000
LEAST_EXAMPLES = 30  # sentences of a relation in either half
FURTHEST = 10  # words; how far the fixed offsets reach
# A rule points from a word at the nearest word of one part of speech, as Universal Dependencies has
# them ("NOUN" with proper nouns), on one side or on either. Notebook 8 has more of them in its cells.
TAGS = tuple(tag for tag in UPOS if tag != "PROPN")
NEAREST = tuple(f"{tag} {side}" for tag in TAGS for side in ("before", "after", "on either side"))


# Where heads point.


def found_arcs(
    model: PreTrainedModel, batches: Sequence[Batch], inputs: Sequence[AnnotatedInput]
) -> xr.Dataset:
    """Does each head point along the arcs of the sentences?

    Args:
        model: encoder or classifier.
        batches: the inputs.
        inputs: the same with their words, in the order of the data.

    Returns:
        Of each arc its ``example``, whose sentences share a map, ``relation`` and ``offset``: head minus
        dependent in words. ``by_head`` and ``by_rule`` say in each direction which attention heads find
        it, and which of :data:`NEAREST`.
    """
    of_inputs = [
        [
            sentence
            for sentence in annotated.sentences
            if all(sentence.pieces) and len(set(sentence.written)) > 1 and sentence.arcs
        ]
        for annotated in inputs
    ]

    def right(maps: torch.Tensor, batch: Batch) -> Iterator[np.ndarray]:
        for index, own in zip(batch.index, maps.cpu(), strict=True):
            none = np.empty((len(ARC_DIRECTIONS), 0, len(own)), dtype=bool)
            found = [_right(points_at(own, one), one.arcs) for one in of_inputs[index]]
            yield np.concatenate([none, *found], axis=1)

    # (layers, directions, arcs, heads)
    by_head = np.concatenate(observe(model, batches, {"": right})[""], axis=2)
    by_rule = [_right(nearest_words(one), one.arcs) for several in of_inputs for one in several]
    arcs = [
        (example, *arc)
        for example, several in enumerate(of_inputs)
        for one in several
        for arc in one.arcs
    ]
    examples, dependents, heads, relations = zip(*arcs, strict=True)
    values = {
        "example": ("arc", list(examples)),
        "relation": ("arc", list(relations)),
        "offset": ("arc", np.subtract(heads, dependents)),
        "by_head": (("direction", "arc", "layer", "head"), np.moveaxis(by_head, 0, 2)),
        "by_rule": (("direction", "arc", "rule"), np.concatenate(by_rule, axis=1)),
    }
    return xr.Dataset(values, {"direction": list(ARC_DIRECTIONS), "rule": list(NEAREST)})


def _right(points_at: np.ndarray, arcs: Sequence[tuple[int, int, str]]) -> np.ndarray:
    """Which arcs are found, (directions, arcs, …), by the word at which each word points, (…, words)."""
    dependents, heads = np.array([arc[:2] for arc in arcs]).T
    to_heads = points_at[..., dependents] == heads
    to_dependents = points_at[..., heads] == dependents
    return np.moveaxis(np.stack([to_heads, to_dependents]), -1, 1)


def points_at(maps: torch.Tensor, sentence: PlacedSentence) -> np.ndarray:
    """The written word of a sentence, from 0, at which each head points from every one: to which it attends most, itself apart.

    Args:
        maps: of the input, shape (…, tokens, tokens).
        sentence: with all of its wordpieces.

    Returns:
        Shape (…, written words).
    """
    first, last = sentence.span
    own = slice(first, last + 1)
    member = maps.new_zeros(max(sentence.written) + 1, last + 1 - first)
    for word, pieces in zip(sentence.written, sentence.pieces, strict=True):
        member[word, [at - first for at in pieces]] = 1  # (written words, wordpieces)
    words = member / member.sum(dim=1, keepdim=True) @ maps[..., own, own] @ member.T
    words.diagonal(dim1=-2, dim2=-1).fill_(-1)
    return words.argmax(dim=-1).numpy()


def nearest_words(sentence: PlacedSentence) -> np.ndarray:
    """The written word at which each of :data:`NEAREST` points from every one, -1 for none: shape (rules, written words)."""
    numbers, written = np.arange(max(sentence.written) + 1), sentence.written
    points_at = []
    for tag in TAGS:
        of_tag = NOUNS if tag == "NOUN" else {tag}
        both = zip(written, sentence.words, strict=True)
        there = np.array(sorted({at for at, word in both if word.upos in of_tag}), dtype=int)
        # With a place on either side that stands for none.
        padded = np.concatenate([[-1], there, [-1]])
        before = padded[np.searchsorted(there, numbers, "left")]
        after = padded[np.searchsorted(there, numbers, "right") + 1]
        is_nearer = (after >= 0) & ((before < 0) | (after - numbers < numbers - before))
        points_at += [before, after, np.where(is_nearer, after, before)]
    return np.stack(points_at)


# The best head against the best fixed distance, and against the nearest word of a kind.


def best_offset(offsets: np.ndarray) -> int:
    """The most frequent offset (nearest first among equals), of at most ten words either way."""
    candidates = [sign * distance for distance in range(1, FURTHEST + 1) for sign in (-1, 1)]
    return max(candidates, key=lambda offset: np.count_nonzero(offsets == offset))


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
    _, groups = np.unique(measured_on.example, return_inverse=True)
    at = chosen_on.by_head.mean("arc").argmax(["layer", "head"])
    sign = 1 if direction == ARC_DIRECTIONS[0] else -1
    offset = best_offset(sign * chosen_on.offset.values)
    rule = chosen_on.by_rule.mean("arc").argmax("rule").item()
    hits = measured_on.by_head.values.astype(float)  # (arcs, layers, heads)
    rivals = {
        "distance": sign * measured_on.offset.values == offset,
        "rule": measured_on.by_rule.values[:, rule],
    }
    row: dict[str, object] = {"direction": direction, "arcs": len(groups)}
    row["best head"] = head_name(at["layer"].item(), at["head"].item())
    for title, right in {"head": measured_on.by_head.isel(at).values, **rivals}.items():
        shares = _share_over_arcs(right.astype(float), groups, seed)
        names = f"{title}: share of arcs", f"{title}: low", f"{title}: high"
        row |= dict(zip(names, shares, strict=True))
    p = {}
    for title, right in rivals.items():
        ahead = sums_of_examples(hits - right[:, None, None], groups)
        corrected = corrected_p(xr.DataArray(ahead, dims=["example", "layer", "head"]), seed=seed)
        p[title] = corrected.isel(at).item()
    row |= {"best fixed distance": offset, "p": p["distance"]}
    return row | {"best rule": NEAREST[rule], "p, rule": p["rule"]}


def sums_of_examples(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Sums over the arcs of each example: (arcs, …) to (examples, …)."""
    sums = np.zeros((groups.max() + 1, *values.shape[1:]))
    np.add.at(sums, groups, values)
    return sums


def _share_over_arcs(
    values: np.ndarray, groups: np.ndarray, seed: int
) -> tuple[float, float, float]:
    """Mean over arcs and its 95 % interval, the examples that they are grouped by resampled."""
    sums, sizes = sums_of_examples(values, groups), np.bincount(groups)
    drawn = np.random.default_rng(seed).integers(len(sizes), size=(RESAMPLES, len(sizes)))
    resampled = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.percentile(resampled, [2.5, 97.5])
    return float(values.mean()), float(low), float(high)


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
    inputs, left_out = inputs_of(bank, tokenizer)
    counts = Counter(label for one in inputs.values() for label in set(_labels(one)))
    most = sorted(counts, key=lambda label: (-counts[label], label))
    enough = [label for label in most if counts[label] >= 2 * LEAST_EXAMPLES]
    if not enough:
        reason = f"no relation is in {2 * LEAST_EXAMPLES} of its sentences"
        raise ValueError(_too_small(bank, left_out, reason))
    relations = listed("relations", relations)
    if few := [label for label in relations if label not in enough]:
        raise ValueError(
            f"{few[0]!r} is in {counts[few[0]]} sentences of {bank.name}, and {2 * LEAST_EXAMPLES} are"
            f" wanted; choose of: {', '.join(enough)}"
        )
    chosen = [label for label in enough if label in (relations or {*enough} - {"punct"})]
    batches = batches_of(list(inputs), tokenizer, max_length=LONGEST)
    arcs = found_arcs(model, batches, list(inputs.values()))
    rows = []
    for name in chosen:
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
) -> tuple[dict[str, AnnotatedInput], dict[str, int]]:
    """A treebank's sentences as inputs of a model, by their text, and what is left out.

    Args:
        bank: from :func:`bertology_utils.annotation.read`.
        tokenizer: the model's, a fast one.
        least: arcs that one of :data:`bertology_utils.annotation.RELATIONS` must have.

    Returns:
        The inputs; and by reason, how many sentences or arcs are left out.

    Raises:
        ValueError: too few arcs are left.
    """
    placed = place_sentences(bank.sentences, tokenizer)
    left_out, inputs = Counter(bank.left_out), {}
    for text, one in placed.items():
        if one.unusable:
            left_out[one.unusable] += 1
        else:
            inputs[text] = one
            heads = sum(word.head >= 0 for word, _ in one.words)
            if inside := heads - len(_labels(one)):
                left_out["arcs between words that share a wordpiece"] += inside
    labels = (label for one in inputs.values() for label in _labels(one))
    if counted := too_few_arcs(labels, least):
        reason = f"left are {counted} dependencies, and {least} of one of them are wanted"
        raise ValueError(_too_small(bank, left_out, reason))
    return inputs, dict(left_out)


def _labels(annotated: AnnotatedInput) -> list[str]:
    return [label for sentence in annotated.sentences for *_, label in sentence.arcs]


def _too_small(bank: Treebank, left_out: Mapping[str, int], reason: str) -> str:
    """The message about a treebank that leaves too little."""
    total = len(bank.sentences) + len(bank.faults)
    parts = [bank.faults_in_words(), reason]
    if count := left_out.get(TOO_LONG):
        parts.insert(0, f"of its {total} sentences {count} are {TOO_LONG}")
    return f"{bank.name} is too small: {'; '.join(filter(None, parts))}"
