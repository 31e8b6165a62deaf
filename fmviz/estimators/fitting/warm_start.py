"""Warm starts: where a fit starts, and what its solver remembers of the one before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fmviz.engine.outputs.drive import for_other_rows
from fmviz.engine.outputs.side_by_side import AnyProblem
from fmviz.engine.parameters import Parameters
from fmviz.engine.schedule import STRENGTHS
from fmviz.engine.solvers import Solver


def overlaid(start: Parameters, given: Mapping[str, Any], dummies: int) -> Parameters:
    """Return the starting point with the arrays that are given in their place.

    Parameters
    ----------
    start : Parameters
        Of the shapes that the problem needs.
    given : mapping of str to array_like
        By the names of the parameters; P and w may do without the rows of the dummy features.
    dummies : int
        The number of dummy features, the last ones.

    Raises
    ------
    ValueError
        If an array has another shape.
    """
    arrays = {}
    # Of several machines the rows are the second axis.
    before = (slice(None),) * (start.n_machines is not None)
    for name, value in given.items():
        array, filled = np.asarray(value, dtype=np.float64), np.array(start[name])
        place = filled
        if filled.ndim > len(before) and array.shape != filled.shape:
            # Attributes of estimators lack the rows of the dummy features, which stay as they are.
            place = filled[(*before, slice(filled.shape[len(before)] - dummies))]
        if array.shape != place.shape:
            raise ValueError(
                f"A warm start from {name}_ of shape {array.shape} is not possible: this fit needs the shape "
                f"{place.shape}. Give back the rank, the model and the number of features that it was made "
                "with, or start anew with warm_start=False."
            )
        place[...] = array
        arrays[name] = filled
    return start.replace(**arrays)


class Memory(NamedTuple):
    """What a solver remembers at the end of a fit.

    Attributes
    ----------
    solver : str
        Its name.
    key : str
        Tells the problem, the solver's settings and the parameters at which it ended.
    held : mapping
        As in `fmviz.engine.checkpoint.Checkpoint`.
    """

    solver: str
    key: str
    held: Mapping[str, Any]

    @classmethod
    def of(cls, problem: AnyProblem, solver: Solver, end: Parameters, held: Mapping[str, Any]) -> Memory:
        """Return the memory of a fit that ended at these parameters."""
        return cls(solver.name, _key(problem, solver, end), held)

    def at(self, problem: AnyProblem, solver: Solver, start: Parameters) -> Mapping[str, Any] | None:
        """Return what is held where a fit would go on from where the last one ended, else None."""
        return self.held if self.held and self.key == _key(problem, solver, start) else None

    def on_other_rows(self, solver: Solver) -> Mapping[str, Any] | None:
        """Return what holds on other rows, too, or None where another solver remembers it."""
        return for_other_rows(solver, self.held) if self.held and self.solver == solver.name else None


def _key(problem: AnyProblem, solver: Solver, at: Parameters) -> str:
    told = (
        *(problem.model, problem.penalty, problem.loss, problem.rank),
        *(np.asarray(getattr(problem, name)).tolist() for name in STRENGTHS),
        *(problem.fit_linear, problem.fit_intercept, problem.design.storage.name, problem.design.shape),
        *(solver.name, solver.settings, list(at)),
    )
    digest = hashlib.blake2b(repr(told).encode(), digest_size=16)
    for array in (*problem.design.columns, problem.y, problem.unit_weights, *at.values()):
        if array.size:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
