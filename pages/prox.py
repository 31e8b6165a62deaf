"""The page of the proximal operators."""

from fmviz.ui.prox.page import render

render()
