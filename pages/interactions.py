"""A fitted model read: its interactions in words."""

from fmviz.ui.views.interactions import render

render()
