"""The names that exist, in the order in which they are shown."""

from __future__ import annotations

from .losses import LOSSES
from .models import MODELS
from .regularizers import REGULARIZERS
from .solvers import SOLVERS


def list_regularizers() -> list[str]:
    """Return the names of the regularizers."""
    return list(REGULARIZERS)


def list_solvers() -> list[str]:
    """Return the names of the solvers."""
    return list(SOLVERS)


def list_models() -> list[str]:
    """Return the names of the models."""
    return list(MODELS)


def list_losses() -> list[str]:
    """Return the names of the losses."""
    return list(LOSSES)
