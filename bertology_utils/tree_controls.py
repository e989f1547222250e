"""What notebook 11 records: the probes of trees.py beside heads and trees without a model, and what could fool us.

``exchanged``, ``jabberwocky``, ``by_tags``, ``correlations``: controls. ``run``: all numbers, and
the claims.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, combinations, groupby
from typing import TYPE_CHECKING

import numpy as np

from .annotation.annotators import Sentence, Treebank, Word, moved
from .common import head_name
from .lab import Lab
from .plots import COLOURS
from .results import SHARE
from .statistics import Bootstrap, Seed, bootstrap_mean, largest, rank_correlations
from .trees import (
    LEAST,
    Corpus,
    Tree,
    arcs_found,
    arcs_of_probe,
    fit,
    sentence_ends,
    share_found,
    spanning_tree,
    squared_distances,
    train_probe,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SIZES = (50, 100, 200, 500, 1000)  # numbers of training sentences
LENGTHS = {"1": 1, "2": 2, "3": 3, "4": 4, "5": 5, "6–7": 7, "8–10": 10, "11 and more": 1000}
CONTENT, ENDINGS = {"NOUN", "PROPN", "VERB", "ADJ", "ADV"}, ("ing", "ed", "ly", "s", "")
PROBE, TRAINED, RANDOM = "closed-form probe", "trained probe", "closed-form probe, random weights"
HEAD, CHAIN, STAR = "best head", "chain of neighbours", "star around the first verb"
TAGS = "parts of speech and distance"
UUAS, WITHOUT, PART = "UUAS", "UUAS without a model", "UUAS after so many training sentences"
RHO, BY_LENGTH = "correlation with distances in the tree", "share of arcs found, by length"
CONTROL = "UUAS of the closed-form probe in controls"
ABOVE_HEAD = "UUAS of the closed-form probe above the best head"
ABOVE_ENDS = "UUAS of the middle layer above others"
ABOVE_TRAINED = "UUAS of the closed-form probe above the trained probe"
Parts = tuple[Corpus, Corpus]  # the sentences that fit, and those that test
COLOURED = {  # in figures, in the order of their legends
    PROBE: COLOURS["blue"],
    TRAINED: COLOURS["orange"],
    HEAD: COLOURS["green"],
    TAGS: "#7c5c8e",
    CHAIN: COLOURS["red"],
    STAR: "black",
    RANDOM: COLOURS["grey"],
}
# A sentence that is drawn, and each word's governor; the root has none.
DRAWN = "The keys that my neighbour lost last week finally turned up".split()
GOVERNORS = (1, 9, 5, 4, 5, 1, 7, 5, 9, -1, 9)


def exchanged(trees: Sequence[Tree], seed: Seed) -> list[Tree]:
    """Each sentence with the tree of another of its length, or with a chain where there is none: only position is left to learn."""
    found, order = list(trees), np.random.default_rng(seed).permutation(len(trees)).tolist()
    size = lambda at: len(trees[at].heads)  # noqa: E731
    for _, same in groupby(sorted(order, key=size), key=size):
        group = [*same]
        for own, other in zip(group, group[1:] + group[:1], strict=True):
            words = trees[other].words
            chain = (replace(word, head=at - 1) for at, word in enumerate(words))
            found[own] = Tree.of(words if own != other else chain)
    return found


def jabberwocky(corpus: Corpus, seed: Seed) -> Treebank:
    """The sentences with content words exchanged within part of speech and ending: grammar without sense."""
    rng, made = np.random.default_rng(seed), dict[str, tuple[Sentence, ...]]()
    forms = [[word.form for word in tree.words] for tree in corpus.trees]
    places = defaultdict[tuple[str, str], list[tuple[int, int]]](list)
    for number, tree in enumerate(corpus.trees):
        for at, word in enumerate(tree.words):
            if word.upos in CONTENT:
                ending = next(end for end in ENDINGS if word.form.lower().endswith(end))
                places[word.upos, ending].append((number, at))
    for some in places.values():
        drawn = [forms[number][at] for number, at in rng.permutation(some)]
        for (number, at), form in zip(some, drawn, strict=True):
            forms[number][at] = form
    for tree, new in zip(corpus.trees, forms, strict=True):
        text, words = "", []
        for word, form, after in zip(tree.words, new, (*tree.words[1:], None), strict=True):
            words.append(replace(word, form=form, start=len(text), end=len(text) + len(form)))
            text += form + " " * (after is not None and after.start > word.end)
        made[text] = (Sentence(text, tuple(words)),)
    return Treebank("jabberwocky", made)


def by_tags(fitted: Sequence[Tree], trees: Sequence[Tree]) -> np.ndarray:
    """Arcs found without a model: two words are the closer, the more often words of such parts of speech, so far apart, were adjacent."""
    counts = defaultdict[tuple, np.ndarray](lambda: np.array([0.1, 1.0]))  # adjacent, all

    def cells(tree: Tree) -> dict[tuple[int, int], tuple[str, str, int]]:
        tags = [tree.words[at].upos for at in tree.kept]
        pairs = combinations(range(len(tags)), 2)
        return {(a, b): (tags[a], tags[b], min(b - a, 11)) for a, b in pairs}

    for tree in fitted:
        arcs = {tuple(sorted(arc)) for arc in tree.arcs.tolist()}
        for pair, cell in cells(tree).items():
            counts[cell] += pair in arcs, 1
    found = []
    for tree in trees:
        distances = np.zeros((len(tree.heads),) * 2)
        for pair, cell in cells(tree).items():
            at = tree.kept[list(pair)]
            distances[tuple(at)] = distances[tuple(at[::-1])] = -counts[cell][0] / counts[cell][1]
        found.append(arcs_found(tree, distances))
    return np.concatenate(found)


def correlations(trees: Sequence[Tree], vectors: np.ndarray, probe: np.ndarray) -> np.ndarray:
    """Spearman's ρ of a word's distances by a probe and in the tree, mean over the words of each sentence of 5 to 50."""
    ends, found = sentence_ends(trees), []
    for tree, mapped in zip(trees, np.split(vectors @ probe, ends[:-1]), strict=True):
        if 5 <= len(mapped) <= 50:
            found.append(rank_correlations(squared_distances(mapped), tree.distances).mean())
    return np.array(found)


def by_heads(
    corpus: Corpus, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> np.ndarray:
    """Which arcs the maximum spanning tree of each head's attention in both directions has: (layers, heads, arcs)."""
    parts = {
        at: arcs_found(corpus.trees[at], -maps - maps.swapaxes(-1, -2))
        for at, maps in corpus.read(model, tokenizer, heads=True)
    }
    return np.concatenate([parts[at] for at in sorted(parts)], axis=-1)


def trees_without_model(fitted: Sequence[Tree], trees: Sequence[Tree]) -> dict[str, np.ndarray]:
    """Which arcs trees have that need no model, by kind: the chain, a star, and by parts of speech and distance."""
    stars = []
    for tree in trees:
        verbs = [at for at, word in enumerate(tree.kept) if tree.words[word].upos == "VERB"]
        stars.append((tree.arcs == (verbs or [0])[0]).any(axis=1))
    chain = np.concatenate([tree.in_chain for tree in trees])
    return {CHAIN: chain, STAR: np.concatenate(stars), TAGS: by_tags(fitted, trees)}


def best_layer(vectors: np.ndarray, trees: Sequence[Tree]) -> int:
    """The layer in whose vectors a probe of five sixths of the sentences finds most in the last sixth."""
    cut = len(trees) * 5 // 6
    at = sentence_ends(trees)[cut - 1]
    shares = [arcs_of_probe(trees[cut:], x[at:], fit(x[:at], trees[:cut])).mean() for x in vectors]
    return int(np.argmax(shares))


def sentences_of_lab(lab: Lab) -> Treebank:
    """The treebank's sentences, or those of the tasks' rows, each once."""
    if lab.sentences is not None:
        return lab.sentences
    texts = [
        row[field]
        for task in lab.tasks
        for row in lab.rows(task, "measured")
        for field in task.fields
    ]
    found: dict[str, tuple[Sentence, ...]] = {}
    for sentence in (one for several in lab.annotator.annotate(texts) for one in several):
        # Words count the characters of a text, which may have several sentences.
        first = sentence.words[0]
        found[sentence.text] = (moved(sentence, sentence.text.index(first.form) - first.start),)
    return Treebank(lab.annotator.name, found)


def run(lab: Lab) -> None:
    """Record and judge all of notebook 11: the first half of the sentences fits, the second tests."""
    both = Corpus.of(sentences_of_lab(lab), lab.tokenizer)
    half, seed, encoder = len(both.trees) // 2, lab.settings.seed, lab.encoder()
    if half < LEAST:
        raise ValueError(
            f"{len(both.trees)} usable sentences; {2 * LEAST} are wanted, half to fit a probe and half"
            " to test it: give more rows (max_examples), or a treebank"
        )
    parts = fitted, tested = both[:half], both[half:]
    lab.fact(sentences={"train": half, "test": len(tested.trees), "left out": both.left_out})
    known, new = (part.vectors(encoder, lab.tokenizer) for part in parts)
    layers = range(len(known))
    probes = {PROBE: [fit(x, fitted.trees) for x in known]}
    probes[TRAINED] = [train_probe(x, fitted.trees, seed=seed) for x in known]
    found = {
        name: [arcs_of_probe(tested.trees, new[at], some[at]) for at in layers]
        for name, some in probes.items()
    }
    drawn_encoder = lab.encoder("normal")
    random = [part.vectors(drawn_encoder, lab.tokenizer) for part in parts]
    found[RANDOM] = [
        arcs_of_probe(tested.trees, y, fit(x, fitted.trees)) for x, y in zip(*random, strict=True)
    ]
    chosen_by, of_heads = (by_heads(part, encoder, lab.tokenizer) for part in parts)
    by_head = chosen_by.mean(axis=-1)  # (layers, heads)
    found[HEAD] = [of[at] for of, at in zip(of_heads, by_head.argmax(axis=1), strict=True)]
    best = largest(by_head)

    share = partial(share_found, trees=tested.trees, seed=seed)
    score, gain = (partial(lab.record, unit=of, tolerance=SHARE) for of in ("score", "gain"))
    shares = {
        name: {f"layer {at}": share(one) for at, one in enumerate(of, start=name == HEAD)}
        for name, of in found.items()
    }
    score(UUAS, shares, by=("state", "kind"))
    without = trees_without_model(fitted.trees, tested.trees)
    score(WITHOUT, {kind: share(one) for kind, one in without.items()}, by=("kind",))
    rho = {
        name: {
            f"layer {at}": bootstrap_mean(correlations(tested.trees, new[at], some[at]), seed)
            for at in layers
        }
        for name, some in probes.items()
    }
    lab.record(RHO, rho, by=("state", "kind"), unit="correlation", tolerance=SHARE)
    # The layer, too, is chosen on other sentences.
    layer = best_layer(known, fitted.trees)
    probe, at_best = probes[PROBE][layer], {name: found[name][layer] for name in probes}
    at_best |= {HEAD: of_heads[best]} | without
    record_lengths(lab, tested.trees, at_best)
    record_sizes(lab, parts, known[layer], new[layer])
    on_exchanged = with_exchanged_trees(parts, known[layer], new[layer], seed)
    gain("selectivity of the closed-form probe", share(at_best[PROBE]) - on_exchanged)
    controls = {"exchanged trees": on_exchanged}
    controls |= without_sense(lab, tested, probe, layer, best) | by_lemma(parts, at_best, seed)
    score(CONTROL, controls, by=("kind",))
    lab.fact(layer=layer, head=head_name(*best[:2]))
    lab.fact(drawn=drawn(lab, probe, layer, best))
    gain(ABOVE_HEAD, share(at_best[PROBE]) - share(of_heads[best]))
    closed, middle = shares[PROBE], shares[PROBE][f"layer {(len(known) - 1) // 2}"]
    ends = {kind: middle - closed[kind] for kind in ("layer 1", f"layer {len(known) - 1}")}
    gain(ABOVE_ENDS, ends, by=("kind",))
    above = {kind: closed[kind] - trained for kind, trained in shares[TRAINED].items()}
    gain(ABOVE_TRAINED, above, by=("kind",))
    for claim in ("trees-in-vectors", "trees-in-the-middle", "probe-without-training"):
        lab.judge(claim)


def record_lengths(lab: Lab, trees: Sequence[Tree], found: Mapping[str, np.ndarray]) -> None:
    """The share of arcs of each length that is found, by method."""
    lengths = np.concatenate([abs(tree.arcs[:, 0] - tree.arcs[:, 1]) for tree in trees])
    of = np.searchsorted(list(LENGTHS.values()), lengths)
    there = {kind: of == at for at, kind in enumerate(LENGTHS) if (of == at).any()}
    values = {
        name: {
            kind: share_found(arcs, trees, lab.settings.seed, chosen)
            for kind, chosen in there.items()
        }
        for name, arcs in found.items()
    }
    lab.record(BY_LENGTH, values, by=("state", "kind"), unit="score", tolerance=SHARE)


def record_sizes(lab: Lab, parts: Parts, known: np.ndarray, new: np.ndarray) -> None:
    """UUAS of both probes after some of the training sentences."""
    (fitted, tested), seed = parts, lab.settings.seed
    ends = sentence_ends(fitted.trees)
    order = np.random.default_rng(seed).permutation(len(ends))
    words = np.split(known, ends[:-1])
    values: dict[str, dict[str, Bootstrap]] = {PROBE: {}, TRAINED: {}}
    for size in [size for size in SIZES if size < len(order)] + [len(order)]:
        some = [fitted.trees[at] for at in order[:size]]
        x = np.concatenate([words[at] for at in order[:size]])
        for name, probe in {PROBE: fit(x, some), TRAINED: train_probe(x, some, seed=seed)}.items():
            arcs = arcs_of_probe(tested.trees, new, probe)
            values[name][str(size)] = share_found(arcs, tested.trees, seed)
    lab.record(PART, values, by=("state", "kind"), unit="score", tolerance=SHARE)


def with_exchanged_trees(parts: Parts, known: np.ndarray, new: np.ndarray, seed: int) -> Bootstrap:
    """UUAS of a probe where only position is left to learn."""
    fitted, tested = (exchanged(part.trees, seed) for part in parts)
    return share_found(arcs_of_probe(tested, new, fit(known, fitted)), tested, seed)


def without_sense(
    lab: Lab, tested: Corpus, probe: np.ndarray, layer: int, best: tuple[int, ...]
) -> dict[str, Bootstrap]:
    """UUAS of the probe and of the best head on jabberwocky."""
    encoder, seed = lab.encoder(), lab.settings.seed
    nonsense = Corpus.of(jabberwocky(tested, seed), lab.tokenizer, least=1)
    mapped = nonsense.vectors(encoder, lab.tokenizer)[layer]
    arcs = {
        "jabberwocky": arcs_of_probe(nonsense.trees, mapped, probe),
        f"jabberwocky, {HEAD}": by_heads(nonsense, encoder, lab.tokenizer)[best],
    }
    return {name: share_found(one, nonsense.trees, seed) for name, one in arcs.items()}


def by_lemma(parts: Parts, found: Mapping[str, np.ndarray], seed: int) -> dict[str, Bootstrap]:
    """UUAS of the probe and of the chain, of arcs with and without a lemma that no training sentence has."""
    fitted, tested = (part.trees for part in parts)

    def lemmas(tree: Tree) -> np.ndarray:
        return np.array([word.lemma or word.form.lower() for word in tree.words])

    known = np.concatenate([lemmas(tree) for tree in fitted])
    is_known = [np.isin(lemmas(tree)[tree.kept], known) for tree in tested]
    seen = np.concatenate(
        [words[tree.arcs].all(axis=1) for words, tree in zip(is_known, tested, strict=True)]
    )
    values: dict[str, Bootstrap] = {}
    for name, chosen in {"with an unseen lemma": ~seen, "with seen lemmas": seen}.items():
        if chosen.any():
            values[name] = share_found(found[PROBE], tested, seed, chosen)
            values[f"{name}, {CHAIN}"] = share_found(found[CHAIN], tested, seed, chosen)
    return values


def drawn(lab: Lab, probe: np.ndarray, layer: int, best: tuple[int, ...]) -> dict[str, object]:
    """A sentence with its governors, and to which word the probe and the best head join each; -1 for none."""
    starts = accumulate((len(form) + 1 for form in DRAWN), initial=0)
    words = tuple(
        Word(form, form, start, start + len(form), "X", head, "")
        for form, head, start in zip(DRAWN, GOVERNORS, starts, strict=False)
    )
    text, encoder = " ".join(DRAWN), lab.encoder()
    corpus = Corpus.of(Treebank("", {text: (Sentence(text, words),)}), lab.tokenizer, least=1)
    ((_, maps),) = corpus.read(encoder, lab.tokenizer, heads=True)
    mapped = corpus.vectors(encoder, lab.tokenizer)[layer] @ probe
    distances = {PROBE: squared_distances(mapped), HEAD: -maps[best] - maps[best].T}
    links = {name: spanning_tree(of).tolist() for name, of in distances.items()}
    return {"words": DRAWN, "gold": list(GOVERNORS), **links}
