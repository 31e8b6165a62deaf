"""The registry of solvers: one file and one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import one_of
from .base import Solver
from .gcd import GCD
from .katyusha import Katyusha, MiniBatchKatyusha
from .lbfgs import LBFGS
from .nmapgd import NmAPGD
from .pbcd import PBCD
from .pbcd_line_search import PBCDLineSearch
from .pcd import CD, PCD
from .proximal import APGD, PGD
from .psgd import PSGD, SGD, MiniBatchPSGD
from .slqr import ExactPGD, IncrementalPGD
from .subgradient import SubGD

__all__ = [
    "APGD",
    "CD",
    "GCD",
    "LBFGS",
    "PBCD",
    "PCD",
    "PGD",
    "PSGD",
    "SGD",
    "SOLVERS",
    "ExactPGD",
    "IncrementalPGD",
    "Katyusha",
    "MiniBatchKatyusha",
    "MiniBatchPSGD",
    "NmAPGD",
    "PBCDLineSearch",
    "Solver",
    "SubGD",
    "get_solver",
]

SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for solver in (
        CD(),
        PCD(),
        PBCD(),
        PBCDLineSearch(),
        NmAPGD(),
        APGD(),
        PGD(),
        SubGD(),
        LBFGS(),
        SGD(),
        PSGD(),
        MiniBatchPSGD(),
        Katyusha(),
        MiniBatchKatyusha(),
        ExactPGD(),
        IncrementalPGD(),
        GCD(),
    )
}


def get_solver(given: str | Solver, settings: Mapping[str, Any] | None = None) -> Solver:
    """Return a solver: the given one, or the one of that name with these settings.

    Raises
    ------
    ValueError
        If the name is unknown, a setting is not declared or not allowed, or settings are given beside a
        solver that has its own.
    """
    if isinstance(given, Solver):
        if settings:
            raise ValueError(
                f"{given!r} has its settings already; leave {', '.join(settings)} out, or give the name "
                f"{given.name!r}."
            )
        return given
    return type(SOLVERS[one_of("solver", given, SOLVERS)])(**(settings or {}))
