"""The registry of penalties: one file and one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..params import bind
from .base import EntryView, MatrixView, Penalty, RowView, SpectralView
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
    "CS",
    "L1",
    "L2",
    "L21",
    "PENALTIES",
    "TI",
    "EntryView",
    "MatrixView",
    "OmegaCS",
    "OmegaStar",
    "OmegaTI",
    "Penalty",
    "PowerCS",
    "PowerTI",
    "RowView",
    "SpectralView",
    "get_penalty",
]

PENALTIES: dict[str, Penalty] = {
    penalty.name: penalty
    for penalty in (
        L2(),
        L1(),
        L21(),
        TI(),
        CS(),
        OmegaTI(),
        OmegaCS(),
        OmegaStar(),
        PowerTI(),
        PowerCS(),
    )
}


def get_penalty(given: str | Penalty, settings: Mapping[str, Any] | None = None) -> Penalty:
    """Return a penalty: the given one, or the one of that name with these parameters.

    Raises
    ------
    ValueError
        If the name is unknown, or a parameter is not declared or not allowed.
    """
    return bind(Penalty, PENALTIES, given, settings)
