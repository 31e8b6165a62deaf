"""Registry of models."""

from __future__ import annotations

from functools import partial

from ..settings import bind, registry
from .base import Model

# In the order of the pages.
# isort: off
from .factorization_machine import FactorizationMachine
from .higher_order import HigherOrder
from .all_subsets import AllSubsets
from .expansion import PolynomialNetwork
from .lifted import Lifted
from .quadratic import QuadraticRegression
from .convex import ConvexFM
from .shared_basis import SharedBasis
from .robust import RobustFM
# isort: on

MODELS: dict[str, Model] = registry(Model, dict(globals()))
"""All models with default parameters, by name."""
NAMED = MODELS | {"convex": MODELS["convex_fm"], "quadratic": MODELS["qr"]}
"""All models, including the aliases accepted by `get_model`."""


get_model = partial(bind, Model, NAMED)
"""Return a model unchanged, or create it by name with these settings; see `bind`."""
