"""From rows to model inputs: tokenising, and batches cut by length."""

from collections.abc import Sequence

import torch
from datasets import Dataset

from ..glue.tasks import Task
from .maps import Batch

TOKENS_PER_BATCH = 2048  # bounds the memory of one batch's maps


def tokenize(rows: Dataset, task: Task, tokenizer, max_length: int) -> Dataset:
    """Model inputs of every row, with ``labels``; STS-B's labels are scaled from 0–5 to 0–1.

    Args:
        rows: from :func:`bertology_utils.glue.loading.load_rows`.
        task: the task.
        tokenizer: a fast tokenizer.
        max_length: wordpieces per input; of a longer pair the longer text is cut.

    Returns:
        A Dataset of lists of ids, unpadded.
    """

    def encode(part: dict) -> dict:
        texts = [part[field] for field in task.fields]
        inputs = tokenizer(*texts, truncation=True, max_length=max_length)
        # A regression on the unit range trains with the same rate as a classifier.
        labels = [label / 5 for label in part["label"]] if task.is_regression else part["label"]
        return dict(inputs) | {"labels": labels}

    return rows.map(encode, batched=True, remove_columns=rows.column_names, load_from_cache_file=False)


def make_batches(
    inputs: Dataset, tokenizer, tokens_per_batch: int = TOKENS_PER_BATCH, pad_to: int | None = None
) -> list[Batch]:
    """Batches of similar length, so that little is padded.

    Args:
        inputs: from :func:`tokenize`.
        tokenizer: gives the padding.
        tokens_per_batch: bound on examples × padded length.
        pad_to: pad every example to this many tokens instead of to the batch's longest.

    Returns:
        Batches, shortest examples first; ``index`` says which row is where.
    """
    lengths = [len(ids) for ids in inputs["input_ids"]]
    order = sorted(range(len(lengths)), key=lengths.__getitem__)  # a stable sort: same batches every time
    return [_batch(inputs, group, tokenizer, pad_to) for group in _groups(order, lengths, tokens_per_batch, pad_to)]


def _groups(order: Sequence[int], lengths: list[int], budget: int, pad_to: int | None):
    group: list[int] = []
    for index in order:
        width = pad_to or lengths[index]
        if group and (len(group) + 1) * width > budget:
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def _batch(inputs: Dataset, group: list[int], tokenizer, pad_to: int | None) -> Batch:
    part = inputs[group]
    labels = torch.tensor(part.pop("labels"))
    padding = {"padding": "max_length", "max_length": pad_to} if pad_to else {"padding": True}
    return Batch(dict(tokenizer.pad(part, return_tensors="pt", **padding)), group, labels)
