"""The all-subsets model ([A] Section 6.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import WhyNot
from . import columns
from .columnar import LONGER, ColumnModel


@dataclass(frozen=True)
class AllSubsets(ColumnModel):
    """f(x) = b + ⟨w, x⟩ + Σ_s Π_j (1 + p_js x_j).

    The products include the empty subset and single features, which add a constant k and a linear term
    Σ_s⟨p_:,s, x⟩.
    """

    name = "all_subsets"
    label = "All subsets"
    formula = r"f(x) = b + \langle w, x\rangle + \sum_{s}\prod_{j} (1 + p_{js}\,x_j)"
    overflow_cause = "A product of 1 + p_js x_j over many features grows exponentially. "
    # The products include a constant, which only a bias can compensate.
    suited: ClassVar[Mapping[str, Any]] = {"fit_intercept": True, **LONGER}
    kernels: ClassVar[Any] = (columns.AllSubsetsKernel(),)

    no_threshold: ClassVar[WhyNot | None] = WhyNot(
        "no_saddle",
        "At P = 0, every factor 1 + p_j x_j is 1, and f changes linearly with P: P = 0 is not a saddle point "
        "that a strength could turn into a minimum. Decrease λ starting from an empty fit.",
    )
