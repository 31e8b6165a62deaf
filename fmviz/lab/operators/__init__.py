"""Proximal operators applied to a matrix: the matrix, the results, and sentences about them."""

from __future__ import annotations

from .matrices import DISTRIBUTIONS, MAX_ENTRY, MAX_FEATURES, MAX_RANK, digest, parse_matrix, sample
from .study import (
    EXPONENTS,
    VARIANTS,
    Study,
    Variant,
    Worked,
    extinction,
    pairs,
    python_source,
    selects,
    study,
    what_is_special,
    with_degree,
    worked_example,
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
    "Worked",
    "digest",
    "extinction",
    "pairs",
    "parse_matrix",
    "python_source",
    "sample",
    "selects",
    "study",
    "what_is_special",
    "with_degree",
    "worked_example",
]
