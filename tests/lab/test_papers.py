"""Shipped results of papers, by their names."""

from __future__ import annotations

import pytest

from fmviz.lab.papers import full_name, summaries


def test_short_names():
    names = summaries()
    assert full_name("fig2", names) == full_name("atarashi2021_fig2", names) == "atarashi2021_fig2"
    assert full_name("table3a", names) == full_name("table3b", names) == "atarashi2021_table3"
    assert full_name("blondel2016_fig2", names) == "blondel2016_fig2"
    with pytest.raises(ValueError, match=r"no 'fig99'; there are atarashi2021_fig1, "):
        full_name("fig99", names)
