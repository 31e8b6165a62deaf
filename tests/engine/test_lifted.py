"""Lifted expansions: against the tensor itself, against the paper's equivalences, and their counts."""

from __future__ import annotations

import numpy as np
import pytest
from by_name import build_problem, iterate
from oracles import slow_fm, slow_lifted

from fmviz.engine import counting
from fmviz.engine.fit import Budget
from fmviz.engine.interactions.weights import to_expansion
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem


def best_of(problem: Problem, solver: str, seeds: int, init_scale: float = 0.5):
    runs = [
        list(
            iterate(
                problem,
                solver,
                Budget(5_000, tol=1e-9, report_every=None),
                init_scale=init_scale,
                rng=np.random.default_rng(seed),
            )
        )[-1]
        for seed in range(seeds)
    ]
    return min(runs, key=lambda run: run.objective)


def planted(loss: str):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = rng.normal(size=40) + 2.0 * X[:, 0] * X[:, 1] - X[:, 2] ** 2
    return X, np.sign(y) if loss == "logistic" else y


@pytest.mark.parametrize(
    ("kernel", "loss"), [("polynomial", "squared"), ("anova", "squared"), ("anova", "logistic")]
)
def test_theorem_2_lifted_direct_and_trace_norm_have_one_minimum(kernel, loss):
    X, y = planted(loss)
    lam = 0.15 if loss == "squared" else 0.05

    def problem(model, **params):
        more = {"regularizer": "l1" if model == "qr" else "l2", "rank": 16, "fit_linear": False}
        return build_problem(X, y, loss=loss, model=model, model_params=params, lambda_p=lam, **more)

    lifted = problem("lifted", kernel=kernel)
    first = best_of(lifted, "cd", 2)
    # The dual feasible gradient proves that this is the global minimum over all W.
    f = lifted.predict(first.parameters)
    G = X.T @ (X * (slow_fm.SLOPE[loss](f, y) / y.size)[:, None])
    if kernel == "anova":
        G = 0.5 * (G - np.diag(np.diag(G)))
    assert np.abs(np.linalg.eigvalsh(G)).max() <= lam * (1 + 1e-6)
    direct = problem("expansion", kernel=kernel)
    # Not multi-convex in (λ, P): some starts end in other local minima.
    two = best_of(direct, "cd", 10)
    assert two.objective == pytest.approx(first.objective, rel=1e-5)
    result = to_expansion(lifted.model, first.parameters)
    rank = result.P.shape[1]
    assert 0 < rank <= 5
    padded = Parameters(
        np.pad(result.P, ((0, 0), (0, 16 - rank))),
        result.w,
        result.intercept,
        coefficients=np.pad(result.coefficients, (0, 16 - rank)),
    )
    assert direct.objective(padded) == pytest.approx(first.objective, rel=1e-8)
    diagonal = kernel == "polynomial"
    *_, convex = iterate(
        problem("convex_fm", diagonal=diagonal), "gcd", Budget(200, tol=1e-10, report_every=None)
    )
    assert convex.objective == pytest.approx(first.objective, rel=1e-5)
    # The optimum is a point of the expansion with the same value.
    assert direct.objective(convex.parameters) == pytest.approx(convex.objective, rel=1e-8)
    if kernel == "anova":
        *_, three = iterate(problem("qr"), "exact_pgd", Budget(3_000, tol=1e-10, report_every=None))
        assert three.objective == pytest.approx(first.objective, rel=1e-5)


def test_a_factor_that_dies_takes_its_column_out_of_use():
    X, y = planted("squared")
    problem = build_problem(
        X, y, model="lifted", regularizer="l1", rank=4, lambda_p=1e-3, lambda_sparse=0.3, fit_linear=False
    )
    end = best_of(problem, "pcd", 1)
    U, V = end.parameters.P[:, :4], end.parameters.P[:, 4:]
    dead = ~U.any(axis=0) | ~V.any(axis=0)
    assert dead.any()
    assert not U[:, dead].any()
    assert not V[:, dead].any()


def test_counts_beyond_machine_integers_are_exact():
    from math import comb

    U = np.ones((4, 200_000, 1))
    assert counting.used_sets(U, 4) == comb(200_000, 4)
    # Two kinds of rows: two of each can be dealt out.
    U[:2, 100_000:] = 0.0
    U[2:, :100_000] = 0.0
    assert counting.used_sets(U, 4) == comb(100_000, 2) ** 2


def test_counts_of_many_columns_take_more_than_a_word(rng):
    U = rng.normal(size=(2, 6, 150)) * (rng.random((2, 6, 150)) < 0.02)
    assert counting.used_sets(U, 2) == len(slow_lifted.weights(U, np.ones(150), False))
