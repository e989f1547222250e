"""Every notebook parameter, declared once: the cell, the check, the help, `list` and the settings are made from this."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..annotation.sources import parse_annotation
from ..common import DIRECTIONS, PROTOCOLS, WEIGHINGS, one_of
from ..common.profiles import ALL, PROFILES
from ..framenet.sources import check_framenet
from ..glue.tasks import parse_tasks

_LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Parameter:
    """What a notebook may declare.

    Attributes:
        default: its value in a notebook's cell; its type is the parameter's.
        meaning: in a line.
        choices: all allowed values, where they can be listed.
        least: the smallest allowed number.
        of_profile: empty text or 0 stands for the profile's value of the same name.
        check: for other texts; raises ValueError or FileNotFoundError.
    """

    default: str | int
    meaning: str
    choices: tuple[str, ...] = ()
    least: int = 0
    of_profile: bool = False
    check: Callable[[str], object] | None = None

    @property
    def kind(self) -> type:
        """Str or int."""
        return type(self.default)

    def help(self) -> str:
        """Its meaning with what it may be."""
        return self._explained(self.meaning + (f": {', '.join(self.choices)}" if self.choices else ""))

    def comment(self) -> str:
        """What stands beside it in the cell: how Colab asks for it, with the choices, and its meaning."""
        of_kind = '{type:"string"}' if self.kind is str else '{type:"integer"}'
        form = f"# @param {json.dumps(self.choices) if self.choices else of_kind}"
        return f"{form:<25}  # {self._explained(self.meaning)}"

    def _explained(self, text: str) -> str:
        if self.of_profile:
            text += f"; {'empty' if self.kind is str else 0}: the profile's"
        return text + (f"; {ALL}: all" if self.least == ALL else "")

    def refuse_wrong(self, name: str, value: object) -> None:
        """Raise TypeError, ValueError or FileNotFoundError for a value that it may not have."""
        if type(value) is not self.kind:
            raise TypeError(f"{name}={value!r} is of type {type(value).__name__}, {self.kind.__name__} is wanted")
        if isinstance(value, int) and not self.least <= value <= _LARGEST:
            least = f"{ALL} ({ALL} means all)" if self.least == ALL else self.least
            raise ValueError(f"{name}={value!r} is out of range; it is a whole number from {least} to 2**31 - 1")
        if self.choices:
            one_of(name, value, self.choices)
        if self.check and isinstance(value, str) and value:
            self.check(value)


# fmt: off
PARAMETERS = {
    "profile": Parameter("embedded", "model, data, sizes and recipe", tuple(PROFILES)),
    "model": Parameter("", "encoder: embedded, a folder, or a Hub name", of_profile=True),
    "checkpoint": Parameter("", "own classifiers instead of trainings: TASK=FOLDER,TASK=FOLDER"),
    "data": Parameter("", "rows: embedded, hub or folder:PATH", of_profile=True),
    "train_files": Parameter("", "with a folder, training files of other names: TASK=FILE,TASK=FILE"),
    "tasks": Parameter("all", "all, or names with commas between", check=parse_tasks),
    "annotation": Parameter("", "gold (with embedded data), spacy:NAME or conllu:PATH", of_profile=True,
                            check=parse_annotation),
    "framenet": Parameter("", "embedded, nltk, folder:PATH or zip:PATH", of_profile=True, check=check_framenet),
    "protocol": Parameter("paper", "the paper's text or its published code", PROTOCOLS),
    "weighing": Parameter(WEIGHINGS[0], "what maps are of: attention weights, or what they carry", WEIGHINGS),
    "direction": Parameter(DIRECTIONS[0], "who attends", DIRECTIONS),
    "sentence_tokens": Parameter(0, "most tokens of a sentence; 0: the protocol's (the paper: 12)"),
    "element_tokens": Parameter(0, "most tokens of an element; 0: the protocol's (the paper: 3)"),
    "nearest": Parameter(0, "fewest tokens from predicate to element; 0: the protocol's (the paper: 2)"),
    "seed": Parameter(1, "of every random draw"),
    "max_examples": Parameter(0, "dev rows whose maps are measured", least=ALL, of_profile=True),
    "train_examples": Parameter(0, "training rows per task", least=ALL, of_profile=True),
    "sweep_examples": Parameter(0, "dev rows on which heads are disabled", least=ALL, of_profile=True),
    "trainings": Parameter(0, "fine-tuned models per task", of_profile=True),
    "layer": Parameter(0, "of the head that is drawn, from 1; 0: the notebook chooses"),
    "head": Parameter(0, "of the head that is drawn, from 1; 0: the notebook chooses"),
}
# fmt: on

# Where a notebook's cell has another default than the declaration.
_OTHER_DEFAULTS: dict[str, dict[str, str | int]] = {
    "0_attention_head": {"tasks": "mrpc"},
    "6_disabling_heads": {"tasks": "mrpc,stsb,sst2,rte", "framenet": "embedded"},
    "7_what_attention_weighs": {"max_examples": 100, "framenet": "embedded"},
    "8_bert_base": {"max_examples": 100},
}


def parameters_cell(notebook: str, names: Iterable[str]) -> str:
    """Source of a notebook's parameters cell.

    Args:
        notebook: its name without suffix.
        names: of the parameters that it declares, in their order.

    Raises:
        ValueError: for an unknown name.
    """
    other = _OTHER_DEFAULTS.get(notebook, {})
    lines = []
    for name in names:
        parameter = PARAMETERS[one_of("parameter", name, PARAMETERS)]
        value = json.dumps(other.get(name, parameter.default), ensure_ascii=False)
        lines.append(f"{f'{name} = {value}':<20}  {parameter.comment()}")
    return "\n".join(lines)


def profile_values(name: str) -> str:
    """What the profiles say of a parameter, for people: "embedded 2, minilm 3, paper 3"; "" if nothing."""
    if not PARAMETERS[name].of_profile:
        return ""
    values = {profile.name: getattr(profile, name) for profile in PROFILES.values()}
    if name == "annotation":  # the embedded corpora bring their own
        values |= {profile.name: "gold" for profile in PROFILES.values() if profile.data == "embedded"}
    return ", ".join(f"{profile} {'all' if value == ALL else value}" for profile, value in values.items())


def convert(name: str, text: str) -> str | int:
    """A value from the command line, in the parameter's type; "all" stands for -1 where that is allowed.

    Raises:
        ValueError: unknown name, or text that is not of the type.
    """
    parameter = PARAMETERS[one_of("parameter", name, PARAMETERS)]
    if parameter.kind is str:
        return text
    if parameter.least == ALL and text.strip().lower() == "all":
        return ALL
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name}={text!r} is not of type int") from None
