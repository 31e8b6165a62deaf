"""Figure 2 of atarashi2021: what the operators of TI and CS leave of P, beside those of ℓ₁ and ℓ₂,₁."""

from fmviz.lab.papers.base import Published, Statement
from fmviz.lab.papers.protocols import operators
from fmviz.lab.papers.protocols.operators import LABELS

ARTEFACT = operators.figure(
    ("l1", "l21", "ti", "ti_rows", "cs"),
    name="atarashi2021_fig2",
    title="Fig. 2: proximal operators of TI, CS, L21 and L1",
    statements=(
        Statement(
            "moderately_sparse",
            "Unlike the existing methods (L1 and L21), the proposed methods (TI and CS) could produce sparse "
            "but moderately sparse feature interaction matrices.",
            "8.1",
            operators.moderately_sparse,
        ),
        operators.ALL_OR_NOTHING,
        Statement(
            "ti_features",
            "The number of used features in TI was 200 for all λ ∈ {2⁻⁷, …, 2⁷}.",
            "8.1",
            operators.keeps_all_features,
        ),
        Statement(
            "cs_features",
            "The number of used features in CS decreased gradually as λ increased.",
            "8.1",
            operators.falls_gradually,
        ),
    ),
    differences=(
        "The definition of TI (Eq. 20 and 30) squares the norms of the columns of P. The statement on its "
        "used features agrees with squared norms of the rows only: both readings are shown.",
    ),
    published=tuple(
        Published(
            "counts", {"method": LABELS[name], "seed": 0, "log2_lambda": exponent}, "features", 200, "8.1"
        )
        for name in ("ti", "ti_rows")
        for exponent in (-7, 7)
    ),
)
