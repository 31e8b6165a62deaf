"""X in single precision: half the memory, and the numbers of a run in double precision on the rounded X."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import build_problem, iterate

import fmviz
from fmviz.engine.design import Design
from fmviz.engine.fit import Budget
from fmviz.engine.linalg.lowrank import pair_gradient
from fmviz.engine.models.quadratic import pair_sums
from fmviz.engine.snapshot import Snapshot

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 270)) * (RNG.random((300, 270)) < 0.2)
Y = RNG.normal(size=300)
FORMS = {"dense": lambda X: X, "sparse": sp.csr_array}
SOLVERS = {
    "pcd": "ti",
    "pbcd": "cs",
    "cd": "l2",
    "lbfgs": "l2",
    "apgd": "ti",
    "psgd": "ti",
}


def last(design: Design, solver: str, epochs: int = 5, tol: float = 0.0) -> Snapshot:
    regularizer = SOLVERS[solver]
    problem = build_problem(
        design,
        Y[: design.n_samples],
        regularizer=regularizer,
        rank=3,
        lambda_w=0.01,
        lambda_p=0.01,
        lambda_sparse=0.0 if regularizer == "l2" else 0.001,
    )
    *_, end = iterate(problem, solver, Budget(epochs, tol=tol), rng=np.random.default_rng(1))
    return end


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_iterates_are_those_of_the_rounded_values(solver, form):
    some = X[:, :40]
    half = Design(FORMS[form](some), "float32")
    rounded = Design(FORMS[form](some.astype(np.float32).astype(np.float64)))
    first, two = last(half, solver), last(rounded, solver)
    assert first.objective == pytest.approx(two.objective, rel=1e-10)
    scale = np.abs(two.parameters.w).max()
    assert np.abs(first.parameters.w - two.parameters.w).max() <= 1e-10 * scale
    assert pytest.approx(two.parameters.P, rel=1e-10, abs=1e-12) == first.parameters.P


def test_the_certificate_holds_to_double_precision():
    design = Design(X[:, :20], "float32")
    end = last(design, "pcd", epochs=5000, tol=1e-12)
    assert end.status.converged
    assert end.certificate < 1e-9


@pytest.mark.parametrize("form", FORMS)
def test_products_are_taken_in_double_precision(form):
    design = Design(FORMS[form](X), "float32")
    rounded = X.astype(np.float32).astype(np.float64)
    right, left = RNG.normal(size=(270, 2)), RNG.normal(size=300)
    assert design.matrix.dtype == design.columns.data.dtype == design.rows.data.dtype == np.float32
    assert design.dot(right) == pytest.approx(rounded @ right, rel=1e-13, abs=1e-13)
    assert design.transpose_dot(left) == pytest.approx(rounded.T @ left, rel=1e-13, abs=1e-13)
    for exponent in (1, 2, 4):
        power = design.power(exponent)
        assert power @ right == pytest.approx(rounded**exponent @ right, rel=1e-13, abs=1e-13)
        assert power.T @ left == pytest.approx((rounded**exponent).T @ left, rel=1e-13, abs=1e-13)
    assert design.columns.data.nbytes * 2 == Design(FORMS[form](X)).columns.data.nbytes


@pytest.mark.parametrize("form", FORMS)
def test_sums_over_pairs_are_taken_in_double_precision(form):
    # What the quadratic model reads; its solver's steps are inexact, so that iterates differ by more.
    design = Design(FORMS[form](X), "float32")
    rounded = Design(X.astype(np.float32).astype(np.float64))
    W = RNG.normal(size=(270, 270))
    W += W.T
    assert pair_sums(design, W) == pytest.approx(pair_sums(rounded, W), rel=1e-11, abs=1e-11)
    result = pair_gradient(design, Y, False)
    assert result == pytest.approx(pair_gradient(rounded, Y, False), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("value", "dtype", "words"),
    [
        (1e39, "float32", r"above the maximum of dtype='float32', 3\.4e\+38; scale X"),
        (np.nan, "float32", "X contains NaN"),
        (2.0, "float16", r"dtype.*float16.*float64.*float32"),
    ],
)
def test_what_is_too_large_is_named(form, value, dtype, words):
    with pytest.raises(ValueError, match=words):
        Design(FORMS[form](np.array([[1.0, value], [2.0, 3.0]])), dtype)


def test_estimators_keep_single_precision_as_it_is():
    settings = {
        **{"rank": 3, "lambda_sparse": 0.001, "max_iter": 20, "tol": 0.0, "random_state": 0},
        "standardize": False,  # Scaled columns would be rounded once more.
    }
    few = X[:, :10]
    half = fmviz.FactorizationMachineRegressor(dtype="float32", **settings).fit(few, Y)
    rounded = few.astype(np.float32).astype(np.float64)
    full = fmviz.FactorizationMachineRegressor(**settings).fit(rounded, Y)
    assert pytest.approx(full.P_, rel=1e-10, abs=1e-12) == half.P_
    assert half.predict(few) == pytest.approx(full.predict(rounded), rel=1e-10, abs=1e-12)
