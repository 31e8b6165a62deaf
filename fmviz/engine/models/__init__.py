"""The registry of models: one file and one line each."""

from __future__ import annotations

from typing import Any

from ..errors import one_of
from .all_subsets import AllSubsetsModel
from .base import Model
from .convex import ConvexFM
from .expansion import KernelExpansion
from .fm import FactorizationMachine
from .hofm import HigherOrderFM
from .lifted import LiftedModel
from .qr import QuadraticRegression

__all__ = [
    "MODELS",
    "AllSubsetsModel",
    "ConvexFM",
    "FactorizationMachine",
    "HigherOrderFM",
    "KernelExpansion",
    "LiftedModel",
    "Model",
    "QuadraticRegression",
    "get_model",
]

MODELS: dict[str, Model] = {
    m.name: m
    for m in (
        FactorizationMachine(),
        HigherOrderFM(),
        AllSubsetsModel(),
        KernelExpansion(),
        LiftedModel(),
        QuadraticRegression(),
        ConvexFM(),
    )
}


def get_model(name: str, **params: Any) -> Model:
    """Return the model called `name` with its own parameters, or raise ValueError with what is allowed."""
    return type(MODELS[one_of("model", name, MODELS)])(**params)
