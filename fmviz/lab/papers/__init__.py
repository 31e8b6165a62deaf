"""Shipped results of reproduced figures and tables of papers, with the checks of the papers' statements.

They are computed in a checkout by ``python -m papers NAME`` and written by ``make results``. A file in the
folder ``shipped`` has two lines of JSON, compressed: a `Summary` and a `Result`.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from fmviz.checked import checked
from fmviz.lab.values import plain

Row = dict[str, Any]
Tables = Mapping[str, Sequence[Row]]
Verdict = Literal["holds", "does not hold", "not settled"]

FOLDER = Path(__file__).parent / "shipped"
_SUFFIX = ".json.gz"


@dataclass(frozen=True)
class Statement:
    """A statement of a paper.

    Attributes
    ----------
    key : str
        Its name in the artefact.
    text, where : str
        The statement, and its location in the paper.
    """

    key: str
    text: str
    where: str


@dataclass(frozen=True)
class Check:
    """The verdict on a statement in one case, with a sentence of measured numbers."""

    statement: str
    case: str
    verdict: Verdict
    measured: str


@dataclass(frozen=True)
class Result:
    """A reproduced figure or table, as plain data.

    Attributes
    ----------
    artefact, paper, title : str
        The name, ``<paper>_<figure>``, the reference of the paper, and the heading.
    statements : tuple of Statement
        The paper's statements about it.
    picture : mapping
        The figure as Plotly JSON.
    budget, settings
        "quick" or "full", and all settings.
    tables : mapping of str to list of dict
        The numbers.
    checks : tuple of Check
        Verdicts on the statements.
    compared : tuple of dict
        Published and reproduced numbers: ``what``, ``published``, ``ours``, the relative ``deviation``,
        whether it is ``within`` the tolerance, and ``source``.
    data, versions : mapping of str to str
        Digests of the data sets; versions of Python and of packages.
    differences : tuple of str
        Differences from the paper's protocol: those declared, and those of this run.
    seconds : float
        Wall time, that of interrupted runs included.
    state : {"complete", "stopped"}
        Whether all trials were completed.
    """

    artefact: str
    paper: str
    title: str
    statements: tuple[Statement, ...]
    picture: Mapping[str, Any]
    budget: str
    settings: Mapping[str, Any]
    tables: Tables
    checks: tuple[Check, ...]
    compared: tuple[Row, ...]
    data: Mapping[str, str]
    differences: tuple[str, ...]
    versions: Mapping[str, str]
    seconds: float
    state: Literal["complete", "stopped"]

    @property
    def command(self) -> str:
        """The command that reproduces it in a checkout."""
        return f"python -m papers {self.artefact} --budget {self.budget}"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a JSON-serializable dictionary."""
        return plain(asdict(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Result:
        """Return the result of `to_dict`; raise ValueError if a field is missing, unknown or invalid."""
        return checked(cls, values)


@dataclass(frozen=True)
class Summary:
    """A shipped result in brief.

    Attributes
    ----------
    artefact, paper, title, budget : str
        As in `Result`.
    statement : Statement
        The first one.
    created : float
        Seconds since the epoch.
    verdicts : mapping of str to int
        The number of checks by verdict.
    without : tuple of str
        Data sets of the settings that were not available.
    thumbnail : str
        One panel of the figure, as SVG.
    """

    artefact: str
    paper: str
    title: str
    budget: str
    statement: Statement
    created: float
    verdicts: Mapping[str, int]
    without: tuple[str, ...]
    thumbnail: str


@cache
def summaries() -> Mapping[str, Summary]:
    """Return the summaries of all shipped results by artefact, sorted by paper and number."""
    return {
        path.name.removesuffix(_SUFFIX): checked(Summary, _parsed(path, 0))
        for path in sorted(FOLDER.glob(f"*{_SUFFIX}"), key=_in_order)
    }


def shipped_result(artefact: str) -> Result:
    """Return the shipped result of an artefact."""
    return Result.from_dict(_parsed(path_of(artefact), 1))


def path_of(artefact: str) -> Path:
    """Return the file of a shipped result."""
    return FOLDER / f"{artefact}{_SUFFIX}"


def full_name(name: str, names: Collection[str]) -> str:
    """Return the name of an artefact among `names`, also for a figure or table of atarashi2021, as in "fig2".

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    # Parts of a table, as in "table3a", are in its result.
    for full in (name, f"atarashi2021_{name}", f"atarashi2021_{name.rstrip('ab')}"):
        if full in names:
            return full
    raise ValueError(f"There is no {name!r}; there are {', '.join(names)}.")


def _parsed(path: Path, line: int) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.loads(next(islice(file, line, None)))


def _in_order(path: Path) -> list[str | int]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", path.name)]
