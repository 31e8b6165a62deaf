"""Run a solver on a problem: iterate, report snapshots, decide when to stop."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
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

_MACHINES = "machines"
# The memory of a stopped run, from whose parameters it can continue with other strengths.
_REST, _DRAWS = "parameters at rest", "generators"


def never() -> bool:
    """Never stop a run: return False."""
    return False


def chosen_solver(problem: Formulation, solver: str | Solver) -> Solver:
    """Return a solver given as an instance or by name, or the best one for "auto"."""
    if solver == "auto":
        solver = best_solver(problem, problem.design.n_features if isinstance(problem, Problem) else 0)
    return get_solver(solver)


def for_other_rows(solver: Solver, memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a state from `iterate` that stays valid when the rows change."""
    if _MACHINES not in memory:
        return solver.for_other_rows(memory)
    each = [{**state, "memory": solver.for_other_rows(state["memory"])} for state in memory[_MACHINES]]
    return {_MACHINES: tuple(each)} if any(state["memory"] for state in each) else {}


def iterate(  # noqa: PLR0913 (every part of a run is a keyword)
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
    leave: Callable[[Mapping[str, Any], Callable[[], Checkpoint]], Any] | None = None,
    schedule: Schedule | None = None,
) -> Generator[Snapshot, None, None]:
    """Run a solver and yield snapshots.

    With several outputs, every machine that has not ended runs an epoch in turn, with an equal share of the
    seconds of the budget. In snapshots, objective and parameters are those of `Problem`, certificate and
    change are the maximum, used features and interactions those used by any machine, and seconds the sum. The
    run has converged when every machine has.

    Parameters
    ----------
    problem : Problem
        The objective.
    solver : str or Solver
        A name from the registry, "auto", or a solver instance, such as ``PCD(anderson=5)``.
    budget : Budget, optional
        The limits and tolerances.
    should_stop : callable
        Called between epochs; a true value ends the run.
    start : Parameters, optional
        The starting point; by default P ~ N(0, init_scale²), w = 0 and bias 0.
    init_scale : float
        The standard deviation of the random start.
    rng : numpy Generator, optional
        The only source of randomness.
    resume : Checkpoint, optional
        The state of an earlier run of the same problem and solver. Its iterates continue, and its epochs and
        seconds count. `start`, `init_scale` and `rng` are then ignored.
    keep : callable, optional
        ``keep(take)`` is called after epochs from which a run can be resumed, before the snapshot of the
        epoch is yielded; ``take()``, called immediately, returns the `Checkpoint`. Solvers with an empty
        `memory` have none.
    leave : callable, optional
        ``leave(memory, take)`` is called when the run has ended or is closed. A checkpoint of the solver
        state `memory` continues with the same iterates, up to rounding, after any epoch. ``take()``, called
        immediately, returns a `Checkpoint` from which the run continues with strengths that the `schedule`
        changes after this epoch, as if the change had been scheduled before.
    schedule : Schedule, optional
        Changes of the strengths during the run. At each change, the solver restarts from the current
        parameters, with the current generator; the objective of an epoch uses the strengths of that epoch.
        The run does not converge while a change is pending. The schedule is read before every epoch; changes
        may be added between epochs.

    Yields
    ------
    Snapshot
        At the beginning, every `report_every` epochs, and at the end; the last one has the Status. All values
        are recomputed from the parameters, not taken from the solver.

    Raises
    ------
    ValueError
        If the solver does not support the problem, the start has the wrong shape, or the checkpoint comes
        from another solver.
    """
    budget, schedule = budget or Budget(), schedule or Schedule()
    method = chosen_solver(problem, solver)
    rng = rng if rng is not None else np.random.default_rng()
    rested = resume if resume is not None and _REST in resume.memory else None
    if rested is not None:
        start, resume = Parameters(**rested.memory[_REST]), None
    elif start is None:
        start = problem.start(finite_number("init_scale", init_scale, low=0), rng)
    _check_start(problem, start)
    draws, states = [rng], [None if resume is None else vars(resume)]
    if (m := problem.n_machines) is not None:
        draws = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=(m, 4)).tolist()]
        states = [None] * m if resume is None else resume.memory[_MACHINES]
        if budget.seconds is not None:
            budget = replace(budget, seconds=budget.seconds / m)
    if rested is not None:
        for draw, state in zip(draws, rested.memory.get(_DRAWS, ()), strict=False):
            draw.bit_generator.state = state
    done = (0, 0.0) if rested is None else (rested.epoch, rested.seconds / len(draws))
    each = zip(problem.machines, problem.split(start), draws, states, [done] * len(draws), strict=True)
    machines = [_Machine(part, method, schedule, *own) for part, *own in each]
    return each_on_one_thread(_together(problem, machines, budget, should_stop, keep, leave))


def _together(
    problem: Problem,
    machines: Sequence[_Machine],
    budget: Budget,
    should_stop: Callable[[], bool],
    keep: Keep | None,
    leave: Callable[[Mapping[str, Any], Callable[[], Checkpoint]], Any] | None,
) -> Generator[Snapshot, None, None]:
    # Between reports, machines need not wait for each other unless their common state is saved.
    each = [machine.epochs(budget, should_stop, keep is not None) for machine in machines]
    running = [pair for pair in zip(machines, each, strict=True) if not pair[0].ended]
    try:
        while running:
            for machine, epochs in running:
                machine.report = next(epochs)
            running = [pair for pair in running if not pair[0].ended]
            if keep is not None and running and all(machine.resumable for machine in machines):
                keep(partial(_checkpoint, problem, machines))
            reports = [machine.report for machine in machines]
            if None not in reports:
                yield _joined(problem, reports)
    finally:
        if leave is not None:
            begins = [_resumption(machine.method) for machine in machines]
            memory = begins[0]["memory"] if problem.n_machines is None else {_MACHINES: tuple(begins)}
            leave(memory, partial(_at_rest, problem, machines))
        for machine in machines:
            machine.method.close()


class _Machine:
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

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        schedule: Schedule,
        start: Parameters,
        rng: np.random.Generator,
        state: Mapping[str, Any] | None,
        done: tuple[int, float],
    ) -> None:
        self._solver, self._schedule, self._start, self._rng = solver, schedule, start, rng
        (self._epoch, self._seconds), self._change = done, float("nan")
        self._resumes, self._has_moved, self._objective = state is not None, False, 0.0
        self.report: Snapshot | None = None
        if state is not None:
            head = state["end"]["record"] if "end" in state else state
            self._epoch, self._seconds, self._change = head["epoch"], head["seconds"], head["change"]
            problem = problem.at(**schedule.after(self._epoch - 1))
        elif self._epoch:
            problem = problem.at(**schedule.after(self._epoch))
        self.problem, self.method = problem, solver.on(problem)
        if state is not None and "end" in state:
            record, arrays, status = (state["end"][name] for name in ("record", "parameters", "status"))
            self.report = Snapshot.of_record(record, Parameters(**arrays), Status.of(*status))
            self._start = self.report.parameters
        elif state is not None:
            self.method.start(start, rng)
            recall(self.method, state["memory"])
            self._start = self.method.parameters()

    @property
    def ended(self) -> bool:
        """Whether the run of this output has ended."""
        return self.report is not None and self.report.status is not None

    @property
    def resumable(self) -> bool:
        """Whether `state` determines the continuation of the run."""
        return self.ended or (self._has_moved and self.method.can_checkpoint())

    def state(self) -> dict[str, Any]:
        """Return the checkpoint data of this output."""
        if self.ended:
            end: Any = self.report
            status = end.status.reason.value, end.status.message
            return {"end": {"record": end.record(), "parameters": end.parameters, "status": status}}
        return _resumption(self.method, self._epoch, self._seconds, self._change)

    def present(self) -> tuple[Parameters, np.random.Generator, int, float]:
        """Return the current parameters, the generator, and the epochs and seconds so far."""
        here = self.method.parameters() if self._has_moved else self._start
        return without_rounding(self.problem, here), self._rng, self._epoch, self._seconds

    def _begin(self, parameters: Parameters) -> None:
        """Start the solver."""
        begin = self.method.clock()
        self.method.start(parameters, self._rng)
        self._seconds += self.method.clock() - begin

    def _change_strengths(self) -> None:
        """Apply the changes that are due after the epochs so far."""
        strengths = self._schedule.after(self._epoch)
        if all(getattr(self.problem, name) == value for name, value in strengths.items()):
            return
        # As at the end of a run that continues with other strengths.
        here = without_rounding(self.problem, self.method.parameters())
        self.method.close()
        self.problem = self.problem.at(**strengths)
        self.method = self._solver.on(self.problem)
        self._begin(here)

    def _escaped_zero(self, settled: bool) -> bool:
        """Replace a P that has become 0 by one with a lower objective; return whether one was found.

        Tried when the run has `settled`, and after 1, 2, 4, 8, … epochs.
        """
        method, epoch = self.method, self._epoch
        if not (method.leaves_zero and (settled or epoch & (epoch - 1) == 0)):
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
        method.start(here.replace(P=P), self._rng)
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

    def _ended_by(self, budget: Budget, should_stop: Callable[[], bool]) -> Status | None:
        """Return why the last epoch ends the run, before any certificate; None if it does not."""
        if not np.isfinite(self._change):
            return _diverged(self._epoch, self.problem.model.overflow_cause + self.method.diverged_hint)
        pending = self._schedule.pending(self._epoch, budget.epochs)
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

    def epochs(
        self, budget: Budget, should_stop: Callable[[], bool], every_epoch: bool
    ) -> Iterator[Snapshot | None]:
        """Yield the reports of the start, of epochs and of the end; with `every_epoch`, None in between."""
        cause, every = self.problem.model.overflow_cause, budget.report_every
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
            status = self._ended_by(budget, should_stop)
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


def _resumption(
    method: Solver, epoch: int = 0, seconds: float = 0.0, change: float = float("nan")
) -> dict[str, Any]:
    return {"epoch": epoch, "seconds": seconds, "change": change, "memory": remember(method)}


def _checkpoint(problem: Problem, machines: Sequence[_Machine]) -> Checkpoint:
    each = tuple(machine.state() for machine in machines)
    running = next(state for state in each if "end" not in state)
    several = {} if problem.n_machines is None else {"memory": {_MACHINES: each}}
    return Checkpoint(**{**running, **several})


def _at_rest(problem: Problem, machines: Sequence[_Machine]) -> Checkpoint:
    each, draws, epochs, seconds = zip(*(machine.present() for machine in machines), strict=True)
    joint = each[0] if problem.n_machines is None else Parameters.stacked(each)
    memory = {_REST: dict(joint), _DRAWS: tuple(draw.bit_generator.state for draw in draws)}
    return Checkpoint(max(epochs), sum(seconds), float("nan"), memory)


def _joined(problem: Problem, each: Sequence[Any]) -> Snapshot:
    """Return the joint snapshot of all machines."""
    if problem.n_machines is None:
        return each[0]
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
