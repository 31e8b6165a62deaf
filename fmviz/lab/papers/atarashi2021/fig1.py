"""Figure 1 of atarashi2021: what the operators of ℓ₁ and ℓ₂,₁ leave of P; a part of Figure 2."""

from dataclasses import replace

from fmviz.lab.papers.atarashi2021 import fig2

_FIG2 = fig2.ARTEFACT

ARTEFACT = replace(
    _FIG2,
    name="atarashi2021_fig1",
    title="Fig. 1: proximal operators of L1 and L21",
    statements=tuple(one for one in _FIG2.statements if one.key == "all_or_nothing"),
    # The first one is about TI.
    differences=_FIG2.differences[1:],
    settings={**_FIG2.settings, "methods": ["l1", "l21"]},
    published=(),
)
