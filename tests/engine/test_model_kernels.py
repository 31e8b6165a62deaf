"""Kernels of related models equal the sums over subsets that define them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from oracles import slow_kernels

from fmviz.engine.design import Design
from fmviz.engine.models.columns import AllSubsetsKernel, Anova, Polynomial


def data(storage: str, d: int, rng: np.random.Generator) -> tuple[np.ndarray, Design]:
    X = rng.normal(size=(6, d))
    if storage == "dense":
        return X, Design(X)
    X[rng.random(X.shape) < 0.4] = 0.0
    if storage == "binary":
        X = (X != 0).astype(float)
    X[0] = 0.0
    X[1, 0] = 1.0
    return X, Design(sp.csr_array(X))


@pytest.mark.sample(8)
@pytest.mark.parametrize("storage", ["dense", "sparse", "binary"])
@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_values_and_gradients_are_sums_over_subsets(storage, d):
    rng = np.random.default_rng(d)
    X, design = data(storage, d, rng)
    P = rng.normal(size=(d, 3))
    P[rng.random(P.shape) < 0.2] = 0.0
    slope = rng.normal(size=(6, 3))
    cases = [(Anova(m), lambda p, x, m=m: slow_kernels.anova(p, x, m)) for m in range(1, d + 1)]
    cases.append((AllSubsetsKernel(), slow_kernels.all_subsets))
    for kernel, value in cases:
        expected = np.array([[value(P[:, s], x) for s in range(3)] for x in X])
        assert kernel.values(design, P) == pytest.approx(expected, abs=1e-10)
        # They are linear in every entry: the slope is the difference that a step of 1 makes.
        ahead = [[[value(P[:, s] + e, x) for s in range(3)] for e in np.eye(d)] for x in X]
        slopes = np.array(ahead) - expected[:, None]
        in_P = np.einsum("ns,njs->js", slope, slopes)
        assert kernel.gradient(design, P, slope) == pytest.approx(in_P, abs=1e-10)
        squares = np.einsum("ns,njs->js", slope, slopes**2)
        assert kernel.squares(design, P, slope) == pytest.approx(squares, abs=1e-9)


@pytest.mark.parametrize("storage", ["dense", "sparse", "binary"])
def test_polynomial_is_its_definition(storage, rng):
    X, design = data(storage, 4, rng)
    P = rng.normal(size=(4, 3))
    for m in (1, 2, 3, 5):
        expected = [[slow_kernels.polynomial(P[:, s], x, m) for s in range(3)] for x in X]
        assert Polynomial(m).values(design, P) == pytest.approx(np.array(expected), rel=1e-12)
        squares = X.T**2 @ (m * (X @ P) ** (m - 1)) ** 2
        assert Polynomial(m).squares(design, P, np.ones((6, 3))) == pytest.approx(squares, rel=1e-12)


def test_a_degree_above_the_number_of_features_is_no_subset():
    design = Design(np.ones((2, 3)))
    P = np.ones((3, 2))
    assert not Anova(4).values(design, P).any()
    assert not Anova(4).gradient(design, P, np.ones((2, 2))).any()


def test_products_leave_the_range_of_doubles_on_the_way_only():
    P = np.array([[2.0**200 - 1.0]] * 6 + [[2.0**-50 - 1.0]] * 24)
    design = Design(np.ones((1, 30)))
    assert AllSubsetsKernel().values(design, P) == pytest.approx(1.0, rel=1e-12)
    gradient = AllSubsetsKernel().gradient(design, P, np.ones((1, 1)))
    assert gradient[0] == pytest.approx(2.0**-200, rel=1e-12)
    assert gradient[-1] == pytest.approx(2.0**50, rel=1e-12)


def test_a_factor_of_zero_keeps_its_gradient():
    # p_0 x_0 = −1: the product is 0, and so is every slope but that of p_0.
    design = Design(np.array([[1.0, 2.0, 3.0]]))
    P = np.array([[-1.0], [0.5], [1.0]])
    assert AllSubsetsKernel().values(design, P) == 0.0
    assert AllSubsetsKernel().gradient(design, P, np.ones((1, 1))).ravel() == pytest.approx([8.0, 0.0, 0.0])
