"""Machines on a shared basis: gradients and refits by brute force, bounds, gaps against the optimum, runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import iterate
from oracles.shared_basis import brute_force_value, l1_optimum
from small_data import assert_resumable, differences

from fmviz.engine.certificates.stationarity import certificates, certify
from fmviz.engine.compatibility import best_solver
from fmviz.engine.design import Design, augmented
from fmviz.engine.fit import Budget
from fmviz.engine.models import get_model
from fmviz.engine.penalties import OUTPUT_PENALTIES
from fmviz.engine.problem import Problem
from fmviz.engine.shared_basis import bounds, output_layer
from fmviz.engine.shared_basis.bounds import largest_norm, one_parameter_bound, sum_of_squares_bound
from fmviz.engine.shared_basis.gradients import BasisGradient
from fmviz.engine.shared_basis.output_layer import (
    OutputLayer,
    descend,
    fista,
    largest_strength,
    project,
    risk_and_slopes,
    whitened,
)
from fmviz.engine.shared_basis.selection import METHODS, random_directions, refined, select
from fmviz.engine.solvers import get_solver
from fmviz.engine.target import Target

PENALTIES = ("l1", "l1_l2", "l1_linf")
KERNELS = ("polynomial", "anova")


def small_problem(
    seed: int = 0,
    n: int = 60,
    d: int = 4,
    m: int = 3,
    *,
    kernel: str = "polynomial",
    loss: str = "logistic",
    penalty: str = "l1_l2",
    radius: float = 0.0,
    share: float = 0.1,
    **more: Any,
) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = np.stack([X[:, c % d] * X[:, (c + 1) % d] for c in range(m)], axis=1)
    scores += 0.5 * rng.normal(size=(n, m))
    target = Target.of(scores) if loss == "squared" else Target.of_labels(scores.argmax(axis=1))
    model = get_model("shared_basis", {"kernel": kernel, "radius": radius})
    given = {"rank": 40, "lambda_w": 0.01, "fit_linear": False} | more
    problem = Problem.build(augmented(X), target, loss=loss, penalty=penalty, model=model, **given)
    return problem if radius else problem.at(lambda_sparse=share * largest_strength(problem))


def random_bases(problem: Problem, k: int, seed: int = 0) -> np.ndarray:
    H = np.random.default_rng(seed).normal(size=(problem.design.n_features, k))
    return H / np.linalg.norm(H, axis=0)


def layer_on(problem: Problem, H: np.ndarray) -> OutputLayer:
    return OutputLayer(problem, H, np.zeros((problem.design.n_features, problem.target.n_outputs)))


def run(problem: Problem, epochs: int = 20, start: Any = None, **settings: Any) -> Any:
    solver = get_solver("conditional_gradient", settings)
    budget = Budget(epochs=epochs, tol=1e-9, report_every=None)
    *_, end = iterate(problem, solver, budget, start=start, rng=np.random.default_rng(0))
    return end


@pytest.mark.parametrize(("kernel", "storage"), [*product(KERNELS, ("dense", "sparse"))])
def test_gradients_in_bases_are_those_of_brute_force(kernel, storage, rng):
    X, D, H = rng.normal(size=(20, 5)), rng.normal(size=(20, 3)), rng.normal(size=(5, 4))
    design = Design(X if storage == "dense" else sp.csr_array(X))
    diagonal = kernel == "polynomial"
    expected = np.array([[brute_force_value(X, D[:, c], h, diagonal) for c in range(3)] for h in H.T])
    gradient = BasisGradient(design, D, diagonal)
    images = np.einsum("sc,cds->ds", expected, gradient.matrices @ H)
    assert gradient.images(H, expected) == pytest.approx(images, rel=1e-10)
    for gradient.small in (True, False):
        assert gradient.values(H) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_of_both_layers_are_finite_differences(kernel):
    problem = small_problem(kernel=kernel, n=15, m=3, fit_linear=True)
    H = random_bases(problem, 3)
    layer = layer_on(problem, H)
    T = np.random.default_rng(1).normal(size=(layer.Z.shape[1], 3))
    _, (in_T, in_H) = layer.smooth(T, H)
    for result, expected in (
        (in_H, differences(lambda H: layer.smooth(T, H)[0], H)),
        (in_T, differences(lambda T: layer.smooth(T, H)[0], T)),
    ):
        assert result == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("loss", "penalty"), [("logistic", p) for p in (*PENALTIES, "l2")] + [("squared", p) for p in PENALTIES]
)
def test_refits_of_the_output_layer_agree(loss, penalty):
    problem = small_problem(loss=loss, penalty="l1_l2" if penalty == "l2" else penalty, fit_linear=True)
    if penalty == "l2":
        problem = replace(problem, penalty=OUTPUT_PENALTIES["l2"])
    layer = layer_on(problem, random_bases(problem, 8))
    start = np.zeros((layer.Z.shape[1], 3))
    ours, (published,) = whitened(layer, start, 1e-12), fista(layer, (start,), 1e-10, 20_000)
    assert layer.at(ours).objective == pytest.approx(layer.at(published).objective, rel=1e-8)
    # Θ need not be unique, what it says of the rows is.
    slopes = [risk_and_slopes(problem, layer.Z @ T)[1] for T in (ours, published)]
    assert slopes[0] == pytest.approx(slopes[1], abs=1e-5 / problem.design.n_samples)


@pytest.mark.needs_jit
def test_the_sweeps_of_the_output_layer_agree_with_their_python_source(monkeypatch):
    problem = small_problem()
    layer = layer_on(problem, random_bases(problem, 6))
    start, compiled = np.zeros((layer.Z.shape[1], 3)), output_layer._sweeps
    ours = whitened(layer, start, 1e-10)
    monkeypatch.setattr(output_layer, "_sweeps", lambda view: compiled(view).py_func)
    assert pytest.approx(ours, rel=1e-9, abs=1e-10) == whitened(layer, start, 1e-10)


def test_refits_of_both_layers_agree_and_do_not_rise():
    problem = small_problem(n=40, d=3, share=0.02)
    H = random_bases(problem, 2)
    layer = layer_on(problem, H)
    T = whitened(layer, np.zeros((layer.Z.shape[1], 3)), 1e-10)
    ends = [descend(layer, (T, H), 1e-12), fista(layer_on(problem, H), (T, H), 1e-9, 20_000)]
    before, ours, published = (layer_on(problem, H).at(T).objective for T, H in ((T, H), *ends))
    assert ours <= before
    assert ours == pytest.approx(published, rel=1e-8)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_projections_are_nearest_points(penalty, rng):
    problem = small_problem(penalty=penalty)
    for _ in range(10):
        V = rng.normal(size=(5, 3))
        radius = 0.5 * problem.penalty.value(V)
        result = project(problem.penalty, V, radius)
        assert problem.penalty.value(result) <= radius * (1.0 + 1e-12)
        # ⟨V − found, U − found⟩ ≤ 0 for every U of the ball.
        for _ in range(20):
            U = rng.normal(size=(5, 3))
            U *= radius / problem.penalty.value(U)
            assert float(((V - result) * (U - result)).sum()) <= 1e-9


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
@pytest.mark.parametrize("kernel", KERNELS)
def test_selection_is_monotone_and_bounds_are_above_it(p, kernel):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        gradient = BasisGradient(
            Design(rng.normal(size=(30, 5))), rng.normal(size=(30, 4)), kernel == "polynomial"
        )
        sizes = {
            method: select(gradient, p, method, 1, np.random.default_rng(0))[1][0]
            for method in METHODS
            if p == 1.0 or method != "exact"
        }
        assert sizes["l1"] <= sizes["refine"] * (1.0 + 1e-9)
        assert sizes["l1"] <= sizes["eigen"] * (1.0 + 1e-12)
        bound = largest_norm(gradient, p)
        assert bound >= max(sizes.values()) * (1.0 - 1e-12)
        assert bound <= 1.02 * max(sizes.values())
        if p == 1.0:
            assert bound == pytest.approx(sizes["exact"], rel=1e-9)
        H, result = select(gradient, p, "eigen", 5, rng)
        assert np.linalg.norm(H, axis=0) == pytest.approx(1.0)
        assert all(first >= other for first, other in pairwise(result))


def test_the_refinement_recovers_the_power_method(rng):
    # Slopes of one sign: the eigenvalues are, too, and there is one local maximum.
    gradient = BasisGradient(Design(rng.normal(size=(30, 5))), rng.random(size=(30, 1)), True)
    h = refined(gradient, random_directions(5, 1, rng), 2.0)
    best = np.abs(np.linalg.eigvalsh(gradient.matrices[0])).max()
    assert gradient.norms(h, 2.0)[0] == pytest.approx(best, rel=1e-3)


def test_quartic_bounds_are_ordered(rng):
    G = rng.normal(size=(4, 6, 6))
    G = G + G.transpose(0, 2, 1)
    tight, loose = sum_of_squares_bound(G), one_parameter_bound(G)
    h = rng.normal(size=(6, 20_000))
    h /= np.linalg.norm(h, axis=0)
    result = np.linalg.norm(np.einsum("ds,cde,es->cs", h, G, h), axis=0).max()
    assert result <= tight <= loose


def test_norms_of_many_features_are_above_the_largest_eigenvalue(rng, monkeypatch):
    X = sp.random_array((400, 250), density=0.05, rng=rng, format="csr")
    gradient = BasisGradient(Design(X), rng.normal(size=(400, 3)), True)
    for p in (1.0, 2.0, np.inf):
        exact = largest_norm(gradient, p)
        with monkeypatch.context() as patch:
            patch.setattr(bounds, "_DENSE", 100)
            bound = largest_norm(gradient, p)
            assert exact * (1.0 - 1e-12) <= bound <= exact * (1.01 if p == np.inf else 2.0)


def optimum_of(problem: Problem, penalty: str) -> float:
    """Return the least objective: by CLARABEL for ℓ1, else the best of many runs."""
    if penalty == "l1":
        return l1_optimum(problem)
    return min(run(problem, 15, refit="full", bases=bases, accuracy=1e-8).objective for bases in (3, 10))


@pytest.mark.parametrize(
    ("penalty", "seed"),
    [
        pytest.param(penalty, seed, marks=() if seed < 1 else pytest.mark.slow)
        for penalty, count in (("l1", 100), ("l1_l2", 20), ("l1_linf", 20))
        for seed in range(count)
    ],
)
def test_gaps_are_at_least_the_suboptimality(penalty, seed):
    problem = small_problem(seed, n=30, d=3, penalty=penalty, kernel=KERNELS[seed % 2])
    best = optimum_of(problem, penalty)
    for epochs in (1, 3):
        end = run(problem, epochs, bases=1)
        upper, lower = certificates(problem, end.parameters)
        assert (upper, lower) == (end.certificate, end.metrics["least_certificate"])
        assert 0.0 <= lower <= upper + 1e-12
        assert upper * end.objective >= end.objective - best - 1e-7
    end = run(problem, 30, refit="full", accuracy=1e-8)
    assert end.objective <= best * (1.0 + 1e-5)
    if penalty == "l1":
        assert end.objective >= best * (1.0 - 1e-6)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_radius_is_kept_and_agrees_with_its_price(penalty):
    problem = small_problem(penalty=penalty, n=40, d=3)
    priced = run(problem, 10, refit="full", accuracy=1e-8)
    radius = problem.penalty.value(priced.parameters["V"])
    limited = small_problem(penalty=penalty, n=40, d=3, radius=radius)
    end = run(limited, 2, bases=10, accuracy=1e-6)
    assert problem.penalty.value(end.parameters["V"]) <= radius * (1.0 + 1e-9)
    # The least risk under the limit is the risk of the priced fit.
    assert end.loss >= priced.loss * (1.0 - 2.0 * priced.certificate) - 1e-9
    assert end.loss * (1.0 - end.certificate) <= priced.loss


def test_checkpoints_go_on_with_the_same_iterates():
    problem = small_problem()
    solver = get_solver("conditional_gradient", {"bases": 2})
    assert_resumable(problem, solver, Budget(epochs=4, tol=0.0))


def test_what_does_not_fit_says_so():
    problem = small_problem()
    assert best_solver(problem) == "conditional_gradient"
    for solver in ("cd", "gcd", "incremental_pgd"):
        with pytest.raises(ValueError, match="share"):
            next(iterate(problem, solver, Budget(epochs=1)))
    for wrong, words in (
        ({"penalty": "ti"}, "rows of V"),
        ({"lambda_p": 1.0}, "has no term"),
        ({"loss": "huber"}, "no multiclass form"),
    ):
        given = {"loss": "logistic", "penalty": "l1", "model": "shared_basis"} | wrong
        with pytest.raises(ValueError, match=words):
            Problem.build(problem.design, problem.target, **given)


def test_a_smooth_penalty_has_a_solver_and_a_certificate_of_its_own():
    problem = small_problem()
    smooth = replace(problem, penalty=OUTPUT_PENALTIES["l2"], lambda_sparse=0.01)
    assert best_solver(smooth) == "projected_gradient"
    first, end = iterate(smooth, "projected_gradient", Budget(epochs=5, tol=0.0, report_every=5))
    assert end.objective < first.objective
    # On these bases the certificate is that of the output layer.
    layer = layer_on(smooth, end.parameters.P)
    T = whitened(layer, np.zeros((layer.Z.shape[1], 3)), 1e-9)
    best = end.parameters.replace(V=T[:-1], intercept=T[-1])
    assert 0.0 <= certify(smooth, best) < 1e-3 < certify(smooth, end.parameters)


def test_a_single_output_is_a_convex_machine(rng):
    X = rng.normal(size=(80, 4))
    y = X[:, 0] * X[:, 1] - X[:, 2] ** 2 + 0.1 * rng.normal(size=80)
    shared = Problem.build(
        X, y, penalty="l1", model="shared_basis", rank=10, lambda_sparse=0.05, lambda_w=0.01
    )
    convex = Problem.build(
        X, y, penalty="l2", model=get_model("convex_fm", {"diagonal": True}), lambda_p=0.05, lambda_w=0.01
    )
    ends = []
    for problem, solver in (
        (shared, get_solver("conditional_gradient", {"refit": "full", "accuracy": 1e-8})),
        (convex, "gcd"),
    ):
        *_, end = iterate(problem, solver, Budget(epochs=15, tol=1e-9, report_every=None))
        ends.append(end)
    assert ends[0].objective == pytest.approx(ends[1].objective, rel=1e-5)
    assert ends[0].certificate < 1e-2
    assert problem.predict(ends[1].parameters).shape == shared.predict(ends[0].parameters).shape == (80,)


def test_linear_weights_of_a_wide_design_are_fitted_in_turns(monkeypatch):
    problem = small_problem(kernel="anova", fit_linear=True)
    ends = []
    for wide in (300, 1):
        monkeypatch.setattr(output_layer, "_WIDE", wide)
        ends.append(run(problem, 2, accuracy=1e-7))
        assert largest_strength(problem) == pytest.approx(problem.lambda_sparse * 10.0, rel=1e-3)
    assert ends[1].objective == pytest.approx(ends[0].objective, rel=1e-2)
    assert ends[1].parameters["w"].shape == (3, 5)
    assert ends[1].parameters["w"].any()
