"""§4.5: attention along links and beside them, against a plain reading of the definition."""

import math

import numpy as np
import pytest
from plain import TASKS, made_input, measured, replay, to_previous, word
from precision import forward_tolerance, sum_tolerance

from bertology_utils.attention import observe
from bertology_utils.links.controls import candidates_are_diagonal
from bertology_utils.links.measure import TokenLinkAttention
from bertology_utils.links.token_links import LINK_TYPES, borrow, find_links, share_adjacent


def plain_pairs(sentence, antecedents):
    """(attending, attended) positions by type, from (word, positions) of one sentence."""
    pairs = {name: [] for name in LINK_TYPES}
    for token, places in sentence:
        if token.deprel in ("nsubj", "nsubj:pass") and sentence[token.head][0].upos in ("VERB", "AUX"):
            pairs["verb → subject"].append((sentence[token.head][1], places))
        if token.upos == "PRON":
            others = [sentence[token.antecedent]] if antecedents and token.antecedent is not None else []
            others = others if antecedents else [pair for pair in sentence if pair[0].upos in ("NOUN", "PROPN")]
            pairs["noun → pronoun"] += [(noun, places) for _, noun in others]
    pairs["subject → verb"] = [(b, a) for a, b in pairs["verb → subject"]]
    pairs["pronoun → noun"] = [(b, a) for a, b in pairs["noun → pronoun"]]
    return {name: [pair for pair in of_type if pair[0] and pair[1]] for name, of_type in pairs.items()}


def own_links(example, name, antecedents):
    """(cells, their sentence's number, first position and length) of every link of a type."""
    found = []
    for number, sentence in enumerate(example.sentences):
        places = [at for _, of_word in sentence for at in of_word]
        for ends in plain_pairs(sentence, antecedents)[name]:
            cells = [(a, b) for a in ends[0] for b in ends[1]]
            found.append((cells, number, min(places), max(places) - min(places) + 1))
    return found


def plain_links(examples, index, name, antecedents):
    """Cells of every link of a type, and of the places where other examples have theirs."""
    own = own_links(examples[index], name, antecedents)
    taken = {cell for cells, *_ in own for cell in cells}
    found = []
    for cells, number, start, length in own:
        places = []
        for other, example in enumerate(examples):
            for theirs, its_number, its_start, its_length in own_links(example, name, antecedents):
                moved = [(a - its_start + start, b - its_start + start) for a, b in theirs]
                if other != index and (its_number, its_length) == (number, length) and not taken & set(moved):
                    places.append(moved)
        found.append((cells, places))
    return found


def mean(values):
    return sum(values) / len(values) if values else math.nan


def plain_values(grid, found):
    """Actual, matched and elsewhere."""

    def largest(cells):
        return max(grid[a][b] for a, b in cells)

    movable = [(cells, moves) for cells, moves in found if moves]
    return [
        mean([largest(cells) for cells, _ in found]),
        mean([largest(cells) for cells, _ in movable]),
        mean([mean([largest(moved) for moved in moves]) for _, moves in movable]),
    ]


@pytest.mark.parametrize("antecedents", [True, False])
@pytest.mark.parametrize("task", TASKS)
def test_values_are_the_plain_ones(task, antecedents):
    lab, task, model, examples = measured(task)
    known = borrow([find_links(annotated, antecedents) for annotated in lab.annotated_inputs(task)], 1, count=10_000)
    result = observe(model, lab.measured_batches(task), {"l": TokenLinkAttention(known)})["l"]
    counts, tolerance = np.zeros((len(LINK_TYPES), 2), dtype=int), forward_tolerance(model)
    for index, example in enumerate(examples):
        grids = example.maps.tolist()
        for number, name in enumerate(LINK_TYPES):
            found = plain_links(examples, index, name, antecedents)
            counts[number] += len(found), sum(bool(moves) for _, moves in found)
            expected = np.array([[plain_values(grid, found) for grid in layer] for layer in grids])
            for part, values in enumerate((result.actual, result.matched, result.elsewhere)):
                np.testing.assert_allclose(
                    values[index, number], expected[..., part], atol=tolerance, rtol=0, equal_nan=True
                )
    assert result.counts.tolist() == counts.tolist()
    assert counts[0, 1] > 10, "hardly anything was compared"
    there = result.actual[np.isfinite(result.actual)]
    assert there.min() >= 0 and there.max() <= 1


# Positions 1 to 5; the subject is 1, the verb 2, the pronoun 4, its noun 1.
SENTENCE = [
    word("Ines", "PROPN", 1, "nsubj"),
    word("paints", "VERB", -1, "root"),
    word("what", "DET", 3, "det"),
    word("she", "PRON", 4, "obj", antecedent=0),
    word("likes", "ADV", 1, "advmod"),
]


# As long, with its links elsewhere: the subject is 4, the verb 5; the pronoun 3, its noun 4.
OTHER = [
    word("now", "ADV", 4, "advmod"),
    word("and", "CCONJ", 4, "cc"),
    word("he", "PRON", 3, "appos", antecedent=3),
    word("Carl", "PROPN", 4, "nsubj"),
    word("sings", "VERB", -1, "root"),
]


def by_type(annotated, maps, others=(OTHER,)):
    known = borrow([find_links(item, True) for item in (annotated, *map(made_input, others))], seed=1)[:1]
    result = replay(TokenLinkAttention(known), [maps])
    return {name: (result.actual[0, at, 0, 0], result.elsewhere[0, at, 0, 0]) for at, name in enumerate(LINK_TYPES)}, result


def test_a_head_of_previous_tokens_does_no_better_on_the_link_than_at_anothers_place():
    values, result = by_type(made_input(SENTENCE), to_previous(7))
    assert values["verb → subject"] == (1, 1) and values["subject → verb"] == (0, 0)
    assert result.counts.tolist() == [[1, 1]] * 4


def test_a_head_of_the_link_alone_does_better_there():
    maps = np.full((1, 1, 7, 7), 0.1)
    maps[..., 2, 1], maps[..., 4, 1] = 0.7, 0.9
    values, _ = by_type(made_input(SENTENCE), maps)
    assert values["verb → subject"] == pytest.approx((0.7, 0.1))
    assert values["pronoun → noun"] == pytest.approx((0.9, 0.1))
    assert values["subject → verb"] == pytest.approx((0.1, 0.1))


def test_a_uniform_map_gives_one_over_the_length():
    values, _ = by_type(made_input(SENTENCE), np.full((1, 1, 7, 7), 1 / 7))
    for both in values.values():
        assert both == pytest.approx((1 / 7, 1 / 7))


def test_places_come_from_other_inputs_of_the_same_length_and_are_never_links():
    own, other = find_links(made_input(SENTENCE), True), find_links(made_input(OTHER), True)
    shorter = find_links(made_input(SENTENCE[:2]), True)
    (link,) = borrow([own, other, shorter], seed=1)[0]["verb → subject"]
    assert [(rows.tolist(), columns.tolist()) for rows, columns in link.places] == [([5], [4])]
    same = borrow([own, own], seed=1)[0]["verb → subject"][0]
    assert same.places == (), "the place is a link of its own"
    (many,) = borrow([own, *[other] * 20], seed=1)[0]["verb → subject"]
    assert len(many.places) == 8


def test_a_position_alone_is_no_excess():
    """Maps that depend on positions only, and links at random places: borrowed places score as high."""
    rng = np.random.default_rng(0)
    maps = rng.random((1, 3, 7, 7))
    known = []
    for at in rng.integers(0, 4, size=400):
        words = [word("x", "ADV", 0, "dep") for _ in range(5)]
        words[at], words[at + 1] = word("he", "NOUN", at + 1, "nsubj"), word("runs", "VERB", -1, "root")
        known.append(find_links(made_input(words), True))
    result = replay(TokenLinkAttention(borrow(known, seed=1)), [maps] * len(known))
    excess = np.nanmean((result.matched - result.elsewhere)[:, 0], axis=0)
    assert np.abs(excess).max() < 0.05


def test_share_of_links_between_neighbours():
    known = [find_links(made_input(SENTENCE), True)]
    assert share_adjacent(known, LINK_TYPES[:2]) == 1 and share_adjacent(known, LINK_TYPES[2:]) == 0
    assert math.isnan(share_adjacent([], LINK_TYPES))


def test_the_largest_cell_of_a_link_counts():
    pieces = [(1, 2), (3, 4), (5,), (6,), (7,)]
    maps = np.zeros((1, 1, 9, 9))
    maps[..., 4, 1], maps[..., 3, 2] = 0.6, 0.2
    annotated = made_input(SENTENCE, pieces)
    assert by_type(annotated, maps)[0]["verb → subject"][0] == pytest.approx(0.6)
    (link,) = find_links(annotated, True)["verb → subject"]
    assert sorted(zip(link.rows.tolist(), link.columns.tolist(), strict=True)) == [(3, 1), (3, 2), (4, 1), (4, 2)]


def test_pronouns_go_with_their_antecedent_or_with_every_noun():
    sentence = [*SENTENCE, word("boats", "NOUN", 4, "obj")]
    assert len(find_links(made_input(sentence), True)["noun → pronoun"]) == 1
    assert len(find_links(made_input(sentence), False)["noun → pronoun"]) == 2


def test_words_that_the_length_limit_took_are_in_no_link():
    known = find_links(made_input(SENTENCE, [(), (1,), (2,), (3,), (4,)]), True)
    assert known == {name: [] for name in LINK_TYPES}
    result = replay(TokenLinkAttention([known]), [to_previous(6)])
    assert np.isnan(result.actual).all() and not result.counts.any()


def test_a_link_without_places_is_counted_and_not_compared():
    values, result = by_type(made_input(SENTENCE[:2]), to_previous(4))
    assert values["verb → subject"][0] == 1 and math.isnan(values["verb → subject"][1])
    assert result.counts[0].tolist() == [1, 0] and np.isnan(result.matched[0, 0]).all()


def test_clearnlp_and_copulas():
    sentence = [word("Milk", "NOUN", 1, "nsubjpass"), word("is", "AUX", -1, "ROOT"), word("white", "ADJ", 1, "acomp")]
    assert len(find_links(made_input(sentence), False)["verb → subject"]) == 1
    ud = [word("Milk", "NOUN", 2, "nsubj"), word("is", "AUX", 2, "cop"), word("white", "ADJ", -1, "root")]
    assert find_links(made_input(ud), False)["verb → subject"] == []


def test_padding_on_either_side_changes_nothing():
    lab, task, _, examples = measured("sst2")
    known = borrow([find_links(annotated, True) for annotated in lab.annotated_inputs(task)][:12], seed=1)
    maps = [example.maps[:, :2] for example in examples[:12]]
    left, right = (replay(TokenLinkAttention(known), maps, side, 50) for side in ("left", "right"))
    alone = [replay(TokenLinkAttention([of_input]), [weights]) for of_input, weights in zip(known, maps, strict=True)]
    for name in ("actual", "matched", "elsewhere"):
        expected = np.concatenate([getattr(result, name) for result in alone])
        np.testing.assert_allclose(getattr(left, name), expected, atol=sum_tolerance(50))
        np.testing.assert_allclose(getattr(right, name), expected, atol=sum_tolerance(50))


def test_a_parser_may_call_a_mark_a_subject():
    find_links(made_input([word("stop", "VERB", -1, "root"), word("?", "PUNCT", 0, "nsubj")]), False)


def test_centred_weights_have_what_a_word_gets_from_all_taken_off():
    """A head that looks at one word whoever is looking has an excess along links to it, and none when centred."""
    words = [
        word("they", "PRON", 1, "nsubj"),
        *[word("saw", "VERB", -1, "root")],
        *[word("x", "NOUN", 1, "obj") for _ in range(4)],
    ]
    item = made_input(words)
    shifted = [word("x", "NOUN", 2, "obj"), word("they", "PRON", 2, "nsubj"), word("saw", "VERB", -1, "root"),
               *[word("x", "NOUN", 2, "obj") for _ in range(3)]]  # fmt: skip
    everyone = np.full((8, 8), 0.05)
    everyone[:, 1] = 1 - 7 * 0.05
    found = {}
    for centred in (False, True):
        known = borrow([find_links(item, True), find_links(made_input(shifted), True)], seed=1)[:1]
        measured = replay(TokenLinkAttention(known, centred), [everyone[None, None]])
        found[centred] = (measured.matched - measured.elsewhere)[0, LINK_TYPES.index("verb → subject"), 0, 0]
    assert found[False] == pytest.approx(0.6) and found[True] == pytest.approx(0, abs=1e-6)


def test_candidates_are_diagonal_if_the_highest_heads_are():
    neighbours = np.linspace(1, 0, 50)
    share, rank = candidates_are_diagonal(neighbours, neighbours, seed=1)
    assert share > 0.999 and rank == 3
    share, rank = candidates_are_diagonal(-neighbours, neighbours, seed=1)
    assert share == 0 and rank == 48
    shares = [
        candidates_are_diagonal(np.random.default_rng(at).random(50), neighbours, seed=1, draws=500)[0] for at in range(60)
    ]
    assert 0.3 < np.mean(shares) < 0.7 and np.mean(np.array(shares) > 0.95) < 0.15
