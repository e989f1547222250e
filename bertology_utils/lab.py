"""What the notebooks share: from parameters to rows, models, one pass over maps, and the table of results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from . import finetune, glue, models
from .annotation import annotators
from .annotation.annotators import Annotator
from .annotation.inputs import AnnotatedInput, annotate_inputs
from .attention import Batch, Measurement, batches, observe_cached, weighed
from .cache import Key, Lazy, cache_key, cached
from .common import device, one_based, zero_based
from .disabling.sweep import Sweep, sweep, without_sets
from .drift.scores import restored_logits
from .glue import TASKS, Task, predictions
from .links import treebank
from .links.dependencies import RELATIONS, Arcs, Pointing, joined
from .plan import FineTuning, Need, PassOf, SetsOf, SweepOf, compared, prepare
from .pruning.cuts import Cut
from .pruning.pairs import PAIR_ROWS, sets_of
from .record import Record
from .settings import ModelSource, resolve
from .verdicts import MIN_EXAMPLES, learned, unlearned

if TYPE_CHECKING:
    from datasets import Dataset


class Lab(Record):
    """One run of one notebook. Rows and trainings are read once and kept.

    Args:
        notebook: the notebook's name without suffix ("3_finetuning_drift").
        parameters: the notebook's parameters.

    Raises:
        ValueError, TypeError, FileNotFoundError: a parameter is wrong; the
            message names what is allowed.
        ConnectionError: the model is on the Hub, which cannot be reached.
    """

    def __init__(self, notebook: str, **parameters):
        settings = resolve(**parameters)
        self._parameters = parameters
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
        """Seed of the task's bootstrap: another one for each task, so that tasks are independent."""
        return self.settings.seed, list(TASKS).index(task.name)

    @cache
    def train_rows(self, task: Task) -> Dataset:
        """Training rows, at most ``train_examples``, drawn by the seed."""
        rows = glue.load_rows(task, "train", self.settings.data)
        return glue.sample(rows, self.settings.train_examples, self.settings.seed)

    @cache
    def dev_rows(self, task: Task) -> Dataset:
        """All dev rows."""
        return glue.load_rows(task, "dev", self.settings.data)

    def rows_used(self) -> dict[str, dict[str, object]]:
        """Numbers of training and dev rows by task, and a digest of the training rows."""
        return {
            task.name: {
                "train": len(self.train_rows(task)),
                "dev": len(self.dev_rows(task)),
                "train_sha256": finetune.rows_digest(self.train_rows(task)),
            }
            for task in self.tasks
        }

    @cache
    def _training(self, one: FineTuning) -> finetune.Training:
        s, before = (
            self.settings,
            self.settings.before(one.task, one.seed_offset) if one.init == "pretrained" else None,
        )
        after = self._training(FineTuning(before[0], one.init, before[1])) if before else None
        rows, recipe = self.train_rows(one.task), s.profile.recipe_of(one.init)
        return finetune.Training(
            one.task, s.model, rows, recipe, one.init, s.seed + one.seed_offset, after, one.cut
        )

    def _checkpoint(self, one: FineTuning) -> ModelSource | None:
        """The classifier that was given instead of this training."""
        source = (
            dict(self.settings.checkpoints).get(one.task.name) if one.init == "pretrained" else None
        )
        if source and (one.seed_offset or one.cut):
            raise ValueError(
                f"{one.task.title}: there is one training only, the checkpoint {source.name}; another, to compare it with,"
                " needs trainings by this suite: leave checkpoint empty"
            )
        return source

    def finetuned(
        self, task: Task, init: str = "pretrained", seed_offset: int = 0, cut: Cut | None = None
    ):
        """The classifier fine-tuned on the task, or the checkpoint that was given for it.

        Args:
            task: the task.
            init: what the training starts from; see :func:`bertology_utils.models.load_classifier`.
            seed_offset: another number gives another training of the same kind.
            cut: what the training has to do without; see :mod:`bertology_utils.pruning.cuts`.

        Raises:
            ValueError: another training is wanted where a checkpoint was given.
        """
        one = FineTuning(task, init, seed_offset, cut=cut)
        if checkpoint := self._checkpoint(one):
            return models.load_classifier(checkpoint, task, "finetuned").to(self.device)
        return finetune.finetuned(self._training(one)).to(self.device)

    def trainings(self, task: Task) -> range:
        """Numbers of the task's trainings, for ``seed_offset``: one where a checkpoint was given."""
        return range(self.settings.trainings_of(task))

    def finetunings(self, task: Task) -> list:
        """The classifiers fine-tuned on the task, which differ in their seed."""
        return [self.finetuned(task, seed_offset=number) for number in self.trainings(task)]

    @property
    def compared(self) -> Sequence[Task]:
        """The task on whose first training the ways of disabling a head are compared."""
        return compared(self.tasks)

    @property
    def random_tasks(self) -> tuple[Task, ...]:
        """The tasks on which the profile also trains a random start."""
        return tuple(task for task in self.tasks if self.settings.random_starts_of(task))

    def random_starts(self, task: Task) -> np.ndarray:
        """What the classifiers that were fine-tuned from random weights answer, shape (trainings, dev rows).

        Args:
            task: one of :attr:`random_tasks`.
        """
        numbers = range(self.settings.random_starts_of(task))
        return np.stack(
            [self.answers(task, init="normal", seed_offset=number) for number in numbers]
        )

    def untrained(self, task: Task, init: str = "pretrained", seed_offset: int = 0):
        """The classifier before any fine-tuning: its classification layer is drawn by the seed."""
        seed = self.settings.seed + seed_offset
        return models.load_classifier(self.settings.model, task, init, seed).to(self.device)

    def encoder(self, init: str = "pretrained"):
        """The bare encoder, without a classifier and before any fine-tuning."""
        return models.load_encoder(self.settings.model, init, self.settings.seed).to(self.device)

    @cache
    def dev_inputs(self, task: Task) -> Dataset:
        """Model inputs of all dev rows, not yet in batches."""
        return batches.tokenize(
            self.dev_rows(task), task, self.tokenizer, self.settings.profile.recipe.max_length
        )

    def dev_batches(self, task: Task) -> list[Batch]:
        """Inputs of all dev rows."""
        return batches.make_batches(self.dev_inputs(task), self.tokenizer, self._tokens_per_batch)

    @cached_property
    def _tokens_per_batch(self) -> int:
        layers, heads = self.config.num_hidden_layers, self.config.num_attention_heads
        return batches.tokens_per_batch(layers, heads, self.settings.profile.recipe.max_length)

    @cached_property
    def annotator(self) -> Annotator:
        """The annotator: it gives words, parts of speech and dependencies.

        Raises:
            ValueError, FileNotFoundError: see
                :func:`bertology_utils.annotation.annotators.load_annotator`.
        """
        return annotators.load_annotator(
            self.settings.annotation, [task.name for task in self.tasks]
        )

    @cache
    def annotated_inputs(self, task: Task, count: int = 0) -> list[AnnotatedInput]:
        """Annotation of the inputs of :meth:`measured_batches`, by their ``index``."""
        max_length = self.settings.profile.recipe.max_length
        return annotate_inputs(
            self.measured_rows(task, count), task.fields, self.tokenizer, max_length, self.annotator
        )

    def _measured(self, count: int) -> int:
        limits = [limit for limit in (count, self.settings.max_examples) if limit]
        return min(limits, default=0)

    def measured_rows(self, task: Task, count: int = 0) -> Dataset:
        """The dev rows whose maps are measured, drawn by the seed (footnote 5)."""
        return glue.sample(self.dev_rows(task), self._measured(count), self.settings.seed)

    @cache
    def measured_batches(
        self, task: Task, count: int = 0, pad_to: int | None = None
    ) -> list[Batch]:
        """Inputs of the dev rows whose maps are measured, drawn by the seed (footnote 5).

        Args:
            task: the task.
            count: fewer rows than ``max_examples``; 0 for ``max_examples`` (which is 0 for all
                rows).
            pad_to: pad every input to this many tokens.
        """
        inputs = glue.sample(self.dev_inputs(task), self._measured(count), self.settings.seed)
        return batches.make_batches(inputs, self.tokenizer, self._tokens_per_batch, pad_to)

    def observe(
        self,
        model,
        task: Task,
        measurements: dict[str, Measurement],
        count: int = 0,
        weighing: str = "",
    ) -> dict:
        """One pass over the inputs of :meth:`measured_batches`; see :func:`bertology_utils.attention.observe_cached`.

        Args:
            model: encoder or classifier.
            task: the task.
            measurements: by name.
            count: fewer rows than ``max_examples``.
            weighing: of the maps; by default the notebook's parameter.
        """
        weighing = weighing or self.settings.weighing
        fed = {name: weighed(measurement, weighing) for name, measurement in measurements.items()}
        return observe_cached(model, self.measured_batches(task, count), fed)

    def look(self, model, task: Task) -> dict:
        """The notebook's measurements of a model on these inputs, by name; see :mod:`bertology_utils.passes`."""
        from .passes import measurements  # all sections, with scikit-learn

        return self.observe(model, task, measurements(self, task))

    def arcs(self, model, tasks: Sequence[Task]) -> dict[str, Arcs]:
        """Which arcs each head finds, by relation: of the treebank if one was given, else of the tasks' inputs.

        Args:
            model: encoder or classifier.
            tasks: on whose inputs it is asked where there is no treebank.
        """
        if self.sentences:
            inputs, left_out = treebank.inputs_of(
                self.sentences, self.tokenizer, least=MIN_EXAMPLES
            )
            pointing = Pointing(list(inputs.values()))
            of_bank = batches.batches_of(
                list(inputs),
                self.tokenizer,
                max_length=treebank.MAX_LENGTH,
                tokens_per_batch=self._tokens_per_batch,
            )
            sentences = len(self.sentences.sentences) + len(self.sentences.faults)
            self.fact(
                treebank={"sentences": sentences, "left out": sentences - len(inputs)}
                | ({"because": left_out} if left_out else {})
            )
            parts = [
                observe_cached(
                    model, of_bank, {"pointing": weighed(pointing, self.settings.weighing)}
                )["pointing"]
            ]
        else:  # kept from the pass over all measurements, where there was one
            asked = {task: Pointing(self.annotated_inputs(task)) for task in tasks}
            parts = [
                self.observe(model, task, {"pointing": asked[task]})["pointing"] for task in tasks
            ]
        return {name: joined([part[name] for part in parts]) for name in RELATIONS}

    @cache
    def swept_rows(self, task: Task) -> Dataset:
        """The dev rows on which heads are disabled, drawn by the seed."""
        return glue.sample(self.dev_rows(task), self.settings.sweep_examples, self.settings.seed)

    def swept_labels(self, task: Task) -> np.ndarray:
        """Gold labels of these rows, shape (rows,)."""
        return np.asarray(self.swept_rows(task)["label"])

    def swept_batches(self, task: Task) -> list[Batch]:
        """Inputs of these rows."""
        return self._in_batches(task, self.swept_rows(task))

    def _in_batches(self, task: Task, rows: Dataset) -> list[Batch]:
        inputs = batches.tokenize(
            rows, task, self.tokenizer, self.settings.profile.recipe.max_length
        )
        return batches.make_batches(inputs, self.tokenizer, self._tokens_per_batch)

    @cache
    def paired_rows(self, task: Task) -> Dataset:
        """Those of these rows on which pairs of heads are disabled, drawn by the seed."""
        return glue.sample(self.swept_rows(task), PAIR_ROWS, self.settings.seed)

    def paired_batches(self, task: Task) -> list[Batch]:
        """Inputs of these rows."""
        return self._in_batches(task, self.paired_rows(task))

    def without_sets(self, task: Task, seed_offset: int = 0) -> np.ndarray:
        """Outputs of the fine-tuned classifier on these rows without each of :func:`sets_of`, in each layer."""
        return cached(*self._call(SetsOf(FineTuning(task, seed_offset=seed_offset))))

    def sweep(self, task: Task, seed_offset: int = 0, ablation: str = "uniform") -> Sweep:
        """Outputs of the fine-tuned classifier on these rows with every head and every layer disabled (§4.6)."""
        return cached(*self._call(SweepOf(FineTuning(task, seed_offset=seed_offset), ablation)))

    def entry(self, need: Need) -> tuple[str, Key]:
        """Where the cache keeps what is needed: kind and key."""
        return cache_key(*self._call(need))

    def _call(self, need: Need) -> tuple:
        """The function and the arguments that make it."""
        if isinstance(need, FineTuning):
            return finetune.train, self._training(need)
        if isinstance(need, PassOf):
            return self._pass(need)
        task, model = need.training.task, self._classifier(need.training)
        if isinstance(need, SetsOf):
            inputs = self._inputs(task, self.paired_rows(task))
            return without_sets, model, inputs, sets_of(self.config.num_attention_heads)
        return sweep, model, self._inputs(task, self.swept_rows(task)), 0, None, need.ablation

    def _pass(self, need: PassOf) -> tuple:
        from .passes import together, wanted

        task, of = need.task, need.model
        inputs = self._inputs(task, self.measured_rows(task))
        if isinstance(of, FineTuning):
            model = self._classifier(of)
        else:
            model = Lazy(
                lambda: self.encoder(of),
                (models.load_encoder, self.settings.model, of, self.settings.seed),
            )
        open_lab: Any = type(self)
        measured = Lazy(
            lambda: wanted([_opened(open_lab, *notebook) for notebook in need.notebooks], task),
            (wanted, need.notebooks),
        )
        return together, model, inputs, measured

    def _classifier(self, one: FineTuning) -> Lazy:
        """The fine-tuned classifier, loaded only where something is asked of it."""
        checkpoint = self._checkpoint(one)
        what = (checkpoint, one.task) if checkpoint else (finetune.finetuned, self._training(one))
        return Lazy(
            lambda: self.finetuned(one.task, one.init, one.seed_offset, one.cut),
            (models.load_classifier, *what),
        )

    def _inputs(self, task: Task, rows: Dataset) -> Lazy:
        """Inputs of these rows, made only where something is asked of a model."""
        max_length = self.settings.profile.recipe.max_length
        what = (batches.make_batches, batches.tokenize, rows, task, self.settings.model, max_length)
        return Lazy(lambda: self._in_batches(task, rows), what)

    def make(self, need: Need) -> None:
        """Leave in the cache what is needed."""
        if isinstance(need, FineTuning):
            finetune.trained(self._training(need))
        else:
            cached(*self._call(need))

    def prepare(self) -> None:
        """Make all that this notebook needs, in workers; where the cache has it, nothing is done.

        Raises:
            RuntimeError: something cannot be made; the message says what and why.
        """
        prepare(self, self.notebook, self._parameters)

    def title(self, need: Need) -> str:
        """Name of what is needed, for messages."""
        if isinstance(need, FineTuning):
            return self._training(need).name
        if isinstance(need, PassOf):
            of = (
                f"{need.task.title}, {need.model} encoder"
                if isinstance(need.model, str)
                else self.title(need.model)
            )
            return f"{of}, maps measured"
        what = "pairs of heads" if isinstance(need, SetsOf) else f"heads {need.ablation}"
        return f"{need.training.task.title}, seed {self.settings.seed + need.training.seed_offset}, {what}"

    def predictions(self, model, task: Task) -> np.ndarray:
        """Predicted labels (or scores from 0 to 1, for a regression) of all dev rows, shape (rows,)."""
        return predictions(task, models.predict_logits(model, self.dev_batches(task)))

    def answers(
        self, task: Task, init: str = "pretrained", seed_offset: int = 0, cut: Cut | None = None
    ) -> np.ndarray:
        """What the fine-tuned classifier predicts of all dev rows, from the cache; as :meth:`predictions`."""
        return predictions(
            task, cached(models.predict_logits, *self.asked(task, seed_offset, init, cut))
        )

    def asked(
        self, task: Task, seed_offset: int = 0, init: str = "pretrained", cut: Cut | None = None
    ) -> tuple[Lazy, Lazy]:
        """The fine-tuned classifier and the inputs of all dev rows, as arguments of :func:`bertology_utils.cache.cached`."""
        return self._classifier(FineTuning(task, init, seed_offset, cut=cut)), self._inputs(
            task, self.dev_rows(task)
        )

    def restored_layers(
        self, task: Task, groups: Sequence[Sequence[int]], seed_offset: int = 0
    ) -> list[np.ndarray]:
        """What the fine-tuned classifier outputs, from the cache, and then what with each group of layers put back (§4.3).

        Args:
            task: the task.
            groups: layers from 0, to get their weights from before fine-tuning.
            seed_offset: of the training; see :meth:`finetuned`.

        Returns:
            Each of shape (rows, labels), of all dev rows; NaN for a model whose layers cannot be
            exchanged.
        """
        start = Lazy(
            lambda: self.untrained(task),
            (models.load_classifier, self.settings.model, task, self.settings.seed),
        )
        model, inputs = self.asked(task, seed_offset)
        return cached(restored_logits, model, start, [(), *map(tuple, groups)], inputs)

    @cached_property
    def learned(self) -> dict[Task, bool]:
        """Which tasks every training learned, so that claims can be judged on them."""
        found = {}
        for task in self.tasks:
            answers = np.stack(
                [self.answers(task, seed_offset=number) for number in self.trainings(task)]
            )
            found[task] = learned(task, answers, self.labels(task), self.resampling_seed(task))
        return found

    @property
    def learned_tasks(self) -> list[Task]:
        """The tasks that every training learned.

        Raises:
            ValueError: there is none, so there is nothing to measure.
        """
        if problem := unlearned(self.tasks, self.learned):
            raise ValueError(f"{problem}; choose other tasks, or more train_examples")
        return [task for task in self.tasks if self.learned[task]]

    def labels(self, task: Task) -> np.ndarray:
        """Gold labels of all dev rows, shape (rows,)."""
        return np.asarray(self.dev_rows(task)["label"])


@lru_cache(maxsize=8)
def _opened(open_lab: Any, notebook: str, parameters: tuple[tuple[str, object], ...]) -> Lab:
    """A lab that was opened before, with the rows and annotation that it has read."""
    return open_lab(notebook, **dict(parameters))
