"""Reproduced figures and tables of papers, with protocols, statements and numbers.

A figure consists of a TOML file in ``figures/`` with texts, settings, grid of trials and printed numbers,
and, in the module of its paper, of a function that computes the rows of a trial, a function that judges them,
and an entry in in ``ARTEFACTS``.
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
    """Return an artefact by name; figures and tables of atarashi2021 also as "fig2" or "table3a".

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    # Parts of a table are computed with the entire table.
    for full in (name, f"atarashi2021_{name}", f"atarashi2021_{name.rstrip('ab')}"):
        if full in ARTEFACTS:
            return ARTEFACTS[full]
    raise ValueError(f"Unknown artefact {name!r}; available: {', '.join(ARTEFACTS)}.")


__all__ = ["ARTEFACTS", "BUDGETS", "Artefact", "Check", "Result", "Statement", "find"]
