"""Fits along the strength λ̃, and the search for a number of interactions."""

from fmviz.ui.path import render

render()
