"""Registry of solvers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..settings import bind, registry
from .base import Solver

# In the order of the pages.
# isort: off
from .pcd import CD, PCD
from .pbcd import PBCD, PBCDLineSearch
from .proximal import NmAPGD
from .proximal import APGD, PGD
from .subgradient import SubGD
from .lbfgs import LBFGS
from .stochastic.psgd import SGD, PSGD, MiniBatchPSGD
from .stochastic.katyusha import Katyusha, MiniBatchKatyusha
from .quadratic_pgd import ExactPGD, IncrementalPGD
from .gcd import GCD
from .conditional_gradient import ConditionalGradient, ProjectedGradient
from .reweighted import Reweighted
from .two_stage import TwoStage
from .incremental_svd import IncrementalSVD
# isort: on

SOLVERS: dict[str, Solver] = registry(Solver, dict(globals()))
"""Every solver with its default settings, by name."""


def get_solver(given: str | Solver, settings: Mapping[str, Any] | None = None) -> Solver:
    """Return a given solver unchanged, or the one of that name with these settings.

    Raises
    ------
    ValueError
        If the name is unknown, a setting is not declared or not allowed, or settings are given beside a
        solver that has its own.
    """
    return bind(Solver, SOLVERS, given, settings)
