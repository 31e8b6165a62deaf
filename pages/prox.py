"""The page of the proximal operators."""

from fmviz.ui.prox import render

render()
