"""Which heads of any encoder point along the dependencies of any treebank? One call, for a researcher's own of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..annotation.annotators import Annotated, StoredAnnotation, sentences_of
from ..annotation.inputs import AnnotatedInput, annotate_inputs
from ..attention import Batch, observe
from ..attention.batches import TOKENS_PER_BATCH, batches_of
from ..verdicts import MIN_EXAMPLES
from .dependencies import Pointing, chosen_and_measured

if TYPE_CHECKING:
    import pandas as pd
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

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

    A head points from a word at the word of its sentence to which it attends most. Head and
    distance are chosen on one half of the sentences and measured on the other, so that no luck of
    the choice is in the numbers.

    Args:
        model: encoder or classifier in evaluation mode.
        tokenizer: its own, a fast one.
        treebank: a CoNLL-U file, plain or packed (.conllu.gz). Of a sentence that stands there
            twice, one counts.
        relations: labels, such as "nsubj"; by default all that enough sentences of either half
            have, but no punctuation.
        seed: of the halving, of resampling and permutations.
        max_length: wordpieces of a sentence; longer ones are left out, ``attrs["left out"]`` says
            how many.

    Returns:
        A row for each relation and direction ("dependent → head", "head → dependent"), in the order
        of their arcs: the measured arcs; the best head, "(layer, head)" from 1; the share of arcs
        that it finds and that the best fixed distance finds, with 95 % intervals over sentences;
        that distance in words; and the p of the head beating it, corrected over all heads.

    Raises:
        FileNotFoundError, ValueError: no such file, or it is not CoNLL-U; a relation that too few
            of its sentences have.
    """
    import pandas as pd

    sentences = sentences_of(treebank)
    chosen = _relations(sentences, relations, Path(treebank).name)
    inputs, batches = inputs_of(sentences, tokenizer, max_length)
    pointing = Pointing(inputs, {name: {name} for name in chosen})
    found = observe(model, batches, {"pointing": pointing})["pointing"]
    table = pd.DataFrame(
        [row for name in chosen for row in chosen_and_measured(name, found[name], seed)]
    )
    table.attrs["left out"] = pointing.left_out
    return table


def inputs_of(
    sentences: Mapping[str, Annotated],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int = MAX_LENGTH,
    tokens_per_batch: int = TOKENS_PER_BATCH,
) -> tuple[list[AnnotatedInput], list[Batch]]:
    """Sentences as inputs of a model, annotated and in batches.

    Args:
        sentences: from :func:`bertology_utils.annotation.annotators.sentences_of`.
        tokenizer: the model's, a fast one.
        max_length: wordpieces of a sentence; longer ones are cut.
        tokens_per_batch: bound on examples × padded length.
    """
    texts, annotation = (
        list(sentences),
        StoredAnnotation("treebank", dict(sentences), antecedents=False),
    )
    inputs = annotate_inputs({"text": texts}, ["text"], tokenizer, max_length, annotation)
    return inputs, batches_of(
        texts, tokenizer, max_length=max_length, tokens_per_batch=tokens_per_batch
    )


def _relations(sentences: Mapping[str, Annotated], wanted: Collection[str], name: str) -> list[str]:
    """The relations to measure, the most frequent first; refuses one of which half of the sentences say too little."""
    counts = Counter(
        label
        for (sentence,) in sentences.values()
        for label in {word.deprel for word in sentence.words if word.head >= 0}
    )
    enough = [
        label
        for label in sorted(counts, key=lambda label: (-counts[label], label))
        if counts[label] >= 2 * MIN_EXAMPLES
    ]
    if few := [label for label in wanted if label not in enough]:
        raise ValueError(
            f"{few[0]!r} is in {counts[few[0]]} sentences of {name}, and {2 * MIN_EXAMPLES} are wanted; choose of:"
            f" {', '.join(enough) or 'none, it is too small'}"
        )
    if not enough:
        raise ValueError(
            f"{name} is too small: no relation is in {2 * MIN_EXAMPLES} of its sentences"
        )
    return [label for label in enough if label in (wanted or {*enough} - {"punct"})]
