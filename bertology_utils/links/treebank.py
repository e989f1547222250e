"""Which heads of any encoder point along the dependencies of any treebank? One call, for a researcher's own of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..annotation.annotators import RELATIONS, Annotator, Treebank, sentences_of
from ..annotation.inputs import AnnotatedInput, annotate_inputs
from ..attention import observe, observe_cached, weighed
from ..attention.batches import batches_of
from ..verdicts import MIN_EXAMPLES
from .dependencies import Arcs, Pointing, chosen_and_measured, joined

if TYPE_CHECKING:
    import pandas as pd
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from ..glue import Task
    from ..lab import Lab

MAX_LENGTH = 128  # wordpieces of a sentence; longer ones are left out


def head_dependencies(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    treebank: str | Path,
    relations: Collection[str] = (),
    seed: int = 1,
    max_length: int = MAX_LENGTH,
) -> pd.DataFrame:
    """The head that points best along each dependency of a treebank, beside the best fixed distance (Clark et al., 2019).

    A head points from a word at the word of its sentence to which it attends most. Words that
    share one written word, such as "de" and "le" in "du", share its wordpieces: they count as one
    word, and arcs between them are left out. Head and distance are chosen on one half of the
    sentences and measured on the other, so that no luck of the choice is in the numbers.

    Args:
        model: encoder or classifier in evaluation mode.
        tokenizer: its own, a fast one.
        treebank: a CoNLL-U file, plain or packed (.conllu.gz). Of a sentence that stands there
            twice, one counts.
        relations: labels, such as "nsubj"; by default all that enough sentences of either half
            have, but no punctuation.
        seed: of the halving, of resampling and permutations.
        max_length: wordpieces of a sentence; longer ones are left out.

    Returns:
        A row for each relation and direction ("dependent → head", "head → dependent"), in the order
        of their arcs: the measured arcs; the best head, "(layer, head)" from 1; the share of arcs
        that it finds and that the best fixed distance finds, with 95 % intervals over sentences;
        that distance in words; and the p of the head beating it, corrected over all heads.
        ``attrs["left out"]`` says by reason how many sentences, or arcs, are not measured.

    Raises:
        FileNotFoundError, ValueError: no such file, or it is not CoNLL-U; a relation that too few
            of its sentences have.
    """
    import pandas as pd

    bank = sentences_of(treebank)
    inputs, left_out = inputs_of(bank, tokenizer, max_length)
    counts = Counter(label for one in inputs.values() for label in set(_labels(one)))
    most = sorted(counts, key=lambda label: (-counts[label], label))
    enough = [label for label in most if counts[label] >= 2 * MIN_EXAMPLES]
    if not enough:
        reason = f"no relation is in {2 * MIN_EXAMPLES} of its sentences"
        raise ValueError(_too_small(bank, left_out, max_length, reason))
    if few := [label for label in relations if label not in enough]:
        raise ValueError(
            f"{few[0]!r} is in {counts[few[0]]} sentences of {bank.name}, and {2 * MIN_EXAMPLES} are"
            f" wanted; choose of: {', '.join(enough)}"
        )
    chosen = [label for label in enough if label in (relations or {*enough} - {"punct"})]
    pointing = Pointing(list(inputs.values()), {name: {name} for name in chosen})
    batches = batches_of(list(inputs), tokenizer, max_length=max_length)
    arcs = observe(model, batches, {"pointing": pointing})["pointing"]
    rows = [row for name in chosen for row in chosen_and_measured(name, arcs[name], seed)]
    table = pd.DataFrame(rows)
    table.attrs["left out"] = left_out
    return table


def arcs_of(lab: Lab, model: PreTrainedModel, tasks: Sequence[Task]) -> dict[str, Arcs]:
    """Which arcs each head recovers, by relation: of the treebank if one was given, else of the tasks' rows.

    Args:
        lab: of the notebook.
        model: encoder or classifier.
        tasks: on whose measured rows it is asked where there is no treebank.
    """
    if lab.sentences:
        inputs, left_out = inputs_of(lab.sentences, lab.tokenizer, least=MIN_EXAMPLES)
        batches = batches_of(
            list(inputs),
            lab.tokenizer,
            max_length=MAX_LENGTH,
            tokens_per_batch=lab.tokens_per_batch,
        )
        sentences = len(lab.sentences.sentences) + len(lab.sentences.faults)
        lab.fact(
            treebank={"sentences": sentences, "left out": sentences - len(inputs)}
            | ({"because": left_out} if left_out else {})
        )
        pointing = weighed(Pointing(list(inputs.values())), lab.settings.attention)
        parts = [observe_cached(model, batches, {"pointing": pointing})["pointing"]]
    else:  # kept from the pass over all measurements, where there was one
        parts = [
            lab.observe(model, task, {"pointing": Pointing(lab.annotated_inputs(task))})["pointing"]
            for task in tasks
        ]
    return {name: joined([part[name] for part in parts]) for name in RELATIONS}


def inputs_of(
    bank: Treebank,
    tokenizer: PreTrainedTokenizerBase,
    max_length: int = MAX_LENGTH,
    least: int = 0,
) -> tuple[dict[str, AnnotatedInput], dict[str, int]]:
    """A treebank's sentences as inputs of a model, by their text, and what is left out.

    Args:
        bank: from :func:`bertology_utils.annotation.annotators.sentences_of`.
        tokenizer: the model's, a fast one.
        max_length: wordpieces of a sentence; longer ones are left out.
        least: arcs that one of :data:`bertology_utils.annotation.annotators.RELATIONS` must have.

    Returns:
        The inputs; and by reason, how many sentences or arcs are left out.

    Raises:
        ValueError: too few arcs are left.
    """
    sentences = bank.sentences
    known = Annotator(bank.name, False, lambda texts: [sentences[text] for text in texts])
    placed = annotate_inputs({"text": list(sentences)}, ["text"], tokenizer, None, known)
    left_out, inputs = Counter(bank.left_out), {}
    for text, one in zip(sentences, placed, strict=True):
        if one.length > max_length:
            left_out[_longer(max_length)] += 1
        elif one.lost:
            left_out["a word of which the tokenizer keeps nothing"] += 1
        else:
            inputs[text] = one
            heads = sum(word.head >= 0 for word, _ in one.words)
            if inside := heads - len(_labels(one)):
                left_out["arcs inside a written word"] += inside
    labels = Counter(label for one in inputs.values() for label in _labels(one))
    arcs = {name: sum(labels[label] for label in named) for name, named in RELATIONS.items()}
    if max(arcs.values()) < least:
        counted = ", ".join(f"{name} {count}" for name, count in arcs.items())
        reason = f"left are {counted} dependencies, and {least} of one of them are wanted"
        raise ValueError(_too_small(bank, left_out, max_length, reason))
    return inputs, dict(left_out)


def _labels(annotated: AnnotatedInput) -> list[str]:
    return [label for sentence in annotated.sentences for *_, label in sentence.arcs]


def _longer(max_length: int) -> str:
    return f"longer than {max_length} wordpieces"


def _too_small(bank: Treebank, left_out: Mapping[str, int], max_length: int, reason: str) -> str:
    """What to tell of a treebank that leaves too little."""
    total = len(bank.sentences) + len(bank.faults)
    parts = [bank.faults_in_words(), reason]
    if count := left_out.get(_longer(max_length)):
        parts.insert(
            0, f"of its {total} sentences {count} are {_longer(max_length)}; set max_length"
        )
    return f"{bank.name} is too small: {'; '.join(filter(None, parts))}"
