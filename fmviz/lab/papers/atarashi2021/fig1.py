"""Figure 1 of atarashi2021: what the operators of ℓ₁ and ℓ₂,₁ leave of P."""

from fmviz.lab.papers.protocols import operators

ARTEFACT = operators.figure(
    ("l1", "l21"),
    name="atarashi2021_fig1",
    title="Fig. 1: proximal operators of L1 and L21",
    statements=(operators.ALL_OR_NOTHING,),
)
