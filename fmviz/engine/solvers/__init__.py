"""The registry of solvers: one file and one line each."""

from __future__ import annotations

from ..errors import one_of
from .base import Solver
from .gcd import GCD
from .katyusha import Katyusha, MiniBatchKatyusha
from .lbfgs import LBFGS
from .nmapgd import NmAPGD
from .pbcd import PBCD, PBCDLineSearch
from .pcd import CD, PCD
from .proximal import APGD, PGD
from .psgd import PSGD, SGD, MiniBatchPSGD
from .slqr import ExactPGD, IncrementalPGD
from .subgradient import SubGD

__all__ = ["SOLVERS", "Solver", "get_solver"]

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


def get_solver(name: str) -> type[Solver]:
    """Return the solver called `name`, or raise ValueError with the allowed names."""
    return SOLVERS[one_of("solver", name, SOLVERS)]
