"""Unit balls and proximal operators in two and three dimensions."""

from fmviz.ui.views.geometry import render

render()
