"""What is claimed of a pre-trained encoder's heads, judged; and the paper's own claims, judged before any fine-tuning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..claims import FAILS, HOLDS, UNDECIDED, Support, Verdict, above, all_of, judged
from ..claims.gates import MIN_EXAMPLES
from ..claims.register import WEIGHT
from ..claims.verdict import PRETRAINED, THIS_RUN
from ..claims.words import least_of
from ..common import head_name
from ..links.dependencies import RelationTest
from ..statistics.estimate import Estimate, over_trainings
from .panels import Comparison
from .pointing import CLARK

RANK = 0.8  # Spearman's correlation from which heads rank as published
HALF = 0.5  # of the attention
ROOM = 2 * WEIGHT  # that a fixed distance must leave, or no head could be ahead of it by what counts
SINK_LAYERS = range(5, 10)  # from 0: layers 6 to 10, where Clark et al. find the sink


def before_fine_tuning(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Verdicts of this run as what they are: about the pre-trained encoder alone."""
    return [replace(one, model=PRETRAINED) if one.model == THIS_RUN else one for one in verdicts]


def judge_panels(compared: Mapping[str, Comparison], missing: str) -> list[Verdict]:
    """Do heads rank as on the published panels?

    Args:
        compared: by panel, those that could be measured.
        missing: what is missing, if it is another encoder.
    """
    ranks = {name: over_trainings([one.rank]) for name, one in compared.items()}
    missing = missing or ("" if ranks else "data of the panels: GLUE's own QQP, or a FrameNet release")
    support = all_of(above(rank, RANK) for rank in ranks.values())
    ours = f"ρ {least_of(ranks, 1, 2, of='panels', border=RANK, counts='heads')}" if ranks else "–"
    return [judged("panels-rank", support, ours, missing)]


def judge_sink(shares: Mapping[str, Estimate], missing: str) -> list[Verdict]:
    """Does [SEP] get over half of the attention in layers 6 to 10?

    Args:
        shares: by layer, its share of all attention, mean over heads, examples and tasks.
        missing: what is missing, if it is another encoder.
    """
    support = all_of(above(share, HALF) for share in shares.values())
    return [judged("sep-half", support, least_of(shares, 1, 2, of="layers", border=HALF), missing)]


def judge_pointing(tests: Mapping[str, RelationTest], random: Mapping[str, RelationTest], missing: str) -> list[Verdict]:
    """Does for every dependency some head point right more often than the best fixed distance; do Clark et al.'s?

    Args:
        tests: by relation, of those with enough arcs.
        random: the same with random weights.
        missing: what the claim about Clark et al.'s heads lacks, if it is another encoder.
    """
    none = "" if tests else f"{MIN_EXAMPLES} arcs of a relation"
    full = [name for name, test in tests.items() if test.baseline.value > 1 - ROOM]
    crowded = (
        f"; {', '.join(full)} left out: a fixed distance is right on over {100 * (1 - ROOM):.0f} % of arcs" if full else ""
    )
    supports, leads = {}, {}
    for name, test in tests.items():
        if name in full:
            continue
        leads[name] = over_trainings([test.difference])
        supports[name] = Support(0.0 if test.beats else 1.0, (-leads[name]).p_above(-WEIGHT))
    same = {name: CLARK[name].at in test.beats for name, test in tests.items()}
    outcome = HOLDS if all(same.values()) else FAILS if not any(same.values()) else UNDECIDED
    ours = ", ".join(f"{name} {head_name(*CLARK[name].at)} {'does' if does else 'does not'}" for name, does in same.items())
    arcs = sum(test.arcs for test in tests.values())
    beaten = {name: len(test.beats) for name, test in random.items()}
    return [
        judged(
            "relations-ahead",
            all_of(supports.values()),
            least_of(leads, 100, 1, of="relations") + crowded,
            none or ("" if leads else f"a relation whose arcs leave room{crowded}"),
        ),
        judged("clark-heads", outcome, "–" if missing else f"{ours}; {arcs} arcs", missing or none),
        judged(
            "relations-random",
            FAILS if any(beaten.values()) else HOLDS,
            f"{sum(beaten.values())} heads of {len(beaten)} relations; {sum(test.arcs for test in random.values())} arcs",
            "" if beaten else f"{MIN_EXAMPLES} arcs of a relation",
        ),
    ]
