"""The claims of §4.4, judged: where are stripes, what do [CLS], [SEP] and words get, and what does fine-tuning change?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import spearmanr

from ..annotation.token_types import LINGUISTIC, TOKEN_TYPES
from ..common import to_people
from ..glue.tasks import Task
from ..statistics import Bootstrap
from ..statistics.permutation import LEVEL
from ..statistics.ties import clearly_below, count_of
from ..statistics.verdicts import Verdict, every, outcome
from .compare import Increase

NOT_IN_PAPER = "not in the paper"
# The tasks on which fine-tuning makes some head attend more to a type, according to the paper.
MORE_ATTENDED = {"nouns": ("mrpc", "rte", "qqp"), "objects": ("mrpc", "rte", "qqp"), "negation": ("qnli",)}


def judge_published_heatmap(
    kind: str, published: np.ndarray, ours: np.ndarray, examples: int, reading_error: float
) -> list[Verdict]:
    """Are a special token's weights those of the published heatmap?

    Args:
        kind: the token, such as "[SEP]".
        published, ours: mean weights of the pre-trained model, shape (layers, heads).
        examples: how many ours are the mean of.
        reading_error: of the published cells, which were read off a figure.
    """
    correlation, apart = spearmanr(published.ravel(), ours.ravel()).statistic, np.abs(published - ours)
    return [
        Verdict(
            f"The published heatmap of {kind}",
            f"{published.min():.2f} to {published.max():.2f}",
            f"correlation over {ours.size} cells {correlation:.2f}; mean difference {apart.mean():.3f}, n={examples}",
            "agrees" if apart.mean() <= 2 * reading_error else "disagrees",
            "mean difference of at most twice the reading error",
        )
    ]


def judge_stripes(
    tuned: Mapping[Task, Sequence[int]], random_weights: Mapping[Task, Sequence[int]], heads: int
) -> list[Verdict]:
    """Claim 1: do stripes stand on special tokens only, or at least mostly?

    Args:
        tuned, random_weights: by task, heads with a stripe on a type of word, and heads with one on special tokens only,
            of the fine-tuned model and of one with random weights; see :meth:`bertology_utils.features.Rivals.striped`.
        heads: how many a model has.
    """
    at_random = max(words for words, _ in random_weights.values())
    shown = "; ".join(
        f"{task.title} {words} of {heads} on words, {marks} of {heads} on special tokens"
        for task, (words, marks) in tuned.items()
    )
    shown += f"; random weights: {at_random} of {heads} on words at most"
    counts, said = tuned.values(), "predominantly, if not exclusively"
    return [
        Verdict(
            "Stripes stand exclusively on [CLS] and [SEP], on every task",
            said,
            shown,
            "disagrees" if any(words for words, _ in counts) else "agrees",
            "more than 2/L in 95 % of resamples, fine-tuned",
        ),
        Verdict(
            "Stripes stand predominantly on [CLS] and [SEP], on every task",
            said,
            shown,
            "agrees" if all(words < marks for words, marks in counts) else "disagrees",
            "fewer heads on words than on special tokens",
        ),
    ]


def judge_words_beside_marks(ratios: Mapping[Task, tuple[Bootstrap, str]]) -> list[Verdict]:
    """Claim 1: is what words get negligible beside what special tokens get?

    Args:
        ratios: by task, the most attended type of word: its weight as a multiple of the special token's, and its name.
    """
    return [
        Verdict(
            "The most attended type of word gets less than a tenth of what [CLS] or [SEP] gets, on every task",
            "negligible",
            "; ".join(f"{task.title} {kind} {ratio.text(100, 0)} %, n={ratio.n}" for task, (ratio, kind) in ratios.items()),
            every(1 - ratio.share_above(0.1) for ratio, _ in ratios.values()),
            "mean over heads, fine-tuned, same examples",
        )
    ]


def judge_halves(kind: str, drops: Mapping[Task, Bootstrap], drops_without_first: Mapping[Task, Bootstrap]) -> list[Verdict]:
    """Claim 2, of [CLS] or [SEP]: does it get more in earlier, or later, layers; and when the first is left out?

    Args:
        kind: "[CLS]" or "[SEP]".
        drops: by task, what the first half of the layers gives it minus what the second gives, fine-tuned.
        drops_without_first: the same when the first layer is left out.
    """
    where = {"[CLS]": "earlier", "[SEP]": "later"}[kind]
    left_out = f"Control: {kind} still gets more in {where} layers when layer {to_people(0)} is left out, on every task"
    verdicts = []
    for claim, said, measured in (
        (f"{kind} gets more in {where} layers, on every task", "all tasks", drops),
        (left_out, NOT_IN_PAPER, drops_without_first),
    ):
        gains = {task: drop if where == "earlier" else -drop for task, drop in measured.items()}
        verdicts.append(
            Verdict(
                claim,
                said,
                "; ".join(f"{task.title} {gain.text(1, 3, sign=True)}" for task, gain in gains.items())
                + f", n={sum(gain.n for gain in gains.values())}",
                every(gain.share_above(0) for gain in gains.values()),
                f"{where} minus other half of the layers, fine-tuned",
            )
        )
    return verdicts


def judge_separators(
    largest: Mapping[Task, Bootstrap], together: Mapping[Task, Bootstrap], in_even_shares: Mapping[Task, Bootstrap]
) -> list[Verdict]:
    """Claim 3: does [SEP] get more where there is only one, and is that the reason?

    Args:
        largest: by task, the weight of the most attended [SEP] of an input, fine-tuned, mean over heads.
        together: of all [SEP] of an input.
        in_even_shares: as ``largest``, in multiples of 1/L.
    """
    verdicts = []
    for claim, said, means, share in (
        ("[SEP] gets more on one-sentence tasks", "SST-2 above all others", largest, _share_ahead(largest)),
        (
            "Control: both [SEP] of some two-sentence task together get at least what the [SEP] of one-sentence tasks gets",
            NOT_IN_PAPER,
            together,
            1 - _share_ahead(together),
        ),
        (
            "Control: [SEP] gets more on one-sentence tasks in multiples of the even share 1/L, too",
            NOT_IN_PAPER,
            in_even_shares,
            _share_ahead(in_even_shares),
        ),
    ):
        verdicts.append(
            Verdict(
                claim,
                said,
                "; ".join(f"{task.title} {mean.text(1, 3)}" for task, mean in means.items())
                + f", n={sum(mean.n for mean in means.values())}",
                outcome(share),
                "above every two-sentence task, fine-tuned, mean over heads",
            )
        )
    return verdicts


def _share_ahead(means: Mapping[Task, Bootstrap]) -> float:
    """Share of the resamples in which a one-sentence task is above every two-sentence task; NaN if a kind is missing."""
    single, double = ([task for task in means if len(task.fields) == count] for count in (1, 2))
    if not (single and double):
        return float("nan")
    return float(
        np.mean([np.all([means[task].draws > means[other].draws for other in double], axis=0).mean() for task in single])
    )


def judge_fine_tuning(weights: Mapping[Task, Increase], beyond_matches: Mapping[Task, Increase]) -> list[Verdict]:
    """Claim 4: do some heads attend more to a type after fine-tuning, on the tasks that the paper names and on no others?

    Args:
        weights: by task, the increase of the weight of each of :data:`TOKEN_TYPES`.
        beyond_matches: of the weight of each of :data:`LINGUISTIC` minus that of matched words.
    """
    verdicts = []
    for kind, names in MORE_ATTENDED.items():
        there, elsewhere = ([task for task in weights if (task.name in names) == inside] for inside in (True, False))
        titles = ", ".join(task.title for task in there) or "the tasks named"
        more = f"fine-tuning makes some head's attention to {kind} grow more than that to matched words"
        for measured, claim, said in (
            (weights, f"Fine-tuning makes some head attend more to {kind} on {titles}", ", ".join(names).upper()),
            (beyond_matches, f"Control: {more}, on {titles}", NOT_IN_PAPER),
        ):
            rising = _rising(measured, there, kind)
            result = "undecided" if not rising else "agrees" if all(rising) else "disagrees"
            verdicts.append(
                Verdict(
                    claim,
                    said,
                    _heads_text(measured, there, kind),
                    result,
                    "permutation test, corrected over all heads and types of a task",
                )
            )
        others = _rising(beyond_matches, elsewhere, kind)
        result = "undecided" if not (others and there) else "disagrees" if any(others) else "agrees"
        verdicts.append(
            Verdict(
                f"Control: on {titles} only, {more}",
                NOT_IN_PAPER,
                _heads_text(beyond_matches, elsewhere, kind),
                result,
                "the same test",
            )
        )
    return verdicts


def _rising(increases: Mapping[Task, Increase], tasks: Sequence[Task], kind: str) -> list[bool]:
    return [bool(clearly_below(increases[task].p[TOKEN_TYPES.index(kind)]).any()) for task in tasks]


def _heads_text(increases: Mapping[Task, Increase], tasks: Sequence[Task], kind: str) -> str:
    at, shown = TOKEN_TYPES.index(kind), []
    for task in tasks:
        increase = increases[task]
        shown.append(
            f"{task.title} {count_of(increase.p[at] < LEVEL)} heads, up to {increase.means[at].max():+.3f},"
            f" n={increase.n[at]}"
        )
    return "; ".join(shown) or "no such task"


def judge_matched_words(
    excess: Mapping[str, np.ndarray], large: Mapping[str, np.ndarray], examples: Sequence[int], least: float
) -> list[Verdict]:
    """Control of ours: are heads blind to the type of a word? It cannot agree: no test shows that nothing differs at all.

    Args:
        excess: by model, the weight of a type's tokens minus that of matched words, shape (types, layers, heads), in
            the order of :data:`LINGUISTIC`.
        large: the same models, where the excess is above ``least`` and more than chance; same shape.
        examples: that have such pairs, shape (types,).
        least: what counts as large.
    """
    return [
        Verdict(
            f"Control: no {name} head attends to a type of word more than to matched words",
            NOT_IN_PAPER,
            "; ".join(
                f"{kind} {count_of(heads[at])} heads, up to {excess[name][at].max():+.3f}, n={examples[at]}"
                for at, kind in enumerate(LINGUISTIC)
            ),
            "disagrees" if heads.any() else "undecided",
            f"excess above {least} and any random head, corrected p below 0.05",
        )
        for name, heads in large.items()
    ]
