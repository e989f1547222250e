"""What came out of each part of §4.5, in sentences with their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..annotation.token_types import TOKEN_TYPES
from ..claims.gates import never_adjacent
from ..common import Head, head_name
from ..glue.tasks import TASKS, Task
from ..statistics import Bootstrap, Seed, bootstrap_mean, ties
from ..statistics.resampling import rounded
from .beside import ABOVE, ALONG, from_cls_table
from .claims import PAIRS, Clear
from .dependencies import RelationTest
from .tables import WORDS


def first_by_type(first: Mapping[Task, str]) -> str:
    """ "nouns on STS-B, QQP; negation on MRPC", the most frequent type first."""
    by_type: dict[str, list[str]] = {}
    for task, kind in first.items():
        by_type.setdefault(kind, []).append(task.title)
    groups = sorted(by_type.items(), key=lambda group: -len(group[1]))
    return "; ".join(f"{kind} on {', '.join(titles)}" for kind, titles in groups)


def first_of_means(results: Mapping, source: str) -> str:
    """ "Fine-tuned, MiniLM, real GLUE: nouns on MRPC, STS-B": the type with the highest mean but [CLS]; empty without."""
    tuned = from_cls_table((results.get("from_cls") or {}).get("fine-tuned") or {})
    by_title = {task.title: task for task in TASKS.values()}
    highest = {}
    for title, values in tuned.items():
        means = np.where(np.isfinite(values), values, -1.0)
        means[TOKEN_TYPES.index("[CLS]")] = -1
        highest[by_title[title]] = TOKEN_TYPES[int(ties.largest(means)[0])]
    return f"Fine-tuned, {source}: {first_by_type(highest)}." if highest else ""


def rho_in_words(rho: Mapping[str, Mapping[str, Mapping[str, Bootstrap]]], source: str = "this run") -> str:
    """ "attention along links: verb → subject +0.32, …", a description of the picture."""
    return " ".join(
        f"{_capital(label)}, {source}: "
        + ", ".join(f"{kind} {by_source[source].text(1, 2, sign=True)}" for kind, by_source in by_kind.items())
        + "."
        for label, by_kind in rho.items()
    )


def heads_in_words(values: Mapping[str, np.ndarray], digits: int = 2, sign: bool = False) -> str:
    """ "verb → subject (1, 3) 0.57, …": the head with the largest value of each type."""
    return ", ".join(
        f"{kind} {head_name(*ties.largest(heads))} {rounded(heads[ties.largest(heads)], digits, sign)}"
        for kind, heads in values.items()
    )


def furthest(values: Mapping[str, np.ndarray], kinds: Sequence[str]) -> tuple[str, Head]:
    """Which of some types of link has the largest value of any head, and that head; the first type's first if there are none.

    Args:
        values: by type, shape (layers, heads).
        kinds: to choose from.
    """
    there = [kind for kind in kinds if kind in values]
    if not there:
        return kinds[0], (0, 0)
    kind = max(there, key=lambda name: np.nanmax(values[name]))
    layer, head = ties.largest(values[kind])
    return kind, (layer, head)


def with_or_against(
    rho: Mapping[str, Mapping[str, Mapping[str, Bootstrap]]],
    ranks: Mapping[str, float],
    heads: int,
    source: str = "this run",
) -> list[str]:
    """For each pair of words a sentence: which way the numbers point, and how far.

    Args:
        rho: ρ with attention to neighbours, from :func:`bertology_utils.links.beside.correlations`.
        ranks: by type, the mean rank of the five highest heads in attention to neighbours.
        heads: how many there are.
        source: whose ρ is told.
    """
    sentences = []
    for words, names in PAIRS.items():
        known, beyond = (
            {name: rho[label][name][source] for name in names if source in rho[label].get(name, {})}
            for label in (ALONG, ABOVE)
        )
        if not known:
            continue
        up, down = (all(sign * found.value > 0 for found in known.values()) for sign in (1, -1))
        said = (
            f"the more a head attends to neighbours, the {'more' if up else 'less'} it attends along these links"
            if up or down
            else "attention to neighbours and attention along these links do not go together"
        )
        surely = [name for name, found in known.items() if (found.interval[0] > 0 if up else found.interval[1] < 0)]
        five = " and ".join(f"{ranks[name]:.0f}" for name in known)
        sentences.append(
            f"{_capital(WORDS[words])}: {said} (ρ {_each(known)}; {heads} heads{_only(surely, known) if up or down else ''}); with position taken out, ρ {_each(beyond)}."
            f" The five highest have mean rank {five} in attention to neighbours; five random heads would have"
            f" {(heads + 1) / 2:.1f}."
        )
    return sentences


def _only(surely: Sequence[str], known: Mapping[str, Bootstrap]) -> str:
    """Where not all intervals leave out 0: where they do."""
    if len(surely) == len(known):
        return ""
    return f"; surely so only for {' and '.join(surely)}" if surely else "; not surely so for any"


def _each(rho: Mapping[str, Bootstrap]) -> str:
    return ", ".join(f"{name} {found.text(1, 2, sign=True)}" for name, found in rho.items())


def adjacency(adjacent: Mapping[str, float]) -> list[str]:
    """How many links are between neighbours, and what cannot be tested where hardly any is."""
    there = {WORDS[words]: share for words, share in adjacent.items() if np.isfinite(share)}
    shares = ", ".join(f"{words} in {100 * share:.0f} %" for words, share in there.items())
    sentences = [f"Linked words stand side by side: {shares}."]
    rare = [WORDS[words] for words, share in adjacent.items() if np.isfinite(share) and never_adjacent(share)]
    if rare:
        sentences.append(
            f"The paper's explanation, that linked words are neighbours, cannot be tested on {' or '.join(rare)}:"
            " in these sentences they hardly ever are."
        )
    return sentences


def above_places(clear: Mapping[str, Clear], differences: Mapping[str, np.ndarray], seed: Seed) -> list[str]:
    """How many heads are surely above other inputs' places, and the largest excess of each pair of words.

    Args:
        clear: by type of link, pre-trained.
        differences: by type, shape (examples, layers, heads), NaN without places to compare with.
        seed: of the resampling of examples.
    """
    if not clear:
        return []
    heads = next(iter(clear.values())).heads.size
    numbers = ", ".join(f"{kind} {np.count_nonzero(one.heads)}" for kind, one in clear.items())
    sentences = [f"Of {heads} heads, surely 0.02 above other inputs' places: {numbers}."]
    for kind, at, found in _furthest(clear, differences, seed).values():
        sentences.append(
            f"{_capital(kind)}: most above them is {head_name(*at)}, by {found.text(1, 3, sign=True)}, n={found.n};"
            f" {clear[kind].centred.means[at]:+.3f} with each word's popularity taken off."
        )
    return sentences


def furthest_heads(clear: Mapping[str, Clear], differences: Mapping[str, np.ndarray], seed: Seed) -> dict[str, dict]:
    """For the results file, by pair of words: the largest excess, its type of link, and its head; arguments as before."""
    return {
        words: {"kind": kind, "head": head_name(*at), **found.summary()}
        for words, (kind, at, found) in _furthest(clear, differences, seed).items()
    }


def _furthest(
    clear: Mapping[str, Clear], differences: Mapping[str, np.ndarray], seed: Seed
) -> dict[str, tuple[str, Head, Bootstrap]]:
    """By pair of words the type of link and the head with the largest excess, and that."""
    found = {}
    for words, names in PAIRS.items():
        there = [name for name in names if name in clear]
        if there:
            kind, (layer, head) = furthest({name: clear[name].plain.means for name in there}, there)
            values = differences[kind][:, layer, head]
            found[words] = kind, (layer, head), bootstrap_mean(values[np.isfinite(values)], seed)
    return found


def pointing_in_words(tests: Mapping[str, RelationTest]) -> str:
    """ "nsubj: head (3, 4) 67, distance +1 49; …", in percent."""
    each = (
        f"{relation}: head {head_name(*test.head)} {100 * test.accuracy.value:.0f},"
        f" distance {test.offset:+d} {100 * test.baseline.value:.0f}"
        for relation, test in tests.items()
    )
    return "; ".join(each) + "."


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
