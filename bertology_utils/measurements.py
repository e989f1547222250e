"""All measurements, in the order of the pages: what a model does, as arrays with named axes.

Each is a function of a study, a task, a run and a slice of the held-out rows, and returns one value
per example, not a mean. It is called without the slice, ``drift(study, task, run)``, and is then
what :mod:`bertology_utils.store` has on file, or measures now. Layers and heads are counted from 1
on axes. Estimates, tests and figures are computed on the pages.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from scipy.special import log_softmax, softmax
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from . import sinks, trees
from .attention import ATTENTIONS, Measure, attention_maps, compare_maps, observe
from .batches import Batch, batches_of, in_order, make_batches, prepare, received, tokenize
from .common import one_of
from .dependencies import points_at, word_maps
from .disabling import (
    Cut,
    all_heads,
    disable_heads,
    importance,
    normalise_layers,
    removal_order,
    replacement,
)
from .features import (
    ALL_TYPES,
    DESTINATIONS,
    destinations,
    largest,
    marks,
    match,
    received_by_token,
    to_neighbours,
    twin_words,
    types_of,
)
from .framenet import grammar
from .glue import get_task, sample
from .hooks import attention_hooks, layers_of, shape_of
from .links import (
    BEYOND,
    DIRECTIONS,
    LINK_TYPES,
    borrow,
    find_links,
    link_cells,
    link_counts,
    link_weights,
    means_over_links,
    place_frames,
    popularity,
    strongest_cells,
)
from .models import classifier_inputs, outputs_of, predict_logits
from .patterns import PATTERNS, SHORTEST, Classifier, load_network, load_regression, name_patterns
from .store import WHOLE, Measurement, measured
from .sweeps import sweep
from .words import LONGEST, TOKEN_TYPES, token_types

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from .study import Study


def axes(layers: int, heads: int) -> dict[str, range]:
    """Coordinates of the axes ``layer`` and ``head``, counted from 1."""
    return {"layer": range(1, layers + 1), "head": range(1, heads + 1)}


def judged(
    outputs: np.ndarray, labels: np.ndarray, *names: str, of: str = ""
) -> dict[str, tuple[Any, np.ndarray]]:
    """Whether each answer is right, and its loss, as variables of a Dataset; and the gold labels.

    Args:
        outputs: of a classifier, shape (…, examples, labels); of a regression (…, examples, 1).
        labels: gold, shape (examples,).
        names: of the axes before the examples.
        of: ends the variables' names, such as "_without".

    Returns:
        "label"; "right" (bool), or of a regression "answer", the answer itself; and "loss", of a
        regression the squared error.
    """
    if outputs.shape[-1] == 1:
        each = {"answer": outputs[..., 0], "loss": (outputs[..., 0] - labels) ** 2}
    else:
        log_p = log_softmax(outputs, axis=-1)[..., np.arange(len(labels)), labels]
        each = {"right": outputs.argmax(axis=-1) == labels, "loss": -log_p}
    variables = {f"{kind}{of}": ((*names, "example"), one) for kind, one in each.items()}
    return {"label": ("example", labels)} | variables


BEFORE, AFTER, RANDOM = "pre-trained", "fine-tuned", "random weights"


def states(study: Study, task: str, run: int, *names: str) -> dict[str, PreTrainedModel]:
    """A run's model in these states, by default before and after fine-tuning."""
    made: dict[str, Callable[[], PreTrainedModel]] = {
        BEFORE: study.encoder,
        AFTER: lambda: study.classifier(task, run),
        RANDOM: lambda: study.encoder("random"),
    }
    return {name: made[name]() for name in names or (BEFORE, AFTER)}


GROUPS = 40  # of rows, at most: a value of every row, type and head would take too much room


def in_groups(values: xr.Dataset) -> Any:
    """Rows in groups of neighbours, which are examples where single rows would be too many; ``mean()`` or ``sum()`` follows."""
    size = max(1, -(-values.sizes["example"] // GROUPS))
    return values.coarsen(example=size, boundary="pad")


# 1 · Attention patterns (§4.1)


@measured(rows="compared_rows", passes=6)
def named_maps(study: Study, task: str, run: int, rows: slice) -> xr.Dataset:
    """Which pattern each head's map shows, as two classifiers name it (§4.1): places in the axis ``pattern``.

    The classifiers are logistic regression on eleven statistics of a map, and a network of eight
    convolutional layers. Inputs of fewer than four tokens are left out.
    """
    batches, separator = study.batches(task, rows), study.tokenizer.sep_token_id
    named: dict[str, Classifier] = {"regression": load_regression(), "network": load_network()}
    models = states(study, task, run, RANDOM, BEFORE, AFTER)
    measures = {by: name_patterns(one, separator) for by, one in named.items()}
    seen = [observe(model, batches, measures) for model in models.values()]
    # Of states and classifiers, each (examples, layers, heads).
    places = [[[at for at in one[by] if at.size] for by in named] for one in seen]
    if not places[0][0]:
        raise ValueError(f"no input has {SHORTEST} wordpieces or more; no map shows a pattern")
    names = {"state": list(models), "classifier": list(named), "pattern": list(PATTERNS)}
    values = np.array(places, dtype=np.uint8)
    axis = ("state", "classifier", "example", "layer", "head")
    return xr.Dataset({"named": (axis, values)}, names | axes(*values.shape[3:]))


# 2 · FrameNet heads (§4.2)

SETS = 500  # of sentences, at most: a value of every sentence and head would take too much room


@measured(rows="frames", passes=3, block=WHOLE, of="framenet")
def frame_links(
    study: Study, rows: slice, rules: str = "paper", start: str = "pre-trained"
) -> xr.Dataset:
    """How much heads attend along links of predicates with core elements, and how much more than elsewhere (§4.2).

    An example is a set of ``number`` sentences with elements of one ``function`` in grammar and
    predicates of one part of speech, or else of "several"; ``weight`` is the mean over them of
    :func:`bertology_utils.links.link_weights`, and ``even`` that of 1/L.
    """
    placed, inputs = place_frames(study.frames(rows, rules), study.tokenizer)
    model, batches = study.encoder(start), make_batches(inputs, study.tokenizer)
    pairing = "zip" if rules == "official" else "product"  # as the published code has it
    each = link_weights(model, placed, batches, pairing, study.settings.seed)
    weight = np.ma.masked_invalid(each)  # (directions, beyond, sentences, layers, heads)
    even = np.array([1 / one.length for one in placed])
    function = np.array([grammar(one.sentence) for one in placed])
    predicate = np.array([one.sentence.exemplar.part_of_speech for one in placed])
    sets = np.array_split(np.lexsort([predicate, function]), min(SETS, len(placed)))
    means = np.stack([weight[:, :, one].mean(axis=2).filled(np.nan) for one in sets], axis=2)
    values = {
        "weight": (("direction", "beyond", "example", "layer", "head"), means.round(3)),
        "even": ("example", [even[one].mean() for one in sets]),
        "number": ("example", [len(one) for one in sets]),
        "function": ("example", [in_common(function[one]) for one in sets]),
        "predicate": ("example", [in_common(predicate[one]) for one in sets]),
    }
    names = {"direction": list(DIRECTIONS), "beyond": list(BEYOND)}
    return xr.Dataset(values, names | axes(*means.shape[3:]))


def in_common(kinds: np.ndarray) -> str:
    """What all of them are, or else "several"."""
    return str(kinds[0]) if len(set(kinds)) == 1 else "several"


PANELS = ("framenet", "[SEP]", "[CLS]")


def published_panel(name: str) -> np.ndarray:
    """A heatmap of bert-base-uncased that the paper's notebook shows as a picture, read off by eye to about 0.02; shape (12, 12).

    The notebook is in the repository text-machine-lab/dark-secrets-of-BERT.

    Args:
        name: "framenet": mean of the largest weight along a link over 473 sentences (§4.2, Fig 3);
            "[SEP]" or "[CLS]": attention to these tokens on 1000 dev pairs of QQP (§4.4).

    Raises:
        ValueError: there is no such panel.
    """
    one_of("panel", name, PANELS)
    rows = pd.read_csv(Path(__file__).with_name("published_heatmaps.csv"))  # by layer, then head
    return rows.value[rows.panel == name].to_numpy().reshape(12, 12)


# 3 · Fine-tuning drift (§4.3)


@measured(rows="rows", passes=4)
def drift(study: Study, task: str, run: int, rows: slice, start: str = "pre-trained") -> xr.Dataset:
    """How far attention maps are apart before and after fine-tuning, in two fine-tuning runs, and with queries and keys reset (§4.3).

    Of two maps ``distance`` is 1 minus the cosine of all their weights, and ``moved`` the share of a
    token's attention that lies elsewhere, mean over tokens; both are means over the heads of a layer,
    and ``distance_of_head`` is that of each head before and after. ``start`` "random": of a
    fine-tuning that began with random weights, before and after.
    """
    before, tuned = study.before_fine_tuning(task, run, start), study.classifier(task, run, start)
    pairs = {"before": (before, tuned)}
    if start == "pre-trained":
        partly = study.classifier(task, run)
        copy_weights(before, partly, weight_groups(partly)["queries and keys"])
        pairs["before, queries and keys reset"] = (before, partly)
        if len(study.runs(task)) > 1:
            another = study.classifier(task, study.another_run(task, run))
            pairs["another run"] = (another, tuned)
    distance, moved = compare_maps([*pairs.values()], study.batches(task, rows))
    values = {
        "distance": (("comparison", "example", "layer"), distance.mean(axis=3)),
        "moved": (("comparison", "example", "layer"), moved.mean(axis=3)),
        "distance_of_head": (("example", "layer", "head"), distance[0]),
    }
    return xr.Dataset(values, axes(*distance.shape[2:]) | {"comparison": list(pairs)})


@measured(rows="compared_rows", passes=lambda layers, heads: 2 * layers + 14)
def reset(study: Study, task: str, run: int, rows: slice) -> xr.Dataset:
    """What a classifier answers with groups of its weights, or with its attention maps, as before fine-tuning (§4.3).

    Groups of weights: see :func:`weight_groups`. In a group of "maps" some layers, or all, use the
    attention maps that the encoder before fine-tuning has of the same input.
    """
    batches, labels = study.batches(task, rows), study.labels(task, rows)
    model, before = study.classifier(task, run), study.before_fine_tuning(task)
    tuned, outputs = copy.deepcopy(model), {}
    for group, names in weight_groups(model).items():
        copy_weights(before, model, names)
        outputs[group] = predict_logits(model, batches)
        copy_weights(tuned, model, names)
    outputs |= with_maps_of(before, model, batches)
    stacked = np.stack([*outputs.values()])  # (groups, examples, labels)
    return xr.Dataset(judged(stacked, labels, "group"), {"group": list(outputs)})


def copy_weights(source: PreTrainedModel, target: PreTrainedModel, names: list[str]) -> None:
    """Give a model some weights of another one."""
    weights = source.state_dict()
    target.load_state_dict({name: weights[name] for name in names}, strict=False)


def layer_pairs(layers: int, apart: int = 1) -> dict[str, Sequence[int]]:
    """Pairs of neighbouring layers, counted from 0, by a name that counts from 1 ("1 to 2"): each, or every second one."""
    firsts = range(layers % apart, layers - 1, apart)
    return {f"{at + 1} to {at + 2}": range(at, at + 2) for at in firsts}


def layer_spans(layers: int) -> dict[str, Sequence[int]]:
    """Layers that :func:`reset` resets together, counted from 0, by a name that counts from 1.

    "none"; each pair of neighbouring layers ("1 to 2"); all layers but every second pair ("all but
    11 to 12"); thirds of the layers ("1 to 4"); "all layers".
    """
    spans: dict[str, Sequence[int]] = {"none": [], **layer_pairs(layers)}
    for name, pair in layer_pairs(layers, 2).items():
        spans[f"all but {name}"] = [at for at in range(layers) if at not in pair]
    for third in np.array_split(range(layers), 3):
        if len(third) > 2:
            spans[f"{third[0] + 1} to {third[-1] + 1}"] = third.tolist()
    return spans | {"all layers": range(layers)}


def weight_groups(model: PreTrainedModel) -> dict[str, list[str]]:
    """Names of a model's weights by group, for :func:`reset`; raises ValueError for a model that is not laid out as BERT.

    Groups are those of :func:`layer_spans`; of all layers the queries and keys, all else, the values
    and outputs, and the feed-forward parts; and the embeddings.
    """
    names, layers = list(model.state_dict()), range(len(layers_of(model)))
    of_layers = [[one for one in names if f"encoder.layer.{at}." in one] for at in layers]
    groups = {
        name: [one for at in span for one in of_layers[at]]
        for name, span in layer_spans(len(layers)).items()
    }
    parts = {
        "queries and keys": r"attention\.self\.(query|key)\.",
        "all but queries and keys": r"attention\.(self\.value|output)\.|\d\.(intermediate|output)\.",
        "values and outputs": r"attention\.(self\.value|output\.dense)\.",
        "feed-forward": r"\d\.(intermediate|output)\.dense\.",
    }
    for name, pattern in parts.items():
        groups[name] = [one for one in groups["all layers"] if re.search(pattern, one)]
    return groups | {"embeddings": [one for one in names if ".embeddings." in one]}


def with_maps_of(
    before: PreTrainedModel, model: PreTrainedModel, batches: list[Batch]
) -> dict[str, np.ndarray]:
    """Outputs of a classifier that uses another model's attention maps in some layers (activation patching), by group."""
    layers = model.config.num_hidden_layers
    groups = {f"maps {name}": pair for name, pair in layer_pairs(layers, 2).items()}
    groups["maps"] = range(layers)
    outputs: dict[str, list[torch.Tensor]] = {name: [] for name in groups}
    for batch in prepare(model, batches)[1]:
        maps = attention_maps(before, batch)
        for name, chosen in groups.items():

            def patch(layer: int, own: torch.Tensor, _: Any) -> torch.Tensor:
                return maps[layer] if layer in chosen else own

            with torch.inference_mode(), attention_hooks(model, edit_maps=patch):
                outputs[name].append(outputs_of(model, batch).double())
    return {name: in_order(several, batches) for name, several in outputs.items()}


RANDOM_LAYERS = 1000


# In one block, since layers are trained and drawn once.
@measured(rows="rows", passes=12, block=WHOLE)
def answers(
    study: Study, task: str, run: int, rows: slice, start: str = "pre-trained"
) -> xr.Dataset:
    """What a fine-tuned classifier answers, and one of which only the classification layer was trained (Table 1).

    The latter is a logistic regression, or ridge regression, on what the classification layer reads
    before any fine-tuning. ``score_of_random`` has the scores of 1,000 random layers in its place, in
    points. ``start`` "random": a fine-tuning that began with random weights, alone.
    """
    batches, labels = study.batches(task, rows), study.labels(task, rows)
    outputs = {"fine-tuned": predict_logits(study.classifier(task, run, start), batches)}
    values: dict[str, tuple[Any, np.ndarray]] = {}
    if start == "pre-trained":
        model = study.before_fine_tuning(task, run)
        vectors = classifier_inputs(model, batches)  # (examples, features)
        of_training = classifier_inputs(model, study.batches(task, "train"))
        layer = trained_layer(of_training, study.labels(task, "train"))
        outputs["classification layer only"] = layer(vectors)
        rng = np.random.default_rng(study.settings.seed)
        drawn = rng.normal(size=(RANDOM_LAYERS, vectors.shape[1], model.config.num_labels))
        values["score_of_random"] = ("classifier", points(vectors @ drawn, labels))
    stacked = np.stack([*outputs.values()])  # (trained, examples, labels)
    return xr.Dataset(values | judged(stacked, labels, "trained"), {"trained": list(outputs)})


def trained_layer(vectors: np.ndarray, labels: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A linear layer trained on frozen vectors: a function of others that gives outputs, (examples, labels).

    Logistic regression, or of STS-B ridge regression, on standardised numbers; cross-validation
    chooses how strongly it is regularised.
    """
    if labels.dtype.kind == "f":
        ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(0, 5, 11)))
        ridge.fit(vectors, labels)
        return lambda others: ridge.predict(others)[:, None]
    strengths = {"logisticregression__C": np.logspace(-5, 0, 6)}
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    search = GridSearchCV(logistic, strengths, scoring="neg_log_loss").fit(vectors, labels)
    return search.predict_log_proba


def points(outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Scores in points of classifiers, outputs of shape (classifiers, examples, labels): accuracy, or of a regression r."""
    if outputs.shape[-1] == 1:
        return 100 * np.array([np.corrcoef(one, labels)[0, 1] for one in outputs[..., 0]])
    return 100 * (outputs.argmax(axis=-1) == labels).mean(axis=1)


# 4 · Feature attention (§4.4)

THRESHOLDS = (1.5, 2.0, 3.0, 5.0, 10.0)  # from which on a column is a stripe, times 1/L
TURNED = ("nouns", "objects", "negation")  # to which the paper saw heads turn


@measured(rows="rows", passes=5, block=WHOLE, annotated=True)
def features(study: Study, task: str, run: int, rows: slice) -> xr.Dataset:
    """What types of token receive, pre-trained, fine-tuned and with random weights, by weight and by norm (§4.4).

    A token receives the mean of its column in a map. One pass of each model gives all of it; see
    :func:`weights_on_types` and :func:`count_stripes`. ``by_layer`` has the shares of the
    destinations of a layer's attention, which sum to 1, means over heads. An example is the mean of
    a group of rows, 40 groups at most. All rows are one block, since words are matched by how
    frequent they are in all.
    """
    words, batches = study.words(task, rows.start, rows.stop), study.batches(task, rows)
    models = states(study, task, run, BEFORE, AFTER, RANDOM)
    measures: dict[str, Measure] = dict.fromkeys(ATTENTIONS, received_by_token)
    measures["destinations"] = destinations([marks(one) for one in words])
    seen = [observe(model, batches, measures, by_norm={"norm"}) for model in models.values()]
    columns = [  # of each row, (states, ways, layers, heads, tokens)
        np.array([[one[way][at] for way in ATTENTIONS] for one in seen]) for at in range(len(words))
    ]
    types, matched = [types_of(one) for one in words], match(words, study.settings.seed)
    values = weights_on_types(columns, types, matched) | count_stripes(columns, types)
    shares = np.array([np.mean(one["destinations"], axis=2) for one in seen])
    values["by_layer"] = (("state", "example", "layer", "destination"), shares)
    names: dict[str, Any] = {
        "state": list(models),
        "way": list(ATTENTIONS),
        "threshold": list(THRESHOLDS),
        "type": list(ALL_TYPES),
        "turned": list(TURNED),
        "destination": list(DESTINATIONS),
    }
    whole = xr.Dataset(values, names | axes(*columns[0].shape[2:4]))
    return in_groups(whole.astype(float)).mean()


def weights_on_types(
    columns: list[np.ndarray], types: list[np.ndarray], matched: list[np.ndarray]
) -> dict[str, Any]:
    """What each head gives the most attended token of each type, for :func:`features`.

    ``mean`` and ``spread`` (standard deviation) over the ``count`` of rows that have the type. Of
    each row, and by weight: ``rise``, what fine-tuning adds for a type to which the paper saw
    heads turn; ``above``, how much more it adds for these words than for their matched words; and
    ``largest_sep``, the share of the one [SEP] that receives most, mean over a layer's heads.

    Args:
        columns: what tokens receive in each row, shape (states, ways, layers, heads, tokens).
        types: of each row, from :func:`bertology_utils.features.types_of`.
        matched: of each row, from :func:`bertology_utils.features.match`.
    """
    every = np.moveaxis(largest(columns, types), (0, 1), (2, 3))
    weight = xr.Variable(("state", "way", "example", "type", "layer", "head"), every)
    before, after, _ = by_weight = every[:, 0]  # each (examples, types, layers, heads)
    turned = [ALL_TYPES.index(kind) for kind in TURNED]
    # The same of paired words of each type of word, then of the words that they are matched with.
    paired = np.moveaxis(largest([one[:, 0] for one in columns], matched), 2, 0)
    own, others = np.split(paired[1] - paired[0], 2, axis=1)
    axis, sep = ("example", "turned", "layer", "head"), ALL_TYPES.index("[SEP]")
    return {
        "mean": weight.mean("example"),
        "spread": weight.std("example", ddof=1),
        "count": ("type", np.array([one.any(axis=1) for one in types]).sum(axis=0)),
        "rise": (axis, (after - before)[:, turned]),
        "above": (axis, (own - others)[:, turned]),
        "largest_sep": (("state", "example", "layer"), by_weight[:, :, sep].mean(axis=3)),
    }


def count_stripes(columns: list[np.ndarray], types: list[np.ndarray]) -> dict[str, Any]:
    """How many columns of all heads' maps are stripes, which receive more than a threshold times 1/L, for :func:`features`.

    ``stripes``: on tokens of each type; of those of the fine-tuned model, ``kept``: those that are stripes of
    the same pre-trained head as well, and ``kept_by_others``: of the layer's other pre-trained
    heads, on average. ``tokens``: of each type in the input.
    """
    counts: dict[str, list[np.ndarray]] = {"stripes": [], "kept": [], "kept_by_others": []}
    for one, masks in zip(columns, types, strict=True):
        even = np.reshape(THRESHOLDS, (-1, 1, 1, 1)) / one.shape[-1]
        every = one[..., None, :, :, :] > even  # (states, ways, thresholds, layers, heads, tokens)
        before, after, _ = every
        others = (before.sum(axis=3, keepdims=True) - before) / max(1, before.shape[3] - 1)
        counts["stripes"].append(every.sum(axis=(3, 4)) @ masks.T)
        counts["kept"].append((before & after).sum(axis=(2, 3)) @ masks.T)
        counts["kept_by_others"].append((others * after).sum(axis=(2, 3)) @ masks.T)
    axis = ("way", "threshold", "type")
    values: dict[str, Any] = {name: (("example", *axis), one) for name, one in counts.items()}
    values["stripes"] = (("example", "state", *axis), counts["stripes"])
    return values | {"tokens": (("example", "type"), [masks.sum(axis=1) for masks in types])}


# 5 · Token-to-token attention (§4.5)

ABOVE = ("nothing", "places", "places, popularity off", "rivals")


@measured(rows="rows", passes=4, block=WHOLE, annotated=True)
def links(study: Study, task: str, run: int, rows: slice) -> xr.Dataset:
    """How much words attend to words that grammar links with them, and how much more than to others (§4.5).

    Before and after fine-tuning; an example is a group of rows here, 40 at most. ``weight`` is the
    largest weight from a link's first word to its second; above its mean at places where other rows
    have such links; the same after what each token receives on average is taken off; and above its
    mean on rivals (:func:`bertology_utils.links.find_links`). It is the mean over a row's
    links, then over the rows of a group that have any; NaN where none has. ``number`` counts these
    links; ``adjacent`` those of neighbouring words, and ``forwards`` those whose second word comes
    later. ``neighbour`` is the average token's weight on the token before and on the token after.
    """
    inputs, batches = study.words(task, rows.start, rows.stop), study.batches(task, rows)
    each = borrow([find_links(one) for one in inputs], study.settings.seed)
    weights, neighbours, models, cells = [], [], states(study, task, run), link_cells(each)
    measures = {"plain": strongest_cells(cells), "off": strongest_cells(cells, popularity)}
    for model in models.values():
        one = observe(model, batches, measures | {"neighbours": to_neighbours})
        plain, off = (means_over_links(each, one[name]) for name in measures)
        weights.append([plain["nothing"], plain["places"], off["places"], plain["rivals"]])
        neighbours.append(np.stack(one["neighbours"])[..., [0, 2]])
    number = [link_counts(each, what) for what in ("", "places", "places", "rivals")]
    values = {
        "weight": (("state", "above", "example", "kind", "layer", "head"), np.array(weights)),
        "neighbour": (("state", "example", "layer", "head", "side"), np.array(neighbours)),
        "number": (("above", "kind", "example"), number),
        "adjacent": (("kind", "example"), link_counts(each, "adjacent")),
        "forwards": (("kind", "example"), link_counts(each, "forwards")),
    }
    names = {"state": list(models), "above": list(ABOVE), "kind": list(LINK_TYPES)}
    coordinates = axes(*neighbours[0].shape[1:3]) | names | {"side": ["before", "after"]}
    grouped = in_groups(xr.Dataset(values, coordinates))
    totals = grouped.sum()[["number", "adjacent", "forwards"]].astype(int)
    return grouped.mean().assign(totals)


@measured(rows="rows", passes=2, annotated=True)
def from_cls(study: Study, task: str, run: int, rows: slice) -> xr.Dataset:
    """How much [CLS] attends to each type of token in the last layer, before and after fine-tuning (§4.5, Figure 7).

    Means over the heads of the layer: ``largest`` of the largest weight on a token of the type, as
    in the paper, and ``together`` of the sum over all of them; NaN where a row has none. ``tokens``
    counts them, and ``length`` all tokens of a row. A token can be of several types.
    """
    types = [token_types(one) for one in study.words(task, rows.start, rows.stop)]
    models = states(study, task, run)
    values = np.full((2, len(models), len(TOKEN_TYPES), len(types)), np.nan)
    batches = study.batches(task, rows)
    for state, model in enumerate(models.values()):
        of_cls = observe(model, batches, {"": lambda maps, _: maps[:, :, 0]})[""]
        for at, by_layer in enumerate(of_cls):  # (layers, heads, tokens)
            for kind in np.flatnonzero(types[at].any(axis=1)):
                chosen = by_layer[-1][:, np.flatnonzero(types[at][kind])]
                values[:, state, kind, at] = chosen.max(1).mean(), chosen.sum(1).mean()
    axis, (largest, together) = ("state", "type", "example"), values
    found = {
        "largest": (axis, largest),
        "together": (axis, together),
        "tokens": (axis[1:], np.stack([one.sum(axis=1) for one in types], axis=1)),
        "length": ("example", np.array([one.shape[1] for one in types])),
    }
    return xr.Dataset(found, {"state": list(models), "type": list(TOKEN_TYPES)})


# 6 · Disabling heads (§4.6, §5)


@measured(
    rows={"uniform": "disabled_rows", "zero": "compared_rows", "mean": "compared_rows"},
    passes=lambda layers, heads: (layers - 0.2) / 2 * (heads + 1),
)
def without_each_head(
    study: Study, task: str, run: int, rows: slice, ablation: str = "uniform"
) -> xr.Dataset:
    """What a classifier answers, whole, without each head, and without all heads of each layer (§4.6).

    A disabled head gives all tokens the weight 1/L ("uniform"); or its output is zero ("zero"), or
    its mean over all tokens of the first 100 rows ("mean").
    """
    batches, labels = study.batches(task, rows), study.labels(task, rows)
    model = study.classifier(task, run)
    out = sweep(model, batches, ablation, study.batches(task, 100) if ablation == "mean" else None)
    values = judged(out.baseline, labels)
    values |= judged(out.heads, labels, "layer", "head", of="_without")
    values |= judged(out.layers, labels, "layer", of="_without_layer")
    return xr.Dataset(values, axes(*out.heads.shape[:2]))


# Of 144 heads; of other numbers the same shares.
DISABLED_AT_ONCE = (1, 2, 4, 8, 12, 18, 27, 40, 60, 80, 100, 120, 144)


@measured(rows="several_rows", passes=3 * len(DISABLED_AT_ONCE))
def without_several(study: Study, task: str, run: int, rows: slice) -> xr.Dataset:
    """What a classifier answers with ever more heads disabled at once by 1/L, the most dispensable ones first.

    In the order of another run (of one run alone, in its own), by its gain by loss on the rows
    behind those that are answered here; and in random orders.
    """
    batches, labels = study.batches(task, rows), study.labels(task, rows)
    model, alone = study.classifier(task, run), len(study.runs(task)) == 1
    heads, rng = all_heads(model), np.random.default_rng([study.settings.seed, run])
    orders = {
        "its own, on other rows" if alone else "another run's": dispensable(study, task, run),
        "random 1": rng.permutation(len(heads)),
        "random 2": rng.permutation(len(heads)),
    }
    shares = [count * len(heads) / DISABLED_AT_ONCE[-1] for count in DISABLED_AT_ONCE]
    counts = sorted({max(1, round(share)) for share in shares})
    outputs = []
    for order, count in product(orders.values(), counts):
        with disable_heads(model, [heads[at] for at in order[:count]]):
            outputs.append(predict_logits(model, batches))
    by_order = np.reshape(outputs, (len(orders), len(counts), *np.shape(outputs[0])))
    values = judged(by_order, labels, "order", "count")
    return xr.Dataset(values, {"order": list(orders), "count": counts})


def dispensable(study: Study, task: str, run: int) -> np.ndarray:
    """Numbers of all heads, those first that another run does best without, for :func:`without_several`."""
    other = without_each_head(study, task, study.another_run(task, run))
    first = study.settings.several_rows
    if first >= other.sizes["example"]:
        raise ValueError(
            f"{task}: heads are disabled one by one on {other.sizes['example']} rows, and the order of several is chosen on"
            f" rows behind the first {first}; ask for more disabled_rows, or for fewer several_rows"
        )
    unseen = other.isel(example=slice(first, None))
    gain = (unseen.loss.astype(float) - unseen.loss_without).mean("example")
    return np.argsort(-gain.values.ravel(), kind="stable")


@measured(rows="rows", passes=1, pairs=True)
def shared_words(study: Study, task: str, run: int, rows: slice) -> xr.Dataset:
    """How much more a word attends to the same word in the other sentence than to the other words there (§5).

    In weight, mean over an input's words that have such a twin; an input without any has NaN.
    """
    model, twins = study.classifier(task, run), twin_words(study.tokenizer)
    excess = np.stack(observe(model, study.batches(task, rows), {"twins": twins})["twins"])
    return xr.Dataset({"excess": (("example", "layer", "head"), excess)}, axes(*excess.shape[1:]))


# 7 · Value norms (Kobayashi et al., 2020)


@measured(rows="rows", passes=8, block=WHOLE)
def carried(study: Study, task: str, run: int, rows: slice) -> xr.Dataset:
    """What heads carry from [CLS], [SEP], punctuation and words, by weight, by norm and by projection.

    Shares and lengths of vectors of each example are means over a layer's heads; those of each head,
    and the length of its output, are means over examples.
    """
    batches, tokenizer = study.batches(task, rows), study.tokenizer
    types = [sinks.tokens_by_type(one, tokenizer).sum(dim=2) for one in batches]
    models, seed = states(study, task, run), study.settings.seed
    each = [sinks.carried(one, batches, tokenizer, seed) for one in models.values()]
    share, length, output = (np.stack([one[name] for one in each]) for name in each[0])
    values = {
        "share": (("state", "example", "layer", "count", "type"), share.mean(axis=3)),
        "share_of_head": (("state", "layer", "head", "count", "type"), share.mean(axis=1)),
        "length": (("state", "example", "layer", "type"), length.mean(axis=3)),
        "output": (("state", "layer", "head"), output.mean(axis=1)),
        "tokens": (("example", "type"), in_order(types, batches)),
    }
    names = {"state": list(models), "count": list(sinks.COUNTED_BY), "type": list(sinks.TYPES)}
    return xr.Dataset(values, axes(*output.shape[2:]) | names)


@measured(rows="compared_rows", passes=22)
def cuts(study: Study, task: str, run: int, rows: slice) -> xr.Dataset:
    """What a classifier answers with attention to a sink, or to words, cut from all heads; and how far the answer moves.

    A sink is [CLS], [SEP], or both together. The distance is half the sum of the changes of the labels' probabilities, from 0 to 1; of a
    regression the change of the score. The shares of all weights and of all norms that are cut are
    means over layers, heads and tokens.
    """
    model, batches = study.classifier(task, run), study.batches(task, rows)
    cut = sinks.cut_attention(model, batches, study.tokenizer)
    values = after_cuts(cut, study.labels(task, rows), ("sink", "cut"))
    return xr.Dataset(values, {"sink": list(sinks.SINKS), "cut": list(sinks.CUTS)})


@measured(rows="compared_rows", passes=9)
def cut_words(study: Study, task: str, run: int, rows: slice) -> xr.Dataset:
    """What a classifier answers with attention to random whole words dropped until as much norm is gone as [CLS] and [SEP] have.

    The words go in one random order for all heads, or in one of each head's own, in several draws.
    What else it keeps is that of :func:`cuts`.
    """
    model, batches = study.classifier(task, run), study.batches(task, rows)
    cut = sinks.cut_words(model, batches, study.tokenizer, study.settings.seed)
    values = after_cuts(cut, study.labels(task, rows), ("order", "draw"))
    return xr.Dataset(values, {"order": list(sinks.WORD_ORDERS), "draw": range(1, sinks.DRAWS + 1)})


def after_cuts(
    cut: dict[str, np.ndarray], labels: np.ndarray, names: tuple[str, str]
) -> dict[str, tuple[Any, np.ndarray]]:
    """Answers before and after cuts with two axes, how far they move, and the shares that are cut; for :func:`cuts`."""
    whole, after = cut["whole"], np.moveaxis(cut["outputs"], 0, 2)  # (…, examples, labels)
    moved = abs(after - whole)
    if whole.shape[-1] > 1:
        moved = abs(softmax(after, axis=-1) - softmax(whole, axis=-1)) / 2
    on = (*names, "example")
    values = judged(whole, labels) | judged(after, labels, *names, of="_cut")
    values |= {"moved": (on, moved.sum(axis=-1))}
    return values | {name: (on, np.moveaxis(cut[name], 0, 2)) for name in ("weight", "norm")}


# 8 · The pre-trained encoder


@measured(rows="sentences", passes=1, version=2, of="treebank", axis="word")
def pointing(study: Study, rows: slice, start: str = "pre-trained") -> xr.Dataset:
    """Which other word of its sentence each word attends to most, by head, and which is its governor: offsets in words.

    The governor's offset is 0 where there is none to find: of a root, of a word that shares a
    wordpiece with its governor, in sentences that are left out. ``place`` counts the words of a
    sentence, those that share a wordpiece as one, and ``sentence`` the treebank's sentences.
    """
    model, parts = study.encoder(start), []
    for number, one in enumerate(study.sentences(rows), start=rows.start):
        (sentence,) = one.sentences
        place = np.array(sentence.written)
        head = np.array([word.head for word in sentence.words])
        attended = np.zeros((*shape_of(model), len(place)), np.int8)
        governor = np.zeros(len(place), np.int8)
        if not one.unusable:
            batch = Batch({"input_ids": torch.tensor([one.ids])}, [0])
            ((_, maps),) = word_maps(model, [batch], [sentence.written_pieces])
            attended[:] = points_at(maps)[..., place] - place
            governor[:] = np.where(head < 0, 0, place[head] - place)
        values = {
            "attended": (("layer", "head", "word"), attended),
            "governor": ("word", governor),
            "relation": ("word", [word.deprel for word in sentence.words]),
            "upos": ("word", [word.upos for word in sentence.words]),
            "place": ("word", place.astype(np.int16)),
            "sentence": ("word", np.full(len(place), number, np.int16)),
        }
        parts.append(xr.Dataset(values, axes(*attended.shape[:2])))
    return xr.concat(parts, "word", data_vars="minimal")


SPECIAL = ("[CLS]", "[SEP]", "largest [SEP]")  # a pair has two of [SEP], or more


@measured(rows="rows", passes=3, of="treebank")
def special_tokens(study: Study, rows: slice) -> xr.Dataset:
    """How much of its attention the average token gives to [CLS] and to [SEP], by head: in sentences, and in pairs of them.

    A pair is a sentence of the treebank and the one that comes next. Of several [SEP] there is the sum
    and the largest. ``even`` is what each would be if a token gave all tokens the same.
    """
    model, tokenizer, texts = study.encoder(), study.tokenizer, study.texts(rows)
    pairs = [*zip(texts, texts[1:] + texts[:1], strict=True)]
    inputs: dict[str, Any] = {"one sentence": texts, "two sentences": pairs}

    def to_special(maps: torch.Tensor, batch: Batch) -> torch.Tensor:
        """What they get from each head, and from an even one: (examples, special tokens, heads + 1)."""
        even = batch.mask / batch.lengths[:, None]
        gets = torch.cat([received(maps, batch), even[:, None]], dim=1)
        cls, sep = (
            gets.masked_fill(batch.inputs["input_ids"][:, None] != token, 0)
            for token in (tokenizer.cls_token_id, tokenizer.sep_token_id)
        )
        return torch.stack([cls.sum(-1), sep.sum(-1), sep.amax(-1)], dim=1)

    batches = [batches_of(several, tokenizer, max_length=LONGEST) for several in inputs.values()]
    seen = [observe(model, one, {"": to_special})[""] for one in batches]
    # (inputs, special tokens, examples, layers, heads + 1)
    every = np.transpose(seen, (0, 3, 1, 2, 4))
    axis = ("input", "token", "example")
    weight, even = every[..., :-1], every[..., 0, -1]
    values = {"weight": ((*axis, "layer", "head"), weight), "even": (axis, even)}
    names = {"input": list(inputs), "token": list(SPECIAL)}
    return xr.Dataset(values, names | axes(*shape_of(model)))


# 10 · How much of it is needed?

STEPS = 6  # on the way to a classifier without heads; the third is without half of them
RANKED_ON = 256  # training rows by which heads are ranked
RANDOM_ORDERS = 3
FINE_TUNING = 60  # forward passes of a measured row that a fine-tuning takes as long as


def ranking_batches(study: Study, task: str) -> list[Batch]:
    """Training rows by which heads are ranked, the same in all runs."""
    rows = sample(study.train_rows(task), RANKED_ON, study.settings.seed)
    longest = study.settings.recipe.max_length
    inputs = tokenize(rows, get_task(task), study.tokenizer, longest)
    return make_batches(inputs, study.tokenizer)


@measured(rows="pruned_rows", passes=35, block=WHOLE)
def pruned(study: Study, task: str, run: int, rows: slice) -> xr.Dataset:
    """What a classifier answers as its heads are removed, a sixth of them at a time: they give zero (§5).

    ``importance`` is each head's in the scale of its layer, by gradients on 256 training rows, by which
    heads are ranked once; or those that are left are ranked anew at each step; or the order is
    random. ``head_at`` has the number of the head at each place of an order, from 0, layer by layer.
    ``right_bag`` is of :func:`bag_of_words`, trained on the rows of the fine-tuning.
    """
    batches, labels = study.batches(task, rows), study.labels(task, rows)
    model, ranking = study.classifier(task, run), ranking_batches(study, task)
    heads, zeros = all_heads(model), replacement(model, batches, "zero")
    rank = normalise_layers(importance(model, ranking)).astype(np.float16)  # as it is kept
    anew = removal_order(model, ranking, -(-len(heads) // STEPS))
    rng = np.random.default_rng([study.settings.seed, run])
    orders = {
        "ranked once": np.argsort(rank.ravel(), kind="stable"),
        "ranked anew": np.array([heads.index(head) for head in anew]),
    }
    orders |= {f"random {at}": rng.permutation(len(heads)) for at in range(1, RANDOM_ORDERS + 1)}
    counts = [round(len(heads) * step / STEPS) for step in range(STEPS + 1)]

    @cache
    def without(gone: frozenset[int]) -> np.ndarray:  # all orders begin and end alike
        with disable_heads(model, [heads[at] for at in sorted(gone)], zeros):
            return predict_logits(model, batches)

    outputs = [
        [without(frozenset(one[:count].tolist())) for count in counts] for one in orders.values()
    ]
    values = judged(np.array(outputs), labels, "order", "count")
    values |= judged(bag_of_words(study, task, rows), labels, of="_bag")
    values["importance"] = (("layer", "head"), rank)
    values["head_at"] = (("order", "place"), np.array([*orders.values()], np.int16))
    return xr.Dataset(values, axes(*shape_of(model)) | {"order": list(orders), "count": counts})


def bag_of_words(study: Study, task: str, rows: slice) -> np.ndarray:
    """Outputs of a logistic regression on how often each word occurs, which knows nothing of their order; (examples, labels).

    Of a pair of sentences on the words of both; of a regression by ridge regression.
    """

    def texts(part: slice | str) -> list[str]:
        given = study.rows(task, part)
        return [" ".join(row[field] for field in get_task(task).fields) for row in given]

    labels = study.labels(task, "train")
    regression = labels.dtype.kind == "f"
    last = Ridge() if regression else LogisticRegression(max_iter=1000)
    bag = make_pipeline(CountVectorizer(), last).fit(texts("train"), labels)
    return bag.predict(texts(rows))[:, None] if regression else bag.predict_log_proba(texts(rows))


def answers_of_cut(study: Study, task: str, run: int, rows: slice, cut: Cut) -> dict[str, Any]:
    """What the classifier of a run answers that is fine-tuned without heads or layers, and the gold labels."""
    model, labels = study.classifier(task, run, cut=cut), study.labels(task, rows)
    return judged(predict_logits(model, study.batches(task, rows)), labels)


@measured(rows="pruned_rows", passes=FINE_TUNING, block=WHOLE)
def halves(study: Study, task: str, run: int, rows: slice, half: str = "good") -> xr.Dataset:
    """What a classifier answers that is fine-tuned from the pre-trained encoder with half of its heads (Prasanna et al., 2020).

    ``kept`` are the more important heads of the run (of :func:`pruned`), in the "bad" half the others,
    in the "random" half any. Rows, recipe and seed are those of the run.
    """
    rank = normalise_layers(importance(study.classifier(task, run), ranking_batches(study, task)))
    places = np.argsort(rank.astype(np.float16).ravel(), kind="stable")
    rng = np.random.default_rng([study.settings.seed, run])
    order = {"good": places, "bad": places[::-1], "random": rng.permutation(rank.size)}
    kept = np.ones(rank.shape, bool)
    kept.flat[order[one_of("half", half, order)][: round(rank.size / 2)]] = False
    removed = tuple((int(layer), int(head)) for layer, head in np.argwhere(~kept))
    values = answers_of_cut(study, task, run, rows, Cut(removed=removed))
    return xr.Dataset(values | {"kept": (("layer", "head"), kept)}, axes(*rank.shape))


LOWEST = {"quarter": 1 / 4, "half": 1 / 2, "three-quarters": 3 / 4, "all": 1.0}  # of the layers


@measured(rows="pruned_rows", passes=FINE_TUNING, block=WHOLE)
def frozen(study: Study, task: str, run: int, rows: slice, lowest: str = "half") -> xr.Dataset:
    """What a classifier answers of which fine-tuning left the embeddings and the lowest layers as they were (Lee et al., 2019).

    ``layers`` of them: a "quarter", "half", "three-quarters" or "all". Rows, recipe and seed are
    those of the run.
    """
    share = LOWEST[one_of("share of the layers", lowest, LOWEST)]
    count = max(1, round(share * shape_of(study.before_fine_tuning(task))[0]))
    values = answers_of_cut(study, task, run, rows, Cut(frozen=count))
    return xr.Dataset(values | {"layers": count})


# 11 · Trees in the vectors or in the attention?

PARTS = {"training": 0.5, "validation": 0.1, "test": 0.4}  # shares of the sentences
LEAST_WEIGHT = 0.001  # is added to a weight before its logarithm is taken
SIDES = ("to the right", "to the left")  # where the word stands that is attended to


def trees_in_parts(study: Study, rows: slice) -> tuple[list[trees.Tree], np.ndarray, int]:
    """The treebank's usable sentences, the part of each, and how many are of the first, the training sentences."""
    corpus, _ = trees.trees_of(study.sentences(rows))
    last = (np.cumsum([0, *PARTS.values()]) * len(corpus)).round().astype(int)
    return corpus, np.repeat([*PARTS], np.diff(last)), int(last[1])


# In one block, since what is fitted is fitted once.
@measured(rows="trees", passes=2, block=WHOLE, of="treebank", axis="sentence")
def vector_trees(study: Study, rows: slice, start: str = "pre-trained") -> xr.Dataset:
    """How many arcs of a sentence's dependency tree a probe in closed form finds in vectors, by layer; without punctuation.

    Training sentences fit it. Layer 0 is what the first layer reads. ``covariance`` is that of the
    differences of adjacent words, and of others, in training sentences in the middle layer;
    ``right_trained`` is of Hewitt and Manning's probe there. ``score`` is of all pairs of words of
    the other sentences, first words first: by the middle layer, and by it and a quarter of the
    layers below it at once. Of each word there is the governor's offset, 0 for none.
    """
    corpus, part, count = trees_in_parts(study, rows)
    fitted, last = corpus[:count], trees.ends(corpus)[count - 1]
    vectors = trees.word_vectors(study.encoder(start), study.tokenizer, corpus)
    middle = len(vectors) // 2
    several = [one / one.std() for one in vectors[middle - len(vectors) // 4 : middle + 1]]
    wide = np.concatenate(several, axis=1)
    by_layer = np.stack(
        [trees.probe_scores(trees.fit(one[:last], fitted), one, corpus) for one in vectors]
    )
    by_several = trees.probe_scores(trees.fit(wide[:last], fitted), wide, corpus)
    probe = trees.train_probe(vectors[middle, :last], fitted, seed=study.settings.seed)
    trained = trees.probe_scores(probe, vectors[middle], corpus)
    both, later = (
        np.stack([by_layer[middle], by_several]),
        trees.ends(corpus, "adjacent")[count - 1],
    )
    spread = np.stack(trees.covariances(vectors[middle, :last], fitted))
    sizes = [len(one.words) for one in corpus]
    governors = [np.where(one.heads < 0, 0, one.heads - range(len(one.heads))) for one in corpus]
    values = {
        "right": (("layer", "sentence"), trees.arcs_right(corpus, by_layer)),
        "right_trained": ("sentence", trees.arcs_right(corpus, trained)),
        "score": (("by", "pair"), both[:, later:]),
        "covariance": (("pairs", "dimension", "dimension_2"), spread),
        "part": ("sentence", part),
        "number": ("word", np.repeat(np.arange(len(corpus), dtype=np.int16), sizes)),
        "upos": ("word", [word.upos for tree in corpus for word in tree.words]),
        "governor": ("word", np.concatenate(governors).astype(np.int8)),
    }
    names = {"layer": range(len(vectors)), "by": ["one layer", "several layers"]}
    return xr.Dataset(values, names | {"pairs": ["adjacent", "other"]})


@measured(rows="trees", passes=3, block=WHOLE, of="treebank", axis="sentence")
def attention_trees(study: Study, rows: slice, start: str = "pre-trained") -> xr.Dataset:
    """How many arcs of a sentence's dependency tree are found by the attention of single heads, of each layer's, and of all.

    Sentences, words and pairs are those of :func:`vector_trees`. A head's score of two words is its
    weight in both directions; validation sentences choose the best one. Scores of several heads are
    the log odds of a logistic regression on the logarithms of their weights, or on ``plain`` ones:
    of all, and of those up to the layer in which :func:`vector_trees` has vectors scored. It gives
    each direction of each head a ``slope``, and a ``coefficient`` if all vary as much.
    """
    corpus, part, count = trees_in_parts(study, rows)
    first = trees.ends(corpus, "adjacent")[count - 1]
    maps = trees.word_attention(study.encoder(start), study.tokenizer, corpus).astype(np.float32)
    logs = np.log(maps + LEAST_WEIGHT)  # (directions, layers, heads, pairs)
    adjacent = np.concatenate([tree.adjacent for tree in corpus])[:first]
    all_heads, slope, coefficient = combine(logs, adjacent)
    by_layer = [logs[:, [at]] for at in range(maps.shape[1])]
    several = maps, logs[:, : (maps.shape[1] + 1) // 2], *by_layer
    plain, lower, *of_layers = (combine(one, adjacent)[0] for one in several)
    both = maps.sum(axis=0)
    right = trees.arcs_right(corpus, both)
    chosen = right[..., part == "validation"].sum(axis=-1)
    best = np.unravel_index(chosen.argmax(), chosen.shape)
    scores = np.stack([both[best], all_heads, plain, lower])[:, first:]
    values = {
        "right_head": (("layer", "head", "sentence"), right),
        "right_layer": (("layer", "sentence"), trees.arcs_right(corpus, np.stack(of_layers))),
        "score": (("by", "pair"), scores),
        "slope": (("direction", "layer", "head"), slope),
        "coefficient": (("direction", "layer", "head"), coefficient),
    }
    by = ["best head", "all heads", "all heads, plain", "heads up to the middle"]
    return xr.Dataset(values, {"by": by, "direction": list(SIDES)} | axes(*chosen.shape))


def combine(weights: np.ndarray, adjacent: np.ndarray) -> tuple[np.ndarray, ...]:
    """Log odds that words are adjacent, by a logistic regression on several heads' weights; its slopes and coefficients.

    Args:
        weights: of all pairs, shape (directions, layers, heads, pairs).
        adjacent: of the first of them, which are those that it is fitted to.
    """
    features = weights.reshape(-1, weights.shape[-1]).T
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=500))
    model.fit(features[: len(adjacent)], adjacent)
    coefficient = model[-1].coef_[0]
    slope = coefficient / model[0].scale_
    return model.decision_function(features), *(
        one.reshape(weights.shape[:-1]) for one in (slope, coefficient)
    )


# What `make measure` makes of every run, in this order.
PLAN: tuple[tuple[Measurement, dict[str, str]], ...] = (
    (without_each_head, {}),
    (without_each_head, {"ablation": "zero"}),
    (without_several, {}),
    (shared_words, {}),
    (named_maps, {}),
    (frame_links, {}),
    (frame_links, {"rules": "official"}),
    (drift, {}),
    (reset, {}),
    (answers, {}),
    (features, {}),
    (links, {}),
    (from_cls, {}),
    (carried, {}),
    (cuts, {}),
    (cut_words, {}),
    (pointing, {}),
    (pointing, {"start": "random"}),
    (special_tokens, {}),
    (pruned, {}),
    *((halves, {"half": half}) for half in ("good", "random", "bad")),
    *((frozen, {"lowest": lowest}) for lowest in LOWEST),
    (vector_trees, {}),
    (vector_trees, {"start": "random"}),
    (attention_trees, {}),
    (attention_trees, {"start": "random"}),
)
MEASUREMENTS = {one.name: one for one, _ in PLAN}
