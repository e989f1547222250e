"""Verdicts on claims: "holds here", "does not hold here", "undecided" or "not testable here".

A claim is a table of ``claims.toml``: it names an estimate, a rule and the least effect. A rule is a
formula over p values, corrected for how many tasks, heads or runs it is about, so that every claim
is judged at one level, 5 % two-sided, whatever its form.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .common import head_name
from .glue import Task, plain_metric
from .results import read_results, text_of
from .statistics import (
    ONE_SIDED,
    Bootstrap,
    Estimate,
    ManyTest,
    Seed,
    largest,
    leaves,
    mean_over_seeds,
    resampled_scores,
)

WEIGHT = 0.02  # smallest difference of attention weights, similarities or shares that counts
SCORE = 0.01  # smallest loss of a score that counts as harm: a point
TENTH = 0.001  # of a point: the smallest gain that the paper reports (STS-B)

Verdicts = Mapping[tuple[str, str], Mapping[str, Any]]  # by claim and model, as in a results file

LEARNED = "the model learned its task: surely above always the same answer"
# What claims.toml abbreviates. The words belong to the frozen rules: to change them is to change those.
NEEDS = {
    "learned": LEARNED,
    "sink": "a [SEP] sink: pre-trained, [SEP] gets more than an even share",
}


@dataclass(frozen=True)
class Claim:
    """A claim, or a control of ours: a table of ``claims.toml``, which explains the entries.

    Attributes:
        id: its name in code and in results.json.
        section: of the paper, or the other paper.
        notebook: where it is judged, by number.
        text: what is claimed, in our words.
        estimate: the name of the numbers that decide.
        rule: how they decide, one of :data:`RULES`.
        least: the smallest effect that counts; for a range, its lower end.
        most: of a range, the upper end.
        paper: the published number or statement; empty for a control.
        tasks: that it is about, by name; empty for all.
        needs: preconditions, without which it is not testable.
        runs: of a task that has fewer fine-tuning runs nothing is judged; 0 for any number.
        glue: whether GLUE's rows decide it; what other data decide (labelled maps, FrameNet) has no
            confirmatory test.
    """

    id: str
    section: str
    notebook: int
    text: str
    estimate: str
    rule: str
    least: float
    most: float = 0.0
    paper: str = ""
    tasks: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    runs: int = 0
    glue: bool = True

    @property
    def is_control(self) -> bool:
        """True for a control of ours, which no paper claims."""
        return not self.paper

    @property
    def digest(self) -> str:
        """Of all that decides it; its words may change."""
        borders = float(self.least), float(self.most)
        parts = self.estimate, self.rule, borders, self.tasks, self.needs, self.runs
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    @property
    def rule_in_words(self) -> str:
        """The rule with its least effect: "each above 0.02"."""
        border = f" {self.least:g}" + (f" and {self.most:g}" if "within" in self.rule else "")
        has_border = self.rule.endswith(("above", "below", "within", "sign"))
        return f"{self.estimate}: {self.rule}{border if has_border else ''}"


def _read_claims() -> dict[str, Claim]:
    text = Path(__file__).with_name("claims.toml").read_text(encoding="utf-8")
    claims = {}
    for name, table in tomllib.loads(text).items():
        needs = tuple(NEEDS.get(need, need) for need in table.pop("needs", ()))
        claims[name] = Claim(name, tasks=tuple(table.pop("tasks", ())), needs=needs, **table)
    return claims


CLAIMS = _read_claims()

HOLDS, FAILS = "holds here", "does not hold here"
UNDECIDED, UNTESTABLE = "undecided", "not testable here"
OUTCOMES = (HOLDS, FAILS, UNDECIDED, UNTESTABLE)
_ON_TASKS = {HOLDS: "holds", FAILS: "fails", UNDECIDED: "undecided"}
# What a verdict is about, unless it names another model.
THIS_RUN, PRETRAINED = "this run", "pre-trained"
# p values below it are alike: of several that are as sure, the most extreme number is told
TINY = 0.001
ADJACENT = 0.05  # share of linked words below which nothing can be said of neighbours
MIN_EXAMPLES = 30  # below it a mean over examples is an anecdote


@dataclass(frozen=True)
class Support:
    """Evidence of the data for and against a statement.

    Attributes:
        holds: p value of such data if the statement were false; small speaks for it.
        fails: p value of such data if it were true; small speaks against it.
        number: this run's, in words, where the statement is no estimate.
        value: a number that is larger where it speaks more for the statement; of several statements
            that are as sure it tells which is the closest, or the farthest.
    """

    holds: float
    fails: float
    number: str = ""
    value: float = 0.0

    def __invert__(self) -> Support:
        """Support for the negated statement."""
        return Support(self.fails, self.holds, self.number, -self.value)

    @property
    def outcome(self) -> str:
        """Decided at a two-sided level of 5 %, that is 2.5 % on either side."""
        return HOLDS if self.holds <= ONE_SIDED else FAILS if self.fails <= ONE_SIDED else UNDECIDED


def above(estimate: Estimate | Bootstrap, least: float = 0.0) -> Support:
    """Support for a true value above ``least``."""
    one = mean_over_seeds([estimate]) if isinstance(estimate, Bootstrap) else estimate
    return Support(one.p_above(least), (-one).p_above(-least), value=one.value - least)


def all_of(parts: Iterable[Support]) -> Support:
    """Support for each of several statements.

    It holds if each one does, without correction (each has to pass); it fails
    if one does at a level divided by their number (Bonferroni; the first step
    of Holm, 1979, which is all that "at least one" needs). A part without a
    number, NaN, makes the whole NaN, wherever it stands. Its value is the least of theirs.
    """
    parts = list(parts)
    if not parts:
        return Support(1.0, 1.0)
    fails = np.minimum(1.0, len(parts) * np.min([part.fails for part in parts]))
    holds, value = np.max([part.holds for part in parts]), min(part.value for part in parts)
    return Support(float(holds), float(fails), value=value)


def any_of(parts: Iterable[Support]) -> Support:
    """Support for at least one of several statements; the contrary of :func:`all_of` of their contraries."""
    return ~all_of(~part for part in parts)


def some_head(test: ManyTest) -> Support:
    """Support for some head's mean above the test's least effect; against it, that every head's is below.

    Only the first is corrected over heads: some head is above by luck, the more so the more there
        are, but all are below only if each one is, and each is tested at the level by itself.
    """
    measured = test.n > 0
    if not measured.any():
        return Support(math.nan, math.nan)
    holds, fails = test.above[measured].min(), test.below_alone[measured].max()
    return Support(float(holds), float(fails), value=float(np.nanmax(test.means)))


def in_every_training(tests: ManyTest | Sequence[ManyTest]) -> Support:
    """Support for some head's mean above the least effect in every training."""
    return all_of(map(some_head, _tests(tests)))


Rule = Callable[[Sequence[Any], Claim], Support]

# From a claim's estimates (one for each task, relation, panel …) to what they say of it. A value of
# the estimate is an Estimate or a Bootstrap; for rules about heads a ManyTest or one for each
# training; for "as tested" a Support.
RULES: dict[str, Rule] = {
    "each above": lambda found, claim: all_of(above(one, claim.least) for one in found),
    "each below": lambda found, claim: all_of(~above(one, claim.least) for one in found),
    "each within": lambda found, claim: all_of(
        all_of([above(one, claim.least), ~above(one, claim.most)]) for one in found
    ),
    "not each above": lambda found, claim: ~all_of(above(one, claim.least) for one in found),
    "some beyond, of either sign": lambda found, claim: any_of(
        any_of([above(one, claim.least), above(-one, claim.least)]) for one in found
    ),
    "some head in each": lambda found, claim: all_of(map(in_every_training, found)),
    "no head in any": lambda found, claim: all_of(
        ~some_head(test) for one in found for test in _tests(one)
    ),
    "in none of them some head": lambda found, claim: ~any_of(map(in_every_training, found)),
    "as tested, each": lambda found, claim: all_of(found),
    "as tested, some": lambda found, claim: any_of(found),
    "as tested, none": lambda found, claim: all_of(~one for one in found),
    "equal": lambda found, claim: (
        Support(0.0, 1.0) if all(one == claim.least for one in found) else Support(1.0, 0.0)
    ),
}


def _tests(one: ManyTest | Sequence[ManyTest]) -> Sequence[ManyTest]:
    return [one] if isinstance(one, ManyTest) else one


@dataclass(frozen=True)
class Verdict:
    """A run's verdict on one claim.

    Attributes:
        id: its name in the table of claims.
        outcome: one of :data:`OUTCOMES`.
        number: this run's, with interval and sample size; of several, the one that decides.
        why: for what cannot be tested, the precondition that fails; else the rule.
        model: what it is about, if not this run's model.
        tally: of a claim about each of several tasks, on how many it holds, fails and is undecided; {}
            for others.
        rule: digest of the rule that judged it.
    """

    id: str
    outcome: str
    number: str
    why: str
    model: str = THIS_RUN
    tally: Mapping[str, int] = field(default_factory=dict)
    rule: str = ""


def judge(
    name: str, found: Mapping[Any, Any], unmet: str = "", unit: str = "", model: str = THIS_RUN
) -> Verdict:
    """The verdict on a claim.

    Args:
        name: of the claim.
        found: its estimates, by what each is of: a task, a relation, …; for one alone any key, such
            as "". Of a task that has several, they stand in a mapping of their own. Those of
            several runs are pooled already, see :func:`bertology_utils.statistics.pooled`.
        unmet: the precondition that fails, if one does.
        unit: of the estimates, for their words; see :func:`bertology_utils.results.text_of`.
        model: what it is about, if not this run's model.

    Raises:
        KeyError: there is no such claim, or no such rule.
    """
    claim = CLAIMS[name]
    # By task, or by (task, part) where a task has several.
    found = {at if len(at) > 1 else at[0]: one for at, one in leaves(found)}
    support = RULES[claim.rule](list(found.values()), claim)
    if not unmet and not found:
        unmet = "; ".join(need for need in claim.needs if need != LEARNED)
    if not unit.endswith("over heads"):  # of those n counts heads
        sizes = [one.n for one in found.values() if isinstance(one, (Estimate, Bootstrap))]
        unmet = unmet or too_few(min(sizes, default=MIN_EXAMPLES))
    if not unmet and (not found or math.isnan(support.holds) or math.isnan(support.fails)):
        unmet = "a number: this model, or these data, give none"
    if unmet:
        return Verdict(name, UNTESTABLE, "–", f"missing: {unmet}", model, rule=claim.digest)
    number, tally = _number(claim, support, found, unit), _tally(claim, found)
    return Verdict(name, support.outcome, number, claim.rule_in_words, model, tally, claim.digest)


def in_words(outcome: str, tally: Mapping[str, int]) -> str:
    """A verdict's outcome and on how many tasks the claim holds, fails and is undecided."""
    on = {how: count for how, count in tally.items() if count}
    if len(on) == 1:
        ((how, count),) = on.items()
        told = "on all" if how == _ON_TASKS[outcome] else f"{how} on all"
        return f"{outcome} ({told} {count} tasks)"
    told = ", ".join(f"{how} on {count}" for how, count in on.items())
    return f"{outcome} (tasks: {told})" if told else outcome


SYMBOLS = dict(zip(OUTCOMES, "✓✗?–", strict=True))


def lines_of_verdicts(
    verdicts: Verdicts, names: Sequence[str] = (), confirmatory: Verdicts | None = None
) -> str:
    """Verdicts as Markdown for a page, a line each: mark, claim, outcome, our number, the paper's.

    Args:
        verdicts: by claim and model, as a results file has them.
        names: of the claims; all if none is given.
        confirmatory: the confirmatory study's verdicts on them; None if there is no such study.
    """
    lines = []
    for (name, model), one in verdicts.items():
        if name in CLAIMS and (not names or name in names):
            claim, symbol = text_of_claim(name, model), SYMBOLS[one["outcome"]]
            outcome, number = in_words(one["outcome"], one["tally"]), number_of(one)
            line = f"- {symbol} **{claim}:** {outcome}. Here: {number}."
            line += said_elsewhere(CLAIMS[name])
            second = (confirmatory or {}).get((name, model))
            if second and (mark := mark_of(one["outcome"], second["outcome"])) != NO_TEST:
                line += f" Confirmatory study: {mark}."
            lines.append(line)
    return "\n".join(lines)


def said_elsewhere(claim: Claim) -> str:
    """The paper's number, or that of the paper whose claim it is, as a sentence; nothing where none has one."""
    if not claim.paper or claim.paper == "not measured":
        return ""
    if "et al.: " in claim.paper:  # which names its source
        return f" {claim.paper}."
    source = claim.section if "et al." in claim.section else "The paper"
    return f" {source}: {claim.paper}."


def text_of_claim(name: str, model: str) -> str:
    """A claim's text, with the model that a verdict on it is about, unless it is the run's own."""
    return CLAIMS[name].text + ("" if model == THIS_RUN else f" ({model})")


def number_of(verdict: Mapping[str, Any]) -> str:
    """A verdict's number in words; of what cannot be tested, what is missing."""
    return verdict["why"] if verdict["outcome"] == UNTESTABLE else verdict["number"]


def _tally(claim: Claim, found: Mapping[Any, Any]) -> dict[str, int]:
    """On how many tasks a claim about each of them holds, fails and is undecided; {} for other claims."""
    by_task: dict[Task, list[Any]] = {}
    for label, one in found.items():
        task = label[0] if isinstance(label, tuple) else label
        if not isinstance(task, Task) or "each" not in claim.rule or claim.rule.startswith("not"):
            return {}
        by_task.setdefault(task, []).append(one)
    if len(by_task) < 2:
        return {}
    outcomes = [RULES[claim.rule](parts, claim).outcome for parts in by_task.values()]
    return {how: outcomes.count(outcome) for outcome, how in _ON_TASKS.items()}


def _number(claim: Claim, support: Support, found: Mapping[Any, Any], unit: str) -> str:
    """The estimate that decides: of a claim about each, the one least sure; of one that fails, that which speaks against it most."""
    alone = {label: RULES[claim.rule]([one], claim) for label, one in found.items()}
    about_some = claim.rule in ("some beyond, of either sign", "as tested, some", "not each above")

    def order(label: Any) -> tuple[float, float]:
        one = alone[label]
        holds, fails = (max(p, TINY) for p in (one.holds, one.fails))
        if about_some:
            return -holds, one.value
        return (-fails if support.outcome == FAILS else holds), -one.value

    label = max(found, key=order)
    parts = label if isinstance(label, tuple) else (label,)
    title = ", ".join(part.title if isinstance(part, Task) else part for part in parts)
    against = support.outcome == FAILS and not about_some
    how = "clearest" if about_some else "clearest counterexample" if against else "least certain"
    value, semicolon, sizes = _read(found[label], unit).partition("; ")
    among = f", {how} of {len(found)}{_range(found.values(), unit)}" if len(found) > 1 else ""
    return f"{title} {value}{among}".strip() + semicolon + sizes


def _range(found: Iterable[Any], unit: str) -> str:
    """The lowest and the highest of several estimates, " (+25 to +41)"; nothing for what is no estimate."""
    values = [one.value for one in found if isinstance(one, (Estimate, Bootstrap))]
    if not values:
        return ""
    ends = {"value": min(values), "low": min(values), "high": max(values), "unit": unit}
    return f" ({text_of(ends).partition('[')[2].removesuffix(']').replace(', ', ' to ')})"


def _read(one: Any, unit: str) -> str:
    """What people read of an estimate, a test or a count."""
    if isinstance(one, (Estimate, Bootstrap)):
        return text_of(one.summary() | {"unit": unit}, sizes=True)
    if isinstance(one, Support):
        return one.number
    if isinstance(one, (int, float)):
        return str(one)
    test = min(_tests(one), key=lambda test: np.nanmax(test.means))
    best = largest(test.means)  # its last two places are the layer and the head
    return f"head {head_name(*best[-2:])} {test.means[best]:+.3f}; n={int(test.n[best])}"


# Preconditions. ---------------------------------------------------------


def constant_score(task: Task, labels: np.ndarray) -> float:
    """Score of always giving the same answer: the most frequent class's share, or no correlation for a regression.

    Args:
        task: the task.
        labels: gold, shape (examples,).
    """
    return 0.0 if task.is_regression else float(np.bincount(labels).max() / len(labels))


def learned(task: Task, predicted: np.ndarray, labels: np.ndarray, seed: Seed) -> bool:
    """True if every training learned the task: each one's score is surely above that of always the same answer.

    By :func:`bertology_utils.glue.plain_metric`.

    Args:
        task: the task.
        predicted: of every training, shape (trainings, examples).
        labels: gold, shape (examples,).
        seed: of the resampling of examples.
    """
    if len(labels) < MIN_EXAMPLES:
        return False
    constant = constant_score(task, labels)
    each = resampled_scores(plain_metric(task), predicted, labels, seed)
    return all(above(one, constant).outcome == HOLDS for one in each)


def unlearned(tasks: Sequence[Task], learned: Mapping[Task, bool]) -> str:
    """The unmet precondition if no task that a claim is about was learned; empty if one was."""
    if any(learned[task] for task in tasks):
        return ""
    if not tasks:
        return "no such task here"
    titles = ", ".join(task.title for task in tasks)
    return f"no model that learned {titles}: none is surely above always the same answer"


def no_sink(in_even_shares: float, kind: str = "[SEP]") -> str:
    """What is missing if the pre-trained model has no sink: if one token of a kind gets no more than a uniform share.

    Args:
        in_even_shares: attention to one such token, pre-trained and by weight, mean over heads and
            examples, in multiples of 1/L.
        kind: of token.
    """
    if in_even_shares > 1:
        return ""
    return f"a model with a {kind} sink: pre-trained, {kind} gets {in_even_shares:.1f} of a uniform share"


def never_adjacent(adjacent: float) -> str:
    """What is missing if linked words hardly ever stand side by side.

    Args:
        adjacent: share of links whose words are neighbours; NaN where there are no links.
    """
    if adjacent >= ADJACENT:
        return ""
    if np.isnan(adjacent):
        return "no such links here"
    return f"adjacent links: {adjacent:.0%} of these words are neighbours"


def too_few(n: int, wanted: int = MIN_EXAMPLES, of_what: str = "examples") -> str:
    """What is missing if there are fewer examples, or fewer of something else, than are wanted."""
    return "" if n >= wanted else f"{of_what}: {n}, of {wanted} at least"


# The confirmatory study repeats the exploratory one on other rows, by rules that were frozen before.
# ``results/confirm`` has its results and ``frozen.toml``: the commit in which the rules were frozen
# and, for each claim that GLUE's rows decide, the digest of its rule. Neither a run nor a reader
# accepts other rules. ---

CONFIRMATORY, FROZEN = "confirm", "frozen.toml"  # below results/, and the file there
# What it makes of an exploratory verdict.
CONFIRMED, CONTRADICTED, NOT_CONFIRMED = "confirmed", "contradicted", "not confirmed"
DECIDED = {HOLDS: "decided: holds", FAILS: "decided: does not hold"}
STILL_OPEN, NO_TEST = "still undecided", "–"
MARKS = (CONFIRMED, CONTRADICTED, NOT_CONFIRMED, *DECIDED.values(), STILL_OPEN, NO_TEST)


def mark_of(exploratory: str, confirmatory: str) -> str:
    """One of :data:`MARKS`: what an outcome of the confirmatory study says of the exploratory outcome."""
    if confirmatory == UNTESTABLE:
        return NO_TEST
    if exploratory not in DECIDED:
        return DECIDED.get(confirmatory, STILL_OPEN)
    if confirmatory == UNDECIDED:
        return NOT_CONFIRMED
    return CONFIRMED if confirmatory == exploratory else CONTRADICTED


@dataclass(frozen=True)
class Frozen:
    """The rules that a confirmatory study tests.

    Attributes:
        commit: in which they were frozen.
        rules: digests by claim.
    """

    commit: str
    rules: Mapping[str, str]


def read_frozen(results: Path, notebooks: Collection[int] = ()) -> Frozen:
    """The frozen rules that are still those of ``claims.toml``.

    Of a notebook that the study has not run, a rule may change: it is then no longer frozen.

    Args:
        results: the folder ``results``.
        notebooks: numbers of those that the study is about to run.

    Raises:
        ValueError: nothing was frozen, or rules of a notebook that was run, or is about to be, have
            changed since; names the claims.
    """
    path, advice = results / CONFIRMATORY / FROZEN, "python -m docs.evidence --freeze"
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        frozen = Frozen(content["commit"], content["rules"])
    except FileNotFoundError:
        raise ValueError(f"a confirmatory study needs frozen rules: {advice}") from None
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"results/{CONFIRMATORY}/{FROZEN} cannot be read ({error}); take it from version control"
        ) from error
    now = {name: claim.digest for name, claim in CLAIMS.items()}
    kept = {name: rule for name, rule in frozen.rules.items() if now.get(name) == rule}
    studied = {
        *notebooks,
        *(int(one.name.split("_")[0]) for one in path.parent.glob("[0-9]*_*.json")),
    }
    may_change = {name for name, claim in CLAIMS.items() if claim.notebook not in studied}
    if changed := sorted(frozen.rules.keys() - kept.keys() - may_change):
        raise ValueError(
            f"rules differ from those frozen in {frozen.commit[:10]}: {', '.join(changed)}; restore"
            f" them in claims.toml, or, while there are no confirmatory results, freeze anew: {advice}"
        )
    return Frozen(frozen.commit, kept)


def read_confirmed(results: Path, number: str) -> Verdicts | None:
    """A notebook's confirmatory verdicts by claim and model; None where there is no such study.

    A claim that was not frozen has no confirmatory verdict.

    Args:
        results: the folder ``results``.
        number: the notebook's.

    Raises:
        ValueError: as :func:`read_frozen`; or a verdict that was made by another rule.
    """
    paths = sorted((results / CONFIRMATORY).glob(f"{number}_*.json"))
    if not paths:
        return None
    frozen = read_frozen(results)
    judged = read_results(paths[0]).verdicts
    found = {at: one for at, one in judged.items() if at[0] in frozen.rules}
    other = [name for (name, _), one in found.items() if one.get("rule") != frozen.rules[name]]
    if other:
        raise ValueError(
            f"results/{CONFIRMATORY}/{paths[0].name} judged by other rules than those frozen in"
            f" {frozen.commit[:10]}: {', '.join(other)}; renew it: make evidence CONFIRM=FOLDER"
            f" ONLY={number}"
        )
    return found
