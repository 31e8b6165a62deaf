"""Contract tests of the penalties on the output layer of a shared basis."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest

from fmviz.engine.penalties import L1LInf


def test_the_operator_of_l1_linf_is_the_least_and_certified():
    rng, penalty = np.random.default_rng(0), L1LInf()
    for trial in range(200):
        P = rng.normal(size=(3, int(rng.integers(1, 6))))
        P = np.round(P) if trial % 3 == 1 else P
        strength = 10.0 ** rng.uniform(-3, 1)
        Q = penalty.prox(P, strength)
        # (P − Q)/strength is in the subdifferential at Q.
        assert penalty.residual(P - Q, Q, strength) == pytest.approx(np.zeros_like(P), abs=1e-12)
        by_rows = np.zeros_like(P)
        for r, row in enumerate(P):
            by_rows[r] = row
            penalty.row.shrink(by_rows[r], strength, r, P, np.zeros(1))
        assert by_rows == pytest.approx(Q, abs=1e-12)
        assert penalty.row.penalty(P[0], 0, P, np.zeros(1)) == pytest.approx(np.abs(P[0]).max())


def test_the_operator_of_l1_linf_agrees_with_a_generic_solver(rng):
    for strength in (0.1, 1.0):
        P = rng.normal(size=(4, 3))
        Q = cvxpy.Variable(P.shape)
        penalty = cvxpy.sum([cvxpy.norm_inf(Q[r]) for r in range(4)])
        cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(Q - P) + strength * penalty)).solve("CLARABEL")
        assert L1LInf().prox(P, strength) == pytest.approx(Q.value, abs=1e-5)


def test_residuals_are_distances_to_the_subdifferential():
    rng, penalty = np.random.default_rng(2), L1LInf()
    for _ in range(100):
        Q = rng.normal(size=(1, 4))
        Q[0, :2] = np.abs(Q).max() * np.sign(Q[0, :2])
        G = rng.normal(size=(1, 4))
        residual = penalty.residual(G, Q, 0.7)
        nearest = G - residual
        # It is in 0.7·∂Ω(Q): ⟨nearest, Q⟩ = 0.7·Ω(Q), its dual norm 0.7; and no other one is nearer.
        assert float((nearest * Q).sum()) == pytest.approx(0.7 * penalty.value(Q))
        assert np.abs(nearest).sum() == pytest.approx(0.7)
        for share in rng.dirichlet(np.ones(2), size=5):
            other = np.zeros((1, 4))
            other[0, :2] = 0.7 * share * np.sign(Q[0, :2])
            assert float((residual * (other - nearest)).sum()) <= 1e-9
