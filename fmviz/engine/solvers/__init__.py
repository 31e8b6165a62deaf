"""Registry of solvers."""

from __future__ import annotations

from functools import partial

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
"""All solvers with default settings, by name."""


get_solver = partial(bind, Solver, SOLVERS)
"""Return a solver unchanged, or create it by name with these settings; see `bind`."""
