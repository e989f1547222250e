"""Examples read plainly, one by one, as an independent check of the measurements; and small inputs made by hand."""

import functools
import re
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import torch

from bertology_utils.annotation import Word, load_annotator
from bertology_utils.attention import attention_maps
from bertology_utils.batches import Batch
from bertology_utils.glue import get_task
from bertology_utils.study import Study
from bertology_utils.words import AnnotatedInput, PlacedSentence

TASKS = ("mrpc", "sst2")
FOOTNOTE_6 = set(
    "neither nor not never none don't won't didn't hadn't haven't can't isn't wasn't shouldn't"
    " couldn't nothing nowhere".split()
)


@dataclass
class Plain:
    """One example as this file reads it: strings, positions of each word, and the maps of the example on its own."""

    pieces: list
    sentences: list  # of lists of (word, positions)
    cls: list
    separators: list
    negation: list
    maps: np.ndarray  # (layers, heads, tokens, tokens)

    @property
    def words(self):
        return [pair for sentence in self.sentences for pair in sentence]


def touching(offsets, owners, field, start, end):
    """Wordpieces of one text that have a character of a stretch."""
    return [
        at
        for at, ((a, b), owner) in enumerate(zip(offsets, owners, strict=True))
        if owner == field and set(range(a, b)) & set(range(start, end))
    ]


def runs(text):
    """(start, end) of every run of letters and apostrophes."""
    at = 0
    for inside, run in groupby(text, lambda character: character.isalpha() or character in "'’"):
        start, at = at, at + len([*run])
        if inside:
            yield start, at


def plain_example(row, fields, sentences_of, tokenizer, model):
    texts = [row[field] for field in fields]
    form = {"return_offsets_mapping": True, "return_tensors": "pt"}
    encoded = tokenizer(*texts, truncation=True, max_length=64, **form)
    offsets, owners = encoded.pop("offset_mapping")[0].tolist(), encoded.sequence_ids(0)
    sentences, negation = [], []
    for field, name in enumerate(fields):
        for sentence in sentences_of[row[name]]:
            spans = [(word, word.start, word.end) for word in sentence]
            sentences.append([(w, touching(offsets, owners, field, *span)) for w, *span in spans])
        for start, end in runs(texts[field]):
            if texts[field][start:end].lower().replace("’", "'") in FOOTNOTE_6:
                negation += touching(offsets, owners, field, start, end)
    pieces = tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
    special = [at for at, owner in enumerate(owners) if owner is None]
    maps = attention_maps(model, Batch(dict(encoded), [0], torch.zeros(1)))
    maps = torch.cat(maps).double().numpy()
    return Plain(pieces, sentences, special[:1], special[1:], negation, maps)


@functools.cache
def measured(name):
    """Annotated inputs, batches, the encoder (MiniLM) and the plain examples of 50 synthetic rows of a task."""
    study = Study.of("small", tasks=name, model="embedded")
    title, fields = study.tasks[0], get_task(name).fields
    rows, model = study.rows(title, 50), study.encoder().cpu()
    texts = [row[field] for row in rows for field in fields]
    gold = dict(zip(texts, load_annotator("gold", [name])(texts), strict=True))
    plain = [plain_example(one, fields, gold, study.tokenizer, model) for one in rows]
    return study.words(title, 0, 50), study.batches(title, 50), model, plain


def replay(measure, examples):
    """What is measured in maps of shape (layers, heads, tokens, tokens) as one padded batch; padded rows hold junk."""
    width = max(maps.shape[-1] for maps in examples)
    layers, heads = examples[0].shape[:2]
    together = torch.zeros(layers, len(examples), heads, width, width)
    mask = torch.zeros(len(examples), width, dtype=torch.long)
    for row, maps in enumerate(examples):
        length = maps.shape[-1]
        real = slice(length)
        together[:, row, :, :, real] = 1 / length
        together[:, row, :, real, real] = torch.as_tensor(maps).float()
        mask[row, real] = 1
    batch = Batch({"attention_mask": mask}, list(range(len(examples))), torch.zeros(len(examples)))
    each = [measure(maps, batch) for maps in together]
    return [np.stack([*layers]) for layers in zip(*each, strict=True)]


def to_previous(length):
    """A map in which each token attends to the one before it, and the first to itself."""
    maps = np.eye(length, k=-1)
    maps[0, 0] = 1
    return maps[None, None]


def word(form, upos, head, deprel):
    return Word(form, 0, 0, upos, head, deprel)


def by_pattern(pattern, **classes):
    """Annotates each text as one sentence, of words that match; all are nouns unless said otherwise."""

    def sentence(text):
        spans = [(found[0], *found.span()) for found in re.finditer(pattern, text)]
        words = (Word(form, *span, classes.get(form, "NOUN"), -1, "dep") for form, *span in spans)
        return tuple(words)

    def annotate(texts):
        return [(sentence(text),) * bool(text.split()) for text in texts]

    return annotate


def words(text):
    """Words of one sentence, told as "form POS head relation" with bars between."""
    parts = (one.split() for one in text.split("|"))
    return [word(form, upos, int(head), deprel) for form, upos, head, deprel in parts]


def made_input(words, pieces=None):
    """An input of one sentence, one wordpiece per word unless said otherwise; words are written apart."""
    words = [replace(word, start=2 * at, end=2 * at + 1) for at, word in enumerate(words)]
    pieces = pieces or [(at,) for at in range(1, len(words) + 1)]
    end = max(max(positions) for positions in pieces if positions) + 1
    tokens = ("[CLS]", *["x"] * (end - 1), "[SEP]")
    sentence, ids = PlacedSentence(tuple(words), tuple(pieces)), tuple(range(end + 1))
    return AnnotatedInput(ids, tokens, (0,), (end,), (sentence,), (), 0)
