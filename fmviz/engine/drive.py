"""Run a solver on a problem: iterate, report snapshots, decide when to stop."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .certificates.stationarity import certificates
from .checkpoint import Checkpoint, Keep, recall, remember
from .compatibility import best_solver
from .errors import finite_number
from .parameters import Parameters
from .problem import Formulation, Problem
from .schedule import Schedule
from .snapshot import Reason, Snapshot, Status
from .solvers import Solver, get_solver
from .solvers._saddle_escape import SETTLED, SaddleEscape
from .stopping import (
    Budget,
    confirm_convergence,
    epochs_in_words,
    finished,
    needs_certificate,
    with_cause,
    without_rounding,
)
from .warmup import make_ready


def never() -> bool:
    """Return False: never stop a run."""
    return False


def chosen_solver(
    problem: Formulation, solver: str | Solver, settings: Mapping[str, Any] | None = None
) -> Solver:
    """Return the solver that is given or named, for "auto" the best one.

    `settings` are those of the solver that is named, as for `fmviz.engine.solvers.get_solver`.
    """
    if solver == "auto":
        solver = best_solver(problem, problem.design.n_features if isinstance(problem, Problem) else 0)
    return get_solver(solver, settings)


def iterate(
    problem: Problem,
    solver: str | Solver = "auto",
    budget: Budget | None = None,
    should_stop: Callable[[], bool] = never,
    *,
    start: Parameters | None = None,
    init_scale: float = 0.01,
    rng: np.random.Generator | None = None,
    resume: Checkpoint | None = None,
    keep: Keep | None = None,
    leave: Callable[[Mapping[str, Any]], Any] | None = None,
    schedule: Schedule | None = None,
) -> Generator[Snapshot, None, None]:
    """Run a solver and yield snapshots.

    Parameters
    ----------
    problem : Problem
        The objective.
    solver : str or Solver
        A name from the registry, "auto", or a solver with its settings, such as ``PCD(anderson=5)``.
    budget : Budget, optional
        The limits and tolerances.
    should_stop : callable
        Called between epochs; true ends the run.
    start : Parameters, optional
        The starting point; without it P ~ N(0, init_scale²), w = 0 and bias 0.
    init_scale : float
        The standard deviation of the random start.
    rng : numpy Generator, optional
        The one source of randomness.
    resume : Checkpoint, optional
        The state of an earlier run of the same problem and solver. The iterates continue as that run's
        would have, and its epochs and seconds count. `start`, `init_scale` and `rng` are then ignored.
    keep : callable, optional
        ``keep(take)`` is called after epochs from which a run can be resumed, before the snapshot of the
        epoch is yielded; ``take()`` returns the `Checkpoint`. Solvers with an empty `memory` have none.
    leave : callable, optional
        ``leave(memory)`` is called with the solver's state when the run has ended or is closed. A checkpoint
        of it continues with the same iterates, up to rounding, whatever the epoch.
    schedule : Schedule, optional
        Changes of the strengths during the run. At each the solver restarts from the present parameters,
        with the generator as it is; the objective of an epoch is computed with the strengths of that epoch.
        The run does not converge while a change is pending. The schedule is read before every epoch, so that
        changes may be added between two.

    Yields
    ------
    Snapshot
        At the beginning, every `report_every` epochs, and at the end; the last one carries the Status. All
        figures are recomputed from the parameters, not read from the solver.

    Raises
    ------
    ValueError
        If the solver cannot take the problem, with the reason, the start has a wrong shape, or the
        checkpoint is one of another solver.
    """
    budget = budget or Budget()
    method = chosen_solver(problem, solver)
    rng = rng if rng is not None else np.random.default_rng()
    if start is None:
        start = problem.start(finite_number("init_scale", init_scale, low=0), rng)
    _check_start(problem, start)
    schedule = schedule or Schedule()
    if resume is not None:
        problem = problem.at(**schedule.after(resume.epoch - 1))
    course = _Course(problem, method.on, schedule, rng)
    if resume is not None:
        course.method.start(start, rng)
        recall(course.method, resume.memory)
    return _closing(course, leave, budget, should_stop, start, resume, keep)


class _Course:
    """The present problem and its solver, which change with the schedule.

    Attributes
    ----------
    problem : Problem
        With the strengths of the last epoch.
    method : Solver
        Its solver.
    schedule : Schedule
        The changes.
    """

    def __init__(
        self,
        problem: Problem,
        make: Callable[[Problem], Solver],
        schedule: Schedule,
        rng: np.random.Generator,
    ) -> None:
        self.problem, self.schedule = problem, schedule
        self._make, self._rng = make, rng
        self.method = make(problem)

    def start(self, parameters: Parameters) -> float:
        """Start the solver; return the seconds that it took."""
        begin = self.method.clock()
        self.method.start(parameters, self._rng)
        return self.method.clock() - begin

    def advance(self, epoch: int) -> float:
        """Apply the changes due after this many epochs; return the seconds it took."""
        strengths = self.schedule.after(epoch)
        if all(getattr(self.problem, name) == value for name, value in strengths.items()):
            return 0.0
        here = self.method.parameters()
        self.method.close()
        self.problem = self.problem.at(**strengths)
        self.method = self._make(self.problem)
        return self.start(here)

    def escaped_zero(self, epoch: int, settled: bool) -> bool:
        """Replace a P that has become 0 by one of lower objective; return whether there was one.

        This is tried where the run has `settled`, and after 1, 2, 4, 8, … epochs.
        """
        method = self.method
        if not (method.leaves_zero and (settled or epoch & (epoch - 1) == 0)):
            return False
        here = method.parameters()
        if not here.P.size or here.P.any():
            return False
        # A generator of its own, so that a resumed run takes the same steps.
        escape = SaddleEscape(self.problem, np.random.default_rng(epoch), thorough=True)
        P = escape.leave(here.P, self.problem.predict(here), 0.0)
        if P is None:
            return False
        memory = method.for_other_rows(remember(method))
        method.start(here.replace(P=P), self._rng)
        recall(method, memory)
        return True


def _closing(
    course: _Course, leave: Callable[[Mapping[str, Any]], Any] | None, *args: Any
) -> Generator[Snapshot, None, None]:
    try:
        yield from _loop(course, *args)
    finally:
        if leave is not None:
            leave(remember(course.method))
        course.method.close()


def _loop(
    course: _Course,
    budget: Budget,
    should_stop: Callable[[], bool],
    start: Parameters,
    resume: Checkpoint | None,
    keep: Keep | None,
) -> Iterator[Snapshot]:
    cause = course.problem.model.overflow_cause
    every = budget.report_every
    epoch, seconds, change = 0, 0.0, float("nan")
    if resume is not None:
        epoch, seconds, change, start = (
            resume.epoch,
            resume.seconds,
            resume.change,
            course.method.parameters(),
        )
    status = finished(budget, epoch, seconds, float("inf"), should_stop)
    report_start = partial(_report, course.problem, start, epoch, seconds, change)
    finite = None if every is None and status is None else report_start(True, status is not None)
    if finite is not None and not np.isfinite(finite.objective):
        yield replace(finite, status=_diverged(epoch, cause + Solver.diverged_hint))
        return
    falls = _Falls(budget.fall)
    # So that a resumed run computes certificates at the same epochs.
    reports = epoch // every if every else 0
    if status is None:
        if finite is not None:
            # Yielded before the solver's kernels are compiled, so that pages can show the start meanwhile.
            yield finite
        make_ready(course.problem, course.method)
        # A start that was not evaluated may overflow: the first epoch then diverges.
        with np.errstate(over="ignore", invalid="ignore"):
            if resume is None:
                seconds = course.start(start)
            falls.begin(course.method)
    while status is None:
        seconds += course.advance(epoch)
        problem, method = course.problem, course.method
        begin = method.clock()
        change = method.epoch()
        epoch += 1
        if np.isfinite(change) and course.escaped_zero(epoch, change <= budget.tol):
            change = 1.0
        seconds += method.clock() - begin
        finite_now = bool(np.isfinite(change))
        pending = course.schedule.pending(epoch, budget.epochs)
        status = (
            finished(budget, epoch, seconds, float("inf") if pending else change, should_stop)
            if finite_now
            else _diverged(epoch, cause + method.diverged_hint)
        )
        if finite_now and status is None and not pending and falls.end(method, change):
            status = Status(
                Reason.CONVERGED,
                f"Converged after {epochs_in_words(epoch)}: the last one lowered the objective by less than "
                f"{budget.fall:g} of it.",
            )
        last = None
        if status is not None and status.converged and needs_certificate(method, change, budget.tol):
            here = without_rounding(problem, method.parameters())
            last = _report(problem, here, epoch, seconds, change, True, True)
            ended = finished(budget, epoch, seconds, float("inf"), should_stop)
            status = confirm_convergence(status, ended, method, last, budget.tol)
        if keep is not None and finite_now and status is None and method.can_checkpoint():
            keep(partial(_checkpoint, method, epoch, seconds, change))
        if status is None and (every is None or epoch % every):
            continue
        reports += 1
        if finite_now:
            if last is None:
                due = budget.certify_every is not None and reports % budget.certify_every == 0
                certify = due or (status is not None and budget.certify_every is not None)
                here = method.parameters()
                if status is not None:
                    here = without_rounding(problem, here)
                last = _report(problem, here, epoch, seconds, change, certify, status is not None)
            if np.isfinite(last.objective):
                finite = last
                status = status and with_cause(status, method, last, budget.tol)
            else:
                status = _diverged(epoch, cause + method.diverged_hint)
        if status is None and last is not None:
            yield last
    yield replace(report_start(False, False) if finite is None else finite, status=status)


class _Falls:
    """Whether epochs still lower the objective; see `Budget.fall`."""

    def __init__(self, share: float) -> None:
        self._share, self._objective = share, float("nan")

    def begin(self, method: Solver) -> None:
        """Record the objective of a started solver."""
        if self._share:
            self._objective = method.objective()

    def end(self, method: Solver, change: float) -> bool:
        """Return whether an epoch that changed the parameters by so much ends the run."""
        if not self._share:
            return False
        before, self._objective = self._objective, method.objective()
        return change <= SETTLED and before - self._objective <= self._share * abs(before)


def _checkpoint(method: Solver, epoch: int, seconds: float, change: float) -> Checkpoint:
    return Checkpoint(epoch, seconds, change, remember(method))


def _report(
    problem: Problem,
    parameters: Parameters,
    epoch: int,
    seconds: float,
    change: float,
    certify: bool,
    thorough: bool,
) -> Snapshot:
    with np.errstate(over="ignore", invalid="ignore"):
        # The forward pass is shared by the certificate and the objective.
        forward = problem.model.forward(problem.design, parameters, keep=False) if certify else None
        parts = problem.parts(parameters, None if forward is None else forward[0])
        objective = sum(parts.values())
        residual = float("nan")
        metrics = {}
        if certify and np.isfinite(objective):
            residual, least = certificates(problem, parameters, thorough, forward)
            if least is not None:
                metrics["least_certificate"] = least
    return Snapshot(
        epoch=epoch,
        seconds=seconds,
        objective=objective,
        loss=parts["loss"],
        penalty_w=parts["penalty_w"],
        penalty_p=parts["penalty_p"],
        penalty_sparse=parts["penalty_sparse"],
        used_features=problem.model.used_features(parameters),
        used_interactions=problem.model.used_interactions(parameters),
        certificate=residual,
        change=change,
        parameters=parameters,
        metrics=metrics,
    )


def _diverged(epoch: int, hint: str) -> Status:
    return Status(
        Reason.DIVERGED,
        f"Diverged in epoch {epoch}: a parameter or the objective is no longer finite. The last finite state "
        f"is kept. {hint}",
    )


def _check_start(problem: Problem, start: Parameters) -> None:
    for name, shape in problem.shapes.items():
        array = start.get(name)
        if array is None or array.shape != shape:
            has = "no " + name if array is None else f"{name} of shape {array.shape}"
            raise ValueError(f"The start has {has}; this problem needs {shape}.")
    if not start.finite():
        raise ValueError("The start contains NaN or infinity.")
