"""What one encoder's heads do before fine-tuning, beside bert-base's published ones (notebook 8)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attention import ByNorm, make_batches, observe_cached
from ..common import head_name, one_based, track
from ..features.compare import (
    OVERTAKES,
    last_layer_ahead,
    overtaking_layer,
    published_ahead,
    sep_ahead,
    stripes_of,
)
from ..features.measure import MARKS, Flow, TypeWeights, in_even_shares, observe_types, token_masks
from ..features.measure import measurements as type_measurements
from ..framenet.measure import BACK, FrameLinkAttention, place
from ..framenet.release import OFFICIAL, PAPER, extract, load_release
from ..glue import Task
from ..links.dependencies import CLARK, FOUND, ROWS, Pointing, RelationTest, relation_tests
from ..links.measure import (
    LINK_TYPES,
    diagonal_correlation,
    joined_scores,
    judge_links,
    link_tests,
    links_of,
    neighbour_weights,
    share_adjacent,
)
from ..links.measure import measurements as link_measurements
from ..norms.carried import Mixing
from ..patterns import measure as patterns
from ..published import published_panel
from ..results import MEASURED, SHARE
from ..statistics import (
    Bootstrap,
    Estimate,
    average,
    bootstrap_mean,
    heads_by_size,
    mean_over_seeds,
    rank_correlation,
)
from ..verdicts import CLAIMS, MIN_EXAMPLES, PRETRAINED, WEIGHT, Support, no_sink

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from ..lab import Lab

PANEL = "weight on a panel"
FRAMES = "frame-semantic links"
MOST_SENTENCES = 1000  # of a whole FrameNet release
# What a fixed distance must leave, or no head could be ahead of it by what counts.
ROOM = 2 * WEIGHT
SINK_LAYERS = [f"layer {number}" for number in range(6, 11)]  # where Clark et al. find the sink
TOP = 10  # heads that are compared as the highest
# Of bert-base-uncased: numbers of its configuration, and what they count.
SHAPE = {
    "num_hidden_layers": (12, "layers"),
    "num_attention_heads": (12, "heads in each"),
    "hidden_size": (768, "numbers in a token's vector"),
    "vocab_size": (30522, "wordpieces in its vocabulary"),
}
# SHA-256 of its wordpieces in their order, a line each (its vocab.txt).
VOCABULARY = "0f052197aac305fe42f378b5c61554b7bacb34b8be4af83fec2cfdcdffbc9973"
Types = Mapping[Task, TypeWeights]
Observed = Mapping[Task, Mapping[str, Any]]  # what a pass gave, by task and measurement


def run(lab: Lab) -> None:
    """Measure the encoder, and judge on it the claims of §4.1, §4.4, §4.5 and notebook 7."""
    encoder = lab.encoder()
    seen = {task: observe(lab, encoder, task) for task in track(lab.tasks, "measuring")}
    types = {task: observe_types(lab, encoder, task) for task in lab.tasks}
    another = not_bert_base(lab.config, lab.tokenizer)
    shape = {"layers": lab.config.num_hidden_layers, "heads": lab.config.num_attention_heads}
    lab.fact(encoder={"bert-base": not another} | shape, annotation=lab.annotator.name)
    panels = record_panels(lab, encoder, types)
    record_comparison(lab, panels, another)
    even = record_special_tokens(lab, seen, types, another)
    record_dependencies(lab, another)
    record_patterns(lab, seen)
    record_links(lab, seen)
    record_norms(lab, seen, even)


def judge(lab: Lab, claim: str, estimates: Mapping[Any, Any] | None = None, **options: Any) -> None:
    """Judge a claim on the pre-trained encoder. Every task counts: none has to be learned."""
    lab.judge(claim, estimates, model=PRETRAINED, **options)


def record(
    lab: Lab, what: str, values: Mapping, unit: str, tolerance: float = MEASURED, by: str = "task"
) -> None:
    """Record numbers of the pre-trained encoder."""
    lab.record(what, values, by=(by,), state=PRETRAINED, unit=unit, tolerance=tolerance)


def means(lab: Lab, values: Mapping[Task, np.ndarray]) -> dict[Task, Estimate]:
    """Mean of each task's values, shape (examples,), of one encoder: only examples are resampled."""
    return one_model(
        {task: bootstrap_mean(one, lab.resampling_seed(task)) for task, one in values.items()}
    )


def one_model(numbers: Mapping[Task, Bootstrap]) -> dict[Task, Estimate]:
    """Numbers of one encoder by task."""
    return {task: mean_over_seeds([one]) for task, one in numbers.items()}


def observe(lab: Lab, encoder: PreTrainedModel, task: Task) -> dict[str, Any]:
    """All sections' measurements of the encoder on a task's rows, in one pass, by name."""
    measurements = {
        **type_measurements(lab, task),
        **link_measurements(lab, task),
        patterns.NETWORK: patterns.measurements(lab, task)[patterns.NETWORK],
        "by norm": ByNorm(Flow(token_masks(lab, task)["marks"])),
        "mixing": Mixing(encoder),
        "pointing": Pointing(lab.annotated_inputs(task)),  # for arcs_of
    }
    return observe_cached(encoder, lab.batches(task), measurements)


# Beside published figures


def record_panels(lab: Lab, encoder: PreTrainedModel, types: Types) -> dict[str, np.ndarray]:
    """Weights on [CLS], on [SEP] (QQP's pairs) and along frame links, as on the published panels.

    Returns:
        The panels that can be compared with them, each of shape (layers, heads).
    """
    pairs = next((task for task in lab.tasks if task.name == "qqp"), lab.tasks[0])
    panels = {kind: types[pairs].on(kind).mean(axis=0) for kind in ("[CLS]", "[SEP]")}
    published = {kind: published_panel(kind) for kind in panels}
    published_layer = {"": overtaking_layer(published_ahead())}
    lab.record(OVERTAKES, published_layer, by=("kind",), state="published", unit="count")
    more, own = (of["[CLS]"] > of["[SEP]"] for of in (published, panels))
    counts = {"published, layers 1 to 4": more[:4].sum()}
    counts |= {"published, layers 5 to 12": more[4:].sum(), "this encoder": own.sum()}
    lab.record("heads that give [CLS] more than [SEP]", counts, by=("kind",), unit="count")
    panels[FRAMES] = frame_panel(lab, encoder)
    record(lab, PANEL, panels, "weight", by="kind")
    real = not lab.settings.is_small and pairs.name == "qqp"
    return {kind: panel for kind, panel in panels.items() if kind == FRAMES or real}


def frame_panel(lab: Lab, encoder: PreTrainedModel) -> np.ndarray:
    """Weight along frame-semantic links as the published code measures it, shape (layers, heads).

    It takes the weight from the element to the predicate, pairs wordpieces one by one, and keeps
    other sentences than the paper says; of a small release too few, so that the paper's rules keep
    them instead.
    """
    release, seed = load_release(lab.settings.framenet), lab.settings.seed
    sentences = extract(release, OFFICIAL)
    if len(sentences) < MIN_EXAMPLES:
        sentences = extract(release, PAPER)
    lab.fact(release=release.name)
    rows = np.random.default_rng(seed).permutation(len(sentences))[:MOST_SENTENCES]
    few = [sentences[row] for row in sorted(rows)]
    placed, inputs = place(few, lab.tokenizer)
    links = FrameLinkAttention([[one.pairs(BACK, pairing="zip")] for one in placed])
    batches = make_batches(inputs, lab.tokenizer)
    return observe_cached(encoder, batches, {"links": links})["links"].actual.mean(axis=0)


def not_bert_base(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerFast) -> str:
    """What a claim about bert-base's own heads lacks here; empty if nothing.

    Another pre-training of the same shape and vocabulary cannot be told from it.
    """
    problem = "" if config.model_type == "bert" else f"it is of the kind {config.model_type}"
    for name, (wanted, of_what) in SHAPE.items():
        if not problem and getattr(config, name) != wanted:
            problem = f"it has {getattr(config, name)} {of_what}, not {wanted}"
    vocabulary = tokenizer.get_vocab()
    text = "\n".join(sorted(vocabulary, key=vocabulary.__getitem__))
    if not problem and hashlib.sha256(text.encode()).hexdigest() != VOCABULARY:
        problem = "its vocabulary has other wordpieces, such as those of the cased model"
    missing = "bert-base-uncased, whose heads are published; this is another encoder"
    return f"{missing}: {problem}" if problem else ""


def record_comparison(lab: Lab, panels: Mapping[str, np.ndarray], another: str) -> None:
    """If this is bert-base, each head beside itself on the published panels."""
    ranks, largest, common, where = {}, {}, {}, {}
    for kind, panel in panels.items():
        if not another and (kind != FRAMES or lab.settings.framenet != "embedded"):
            published = published_panel("framenet" if kind == FRAMES else kind)
            difference = panel - published
            at = np.unravel_index(np.abs(difference).argmax(), difference.shape)
            largest[kind], where[kind] = difference[at], head_name(*map(int, at))
            highest = [set(heads_by_size(one)[:TOP]) for one in (panel, published)]
            common[kind] = len(highest[0] & highest[1])
            rank = rank_correlation(panel.ravel(), published.ravel(), lab.settings.seed)
            ranks[kind] = mean_over_seeds([rank])
    unit, what = "correlation over heads", "rank correlation with the published panel"
    lab.record(what, ranks, by=("kind",), unit=unit)
    what = "largest difference from the published panel"
    lab.record(what, largest, by=("kind",), unit="difference")
    what = "of the ten highest heads, in common"
    lab.record(what, common, by=("kind",), unit="count", tolerance=1)
    lab.fact(most_different=where)
    missing = "" if ranks else "data of the panels: GLUE's own QQP, or a FrameNet release"
    judge(lab, "panels-rank", ranks, unit=unit, unmet=another or missing)


# §4.4: special tokens


def record_special_tokens(lab: Lab, seen: Observed, types: Types, another: str) -> dict[str, float]:
    """In which layers [CLS] and [SEP] get attention, and stripes.

    Returns:
        What one token of each kind gets, in multiples of an even share.
    """
    flows = {task: one["flow"] for task, one in seen.items()}
    even = in_even_shares(flows, {task: token_masks(lab, task)["marks"] for task in lab.tasks})
    record(lab, "one token's attention in even shares, by weight", even, "", by="kind")
    ahead = one_model({task: last_layer_ahead(one) for task, one in types.items()})
    record(lab, CLAIMS["sep-overtakes"].estimate, ahead, "difference")
    judge(lab, "sep-overtakes", ahead, unit="difference")
    overtakes = {task: overtaking_layer(sep_ahead(one).mean(axis=0)) for task, one in types.items()}
    record(lab, OVERTAKES, overtakes, "count")
    stripes = {task: stripes_of(one) for task, one in types.items()}
    ahead = one_model({task: one.marks_ahead() for task, one in stripes.items()})
    record(lab, CLAIMS["stripes-special"].estimate, ahead, "difference of shares", SHARE)
    words = one_model({task: one.on_words() for task, one in stripes.items()})
    record(lab, CLAIMS["stripes-exclusive"].estimate, words, "share", SHARE)
    judge(lab, "stripes-special")
    judge(lab, "stripes-exclusive")
    on_sep, sep = {task: one.destinations[..., 1].mean(axis=2) for task, one in flows.items()}, {}
    for layer in range(lab.config.num_hidden_layers):
        shares = means(lab, {task: one[:, layer] for task, one in on_sep.items()})
        sep[f"layer {one_based(layer)}"] = average(list(shares.values()))
    record(lab, "share of [SEP] by layer", sep, "share", by="kind")
    half = {name: one for name, one in sep.items() if name in SINK_LAYERS}
    judge(lab, "sep-half", half, unmet=another, unit="share")
    return even


# §4.5: dependencies and links


def record_dependencies(lab: Lab, another: str) -> None:
    """Heads along dependencies against the best fixed distance; with random weights; Clark et al.'s."""
    pointing, random = (
        {name: test for name, test in tests.items() if test.arcs >= MIN_EXAMPLES}
        for tests in (
            relation_tests(lab, lab.encoder(), lab.tasks),
            relation_tests(lab, lab.encoder("normal"), lab.tasks[:1]),
        )
    )
    for what, part, unit in ROWS:
        values = {name: getattr(test, part) for name, test in pointing.items()}
        record(lab, what, values, unit, by="kind")
    of_random = {name: test.accuracy for name, test in random.items()}
    lab.record(FOUND[0], of_random, by=("kind",), state="random weights", unit="share")
    lab.fact(**{f"head of {name}": head_name(*test.head) for name, test in pointing.items()})
    judge(lab, "relations-ahead", ahead_of_distance(pointing))
    above = {name: test.support_above_rule for name, test in pointing.items()}
    judge(lab, "relations-rule", above)
    beaten = sum(len(test.beats) for test in random.values())
    none = {f"heads, of {len(random)} relations:": beaten} if random else {}
    judge(lab, "relations-random", none)
    clark = {"": heads_of_clark(pointing)} if pointing else {}
    judge(lab, "clark-heads", clark, unmet=another)


def ahead_of_distance(tests: Mapping[str, RelationTest]) -> dict[str, Support]:
    """Support for some head ahead of the best fixed distance, where that leaves :data:`ROOM`."""
    return {name: test.support for name, test in tests.items() if test.baseline.value <= 1 - ROOM}


def heads_of_clark(tests: Mapping[str, RelationTest]) -> Support:
    """Support for each head that Clark et al. name being ahead of the best fixed distance.

    Against it speaks that none is. Theirs point from dependents to heads, and are tested in that
    direction.
    """
    does = {name: CLARK[name].at in test.towards_heads for name, test in tests.items()}
    says = {name: "does" if it else "does not" for name, it in does.items()}
    heads = ", ".join(f"{name} {head_name(*CLARK[name].at)} {says[name]}" for name in does)
    number = f"{heads}; {sum(test.arcs for test in tests.values())} arcs"
    return Support(float(not all(does.values())), float(any(does.values())), number)


def record_links(lab: Lab, seen: Observed) -> None:
    """Judge whether heads along links between words can be told from attention to neighbours."""
    seed, links = lab.settings.seed, [one for task in lab.tasks for one in links_of(lab, task)]
    tests = link_tests(seen.values(), seed)
    along = joined_scores(one["links"] for one in seen.values()).along
    around = np.concatenate([one["flow"].neighbours for one in seen.values()])
    rho = {}
    for kind in tests:
        beside = neighbour_weights(around, links, kind)
        rho[kind] = diagonal_correlation(along[:, LINK_TYPES.index(kind)], beside, seed)
    judge_links(lab, {PRETRAINED: tests}, rho, share_adjacent(links), model=PRETRAINED)


# §4.1: patterns


def record_patterns(lab: Lab, seen: Observed) -> None:
    """Shares of patterns, and whether few of them repeat across heads and tasks.

    One encoder reads the texts of several tasks, so that agreement of tasks says how far a pattern
    is the head's own and not the text's.
    """
    errors = patterns.classifier_errors(patterns.NETWORK, lab.settings.seed)
    one_hot = {task: patterns.one_hot(one[patterns.NETWORK]) for task, one in seen.items()}
    seeds = {task: lab.resampling_seed(task) for task in lab.tasks}
    possible = {task: patterns.possible_patterns(task) for task in lab.tasks}
    shares = {
        task: patterns.pattern_shares(one_hot[task], errors, seeds[task], possible[task])
        for task in lab.tasks
    }
    claims = {"heterogeneous": ("heterogeneous",), "first-three": patterns.FIRST_THREE}
    for claim, names in claims.items():
        parts = {task: [one[name] for name in names] for task, one in shares.items()}
        sums = {task: patterns.together(several) for task, several in parts.items()}
        record(lab, CLAIMS[claim].estimate, one_model(sums), "share", SHARE)
        judge(lab, claim)
    heads = lab.config.num_hidden_layers * lab.config.num_attention_heads
    covered = {task: patterns.coverage(one, seeds[task]) for task, one in one_hot.items()}
    above, seed = {}, lab.settings.seed
    for task, share in one_model(covered).items():
        by_chance = patterns.coverage_by_chance(heads, possible[task].sum(), seed)
        above[task] = share - by_chance
    judge(lab, "repeat-heads", above, unit="difference of shares")
    agreement, several = {}, len(lab.tasks) > 1
    if several:
        kappa = patterns.task_agreement(list(one_hot.values()), list(seeds.values()))
        agreement[""] = mean_over_seeds([kappa])
    judge(lab, "repeat-tasks", agreement, unit="κ", unmet="" if several else "two tasks")


# Notebook 7: value norms and mixing


def record_norms(lab: Lab, seen: Observed, even: Mapping[str, float]) -> None:
    """How much less special tokens get by norm, and how much of a new vector comes from others."""
    for at, kind in enumerate(MARKS):
        less = {
            task: one["flow"].destinations[..., at] - one["by norm"].destinations[..., at]
            for task, one in seen.items()
        }
        falls = means(lab, {task: one.mean(axis=(1, 2)) for task, one in less.items()})
        record(lab, f"fall of {kind} by norm", falls, "difference")
        claim, unmet = f"norm-{kind.strip('[]').lower()}", no_sink(even[kind], kind)
        judge(lab, claim, falls, unmet=unmet, unit="difference")
    ratios = {task: one["mixing"].mean(axis=1) for task, one in seen.items()}  # (examples, 4)
    order: dict[str, Estimate] = {}
    for name, (first, second) in {"weight to norm": (0, 1), "norm to all counted": (1, 3)}.items():
        steps = {task: one[:, first] - one[:, second] for task, one in ratios.items()}
        order |= {f"{task.title}, {name}": one for task, one in means(lab, steps).items()}
    judge(lab, "mixing-order", order, unit="difference")
    kept = means(lab, {task: 1 - one[:, -1] for task, one in ratios.items()})
    judge(lab, "mixing-kept", kept, unit="share")
