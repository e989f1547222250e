"""Profiles: which model, which data, how much of it, and how it is trained."""

from dataclasses import dataclass, replace

from .choices import one_of

ALL = -1  # of a number of rows: as many as there are

BERT_BASE = "google-bert/bert-base-uncased"
GLUE = "nyu-mll/glue"

# Pinned commits of what the Hub serves, so that a re-run sees the same bytes.
HUB_REVISIONS = {BERT_BASE: "86b5e0934494bd15c9632b12f734a8a67f723594", GLUE: "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"}

# (layers, heads) of pinned models, so that a parameter can be checked offline.
HUB_SHAPES = {BERT_BASE: (12, 12)}


@dataclass(frozen=True)
class Recipe:
    """How a classifier is fine-tuned.

    AdamW with linear decay after a linear warm-up, gradients clipped at norm 1,
    batches of similar length; mixed precision on a GPU, float32 on a CPU.

    Attributes:
        learning_rate: peak rate.
        epochs: passes over the training rows.
        batch_size: rows per step (32 in the paper, §3).
        warmup: share of the steps that warm up.
        weight_decay: AdamW's decoupled decay.
        adam_epsilon: AdamW's ε.
        max_length: wordpieces per input, [CLS] and [SEP] included; longer inputs are cut.
    """

    learning_rate: float
    epochs: int = 3
    batch_size: int = 32
    warmup: float = 0.1
    weight_decay: float = 0.01
    adam_epsilon: float = 1e-6
    max_length: int = 128


@dataclass(frozen=True)
class Profile:
    """A named set of defaults; every notebook parameter can override its part.

    Attributes:
        name: how it is called on the command line.
        model: "embedded", a Hub name or a folder.
        data: "embedded", "hub" or "folder:PATH".
        recipe: how classifiers are fine-tuned.
        train_examples: training rows per task, drawn by seed; or ALL.
        framenet: the FrameNet release of §4.2, see :func:`bertology_utils.framenet.release.load_release`.
        max_examples: dev rows whose attention maps are measured, drawn by seed
            (1000 in the paper, footnote 5), or ALL.
        sweep_examples: dev rows on which heads are disabled (§4.6), drawn by seed; or ALL.
        tasks: those that "all" stands for; "all", or names with commas between.
        trainings: fine-tuned models per task, which differ in their seed.
        random_starts: models per task that are fine-tuned from random weights (§4.3), at most as many.
        random_tasks: the tasks that they are trained on; "all", or names with commas between.
        random_epochs: passes over the training rows that they take; 0 for those of the recipe.
        annotation: where parts of speech and dependencies of data other than
            the embedded come from, see :func:`bertology_utils.annotation.annotators.load_annotator`.
    """

    name: str
    model: str
    data: str
    recipe: Recipe
    train_examples: int = ALL
    max_examples: int = 1000
    framenet: str = "nltk"
    annotation: str = "spacy:en_core_web_sm"
    tasks: str = "all"
    trainings: int = 2  # fewer say nothing of how trainings differ
    random_starts: int = 1
    random_tasks: str = "all"
    random_epochs: int = 0
    sweep_examples: int = ALL

    def recipe_of(self, init: str) -> Recipe:
        """How classifiers are fine-tuned from "pretrained" or from "normal" weights."""
        epochs = self.random_epochs if init == "normal" else 0
        return replace(self.recipe, epochs=epochs or self.recipe.epochs)


PROFILES = {
    "embedded": Profile(
        name="embedded",
        model="embedded",
        data="embedded",
        framenet="embedded",
        recipe=Recipe(learning_rate=2e-4, epochs=2, max_length=64),
        # In two passes it learns nothing. Of what it learns in five (corpora_generator/README.md) these are the quickest.
        random_tasks="stsb,sst2,mnli",
        random_epochs=5,
    ),
    "minilm": Profile(
        name="minilm",
        model="embedded",
        data="hub",
        # A small model wants a higher rate than BERT; at 2e-4 MRPC fell to 0.73 accuracy.
        recipe=Recipe(learning_rate=1e-4),
    ),
    "paper": Profile(
        name="paper",
        model=BERT_BASE,
        data="hub",
        # The paper gives batch and epochs (§3) and no rate; 2e-5 is the middle
        # of Devlin et al.'s three, and what Prasanna et al. (2020) used.
        recipe=Recipe(learning_rate=2e-5),
        trainings=5,
        random_starts=5,
    ),
    # What a T4, the GPU that Colab lends for nothing, does in two hours (the arithmetic: docs/own_data.md).
    "colab": Profile(
        name="colab",
        model=BERT_BASE,
        data="hub",
        tasks="mrpc,stsb,sst2,rte",
        train_examples=10_000,
        max_examples=300,
        sweep_examples=400,
        trainings=3,
        recipe=Recipe(learning_rate=2e-5),
    ),
    # What needs no fine-tuned model (notebooks 2 and 8): on a CPU in minutes.
    "bert-forward": Profile(
        name="bert-forward", model=BERT_BASE, data="hub", max_examples=200, recipe=Recipe(learning_rate=2e-5)
    ),
}


def get_profile(name: str) -> Profile:
    """The profile called ``name``.

    Raises:
        ValueError: if there is none, naming those there are.
    """
    return PROFILES[one_of("profile", name, PROFILES)]
