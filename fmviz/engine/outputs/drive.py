"""The loop of runs with several outputs: an epoch of every machine that goes on, then one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
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
# Of several ends the first of these is told.
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
    """Run a solver and report, as `fmviz.engine.drive.iterate`, for problems with any number of outputs.

    Machines side by side each make an epoch, unless they have ended. In their snapshots the objective, its
    parts and the parameters are those of `SideBySide`, the certificate and the change are the largest of all,
    what one machine uses counts as used, and the seconds are those of all. Seconds of a budget are shared out
    equally. The run has converged where every machine has. Checkpoints are offered with snapshots.
    """
    if problem.n_machines is None:
        chosen = {} if keep is None else {"keep": keep}
        (one,) = problem.machines
        return drive.iterate(
            one,
            solver,
            budget,
            should_stop,
            start=start,
            init_scale=init_scale,
            rng=rng,
            resume=resume,
            leave=leave,
            schedule=schedule,
            **chosen,
        )
    budget, m = budget or Budget(), problem.n_machines
    rng = rng if rng is not None else np.random.default_rng()
    if start is None:
        start = problem.start(init_scale, rng)
    if start.n_machines != m:
        raise ValueError(f"The start has P of shape {start.P.shape}; this problem needs {m} of them.")
    if budget.seconds is not None:
        budget = replace(budget, seconds=budget.seconds / m)
    held = (None,) * m if resume is None else resume.memory[_MACHINES]
    settings = {"solver": solver, "budget": budget, "should_stop": should_stop, "schedule": schedule}
    found = [
        _Machine(one, begin, np.random.default_rng(seed), memory, settings)
        for one, begin, seed, memory in zip(
            problem.machines,
            problem.split(start),
            rng.integers(2**63, size=(m, 4)).tolist(),
            held,
            strict=True,
        )
    ]
    return _together(problem, found, keep, leave)


def for_other_rows(solver: Solver, memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return of what `iterate` left that which holds when the rows change, too."""
    if _MACHINES not in memory:
        return solver.for_other_rows(memory)
    each = [{**one, "memory": solver.for_other_rows(one["memory"])} for one in memory[_MACHINES]]
    return {_MACHINES: tuple(each)} if any(one["memory"] for one in each) else {}


class _Machine:
    """The run of one output.

    Attributes
    ----------
    last : Snapshot
        Its latest one.
    """

    last: Snapshot

    def __init__(
        self,
        problem: Problem,
        start: Parameters,
        rng: np.random.Generator,
        held: Mapping[str, Any] | None,
        settings: Mapping[str, Any],
    ) -> None:
        self._take: Callable[[], Checkpoint] | None = None
        self._left: Mapping[str, Any] = {}
        self._run: Generator[Snapshot, None, None] | None = None
        if held is not None and "end" in held:
            self.last = _unpacked(held["end"])
            return
        resume = None
        if held is not None:
            resume = Checkpoint(held["epoch"], held["seconds"], held["change"], held["memory"])
        self._run = drive.iterate(
            problem,
            start=start,
            rng=rng,
            resume=resume,
            keep=self._keep,
            leave=self._leave,
            **settings,
        )

    def _keep(self, take: Callable[[], Checkpoint]) -> None:
        self._take = take

    def _leave(self, memory: Mapping[str, Any]) -> None:
        self._left = memory

    def advance(self) -> None:
        """Go on to the next snapshot, if there is one."""
        if self._run is not None:
            self._take = None
            self.last = next(self._run)
            if self.last.status is not None:
                self.close()

    @property
    def can_checkpoint(self) -> bool:
        """Whether `held` tells all."""
        return self._run is None or self._take is not None

    def held(self) -> dict[str, Any]:
        """Return what a checkpoint keeps of the run."""
        if self._run is None:
            return {"end": _packed(self.last)}
        assert self._take is not None, "the machine is at rest"
        found = self._take()
        return {
            "epoch": found.epoch,
            "seconds": found.seconds,
            "change": found.change,
            "memory": found.memory,
        }

    @property
    def left(self) -> dict[str, Any]:
        """What the solver remembered at the end, as the beginning of another run."""
        return {"epoch": 0, "seconds": 0.0, "change": float("nan"), "memory": self._left}

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
            for one in machines:
                one.advance()
            snapshot = _joined(problem.model, problem.target, [one.last for one in machines])
            going = snapshot.status is None
            if keep is not None and going and all(one.can_checkpoint for one in machines):
                keep(lambda now=snapshot: _checkpoint(now, machines))  # type: ignore[misc]
            yield snapshot
    finally:
        for one in machines:
            one.close()
        if leave is not None:
            leave({_MACHINES: tuple(one.left for one in machines)})


def _checkpoint(snapshot: Snapshot, machines: Sequence[_Machine]) -> Checkpoint:
    memory = {_MACHINES: tuple(one.held() for one in machines)}
    return Checkpoint(snapshot.epoch, snapshot.seconds, snapshot.change, memory)


def _joined(model: Model, target: Target, each: Sequence[Snapshot]) -> Snapshot:
    """Return the snapshot of all machines together."""
    parameters = Parameters.stacked([one.parameters for one in each])
    used = union(model, parameters)
    epoch = max(one.epoch for one in each)
    record: dict[str, float] = {
        "epoch": epoch,
        "seconds": sum(one.seconds for one in each),
        "used_features": model.used_features(used),
        "used_interactions": model.used_interactions(used),
    }
    for name in ("objective", "loss", "penalty_w", "penalty_p", "penalty_sparse"):
        record[name] = float(np.mean([getattr(one, name) for one in each]))
    for name in ("certificate", "change"):
        record[name] = float(np.max([getattr(one, name) for one in each]))
    return Snapshot.of_record(record, parameters, _status(target, [one.status for one in each], epoch))


def _status(target: Target, each: Sequence[Status | None], epoch: int) -> Status | None:
    """Return the end of all, which is that of the one that ended worst; None while one goes on."""
    ends = [one for one in each if one is not None]
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


def _packed(end: Snapshot) -> dict[str, Any]:
    assert end.status is not None, "the machine has ended"
    return {
        "record": end.record(),
        "parameters": {name: array.copy() for name, array in end.parameters.items()},
        "status": (end.status.reason.value, end.status.message),
    }


def _unpacked(held: Mapping[str, Any]) -> Snapshot:
    return Snapshot.of_record(held["record"], Parameters(**held["parameters"]), Status.of(*held["status"]))
