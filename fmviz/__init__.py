"""fmviz: see and train sparse factorization machines.

The names below are stable. Estimators and data sets are imported when first used, so that
``import fmviz`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fmviz.engine.compatibility import why_not
from fmviz.engine.operators import certificate, prox, regularizer_value
from fmviz.engine.registries import list_losses, list_models, list_regularizers, list_solvers

__version__ = "0.1.0"

__all__ = [
    "ConvexFMClassifier",
    "ConvexFMRegressor",
    "FactorizationMachineClassifier",
    "FactorizationMachineRegressor",
    "QuadraticClassifier",
    "QuadraticRegressor",
    "certificate",
    "datasets",
    "find_lambda",
    "list_losses",
    "list_models",
    "list_regularizers",
    "list_solvers",
    "metrics",
    "prox",
    "regularization_path",
    "regularizer_value",
    "why_not",
]

_LAZY = {
    "ConvexFMClassifier": "fmviz.convex",
    "ConvexFMRegressor": "fmviz.convex",
    "FactorizationMachineClassifier": "fmviz.estimators",
    "FactorizationMachineRegressor": "fmviz.estimators",
    "QuadraticClassifier": "fmviz.quadratic",
    "QuadraticRegressor": "fmviz.quadratic",
    "find_lambda": "fmviz.paths",
    "regularization_path": "fmviz.paths",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name in ("datasets", "metrics"):
        return import_module(f"fmviz.{name}")
    raise AttributeError(f"module 'fmviz' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
