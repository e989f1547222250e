"""What every notebook starts from: rows, models, passes over attention maps, and its results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from . import finetune, glue, models
from .annotation import annotators
from .annotation.annotators import Annotator
from .annotation.inputs import AnnotatedInput, annotate_inputs
from .attention import Batch, batches
from .cache import Lazy, cached
from .common import device, note, one_based, one_of, zero_based
from .glue import TASKS, Task, predictions
from .record import OWN_RUN, Record
from .settings import ModelSource, resolve
from .verdicts import MIN_EXAMPLES, learned, unlearned

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel

    from .pruning import Cut

WHICH = ("train", "dev", "measured", "swept")
Function = TypeVar("Function", bound=Callable)


def kept(function: Function) -> Function:
    """Keep the results of a method, or of any function of a lab, on that lab.

    functools.cache would hold every lab for ever.
    """

    @wraps(function)
    def call(lab: Lab, *arguments: Any, **options: Any) -> Any:
        key = (function, *arguments, *options.items())
        if key not in lab.kept_results:
            lab.kept_results[key] = function(lab, *arguments, **options)
        return lab.kept_results[key]

    return cast("Function", call)


class Lab(Record):
    """One run of one notebook: its settings, rows, models and results. Rows are read once and kept.

    Args:
        notebook: the notebook's name without suffix ("3_finetuning_drift").
        parameters: the notebook's parameters.

    Raises:
        ValueError, TypeError, FileNotFoundError: a parameter is wrong; the message names what is
            allowed.
        ConnectionError: the model is on the Hub, which cannot be reached.
    """

    def __init__(self, notebook: str, **parameters: Any):
        settings = resolve(**parameters)
        self.parameters = parameters
        self.kept_results: dict[tuple, Any] = {}  # see kept
        source, shape = models.pinned(settings.model)
        if settings.head is not None:
            for kind, index, count in zip(("layer", "head"), settings.head, shape, strict=True):
                zero_based(one_based(index), count, kind)
        super().__init__(notebook, settings.model_copy(update={"model": source}))
        # Of the treebank that was given; None where none was.
        self.sentences = (
            annotators.sentences_of(settings.treebank, MIN_EXAMPLES) if settings.treebank else None
        )
        self.device = device()

    def run(self) -> None:
        """Measure and record all that the notebook's section measures, controls included.

        Fine-tuning runs and sweeps that the cache lacks are made first, side by side.
        """
        if not self.settings.is_small:
            print(OWN_RUN)
        # By its name, since jobs and sections import the lab.
        import_module(f"{__package__}.jobs").run_section(self)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that were asked for."""
        return self.settings.tasks

    @cached_property
    def config(self):
        """The model's configuration."""
        return models.load_config(self.settings.model)

    @cached_property
    def tokenizer(self):
        """The model's tokenizer."""
        return models.load_tokenizer(self.settings.model)

    def resampling_seed(self, task: Task) -> tuple[int, int]:
        """Seed of the task's bootstrap: each task has its own, so that tasks are independent."""
        return self.settings.seed, list(TASKS).index(task.name)

    # Rows and their inputs

    @kept
    def rows(self, task: Task, which: str, count: int = 0) -> Dataset:
        """Rows of a task.

        Args:
            task: the task.
            which: "train": at most ``train_examples`` training rows; "dev": all dev rows;
                "measured": the dev rows whose maps are measured, ``max_examples`` of them (footnote
                5); "swept": the rows on which heads are disabled, ``sweep_examples`` of them: dev
                rows, and where these do not suffice training rows on which no run trains. All are
                drawn by the seed.
            count: fewer of the measured or swept rows; 0 for all of them.
        """
        s = self.settings
        one_of("rows", which, WHICH)
        if which == "dev":
            return glue.load_rows(task, which, s.data)
        if which == "train":
            return glue.sample(self._all_training_rows(task), s.train_examples, s.seed)
        if which == "measured":
            most = min((limit for limit in (count, s.max_examples) if limit), default=0)
            return glue.sample(self.rows(task, "dev"), most, s.seed)
        return (
            self.rows(task, "swept").select(self.drawn(task, count)) if count else self._swept(task)
        )

    def _swept(self, task: Task) -> Dataset:
        """See :meth:`rows`; rows that say the same as a training row are left out.

        What a given classifier was trained on is not known, so its training rows are not read.
        """
        s, dev = self.settings, self.rows(task, "dev")
        unseen = dev if self.checkpoint(task) else self._unseen(task, dev, s.sweep_examples)
        if len(unseen) < s.sweep_examples:
            asked = f"fewer than the {s.sweep_examples} that sweep_examples asks for"
            note(f"{task.title}: heads are disabled on {len(unseen)} rows, {asked}")
        return glue.sample(unseen, s.sweep_examples, s.seed)

    def _unseen(self, task: Task, dev: Dataset, count: int) -> Dataset:
        """The dev rows and, where they are fewer than ``count``, training rows, on none of which a run trains."""
        trained = glue.texts(task, self.rows(task, "train"))
        unseen = glue.without(task, dev, trained)
        if 2 * len(unseen) < len(dev):
            raise ValueError(
                f"{task.title}: {len(dev) - len(unseen)} of its {len(dev)} dev rows are training rows"
                " as well; heads are disabled on rows that no run trained on, so give other dev rows"
            )
        if len(unseen) < count:
            from datasets import concatenate_datasets

            known = trained | glue.texts(task, dev)
            rest = glue.without(task, self._all_training_rows(task), known)
            more = glue.sample(rest, count - len(unseen), self.settings.seed)
            unseen = concatenate_datasets([unseen, more])
        return unseen

    @kept
    def _all_training_rows(self, task: Task) -> Dataset:
        return glue.load_rows(task, "train", self.settings.data)

    def drawn(self, task: Task, count: int) -> np.ndarray:
        """Sorted positions of ``count`` of the swept rows, drawn by the seed; of all if there are no more."""
        return glue.draw(len(self.rows(task, "swept")), count, self.settings.seed)

    def labels(self, task: Task, which: str = "dev", count: int = 0) -> np.ndarray:
        """Gold labels of such rows, shape (rows,)."""
        return np.asarray(self.rows(task, which, count)["label"])

    @kept
    def batches(
        self, task: Task, which: str = "measured", count: int = 0, pad_to: int | None = None
    ) -> list[Batch]:
        """Model inputs of such rows, see :meth:`rows`; each padded to ``pad_to`` tokens if given."""
        return self.make_batches(task, self.rows(task, which, count), pad_to)

    @cached_property
    def tokens_per_batch(self) -> int:
        """Largest number of tokens in a batch."""
        layers, heads = self.config.num_hidden_layers, self.config.num_attention_heads
        longest = self.settings.profile.recipe.max_length
        return batches.tokens_per_batch(layers, heads, longest)

    def tokenize(self, task: Task, rows: Dataset) -> Dataset:
        """Model inputs of any rows of a task, not yet in batches."""
        max_length = self.settings.profile.recipe.max_length
        return batches.tokenize(rows, task, self.tokenizer, max_length)

    def make_batches(self, task: Task, rows: Dataset, pad_to: int | None = None) -> list[Batch]:
        """Model inputs of any rows of a task, in batches."""
        inputs = self.tokenize(task, rows)
        return batches.make_batches(inputs, self.tokenizer, self.tokens_per_batch, pad_to)

    def lazy_batches(self, task: Task, rows: Dataset) -> Lazy:
        """Model inputs of rows as an argument of :func:`bertology_utils.cache.cached`."""
        max_length = self.settings.profile.recipe.max_length
        parts = batches.make_batches, batches.tokenize, rows, task, self.settings.model, max_length
        return Lazy(lambda: self.make_batches(task, rows), parts)

    @cached_property
    def annotator(self) -> Annotator:
        """The annotator: it gives words, parts of speech and dependencies.

        Raises:
            ValueError, FileNotFoundError: see
                :func:`bertology_utils.annotation.annotators.load_annotator`.
        """
        names = [task.name for task in self.tasks]
        return annotators.load_annotator(self.settings.annotation, names)

    @kept
    def annotated_inputs(self, task: Task) -> list[AnnotatedInput]:
        """Annotation of the measured rows' inputs, by their ``index`` in the batches."""
        rows, max_length = self.rows(task, "measured"), self.settings.profile.recipe.max_length
        return annotate_inputs(rows, task.fields, self.tokenizer, max_length, self.annotator)

    # Models

    def encoder(self, init: str = "pretrained") -> PreTrainedModel:
        """The bare encoder before any fine-tuning, without a classifier."""
        return models.load_encoder(self.settings.model, init, self.settings.seed).to(self.device)

    def untrained(
        self, task: Task, init: str = "pretrained", seed_offset: int = 0
    ) -> PreTrainedModel:
        """The classifier before any fine-tuning: its classification layer is drawn by the seed."""
        seed = self.settings.seed + seed_offset
        return models.load_classifier(self.settings.model, task, init, seed).to(self.device)

    def trainings(self, task: Task) -> range:
        """Numbers of the task's fine-tuning runs; just one where a checkpoint was given."""
        return range(self.settings.trainings_of(task))

    def checkpoint(
        self, task: Task, init: str = "pretrained", seed_offset: int = 0, cut: Cut | None = None
    ) -> ModelSource | None:
        """The classifier that was given instead of a fine-tuning run; arguments as of :meth:`training`.

        Raises:
            ValueError: another run is wanted than the one that a checkpoint replaces.
        """
        source = dict(self.settings.checkpoints).get(task.name) if init == "pretrained" else None
        if source and (seed_offset or cut):
            raise ValueError(
                f"{task.title}: the only run is the checkpoint {source.name}; another, to compare it"
                " with, has to be fine-tuned by this suite: leave checkpoint empty"
            )
        return source

    @kept
    def training(
        self, task: Task, init: str = "pretrained", seed_offset: int = 0, cut: Cut | None = None
    ) -> finetune.Training:
        """All that determines a fine-tuning run.

        A task that continues from another starts with the encoder of that one's run, or of the
        checkpoint that was given for it.

        Args:
            task: the task.
            init: what fine-tuning starts from; see :func:`bertology_utils.models.load_classifier`.
            seed_offset: number of the run.
            cut: what fine-tuning goes without; see :mod:`bertology_utils.pruning`.
        """
        s, source, after = self.settings, self.settings.model, None
        before = s.before(task, seed_offset) if init == "pretrained" else None
        if before and (given := self.checkpoint(*before[:1])):
            source = given
        elif before:
            after = self.training(before[0], init, before[1])
        rows, recipe = self.rows(task, "train"), s.profile.recipe_of(init)
        return finetune.Training(task, source, rows, recipe, init, s.seed + seed_offset, after, cut)

    def finetuned(self, task: Task, *run: Any, **of_run: Any) -> PreTrainedModel:
        """The classifier of a run, see :meth:`training`, or the checkpoint that was given for it.

        Raises:
            ValueError: see :meth:`checkpoint`.
        """
        if given := self.checkpoint(task, *run, **of_run):
            return models.load_classifier(given, task, "finetuned").to(self.device)
        return finetune.finetuned(self.training(task, *run, **of_run)).to(self.device)

    def lazy_classifier(self, task: Task, *run: Any, **of_run: Any) -> Lazy:
        """What :meth:`finetuned` gives, as an argument of :func:`bertology_utils.cache.cached`."""
        given = self.checkpoint(task, *run, **of_run)
        decides = (
            (given, task) if given else (finetune.finetuned, self.training(task, *run, **of_run))
        )
        make = partial(self.finetuned, task, *run, **of_run)
        return Lazy(make, (models.load_classifier, *decides))

    def lazy_classifiers(self, task: Task) -> list[Lazy]:
        """The classifiers fine-tuned on the task, which differ in their seed, each to be made lazily."""
        return [self.lazy_classifier(task, seed_offset=number) for number in self.trainings(task)]

    def lazy_untrained(self, task: Task, init: str = "pretrained") -> Lazy:
        """The classifier before any fine-tuning as an argument of :func:`bertology_utils.cache.cached`."""
        parts = models.load_classifier, self.settings.model, task, init, self.settings.seed
        return Lazy(lambda: self.untrained(task, init), parts)

    def lazy_encoder(self, init: str) -> Lazy:
        """The bare encoder as an argument of :func:`bertology_utils.cache.cached`."""
        parts = models.load_encoder, self.settings.model, init, self.settings.seed
        return Lazy(lambda: self.encoder(init), parts)

    # What models do

    def answers(self, task: Task, *run: Any, **of_run: Any) -> np.ndarray:
        """Predictions of a run's classifier for all dev rows, from the cache; shape (rows,).

        Labels, or scores from 0 to 1 for a regression. Arguments as of :meth:`training`.
        """
        model = self.lazy_classifier(task, *run, **of_run)
        inputs = self.lazy_batches(task, self.rows(task, "dev"))
        return predictions(task, cached(models.predict_logits, model, inputs))

    def answers_of_runs(self, task: Task) -> np.ndarray:
        """Predictions of all fine-tuning runs of a task, shape (runs, dev rows)."""
        return np.stack([self.answers(task, seed_offset=number) for number in self.trainings(task)])

    @property
    def random_tasks(self) -> tuple[Task, ...]:
        """The tasks on which the profile also fine-tunes from random weights."""
        return tuple(task for task in self.tasks if self.settings.random_starts_of(task))

    def random_starts(self, task: Task) -> np.ndarray:
        """Predictions of classifiers fine-tuned from random weights, shape (runs, dev rows).

        Args:
            task: one of :attr:`random_tasks`.
        """
        numbers = range(self.settings.random_starts_of(task))
        return np.stack([self.answers(task, "normal", number) for number in numbers])

    @cached_property
    def learned(self) -> dict[Task, bool]:
        """Which tasks every run learned, so that claims can be judged on them."""
        learned_tasks = {}
        for task in self.tasks:
            answers, seed = self.answers_of_runs(task), self.resampling_seed(task)
            learned_tasks[task] = learned(task, answers, self.labels(task), seed)
        return learned_tasks

    @property
    def learned_tasks(self) -> list[Task]:
        """The tasks that every run learned.

        Raises:
            ValueError: there is none, so there is nothing to measure.
        """
        if problem := unlearned(self.tasks, self.learned):
            raise ValueError(f"{problem}; choose other tasks, or more train_examples")
        return [task for task in self.tasks if self.learned[task]]

    def rows_used(self) -> dict[str, dict[str, object]]:
        """Numbers of training, dev and swept rows by task, and a digest of the training rows."""
        return {
            task.name: {which: len(self.rows(task, which)) for which in ("train", "dev", "swept")}
            | {"train_sha256": finetune.rows_digest(self.rows(task, "train"))}
            for task in self.tasks
        }
