"""Batches: texts tokenised and cut by length, what measurements are told of them, and what their tokens receive (§4.4)."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .common import listed
from .glue import Task
from .hooks import check_eval, device_of, unwrap

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase

TOKENS_PER_BATCH = 2048  # bounds the memory of one batch's maps
Columns = dict[str, list[Any]]  # by name: of every row a text, a label or the list of ids


@dataclass
class Batch:
    """Model inputs of several examples.

    Attributes:
        inputs: what the model takes, tensors or NumPy's arrays; each of shape (examples, tokens), or
            (examples, tokens, …).
        index: position of each example in the data, in the order of ``inputs``.
        labels: gold labels, shape (examples,); None where there are none.
    """

    inputs: dict[str, torch.Tensor]
    index: list[int]
    labels: torch.Tensor | None = None

    def __post_init__(self) -> None:
        """Refuse inputs of other shapes; those that come without a mask have no padding."""
        shape = None
        self.inputs = {name: _tensor(one) for name, one in self.inputs.items()}
        self.labels = _tensor(self.labels)
        for name, one in self.inputs.items():
            own = tuple(getattr(one, "shape", ()))
            shape = shape or (len(self.index), *own[1:2])
            if len(own) < 2 or own[:2] != shape or (name == "attention_mask" and len(own) > 2):
                raise ValueError(
                    f"{name} of a batch of {len(self.index)} examples has the shape {own}; give tensors of shape"
                    " (examples, tokens), all with as many tokens, and a mask of these two dimensions only"
                )
        if shape and "attention_mask" not in self.inputs:
            like = next(iter(self.inputs.values()))
            self.inputs["attention_mask"] = like.new_ones(shape, dtype=torch.long)

    @property
    def mask(self) -> torch.Tensor:
        """True at real tokens, False at padding; shape (examples, tokens)."""
        return self.inputs["attention_mask"].bool()

    @property
    def lengths(self) -> torch.Tensor:
        """Real tokens per example, special tokens included; shape (examples,)."""
        return self.mask.sum(dim=1)

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        inputs = {name: tensor.to(device) for name, tensor in self.inputs.items()}
        return Batch(inputs, self.index, None if self.labels is None else self.labels.to(device))


def _tensor(one: Any) -> Any:
    return torch.from_numpy(one) if isinstance(one, np.ndarray) else one


def encode(
    tokenizer: PreTrainedTokenizerBase,
    *columns: Sequence[str],
    max_length: int | None = None,
    **options: Any,
) -> BatchEncoding:
    """Model inputs of texts, or of pairs in two columns, without padding.

    Args:
        tokenizer: the model's.
        columns: the texts.
        max_length: wordpieces per input, to which longer ones are cut at their end, whatever side
            the tokenizer was saved with; of a pair the longer text is cut. None cuts nothing.
        options: more for the tokenizer.

    Raises:
        TypeError: no tokenizer of transformers.
        ValueError: places in the text are asked of a slow tokenizer.
    """
    name = type(tokenizer).__name__
    if not hasattr(tokenizer, "truncation_side"):
        raise TypeError(
            f"{name} is no tokenizer of transformers; give the model's own, as load_tokenizer or AutoTokenizer loads it"
            " (PreTrainedTokenizerFast(tokenizer_object=…) makes one of the library tokenizers' own)"
        )
    if options.get("return_offsets_mapping") and not tokenizer.is_fast:
        raise ValueError(
            f"{name} is no fast tokenizer, so words cannot be aligned to wordpieces; give the model's fast one"
        )
    side, tokenizer.truncation_side = tokenizer.truncation_side, "right"
    try:
        cut = max_length is not None
        return tokenizer(*columns, truncation=cut, max_length=max_length, verbose=False, **options)
    finally:
        tokenizer.truncation_side = side


def tokenize(
    rows: Dataset, task: Task, tokenizer: PreTrainedTokenizerBase, max_length: int
) -> Dataset:
    """Model inputs of every row, with ``labels``; STS-B's labels are scaled from 0–5 to 0–1.

    Args:
        rows: from :func:`bertology_utils.glue.load_rows`.
        task: the task.
        tokenizer: a fast tokenizer.
        max_length: wordpieces per input; of a longer pair the longer text is cut.

    Returns:
        A Dataset of lists of ids, unpadded.

    Raises:
        ValueError: see :func:`check_tokenizer`.
    """
    check_tokenizer(tokenizer, pairs=len(task.fields) == 2)

    def encoded(part: Columns) -> Columns:
        inputs = encode(tokenizer, *(part[field] for field in task.fields), max_length=max_length)
        # A regression on the unit range trains with the same rate as a classifier.
        labels = [label / 5 for label in part["label"]] if task.is_regression else part["label"]
        return dict(inputs) | {"labels": labels}

    return rows.map(
        encoded,
        batched=True,
        remove_columns=rows.column_names,
        # Kept nowhere, and under a name of its own, or datasets would hash the tokenizer's
        # vocabulary each time to give one.
        load_from_cache_file=False,
        keep_in_memory=True,
        new_fingerprint=secrets.token_hex(8),
    )


def batches_of(
    texts: Sequence[str] | Sequence[tuple[str, str]],
    tokenizer: PreTrainedTokenizerBase,
    labels: Sequence[float] | None = None,
    max_length: int | None = None,
    tokens_per_batch: int = TOKENS_PER_BATCH,
) -> list[Batch]:
    """Batches of one's own texts.

    Args:
        texts: strings, or pairs of strings; one string is one text.
        tokenizer: the model's. It says where special tokens stand and which segment a token belongs
            to.
        labels: one number per text; None if there are none.
        max_length: wordpieces per input, special tokens included, to which longer ones are cut (of
            a pair the longer text); None refuses what is longer than the tokenizer allows.
        tokens_per_batch: bound on examples × padded length.

    Returns:
        As :func:`make_batches`.

    Raises:
        TypeError: a text that is neither a string nor a pair of them.
        ValueError: no text, an empty or too long one, single texts among pairs,
            labels of another number, or see :func:`check_tokenizer`.
    """
    columns = _columns(texts)
    if labels is not None:
        labels = list(labels)
        if len(labels) != len(columns[0]):
            raise ValueError(
                f"{len(labels)} labels for {len(columns[0])} texts; give one label per text, or none at all"
            )
        for number, label in enumerate(labels, start=1):
            if isinstance(label, str) or not hasattr(label, "__float__"):
                raise TypeError(f"label of text {number} is {label!r}; give a number")
    check_tokenizer(tokenizer, pairs=len(columns) == 2)
    inputs = dict(encode(tokenizer, *columns, max_length=max_length))
    for number, ids in enumerate(inputs["input_ids"], start=1):
        if max_length is None and len(ids) > tokenizer.model_max_length:
            raise ValueError(
                f"text {number} has {len(ids)} wordpieces and the most are {tokenizer.model_max_length}; cut it with max_length"
            )
    return make_batches(
        inputs if labels is None else inputs | {"labels": labels}, tokenizer, tokens_per_batch
    )


def _columns(texts: Sequence[str] | Sequence[tuple[str, str]]) -> list[list[str]]:
    """The first texts, and the second ones of pairs."""
    given = listed("texts", texts)
    rows = [text if isinstance(text, (tuple, list)) else (text,) for text in given]
    if not rows:
        raise ValueError("no texts; give at least one")
    kinds = ("single", "a pair")
    for number, row in enumerate(rows, start=1):
        if len(row) not in (1, 2) or not all(isinstance(text, str) for text in row):
            text = row[0] if len(row) == 1 else row
            raise TypeError(f"text {number} is {text!r}; give a string or a pair of strings")
        problem = ""
        if len(row) != len(rows[0]):
            problem = (
                f"{kinds[len(row) - 1]} and text 1 is not; give only single texts or only pairs"
            )
        elif not all(text.strip() for text in row):
            problem = "empty; leave it out"
        elif any("\ud800" <= sign <= "\udfff" for text in row for sign in text):
            problem = "no text: it has half a character (a lone surrogate); read it anew"
        if problem:
            raise ValueError(f"text {number} is {problem}")
    return [list(column) for column in zip(*rows, strict=True)]


def check_tokenizer(tokenizer: PreTrainedTokenizerBase, pairs: bool) -> None:
    """Refuse a tokenizer that cannot make the inputs: what it does with two texts says so, not what it has.

    Raises:
        ValueError: no padding token, [CLS] that it does not insert, or nothing that separates the
            texts of pairs.
    """
    name = type(tokenizer).__name__
    (ids,) = encode(tokenizer, ["a"], ["b"])["input_ids"]
    if tokenizer.pad_token_id is None:
        raise ValueError(
            f"{name} has no padding token, so texts of several lengths make no batch; set tokenizer.pad_token"
        )
    if tokenizer.cls_token_id not in (None, *ids):
        raise ValueError(
            f"{name} has {tokenizer.cls_token} and does not insert it; give backend_tokenizer a TemplateProcessing that does"
        )
    if pairs and tokenizer.sep_token_id not in ids[:-1]:
        raise ValueError(
            f"{name} inserts no separator between the texts of a pair; give single texts, or a tokenizer that does"
        )


def make_batches(
    inputs: Dataset | Columns,
    tokenizer: PreTrainedTokenizerBase,
    tokens_per_batch: int = TOKENS_PER_BATCH,
) -> list[Batch]:
    """Batches of similar length, so that little is padded.

    Args:
        inputs: from :func:`tokenize`, or columns by name; with or without ``labels``.
        tokenizer: gives the padding.
        tokens_per_batch: bound on examples × padded length.

    Returns:
        Batches, shortest examples first; ``index`` says which row is where. Padding is at the end,
        whatever side the tokenizer pads on, since classifiers read the first token.
    """
    lengths = [len(ids) for ids in inputs["input_ids"]]
    groups: list[list[int]] = []
    # A stable sort, which gives the same batches every time.
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not groups or (len(groups[-1]) + 1) * lengths[index] > tokens_per_batch:
            groups.append([])
        groups[-1].append(index)
    columns, made = inputs if isinstance(inputs, dict) else inputs[:], []
    for group in groups:
        part = {name: [values[index] for index in group] for name, values in columns.items()}
        labels = part.pop("labels", None)
        padded = tokenizer.pad(
            part, padding_side="right", return_attention_mask=True, return_tensors="pt"
        )
        made.append(Batch(dict(padded), group, None if labels is None else torch.tensor(labels)))
    return made


def longest_input(model: PreTrainedModel) -> int | None:
    """Tokens that the model can read at once; None if its configuration does not say."""
    limit = getattr(model.config, "max_position_embeddings", None)
    # RoBERTa counts positions from behind its padding id.
    positions = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
    first = getattr(positions, "padding_idx", None)
    if limit is None or limit < 1:  # XLNet says -1
        return None
    return limit if first is None else limit - first - 1


def prepare(
    model: Any, batches: Any, whole: bool = True, classifier: bool = False
) -> tuple[PreTrainedModel, list[Batch]]:
    """The model itself and its inputs, on its device, if it can read them; whatever runs a model asks here before its first pass.

    Args:
        model: in evaluation mode; see :func:`bertology_utils.hooks.unwrap`.
        batches: one batch or several.
        whole: refuse batches that lack an example of the data, or have one twice, since what is
            measured is given in the order of the data.
        classifier: whether the model must be one.

    Raises:
        TypeError: something other than batches.
        ValueError: a model in training mode, or without a classifier; no examples; an input that is
            too long, padded at its beginning, or has tokens, segments or positions that the model lacks.
    """
    model = unwrap(model)
    kinds = [kind.__name__ for kind in type(model).__mro__]
    if classifier and not any(kind.endswith("SequenceClassification") for kind in kinds):
        raise ValueError(
            f"{kinds[0]} has no classifier on top; load a model for sequence classification, such as with load_classifier"
        )
    check_eval(model)
    several = isinstance(batches, Iterable) and not isinstance(batches, Mapping)
    checked = list(batches) if several else [batches]
    for one in checked:
        if not isinstance(one, Batch):
            raise TypeError(
                f"{type(one).__name__} is no Batch; give what batches_of(texts, tokenizer) makes, or a Batch of your own"
            )
        _check_batch(model, one)
    index = sorted(at for one in checked for at in one.index)
    if not index:
        raise ValueError("no examples to run the model on; give at least one batch")
    for place, at in enumerate(index if whole else ()):
        if at != place:
            raise ValueError(
                f"of these batches' examples, {min(at, place)} is {'there twice' if at < place else 'missing'}, so that nothing"
                " can be given in the order of the data; give all batches of one batches_of(texts, tokenizer)"
            )
    return model, [one.to(device_of(model)) for one in checked]


def _check_batch(model: PreTrainedModel, batch: Batch) -> None:
    name, limit, longest = type(model).__name__, longest_input(model), batch.mask.shape[1]
    if model.main_input_name != "input_ids":  # pictures, sound
        raise ValueError(
            f"{name} reads {model.main_input_name} and no tokens; give an encoder of texts"
        )
    if limit is not None and longest > limit:
        raise ValueError(
            f"an input of {longest} wordpieces is longer than the {limit} that {name} can read; cut it with max_length"
        )
    if not batch.mask[:, 0].all():
        raise ValueError(
            "an input is padded at its beginning, where classifiers read; pad on the right, as batches_of does"
        )
    tables = {"input_ids": model.get_input_embeddings()}
    for kind in ("token_type", "position"):
        embeddings = getattr(model.base_model, "embeddings", None)
        tables[f"{kind}_ids"] = getattr(embeddings, f"{kind}_embeddings", None)
    for kind, table in tables.items():
        size, ids = getattr(table, "num_embeddings", None), batch.inputs.get(kind)
        if size is None or ids is None:
            continue
        if ids.min() < 0 or ids.max() >= size or ids.is_floating_point():
            raise ValueError(
                f"{kind} are {ids.min()} to {ids.max()}, and {name} knows 0 to {size - 1}; take its own tokenizer, and"
                " model.resize_token_embeddings(len(tokenizer)) for tokens that were added to that"
            )


def in_order(values: Iterable[torch.Tensor | np.ndarray], batches: Iterable[Batch]) -> np.ndarray:
    """Values of batches, one array or tensor for each with its examples first, joined in the order of the examples."""
    order = np.argsort([index for batch in batches for index in batch.index])
    parts = [one.detach().cpu() if isinstance(one, torch.Tensor) else one for one in values]
    return np.concatenate(parts)[order]


def laid_out(values: Sequence[np.ndarray], batch: Batch, padding: float) -> torch.Tensor:
    """Values of each example's real tokens, each of shape (kinds, tokens), as one tensor on the CPU, (examples, kinds, tokens)."""
    one = torch.from_numpy(values[0])
    shape = len(values), len(one), batch.mask.shape[1]
    whole = torch.full(shape, padding, dtype=one.dtype, device="cpu")  # whatever the default is
    for row, real in enumerate(batch.mask.cpu()):
        whole[row, :, real] = torch.from_numpy(values[row])
    return whole


def received(maps: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Weight that each token gets from the average real token: column sums over lengths, shape (examples, heads, tokens).

    Args:
        maps: shape (examples, heads, tokens, tokens).
        batch: the inputs.
    """
    share = batch.mask / batch.lengths[:, None]  # (examples, queries)
    return torch.einsum("ehqk,eq->ehk", maps, share.to(maps.dtype))
