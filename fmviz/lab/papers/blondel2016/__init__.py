"""Figures of Blondel, Ishihata, Fujino & Ueda (2016)."""

from . import fig1, fig2, fig3, fig4

ARTEFACTS = tuple(one.ARTEFACT for one in (fig1, fig2, fig3, fig4))
