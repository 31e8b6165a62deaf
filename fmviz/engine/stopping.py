"""Stopping criteria, and the removal of parameter entries below rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import floor, log10
from typing import Any

import numpy as np

from ..typography import superscript, typeset
from .certificates.stationarity import certify
from .design import Design
from .errors import finite_number, whole_number
from .parameters import Parameters
from .problem import Problem
from .snapshot import Reason, Snapshot, Status
from .solvers import Solver

# Line searches compare objectives, which agree to the last digit at points about 1e-8 apart.
_ROUNDING = 1e-6
# A certificate above this multiple of the tolerance contradicts a small change: steps are short for another
# reason.
_DOUBTFUL = 100.0
# The ratio of column sizes of X that is reported as the likely cause.
_UNEQUAL = 100.0
# A relative duality gap above it contradicts convergence.
_LARGE_GAP = 0.1
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Budget:
    """Limits, tolerances and reporting intervals of a run.

    Attributes
    ----------
    epochs : int
        The maximum number of epochs.
    seconds : float, optional
        The maximum solver time: CPU seconds of the solver's thread without evaluation, checked between
        epochs.
    tol : float
        A run has converged when no parameter changes by more than `tol` times the largest one in an epoch (of
        P, and of w and the bias; see `Solver.unit_free`), and a stationarity certificate is at most 100
        `tol`, or at most `tol` if a small change is no evidence (`Solver.trusts_change`). With a larger
        certificate, the run continues within the budget, and has stalled if the certificate remains as large
        at the end, or no step is found. 0 never converges.
    fall : float
        A run has also converged when an epoch that changes no parameter by more than a tenth of the largest
        decreases the objective by a fraction of less than `fall`, which suffices to compare many strengths. 0
        disables this.
    report_every : int, optional
        The interval of snapshots in epochs, in addition to the first and the last. None gives only the last.
    certify_every : int, optional
        The interval of certificates in snapshots, in addition to the last; NaN in the others. With None, it
        is computed only if the final status depends on it.
    """

    epochs: int = 100
    seconds: float | None = None
    tol: float = 1e-4
    fall: float = 0.0
    report_every: int | None = 1
    certify_every: int | None = 1

    def __post_init__(self) -> None:
        for name, check, low in (
            *(("epochs", whole_number, 0), ("tol", finite_number, 0), ("fall", finite_number, 0)),
            *(("seconds", finite_number, 0), ("report_every", whole_number, 1)),
            ("certify_every", whole_number, 1),
        ):
            value = getattr(self, name)
            if value is not None or name in ("epochs", "tol", "fall"):
                check(name, value, low)


def without_rounding(problem: Problem, parameters: Parameters) -> Parameters:
    """Set entries of P to 0 that contribute less than the rounding of f.

    These are entries p_js for which both p_js ∂f/∂p_js and (p_js x_j)² are at most 2⁻⁵² max |f(x_n)| for
    |x_j| within the range of the training rows: shrinkage alone moves P towards 0 without reaching it.
    """
    P = np.abs(parameters.P)
    if problem.model.certificate != "stationarity" or not P.any():
        return parameters
    # f of absolute values increases in each of them; this single row bounds all.
    bound = Design(problem.design.largest[None, :])
    sizes = Parameters(**{name: np.abs(array) for name, array in parameters.items()})
    with np.errstate(over="ignore", invalid="ignore"):
        contribution = P * problem.model.gradient(bound, sizes, np.ones(1))[0]
        contribution = np.maximum(contribution, np.square(P * problem.design.largest[:, None]))
        candidates = (P > 0) & (contribution <= _EPS * problem.model.predict(bound, sizes).max())
        if not candidates.any():
            return parameters
        limit = _EPS * np.abs(problem.predict(parameters)).max()
    return parameters.replace(P=np.where(candidates & (contribution <= limit), 0.0, parameters.P))


def finished(
    budget: Budget, epoch: int, seconds: float, change: float, should_stop: Callable[[], bool]
) -> Status | None:
    """Return the status of a run that ends after an epoch with this change, or None if it continues."""
    if change <= budget.tol and budget.tol > 0:
        return Status(
            Reason.CONVERGED,
            f"Converged after {epochs_in_words(epoch)}: no parameter changed by more than "
            f"{typeset(budget.tol, 'g')} of the largest one.",
        )
    if epoch >= budget.epochs:
        return Status(
            Reason.EPOCHS,
            f"Stopped at the limit of {epochs_in_words(budget.epochs)} before convergence; allow more epochs "
            "or a larger tolerance.",
        )
    if budget.seconds is not None and seconds >= budget.seconds:
        return Status(
            Reason.SECONDS,
            f"Stopped at the limit of {budget.seconds:g} s after {epochs_in_words(epoch)}, before "
            "convergence.",
        )
    if should_stop():
        return Status(Reason.STOPPED, f"Stopped on request after {epochs_in_words(epoch)}.")
    return None


def needs_certificate(method: Solver, change: float, tol: float) -> bool:
    """Return whether the certificate must confirm convergence by such a small change."""
    if method.problem.model.certificate != "gap":
        return change <= tol or not method.trusts_change(change)
    # A gap bounds the objective, not the change; they have no common tolerance.
    return method.at_rank()


def confirm_convergence(
    converged: Status, ended: Status | None, method: Solver, last: Snapshot, tol: float
) -> Status | None:
    """Confirm or reject the convergence of a run by its certificate.

    Parameters
    ----------
    converged : Status
        The status based on the change only.
    ended : Status, optional
        The status without regard to the change; None within the budget.
    method : Solver
        The solver.
    last : Snapshot
        The current state, with its certificate.
    tol : float
        The tolerance of the change.
    """
    if not np.isfinite(last.objective):
        return converged
    if method.problem.model.certificate == "gap":
        if last.certificate <= max(tol, _ROUNDING):
            return converged
        return Status(
            Reason.RANK,
            f"Ended after {epochs_in_words(last.epoch)}: all {method.problem.rank:,} bases are in use, and "
            f"more would decrease the objective by at most {last.certificate:.1%}. Increase the rank to "
            "allow more.",
        )
    vouched = method.trusts_change(last.change)
    if last.certificate <= max(_DOUBTFUL * tol if vouched else tol, _ROUNDING):
        return converged
    if vouched and last.change > _EPS and (ended is None or ended.reason is Reason.STOPPED):
        return ended
    way_out = _unequal_columns(method.problem) or "continue with another solver, or from another start"
    return Status(
        Reason.STALLED,
        f"Stalled after {epochs_in_words(last.epoch)}: the certificate of {last.certificate:#.2g} "
        f"does not confirm a stationary point; {way_out}.",
    )


def with_cause(status: Status, method: Solver, last: Snapshot, tol: float) -> Status:
    """Correct a status by the final certificate.

    A convex problem with a large gap has not converged. If the budget ran out far from a stationary point,
    the likely cause is added.
    """
    gap = method.problem.model.certificate == "gap"
    if gap and status.converged and last.certificate > _LARGE_GAP:
        return Status(
            Reason.STALLED,
            f"Stalled after {epochs_in_words(last.epoch)}: parameters no longer change, but the objective "
            f"may exceed its minimum by {last.certificate:.0%} of itself. Use another solver, or scale the "
            "data.",
        )
    ran_out = status.reason in (Reason.EPOCHS, Reason.SECONDS)
    if not (ran_out and last.certificate > max(_DOUBTFUL * tol, _ROUNDING)):
        return status
    unequal = _unequal_columns(method.problem)
    return status if unequal is None else replace(status, message=f"{status.message} T{unequal[1:]}.")


def _unequal_columns(problem: Problem) -> str | None:
    """Return a sentence on columns of X of unequal size; None if sizes are similar.

    The size is the root mean square of the non-zero entries; rare features therefore do not count as small.
    """
    counts = problem.design.counts
    sizes = np.sqrt(problem.design.squares[counts > 0] / counts[counts > 0])
    if problem.model.certificate != "stationarity" or not sizes.size or sizes.max() < _UNEQUAL * sizes.min():
        return None
    power = superscript(floor(log10(sizes.max() / sizes.min())))
    return f"the columns of X differ in size by 10{power}: scale them"


def epochs_in_words(n: int) -> str:
    """Return "1 epoch", "1,200 epochs"."""
    return f"{n:,} epoch" + ("" if n == 1 else "s")


LOSS = "validation_loss"


class HeldOut:
    """Early stopping: the best parameters so far, by the mean loss on held-out rows.

    Parameters
    ----------
    training, held_out : Problem
        The problems of the training rows, and of the held-out rows.
    patience : int
        The number of epochs without a lower loss after which the fit stops.
    """

    def __init__(self, training: Problem, held_out: Problem, patience: int) -> None:
        self.training, self._problem, self._patience = training, held_out, patience
        self._best: Any = None

    def after(self, snapshot: Snapshot) -> tuple[Snapshot, str | None]:
        """Return the snapshot with the loss on the held-out rows, and why to stop after it, or None."""
        loss = self._problem.risk(snapshot.parameters)
        snapshot = replace(snapshot, metrics={**snapshot.metrics, LOSS: loss})
        if self._best is None or loss < self._best.metrics[LOSS]:
            self._best = snapshot
        if snapshot.epoch - self._best.epoch < self._patience:
            return snapshot, None
        return snapshot, (
            f"Stopped after {snapshot.epoch:,} epochs: the loss on the held-out rows did "
            f"not decrease in the last {self._patience}."
        )

    def best_of(self, problem: Problem, end: Snapshot) -> Snapshot:
        """Return the final snapshot with the parameters of the best epoch on the held-out rows."""
        best = self._best
        assert end.status is not None
        if best.epoch == end.epoch:
            return end
        message = (
            f"{end.status.message} The parameters are those of epoch {best.epoch:,}, the best on these rows."
        )
        return replace(
            best,
            certificate=certify(problem, best.parameters),
            status=replace(end.status, message=message),
        )
