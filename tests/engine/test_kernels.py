"""Every compiled kernel agrees with its own Python source, and settings never recompile one."""

from __future__ import annotations

import ast
import marshal
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import SMOOTH, build_problem, make_solver
from signatures import recompiled, signatures

import fmviz.engine
from fmviz.choices import why_not
from fmviz.engine import counting
from fmviz.engine._jit import _identity, python_version
from fmviz.engine.design import STORAGES, Design
from fmviz.engine.losses import scalar
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.penalties.operators import squared_norm
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import SOLVERS, _sweeping, pbcd, pcd
from fmviz.engine.solvers.kernels import entry_sweep
from fmviz.engine.solvers.kernels.sample_weights import unit_weight
from fmviz.engine.solvers.stochastic import katyusha, monotone, psgd

pytestmark = pytest.mark.needs_jit

PAIRS = [(r, s) for r in PENALTIES for s in SOLVERS if why_not(r, s) is None]
NOISY = [name for name, solver in SOLVERS.items() if isinstance(solver, psgd.StochasticSolver)]
CASES = [(r, s, storage) for r, s in PAIRS if s not in NOISY for storage in STORAGES]
# Stochastic kernels are made of the same parts in many ways: each pair meets one storage, in turn.
CASES += [(r, s, list(STORAGES)[i % 3]) for i, (r, s) in enumerate((r, s) for r, s in PAIRS if s in NOISY)]
CASES += [(r, s, "pairs") for r, s in PAIRS if s in ("cd", "pcd", "pbcd")]
CASES += [("ti", "psgd", storage) for storage in STORAGES] + [("cs", "psgd", "sparse")]


def problem_for(
    storage: str, loss: str, regularizer: str, weighted: bool, dtype: str = "float64", **params
) -> Problem:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(11, 5)) * (rng.random((11, 5)) < 0.6)
    X[:, 3] = 0.0
    if storage == "binary":
        X = (X != 0).astype(float)
    if storage == "pairs":
        X = np.eye(5)[rng.integers(0, 2, 11)] + np.eye(5)[rng.choice([2, 4], 11)]
    y = np.where(rng.random(11) < 0.5, 1.0, -1.0)
    return build_problem(
        Design(X if storage == "dense" else sp.csr_array(X), dtype),
        y,
        loss=loss,
        regularizer=regularizer,
        rank=3,
        lambda_w=0.03,
        lambda_p=0.02,
        lambda_sparse=0.02,
        sample_weight=rng.random(11) if weighted else None,
        regularizer_params=params,
    )


def two_epochs(problem: Problem, solver: str, **settings) -> Parameters:
    # The safeguard would replace an epoch that a wrong kernel has spoilt.
    method = make_solver(solver, problem, **({"monotone": False} if solver in NOISY else settings))
    rng = np.random.default_rng(1)
    start = Parameters(rng.normal(size=(5, 3)) * 0.5, rng.normal(size=5) * 0.1, 0.2)
    method.start(start, rng)
    method.epoch()
    method.epoch()
    return method.parameters()


def in_python(monkeypatch) -> None:
    """Let the solvers take every kernel as its Python source."""
    for module, name in (
        (pcd, "entry_sweep"),
        (pcd, "dense_entry_sweep"),
        (pcd, "pair_entry_sweep"),
        (pbcd, "row_sweep"),
        (pbcd, "pair_row_sweep"),
        (_sweeping, "linear_sweep"),
        (scalar, "_evaluate"),
        (psgd, "lazy_entries"),
        (psgd, "lazy_rows"),
        (psgd, "coupled_entries"),
        (psgd, "coupled_rows"),
        (psgd, "dense_steps"),
        (katyusha, "katyusha_steps"),
    ):
        factory = getattr(module, name).__wrapped__
        monkeypatch.setattr(module, name, factory)


@pytest.mark.sample(4)
@pytest.mark.parametrize(("regularizer", "solver", "storage"), sorted(set(CASES)))
def test_solver_kernels_agree_with_python(regularizer, solver, storage, monkeypatch):
    # Each storage with another loss, weighted or not: every pair of small functions meets somewhere.
    loss, weighted = {
        "dense": ("squared", False),
        "sparse": ("logistic", True),
        "binary": ("huber", False),
        "pairs": ("logistic", True),
    }[storage]
    compiled = two_epochs(problem_for(storage, loss, regularizer, weighted), solver)
    in_python(monkeypatch)
    plain = two_epochs(problem_for(storage, loss, regularizer, weighted), solver)
    assert pytest.approx(plain.P, abs=1e-12) == compiled.P
    assert compiled.w == pytest.approx(plain.w, abs=1e-12)
    assert compiled.intercept == pytest.approx(plain.intercept, abs=1e-12)
    assert ((compiled.P != 0) == (plain.P != 0)).all()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("regularizer", "solver"),
    [("ti", "pcd"), ("cs", "pbcd"), ("cs", "pbcd_ls"), ("l1", "psgd"), ("ti", "psgd"), ("l1", "katyusha")],
)
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_kernels_agree_with_python_on_single_precision(regularizer, solver, storage, monkeypatch):
    compiled = two_epochs(problem_for(storage, "squared", regularizer, True, "float32"), solver)
    in_python(monkeypatch)
    plain = two_epochs(problem_for(storage, "squared", regularizer, True, "float32"), solver)
    assert pytest.approx(plain.P, abs=1e-12) == compiled.P
    assert compiled.w == pytest.approx(plain.w, abs=1e-12)


@pytest.mark.sample(2)
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("storage", ["dense", "pairs"])
def test_every_loss_in_kernels_agrees_with_python(storage, loss, monkeypatch):
    compiled = two_epochs(problem_for(storage, loss, "ti", True, axis="rows"), "pcd")
    in_python(monkeypatch)
    plain = two_epochs(problem_for(storage, loss, "ti", True, axis="rows"), "pcd")
    assert pytest.approx(plain.P, abs=1e-12) == compiled.P


@pytest.mark.sample(1)
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("regularizer", ["ti", "omega_ti"])
def test_sweeps_by_features_agree_with_python(regularizer, loss, monkeypatch):
    storage = "sparse" if regularizer == "omega_ti" else "dense"
    problem = problem_for(storage, loss, regularizer, loss != "squared")
    compiled = two_epochs(problem, "pcd", order="features")
    in_python(monkeypatch)
    plain = two_epochs(problem, "pcd", order="features")
    assert pytest.approx(plain.P, abs=1e-12) == compiled.P


def test_products_of_components_agree_with_python():
    rng = np.random.default_rng(0)
    A, u, found = rng.normal(size=(9, 6)), rng.normal(size=6), np.zeros(9)
    entry_sweep.multiply(A, np.array([8, 1, 3, 2, 0, 5]), u, found)
    assert found == pytest.approx(np.append(A[[8, 1, 3, 2, 0, 5]] @ u, [0.0, 0.0, 0.0]))


@pytest.mark.sample(2)
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("storage", STORAGES)
def test_the_risk_by_rows_agrees_with_python_and_with_the_problem(storage, loss):
    problem = problem_for(storage, loss, "ti", loss != "huber")
    design = problem.design
    rng = np.random.default_rng(1)
    at = Parameters(rng.normal(size=(5, 3)), rng.normal(size=5), 0.2)
    at.P[1] = 0.0
    c = np.ones(11) if problem.sample_weight is None else problem.sample_weight
    arguments = (*design.rows, problem.y, c, at.P, at.w, 0.2, problem.loss.theta)
    kernel = monotone.risk_by_rows(design.storage, problem.loss.scalar)
    assert kernel(*arguments) == pytest.approx(python_version(kernel)(*arguments), rel=1e-13)
    assert kernel(*arguments) / 11 == pytest.approx(problem.parts(at)["loss"], rel=1e-13)


@pytest.mark.parametrize("algorithm", squared_norm.ALGORITHMS.values(), ids=squared_norm.ALGORITHMS)
def test_operator_kernels_agree_with_python(algorithm):
    rng = np.random.default_rng(0)
    compiled = squared_norm.prox_each_row(algorithm)
    plain = squared_norm.prox_each_row.__wrapped__(algorithm)
    for trial in range(200):
        M = rng.normal(size=(2, int(rng.integers(1, 40))))
        M = np.round(M) if trial % 3 == 0 else M
        strength = float(10.0 ** rng.uniform(-4, 4))
        one, two = np.empty_like(M), np.empty_like(M)
        compiled(M, strength, one)
        plain(M, strength, two)
        assert np.array_equal(one, two)


def test_counting_kernel_agrees_with_python():
    rng = np.random.default_rng(0)
    for k in (1, 5, 64, 65, 200):
        P = rng.normal(size=(30, k)) * (rng.random((30, k)) < 1.5 / k)
        patterns = counting.support_patterns(P)
        plain = python_version(counting.count_meeting)(*patterns)
        assert counting.count_meeting(*patterns) == plain


def declared_kernels() -> set[str]:
    """Return the names of all kernels and factories of kernels in the engine's sources."""
    engine = Path(fmviz.engine.__file__).parent
    found = set()
    for path in engine.rglob("*.py"):
        module = ".".join(path.relative_to(engine).with_suffix("").parts)
        for node in ast.parse(path.read_text()).body:
            decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else ()
            if {ast.unparse(d).split("(")[0] for d in decorators} & {"cached_factory", "named"}:
                found.add(f"{module}.{node.name}")
    return found


def test_no_kernel_is_left_out():
    # Those of columns, of lifted models and of powers are compared in test_column_kernels, those of losses of
    # vectors in test_vector_losses, of the output layer in test_shared_basis, of draws in test_sampling, of
    # extrapolation in test_screening.
    assert declared_kernels() == {
        "counting.count_common",
        "counting.count_matched",
        "counting.count_meeting",
        "interactions.matchings.search_matchings",
        "interactions.tensors.search_subsets",
        "losses.scalar._evaluate",
        "losses.vector._entries",
        "losses.vector._rows",
        "models.columns.anova.anova_of_rows",
        "models.columns.anova.anova_slopes_of_rows",
        "models.columns.anova.anova_tables",
        "models.columns.subsets.subsets_of_rows",
        "models.columns.subsets.subsets_slopes_of_rows",
        "models.columns.subsets.subsets_tables",
        "penalties.powers.prox_power_rows",
        "penalties.operators.squared_norm.prox_each_row",
        "sampling.gibbs.factor_draws",
        "sampling.gibbs.linear_draws",
        "shared_basis.output_layer._sweeps",
        "solvers.kernels.coefficients.coefficient_sweeps",
        "solvers.kernels.entry_sweep.dense_entry_sweep",
        "solvers.kernels.entry_sweep.entry_sweep",
        "solvers._anderson.combine",
        "solvers._anderson.note",
        "solvers._sweeping.linear_sweep",
        "solvers.kernels.matrix_factorization.add_products",
        "solvers.kernels.matrix_factorization.pair_entry_sweep",
        "solvers.kernels.matrix_factorization.pair_row_sweep",
        "solvers.kernels.row_sweep.row_sweep",
        "solvers.stochastic.coupled_entries.coupled_entries",
        "solvers.stochastic.psgd.coupled_rows",
        "solvers.stochastic.dense_steps.dense_steps",
        "solvers.stochastic.katyusha.katyusha_steps",
        "solvers.stochastic.lazy.lazy_entries",
        "solvers.stochastic.lazy.lazy_rows",
        "solvers.stochastic.monotone.risk_by_rows",
    }, "a new kernel needs a test that compares it with its Python source"


@pytest.mark.slow
def test_settings_never_recompile():
    from fmviz import prox

    P = np.random.default_rng(0).normal(size=(20, 4))
    y = P[:, 0].copy()
    y.setflags(write=False)

    def use(strength, rank):
        prox("ti", P, strength)
        prox("cs", P[:7].tolist(), strength)
        lam = strength
        problem = build_problem(
            P, y, regularizer="ti", rank=rank, lambda_p=lam, lambda_sparse=lam, lambda_w=lam
        )
        rng = np.random.default_rng(0)
        for method in (
            make_solver("pcd", problem),
            make_solver("psgd", problem, eta0=float(lam) + 0.01, operator="sparse"),
            make_solver("psgd", problem, eta0=float(lam) + 0.01, operator="dense"),
            make_solver("mb_psgd", problem, schedule="constant", batch_size=rank),
            make_solver("mb_katyusha", problem, eta0=0.01, batch_size=rank),
        ):
            method.start(problem.start(0.1, rng), rng)
            method.epoch()

    first = signatures()
    use(0.5, 4)
    before = signatures()
    for strength in (0, 1, 0.25, np.float32(0.25), 2**-7):
        for rank in (1, 4):
            use(strength, rank)
    assert signatures() == before
    assert recompiled(first) == []


def test_a_kernel_is_known_by_what_it_closes_over_not_by_how_its_file_was_read():
    def sweep(loss):
        scalar_loss = problem_for("dense", loss, "ti", False).loss.scalar
        view = PENALTIES["ti"].entry
        return python_version(entry_sweep.dense_entry_sweep(scalar_loss, view, unit_weight, False))

    one = sweep("squared")
    # As from bytecode: equal strings are other objects.
    read = marshal.loads(marshal.dumps(one.__code__))
    again = FunctionType(read, one.__globals__, one.__name__, one.__defaults__, one.__closure__)
    again.__qualname__ = one.__qualname__
    assert _identity(again) == _identity(one)
    assert _identity(sweep("logistic")) != _identity(one)
