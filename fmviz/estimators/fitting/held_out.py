"""Early stopping: rows that are held out of a fit, and the parameters that suit them best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.model_selection import train_test_split

from fmviz.engine.outputs.side_by_side import AnyProblem, certify
from fmviz.engine.snapshot import Snapshot

LOSS = "validation_loss"


class HeldOut:
    """The best parameters so far, by the mean loss on the rows held out.

    Parameters
    ----------
    problem : AnyProblem
        Of the rows held out.
    patience : int
        So many epochs without a lower loss are enough.
    """

    def __init__(self, problem: AnyProblem, patience: int) -> None:
        self._problem, self._patience = problem, patience
        self._best: Snapshot | None = None

    @classmethod
    def split(
        cls, problem: AnyProblem, fraction: float, patience: int, rng: np.random.Generator, stratified: bool
    ) -> tuple[AnyProblem, HeldOut]:
        """Return the problem of the other rows, and those of a random choice held out."""
        rest, chosen = train_test_split(
            np.arange(problem.design.n_samples),
            test_size=fraction,
            random_state=int(rng.integers(2**31)),
            stratify=problem.y if stratified else None,
        )
        return problem.of_rows(rest), cls(problem.of_rows(chosen), patience)

    def measured(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the loss on the rows held out among its metrics."""
        loss = self._problem.risk(snapshot.parameters)
        snapshot = replace(snapshot, metrics={**snapshot.metrics, LOSS: loss})
        if self._best is None or loss < self._best.metrics[LOSS]:
            self._best = snapshot
        return snapshot

    def why_enough(self, snapshot: Snapshot) -> str | None:
        """Return None, or why to stop after this epoch."""
        assert self._best is not None, "`measured` comes first"
        if snapshot.epoch - self._best.epoch < self._patience:
            return None
        return (
            f"Stopped after {snapshot.epoch:,} epochs: in the last {self._patience} of them the loss on the "
            "rows held out did not fall."
        )

    def kept(self, problem: AnyProblem, end: Snapshot) -> Snapshot:
        """Return the end of the fit with the parameters of the epoch that suited the rows held out best."""
        best = self._best
        assert best is not None
        assert end.status is not None
        if best.epoch == end.epoch:
            return end
        message = f"{end.status.message} The parameters are those of epoch {best.epoch:,}, the best there."
        return replace(
            best,
            certificate=certify(problem, best.parameters),
            status=replace(end.status, message=message),
        )
