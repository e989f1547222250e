"""What an installation lacks of the package's own requirements."""

from dataclasses import dataclass
from importlib import metadata

from packaging.requirements import Requirement

DISTRIBUTION = "bertology-utils"


@dataclass(frozen=True)
class Unmet:
    """A requirement that is not met.

    Attributes:
        requirement: as ``pyproject.toml`` has it.
        found: the version that is installed; "" if none is.
    """

    requirement: Requirement
    found: str

    def __str__(self) -> str:
        """In a line."""
        return f"{self.requirement} is needed, {self.found or 'none'} is installed"


def unmet() -> list[Unmet]:
    """The requirements that are not met, without those of the extras."""
    problems = []
    for requirement in map(Requirement, metadata.requires(DISTRIBUTION) or []):
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        found = installed(requirement.name)
        if not found or not requirement.specifier.contains(found, prereleases=True):
            problems.append(Unmet(requirement, found))
    return problems


def installed(name: str) -> str:
    """The version of a distribution; "" if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
