"""Small tables, targets and starts that tests of models and solvers share, and how they compare runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import iterate

from fmviz.engine.checkpoint import Checkpoint
from fmviz.engine.fit import Budget
from fmviz.engine.losses import Loss, get_loss
from fmviz.engine.parameters import Parameters

STORAGES = ("dense", "sparse", "binary")
NUMBERS = (-3.0, -1.0, 0.0, 0.5, 1.0, 2.5, 7.5)


def table(storage: str = "dense", n: int = 14, d: int = 5, seed: int = 0, share: float = 0.6) -> np.ndarray:
    """Return an array to be stored so: a share of other than "dense" is not 0, of "binary" it is 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if storage != "dense":
        X *= rng.random(X.shape) < share
    return (X != 0).astype(float) if storage == "binary" else X


def stored(X: np.ndarray, storage: str) -> Any:
    """Return the table as a Problem takes it."""
    return X if storage == "dense" else sp.csr_array(X)


def pairs(n: int = 40, seed: int = 0) -> np.ndarray:
    """Return rows with any two of eight features; the fifth of nine is in no row."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, 9))
    for row in X:
        row[rng.choice(np.delete(np.arange(9), 4), 2, replace=False)] = 1.0
    return X


def targets_of(loss: Loss) -> np.ndarray:
    """Return numbers, in ascending order, that the loss accepts as targets."""
    numbers = np.array([y for y in NUMBERS if loss.why_not_target(np.array([y])) is None])
    assert numbers.size, f"{loss!r} accepts none of {NUMBERS}: add some that it does to tests/small_data.py."
    return numbers


def target(y: np.ndarray, loss: str | Loss) -> np.ndarray:
    """Return y if the loss accepts it, otherwise the nearest of `targets_of` to each number."""
    if (chosen := get_loss(loss)).why_not_target(y) is None:
        return y
    numbers = targets_of(chosen)
    return numbers[np.abs(y[..., None] - numbers).argmin(axis=-1)]


def some_zeros(start: Parameters, linear: bool = True, bias: bool = True, seed: int = 1) -> Parameters:
    """Return a start with some entries of P at 0, and w and the bias away from it where they are fitted."""
    rng = np.random.default_rng(seed)
    start.P[rng.random(start.P.shape) < 0.15] = 0.0
    return start.replace(w=rng.normal(size=start.w.size) * linear, intercept=float(rng.normal()) * bias)


def agree(result: Parameters, P: Any, w: Any, intercept: Any, abs: float, **tolerance: float) -> None:
    """Assert that parameters are these, but for so much; P's tolerance may be another one."""
    assert pytest.approx(P, abs=tolerance.get("in_P", abs)) == result.P
    assert result.w == pytest.approx(w, abs=abs)
    assert result.intercept == pytest.approx(float(np.squeeze(intercept)), abs=abs)


def same_iterates(some: Any, others: Any, close: float = 0.0) -> None:
    """Assert that runs show the same parameters and objectives, to the last bit or so close."""
    for first, other in zip(some, others, strict=True):
        assert list(first.parameters) == list(other.parameters)
        for name, array in first.parameters.items():
            np.testing.assert_allclose(other.parameters[name], array, rtol=0.0, atol=close, err_msg=name)
        assert other.objective == pytest.approx(first.objective, rel=close, abs=0.0)
        assert (first.epoch, first.status) == (other.epoch, other.status)


def assert_resumable(
    problem: Any,
    solver: Any,
    budget: Budget,
    run: Any = iterate,
    tried: int = 3,
    close: float = 0.0,
    **own: Any,
) -> Any:
    """Assert that a run has the same iterates from its checkpoints, each read back from bytes.

    So many of them are tried, the first and the last among them. Returned are the snapshots, and how many
    checkpoints there were.
    """
    kept: list[bytes] = []
    once = {name: own.pop(name) for name in ("init_scale", "start") if name in own}
    more = {"keep": lambda take: kept.append(take().to_bytes()), "rng": np.random.default_rng(0)}
    full = list(run(problem, solver, budget, **once, **more, **own))
    for packed in kept[:: max(1, len(kept) // (tried - 1))]:
        checkpoint = Checkpoint.from_bytes(packed)
        rng = np.random.default_rng(9)
        remaining = list(run(problem, solver, budget, resume=checkpoint, rng=rng, **own))
        again = full[len(full) - len(remaining) :]
        assert remaining[0].epoch == checkpoint.epoch
        same_iterates(again, remaining, close)
        certified = [[np.isnan(item.certificate) for item in both[1:]] for both in (again, remaining)]
        assert certified[0] == certified[1]
    return full, len(kept)


def differences(f: Any, at: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """Return the slopes of f at an array as central differences."""
    slopes = np.empty((*np.shape(f(at)), *at.shape))
    for place in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[place] = h
        slopes[(..., *place)] = (f(at + step) - f(at - step)) / (2.0 * h)
    return slopes
