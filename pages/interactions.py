"""A fitted model read: its interactions in words."""

from fmviz.ui.interactions.page import render

render()
