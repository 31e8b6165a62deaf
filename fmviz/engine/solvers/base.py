"""Base class of solvers, driven epoch by epoch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from copy import copy
from math import inf
from typing import Any, ClassVar, Self

import numpy as np

from ..errors import WhyNot
from ..losses import ScalarLoss
from ..models import Model
from ..parameters import Parameters
from ..problem import Formulation, Problem
from ..settings import Named, check_params


def working_loss(problem: Problem) -> tuple[ScalarLoss, np.ndarray]:
    """Return the loss for kernels, and the shift of its predictions, shape (N,).

    If the loss depends only on f − y, kernels store residuals and read one array less.
    """
    loss = problem.loss.scalar
    if loss.of_residual is None:
        return loss, np.zeros(problem.design.n_samples)
    return loss.of_residual, problem.y


def second_moments(problem: Problem) -> np.ndarray:
    """Return Σ_n c_n x_nj² for every column j, shape (d,)."""
    return problem.design.transpose_dot(problem.unit_weights, 2)


class Solver(Named):
    """Optimization method with its settings; `on` binds it to a problem.

    Subclasses declare the class attributes, reject unsupported problems in `_why_not`, and implement
    `prepare`, `start`, `epoch` and `parameters`.

    Parameters
    ----------
    **settings
        The declared settings.

    Attributes
    ----------
    name, label : str
        Identifier and display name.
    params : tuple of ParamSpec
        Its parameters.
    monotone : bool
        Whether, with default parameters, the objective never increases between epochs, up to rounding.
    diverged_hint : str
        Advice after divergence, as a sentence.
    factorised : bool
        Whether it updates factors P; otherwise it updates pair weights W directly.
    needs_mu : bool
        Whether its steps need the Lipschitz constant of the loss derivative.
    takes_kinks : bool
        Whether it supports losses with discontinuous derivatives.
    takes_powers : bool
        Whether λ_p may multiply powers of column norms above 2.
    fits_coefficients : bool
        Whether it can fit column weights.
    unit_free : bool
        Whether changes of w_j are scaled by the root mean square of the feature, which makes convergence
        independent of the units of X; not so in the published method. Used by sweeps.
    leaves_zero : bool
        Whether the driver tries to escape if P becomes 0; False if the solver does so itself.
    memory : tuple of str
        The attributes, saved if `can_checkpoint` is true, from which a started solver continues with the
        same iterates; empty if that is not possible.
    takes_parts : bool
        Whether it can process the rows in parts: no step needs all of them.
    by_sums : bool
        Whether all that it computes from the data are sums over rows, see `fmviz.engine.problem.Evaluation`:
        blocks of rows then need no common memory.
    short_steps : bool
        Whether its steps may be short anywhere, such as near a kink.
    most_features : float
        The number of features above which "auto" prefers another solver, if there is one.
    """

    noun: ClassVar[str] = "solver"
    label: ClassVar[str]
    monotone: ClassVar[bool] = True
    diverged_hint: ClassVar[str] = (
        "Scale the features and the target, increase λ_p, or decrease the scale of the start."
    )
    factorised: ClassVar[bool] = True
    needs_mu: ClassVar[bool] = False
    takes_kinks: ClassVar[bool] = False
    fits_coefficients: ClassVar[bool] = False
    takes_powers: ClassVar[bool] = False
    memory: ClassVar[tuple[str, ...]] = ()
    unit_free: bool = False
    leaves_zero: bool = False
    takes_parts: ClassVar[bool] = False
    by_sums: ClassVar[bool] = False
    short_steps: ClassVar[bool] = False
    most_features: ClassVar[float] = inf

    problem: Problem

    def __init__(self, **settings: Any) -> None:
        self.settings = check_params(f"Solver {self.name!r}", self.params, settings)

    def __repr__(self) -> str:
        given = [spec.name for spec in self.params if self.settings[spec.name] != spec.default]
        return f"{type(self).__name__}({', '.join(f'{name}={self.settings[name]!r}' for name in given)})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other).get("settings") == self.settings

    def __hash__(self) -> int:
        return hash((self.name, *sorted(self.settings.items())))

    def having(self, **settings: Any) -> Self:
        """Return a copy with those of the settings that this solver declares."""
        return type(self)(**{name: settings.get(name, value) for name, value in self.settings.items()})

    def on(self, problem: Problem) -> Self:
        """Return a solver with the same settings, prepared for a problem; call `start` next.

        Raises
        ------
        ValueError
            If the solver does not support the problem, with the reason, or a setting does not suit it.
        """
        if (reason := self.why_not(problem)) is not None:
            raise ValueError(reason)
        return self.within(problem)

    def within(self, problem: Problem) -> Self:
        """Like `on`, without checking that the problem is supported, for use inside another solver."""
        run = copy(self)
        run.settings = dict(self.settings)
        run.problem = problem
        run.prepare()
        return run

    def prepare(self) -> None:
        """Compute everything that depends on the problem but not on the starting point.

        Raises
        ------
        ValueError
            If a setting does not suit the problem.
        """

    def clock(self) -> float:
        """Return the CPU time of the calling thread and of those of the mapper, used to time solvers.

        Waiting for other threads, as in a server, does not count.
        """
        return time.thread_time() + self.problem.mapper.seconds

    def why_not(self, problem: Formulation) -> WhyNot | None:
        """Return the mathematical reason why this solver does not support a problem, or None."""
        if (reason := problem.why_not() or self._why_not_model(problem.model)) is not None:
            return reason
        if not self.takes_kinks and (reason := problem.loss.why_no_derivative(self.label)) is not None:
            return reason
        # Column weights are fitted by separate steps; see `solvers.kernels.coefficients`.
        fitted = problem.model.fits_coefficients
        if (self.needs_mu or fitted) and (reason := problem.loss.why_no_mu(self.label)) is not None:
            return reason
        sums = self.by_sums and problem.model.by_row and not fitted
        if isinstance(problem, Problem) and not (problem.design.in_memory or sums):
            return WhyNot(
                "not_in_memory",
                f"{self.label} reads all rows at every step, but they are not in one memory. Use APGD, which "
                "needs only sums over rows, or L-BFGS with a smooth penalty.",
            )
        return self._why_not(problem)

    def _why_not_model(self, model: Model) -> WhyNot | None:
        """Return why the steps of this solver do not apply to the parameters of the model, or None."""
        return model.why_no_solver(self)

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        """Return why this solver does not support the penalty or the loss of a supported model, or None."""
        return None

    def cost_note(self, problem: Formulation, d: int, rank: int) -> str | None:
        """Return a sentence on the cost of an epoch if it exceeds the size of the data, else None."""
        return problem.model.cost_note(d) or problem.penalty.cost_note(d, rank)

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        """Set the starting point (copied) and prepare the caches."""
        raise NotImplementedError

    def epoch(self) -> float:
        """Run an epoch; return the largest change of a parameter relative to the largest parameter."""
        raise NotImplementedError

    def trusts_change(self, change: float) -> bool:
        """Return whether such a small change in an epoch indicates a nearly stationary point.

        If not, the certificate must be as small as the tolerance. A change of 0 may mean that no step was
        found.
        """
        return change > 0.0 and not self.short_steps

    def at_rank(self) -> bool:
        """Return whether a solver that adds columns has reached `Problem.rank`."""
        return False

    def can_checkpoint(self) -> bool:
        """Return whether `memory` determines the next steps after the last epoch."""
        return bool(self.memory)

    def for_other_rows(self, memory: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of a saved state that stays valid when the rows change."""
        return {}

    def warm_up(self) -> None:
        """Compile every kernel that an epoch may need by calling it on a small problem."""
        self.epoch()

    def parameters(self) -> Parameters:
        """Return copies of the current parameters."""
        raise NotImplementedError

    def best(self) -> Parameters:
        """Return copies of the parameters of lowest objective so far: the current ones if it decreases."""
        return self.parameters()

    def objective(self) -> float:
        """Return the objective up to rounding errors, from stored predictions if these are available."""
        return self.problem.objective(self.parameters())

    def close(self) -> None:
        """Release resources other than memory; `parameters` remains usable."""
