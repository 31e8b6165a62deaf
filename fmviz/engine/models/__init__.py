"""The registry of models: one file and one line each."""

from __future__ import annotations

from ..errors import one_of
from .fm import FactorizationMachine

__all__ = ["MODELS", "FactorizationMachine", "get_model"]

MODELS: dict[str, FactorizationMachine] = {m.name: m for m in (FactorizationMachine(),)}


def get_model(name: str) -> FactorizationMachine:
    """Return the model called `name`, or raise ValueError with the allowed names."""
    return MODELS[one_of("model", name, MODELS)]
