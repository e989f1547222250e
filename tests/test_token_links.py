"""§4.5: attention along links, against a plain reading of the definition; and its controls."""

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from conftest import one_example
from plain import TASKS, made_input, measured, word, words
from precision import forward_tolerance

from bertology_utils import attention_maps, links, measurements
from bertology_utils.attention import observe
from bertology_utils.links import (
    LINK_TYPES,
    borrow,
    find_links,
    link_cells,
    means_over_links,
    strongest_cells,
)
from bertology_utils.study import Study
from bertology_utils.words import TOKEN_TYPES, token_types


def plain_pairs(sentence):
    """(attending, attended) positions by type, from (word, positions) of one sentence."""
    pairs = {name: [] for name in LINK_TYPES}
    for token, places in sentence:
        head = sentence[token.head]
        if token.deprel in ("nsubj", "nsubj:pass") and head[0].upos in ("VERB", "AUX"):
            pairs["verb → subject"].append((head[1], places))
        if token.upos == "PRON":
            nouns = [own for other, own in sentence if other.upos in ("NOUN", "PROPN")]
            pairs["noun → pronoun"] += [(noun, places) for noun in nouns]
    pairs["subject → verb"] = [(b, a) for a, b in pairs["verb → subject"]]
    pairs["pronoun → noun"] = [(b, a) for a, b in pairs["noun → pronoun"]]
    return {name: [one for one in several if all(one)] for name, several in pairs.items()}


def plain_rivals(sentence, ends, pairs):
    """Cells from a link's first word to each word between the two that is of the second's kind and not so linked."""
    kinds = {
        places[0]: {"PROPN": "NOUN"}.get(token.upos, token.upos)
        for token, places in sentence
        if places
    }
    low, high = sorted((ends[0][0], ends[1][0]))
    return [
        [(a, b) for a in ends[0] for b in places]
        for _, places in sentence
        if places
        and low < places[0] < high
        and kinds[places[0]] == kinds[ends[1][0]]
        and (ends[0], places) not in pairs
    ]


def own_links(example, name):
    """(cells, their sentence's number, first position and length, rivals) of every link of a type."""
    links = []
    for number, sentence in enumerate(example.sentences):
        places = [at for _, own in sentence for at in own]
        pairs = plain_pairs(sentence)[name]
        for ends in pairs:
            cells = [(a, b) for a in ends[0] for b in ends[1]]
            rivals = plain_rivals(sentence, ends, pairs)
            links.append((cells, number, min(places), max(places) - min(places) + 1, rivals))
    return links


def plain_links(examples, index, name):
    """Cells of every link of a type, of the places where other examples have theirs, and of its rivals."""
    own = own_links(examples[index], name)
    taken = {cell for cells, *_ in own for cell in cells}
    others = [
        one
        for other, example in enumerate(examples)
        if other != index
        for one in own_links(example, name)
    ]
    links = []
    for cells, number, start, length, rivals in own:
        moved = [
            [(a - its_start + start, b - its_start + start) for a, b in theirs]
            for theirs, its_number, its_start, its_length, _ in others
            if (its_number, its_length) == (number, length)
        ]
        links.append((cells, [one for one in moved if not taken & set(one)], rivals))
    return links


def of_type(links, name):
    return [link for link in links if LINK_TYPES[link.kind] == name]


def mean(values):
    return sum(values) / len(values) if values else math.nan


def plain_values(grid, links):
    """Along links, above places, above rivals."""

    def largest(cells):
        return max(grid[a][b] for a, b in cells)

    above = [
        mean(
            [
                largest(link[0]) - mean([largest(cells) for cells in link[compared]])
                for link in links
                if link[compared]
            ]
        )
        for compared in (1, 2)
    ]
    return [mean([largest(cells) for cells, *_ in links]), *above]


@pytest.mark.parametrize("task", TASKS)
def test_values_are_the_plain_ones(task, monkeypatch):
    monkeypatch.setattr(links, "BORROWED", 10_000)
    inputs, batches, model, examples = measured(task)
    each = borrow([find_links(one) for one in inputs], 1)
    cells = strongest_cells(link_cells(each))
    result = means_over_links(each, observe(model, batches, {"": cells})[""])
    compared = np.zeros(2, dtype=int)
    for index, example in enumerate(examples):
        grids = example.maps.tolist()
        for number, name in enumerate(LINK_TYPES):
            own = plain_links(examples, index, name)
            if name == "verb → subject":
                compared += [sum(bool(link[at]) for link in own) for at in (1, 2)]
            expected = np.array([[plain_values(grid, own) for grid in layer] for layer in grids])
            for part, values in enumerate(result.values()):
                np.testing.assert_allclose(
                    values[index, number],
                    expected[..., part],
                    atol=2 * forward_tolerance(model),
                    rtol=0,
                )
    assert compared[0] > 10, "hardly anything was compared"
    assert compared[1] > 1 or task == "sst2"


# Positions 1 to 5; the subject is 1, the verb 2, the pronoun 4, its noun 1.
SENTENCE = words(
    "Ines PROPN 1 nsubj | paints VERB -1 root | what DET 3 det | she PRON 4 obj | likes ADV 1 advmod"
)
# As long, with its links elsewhere: the subject is 4, the verb 5; the pronoun 3, its noun 4.
OTHER = words(
    "now ADV 4 advmod | and CCONJ 4 cc | he PRON 3 appos | Carl PROPN 4 nsubj | sings VERB -1 root"
)


def test_which_words_are_linked():
    boats = made_input([*SENTENCE, word("boats", "NOUN", 4, "obj")])
    assert len(of_type(find_links(boats), "noun → pronoun")) == 2, "with every noun"
    clearnlp = words("Milk NOUN 1 nsubjpass | is AUX -1 ROOT | white ADJ 1 acomp")
    assert len(find_links(made_input(clearnlp))) == 2
    # Copulas of UD; and a mark that a parser may call a subject.
    for text in (
        "Milk NOUN 2 nsubj | is AUX 2 cop | white ADJ -1 root",
        "stop VERB -1 root | ? PUNCT 0 nsubj",
    ):
        assert find_links(made_input(words(text))) == []


def test_words_that_share_a_written_word_are_not_linked():
    """Ines sees-her, as Italian writes "vederla": the verb and its pronoun have the same wordpieces."""
    apart = words("Ines PROPN 1 nsubj | see VERB -1 root | she PRON 1 nsubj")
    one = made_input(apart, [(1,), (2, 3), (2, 3)])
    (placed,) = one.sentences
    first, verb, pronoun = placed.words
    fused = replace(pronoun, start=verb.start, end=verb.end)
    one = replace(one, sentences=(replace(placed, words=(first, verb, fused)),))
    assert [link.kind for link in find_links(one)] == [0, 1, 2, 3], "of two subjects the other one"


def test_places_come_from_other_inputs_of_the_same_length_and_are_never_links():
    own, other = find_links(made_input(SENTENCE)), find_links(made_input(OTHER))
    shorter = find_links(made_input(SENTENCE[:2]))
    (link,) = of_type(borrow([own, other, shorter], seed=1)[0], "verb → subject")
    assert [(rows.tolist(), columns.tolist()) for rows, columns in link.places] == [([5], [4])]
    same = borrow([own, own], seed=1)[0]
    assert all(link.places == () for link in same), "the place is a link of its own"
    (many,) = of_type(borrow([own, *[other] * 20], seed=1)[0], "verb → subject")
    assert len(many.places) == 8


def test_which_words_are_rivals():
    # A proper noun is a noun; the cats are not between.
    text = "dogs NOUN 5 nsubj | Rex PROPN 0 nmod | we PRON 3 nsubj | saw VERB 0 acl | had AUX 5 aux | chased VERB -1 root"
    found = find_links(made_input(words(text + " | cats NOUN 5 obj")))
    for name, expected in (("verb → subject", [[[2]], []]), ("subject → verb", [[[4]], []])):
        links = of_type(found, name)
        rivals = [[columns.tolist() for _, columns in link.rivals] for link in links]
        assert rivals == expected


# The measurements of notebook 5, against plain loops


@pytest.fixture
def study(tiny_bert, tiny_classifier, tmp_path, monkeypatch):
    monkeypatch.setenv("BERTOLOGY_MEASURED", str(tmp_path))
    entries = {"model": str(tiny_bert), "data": "embedded", "annotation": "gold", "rows": 20}
    return Study.of("e5", "mrpc", checkpoint={"mrpc": str(tiny_classifier)}, **entries)


def states_of(study):
    return {"pre-trained": study.before_fine_tuning("MRPC"), "fine-tuned": study.classifier("MRPC")}


def test_links_are_means_over_the_rows_of_a_group_that_have_them(study, monkeypatch):
    monkeypatch.setattr(measurements, "GROUPS", 7)
    one = study.measure(measurements.links)["MRPC"].isel(run=0)
    assert one.sizes["example"] == 7 and one.sizes["layer"] == 3 and one.sizes["head"] == 4
    inputs = study.words("MRPC", 0, 20)
    each = borrow([find_links(row) for row in inputs], study.settings.seed)
    rows = [{kind: of_type(links, kind) for kind in LINK_TYPES} for links in each]
    compared = 0
    for state, model in states_of(study).items():
        for batch in study.batches("MRPC", 20):
            for index in batch.index:
                maps = attention_maps(model, one_example([batch], index))
                rows[index] = rows[index] | {state: np.stack([of[0].numpy() for of in maps])}
        for group, kind in itertools.product(range(7), LINK_TYPES):
            values, number, before = {above: [] for above in measurements.ABOVE}, Counter(), []
            for row in rows[3 * group : 3 * group + 3]:
                maps = row[state]  # (layers, heads, tokens, tokens)
                before.append(np.trace(maps, -1, 2, 3) / maps.shape[3])
                off = maps - maps.mean(axis=2, keepdims=True)
                of_row = {above: [] for above in values}
                for link in row[kind]:
                    others = [(link.places, maps), (link.places, off), (link.rivals, maps)]
                    of_row["nothing"].append(largest_in(maps, link.cells))
                    for above, (cells, weights) in zip(measurements.ABOVE[1:], others, strict=True):
                        if cells:
                            elsewhere = np.mean([largest_in(weights, c) for c in cells], axis=0)
                            own = largest_in(weights, link.cells)
                            of_row[above].append(own - elsewhere)
                for above, several in of_row.items():
                    values[above] += [np.mean(several, axis=0)] if several else []
                    number[above] += len(several)
            here = one.sel(state=state, kind=kind).isel(example=group)
            np.testing.assert_allclose(here.neighbour.sel(side="before"), np.mean(before, 0), 2e-3)
            for above, several in values.items():
                expected = np.mean(several, axis=0) if several else np.full((3, 4), np.nan)
                np.testing.assert_allclose(here.weight.sel(above=above), expected, atol=1e-3)
                assert int(here.number.sel(above=above)) == number[above]
                compared += len(several)
            links = [link for row in rows[3 * group : 3 * group + 3] for link in row[kind]]
            assert int(here.adjacent) == sum(link.adjacent for link in links)
            assert int(here.forwards) == sum(link.forwards for link in links)
    assert compared > 200, "hardly anything was compared"


def largest_in(maps, cells):
    return maps[:, :, cells[0], cells[1]].max(axis=-1)


def test_what_cls_attends_to_is_read_off_the_last_map(study):
    one = study.measure(measurements.from_cls)["MRPC"].isel(run=0)
    inputs, seen = study.words("MRPC", 0, 20), 0
    for state, model in states_of(study).items():
        for batch in study.batches("MRPC", 20):
            for index in batch.index:
                weights = attention_maps(model, one_example([batch], index))[-1][0, :, 0].numpy()
                here = one.sel(state=state).isel(example=index)
                assert int(here.length) == weights.shape[1]
                for kind, chosen in zip(TOKEN_TYPES, token_types(inputs[index]), strict=True):
                    of_type = here.sel(type=kind)
                    assert int(of_type.tokens) == chosen.sum()
                    if not chosen.any():
                        assert np.isnan([of_type.largest, of_type.together]).all()
                        continue
                    each = weights[:, chosen]
                    expected = each.max(axis=1).mean(), each.sum(axis=1).mean()
                    values = float(of_type.largest), float(of_type.together)
                    np.testing.assert_allclose(values, expected, rtol=2e-3)
                    seen += 1
    assert seen > 200, "hardly anything was compared"
