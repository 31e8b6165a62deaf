"""Reproductions of figures and tables of papers: protocols, fits, and checks of the papers' statements.

A figure has a TOML file in ``figures/`` with its texts, settings, grid of trials and published numbers, and
in the module of its paper a function that computes the rows of a trial, one that judges them, and a line in
``ARTEFACTS``.
"""

from __future__ import annotations

from . import atarashi2021, blondel2016, blondel2017, robust_fm
from .base import BUDGETS, Artefact, Claim

ARTEFACTS: dict[str, Artefact] = {
    artefact.name: artefact
    for paper in (atarashi2021, blondel2016, blondel2017, robust_fm)
    for artefact in paper.ARTEFACTS
}

__all__ = ["ARTEFACTS", "BUDGETS", "Artefact", "Claim"]
