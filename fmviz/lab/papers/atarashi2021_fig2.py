"""Figure 2 of atarashi2021: what the operators of TI and CS leave of P, beside those of ℓ₁ and ℓ₂,₁."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fmviz.lab.papers.base import Artefact, Check, Picture, Published, Statement, Tables
from fmviz.lab.papers.protocols import operators as operators
from fmviz.lab.papers.protocols.shared import ATARASHI2021

METHODS = ("l1", "l21", "ti", "ti_rows", "cs")


def _judge(tables: Tables, settings: Mapping[str, Any]) -> Iterator[Check]:
    yield from operators.all_or_nothing(tables, ("l1", "l21"))
    yield from operators.moderately_sparse(tables)
    yield from operators.keeps_all_features(tables, settings)
    yield from operators.falls_gradually(tables, settings)


ARTEFACT = Artefact(
    name="atarashi2021_fig2",
    paper=ATARASHI2021,
    title="Fig. 2: proximal operators of TI, CS, L21 and L1",
    statements=(
        Statement(
            "moderately_sparse",
            "Unlike the existing methods (L1 and L21), the proposed methods (TI and CS) could produce sparse "
            "but moderately sparse feature interaction matrices.",
            "8.1",
        ),
        operators.ALL_OR_NOTHING,
        Statement(
            "ti_features", "The number of used features in TI was 200 for all λ ∈ {2⁻⁷, …, 2⁷}.", "8.1"
        ),
        Statement(
            "cs_features", "The number of used features in CS decreased gradually as λ increased.", "8.1"
        ),
    ),
    differences=(
        "The definition of TI (Eq. 20 and 30) squares the norms of the columns of P. The statement on its "
        "used features agrees with squared norms of the rows only: both readings are shown.",
        *operators.DIFFERENCES,
    ),
    settings={**operators.SETTINGS, "methods": list(METHODS)},
    budgets=operators.BUDGETS,
    minutes=operators.MINUTES,
    runner=operators.run,
    judge=_judge,
    picture=Picture("operators", {"x_title": "λ", "y_title": "Pairs used"}),
    published=tuple(
        Published(
            "counts",
            {"method": operators.LABELS[name], "seed": 0, "log2_lambda": exponent},
            "features",
            200,
            "8.1",
        )
        for name in ("ti", "ti_rows")
        for exponent in (-7, 7)
    ),
)
