"""Figure 2 of atarashi2021: what the operators of TI and CS leave of P, beside those of ℓ₁ and ℓ₂,₁."""

from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols import operators

ARTEFACT = figure(
    __name__,
    operators.run,
    {
        "moderately_sparse": operators.moderately_sparse,
        "all_or_nothing": operators.all_or_nothing,
        "ti_features": operators.keeps_all_features,
        "cs_features": operators.falls_gradually,
    },
)
