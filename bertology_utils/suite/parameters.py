"""A notebook's parameters checked, with the profile's values filled in and names resolved."""

from dataclasses import dataclass

from ..common import one_of, to_code
from ..common.profiles import Profile, get_profile
from ..encoders.checkpoints import parse_checkpoints
from ..encoders.sources import ModelSource, parse_model
from ..framenet.sources import check_framenet
from ..glue.sources import DataSource, parse_data
from ..glue.tasks import Task, parse_tasks
from .declarations import PARAMETERS


@dataclass(frozen=True)
class Settings:
    """What a notebook runs with; the meanings stand in :data:`bertology_utils.suite.declarations.PARAMETERS`.

    Attributes:
        checkpoints: (task name, classifier) that stand for trainings.
        max_examples, train_examples, sweep_examples: rows; 0 for all.
        head: (layer, head) from 0, or None where the notebook chooses.
        annotation: not checked unless given, since not every notebook needs it.
        trainings: of every task; one if a checkpoint stands for those of some task.
        repeats: of a task without a checkpoint.
    """

    profile: Profile
    model: ModelSource
    checkpoints: tuple[tuple[str, ModelSource], ...]
    data: DataSource
    tasks: tuple[Task, ...]
    seed: int
    max_examples: int
    train_examples: int
    sweep_examples: int
    trainings: int
    repeats: int
    protocol: str
    weighing: str
    head: tuple[int, int] | None
    framenet: str
    annotation: str

    def trainings_of(self, task: Task) -> int:
        """How many fine-tuned models the task has."""
        return 1 if task.name in dict(self.checkpoints) else self.repeats

    def random_starts_of(self, task: Task) -> int:
        """How many models of the task start from random weights."""
        trained = task in parse_tasks(self.profile.random_tasks)
        return min(self.profile.random_starts, self.repeats) if trained else 0


def resolve(**given) -> Settings:
    """Check parameters and fill in the profile's values.

    Raises:
        ValueError, TypeError, FileNotFoundError: naming the parameter, its
            value and what is allowed.
    """
    for name, value in given.items():
        PARAMETERS[one_of("parameter", name, PARAMETERS)].refuse_wrong(name, value)
    values = {name: given.get(name, parameter.default) for name, parameter in PARAMETERS.items()}
    profile = get_profile(values["profile"])
    model = parse_model(values["model"] or profile.model)
    data = parse_data(values["data"] or profile.data, values["train_files"])
    checkpoints = parse_checkpoints(values["checkpoint"], model)
    if checkpoints and values["trainings"] > 1:
        raise ValueError(f"trainings={values['trainings']} with a checkpoint: there is one training only; leave trainings 0")
    values["repeats"] = values["trainings"] or profile.trainings
    values["trainings"] = 1 if checkpoints else values["repeats"]
    values["annotation"] = values["annotation"] or ("gold" if data.kind == "embedded" else profile.annotation)
    values |= {name: values[name] or getattr(profile, name) for name, of in PARAMETERS.items() if of.of_profile}
    for name in ("max_examples", "train_examples", "sweep_examples"):
        values[name] = max(0, values[name])  # what draws the rows takes 0 for all
    return Settings(
        profile=profile,
        model=model,
        checkpoints=checkpoints,
        data=data,
        tasks=parse_tasks(profile.tasks if values["tasks"] == "all" else values["tasks"]),
        head=_head(values["layer"], values["head"], model),
        framenet=check_framenet(values["framenet"]),
        **{
            name: values[name]
            for name in (
                "seed",
                "max_examples",
                "train_examples",
                "sweep_examples",
                "trainings",
                "repeats",
                "protocol",
                "weighing",
                "annotation",
            )
        },
    )


def _head(layer: int, head: int, model: ModelSource) -> tuple[int, int] | None:
    if layer == head == 0:
        return None
    if 0 in (layer, head):
        given, missing = ("layer", "head") if layer else ("head", "layer")
        raise ValueError(f"{given}={layer or head} without {missing}: give both, counted from 1, or neither")
    # Where only the Hub knows the model's shape, Experiment looks again.
    layers, heads = model.shape() or (layer, head)
    return to_code(layer, layers, "layer"), to_code(head, heads, "head")
