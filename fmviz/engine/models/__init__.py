"""Registry of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
"""Every model with its default parameters, by name."""
ALIASES = {"convex": "convex_fm", "quadratic": "qr"}
"""Words for two of the names, as `get_model` takes them, too."""


def get_model(given: str | Model, settings: Mapping[str, Any] | None = None) -> Model:
    """Return a given model unchanged, or the one of that name with these settings.

    Raises
    ------
    ValueError
        If the name is unknown, or a setting is not declared or not allowed.
    """
    return bind(Model, MODELS, ALIASES.get(given, given) if isinstance(given, str) else given, settings)
