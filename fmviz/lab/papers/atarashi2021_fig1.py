"""Figure 1 of atarashi2021: what the operators of ℓ₁ and ℓ₂,₁ leave of P."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fmviz.lab.papers.base import Artefact, Check, Picture, Tables
from fmviz.lab.papers.protocols import operators as operators
from fmviz.lab.papers.protocols.shared import ATARASHI2021

METHODS = ("l1", "l21")


def _judge(tables: Tables, settings: Mapping[str, Any]) -> Iterator[Check]:
    yield from operators.all_or_nothing(tables, settings["methods"])


ARTEFACT = Artefact(
    name="atarashi2021_fig1",
    paper=ATARASHI2021,
    title="Fig. 1: proximal operators of L1 and L21",
    statements=(operators.ALL_OR_NOTHING,),
    differences=operators.DIFFERENCES,
    settings={**operators.SETTINGS, "methods": list(METHODS)},
    budgets=operators.BUDGETS,
    minutes=operators.MINUTES,
    runner=operators.run,
    judge=_judge,
    picture=Picture("operators", {"x_title": "λ", "y_title": "Pairs used"}),
)
