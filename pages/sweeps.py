"""Many fits, declared at once."""

from fmviz.ui.sweeps import render

render()
