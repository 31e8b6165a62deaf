"""Every compiled kernel agrees with its own Python source, and settings never recompile one."""

from __future__ import annotations

import ast
import marshal
from itertools import product
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest
from by_name import SMOOTH, build_problem, make_solver
from pairwise import sampled
from signatures import recompiled, signatures
from small_data import STORAGES, agree, stored, table, target

import fmviz.engine
from fmviz.choices import why_not
from fmviz.engine import counting
from fmviz.engine._jit import _identity, python_version
from fmviz.engine.design import Design
from fmviz.engine.losses import scalar
from fmviz.engine.models import factorization_machine, get_model, pairs
from fmviz.engine.models.columns import AllSubsetsKernel, Anova, anova, subsets
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES, powers
from fmviz.engine.penalties.operators import squared_norm
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import SOLVERS, _sweeping, pbcd, pcd
from fmviz.engine.solvers.kernels import coefficients, entry_sweep
from fmviz.engine.solvers.kernels.sweeps import unit_weight
from fmviz.engine.solvers.stochastic import katyusha, monotone, psgd

pytestmark = pytest.mark.needs_jit

FM, HOFM, ALL = ("fm", {}), ("hofm", {"order": 3}), ("all_subsets", {})
SIGNS = ("expansion", {"kernel": "anova", "degree": 3, "coefficients": "signs"})
FITTED, FITTED_A = ("expansion", {"degree": 3}), ("expansion", {"kernel": "anova", "degree": 3})
FITTED_2, H3, A2 = ("expansion", {}), ("lifted", {"degree": 3}), ("lifted", {"kernel": "anova"})
PAIRS = [(r, s) for r in PENALTIES for s in SOLVERS if why_not(r, s) is None]
NOISY = [name for name, solver in SOLVERS.items() if isinstance(solver, psgd.StochasticSolver)]
# Each storage with another loss, weighted or not: every pair of small functions meets somewhere.
WAYS = {
    "dense": ("squared", False),
    "sparse": ("logistic", True),
    "binary": ("huber", False),
    "pairs": ("logistic", True),
}
OF_FM = [(r, s, storage) for r, s in PAIRS if s not in NOISY for storage in STORAGES]
# Stochastic kernels are made of the same parts in many ways: each pair meets one storage, in turn.
OF_FM += [(r, s, STORAGES[i % 3]) for i, (r, s) in enumerate((r, s) for r, s in PAIRS if s in NOISY)]
OF_FM += [(r, s, "pairs") for r, s in PAIRS if s in ("cd", "pcd", "pbcd")]
OF_FM += [("ti", "psgd", storage) for storage in STORAGES] + [("cs", "psgd", "sparse")]
OF_COLUMNS = [
    (model, regularizer, solver, storage)
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
    for regularizer, storage in product(regularizers, STORAGES)
]
SINGLE = [
    ("ti", "pcd"),
    ("cs", "pbcd"),
    ("cs", "pbcd_ls"),
    ("l1", "psgd"),
    ("ti", "psgd"),
    ("l1", "katyusha"),
]
FACTORIES = (
    *((pcd, name) for name in ("entry_sweep", "dense_entry_sweep", "pair_entry_sweep")),
    *((pbcd, name) for name in ("row_sweep", "pair_row_sweep")),
    *((psgd, name) for name in ("lazy_steps", "dense_steps")),
    *((anova, name) for name in ("anova_of_rows", "anova_slopes_of_rows")),
    (factorization_machine, "pairs_of_rows"),
    (pairs, "pair_slopes_of_rows"),
    *((subsets, name) for name in ("subsets_tables", "subsets_of_rows", "subsets_slopes_of_rows")),
    (_sweeping, "linear_sweep"),
    (scalar, "_evaluate"),
    (katyusha, "katyusha_steps"),
    (coefficients, "coefficient_sweeps"),
)


def problem_for(
    storage: str,
    loss: str,
    regularizer: str,
    weighted: bool,
    model: tuple = FM,
    lam: float = 0.02,
    rank: int = 3,
    dtype: str = "float64",
    **params,
) -> Problem:
    rng = np.random.default_rng(3)
    X = 0.7 * rng.normal(size=(11, 5)) * (rng.random((11, 5)) < 0.6)
    X[:, 3] = 0.0
    if storage == "binary":
        X = (X != 0).astype(float)
    if storage == "pairs":
        X = np.eye(5)[rng.integers(0, 2, 11)] + np.eye(5)[rng.choice([2, 4], 11)]
    y = target(np.where(rng.random(11) < 0.5, 1.0, -1.0), loss)
    y.setflags(write=False)
    return build_problem(
        Design(stored(X, storage), dtype),
        y,
        loss=loss,
        model=model[0],
        model_params=model[1],
        regularizer=regularizer,
        rank=rank,
        lambda_w=0.03,
        lambda_p=lam,
        lambda_sparse=0.0 if model in (FITTED, FITTED_A, FITTED_2) else lam,
        sample_weight=rng.random(11) if weighted else None,
        regularizer_params=params,
    )


def two_epochs(problem: Problem, solver: str, **settings) -> Parameters:
    # The safeguard would replace an epoch that a wrong kernel has spoilt.
    free = {"monotone": False} if solver in NOISY else {}
    # Longer steps diverge on columns of higher order.
    free |= {"eta0": 0.02} if solver in NOISY and problem.model.name != "fm" else {}
    method, rng = make_solver(solver, problem, **free, **settings), np.random.default_rng(1)
    start = problem.start(0.5, rng)
    method.start(start.replace(w=rng.normal(size=5) * 0.1, intercept=0.2), rng)
    method.epoch()
    method.epoch()
    return method.parameters()


def in_python(monkeypatch) -> None:
    """Let the solvers take every kernel as its Python source."""
    for module, name in FACTORIES:
        monkeypatch.setattr(module, name, getattr(module, name).__wrapped__)


@pytest.mark.parametrize(
    ("model", "regularizer", "solver", "storage", "loss", "weighted", "own"),
    sampled(
        ([(FM, *case, *WAYS[case[2]], {}) for case in sorted(set(OF_FM))], 4),
        ([(*case, *WAYS[case[3]], {}) for case in OF_COLUMNS if case[2] in ("cd", "pcd")], 1),
        ([(*case, *WAYS[case[3]], {}) for case in OF_COLUMNS if case[2] not in ("cd", "pcd")], 1),
        (
            [
                (FM, *case, storage, "squared", True, {"dtype": "float32"})
                for case, storage in product(SINGLE, ("dense", "sparse"))
            ],
            1,
        ),
        (
            [
                (FM, "ti", "pcd", storage, loss, True, {"axis": "rows"})
                for storage, loss in product(("dense", "pairs"), SMOOTH)
            ],
            2,
        ),
        (
            [
                (FM, name, "pcd", storage, loss, loss != "squared", {"order": "features"})
                for (name, storage), loss in product((("ti", "dense"), ("omega_ti", "sparse")), SMOOTH)
            ],
            1,
        ),
    ),
)
def test_solver_kernels_agree_with_python(
    model, regularizer, solver, storage, loss, weighted, own, monkeypatch
):
    order = {name: own[name] for name in own if name == "order"}
    given = {name: own[name] for name in own if name != "order"}

    def run():
        problem = problem_for(storage, loss, regularizer, weighted, model, **given)
        return two_epochs(problem, solver, **order)

    compiled = run()
    in_python(monkeypatch)
    plain = run()
    agree(compiled, plain.P, plain.w, plain.intercept, abs=1e-12 if model == FM else 1e-11)
    assert compiled.multipliers == pytest.approx(plain.multipliers, abs=1e-11)
    if model == FM or regularizer in ("l1", "l21"):
        assert ((compiled.P != 0) == (plain.P != 0)).all()


@pytest.mark.sample(2)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kernel", [Anova(2), Anova(4), AllSubsetsKernel()])
def test_column_kernels_agree_with_python(kernel, storage, monkeypatch, rng):
    design, P, slope = (
        Design(stored(table(storage), storage)),
        rng.normal(size=(5, 3)),
        rng.normal(size=(14, 3)),
    )

    def run():
        return [kernel.values(design, P), kernel.gradient(design, P, slope), kernel.squares(design, P, slope)]

    compiled = run()
    in_python(monkeypatch)
    for first, two in zip(compiled, run(), strict=True):
        assert first == pytest.approx(two, abs=1e-12)


@pytest.mark.sample(2)
@pytest.mark.parametrize("storage", ["sparse", "binary"])
def test_pairs_of_a_large_sparse_x_are_those_of_a_small_one(storage, monkeypatch, rng):
    problem = problem_for(storage, "squared", "l1", True)
    here = problem.start(0.5, rng).replace(w=rng.normal(size=5))
    design, weight = problem.design, rng.normal(size=11)

    def run():
        f, sums = problem.model.forward(design, here)
        return [
            f,
            sums,
            problem.model.forward(design, here, keep=False)[0],
            problem.model.gradient(design, here, weight, sums)[0],
            problem.model.curvature(design, here, weight**2),
        ]

    small = run()
    monkeypatch.setattr("fmviz.engine.design._MOST_NUMBERS", 0)
    large = run()
    in_python(monkeypatch)
    for by_columns, by_rows, plain in zip(small, large, run(), strict=True):
        assert by_rows == pytest.approx(by_columns, abs=1e-12)
        assert by_rows == pytest.approx(plain, abs=1e-14)


def test_products_of_components_agree_with_python(rng):
    A, u, result = rng.normal(size=(9, 6)), rng.normal(size=6), np.zeros(9)
    entry_sweep.multiply(A, np.array([8, 1, 3, 2, 0, 5]), u, result)
    assert result == pytest.approx(np.append(A[[8, 1, 3, 2, 0, 5]] @ u, [0.0, 0.0, 0.0]))


@pytest.mark.sample(2)
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("storage", STORAGES)
def test_the_objective_of_the_safeguard_is_that_of_the_problem(storage, loss, rng):
    problem = problem_for(storage, loss, "ti", loss != "huber")
    at = Parameters(rng.normal(size=(5, 3)), rng.normal(size=5), 0.2)
    at.P[1] = 0.0
    guard = monotone.Safeguard(problem)
    assert guard.objective(at) == pytest.approx(problem.objective(at), rel=1e-13)


@pytest.mark.parametrize("algorithm", squared_norm.ALGORITHMS.values(), ids=squared_norm.ALGORITHMS)
def test_operator_kernels_agree_with_python(algorithm, rng):
    compiled = squared_norm.prox_each_row(algorithm)
    plain = squared_norm.prox_each_row.__wrapped__(algorithm)
    short = [(int(rng.integers(1, 40)), float(10.0 ** rng.uniform(-4, 4))) for _ in range(200)]
    for trial, (d, strength) in enumerate([*short, (2500, 1e-4), (2500, 0.1), (2500, 1e4)]):
        M = rng.normal(size=(2, d))
        M = np.round(M) if trial % 3 == 0 else M
        first, two = np.empty_like(M), np.empty_like(M)
        compiled(M, strength, first)
        plain(M, strength, two)
        # Long vectors are summed in another order.
        assert first == pytest.approx(two, rel=0.0 if d < 40 else 1e-12, abs=0.0 if d < 40 else 1e-14)


@pytest.mark.parametrize("degree", [2, 3, 5, 7])
def test_power_operator_agrees_with_python(degree, rng):
    for _ in range(50):
        M = rng.normal(size=(2, int(rng.integers(1, 12))))
        strength = float(10.0 ** rng.uniform(-3, 3))
        first, two = np.empty_like(M), np.empty_like(M)
        powers.prox_power_rows(M, strength, degree, first)
        python_version(powers.prox_power_rows)(M, strength, degree, two)
        assert first == pytest.approx(two, rel=1e-12, abs=1e-14)


def test_the_counting_kernel_agrees_with_python(rng, monkeypatch):
    every = [(1, k, d, m) for k in (1, 5, 64, 65, 200) for d, m in ((30, 2), (9, 3), (9, 4))]
    for f, k, d, m in [*every, (2, 5, 12, 2), (3, 5, 8, 3), (3, 70, 8, 3)]:
        factors = rng.normal(size=(f, d, k)) * (rng.random((f, d, k)) < 2 / k)
        compiled = counting.used_sets(factors, m)
        with monkeypatch.context() as patch:
            patch.setattr(counting, "count_sets", python_version(counting.count_sets))
            assert counting.used_sets(factors, m) == compiled


def declared_kernels() -> set[str]:
    """Return the names of all kernels and factories of kernels in the engine's sources."""
    engine = Path(fmviz.engine.__file__).parent
    result = set()
    for path in engine.rglob("*.py"):
        module = ".".join(path.relative_to(engine).with_suffix("").parts)
        for node in ast.parse(path.read_text()).body:
            decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else ()
            if {ast.unparse(d).split("(")[0] for d in decorators} & {"cached_factory", "named"}:
                result.add(f"{module}.{node.name}")
    return result


def test_no_kernel_is_left_out():
    # Those of losses of vectors are compared in test_vector_losses, of the output layer in test_shared_basis,
    # of draws in test_sampling, of extrapolation in test_sweeping.
    assert declared_kernels() == {
        "counting.count_sets",
        "interactions.search.search",
        "losses.scalar._evaluate",
        "losses.vector._entries",
        "losses.vector._rows",
        "models.columns.anova.anova_of_rows",
        "models.columns.anova.anova_slopes_of_rows",
        "models.columns.subsets.subsets_of_rows",
        "models.columns.subsets.subsets_slopes_of_rows",
        "models.columns.subsets.subsets_tables",
        "models.pairs.pair_slopes_of_rows",
        "models.pairs.pairs_of_rows",
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
        "solvers.stochastic.dense_steps.dense_steps",
        "solvers.stochastic.katyusha.katyusha_steps",
        "solvers.stochastic.lazy.lazy_steps",
    }, "a new kernel needs a test that compares it with its Python source"


@pytest.mark.slow
@pytest.mark.parametrize("model", [FM, HOFM, ALL, FITTED, FITTED_A, FITTED_2, H3, A2])
def test_settings_never_recompile(model):
    first = signatures()
    for solver, own in (
        *(("cd", {}), ("pcd", {}), ("pbcd", {}), ("sgd", {"eta0": 0.01}), ("mb_psgd", {"batch_size": 2})),
        *(("psgd", {"operator": operator, "eta0": 0.01}) for operator in ("sparse", "dense")),
        ("mb_katyusha", {"eta0": 0.01, "batch_size": 2}),
    ):
        dense = own.get("operator") == "dense" and model != FM  # for pairs only
        if dense or why_not("l2", solver, model=get_model(*model)) is not None:
            continue
        before = None
        for lam, rank in ((0.5, 3), (0.0, 1), (1, 2), (np.float32(0.25), 2), (2**-7, 1)):
            problem = problem_for("sparse", "squared", "l2", False, model, lam, rank)
            fmviz.prox("ti", table(), lam)
            fmviz.prox("cs", table().tolist(), lam)
            method = make_solver(solver, problem, **own)
            start = problem.start(0.3, np.random.default_rng(0))
            method.start(start, np.random.default_rng(0))
            method.epoch()
            problem.model.used_interactions(method.parameters())
            before = before or signatures()
        assert signatures() == before
    assert recompiled(first) == []


def test_a_kernel_is_known_by_what_it_closes_over_not_by_how_its_file_was_read():
    def sweep(loss):
        scalar_loss = problem_for("dense", loss, "ti", False).loss.scalar
        view = PENALTIES["ti"].entry
        return python_version(entry_sweep.dense_entry_sweep(scalar_loss, view, unit_weight, False))

    first = sweep("squared")
    # As from bytecode: equal strings are other objects.
    read = marshal.loads(marshal.dumps(first.__code__))
    again = FunctionType(read, first.__globals__, first.__name__, first.__defaults__, first.__closure__)
    again.__qualname__ = first.__qualname__
    assert _identity(again) == _identity(first)
    assert _identity(sweep("logistic")) != _identity(first)
