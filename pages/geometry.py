"""Unit balls and proximal operators in two and three dimensions."""

from fmviz.ui.geometry import render

render()
