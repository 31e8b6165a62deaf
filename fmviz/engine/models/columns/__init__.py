"""What columns of P stand for, and how sweeps see them: one file for every kernel."""

from __future__ import annotations

from .anova import Anova
from .base import ColumnKernel, ColumnViews, EntryColumnView, RowColumnsView
from .polynomial import Polynomial
from .subsets import AllSubsets

__all__ = [
    "AllSubsets",
    "Anova",
    "ColumnKernel",
    "ColumnViews",
    "EntryColumnView",
    "Polynomial",
    "RowColumnsView",
]
