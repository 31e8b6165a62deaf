"""Figures and tables of papers, made again: each with its protocol, its statements and our numbers.

A new artefact is a module with an `ARTEFACT`, and one line in `ARTEFACTS`.
"""

from __future__ import annotations

from . import (
    atarashi2021_fig1,
    atarashi2021_fig2,
    atarashi2021_fig3,
    atarashi2021_fig4,
    atarashi2021_fig5,
    atarashi2021_fig6,
    atarashi2021_fig7,
    atarashi2021_fig8,
    atarashi2021_fig9,
    atarashi2021_fig10,
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
        atarashi2021_fig1.ARTEFACT,
        atarashi2021_fig2.ARTEFACT,
        atarashi2021_fig3.ARTEFACT,
        atarashi2021_fig4.ARTEFACT,
        atarashi2021_fig5.ARTEFACT,
        atarashi2021_fig6.ARTEFACT,
        atarashi2021_fig7.ARTEFACT,
        atarashi2021_fig8.ARTEFACT,
        atarashi2021_fig9.ARTEFACT,
        atarashi2021_fig10.ARTEFACT,
        atarashi2021_table3.ARTEFACT,
        blondel2016_fig1.ARTEFACT,
        blondel2016_fig2.ARTEFACT,
        blondel2016_fig3.ARTEFACT,
        blondel2016_fig4.ARTEFACT,
    )
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
