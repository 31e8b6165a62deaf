"""Figures and tables of papers, reproduced: each with its protocol, its statements and our numbers.

A new figure is a TOML file with its words, settings and printed numbers in the folder of its paper, a module
beside it that names its runner and the judges of its statements, and its name in that folder's ``__init__``.
"""

from __future__ import annotations

from . import atarashi2021, blondel2016, blondel2017, robust_fm
from .base import BUDGETS, Artefact, Picture, Published, Result
from .statements import Check, Statement

ARTEFACTS: dict[str, Artefact] = {
    one.name: one for paper in (atarashi2021, blondel2016, blondel2017, robust_fm) for one in paper.ARTEFACTS
}

_MAIN = "atarashi2021"


def find(name: str) -> Artefact:
    """Return an artefact by its name, or by a figure or table of atarashi2021, as in "fig2" and "table3a".

    Raises
    ------
    ValueError
        If there is none.
    """
    # A part of a table is made with the whole.
    for full in (name, f"{_MAIN}_{name}", f"{_MAIN}_{name.rstrip('ab')}"):
        if full in ARTEFACTS:
            return ARTEFACTS[full]
    raise ValueError(f"There is no {name!r}; there are {', '.join(ARTEFACTS)}.")


__all__ = [
    "ARTEFACTS",
    "BUDGETS",
    "Artefact",
    "Check",
    "Picture",
    "Published",
    "Result",
    "Statement",
    "find",
]
