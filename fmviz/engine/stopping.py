"""Decide when a run ends, and which entries of its parameters are rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import floor, log10

import numpy as np

from ..typography import superscript, typeset
from .design import Design
from .errors import finite_number, whole_number
from .parameters import Parameters
from .problem import Problem
from .snapshot import Reason, Snapshot, Status
from .solvers import Solver
from .solvers.base import second_moments

# Line searches compare objectives, which agree to the last digit at points about 1e-8 apart.
_ROUNDING = 1e-6
# A certificate above so many times the tolerance contradicts a small change: steps are short for another
# reason.
_DOUBTFUL = 100.0
# Ratio of the sizes of columns of X that is reported as the likely cause.
_UNEQUAL = 100.0
# A relative duality gap above it contradicts convergence.
_LARGE_GAP = 0.1
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Budget:
    """Limits and tolerances of a run, and how often it reports.

    Attributes
    ----------
    epochs : int
        The maximum number of epochs.
    seconds : float, optional
        The maximum of solver seconds: processor time of the solver's thread without evaluation, checked
        between epochs.
    tol : float
        A run has converged when no parameter changed by more than `tol` times the largest one during an
        epoch (of P, and of w and the bias; see `Solver.unit_free`), and the certificate, where it is one of
        stationarity, is at most 100 `tol`, or at most `tol` where a small change is no evidence
        (`Solver.trusts_change`). With a larger certificate it continues while the budget lasts, and has
        stalled if the certificate is as large at the end, or no step is found. 0 never converges.
    fall : float
        A run has converged, too, once an epoch that changed no parameter by more than a tenth of the largest
        lowered the objective by less than this share of it, which suffices to compare many strengths. 0
        disables this.
    report_every : int, optional
        The interval of snapshots in epochs, besides the first and the last. With None there is only the
        last.
    certify_every : int, optional
        The interval of certificates in snapshots, besides the last; it is NaN in the others. With None it is
        computed only where the final status depends on it.
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
    """Return the parameters with 0 for those entries of P that contribute less than the rounding of f.

    These are entries p_js for which both p_js ∂f/∂p_js and (p_js x_j)² are at most 2⁻⁵² max |f(x_n)| wherever
    |x_j| is at most as large as in the training rows: shrinkage alone takes P towards 0, but never reaches
    it.
    """
    P = np.abs(parameters.P)
    if problem.model.certificate != "stationarity" or not P.any():
        return parameters
    # f of absolute values increases in each of them, so that this one row bounds all.
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
    """Return the status of a run that ends after an epoch with this change, None where it continues."""
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
    """Return whether convergence by a change this small must be confirmed by the certificate."""
    if method.problem.model.certificate != "gap":
        return change <= tol or not method.trusts_change(change)
    # A gap bounds the objective, not the change: the two have no common tolerance.
    return method.at_rank()


def confirm_convergence(
    converged: Status, ended: Status | None, method: Solver, last: Snapshot, tol: float
) -> Status | None:
    """Confirm or reject the convergence of a run by its certificate.

    Parameters
    ----------
    converged : Status
        The status by the change alone.
    ended : Status, optional
        The status if the change is ignored; None while the budget lasts.
    method : Solver
        The solver.
    last : Snapshot
        The present state, with its certificate.
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
            f"more would lower the objective by at most {last.certificate:.1%}. Raise the rank to allow "
            "them.",
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
        f"confirms no stationary point; {way_out}.",
    )


def with_cause(status: Status, method: Solver, last: Snapshot, tol: float) -> Status:
    """Correct a status by the certificate at the end.

    A convex problem has not converged while its gap is large, and where the budget ran out far from a
    stationary point the likely cause is added.
    """
    gap = method.problem.model.certificate == "gap"
    if gap and status.converged and last.certificate > _LARGE_GAP:
        return Status(
            Reason.STALLED,
            f"Stalled after {epochs_in_words(last.epoch)}: nothing changes, and the objective may exceed its "
            f"minimum by {last.certificate:.0%} of itself. Continue with another solver, or scale the data.",
        )
    ran_out = status.reason in (Reason.EPOCHS, Reason.SECONDS)
    if not (ran_out and last.certificate > max(_DOUBTFUL * tol, _ROUNDING)):
        return status
    unequal = _unequal_columns(method.problem)
    return status if unequal is None else replace(status, message=f"{status.message} T{unequal[1:]}.")


def _unequal_columns(problem: Problem) -> str | None:
    """Return a sentence on columns of X of unequal size; None where sizes are similar.

    The size is the root mean square of the entries that are not 0, so that rare features do not count as
    small.
    """
    counts = np.asarray((problem.design.matrix != 0).sum(axis=0)).ravel()
    sizes = np.sqrt(second_moments(problem)[counts > 0] / counts[counts > 0])
    if problem.model.certificate != "stationarity" or not sizes.size or sizes.max() < _UNEQUAL * sizes.min():
        return None
    power = superscript(floor(log10(sizes.max() / sizes.min())))
    return f"the columns of X differ in size by 10{power}: scale them"


def epochs_in_words(n: int) -> str:
    """Return "1 epoch", "1,200 epochs"."""
    return f"{n:,} epoch" + ("" if n == 1 else "s")
