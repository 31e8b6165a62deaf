"""Figures and tables of papers, made again: each with its protocol, its statements and our numbers.

A new artefact is a module with an `ARTEFACT`, and one line in `ARTEFACTS`.
"""

from __future__ import annotations

from . import (
    atarashi2021_fig3,
    atarashi2021_table3,
    blondel2016_fig1,
    blondel2016_fig2,
    blondel2016_fig3,
    blondel2016_fig4,
)
from .base import BUDGETS, Artefact, Check, Picture, Published, Result, Statement

ARTEFACTS: dict[str, Artefact] = {
    one.name: one
    for one in (
        atarashi2021_fig3.ARTEFACT,
        atarashi2021_table3.ARTEFACT,
        blondel2016_fig1.ARTEFACT,
        blondel2016_fig2.ARTEFACT,
        blondel2016_fig3.ARTEFACT,
        blondel2016_fig4.ARTEFACT,
    )
}

__all__ = ["ARTEFACTS", "BUDGETS", "Artefact", "Check", "Picture", "Published", "Result", "Statement"]
