"""The MultiBERTs (Sellam et al., 2022): 25 pre-trainings of bert-base by Google, and checkpoints of the first five."""

import re

SEEDS = range(25)
SEEDS_WITH_STEPS = range(5)
# In thousands: each of these has a repository, step 0 included, which the model cards do not count among their 28
# (https://huggingface.co/google/multiberts-seed_0-step_0k; the list as in the package lm-checkpoints, file multiberts.py).
STEPS = (*range(0, 200, 20), *range(200, 2001, 100))
# Their main branch has pickled weights only; SafeTensors come, if at all, with a pull request of the Hub's own converter.
REVISION = "refs/pr/1"
_NAME = re.compile(r"(google/multiberts-seed_\d+)(-step_\d+k)?")


def default_revision(location: str) -> str | None:
    """The revision with SafeTensors, for the repository of a MultiBERT; None for any other."""
    return REVISION if _NAME.fullmatch(location) else None


def pretraining(location: str) -> str:
    """Of which pre-training a repository is: checkpoints of one seed are of one and the same."""
    match = _NAME.fullmatch(location)
    return match[1] if match else location


def expanded(word: str) -> list[str]:
    """Repositories that a shorthand names; any other word as it is.

    Args:
        word: "multiberts", "multiberts:3", "multiberts:0-4", or "multiberts-steps:SEED".

    Raises:
        ValueError: no such seed.
    """
    kind, _, seeds = word.partition(":")
    if kind == "multiberts":
        return [f"google/multiberts-seed_{seed}" for seed in _seeds(word, seeds, SEEDS)]
    if kind == "multiberts-steps":
        chosen = _seeds(word, seeds, SEEDS_WITH_STEPS)
        return [f"google/multiberts-seed_{seed}-step_{step}k" for seed in chosen for step in STEPS]
    return [word]


def _seeds(word: str, text: str, known: range) -> range:
    if not text:
        return known
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (-1, -1)
    if not (first in known and last in known and first <= last):
        raise ValueError(f"{word!r}: seeds go from {known[0]} to {known[-1]}; one, or two with a hyphen between, as 0-4")
    return range(first, last + 1)
