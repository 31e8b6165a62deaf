"""Run a solver on several outputs: an epoch of every active machine, then one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .. import drive
from ..checkpoint import Checkpoint, Keep
from ..drive import Budget
from ..models import Model
from ..parameters import Parameters
from ..problem import Problem
from ..schedule import Schedule
from ..snapshot import Reason, Snapshot, Status
from ..solvers import Solver
from ..target import Target
from .side_by_side import AnyProblem, SideBySide, outputs_in_words, union

_MACHINES = "machines"
# Reasons by priority: of several ends the first of these is reported.
_WORST = (
    Reason.DIVERGED,
    Reason.STALLED,
    Reason.EPOCHS,
    Reason.SECONDS,
    Reason.STOPPED,
    Reason.RANK,
    Reason.CONVERGED,
)


def iterate(
    problem: AnyProblem,
    solver: str | Solver = "auto",
    budget: Budget | None = None,
    should_stop: Callable[[], bool] = drive.never,
    *,
    start: Parameters | None = None,
    init_scale: float = 0.01,
    rng: np.random.Generator | None = None,
    resume: Checkpoint | None = None,
    keep: Keep | None = None,
    leave: Callable[[Mapping[str, Any]], Any] | None = None,
    schedule: Schedule | None = None,
) -> Generator[Snapshot, None, None]:
    """Run a solver and yield snapshots, as `fmviz.engine.drive.iterate`, for any number of outputs.

    Machines side by side each make an epoch, unless they have ended. In their snapshots the objective, its
    parts and the parameters are those of `SideBySide`, the certificate and the change are the largest of all,
    used features and interactions are those of any machine, and seconds are summed. Seconds of a budget are
    divided equally. The run has converged where every machine has. Checkpoints are offered with snapshots.
    """
    if problem.n_machines is None:
        (machine,) = problem.machines
        return drive.iterate(
            machine,
            solver,
            budget,
            should_stop,
            start=start,
            init_scale=init_scale,
            rng=rng,
            resume=resume,
            keep=keep,
            leave=leave,
            schedule=schedule,
        )
    budget, m = budget or Budget(), problem.n_machines
    rng = rng if rng is not None else np.random.default_rng()
    if start is None:
        start = problem.start(init_scale, rng)
    if start.n_machines != m:
        raise ValueError(f"The start has P of shape {start.P.shape}; this problem needs {m} of them.")
    if budget.seconds is not None:
        budget = replace(budget, seconds=budget.seconds / m)
    memories = (None,) * m if resume is None else resume.memory[_MACHINES]
    settings = {"solver": solver, "budget": budget, "should_stop": should_stop, "schedule": schedule}
    machines = [
        _Machine(machine, begin, np.random.default_rng(seed), memory, settings)
        for machine, begin, seed, memory in zip(
            problem.machines,
            problem.split(start),
            rng.integers(2**63, size=(m, 4)).tolist(),
            memories,
            strict=True,
        )
    ]
    return _together(problem, machines, keep, leave)


def for_other_rows(solver: Solver, memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a state left by `iterate` that stays valid when the rows change."""
    if _MACHINES not in memory:
        return solver.for_other_rows(memory)
    each = [{**state, "memory": solver.for_other_rows(state["memory"])} for state in memory[_MACHINES]]
    return {_MACHINES: tuple(each)} if any(state["memory"] for state in each) else {}


class _Machine:
    """The run of one output.

    Attributes
    ----------
    last : Snapshot
        Its latest snapshot.
    """

    def __init__(
        self,
        problem: Problem,
        start: Parameters,
        rng: np.random.Generator,
        state: Mapping[str, Any] | None,
        settings: Mapping[str, Any],
    ) -> None:
        self._take: Any = None
        self._memory: Mapping[str, Any] = {}
        self._run: Generator[Snapshot, None, None] | None = None
        if state is not None and "end" in state:
            end = state["end"]
            self.last = Snapshot.of_record(
                end["record"], Parameters(**end["parameters"]), Status.of(*end["status"])
            )
            return
        resume = None
        if state is not None:
            resume = Checkpoint(**state)
        self._run = drive.iterate(
            problem,
            start=start,
            rng=rng,
            resume=resume,
            keep=partial(setattr, self, "_take"),
            leave=partial(setattr, self, "_memory"),
            **settings,
        )

    def advance(self) -> None:
        """Advance to the next snapshot, if there is one."""
        if self._run is not None:
            self._take = None
            self.last = next(self._run)
            if self.last.status is not None:
                self.close()

    @property
    def can_checkpoint(self) -> bool:
        """Whether `state` determines the further run."""
        return self._run is None or self._take is not None

    def state(self) -> dict[str, Any]:
        """Return the state of the run for a checkpoint."""
        if self._run is None:
            end = self.last
            assert end.status is not None, "the machine has ended"
            parameters = {name: array.copy() for name, array in end.parameters.items()}
            status = end.status.reason.value, end.status.message
            return {"end": {"record": end.record(), "parameters": parameters, "status": status}}
        return dict(vars(self._take()))

    @property
    def end(self) -> dict[str, Any]:
        """The solver's final state, as the start of another run."""
        return {"epoch": 0, "seconds": 0.0, "change": float("nan"), "memory": self._memory}

    def close(self) -> None:
        """End the run."""
        if self._run is not None:
            self._run.close()
            self._run = None


def _together(
    problem: SideBySide,
    machines: Sequence[_Machine],
    keep: Keep | None,
    leave: Callable[[Mapping[str, Any]], Any] | None,
) -> Generator[Snapshot, None, None]:
    try:
        going = True
        while going:
            for machine in machines:
                machine.advance()
            snapshot = _joined(problem.model, problem.target, [machine.last for machine in machines])
            going = snapshot.status is None
            if keep is not None and going and all(machine.can_checkpoint for machine in machines):
                keep(lambda now=snapshot: _checkpoint(now, machines))  # type: ignore[misc]
            yield snapshot
    finally:
        for machine in machines:
            machine.close()
        if leave is not None:
            leave({_MACHINES: tuple(machine.end for machine in machines)})


def _checkpoint(snapshot: Snapshot, machines: Sequence[_Machine]) -> Checkpoint:
    memory = {_MACHINES: tuple(machine.state() for machine in machines)}
    return Checkpoint(snapshot.epoch, snapshot.seconds, snapshot.change, memory)


def _joined(model: Model, target: Target, each: Sequence[Snapshot]) -> Snapshot:
    """Return the snapshot of all machines together."""
    parameters = Parameters.stacked([snapshot.parameters for snapshot in each])
    used = union(model, parameters)
    epoch = max(snapshot.epoch for snapshot in each)
    record: dict[str, float] = {
        "epoch": epoch,
        "seconds": sum(snapshot.seconds for snapshot in each),
        "used_features": model.used_features(used),
        "used_interactions": model.used_interactions(used),
    }
    for name in ("objective", "loss", "penalty_w", "penalty_p", "penalty_sparse"):
        record[name] = float(np.mean([getattr(snapshot, name) for snapshot in each]))
    for name in ("certificate", "change"):
        record[name] = float(np.max([getattr(snapshot, name) for snapshot in each]))
    return Snapshot.of_record(
        record, parameters, _status(target, [snapshot.status for snapshot in each], epoch)
    )


def _status(target: Target, each: Sequence[Status | None], epoch: int) -> Status | None:
    """Return the worst status of all machines; None while one is running."""
    ends = [end for end in each if end is not None]
    if len(ends) < len(each):
        return None
    worst = min(ends, key=lambda status: _WORST.index(status.reason))
    if worst.converged:
        n = f"{epoch:,} epoch" + ("" if epoch == 1 else "s")
        return replace(worst, message=f"All {len(each)} outputs converged, the last one after {n}.")
    if worst.reason is Reason.STOPPED:
        return worst
    which = [c for c, status in enumerate(ends) if not status.converged]
    where = outputs_in_words(target, which)
    return replace(worst, message=f"{where} of {len(each)} did not converge. {worst.message}")
