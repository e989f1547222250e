"""What the paper's sections measure of one encoder: FrameNet's sentences, and one pass over each task's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..annotation.inputs import TOKEN_TYPES, AnnotatedInput, token_types
from ..attention import Batch, ByNorm, make_batches, observe_cached
from ..common import Head, head_name
from ..features import Features, Flow, marks
from ..features.compare import Stripes, against_marks, earlier_and_later
from ..framenet.links import EXAMPLE, OFFICIAL, PAPER, PAPER_UNITS, FrameSentence, extract
from ..framenet.measure import FrameLinkAttention, FrameLinkScores, Seen, place, scores_on, seen
from ..framenet.measure import excess_test as excess_test
from ..framenet.release import load_release
from ..glue import Task
from ..links.dependencies import CLARK, Arcs, Pointing, RelationTest, relation_test
from ..links.measure import InputLinks, TokenLinkAttention
from ..norms.mixing import Mixing
from ..patterns.classifiers import load_network
from ..patterns.measure import Patterns
from ..statistics import Estimate, Seed, mean_over_seeds
from ..verdicts import MIN_EXAMPLES, WEIGHT, Support

if TYPE_CHECKING:
    from ..lab import Lab

MOST = 1000  # sentences of the thousands that the paper's rules keep of a whole release
ROOM = (
    2 * WEIGHT
)  # that a fixed distance must leave, or no head could be ahead of it by what counts
MEANINGS = {
    "nsubj": "subject of a verb",
    "obj": "object",
    "amod": "adjective at a noun",
    "det": "article at a noun",
}
ONE_WAY, OTHER_WAY = "predicate to element", "element to predicate"


def drawn(sentences: Sequence[FrameSentence], seed: Seed, count: int = MOST) -> list[FrameSentence]:
    """At most ``count`` sentences, in their order; the paper's own is among them if there is one.

    Args:
        sentences: from :func:`bertology_utils.framenet.links.extract`.
        seed: of the draw.
        count: how many.
    """
    rows = np.random.default_rng(seed).permutation(len(sentences)).tolist()
    rows.sort(
        key=lambda row: sentences[row].exemplar.text != EXAMPLE
    )  # stable: its own first, the others by lot
    return [sentences[row] for row in sorted(rows[:count])]


class Frames:
    """Sentences of a release that have frame-semantic links, as many as can be looked at in minutes.

    Args:
        source: see :func:`bertology_utils.framenet.release.load_release`.
        tokenizer: the model's.
        seed: of the draw of sentences, and of the places to compare with.

    Attributes:
        release: all of it.
        kept: sentences that the paper's rules keep.
        placed: those that are measured, with the wordpieces of their links.
        shown: position of the sentence to look at, the paper's own (§4.2) where the release has it.
    """

    def __init__(self, source: str, tokenizer, seed: int):
        self.release, self._tokenizer, self._seed = load_release(source), tokenizer, seed
        self.kept, _ = extract(self.release, PAPER)
        self.placed, self._inputs, _ = place(drawn(self.kept, seed), tokenizer)
        texts = [one.sentence.exemplar.text for one in self.placed]
        self.has_example = EXAMPLE in texts
        self.shown = texts.index(EXAMPLE) if self.has_example else 0

    @property
    def missing(self) -> str:
        """What the claim about the number of sentences lacks here; empty if nothing."""
        here = self.release.units
        return (
            ""
            if here == PAPER_UNITS
            else f"release 1.7 with {PAPER_UNITS} lexical units; here {here}"
        )

    def scores(self, model) -> tuple[FrameLinkScores, FrameLinkScores, FrameLinkScores]:
        """Every head along the links, beside other sentences' places; with popularity off; and along them the other way."""
        measurements = {
            way: FrameLinkAttention(
                self.placed,
                ONE_WAY,
                elsewhere="borrowed",
                seed=self._seed,
                centred=way == "centred",
            )
            for way in ("plain", "centred")
        } | {"back": FrameLinkAttention(self.placed, OTHER_WAY)}
        found = observe_cached(model, make_batches(self._inputs, self._tokenizer), measurements)
        return found["plain"], found["centred"], found["back"]

    def seen(self, model, head: Head) -> Seen:
        """One head's map of the sentence to look at."""
        return seen(model, self._tokenizer, self.placed[self.shown], head, ONE_WAY)

    def by_published_code(self, model) -> tuple[np.ndarray, int, bool]:
        """Mean scores by the published code's way of measuring, shape (layers, heads); how many sentences; by its rules?

        If these keep too few sentences, the paper's rules choose them.
        """
        official, _ = extract(self.release, OFFICIAL)
        enough = len(official) >= MIN_EXAMPLES
        sentences = drawn(official if enough else self.kept, self._seed)
        found = scores_on(sentences, model, self._tokenizer, OTHER_WAY, pairing="zip")
        return found.actual.mean(axis=0), len(found.places), enough


def look(
    model,
    batches: Sequence[Batch],
    inputs: Sequence[AnnotatedInput],
    of_inputs: Sequence[InputLinks],
    separator: int | None,
) -> dict[str, Any]:
    """All that notebook 8 measures on one task's inputs, in one pass, by name.

    Args:
        model: the encoder in evaluation mode.
        batches, inputs: the same inputs.
        of_inputs: their links.
        separator: the tokenizer's id of [SEP].
    """
    special = [marks(annotated) for annotated in inputs]
    measurements = {
        "types": Features([token_types(annotated) for annotated in inputs]),
        "flow": Flow(special),
        "by norm": ByNorm(Flow(special)),
        "patterns": Patterns(load_network(), separator),
        "mixing": Mixing(model),
        "links": TokenLinkAttention(of_inputs),
        "centred": TokenLinkAttention(of_inputs, centred=True),
        "pointing": Pointing(inputs),
    }
    return observe_cached(model, batches, measurements)


def of_types(lab: Lab, model) -> dict[Task, dict[str, np.ndarray]]:
    """What the average token gives each type of token, in every example of each task, for :func:`on` and :func:`earlier`."""
    types = {
        task: Features([token_types(annotated) for annotated in lab.annotated_inputs(task)])
        for task in lab.tasks
    }
    return {task: lab.observe(model, task, {"types": of_task}) for task, of_task in types.items()}


def on(found: Mapping[str, Any], kind: str) -> np.ndarray:
    """What the average token gives one token of a kind, shape (examples, layers, heads), out of :func:`look`'s."""
    return found["types"][:, TOKEN_TYPES.index(kind)]


def earlier(
    lab: Lab, found: Mapping[Task, Mapping[str, Any]], kind: str, skipped: int = 0
) -> dict[Task, Estimate]:
    """What a kind of token gets in the first half of the layers minus that in the second (notebook 4), by task.

    Args:
        lab: gives the seed of the resampling of examples.
        found: by task, from :func:`look` or :func:`of_types`.
        kind: of token.
        skipped: layers that are left out, from the first.
    """
    return {
        task: mean_over_seeds(
            [earlier_and_later(on(of_task, kind)[:, skipped:], lab.resampling_seed(task))]
        )
        for task, of_task in found.items()
    }


def stripes(found: Mapping[str, Any], inputs: Sequence[AnnotatedInput], seed: Seed) -> Stripes:
    """Heads with stripes on types of word, and on special tokens (notebook 4), of one task.

    Args:
        found: from :func:`look`.
        inputs: the task's.
        seed: of the resampling of examples.
    """
    lengths = np.array([annotated.length for annotated in inputs])[:, None, None, None]
    return against_marks(found["types"] * lengths, seed)


def relation_tests(arcs: Mapping[str, Arcs], seed: Seed) -> dict[str, RelationTest]:
    """Heads that point along dependencies, by relation; relations with few arcs are left out.

    Args:
        arcs: by relation, from :meth:`bertology_utils.lab.Lab.arcs`.
        seed: of resampling and permutations.
    """
    return {
        name: relation_test(name, of, seed)
        for name, of in arcs.items()
        if len(of.offset) >= MIN_EXAMPLES
    }


def ahead_of_distance(tests: Mapping[str, RelationTest]) -> dict[str, Support]:
    """Support for some head that points along a relation more often than the best fixed distance, by relation.

    Args:
        tests: by relation; those where a fixed distance leaves a head no room of :data:`ROOM` are
            left out.
    """
    return {name: test.support for name, test in tests.items() if test.baseline.value <= 1 - ROOM}


def heads_of_clark(tests: Mapping[str, RelationTest]) -> Support:
    """Support for each head that Clark et al. name being ahead of the best fixed distance; against it, that none is.

    Theirs point from dependents to heads, and are tested that way.

    Args:
        tests: by relation.
    """
    does = {name: CLARK[name].at in test.towards_heads for name, test in tests.items()}
    number = ", ".join(
        f"{name} {head_name(*CLARK[name].at)} {'does' if it else 'does not'}"
        for name, it in does.items()
    )
    number += f"; {sum(test.arcs for test in tests.values())} arcs"
    return Support(float(not all(does.values())), float(any(does.values())), number)
