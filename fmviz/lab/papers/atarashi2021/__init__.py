"""Figures and tables of Atarashi, Oyama & Kurihara (2021)."""

from . import fig1, fig2, fig3, fig4, fig5, fig6, fig7, fig8, fig9, fig10, table3

_MODULES = (fig1, fig2, fig3, fig4, fig5, fig6, fig7, fig8, fig9, fig10, table3)
ARTEFACTS = tuple(one.ARTEFACT for one in _MODULES)
