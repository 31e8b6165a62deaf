"""The kernels of column and lifted models agree with their own Python source, and never recompile."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import build_problem, make_solver
from signatures import recompiled, signatures

from fmviz.choices import why_not
from fmviz.engine import counting
from fmviz.engine._jit import python_version
from fmviz.engine.design import Design
from fmviz.engine.losses import scalar
from fmviz.engine.models.columns import AllSubsets, Anova, anova, subsets
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import powers
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import _sweeping, pbcd, pcd
from fmviz.engine.solvers.kernels import coefficients
from fmviz.engine.solvers.stochastic import psgd

pytestmark = pytest.mark.needs_jit

HOFM = ("hofm", {"order": 3})
ALL = ("all_subsets", {})
SIGNS = ("expansion", {"kernel": "anova", "degree": 3, "coefficients": "signs"})
FITTED = ("expansion", {"degree": 3})
FITTED_A = ("expansion", {"kernel": "anova", "degree": 3})
FITTED_2 = ("expansion", {})
H3 = ("lifted", {"degree": 3})
A2 = ("lifted", {"kernel": "anova"})

CASES = [
    (model, solver, regularizer, storage)
    for model, solver, regularizers in (
        (HOFM, "pcd", ("l2", "l1", "omega_ti")),
        (ALL, "pcd", ("l1", "omega_ti")),
        (HOFM, "pbcd", ("l1", "l21", "omega_ti", "omega_cs")),
        (ALL, "pbcd", ("l1", "l21", "omega_ti", "omega_cs")),
        (FITTED, "cd", ("l2",)),
        (FITTED_A, "cd", ("l2",)),
        (FITTED_2, "cd", ("l2",)),
        (H3, "pcd", ("l2", "l1")),
        (A2, "pcd", ("l1", "ti")),
        (HOFM, "sgd", ("l2",)),
        (ALL, "psgd", ("l1",)),
        (SIGNS, "psgd", ("l1",)),
        (FITTED_2, "sgd", ("l2",)),
    )
    for regularizer in regularizers
    for storage in ("dense", "sparse", "binary")
]

FACTORIES = (
    (pcd, "entry_sweep"),
    (pbcd, "row_sweep"),
    (anova, "anova_tables"),
    (subsets, "subsets_tables"),
    (coefficients, "coefficient_sweeps"),
    (psgd, "lazy_entries"),
    (anova, "anova_of_rows"),
    (subsets, "subsets_of_rows"),
    (_sweeping, "linear_sweep"),
    (scalar, "_evaluate"),
)


def design_of(storage: str) -> np.ndarray | sp.csr_array:
    rng = np.random.default_rng(3)
    X = 0.7 * rng.normal(size=(9, 4)) * (rng.random((9, 4)) < 0.7)
    X[:, 2] = 0.0
    if storage == "binary":
        X = (X != 0).astype(float)
    return X if storage == "dense" else sp.csr_array(X)


def problem_for(model, regularizer: str, storage: str, lam: float = 0.02, rank: int = 2) -> Problem:
    # Each storage with another loss, weighted or not: all small functions meet somewhere.
    loss, weighted = {"dense": ("squared", False), "sparse": ("logistic", True), "binary": ("huber", False)}[
        storage
    ]
    rng = np.random.default_rng(5)
    name, params = model
    return build_problem(
        design_of(storage),
        np.where(rng.random(9) < 0.5, 1.0, -1.0),
        loss=loss,
        model=name,
        model_params=params,
        regularizer=regularizer,
        rank=rank,
        lambda_w=0.03,
        lambda_p=lam,
        lambda_sparse=0.0 if model in (FITTED, FITTED_A, FITTED_2) else lam,
        sample_weight=rng.random(9) if weighted else None,
    )


def two_epochs(problem: Problem, solver: str) -> Parameters:
    # The safeguard would replace an epoch that a wrong kernel has spoilt.
    noisy = {"monotone": False, "eta0": 0.02} if solver in ("sgd", "psgd") else {}
    method = make_solver(solver, problem, **noisy)
    rng = np.random.default_rng(1)
    start = problem.start(0.5, rng)
    start = start.replace(w=0.1 * rng.normal(size=4), intercept=0.2)
    method.start(start, rng)
    method.epoch()
    method.epoch()
    return method.parameters()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("model", "solver", "regularizer", "storage"),
    CASES,
    ids=["-".join([m[0], *map(str, m[1].values()), s, r, st]) for m, s, r, st in CASES],
)
def test_solver_kernels_agree_with_python(model, solver, regularizer, storage, monkeypatch):
    compiled = two_epochs(problem_for(model, regularizer, storage), solver)
    for module, name in FACTORIES:
        monkeypatch.setattr(module, name, getattr(module, name).__wrapped__)
    plain = two_epochs(problem_for(model, regularizer, storage), solver)
    assert pytest.approx(plain.P, abs=1e-11) == compiled.P
    assert compiled.w == pytest.approx(plain.w, abs=1e-11)
    assert compiled.intercept == pytest.approx(plain.intercept, abs=1e-11)
    assert compiled.multipliers == pytest.approx(plain.multipliers, abs=1e-11)
    if regularizer in ("l1", "l21"):
        assert ((compiled.P != 0) == (plain.P != 0)).all()


@pytest.mark.sample(2)
@pytest.mark.parametrize("storage", ["dense", "sparse", "binary"])
@pytest.mark.parametrize("kernel", [Anova(2), Anova(4), AllSubsets()])
def test_column_kernels_agree_with_python(kernel, storage, monkeypatch):
    rng = np.random.default_rng(0)
    design = Design(design_of(storage))
    P, slope = rng.normal(size=(4, 3)), rng.normal(size=(9, 3))
    compiled = [kernel.values(design, P), kernel.gradient(design, P, slope), kernel.squares(design, P, slope)]
    for module, name in (
        (anova, "anova_of_rows"),
        (anova, "anova_slopes_of_rows"),
        (subsets, "subsets_of_rows"),
        (subsets, "subsets_slopes_of_rows"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name).__wrapped__)
    plain = [kernel.values(design, P), kernel.gradient(design, P, slope), kernel.squares(design, P, slope)]
    for one, two in zip(compiled, plain, strict=True):
        assert one == pytest.approx(two, abs=1e-12)


def test_counting_kernels_agree_with_python():
    rng = np.random.default_rng(0)
    for k in (1, 5, 70):
        P = rng.normal(size=(9, k)) * (rng.random((9, k)) < 2.0 / k)
        patterns = counting.support_patterns(P)
        for degree in (3, 4):
            given = (*patterns, counting.rows_by_column(*patterns), degree)
            assert counting.count_common(*given) == python_version(counting.count_common)(*given)
        packed = rng.integers(0, 4, (6, 3, 1)).astype(np.uint64)
        counts = rng.integers(1, 4, 6).astype(np.int64)
        ways = np.zeros(4, dtype=np.int64)
        plain = python_version(counting.count_matched)(packed, list(map(int, counts)), [0] * 4)
        assert counting.count_matched(packed, counts, ways) == plain


@pytest.mark.parametrize("degree", [2, 3, 5, 7])
def test_power_operator_agrees_with_python(degree):
    rng = np.random.default_rng(0)
    for _ in range(50):
        M = rng.normal(size=(2, int(rng.integers(1, 12))))
        strength = float(10.0 ** rng.uniform(-3, 3))
        one, two = np.empty_like(M), np.empty_like(M)
        powers.prox_power_rows(M, strength, degree, one)
        python_version(powers.prox_power_rows)(M, strength, degree, two)
        assert one == pytest.approx(two, rel=1e-12, abs=1e-14)


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("model", [HOFM, ALL, FITTED, FITTED_A, FITTED_2, H3, A2])
def test_settings_never_recompile(model):
    first = signatures()
    for solver in ("cd", "sgd", "pbcd"):
        if why_not("l2", solver, model=model[0], model_params=model[1]) is not None:
            continue
        before = None
        for lam, rank in ((0.5, 3), (0.0, 1), (1, 2)):
            problem = problem_for(model, "l2", "sparse", lam, rank)
            method = make_solver(solver, problem, **({"eta0": 0.01} if solver == "sgd" else {}))
            start = problem.start(0.3, np.random.default_rng(0))
            method.start(start, np.random.default_rng(0))
            method.epoch()
            problem.model.used_interactions(method.parameters())
            before = before or signatures()
        assert signatures() == before
    assert recompiled(first) == []
