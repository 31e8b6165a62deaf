"""A fit of a problem: run a solver epoch by epoch, report snapshots, decide when to stop."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from .blas import each_on_one_thread
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
from .target import Target
from .warmup import make_ready

Leave = Callable[[Checkpoint, Callable[[], Checkpoint]], Any]


def never() -> bool:
    """Never stop a run: return False."""
    return False


def chosen_solver(problem: Formulation, solver: str | Solver) -> Solver:
    """Return a solver given as an instance or by name, or the best one for "auto"."""
    if solver == "auto":
        solver = best_solver(problem, problem.design.n_features if isinstance(problem, Problem) else 0)
    return get_solver(solver)


@dataclass(frozen=True, eq=False)
class Fit:
    """A run of a solver on a problem, from a start or a checkpoint.

    Attributes
    ----------
    problem : Problem
        The objective.
    solver : Solver
        The solver with its settings.
    start : Parameters
        The starting point.
    rng : numpy Generator
        The only source of randomness.
    budget : Budget
        The limits and tolerances.
    schedule : Schedule
        Changes of the strengths during the run. At each change, the solver restarts from the current
        parameters, with the current generator; the objective of an epoch uses the strengths of that epoch.
        The run does not converge while a change is pending. The schedule is read before every epoch; changes
        may be added between epochs.
    checkpoint : Checkpoint, optional
        The state of an earlier run of the same problem and solver, which this one continues; its epochs and
        seconds count, and `start` and `rng` are ignored.
    """

    problem: Problem
    solver: Solver
    start: Parameters
    rng: np.random.Generator
    budget: Budget = field(default_factory=Budget)
    schedule: Schedule = field(default_factory=Schedule)
    checkpoint: Checkpoint | None = None

    @classmethod
    def of(
        cls,
        problem: Problem,
        solver: str | Solver = "auto",
        budget: Budget | None = None,
        *,
        start: Parameters | None = None,
        init_scale: float = 0.01,
        rng: np.random.Generator | None = None,
        schedule: Schedule | None = None,
    ) -> Fit:
        """Return a fit from a start, by default random: P ~ N(0, init_scale²), w = 0 and bias 0.

        Parameters
        ----------
        problem, budget, start, rng, schedule
            See the class.
        solver : str or Solver
            A name from the registry, "auto", or a solver instance, such as ``PCD(anderson=5)``.
        init_scale : float
            The standard deviation of the random start.

        Raises
        ------
        ValueError
            If the solver is unknown, or the start has the wrong shape.
        """
        rng = np.random.default_rng() if rng is None else rng
        if start is None:
            start = problem.start(finite_number("init_scale", init_scale, low=0), rng)
        _check_start(problem, start)
        method = chosen_solver(problem, solver)
        return cls(problem, method, start, rng, budget or Budget(), schedule or Schedule())

    def resume(self, checkpoint: Checkpoint | None) -> Fit:
        """Return the fit that continues from a checkpoint, or this fit for None."""
        return replace(self, checkpoint=checkpoint)

    def end(self, should_stop: Callable[[], bool] = never) -> Snapshot:
        """Run to the end and return the last snapshot."""
        *_, last = self.epochs(should_stop)
        return last

    def epochs(
        self,
        should_stop: Callable[[], bool] = never,
        *,
        keep: Keep | None = None,
        leave: Leave | None = None,
    ) -> Generator[Snapshot, None, None]:
        """Run the solver and yield snapshots.

        With several outputs, every one that has not ended runs an epoch in turn, with an equal share of the
        seconds of the budget. In snapshots, objective and parameters are those of `Problem`, certificate and
        change are the maximum, used features and interactions those used by any output, and seconds the sum.
        The run has converged when every output has.

        Parameters
        ----------
        should_stop : callable
            Called between epochs; a true value ends the run.
        keep : callable, optional
            ``keep(take)`` is called after epochs from which a run can be resumed, before the snapshot of the
            epoch is yielded; ``take()``, called immediately, returns the `Checkpoint`. Solvers with an empty
            `memory` have none.
        leave : callable, optional
            ``leave(now, take)`` is called when the run has ended or is closed. The checkpoint `now` continues
            with the same iterates, up to rounding, after any epoch; its epochs and seconds are 0. ``take()``,
            called immediately, returns a checkpoint from which the run continues with strengths that the
            `schedule` changes after this epoch, as if the change had been scheduled before.

        Yields
        ------
        Snapshot
            At the beginning, every `report_every` epochs, and at the end; the last one has the Status. All
            values are recomputed from the parameters, not taken from the solver.

        Raises
        ------
        ValueError
            If the solver does not support the problem, or the checkpoint comes from another solver.
        """
        loops = [_Loop(fit) for fit in self._outputs()]
        return each_on_one_thread(_in_turn(self, loops, should_stop, keep, leave))

    def _outputs(self) -> list[Fit]:
        """Return the fit of every output, each with a separate generator."""
        problem, m = self.problem, self.problem.n_machines
        if m is None:
            return [self]
        seconds = None if self.budget.seconds is None else self.budget.seconds / m
        checkpoints = [None] * m if self.checkpoint is None else self.checkpoint.split(m)
        each = zip(
            problem.machines,
            problem.split(self.start),
            self.rng.integers(2**63, size=(m, 4)).tolist(),
            checkpoints,
            strict=True,
        )
        alike = replace(self, budget=replace(self.budget, seconds=seconds))
        return [
            replace(alike, problem=part, start=start, rng=np.random.default_rng(seed), checkpoint=checkpoint)
            for part, start, seed, checkpoint in each
        ]


def _in_turn(
    fit: Fit, loops: Sequence[_Loop], should_stop: Callable[[], bool], keep: Keep | None, leave: Leave | None
) -> Generator[Snapshot, None, None]:
    """Run an epoch of every output in turn, and yield the joint snapshots."""
    several = fit.problem.n_machines is not None
    # Between reports, outputs need not wait for each other unless their common state is saved.
    each = [loop.epochs(should_stop, keep is not None) for loop in loops]
    running = [pair for pair in zip(loops, each, strict=True) if not pair[0].ended]
    try:
        while running:
            for loop, epochs in running:
                loop.report = next(epochs)
            running = [pair for pair in running if not pair[0].ended]
            if keep is not None and running and all(loop.resumable for loop in loops):
                keep(lambda: Checkpoint.joined([loop.checkpoint() for loop in loops], several))
            reports: list[Any] = [loop.report for loop in loops]
            if None not in reports:
                yield _joined(fit.problem, reports) if several else reports[0]
    finally:
        if leave is not None:
            leave(
                Checkpoint.joined([Checkpoint.of(loop.method) for loop in loops], several),
                lambda: Checkpoint.joined([loop.at_rest() for loop in loops], several),
            )
        for loop in loops:
            loop.method.close()


class _Loop:
    """The run of one output: its current problem and solver, which change with the schedule.

    Attributes
    ----------
    problem : Problem
        The problem with the strengths of the last epoch.
    method : Solver
        The solver.
    report : Snapshot or None
        The snapshot of the last epoch; None if none was due.
    """

    def __init__(self, fit: Fit) -> None:
        self._fit, self._start, state = fit, fit.start, fit.checkpoint
        self._epoch, self._seconds, self._change = (0, 0.0, float("nan"))
        self._has_moved, self._objective = False, 0.0
        self.report: Snapshot | None = None
        problem = fit.problem
        if state is not None:
            self._epoch, self._seconds, self._change = state.epoch, state.seconds, state.change
        if state is not None and self._epoch:
            # The strengths of the last epoch; at rest, those after it.
            problem = problem.at(**fit.schedule.after(self._epoch - (not state.rests)))
        self.problem, self.method = problem, fit.solver.on(problem)
        # Whether the solver has started.
        self._resumes = state is not None and not (state.rests or state.ended)
        if state is not None and state.ended:
            self.report = state.end()
            self._start = self.report.parameters
        elif state is not None and state.rests:
            self._start = state.parameters(fit.rng)
        elif state is not None:
            self.method.start(fit.start, fit.rng)
            recall(self.method, state.memory)
            self._start = self.method.parameters()

    @property
    def ended(self) -> bool:
        """Whether the run of this output has ended."""
        return self.report is not None and self.report.status is not None

    @property
    def resumable(self) -> bool:
        """Whether `checkpoint` determines the continuation of the run."""
        return self.ended or (self._has_moved and self.method.can_checkpoint())

    def checkpoint(self) -> Checkpoint:
        """Return the state of this output."""
        if self.ended:
            return Checkpoint.of_end(self.report)
        return Checkpoint.of(self.method, self._epoch, self._seconds, self._change)

    def at_rest(self) -> Checkpoint:
        """Return the current parameters and the state of the generator."""
        here = self.method.parameters() if self._has_moved else self._start
        here = without_rounding(self.problem, here)
        return Checkpoint.at_rest(here, self._fit.rng, self._epoch, self._seconds)

    def _begin(self, parameters: Parameters) -> None:
        """Start the solver."""
        begin = self.method.clock()
        self.method.start(parameters, self._fit.rng)
        self._seconds += self.method.clock() - begin

    def _change_strengths(self) -> None:
        """Apply the changes that are due after the epochs so far."""
        strengths = self._fit.schedule.after(self._epoch)
        if all(getattr(self.problem, name) == value for name, value in strengths.items()):
            return
        # As at the end of a run that continues with other strengths.
        here = without_rounding(self.problem, self.method.parameters())
        self.method.close()
        self.problem = self.problem.at(**strengths)
        self.method = self._fit.solver.on(self.problem)
        self._begin(here)

    def _escaped_zero(self, settled: bool) -> bool:
        """Replace a P that has become 0 by one with a lower objective; return whether one was found.

        Tried when the run has `settled`, and after 1, 2, 4, 8, … epochs.
        """
        method, epoch = self.method, self._epoch
        if not (
            method.leaves_zero and self.problem.design.in_memory and (settled or epoch & (epoch - 1) == 0)
        ):
            return False
        here = method.parameters()
        if not here.P.size or here.P.any():
            return False
        # A separate generator, to make a resumed run take the same steps.
        escape = SaddleEscape(self.problem, np.random.default_rng(epoch), thorough=True)
        P = escape.leave(here.P, self.problem.predict(here), 0.0)
        if P is None:
            return False
        memory = method.for_other_rows(remember(method))
        method.start(here.replace(P=P), self._fit.rng)
        recall(method, memory)
        return True

    def _advance(self, tol: float) -> None:
        """Run an epoch."""
        self._change_strengths()
        begin = self.method.clock()
        change = self.method.epoch()
        self._epoch += 1
        if np.isfinite(change) and self._escaped_zero(change <= tol):
            change = 1.0
        self._change, self._has_moved = change, True
        self._seconds += self.method.clock() - begin

    def _ended_by(self, should_stop: Callable[[], bool]) -> Status | None:
        """Return why the last epoch ends the run, before any certificate; None if it does not."""
        if not np.isfinite(self._change):
            return _diverged(self._epoch, self.problem.model.overflow_cause + self.method.diverged_hint)
        budget = self._fit.budget
        pending = self._fit.schedule.pending(self._epoch, budget.epochs)
        change = float("inf") if pending else self._change
        status = finished(budget, self._epoch, self._seconds, change, should_stop)
        if status is None and not pending and budget.fall:
            before, self._objective = self._objective, self.method.objective()
            if change <= SETTLED and before - self._objective <= budget.fall * abs(before):
                return Status(
                    Reason.CONVERGED,
                    f"Converged after {epochs_in_words(self._epoch)}: the last one decreased the objective "
                    f"by a fraction of less than {budget.fall:g}.",
                )
        return status

    def epochs(self, should_stop: Callable[[], bool], every_epoch: bool) -> Iterator[Snapshot | None]:
        """Yield the reports of the start, of epochs and of the end; with `every_epoch`, None in between."""
        budget, cause = self._fit.budget, self.problem.model.overflow_cause
        every = budget.report_every
        status = finished(budget, self._epoch, self._seconds, float("inf"), should_stop)
        report_start = partial(_report, self.problem, self._start, self._epoch, self._seconds, self._change)
        finite = None if every is None and status is None else report_start(True, status is not None)
        if finite is not None and not np.isfinite(finite.objective):
            status = _diverged(self._epoch, cause + Solver.diverged_hint)
        # Makes a resumed run compute certificates at the same epochs.
        reports = self._epoch // every if every else 0
        if status is None:
            # Yielded before the kernels are compiled, to let pages show the start in the meantime.
            yield finite
            make_ready(self.problem, self.method)
            # An unevaluated start may overflow; the first epoch then diverges.
            with np.errstate(over="ignore", invalid="ignore"):
                if not self._resumes:
                    self._begin(self._start)
                self._objective = self.method.objective() if budget.fall else 0.0
        while status is None:
            self._advance(budget.tol)
            status = self._ended_by(should_stop)
            problem, method, epoch, change = self.problem, self.method, self._epoch, self._change
            last = None
            if status is not None and status.converged and needs_certificate(method, change, budget.tol):
                here = without_rounding(problem, method.best())
                last = _report(problem, here, epoch, self._seconds, change, True, True)
                ended = finished(budget, epoch, self._seconds, float("inf"), should_stop)
                status = confirm_convergence(status, ended, method, last, budget.tol)
            if status is None and (every is None or epoch % every):
                if every_epoch:
                    yield None
                continue
            reports += 1
            if np.isfinite(change):
                if last is None:
                    certify = budget.certify_every is not None and (
                        status is not None or reports % budget.certify_every == 0
                    )
                    here = method.parameters() if status is None else without_rounding(problem, method.best())
                    last = _report(problem, here, epoch, self._seconds, change, certify, status is not None)
                if np.isfinite(last.objective):
                    finite = last
                    status = status and with_cause(status, method, last, budget.tol)
                else:
                    status = _diverged(epoch, cause + method.diverged_hint)
            if status is None:
                yield last
        yield replace(finite or report_start(False, False), status=status)


def _joined(problem: Problem, each: Sequence[Any]) -> Snapshot:
    """Return the joint snapshot of all machines."""
    parameters, model = Parameters.stacked([snapshot.parameters for snapshot in each]), problem.model
    used, epoch = model.union(parameters), max(snapshot.epoch for snapshot in each)

    def over(reduce: Callable[[Any], Any], *names: str) -> dict[str, float]:
        return {name: float(reduce([getattr(snapshot, name) for snapshot in each])) for name in names}

    record = {
        "epoch": epoch,
        "used_features": model.used_features(used),
        "used_interactions": model.used_interactions(used),
        **over(sum, "seconds"),
        **over(np.mean, "objective", "loss", "penalty_w", "penalty_p", "penalty_sparse"),
        **over(np.max, "certificate", "change"),
    }
    status = _status(problem.target, [snapshot.status for snapshot in each], epoch)
    return Snapshot.of_record(record, parameters, status)


def _status(target: Target, each: Sequence[Status | None], epoch: int) -> Status | None:
    """Return the worst status of all machines; None while one is running."""
    ends = [status for status in each if status is not None]
    if len(ends) < len(each):
        return None
    worst = min(ends, key=lambda status: [*Reason].index(status.reason))
    if worst.reason is Reason.STOPPED:
        return worst
    message = f"All {len(each)} outputs converged, the last one after {epochs_in_words(epoch)}."
    if not worst.converged:
        failed = [c for c, status in enumerate(ends) if not status.converged]
        some = f"{target.in_words(failed)} of {len(each)} did not converge."
        none = f"None of the {len(each)} outputs converged."
        message = f"{some if len(failed) < len(each) else none} {worst.message}"
    return replace(worst, message=message)


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
        here = problem.evaluated(parameters)
        parts = {"loss": here.risk, **problem.penalties(parameters)}
        objective = sum(parts.values())
        residual = float("nan")
        metrics = {}
        if certify and np.isfinite(objective):
            residual, least = certificates(problem, parameters, thorough, here)
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
        f"Diverged in epoch {epoch}: a parameter or the objective is not finite. The last finite state is "
        f"kept. {hint}",
    )


def _check_start(problem: Problem, start: Parameters) -> None:
    for name, shape in problem.shapes.items():
        array = start.get(name)
        if array is None or array.shape != shape:
            has = "no " + name if array is None else f"{name} of shape {array.shape}"
            raise ValueError(f"The start has {has}; this problem needs {shape}.")
    if not start.finite():
        raise ValueError("The start contains NaN or infinity.")
