"""The registry of penalties: one file and one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..settings import bind, registry
from .base import EntryView, MatrixView, Penalty, RowView, SpectralView

# The registry: a line for every penalty, in the order of the pages.
# isort: off
from .l2 import L2
from .l1 import L1
from .l21 import L21
from .ti import TI
from .cs import CS
from .omega_ti import OmegaTI
from .omega_cs import OmegaCS
from .omega_star import OmegaStar
from .powers import PowerTI, PowerCS
from .elastic_net import ElasticNet
# isort: on

PENALTIES: dict[str, Penalty] = registry(Penalty, dict(globals()))
"""Every penalty with its default parameters, by name."""


def get_penalty(given: str | Penalty, settings: Mapping[str, Any] | None = None) -> Penalty:
    """Return a penalty: the given one, or the one of that name with these parameters.

    Raises
    ------
    ValueError
        If the name is unknown, or a parameter is not declared or not allowed.
    """
    return bind(Penalty, PENALTIES, given, settings)
