"""The claims of §4.4, judged: where are stripes, what do [CLS], [SEP] and words get, and what does fine-tuning change?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from ..annotation.token_types import TOKEN_TYPES
from ..claims import Support, Verdict, above, all_of, any_of, judged, some_head
from ..claims.gates import too_few, unlearned
from ..claims.register import WEIGHT
from ..claims.words import kept, least_of
from ..common import head_name
from ..glue.tasks import Task
from ..statistics.estimate import Estimate
from ..statistics.permutation import ManyTest
from ..statistics.ties import heads_by_size

STRIPE = 2  # times an even share
NEGLIGIBLE = 0.1  # of what special tokens have above an even share
PUBLISHED = "bert-base-uncased on QQP, published panel, read off"
# The tasks on which fine-tuning makes some head attend more to a type, according to the paper.
MORE_ATTENDED = {"nouns": ("mrpc", "rte", "qqp"), "objects": ("mrpc", "rte", "qqp"), "negation": ("qnli",)}
ByTask = Mapping[Task, Estimate]
Learned = Mapping[Task, bool]


def judge_stripes(marks_ahead: ByTask, words: ByTask, learned: Learned) -> list[Verdict]:
    """Do stripes stand mostly on special tokens, and (a control) only there?

    Args:
        marks_ahead: by task, share of heads with a stripe on special tokens only minus that of heads with one on words.
        words: by task, the latter.
        learned: by task, see :func:`bertology_utils.claims.gates.learned`.
    """
    missing = unlearned(list(words), learned)
    ahead, on_words = kept(marks_ahead, learned), kept(words, learned)
    return [
        judged("stripes-special", all_of(map(above, ahead.values())), f"share of heads {least_of(ahead, 1, 2)}", missing),
        judged(
            "stripes-exclusive",
            all_of(above(-share, -WEIGHT) for share in on_words.values()),
            f"share of heads {least_of(on_words, 1, 2, most=True)}",
            missing,
        ),
    ]


def judge_words_beside_marks(ratios: ByTask, learned: Learned) -> list[Verdict]:
    """Is what words get negligible beside what special tokens get? From ``Rivals.beside_marks``, by task."""
    fair = kept(ratios, learned)
    support = all_of(~above(ratio, NEGLIGIBLE) for ratio in fair.values())
    return [judged("words-negligible", support, least_of(fair, 1, 2, most=True), unlearned(list(ratios), learned))]


def judge_pretraining(kept_stripes: ByTask, learned: Learned) -> list[Verdict]:
    """Do stripes come from pre-training? Share of the striped heads that were striped before, by task."""
    fair = kept(kept_stripes, learned)
    support = all_of(above(share, 0.5) for share in fair.values())
    shown = re.sub(r"\+1\.[0-9]+\]", "+1.00]", least_of(fair, 1, 2))  # no share is above 1
    return [judged("stripes-pretraining", support, shown, unlearned(list(kept_stripes), learned))]


def judge_halves(
    kind: str, drops: ByTask, drops_without_first: ByTask, learned: Learned, missing: str = ""
) -> list[Verdict]:
    """Does [CLS] get more in earlier, [SEP] in later layers; and when the first layer is left out?

    Args:
        kind: "[CLS]" or "[SEP]".
        drops: by task, what the first half of the layers gives it minus what the second gives, fine-tuned.
        drops_without_first: the same when the first layer is left out.
        learned: by task.
        missing: the precondition that fails, such as a [SEP] sink.
    """
    name = {"[CLS]": "cls-early", "[SEP]": "sep-late"}[kind]
    verdicts = []
    for which, measured in ((name, drops), (f"{name}-deeper", drops_without_first)):
        gains = {task: drop if kind == "[CLS]" else -drop for task, drop in kept(measured, learned).items()}
        support = all_of(above(gain, WEIGHT) for gain in gains.values())
        verdicts.append(judged(which, support, least_of(gains), missing or unlearned(list(measured), learned)))
    return verdicts


def judge_published_panels(panels: Mapping[str, np.ndarray], reading_error: float, examples: int) -> list[Verdict]:
    """What the published panels of bert-base say: [CLS] early, [SEP] late; of the pre-trained model on one task.

    Args:
        panels: mean weights of "[CLS]" and "[SEP]", shape (layers, heads).
        reading_error: of a cell.
        examples: that the panels are means of.
    """
    verdicts = []
    for kind, name, sign in (("[CLS]", "cls-early", 1), ("[SEP]", "sep-late", -1)):
        panel = panels[kind]
        half = len(panel) // 2
        drop = sign * (panel[:half].mean() - panel[-half:].mean())
        error = reading_error / np.sqrt(3) * np.sqrt(2 / panel[:half].size)
        estimate = Estimate(float(drop), float(error), examples)
        verdicts.append(judged(name, above(estimate, WEIGHT), estimate.text(1, 3, sign=True), model=PUBLISHED))
    return verdicts


def judge_separators(leads: ByTask, together: ByTask, learned: Learned, missing: str) -> list[Verdict]:
    """Does [SEP] get more where there is only one, and is that the reason?

    Args:
        leads: by one-sentence task, the weight of its [SEP] minus the largest of any two-sentence task.
        together: the same of all [SEP] of an input together.
        learned: by task.
        missing: the precondition that fails: a [SEP] sink, or tasks of either kind.
    """
    missing = missing or ("" if leads else "tasks with one sentence and with two") or unlearned(list(leads), learned)
    fair, fair_together = kept(leads, learned), kept(together, learned)
    backwards = {task: -ahead for task, ahead in fair_together.items()}
    return [
        judged("sep-one-sentence", all_of(map(above, fair.values())), least_of(fair), missing),
        judged("sep-shared", all_of(map(above, backwards.values())), least_of(backwards), missing),
    ]


def judge_fine_tuning(
    weights: Mapping[Task, Sequence[ManyTest]], beyond: Mapping[Task, Sequence[ManyTest]], learned: Learned
) -> list[Verdict]:
    """Do some heads attend more to a type after fine-tuning, where the paper says so; beyond matched words; only there?

    Args:
        weights: by task and training, the increase of the weight of each of :data:`TOKEN_TYPES` in every head.
        beyond: of the weight of each linguistic type minus that of matched words.
        learned: by task.
    """
    verdicts, elsewhere, shown = [], [], []
    for kind, names in MORE_ATTENDED.items():
        at = TOKEN_TYPES.index(kind)
        for name, measured in ((f"more-{kind}", weights), (f"more-{kind}-matched", beyond)):
            there = {task: of_type(tests, at) for task, tests in measured.items() if task.name in names}
            fair = kept(there, learned)
            fewest = min((int(tests[0].n.max()) for tests in fair.values()), default=0)
            missing = unlearned(list(there), learned) or too_few(fewest)
            verdicts.append(judged(name, all_of(map(in_every_training, fair.values())), _smallest(fair), missing))
        for task, tests in kept(beyond, learned).items():
            if task.name not in names and tests[0].n[at].max() > 0:
                elsewhere.append(in_every_training(of_type(tests, at)))
                shown.append((f"{task.title}, {kind}", max(test.means[at].max() for test in tests)))
    most = max(shown, key=lambda one: one[1], default=None)
    ours = f"{most[0]} {most[1]:+.3f}, the largest of {len(shown)}" if most else "–"
    missing = "" if elsewhere else unlearned(list(beyond), learned) or "other tasks"
    return [*verdicts, judged("only-there", ~any_of(elsewhere), ours, missing)]


def of_type(tests: Sequence[ManyTest], at: int) -> list[ManyTest]:
    """Of every training, the heads' tests for one type."""
    return [ManyTest(test.means[at], test.above[at], test.below[at], test.n[at]) for test in tests]


def in_every_training(tests: Sequence[ManyTest]) -> Support:
    """In every training some head's mean is above the least effect."""
    return all_of(map(some_head, tests))


def _smallest(by_task: Mapping[Task, Sequence[ManyTest]]) -> str:
    """The largest head of the task, and training, where that is smallest."""
    largest = [(float(test.means.max()), task, test) for task, tests in by_task.items() for test in tests]
    if not largest:
        return "–"
    value, task, test = min(largest, key=lambda one: one[0])
    head = head_name(*heads_by_size(test.means)[0])
    return f"{task.title} {head} {value:+.3f}, the least of {len(largest)} trainings; n={int(test.n.max())}"


def judge_matched_words(tests: Mapping[str, Sequence[ManyTest]], kinds: Sequence[str], missing: str) -> list[Verdict]:
    """Controls of ours: are heads blind to the type of a word?

    Args:
        tests: by model ("pre-trained", "fine-tuned") and training, the excess over matched words, shape (types, layers, heads).
        kinds: the types.
        missing: what is missing for the fine-tuned ones.
    """
    verdicts = []
    for name, which in (("pre-trained", "blind-pretrained"), ("fine-tuned", "blind-tuned")):
        many = tests[name]
        kind, layer, head = map(int, np.unravel_index(np.nanargmax(many[0].means), many[0].means.shape))
        ours = f"{kinds[kind]}, {head_name(layer, head)} {np.nanmax(many[0].means):+.3f}; n={many[0].n[kind].max()}"
        verdicts.append(
            judged(which, all_of(~some_head(test) for test in many), ours, missing if name == "fine-tuned" else "")
        )
    return verdicts
