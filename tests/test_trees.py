"""The structural probe in closed form: trees that were planted, a plain reading of the same, and what it refuses."""

import gzip

import numpy as np
import pytest
import torch
from bertology_utils.lab import Lab
from bertology_utils.statistics import bootstrap
from conftest import conllu, loaded
from eight_models import NAMES, model_and_tokenizer
from plain import touching
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path

from bertology_utils import load_encoder, load_tokenizer, tree_probe
from bertology_utils.annotation.annotators import Treebank, Word, read
from bertology_utils.attention.hooks import shape_of
from bertology_utils.corpora import GLUE
from bertology_utils.settings import embedded_folder
from bertology_utils.tree_controls import (
    by_heads,
    by_tags,
    correlations,
    exchanged,
    jabberwocky,
    run,
)
from bertology_utils.trees import (
    SHRINKAGE,
    Corpus,
    Tree,
    ancestors,
    arcs_of_probe,
    fit,
    share_found,
    spanning_tree,
    squared_distances,
    train_probe,
)

TAGS = ("NOUN", "VERB", "ADJ", "PUNCT")


def random_heads(rng, size):
    """A random tree: every word but the first of a random order hangs from an earlier one."""
    order, heads = rng.permutation(size), np.full(size, -1)
    for at in range(1, size):
        heads[order[at]] = order[rng.integers(at)]
    return heads


def random_trees(count, seed=0, tags=TAGS[:3]):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 15, count)
    return [
        Tree.of(
            Word("w", "w", 0, 1, str(rng.choice(tags)), int(head), "dep")
            for head in random_heads(rng, size)
        )
        for size in sizes
    ]


def planted(trees, seed=1, width=60, inside=40):
    """Vectors in which a word is its governor plus a step in some of the dimensions, and noise in the others, all turned."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(width, width)))[0]
    parts = []
    for tree in trees:
        steps = rng.normal(size=(len(tree.heads), inside))
        noise = 3 * rng.normal(size=(len(tree.heads), width - inside))
        parts.append(np.concatenate([ancestors(tree.heads) @ steps, noise], axis=1))
    return np.concatenate(parts) @ turn


def share(trees, vectors, probe):
    return arcs_of_probe(trees, vectors, probe).mean()


# What is planted is found.


@pytest.mark.parametrize("probe_of", [fit, train_probe])
def test_a_planted_tree_is_recovered_and_shuffled_trees_are_not(probe_of):
    trees, others = random_trees(200), random_trees(100, seed=5)
    vectors, new = planted(trees), planted(others, seed=1)
    probe = probe_of(vectors, trees)
    assert share(others, new, probe) > 0.9
    assert correlations(others, new, probe).mean() > 0.8
    shuffled = [exchanged(some, 0) for some in (trees, others)]
    assert share(shuffled[1], new, probe_of(vectors, shuffled[0])) < 0.4
    # In dimensions of noise alone there is no tree.
    noise = (
        np.random.default_rng(3).normal(size=vectors.shape),
        np.random.default_rng(4).normal(size=new.shape),
    )
    assert share(others, noise[1], probe_of(noise[0], trees)) < 0.4


def test_dimensions_that_never_change_do_not_matter_and_vectors_that_never_do_are_refused():
    trees = random_trees(100)
    vectors = planted(trees)
    constant = np.concatenate([vectors, np.ones((len(vectors), 4))], axis=1)
    found, more = (arcs_of_probe(trees, x, fit(x, trees, 60)) for x in (vectors, constant))
    assert (found == more).mean() > 0.97  # the same share of a smaller mean variance is added
    assert np.isfinite(fit(constant, trees, 64)).all()
    with pytest.raises(ValueError, match="one vector: there is nothing to fit"):
        fit(np.ones_like(vectors), trees)
    for rank in (61, -1):
        with pytest.raises(ValueError, match=rf"rank={rank}: choose 1 to 60, the width"):
            fit(vectors, trees, rank)
        with pytest.raises(ValueError, match=f"rank={rank}"):
            train_probe(vectors, trees, rank)


# A plain reading.


def test_spanning_trees_are_scipys_one_or_many_at_once():
    rng = np.random.default_rng(0)
    distances = rng.random((3, 4, 9, 9)) + 0.1
    distances += distances.swapaxes(-1, -2)
    links = spanning_tree(distances)
    for at in np.ndindex(3, 4):
        tree = minimum_spanning_tree(distances[at]).tocoo()
        expected = {
            frozenset(pair) for pair in zip(tree.row.tolist(), tree.col.tolist(), strict=True)
        }
        own = {frozenset((word, int(to))) for word, to in enumerate(links[at]) if to >= 0}
        assert own == expected
    assert spanning_tree(np.zeros((1, 1))).tolist() == [-1]


def test_distances_in_trees_and_of_vectors_are_the_plain_ones():
    for tree in random_trees(20):
        links = np.zeros((len(tree.heads),) * 2)
        for word, head in enumerate(tree.heads):
            links[word, head] = head >= 0
        plain = shortest_path(links, directed=False, unweighted=True)
        np.testing.assert_allclose(tree.distances, plain, atol=1e-9)
    vectors = np.random.default_rng(0).normal(size=(2, 5, 3))
    plain = ((vectors[:, :, None] - vectors[:, None]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(squared_distances(vectors), plain, atol=1e-12)
    np.testing.assert_allclose(squared_distances(torch.as_tensor(vectors)), plain, atol=1e-12)


def sentences(count, task="MRPC"):
    texts = read(GLUE / task / "dev.conllu.gz").sentences
    return Treebank("synthetic", dict([*texts.items()][:count]))


def plain_vectors(model, tokenizer, text, words):
    """One sentence on its own: (layers + 1, words, width), and maps between words, (layers, heads, words, words)."""
    encoded = tokenizer(text, return_offsets_mapping=True, return_tensors="pt")
    offsets, owners = encoded.pop("offset_mapping")[0].tolist(), encoded.sequence_ids(0)
    with torch.no_grad():
        out = model(**encoded, output_hidden_states=True, output_attentions=True)
    states = torch.cat(out.hidden_states).double().numpy()
    maps = torch.cat(out.attentions).double().numpy()
    pieces = [touching(offsets, owners, 0, word.start, word.end) for word in words]
    between = np.zeros((*maps.shape[:2], len(words), len(words)))
    for row, own in enumerate(pieces):
        for column, other in enumerate(pieces):
            between[..., row, column] = maps[..., own, :][..., other].sum(axis=-1).mean(axis=-1)
    return np.stack([states[:, own].mean(axis=1) for own in pieces], axis=1), between


def plain_hits(tree, distances):
    """Arcs of the tree without punctuation that scipy's minimum spanning tree has; and all of them."""
    kept = [at for at, word in enumerate(tree.words) if word.upos != "PUNCT"]
    arcs = {
        frozenset((at, word.head))
        for at, word in enumerate(tree.words)
        if at in kept and word.head in kept
    }
    shifted = distances[np.ix_(kept, kept)] - distances.min() + 1.0
    links = minimum_spanning_tree(shifted).tocoo()
    own = {frozenset((kept[a], kept[b])) for a, b in zip(links.row, links.col, strict=True)}
    return len(arcs & own), len(arcs)


def test_on_fifty_sentences_probe_and_heads_are_those_of_a_plain_reading():
    model = (
        type(load_encoder("embedded"))
        .from_pretrained(embedded_folder(), attn_implementation="eager")
        .eval()
    )
    tokenizer = load_tokenizer("embedded")
    corpus = Corpus.of(sentences(50), tokenizer)
    trees = corpus.trees
    plain = [
        plain_vectors(model, tokenizer, text, tree.words)
        for text, tree in zip(corpus.texts, trees, strict=True)
    ]
    vectors = corpus.vectors(load_encoder("embedded"), tokenizer)
    np.testing.assert_allclose(vectors, np.concatenate([x for x, _ in plain], axis=1), atol=1e-4)

    layer, width = 3, vectors.shape[2]
    adjacent, others, arcs, pairs = np.zeros((width, width)), np.zeros((width, width)), 0, 0
    for tree, (x, _) in zip(trees, plain, strict=True):
        for one in range(len(tree.heads)):
            for other in range(one):
                step = x[layer, one] - x[layer, other]
                if tree.heads[one] == other or tree.heads[other] == one:
                    adjacent, arcs = adjacent + np.outer(step, step), arcs + 1
                else:
                    others, pairs = others + np.outer(step, step), pairs + 1
    adjacent, others = adjacent / arcs, others / pairs
    adjacent += SHRINKAGE * np.trace(others) / width * np.eye(width)
    ratios, directions = np.linalg.eig(np.linalg.solve(adjacent, others))
    chosen = np.argsort(ratios.real)[-64:]
    ratios, directions = ratios.real[chosen], directions.real[:, chosen]
    directions /= np.sqrt(np.einsum("wk,wv,vk->k", directions, adjacent, directions))
    kept = directions * (1 - 1 / ratios) @ directions.T
    probe = fit(np.concatenate([x[layer] for x, _ in plain]), trees)
    np.testing.assert_allclose(probe @ probe.T, kept, atol=1e-6 * abs(kept).max())

    right, total = np.sum(
        [
            plain_hits(tree, squared_distances(x[layer] @ probe))
            for tree, (x, _) in zip(trees, plain, strict=True)
        ],
        axis=0,
    )
    found = arcs_of_probe(trees, vectors[layer], fit(vectors[layer], trees))
    assert len(found) == total and abs(found.sum() - right) <= 1
    of_heads = by_heads(corpus, load_encoder("embedded"), tokenizer)
    for at in ((0, 3), (2, 8), (5, 11)):
        expected = sum(
            plain_hits(tree, -maps[at] - maps[at].T)[0]
            for tree, (_, maps) in zip(trees, plain, strict=True)
        )
        assert abs(of_heads[at].sum() - expected) <= 1


def test_uuas_and_its_interval_are_those_of_resampled_sentences():
    trees = random_trees(30)
    found = np.random.default_rng(0).random(sum(len(tree.arcs) for tree in trees)) < 0.6
    parts = np.split(found, np.cumsum([len(tree.arcs) for tree in trees])[:-1])
    plain = bootstrap(lambda rows: np.concatenate([parts[row] for row in rows]).mean(), 30, 1)
    own = share_found(found, trees, 1)
    assert own.value == pytest.approx(plain.value)
    np.testing.assert_allclose(own.draws, plain.draws)
    one = np.arange(len(found)) == np.flatnonzero(found)[0]
    assert set(share_found(found, trees, 1, one).draws) == {1.0}, (
        "drawn without it, nothing is known"
    )


# Controls.


def test_exchanged_trees_are_those_of_other_sentences_of_the_same_length():
    trees = [
        *random_trees(40),
        Tree.of(Word("w", "w", 0, 1, "X", at - 3, "d") for at in [*range(2, 22)]),
    ]
    found = exchanged(trees, 0)
    assert [len(tree.heads) for tree in found] == [len(tree.heads) for tree in trees]
    by_size = {}
    for own, other in zip(trees, found, strict=True):
        by_size.setdefault(len(own.heads), ([], []))[0].append(own.heads.tolist())
        by_size[len(own.heads)][1].append(other.heads.tolist())
    for size, (own, other) in by_size.items():
        if len(own) > 1:
            assert sorted(own) == sorted(other)
        else:
            assert other == [[at - 1 for at in range(size)]]


def test_jabberwocky_keeps_tags_endings_and_trees():
    tokenizer = load_tokenizer("embedded")
    corpus = Corpus.of(sentences(80), tokenizer)
    nonsense = Corpus.of(jabberwocky(corpus, 0), tokenizer)
    assert len(nonsense.trees) == 80
    changed = 0
    for old, new, text in zip(corpus.trees, nonsense.trees, nonsense.texts, strict=True):
        assert old.heads.tolist() == new.heads.tolist()
        for one, other in zip(old.words, new.words, strict=True):
            assert text[other.start : other.end] == other.form and one.upos == other.upos
            changed += one.form != other.form
            assert one.form == other.form or one.upos in ("NOUN", "PROPN", "VERB", "ADJ", "ADV")
    assert changed > 200
    bags = ({w.form for tree in c.trees for w in tree.words} for c in (corpus, nonsense))
    assert next(bags) == next(bags)


def test_parts_of_speech_and_distance_find_what_they_decide():
    """A verb first, and every other word hangs from it: then pairs with the verb are the adjacent ones."""

    def star(size, at):
        return Tree.of(
            Word("w", "w", 0, 1, "VERB" if one == at else "NOUN", -1 if one == at else at, "dep")
            for one in range(size)
        )

    trees = [star(size, at) for size in range(4, 9) for at in range(size)]
    assert by_tags(trees, trees).all()
    assert by_tags(random_trees(50), trees).mean() < 0.7


# Treebanks, and what is refused.


def sentences_of_eight(count, seed=0, start=0):
    """In CoNLL-U, no two alike."""
    rng, blocks = np.random.default_rng(seed), []
    words = "the river stone bread lamp horse garden paper window music winter bridge".split()
    for number in range(count):
        forms = [f"{start + number}", *rng.choice(words, 7)]
        some = zip(forms, random_heads(rng, 8) + 1, strict=True)
        blocks.append(conllu(*((form, head, "dep", "NOUN") for form, head in some)))
    return "".join(blocks)


def broken(heads):
    return conllu(*(("word", head, "dep", "NOUN") for head in heads))


@pytest.fixture
def files(tmp_path):
    """Two treebanks as files; ``more`` stands before the second one's sentences."""

    def files(more="", train=60, test=60):
        paths = tmp_path / "train.conllu", tmp_path / "test.conllu"
        paths[0].write_text(sentences_of_eight(train))
        paths[1].write_text(more + sentences_of_eight(test, seed=1, start=1000))
        return paths

    return files


def test_a_table_by_layer_of_any_encoder_and_treebank(files, tiny_bert, tmp_path):
    model, tokenizer = loaded(tiny_bert)
    train, test = files()
    table = tree_probe(model, tokenizer, train, test)
    assert table.columns.tolist() == ["layer", "UUAS", "low", "high", "chain", "seconds"]
    assert table.layer.tolist() == [0, 1, 2, 3]
    assert (table.UUAS.between(table.low, table.high)).all() and table.chain.nunique() == 1
    packed = tmp_path / "test.conllu.gz"
    packed.write_bytes(gzip.compress(test.read_bytes()))
    again = tree_probe(model, tokenizer, str(train), packed)
    assert again.drop(columns="seconds").equals(table.drop(columns="seconds"))
    assert table.attrs["left out"] == {"train": {}, "test": {}}
    for rank in (33, -2):
        with pytest.raises(ValueError, match=f"rank={rank}: choose 1 to 32"):
            tree_probe(model, tokenizer, train, test, rank=rank)
    with pytest.raises(ValueError, match="training mode"):
        tree_probe(model.train(), tokenizer, train, test)


@pytest.mark.parametrize("name", NAMES)
def test_a_row_for_each_layer_of_any_architecture(files, name):
    model, tokenizer = model_and_tokenizer(name)
    table = tree_probe(model, tokenizer, *files())
    assert len(table) == shape_of(model)[0] + 1 and table.UUAS.between(0.05, 0.9).all()


def test_what_is_no_tree_or_too_long_is_left_out_and_counted(files, tiny_bert):
    model, tokenizer = loaded(tiny_bert)
    faulty = {
        "a cycle": [2, 3, 1, 0],
        "not one root": [0, 0, 1, 2, 1],
        "HEAD is missing or no number": ["_", 1, 1, 0],
        "HEAD names no word of the sentence": [9, 1, 1, 0],
        "fewer than three words": [0, 1],
        "longer than 128 wordpieces": [0, *range(1, 150)],
    }
    more = "".join(map(broken, faulty.values()))
    train, test = files(more + sentences_of_eight(3))
    table = tree_probe(model, tokenizer, train, test)
    counted = table.attrs["left out"]["test"]
    assert counted == {**dict.fromkeys(faulty, 1), "also in the training file": 3}


def test_too_few_sentences_and_one_file_for_both_are_refused_with_counts(files, tiny_bert):
    model, tokenizer = loaded(tiny_bert)
    train, test = files(broken([2, 1, 0]), test=49)
    with pytest.raises(
        ValueError, match=r"test.conllu has 49 usable sentences of 50 \(1 left out, a cycle\)"
    ):
        tree_probe(model, tokenizer, train, test)
    with pytest.raises(ValueError, match="has 49 usable sentences"):
        tree_probe(model, tokenizer, test, train)
    with pytest.raises(ValueError, match="train and test are one file"):
        tree_probe(model, tokenizer, train, train.parent / "." / train.name)
    copy = train.with_name("copy.conllu")
    copy.write_text(train.read_text())
    with pytest.raises(ValueError, match=r"0 usable .* \(60 left out, also in the training file\)"):
        tree_probe(model, tokenizer, train, copy)
    with pytest.raises(FileNotFoundError):
        tree_probe(model, tokenizer, train, train.with_name("nothing.conllu"))


def test_a_notebook_needs_a_hundred_sentences(tiny_bert):
    few = Lab("11_trees", model=str(tiny_bert), tasks="mrpc", max_examples=40)
    with pytest.raises(ValueError, match=r"usable sentences; 100 are wanted"):
        run(few)
