"""Figures and tables of papers, reproduced: each with its protocol, its statements and our numbers.

A figure is a TOML file in ``figures/`` with its words, settings, grid of trials and printed numbers, and in
the module of its paper a function that makes the rows of a trial, one that judges them, and a line in
``ARTEFACTS``.
"""

from __future__ import annotations

from . import atarashi2021, blondel2016, blondel2017, robust_fm
from .base import BUDGETS, Artefact, Check, Result, Statement

ARTEFACTS: dict[str, Artefact] = {
    artefact.name: artefact
    for paper in (atarashi2021, blondel2016, blondel2017, robust_fm)
    for artefact in paper.ARTEFACTS
}


def find(name: str) -> Artefact:
    """Return an artefact by its name, or by a figure or table of atarashi2021, as in "fig2" and "table3a".

    Raises
    ------
    ValueError
        If there is none.
    """
    # A part of a table is made with all of it.
    for full in (name, f"atarashi2021_{name}", f"atarashi2021_{name.rstrip('ab')}"):
        if full in ARTEFACTS:
            return ARTEFACTS[full]
    raise ValueError(f"There is no {name!r}; there are {', '.join(ARTEFACTS)}.")


__all__ = ["ARTEFACTS", "BUDGETS", "Artefact", "Check", "Result", "Statement", "find"]
