"""Fits along the strength λ̃, and the search for a number of interactions."""

from fmviz.ui.views.path import render

render()
