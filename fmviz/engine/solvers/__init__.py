"""The registry of solvers: one file and one line each."""

from __future__ import annotations

from typing import Any

from ..errors import one_of
from ..problem import Problem
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

__all__ = ["SOLVERS", "Solver", "get_solver", "make_solver"]

SOLVERS: dict[str, type[Solver]] = {
    s.name: s
    for s in (
        CD,
        PCD,
        PBCD,
        PBCDLineSearch,
        NmAPGD,
        APGD,
        PGD,
        SubGD,
        LBFGS,
        SGD,
        PSGD,
        MiniBatchPSGD,
        Katyusha,
        MiniBatchKatyusha,
        ExactPGD,
        IncrementalPGD,
        GCD,
    )
}


def make_solver(name: str, problem: Problem, **params: Any) -> Solver:
    """Return the solver called `name`, as it is for the problem's model, with its own parameters."""
    return get_solver(name).for_model(problem.model)(problem, **params)


def get_solver(name: str) -> type[Solver]:
    """Return the solver called `name`, or raise ValueError with the allowed names."""
    return SOLVERS[one_of("solver", name, SOLVERS)]
