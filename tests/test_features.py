"""§4.4: attention to types of token, stripes and shares against a plain reading of their definitions."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from conftest import one_example
from plain import TASKS, made_input, measured, replay, word
from precision import forward_tolerance, sum_tolerance

from bertology_utils import load_tokenizer
from bertology_utils.annotation import Word
from bertology_utils.attention import attention_maps, observe
from bertology_utils.features import (
    DESTINATIONS,
    PLACES_PER_DECADE,
    destinations,
    marks,
    match,
    to_neighbours,
)
from bertology_utils.glue import get_task
from bertology_utils.measurements import features, in_groups
from bertology_utils.words import (
    LINGUISTIC,
    TOKEN_TYPES,
    AnnotatedInput,
    PlacedSentence,
    token_types,
)

MRPC, SST2 = get_task("mrpc"), get_task("sst2")
NOUNS, VERBS, CLS = (TOKEN_TYPES.index(kind) for kind in ("nouns", "verbs", "[CLS]"))


def plain_types(example):
    """Positions of each token type."""

    def positions(wanted):
        return [at for word, places in example.words for at in places if wanted(word)]

    found = {
        "nouns": positions(lambda word: word.upos in ("NOUN", "PROPN")),
        "verbs": positions(lambda word: word.upos == "VERB"),
        "pronouns": positions(lambda word: word.upos == "PRON"),
        "subjects": positions(lambda word: word.deprel in ("nsubj", "nsubj:pass")),
        "objects": positions(lambda word: word.deprel == "obj"),
        "negation": list(example.negation),
    }
    found |= {"[CLS]": example.cls, "[SEP]": example.separators}
    found["punctuation"] = positions(lambda word: word.upos == "PUNCT")
    return [sorted(set(found[name])) for name in TOKEN_TYPES]


@pytest.mark.parametrize("task", TASKS)
def test_types_are_the_plain_ones(task):
    inputs, _, _, examples = measured(task)
    seen = set()
    for example, annotated in zip(examples, inputs, strict=True):
        found = [np.flatnonzero(row).tolist() for row in token_types(annotated)]
        assert found == plain_types(example), example.pieces
        seen |= {name for name, places in zip(TOKEN_TYPES, found, strict=True) if places}
    assert seen >= set(TOKEN_TYPES) - {"pronouns"}


# Where attention goes, against a plain reading of the definition and maps whose answer can be read
# off.


def plain_shares(example, grid):
    """Seven shares and three neighbours' shares, weight by weight."""
    punctuation = [at for word, places in example.words for at in places if word.upos == "PUNCT"]
    shares, neighbours = np.zeros(len(DESTINATIONS)), np.zeros(3)
    for query, row in enumerate(grid):
        for key, weight in enumerate(row):
            special = (key in example.cls, key in example.separators, key in punctuation)
            nearby = [key == query + offset for offset in (-1, 0, 1)]
            shares[[*special, *nearby, True].index(True)] += weight / len(grid)
            if any(nearby):
                neighbours[key - query + 1] += weight / len(grid)
    return np.concatenate([shares, neighbours])


@pytest.mark.parametrize("task", TASKS)
def test_shares_are_the_plain_ones(task):
    inputs, batches, model, examples = measured(task)
    of_marks = destinations([marks(annotated) for annotated in inputs])
    found = observe(model, batches, {"d": of_marks, "n": to_neighbours})
    expected = [
        [[plain_shares(example, grid) for grid in layer] for layer in example.maps.tolist()]
        for example in examples
    ]
    tolerance = forward_tolerance(model) * np.sqrt(64)  # destinations are sums over up to 64 tokens
    together = np.concatenate([found["d"], found["n"]], axis=-1)
    np.testing.assert_allclose(together, expected, atol=tolerance, rtol=0)
    np.testing.assert_allclose(np.sum(found["d"], axis=-1), 1, atol=sum_tolerance(64))


def test_a_token_that_is_two_marks_counts_once():
    """A text in which "[SEP]" is written out: a pipeline calls its bracket punctuation, the tokenizer a separator."""
    bracket = Word("[", 0, 1, "PUNCT", -1, "punct")
    sentence = PlacedSentence((bracket,), ((1,),))
    annotated = AnnotatedInput(
        (1, 2, 3), ("[CLS]", "[SEP]", "[SEP]"), (0,), (1, 2), (sentence,), (), 0
    )
    (shares,) = replay(destinations([marks(annotated)]), [np.eye(3)[[1, 1, 1]][None, None]])
    np.testing.assert_allclose(shares[0, 0], [0, 1, 0, 0, 0, 0, 0], atol=sum_tolerance(60))


# The measurement of notebook 4


@pytest.fixture(scope="module")
def of_pairs(tiny_bert, tiny_classifier, tmp_path_factory):
    """A study of pairs with a classifier whose encoder is another than the pre-trained one; and what is measured."""
    from bertology_utils.models import load_classifier
    from bertology_utils.study import Study

    folder = tmp_path_factory.mktemp("tuned")
    model = load_classifier(str(tiny_classifier), "mrpc", init="finetuned")
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    load_tokenizer(str(tiny_bert)).save_pretrained(folder)
    given = {"model": str(tiny_bert), "data": "embedded", "annotation": "gold", "rows": 12}
    study = Study.of("small", "mrpc", checkpoint={"mrpc": str(folder)}, **given)
    return study, features.function(study, "MRPC", 1, slice(0, 12))


def plain_received(study, words):
    """By state, way and example what each token receives, as nested lists (layers, heads, tokens)."""
    models = {
        "pre-trained": study.encoder(),
        "fine-tuned": study.classifier("MRPC"),
        "random weights": study.encoder("random"),
    }
    batches = study.batches("MRPC", len(words))
    columns = {}
    for (state, model), way in itertools.product(models.items(), ("weight", "norm")):
        for at in range(len(words)):
            maps = attention_maps(model, one_example(batches, at), way)
            columns[state, way, at] = [[grid.mean(dim=0).tolist() for grid in of[0]] for of in maps]
    return columns


def plain_kinds(example):
    """Positions of each type, "words" too."""
    found = dict(zip(TOKEN_TYPES, plain_types(example), strict=True))
    found["negation"] = [at for places in example.negation for at in places]
    marked = {at for kind in ("[CLS]", "[SEP]", "punctuation") for at in found[kind]}
    return found | {"words": [at for at in range(example.length) if at not in marked]}


def test_what_types_receive_by_loops(of_pairs):
    study, found = of_pairs
    words = study.words("MRPC", 0, 12)
    columns, kinds = plain_received(study, words), list(map(plain_kinds, words))
    has = {kind: [at for at in range(12) if kinds[at][kind]] for kind in found.type.values}
    assert found["count"].to_series().to_dict() == {kind: len(at) for kind, at in has.items()}
    for (state, way, layer, head), kind in itertools.product(
        [
            ("pre-trained", "weight", 0, 1),
            ("fine-tuned", "norm", 2, 3),
            ("random weights", "norm", 1, 0),
        ],
        has,
    ):
        each = [
            max(columns[state, way, at][layer][head][place] for place in kinds[at][kind])
            for at in has[kind]
        ]
        one = found.sel(state=state, way=way, type=kind, layer=layer + 1, head=head + 1)
        assert float(one["mean"]) == pytest.approx(np.mean(each), abs=1e-5)
        if len(each) > 1:
            assert float(one.spread) == pytest.approx(np.std(each, ddof=1), abs=1e-5)
    pairs = match(words, study.settings.seed)
    for at, kind in itertools.product(range(12), ("nouns", "objects", "negation")):
        one = found.sel(turned=kind, layer=2, head=4).isel(example=at)
        number = LINGUISTIC.index(kind)
        places = {"rise": kinds[at][kind], "own": np.flatnonzero(pairs[at][number])}
        places["others"] = np.flatnonzero(pairs[at][number + len(LINGUISTIC)])
        rises = {
            name: max(columns["fine-tuned", "weight", at][1][3][place] for place in where)
            - max(columns["pre-trained", "weight", at][1][3][place] for place in where)
            for name, where in places.items()
            if len(where)
        }
        assert float(one.rise) == pytest.approx(rises.get("rise", math.nan), abs=6e-4, nan_ok=True)
        above = rises["own"] - rises["others"] if "own" in rises else math.nan
        assert float(one.above) == pytest.approx(above, abs=6e-4, nan_ok=True)
    assert abs(found.rise).max() > 0.01 and abs(found.above).max() > 0.01


def test_stripes_and_shares_by_loops(of_pairs):
    study, found = of_pairs
    words = study.words("MRPC", 0, 12)
    columns, kinds = plain_received(study, words), list(map(plain_kinds, words))
    for at, threshold, way in itertools.product(range(12), (1.5, 3.0), ("weight", "norm")):
        border = threshold / words[at].length
        for kind, where in kinds[at].items():
            states = {
                state: {
                    (layer, head, place)
                    for layer, head, place in itertools.product(range(3), range(4), where)
                    if columns[state, way, at][layer][head][place] > border
                }
                for state in found.state.values
            }
            one = found.isel(example=at).sel(threshold=threshold, way=way, type=kind)
            assert one.stripes.to_series().to_dict() == {s: len(of) for s, of in states.items()}
            before, after = states["pre-trained"], states["fine-tuned"]
            assert int(one.kept) == len(before & after)
            others = [
                (layer, other, place) in before
                for layer, head, place in after
                for other in {*range(4)} - {head}
            ]
            assert float(one.kept_by_others) == pytest.approx(sum(others) / 3)
            assert int(one.tokens) == len(where)
    assert found.kept.sum() > 0 and (found.kept < found.stripes.sel(state="fine-tuned")).any()
    for at, state, layer in itertools.product(range(12), found.state.values, range(3)):
        heads = columns[state, "weight", at][layer]
        one = found.isel(example=at).sel(state=state, layer=layer + 1)
        for kind in ("[CLS]", "[SEP]"):
            share = np.mean([sum(of_head[place] for place in kinds[at][kind]) for of_head in heads])
            assert float(one.by_layer.sel(destination=kind)) == pytest.approx(share, abs=6e-4)
        largest_sep = np.mean(
            [max(of_head[place] for place in kinds[at]["[SEP]"]) for of_head in heads]
        )
        assert float(one.largest_sep) == pytest.approx(largest_sep, abs=6e-4)
        assert float(one.by_layer.sum()) == pytest.approx(1, abs=4e-3)


def test_groups_of_rows_are_means_of_neighbours_and_skip_what_rows_lack():
    values = xr.Dataset({"a": ("example", np.arange(90.0)), "b": ("example", np.full(90, np.nan))})
    values.b[4] = 7.0
    found = in_groups(values.assign(c=("type", [1.0]))).mean()
    assert found.sizes["example"] == 30 and found.c.values == [1]
    np.testing.assert_allclose(found.a, np.arange(1, 90, 3))
    assert found.b[1] == 7 and found.b.isnull().sum() == 29
    assert in_groups(values.isel(example=slice(40))).mean().sizes["example"] == 40
    assert in_groups(values.isel(example=slice(41))).mean().sizes["example"] == 21


# Tokens matched to those of a type: as many, near, and never of the type.

TYPES = len(LINGUISTIC)
NOUN = LINGUISTIC.index("nouns")


def made(classes, ids=None):
    """An input whose words have these parts of speech, one wordpiece each, between [CLS] (id 1) and [SEP] (id 2)."""
    some = made_input([word("x", upos, -1, "dep") for upos in classes])
    return replace(some, ids=(1, *(ids or range(10, 10 + len(classes))), 2))


def places(matched, number=0, kind=NOUN):
    """Positions of the paired tokens of a type, and of their controls."""
    return [np.flatnonzero(matched[number][row]).tolist() for row in (kind, TYPES + kind)]


def test_the_seed_decides_between_equals():
    inputs = [made(["DET", "NOUN", "DET"], [5, 5, 5])] * 20
    first, again, other = (match(inputs, seed) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert any((a != b).any() for a, b in zip(first, other, strict=True))
    assert {tuple(places(first, number)[1]) for number in range(20)} == {(1,), (3,)}, (
        "drawn anew for each input"
    )


def test_a_type_that_is_absent_or_alone_gives_empty_masks():
    matched = match([made(["DET", "ADJ"]), made(["NOUN", "NOUN", "PUNCT"])], seed=1)
    assert not matched[0].any() and not matched[1].any()


@pytest.mark.parametrize("seed", range(15))
def test_the_sum_of_distances_is_the_smallest(seed):
    rng = np.random.default_rng(seed)
    classes = rng.choice(["NOUN", "ADJ", "ADV", "PUNCT"], size=8, p=[0.35, 0.3, 0.25, 0.1]).tolist()
    ids = rng.integers(50, 54, size=8).tolist()
    annotated = made(classes, ids)
    own = [at for at, upos in enumerate(classes, 1) if upos == "NOUN"]
    others = [at for at, upos in enumerate(classes, 1) if upos in ("ADJ", "ADV")]

    def cost(a, b):
        return abs(a - b) / PLACES_PER_DECADE + abs(
            np.log10(ids.count(ids[a - 1])) - np.log10(ids.count(ids[b - 1]))
        )

    def smallest(tokens, words):
        few, many = sorted((tokens, words), key=len)
        return min(sum(map(cost, few, chosen)) for chosen in itertools.permutations(many, len(few)))

    pairs = places(match([annotated], seed=1))
    assert len(pairs[0]) == len(pairs[1]) == min(len(own), len(others))
    assert smallest(*pairs) == pytest.approx(smallest(own, others), abs=1e-4)
