"""The registry of regularizers: one file and one line each."""

from __future__ import annotations

from ..errors import one_of
from .base import CoordinatePenalty, MatrixOperator, Regularizer, RowPenalty
from .cs import CS
from .l1 import L1
from .l2 import L2
from .l21 import L21
from .omega_cs import OmegaCS
from .omega_star import OmegaStar
from .omega_ti import OmegaTI
from .powers import PowerCS, PowerTI
from .ti import TI

__all__ = [
    "REGULARIZERS",
    "CoordinatePenalty",
    "MatrixOperator",
    "Regularizer",
    "RowPenalty",
    "get_regularizer",
]

REGULARIZERS: dict[str, Regularizer] = {
    r.name: r
    for r in (L2(), L1(), L21(), TI(), CS(), OmegaTI(), OmegaCS(), OmegaStar(), PowerTI(), PowerCS())
}


def get_regularizer(name: str) -> Regularizer:
    """Return the regularizer called `name`, or raise ValueError with the allowed names."""
    return REGULARIZERS[one_of("regularizer", name, REGULARIZERS)]
