"""Are the controls of §4.2 and §4.5 fooled by maps that know positions only?

Every map is replaced by the mean of other inputs' maps of the same length with
[SEP] at the same places, so that a head can only follow positions. Then the
notebooks' tests ask how many heads attend along links more than elsewhere.

    python benchmarks/position_only.py    # writes position_only.json beside it
"""

import json
from pathlib import Path

import numpy as np
import torch

from bertology_utils.attention import Batch, attention_maps, batches
from bertology_utils.framenet import frame_links, measure, release
from bertology_utils.lab import Lab
from bertology_utils.links.measure import (
    LINK_TYPES,
    TokenLinkAttention,
    borrow,
    find_links,
    joined_scores,
    link_tests,
    passes_all,
)
from bertology_utils.statistics import many_test
from bertology_utils.verdicts import WEIGHT

TASKS = "mrpc,stsb,sst2,rte"


def maps_of(model, made):
    """Every input's maps, (layers, heads, tokens, tokens), in the order of the data."""
    found = {}
    for batch in made:
        of_layers = torch.stack(
            attention_maps(model, batch), dim=1
        )  # (examples, layers, heads, tokens, tokens)
        for row, index in enumerate(batch.index):
            length = int(batch.mask[row].sum())
            found[index] = of_layers[row, :, :, :length, :length].double()
    return [found[index] for index in sorted(found)]


def mean_of_others(maps, layouts):
    """The mean of the other inputs' maps with the same layout; None where there is none."""
    groups = {}
    for index, layout in enumerate(layouts):
        groups.setdefault(layout, []).append(index)
    total = {
        layout: torch.stack([maps[index] for index in members]).sum(dim=0)
        for layout, members in groups.items()
    }
    sizes = {layout: len(members) for layout, members in groups.items()}
    return [
        (total[layout] - maps[index]) / (sizes[layout] - 1) if sizes[layout] > 1 else None
        for index, layout in enumerate(layouts)
    ]


def feed(measurement, maps):
    """The measurement's result on these maps, one input at a time."""
    for index, of_input in enumerate(maps):
        length = of_input.shape[-1]
        batch = Batch(
            {"attention_mask": torch.ones(1, length, dtype=torch.long)}, [index], torch.zeros(1)
        )
        getattr(measurement, "start", lambda _: None)(batch)
        for layer, of_layer in enumerate(of_input):
            measurement.update(layer, of_layer[None].float(), batch)
    return measurement.compute()


def token_links():
    """Heads beyond other inputs' places, per type of link."""
    lab = Lab("5_token_to_token", tasks=TASKS)
    parts = []
    for task in lab.tasks:
        inputs = lab.annotated_inputs(task)
        maps = mean_of_others(
            maps_of(lab.encoder(), lab.batches(task)),
            [(one.length, one.separators) for one in inputs],
        )
        kept = [index for index, of_input in enumerate(maps) if of_input is not None]
        known = borrow(
            [find_links(inputs[index], True) for index in kept], lab.resampling_seed(task)
        )
        parts.append(
            [
                feed(TokenLinkAttention(known, centred), [maps[index] for index in kept])
                for centred in (False, True)
            ]
        )
    plain, centred = (joined_scores(part[which] for part in parts) for which in (0, 1))
    result = {}
    for kind, name in enumerate(LINK_TYPES):
        at_zero = many_test(plain.above_places[:, kind], 0.0, 1)
        result[name] = {
            "links' examples": int(at_zero.n.max()),
            "heads": at_zero.means.size,
            "largest excess": round(float(np.nanmax(at_zero.means)), 4),
            "beyond 0, corrected p below 0.025": int((at_zero.above < 0.025).sum()),
            "beyond 0.02, also centred": int(
                passes_all(link_tests(plain, centred, name, 1)[:2]).sum()
            ),
        }
    return result


def frame_links_alone():
    """The same for predicates and their core frame elements, over other sentences."""
    lab = Lab("2_framenet_heads")
    kept = frame_links.extract(release.load_release(lab.settings.framenet), frame_links.PAPER)[0]
    placed, inputs, _ = measure.place(kept, lab.tokenizer)
    maps = mean_of_others(
        maps_of(lab.encoder(), batches.make_batches(inputs, lab.tokenizer)),
        [one.length for one in placed],
    )
    able = [index for index, of_input in enumerate(maps) if of_input is not None]
    measurement = measure.FrameLinkAttention(
        [placed[at] for at in able], "predicate to element", elsewhere="borrowed", seed=1
    )
    excess = feed(measurement, [maps[at] for at in able]).excess
    tests = {least: many_test(excess, least, 1) for least in (0.0, WEIGHT)}
    return {
        "sentences": len(excess),
        "heads": tests[0.0].means.size,
        "largest excess": round(float(tests[0.0].means.max()), 4),
        "beyond 0, corrected p below 0.025": int((tests[0.0].above < 0.025).sum()),
        "beyond 0.02": int((tests[WEIGHT].above < 0.025).sum()),
    }


if __name__ == "__main__":
    found = {"§4.2": frame_links_alone(), "§4.5": token_links()}
    Path(__file__).with_suffix(".json").write_text(
        json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    )
    print(json.dumps(found, indent=1, ensure_ascii=False))
