"""Figures and tables of Blondel, Niculae, Otsuka & Ueda (2017)."""

from . import fig2, fig3, fig4, fig5, table2, table4

ARTEFACTS = tuple(one.ARTEFACT for one in (fig2, fig3, fig4, fig5, table2, table4))
