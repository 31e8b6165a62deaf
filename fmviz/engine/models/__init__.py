"""The registry of models: one file and one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..params import bind
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


def get_model(given: str | Model, settings: Mapping[str, Any] | None = None) -> Model:
    """Return a model: the given one, or the one of that name with these settings.

    Raises
    ------
    ValueError
        If the name is unknown, or a setting is not declared or not allowed.
    """
    return bind(Model, MODELS, given, settings)
