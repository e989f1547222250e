"""The confirmatory study: the rules that were frozen before it, and its verdicts.

``results/confirm`` has the study's results and ``frozen.toml``: the commit in which the rules were
frozen and, for each claim that GLUE's rows decide, the digest of its rule. Neither a run nor a
reader accepts other rules.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from .cache import write_atomically
from .results import read_results
from .verdicts import CLAIMS, Verdicts

FOLDER, FROZEN = "confirm", "frozen.toml"  # below results/, and the file there


@dataclass(frozen=True)
class Frozen:
    """The rules that a confirmatory study tests.

    Attributes:
        commit: in which they were frozen.
        rules: digests by claim.
    """

    commit: str
    rules: Mapping[str, str]


def freeze(results: Path, notebooks: Collection[int], commit: str) -> Path:
    """Write the rules of the claims that these notebooks judge on rows of GLUE.

    Args:
        results: the folder ``results``.
        notebooks: their numbers.
        commit: which has these rules.

    Raises:
        ValueError: there are results of the study already.
    """
    folder = results / FOLDER
    if old := sorted(folder.glob("*.json")):
        raise ValueError(
            f"results/{FOLDER} has results already ({old[0].name}), made under the frozen rules; for"
            f" another study, with other rows, move the folder away first"
        )
    frozen = [one for one in CLAIMS.values() if one.glue and one.notebook in notebooks]
    rules = [f'{one.id} = "{one.digest}"  # {one.rule_in_words}\n' for one in frozen]
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / FROZEN, f'commit = "{commit}"\n\n[rules]\n{"".join(rules)}'.encode())
    return folder / FROZEN


def read_frozen(results: Path, notebooks: Collection[int] = ()) -> Frozen:
    """The frozen rules that are still those of ``claims.toml``.

    Of a notebook that the study has not run, a rule may change: it is then no longer frozen.

    Args:
        results: the folder ``results``.
        notebooks: numbers of those that the study is about to run.

    Raises:
        ValueError: nothing was frozen, or rules of a notebook that was run, or is about to be, have
            changed since; names the claims.
    """
    path, advice = results / FOLDER / FROZEN, "python -m docs.evidence --freeze"
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        frozen = Frozen(content["commit"], content["rules"])
    except FileNotFoundError:
        raise ValueError(
            f"a confirmatory study needs frozen rules; freeze them: {advice}"
        ) from None
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"results/{FOLDER}/{FROZEN} cannot be read ({error}); take it from version control"
        ) from error
    kept = {
        name: rule
        for name, rule in frozen.rules.items()
        if name in CLAIMS and CLAIMS[name].digest == rule
    }
    studied = {*notebooks, *(int(one.name.split("_")[0]) for one in path.parent.glob("*.json"))}
    changed = [
        name
        for name in frozen.rules.keys() - kept.keys()
        if name not in CLAIMS or CLAIMS[name].notebook in studied
    ]
    if changed:
        raise ValueError(
            f"rules differ from those frozen in {frozen.commit[:10]}: {', '.join(sorted(changed))}; restore"
            f" them in claims.toml, or, while there are no confirmatory results, freeze anew: {advice}"
        )
    return Frozen(frozen.commit, kept)


def read_confirmed(results: Path, number: str) -> Verdicts | None:
    """A notebook's confirmatory verdicts by claim and model; None where there is no such study.

    A claim that was not frozen has no confirmatory verdict.

    Args:
        results: the folder ``results``.
        number: the notebook's.

    Raises:
        ValueError: as :func:`read_frozen`; or a verdict that was made by another rule.
    """
    paths = sorted((results / FOLDER).glob(f"{number}_*.json"))
    if not paths:
        return None
    frozen = read_frozen(results)
    found = {
        at: one for at, one in read_results(paths[0]).verdicts.items() if at[0] in frozen.rules
    }
    other = [name for (name, _), one in found.items() if one.get("rule") != frozen.rules[name]]
    if other:
        raise ValueError(
            f"results/{FOLDER}/{paths[0].name} judged by other rules than those frozen in"
            f" {frozen.commit[:10]}: {', '.join(other)}; renew it: make evidence CONFIRM=FOLDER"
            f" ONLY={number}"
        )
    return found
