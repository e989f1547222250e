"""Trees in vectors and in attention: trees that were planted, a plain reading of the same, and what is refused."""

import gzip

import numpy as np
import pytest
import torch
from conftest import conllu, loaded
from plain import made_input
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path
from sklearn.linear_model import LogisticRegression
from small_models import model_and_tokenizer

from bertology_utils import pattern_network, tree_probe
from bertology_utils.annotation import Word
from bertology_utils.hooks import shape_of
from bertology_utils.measurements import LEAST_WEIGHT, attention_trees, vector_trees
from bertology_utils.study import Study
from bertology_utils.trees import (
    SHRINKAGE,
    Tree,
    arcs_right,
    covariances,
    fit,
    probe_scores,
    train_probe,
)

TAGS = ("NOUN", "VERB", "ADJ")


def random_heads(rng, size):
    """A random tree: every word but the first of a random order hangs from an earlier one."""
    order, heads = rng.permutation(size), np.full(size, -1)
    for at in range(1, size):
        heads[order[at]] = order[rng.integers(at)]
    return heads


def tree_of(heads, tags=TAGS):
    rng = np.random.default_rng(len(heads))
    words = [Word("w", 0, 1, str(rng.choice(tags)), int(at), "dep") for at in heads]
    return Tree.of(made_input(words))


def random_trees(count, seed=0):
    rng = np.random.default_rng(seed)
    return [tree_of(random_heads(rng, size)) for size in rng.integers(5, 15, count)]


def planted(trees, seed=1, width=60, inside=40):
    """Vectors in which a word is its governor plus a step in some of the dimensions, and noise in the others, all turned."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(width, width)))[0]
    vectors = []
    for tree in trees:
        steps = rng.normal(size=(len(tree.heads), inside))
        for word in range(len(tree.heads)):
            place, at = np.zeros(inside), word
            while at >= 0:
                place, at = place + steps[at], tree.heads[at]
            vectors.append([*place, *3 * rng.normal(size=width - inside)])
    return np.array(vectors) @ turn


def share(trees, vectors, probe):
    right = arcs_right(trees, probe_scores(probe, vectors, trees))
    return right.sum() / sum(len(tree.arcs) for tree in trees)


# What is planted is found.


@pytest.mark.parametrize("probe_of", [fit, train_probe])
def test_a_planted_tree_is_recovered_and_noise_has_none(probe_of):
    trees, others = random_trees(200), random_trees(100, seed=5)
    vectors, new = planted(trees), planted(others, seed=1)
    assert share(others, new, probe_of(vectors, trees)) > 0.9
    rng = np.random.default_rng(3)
    noise, other_noise = rng.normal(size=vectors.shape), rng.normal(size=new.shape)
    assert share(others, other_noise, probe_of(noise, trees)) < 0.4


def test_dimensions_that_never_change_do_not_matter_and_vectors_that_never_do_are_refused():
    trees = random_trees(100)
    vectors = planted(trees)
    constant = np.concatenate([vectors, np.ones((len(vectors), 4))], axis=1)
    found, more = (share(trees, x, fit(x, trees, 60)) for x in (vectors, constant))
    assert abs(found - more) < 0.03  # the same share of a smaller mean variance is added
    assert np.isfinite(fit(constant, trees, 64)).all()
    with pytest.raises(ValueError, match="one vector: there is nothing to fit"):
        fit(np.ones_like(vectors), trees)
    with pytest.raises(ValueError, match="rank=61: choose 1 to 60, the width"):
        train_probe(vectors, trees, 61)


# A plain reading.


def test_covariances_and_the_probe_are_those_of_a_loop_over_all_pairs():
    trees = random_trees(30)
    vectors, width, start = planted(trees), 60, 0
    sums, counts = {True: 0, False: 0}, {True: 0, False: 0}
    for tree in trees:
        for one in range(len(tree.heads)):
            for other in range(one):
                step = vectors[start + one] - vectors[start + other]
                joined = bool(tree.heads[one] == other or tree.heads[other] == one)
                sums[joined] = sums[joined] + np.outer(step, step)
                counts[joined] += 1
        start += len(tree.heads)
    adjacent, others = (sums[joined] / counts[joined] for joined in (True, False))
    unit = np.trace(others) / width
    for own, plain in zip(covariances(vectors, trees), (adjacent, others), strict=True):
        np.testing.assert_allclose(own, plain / unit, atol=1e-9)
    adjacent = adjacent / unit + SHRINKAGE * np.eye(width)
    ratios, directions = np.linalg.eig(np.linalg.solve(adjacent, others / unit))
    directions /= np.sqrt(np.einsum("wk,wv,vk->k", directions, adjacent, directions))
    plain = directions * np.maximum(0, 1 - 1 / ratios) @ directions.T
    own = fit(vectors, trees, width)
    np.testing.assert_allclose(own @ own.T, plain.real, atol=1e-6 * abs(plain).max())


def plain_right(tree, scores):
    """Arcs that scipy's minimum spanning tree of a square of scores has."""
    found = minimum_spanning_tree(scores.max() + 1 - scores).tocoo()
    links = {frozenset(map(int, pair)) for pair in zip(found.row, found.col, strict=True)}
    return len(links & {frozenset(pair) for pair in tree.arcs.tolist()})


def test_spanning_trees_are_those_of_plain_squares_one_or_many_at_once():
    rng, trees = np.random.default_rng(0), random_trees(12)
    squares = [rng.random((3, 4, len(tree.heads), len(tree.heads))) for tree in trees]
    squares = [one + one.swapaxes(-1, -2) for one in squares]
    pairs = [one[(..., *tree.pairs)] for one, tree in zip(squares, trees, strict=True)]
    found = arcs_right(trees, np.concatenate(pairs, axis=-1))
    for at in np.ndindex(3, 4):
        plain = [plain_right(tree, one[at]) for tree, one in zip(trees, squares, strict=True)]
        assert found[at].tolist() == plain


def test_trees_without_punctuation_have_the_distances_of_the_whole():
    heads = [1, -1, 3, 1, 3, 4]  # of a word, root, mark, word, word, word
    tags = ["NOUN", "VERB", "PUNCT", "NOUN", "ADJ", "NOUN"]
    words = [Word("w", 0, 1, tag, at, "dep") for tag, at in zip(tags, heads, strict=True)]
    tree, kept = Tree.of(made_input(words)), [0, 1, 3, 4, 5]
    assert tree.pieces == ((1,), (2,), (4,), (5,), (6,)) and tree.heads.tolist() == [1, -1, 1, 2, 3]
    assert tree.arcs.tolist() == [[0, 1], [2, 1], [3, 2], [4, 3]]
    links = np.zeros((6, 6))
    for word, head in enumerate(heads):
        links[word, head] = head >= 0
    plain = shortest_path(links, directed=False, unweighted=True)[np.ix_(kept, kept)]
    np.testing.assert_array_equal(tree.distances, plain)
    assert tree.adjacent.sum() == 4


# What is measured of a treebank.


@pytest.fixture
def study(tiny_bert):
    return Study.of("small", model=str(tiny_bert), trees=60)


def read_plainly(study, one):
    """Of one sentence its words' vectors (layers + 1, words, width), and attention between them (layers, heads, words, words)."""
    model = study.encoder()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(torch.tensor([one.ids]), output_hidden_states=True, output_attentions=True)
    (sentence,) = one.sentences
    pieces = [
        list(pieces)
        for word, pieces in zip(sentence.words, sentence.pieces, strict=True)
        if word.upos != "PUNCT"
    ]
    states, maps = torch.cat(out.hidden_states).numpy(), torch.cat(out.attentions).numpy()
    between = np.zeros((*maps.shape[:2], len(pieces), len(pieces)))
    for row, own in enumerate(pieces):
        for column, other in enumerate(pieces):
            between[..., row, column] = maps[..., own, :][..., other].sum(axis=-1).mean(axis=-1)
    return np.stack([states[:, own].mean(axis=1) for own in pieces], axis=1), between


def test_what_is_measured_of_trees_is_that_of_a_plain_reading(study):
    vectors, attention = (study.measure(one)["treebank"] for one in (vector_trees, attention_trees))
    usable = []
    for one in study.sentences(60):
        try:
            usable.append((one, Tree.of(one)))
        except ValueError:
            continue
    trees, count = [tree for _, tree in usable], round(len(usable) / 2)
    assert vectors.part.values.tolist().count("training") == count
    read = [read_plainly(study, one) for one, _ in usable]
    assert vectors.number.values.tolist() == [
        at for at, tree in enumerate(trees) for _ in tree.heads
    ]
    # Vectors: the probe in layer 2, the middle one of four.
    x = np.concatenate([states[2] for states, _ in read])
    probe = fit(x[: sum(len(tree.heads) for tree in trees[:count])], trees[:count])
    before, pairs = sum(len(tree.adjacent) for tree in trees[:count]), []
    for tree, (states, _) in zip(trees, read, strict=True):
        mapped = states[2] @ probe
        pairs += [-((mapped[a] - mapped[b]) ** 2).sum() for a, b in zip(*tree.pairs, strict=True)]
    own = vectors.score.sel(by="one layer").values
    np.testing.assert_allclose(own, pairs[before:], rtol=5e-3, atol=5e-2)
    # Attention: single heads in both directions, and a logistic regression on all of both.
    features, gold = [], []
    for at, (tree, (_, maps)) in enumerate(zip(trees, read, strict=True)):
        for layer, head in ((0, 1), (2, 3)):
            right = plain_right(tree, maps[layer, head] + maps[layer, head].T)
            found = attention.right_head.isel(layer=layer, head=head, sentence=at)
            assert abs(right - int(found)) <= 1
        for a, b in zip(*tree.pairs, strict=True):
            features.append(np.log(np.stack([maps[..., a, b], maps[..., b, a]]) + LEAST_WEIGHT))
            gold.append(tree.heads[a] == b or tree.heads[b] == a)
    features = np.array(features).reshape(len(features), -1)
    known = features[:before]
    scaled = (features - known.mean(axis=0)) / known.std(axis=0)
    plain = LogisticRegression(C=0.01, max_iter=500).fit(scaled[:before], gold[:before])
    own = attention.score.sel(by="all heads").values
    np.testing.assert_allclose(own, plain.decision_function(scaled)[before:], atol=2e-2)
    slopes = attention.slope.values.astype(float).ravel()
    by_slopes = features[before:] @ slopes
    assert np.corrcoef(own.astype(float), by_slopes)[0, 1] > 0.999


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


@pytest.mark.parametrize("tag", ["_", ".", "X"])
def test_punctuation_is_left_out_whatever_its_part_of_speech(files, tiny_bert, tag):
    model, tokenizer = loaded(tiny_bert)
    tables = []
    for of_mark in ("PUNCT", tag):
        for path in (paths := files()):
            path.write_text("".join(
                f"{one}\n9\t!\t!\t{of_mark}\t_\t_\t1\tpunct\t_\t_\n\n"
                for one in path.read_text().strip().split("\n\n")
            ))  # fmt: skip
        tables.append(tree_probe(model, tokenizer, *paths).drop(columns="seconds"))
    assert tables[0].equals(tables[1])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_torchs_default_type_of_numbers_changes_nothing(files, tiny_bert, dtype):
    (model, tokenizer), paths, trees = loaded(tiny_bert), files(), random_trees(10)

    def results():
        table = tree_probe(model, tokenizer, *paths).drop(columns="seconds")
        types = {one.dtype for one in pattern_network().parameters()}
        return table, train_probe(planted(trees), trees, 4, epochs=1), types

    expected = results()
    torch.set_default_dtype(dtype)
    try:
        table, probe, types = results()
    finally:
        torch.set_default_dtype(torch.float32)
    assert table.equals(expected[0]) and (probe == expected[1]).all()
    assert types == {torch.float32}


@pytest.mark.parametrize("name", ["Roberta", "DistilBert", "Albert"])
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
