"""The registry of models: one file and one line each."""

from __future__ import annotations

from ..errors import one_of
from .base import Model
from .fm import FactorizationMachine
from .qr import QuadraticRegression

__all__ = ["MODELS", "FactorizationMachine", "Model", "QuadraticRegression", "get_model"]

MODELS: dict[str, Model] = {m.name: m for m in (FactorizationMachine(), QuadraticRegression())}


def get_model(name: str) -> Model:
    """Return the model called `name`, or raise ValueError with the allowed names."""
    return MODELS[one_of("model", name, MODELS)]
