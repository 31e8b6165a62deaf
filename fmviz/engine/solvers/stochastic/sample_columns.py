"""The additional state of SGD and PSGD for models that are sums over the columns of P."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...models.columnar import ColumnModel
from ...parameters import Parameters
from ...problem import Problem
from ..kernels.coefficients import CoefficientStep, coefficient_change
from .lazy import lazy_entries
from .sample_gradient import COLUMNS, kind_of


class SampleColumns:
    """Steps along the gradient of one sample, O(nnz(x)·m) for every column of order m.

    Where the coefficients λ are fitted, each epoch begins with the exact fit of λ, and the step size of
    column s is η/|λ_s|: a step of size η on √|λ_s| p_s. λ_p Σ|λ_s|‖p_s‖² is the plain squared norm of these,
    and K is homogeneous, so all columns decay alike, as lazy updates need. A column with λ_s = 0 rests.

    Parameters
    ----------
    problem : Problem
        Of a columnar model.
    model : ColumnModel
        That model.
    """

    def __init__(self, problem: Problem, model: ColumnModel) -> None:
        self._problem = problem
        kinds = [kind_of(block.kernel) for block in model.blocks(problem.rank)]
        self._kinds = np.repeat(kinds, problem.rank).astype(np.int64)
        self._fit = CoefficientStep(problem) if model.fits_coefficients else None

    def refit(self, before: Parameters) -> tuple[Parameters, float] | None:
        """Return the parameters with λ fitted, and how far that moved λ; None where λ is fixed."""
        if self._fit is None:
            return None
        fitted = self._fit.refit(before)
        return fitted, coefficient_change(before, fitted)

    def run(self, at: Parameters, arguments: tuple[Any, ...], rest: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the kernel of an epoch from `at`; return P, the bias and whether all stayed finite.

        Parameters
        ----------
        at : Parameters
            Where the epoch begins; w is updated in place.
        arguments, rest : tuple
            What `lazy_entries` takes before P, and between w and the columns.
        """
        problem, given = self._problem, at.multipliers
        resting = given == 0.0
        root = np.sqrt(np.where(resting, 1.0, np.abs(given)))
        P = np.ascontiguousarray(at.P * root)
        columns = (self._kinds, given / root ** np.abs(self._kinds))
        kernel = lazy_entries(problem.design.storage, problem.loss.scalar, COLUMNS)
        bias, finite = kernel(*arguments, P, at.w, *rest, columns)
        P /= root
        P[:, resting] = at.P[:, resting]
        return P, bias, finite
