"""The page of the proximal operators."""

from fmviz.ui.views.prox import render

render()
