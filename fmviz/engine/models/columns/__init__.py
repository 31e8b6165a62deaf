"""Kernels of the columns of P, and their views along entries and rows for compiled sweeps."""

from __future__ import annotations

from .anova import Anova
from .base import ColumnKernel, ColumnViews, EntryColumnView, RowColumnsView
from .polynomial import Polynomial
from .subsets import AllSubsetsKernel

__all__ = [
    "AllSubsetsKernel",
    "Anova",
    "ColumnKernel",
    "ColumnViews",
    "EntryColumnView",
    "Polynomial",
    "RowColumnsView",
]
