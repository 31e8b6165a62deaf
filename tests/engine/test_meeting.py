"""The bar for every solver: all of them meet at the best objective from a common start, none above it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import SMOOTH, best_solver, build_problem, iterate
from small_data import table, target

from fmviz.choices import why_not
from fmviz.engine.certificates.stationarity import stationarity
from fmviz.engine.fit import Budget
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES, get_penalty
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Reason, Snapshot
from fmviz.engine.solvers import SOLVERS, get_solver

READINGS = [(name, {}) for name in PENALTIES] + [("ti", {"axis": "rows"})]
READINGS += [("elastic_net", {"rho": rho}) for rho in (0.1, 0.9)]
# Sample weights come with sparse data, where mini-batches have more than one sample.
CASES = [
    (r, params, loss, weighted)
    for r, params in READINGS
    for loss, weighted in [*((loss, False) for loss in SMOOTH), ("squared", True)]
    if PENALTIES[r].exact_prox and (loss in ("squared", "logistic") or r in ("l2", "ti", "cs"))
]
STOCHASTIC = ("sgd", "psgd", "mb_psgd", "katyusha", "mb_katyusha")


def run(problem: Problem, solver: str, start: Parameters, epochs: int) -> list[Snapshot]:
    budget = Budget(epochs, tol=1e-10, report_every=max(1, epochs // 20), certify_every=epochs)
    return list(iterate(problem, solver, budget, start=start, rng=np.random.default_rng(0)))


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("regularizer", "params", "loss", "weighted"),
    CASES,
    ids=[
        "-".join([r, *map(str, p.values()), loss, *["weighted"] * weighted]) for r, p, loss, weighted in CASES
    ],
)
def test_all_solvers_meet_from_a_common_start(regularizer, params, loss, weighted):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 6))
    if weighted:
        X *= rng.random(X.shape) < 0.6
    y = 2 * X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3] + X[:, 4] + 0.1 * rng.normal(size=60)
    problem = build_problem(
        sp.csr_array(X) if weighted else X,
        target(y, loss),
        loss=loss,
        regularizer=regularizer,
        rank=3,
        lambda_w=0.01,
        lambda_p=0.02,
        lambda_sparse=0.02,
        regularizer_params=params,
        sample_weight=rng.random(60) + 0.5 if weighted else None,
    )
    best = best_solver(regularizer, loss=loss, regularizer_params=params)
    end = run(problem, best, problem.start(0.5, rng), 5_000)[-1]
    near = end.parameters
    assert near.P.any()
    assert end.certificate <= 1e-7
    start = Parameters(
        near.P + 1e-3 * rng.normal(size=near.P.shape),
        near.w + 1e-3 * rng.normal(size=near.w.shape),
        near.intercept + 1e-3,
    )
    ends = {}
    for solver in SOLVERS:
        if why_not(get_penalty(regularizer, params), solver, loss=loss) is None:
            snapshots = run(problem, solver, start, 1_000 if solver in STOCHASTIC else 5_000)
            assert max(s.objective for s in snapshots) == snapshots[0].objective, solver
            assert snapshots[-1].status.reason is not Reason.DIVERGED
            ends[solver] = snapshots[-1].objective
    assert {"pgd", "apgd", "nmapgd", "psgd", "mb_psgd"} <= set(ends)
    assert ("lbfgs" in ends) == ("sgd" in ends) == (regularizer == "l2")
    assert max(ends.values()) <= min(ends.values()) * (1 + 1e-6), ends


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_inexact_solvers_meet_from_a_near_optimal_point(loss, rng):
    # Ω_* has kinks at which either solver alone can rest: a point is near-optimal once neither leaves it.
    X = rng.normal(size=(60, 6))
    y = 2 * X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3] + X[:, 4] + 0.1 * rng.normal(size=60)
    problem = build_problem(
        X,
        np.sign(y) if loss == "logistic" else y,
        loss=loss,
        regularizer="omega_star",
        rank=3,
        lambda_w=0.01,
        lambda_p=0.02,
        lambda_sparse=0.02,
    )
    here = problem.start(0.5, rng)
    for _ in range(20):
        ends = [run(problem, solver, here, 2_000)[-1] for solver in ("nmapgd", "subgd")]
        best = min(ends, key=lambda end: end.objective)
        assert max(end.objective for end in ends) <= problem.objective(here) * (1 + 1e-14)
        if max(end.objective for end in ends) <= best.objective * (1 + 1e-6):
            return
        here = best.parameters
    pytest.fail(f"after 20 rounds one solver still improves on the other: {[end.objective for end in ends]}")


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_run_ends_with_the_lowest_objective(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 6))
    problem = build_problem(X, X[:, 0] * X[:, 1], regularizer="l1", rank=3, lambda_sparse=1e-3)
    solver, rises = get_solver("nmapgd", {"eta": 0.99}), 0
    for epochs in range(5, 60):
        run = [
            *iterate(
                problem, solver, Budget(epochs, tol=0.0), init_scale=1.0, rng=np.random.default_rng(seed)
            )
        ]
        least = min(snapshot.objective for snapshot in run)
        assert run[-1].objective <= (1.0 + 1e-12) * least
        rises += run[-2].objective > least
    assert rises


@pytest.mark.parametrize("solver", ["subgd", "nmapgd"])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_kink_is_taken_for_convergence(solver, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 6))
    y = 2 * X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3] + 0.1 * rng.normal(size=60)
    problem = build_problem(X, y, regularizer="omega_star", rank=3, lambda_p=0.02, lambda_sparse=0.1)
    run = iterate(problem, solver, Budget(300, tol=1e-4, report_every=300), init_scale=0.5, rng=rng)
    first, *_, last = run
    assert last.objective <= first.objective
    assert last.status.reason is (Reason.CONVERGED if last.certificate <= 1e-4 else Reason.STALLED)
    assert last.status.converged or "does not confirm a stationary point" in last.status.message


HOFM, SIGNS = ("hofm", {"order": 3}), ("expansion", {"degree": 3, "kernel": "anova", "coefficients": "signs"})
H2, H3, A2 = ("lifted", {}), ("lifted", {"degree": 3}), ("lifted", {"kernel": "anova"})
FITTED = [
    ("expansion", {"kernel": kernel, "degree": m}) for kernel in ("polynomial", "anova") for m in (2, 3, 4)
]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("model", "regularizer", "loss", "solvers"),
    [
        (HOFM, "l1", "squared", ("pcd", "pbcd", "apgd")),
        (HOFM, "l2", "squared", ("cd", "pbcd", "apgd", "lbfgs")),
        (HOFM, "omega_ti", "squared", ("pcd", "pbcd")),
        (("all_subsets", {}), "l1", "squared", ("pcd", "pbcd", "apgd")),
        (("all_subsets", {}), "omega_ti", "squared", ("pcd", "pbcd")),
        (SIGNS, "l2", "squared", ("cd", "pbcd", "apgd", "lbfgs")),
        (SIGNS, "omega_ti", "squared", ("pcd",)),
        (("expansion", {"coefficients": "signs"}), "l2", "squared", ("cd", "apgd", "lbfgs")),
        *((model, "l2", loss, ("cd", "lbfgs")) for model in FITTED for loss in ("squared", "logistic")),
        *((model, "l2", "squared", ("cd", "lbfgs", "apgd")) for model in (H2, H3, A2)),
    ],
)
def test_solvers_of_other_models_meet_and_the_certificate_is_small_just_there(
    model, regularizer, loss, solvers
):
    X = table("dense", 40)
    y = 2 * X[:, :2].prod(axis=1) - 3 * X[:, 1:4].prod(axis=1) + 4 * X[:, 1:5].prod(axis=1)
    y = target(y + 0.1 * np.random.default_rng(0).normal(size=40), loss)
    # Small enough that P does not collapse.
    strength = 0.02 if loss == "squared" else 0.001
    strengths = {
        "lambda_p": strength,
        "lambda_sparse": 0.0 if regularizer == "l2" else 0.01,
    }
    problem = build_problem(
        X,
        y,
        loss=loss,
        model=model[0],
        model_params=model[1],
        regularizer=regularizer,
        rank=3,
        lambda_w=0.01,
        **strengths,
    )
    begin, rng = Budget(20_000, tol=1e-9, report_every=20_000), np.random.default_rng(3)
    first, *_, near = iterate(problem, solvers[0], begin, init_scale=0.6, rng=rng)
    assert near.certificate <= 1e-6 < 1e-4 < first.certificate
    assert near.parameters.P.any()
    ends = []
    for solver in solvers:
        *_, last = iterate(
            problem, solver, Budget(20_000, tol=1e-10, report_every=None), start=near.parameters
        )
        assert last.objective <= near.objective + 1e-12
        ends.append(last.objective)
    assert max(ends) <= min(ends) * (1 + 1e-7)
    here = near.parameters
    assert stationarity(problem, here.replace(P=1.01 * here.P)) > 1e-4
