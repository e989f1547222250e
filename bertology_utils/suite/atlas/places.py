"""Where a notebook's results.json has numbers per head, and what is known of their spread."""

from __future__ import annotations

from dataclasses import dataclass

_MEAN = "the results hold each head's mean over examples, not the spread"
_DRIFT = "the results hold each head's mean over examples; the second training shows how much another training changes"
_P = "p is itself the statement of how sure"
_GAIN = "disabling is tested instead: the p values of “better” and “worse” below"
_CHANCE = "tested instead: the p value of “above” below"
_CONTROL = "no test of single heads was made"


@dataclass(frozen=True)
class Numbers:
    """Numbers per head in a results.json.

    Attributes:
        notebook: whose results, by number.
        path: names of nested values; what stands in braces may be any name and
            goes into ``name``, but "{task}", which tells on what was measured.
        name: as people read it. With "{pattern}" in it the numbers have a last
            axis, the five patterns.
        lacks: why there is no interval. Empty: a value is a share of ``count``
            examples, and has one.
        count: path of the number of examples.
        signed: values fall on both sides of 0.
        factor: what is shown is ``offset`` + ``factor`` × the number.
        offset: see ``factor``.
    """

    notebook: int
    path: str
    name: str
    lacks: str
    count: str = ""
    signed: bool = False
    factor: float = 1.0
    offset: float = 0.0


TOPICS = {
    1: "Patterns (§4.1)",
    2: "FrameNet links (§4.2)",
    3: "What fine-tuning changes (§4.3)",
    4: "Types of words, [CLS] and [SEP] (§4.4)",
    5: "Links between words (§4.5)",
    6: "Switching a head off (§4.6)",
    7: "What attention weighs",
}
# fmt: off
NUMBERS = (
    Numbers(1, "by_head/{task}/{model}", "share of maps: {pattern}, {model}", "",
            "shares/{task}/{model}/predicted/vertical/n"),
    Numbers(2, "scores", "weight of frame links, pre-trained", _MEAN, "sentences"),
    Numbers(2, "random_weights", "weight of frame links, random weights", _MEAN, "sentences"),
    Numbers(2, "pointing", "share of sentences where it points along the frame link, pre-trained", "", "sentences"),
    Numbers(2, "compared/{other}/excess", "weight of frame links above that of {other}, pre-trained", _CHANCE,
            "compared/{other}/sentences", signed=True),
    Numbers(2, "compared/{other}/above", "frame links above {other}: p, corrected over heads", _P,
            "compared/{other}/sentences"),
    Numbers(3, "drift/{task}/fine-tuning", "change of maps by fine-tuning (1 − cosine), training 1", _DRIFT,
            "rows/{task}/dev", factor=-1, offset=1),
    Numbers(3, "drift/{task}/fine-tuning again", "change of maps by fine-tuning (1 − cosine), training 2", _DRIFT,
            "rows/{task}/dev", factor=-1, offset=1),
    Numbers(3, "drift/{task}/another seed", "difference of maps of two trainings (1 − cosine)", _MEAN,
            "rows/{task}/dev", factor=-1, offset=1),
    Numbers(3, "drift/{task}/random start", "change of maps by fine-tuning random weights (1 − cosine)", _MEAN,
            "rows/{task}/dev", factor=-1, offset=1),
    Numbers(3, "drift/{task}/same way", "cosine of the changes of two trainings", _MEAN, "rows/{task}/dev", signed=True),
    Numbers(3, "drift/{task}/other task", "cosine of the changes of two tasks", _MEAN, "rows/{task}/dev", signed=True),
    Numbers(4, "heads/{model}/{task}/{type}", "weight on {type}, {model}", _MEAN, "examples/{task}/{type}"),
    Numbers(4, "changes/{task}/{type}", "weight on {type}, fine-tuned minus pre-trained", _MEAN,
            "examples/{task}/{type}", signed=True),
    Numbers(4, "excess/{model}/{type}", "weight on {type} above that on matched words, {model}", _MEAN,
            "matched_examples/{type}", signed=True),
    Numbers(5, "scores/{model}/{link}", "weight {link}, {model}", _MEAN, "examples/{link}"),
    Numbers(5, "excess/{model}, links/{link}", "weight {link} above that elsewhere, {model}", _MEAN, signed=True),
    Numbers(5, "neighbours/{model}", "weight on neighbouring words, {model}", _MEAN),
    Numbers(6, "effects/{task}, training {n}/heads/values", "gain in points without the head, training {n}", _GAIN,
            "examples/{task}", signed=True, factor=100),
    Numbers(6, "effects/{task}, training {n}/heads/better", "better without the head: p, training {n}", _P,
            "examples/{task}"),
    Numbers(6, "effects/{task}, training {n}/heads/worse", "worse without the head: p, training {n}", _P,
            "examples/{task}"),
    Numbers(6, "other_ways/{task}, {way}", "gain in points without the head, which gives instead: {way}", _CONTROL,
            signed=True, factor=100),
    Numbers(7, "by_head/{way}/{task}", "share of attention to [CLS] by {way}, pre-trained", _MEAN, "examples/{task}"),
)
# fmt: on
