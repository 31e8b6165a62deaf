"""Contract tests of a regularizer without an exact operator: Ω_*."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from by_name import build_problem
from oracles import slow_fm
from oracles.generic_convex import least_subgradient

import fmviz
from fmviz.engine.certificates.stationarity import stationarity
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES, omega_star

NAMES = [name for name, r in PENALTIES.items() if not r.exact_prox]


def factors(rng: np.random.Generator, d: int = 7, k: int = 3) -> np.ndarray:
    """Zero rows, and pairs of rows without a common column."""
    P = rng.normal(size=(d, k)) * (rng.random((d, k)) < 0.5)
    P[2] = 0.0
    P[3] = [1.0, 0.0, 0.0]
    P[4] = [0.0, -0.7, 0.0]
    return P


def objective(name: str, Q: np.ndarray, P: np.ndarray, strength: float) -> float:
    return 0.5 * np.sum((Q - P) ** 2) + strength * slow_fm.omega(name, Q)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("block", [1, 5, 1 << 22])
def test_value_and_subgradient_in_any_blocks(name, block, monkeypatch, rng):
    monkeypatch.setattr(omega_star, "_BLOCK", block)
    for _ in range(20):
        P = factors(rng)
        S = P @ P.T
        np.fill_diagonal(S, 0.0)
        assert fmviz.regularizer_value(name, P) == pytest.approx(slow_fm.omega(name, P), rel=1e-12)
        assert PENALTIES[name].subgradient(P) == pytest.approx(np.sign(S) @ P, abs=1e-12)
        # ‖PPᵀ‖₁ = 2Ω_* + ‖P‖²
        assert np.abs(P @ P.T).sum() == pytest.approx(2 * slow_fm.omega(name, P) + np.sum(P**2))


@pytest.mark.parametrize("name", NAMES)
def test_operator_is_the_loop_and_never_worse_than_its_input(name, rng):
    for trial in range(40):
        P = rng.normal(size=(6, 3)) * 10.0 ** rng.integers(-3, 3)
        strength = float(10.0 ** rng.uniform(-3, 2)) if trial else 1e300
        with np.errstate(all="ignore"):
            path = [P]
            for t in range(1, 21):
                Q = path[-1]
                S = np.sign(Q @ Q.T)
                np.fill_diagonal(S, 0.0)
                path.append(Q - 0.1 / np.sqrt(t) * (Q - P + strength * S @ Q))
            values = [objective(name, Q, P, strength) for Q in path]
        best = min(v for v in values if np.isfinite(v))
        approximate = fmviz.prox(name, P, strength)
        assert objective(name, approximate, P, strength) == pytest.approx(best, rel=1e-9)
        assert best <= values[0]


@pytest.mark.parametrize("name", NAMES)
def test_more_steps_come_near_the_convex_optimum(name):
    # For strength < 1 the operator's problem is convex; without a change of sign it has a gradient.
    P = np.abs(np.random.default_rng(3).normal(size=(6, 3))) + 0.5
    few, many = (
        fmviz.prox(replace(PENALTIES[name], prox_steps=n, prox_step=0.5), P, 0.05) for n in (20, 3000)
    )
    assert fmviz.certificate(name, P, many, 0.05) < 1e-6
    assert 1e-6 < fmviz.certificate(name, P, few, 0.05) < 1.0
    assert objective(name, many, P, 0.05) <= objective(name, few, P, 0.05)


@pytest.mark.parametrize("name", NAMES)
def test_residual_is_the_subgradient_of_least_norm(name, rng):
    for strength in (0.1, 1.0, 5.0):
        for _ in range(4):
            Q = factors(rng)
            G = rng.normal(size=Q.shape)
            norm = np.linalg.norm(PENALTIES[name].residual(G, Q, strength))
            least = least_subgradient(G, Q, strength)
            # An upper bound, and close.
            assert least - 1e-6 <= norm <= least + 1e-3 * np.linalg.norm(G)


@pytest.mark.parametrize("name", NAMES)
def test_residual_of_a_subgradient_is_zero(name):
    rng = np.random.default_rng(5)
    for _ in range(10):
        Q = factors(rng)
        S = Q @ Q.T
        Z = np.where(S != 0, np.sign(S), rng.uniform(-0.9, 0.9, S.shape))
        Z = np.tril(Z, -1) + np.tril(Z, -1).T
        residual = PENALTIES[name].residual(0.7 * Z @ Q, Q, 0.7)
        # 1e-4 is what two hundred steps reach where rows are nearly parallel.
        assert np.abs(residual).max() <= 1e-3 * np.abs(Q).max()
        assert np.abs(residual).mean() <= 1e-5
        # Without room for the signs the bound is coarser, but still one.
        assert np.abs(PENALTIES[name].residual(0.7 * np.sign(S) @ Q, Q, 0.0)).max() > 0.01


@pytest.mark.parametrize("name", NAMES)
def test_stationarity_certifies_a_sparse_stationary_point_and_no_other(name, rng):
    # Two features, orthogonal rows, and data that want a weak interaction: the penalty holds it at 0.
    X = rng.normal(size=(50, 2))
    y = 0.05 * X[:, 0] * X[:, 1]
    P = np.array([[0.5, 0.0], [0.0, 0.5]])
    problem = build_problem(
        X, y, regularizer=name, rank=2, lambda_sparse=1.0, fit_linear=False, fit_intercept=False
    )
    here = Parameters(P, np.zeros(2), 0.0)
    assert stationarity(problem, here) <= 1e-6
    # Past the kink nothing holds it.
    tilted = Parameters(P + np.array([[0.0, 0.01], [0.0, 0.0]]), np.zeros(2), 0.0)
    assert stationarity(problem, tilted) > 1e-2
    weak = build_problem(
        X, y, regularizer=name, rank=2, lambda_sparse=1e-4, fit_linear=False, fit_intercept=False
    )
    assert stationarity(weak, here) > 1e-2
