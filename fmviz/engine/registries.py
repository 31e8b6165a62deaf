"""The names that exist, in the order in which they are shown."""

from __future__ import annotations

from .losses import LOSSES
from .models import MODELS
from .regularizers import REGULARIZERS
from .solvers import SOLVERS


def list_regularizers() -> list[str]:
    """Return the names of the regularizers.

    Examples
    --------
    >>> import fmviz
    >>> fmviz.list_regularizers()
    ['l2', 'l1', 'l21', 'ti', 'cs', ...]
    """
    return list(REGULARIZERS)


def list_solvers() -> list[str]:
    """Return the names of the solvers.

    Examples
    --------
    >>> import fmviz
    >>> fmviz.list_solvers()
    ['cd', 'pcd', 'pbcd', ...]
    """
    return list(SOLVERS)


def list_models() -> list[str]:
    """Return the names of the models.

    Examples
    --------
    >>> import fmviz
    >>> fmviz.list_models()
    ['fm', 'hofm', ...]
    """
    return list(MODELS)


def list_losses() -> list[str]:
    """Return the names of the losses.

    Examples
    --------
    >>> import fmviz
    >>> fmviz.list_losses()
    ['squared', 'logistic', ...]
    """
    return list(LOSSES)
