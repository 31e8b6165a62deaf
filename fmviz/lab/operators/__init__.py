"""Proximal operators applied to a matrix: the matrix, the results, and sentences about them."""

from __future__ import annotations

from .study import (
    DISTRIBUTIONS,
    EXPONENTS,
    MAX_ENTRY,
    MAX_FEATURES,
    MAX_RANK,
    VARIANTS,
    Study,
    Variant,
    parse_matrix,
    python_source,
    sample,
    study,
    with_degree,
    worked_table,
)

__all__ = [
    "DISTRIBUTIONS",
    "EXPONENTS",
    "MAX_ENTRY",
    "MAX_FEATURES",
    "MAX_RANK",
    "VARIANTS",
    "Study",
    "Variant",
    "parse_matrix",
    "python_source",
    "sample",
    "study",
    "with_degree",
    "worked_table",
]
