"""Contract tests of every registered loss."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np
import pytest
from by_name import SMOOTH, iterate
from oracles import slow_fm
from oracles.generic_convex import generic_optimum
from small_data import targets_of

import fmviz
from fmviz.engine import _jit
from fmviz.engine._exponential import from_bits, size_bits
from fmviz.engine._jit import jitable
from fmviz.engine.certificates.duality import dual_values, relative_gaps
from fmviz.engine.compatibility import best_solver, why_not
from fmviz.engine.fit import Budget
from fmviz.engine.losses import LOSSES, Huber, Logistic, Loss, QuantileHuber, evaluate
from fmviz.engine.losses.capped import CappedHinge, CappedInsensitive
from fmviz.engine.losses.half_squares import SquaredExcess, SquaredSlack
from fmviz.engine.losses.majoriser import Smoothed
from fmviz.engine.losses.scalar import residual_loss
from fmviz.engine.models import get_model
from fmviz.engine.penalties import get_penalty
from fmviz.engine.problem import Formulation, Problem
from fmviz.engine.solvers import SOLVERS

OTHERS = [QuantileHuber(0.2, 0.3), SquaredExcess(0.3), SquaredSlack(0.7)]


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_value_and_slopes_are_the_formulae(loss):
    f = np.linspace(-4, 4, 81) + 0.0123
    for y in targets_of(loss):
        target = np.full_like(f, y)
        assert loss.value(f, target) == pytest.approx(slow_fm.LOSS[loss.name](f, target))
        assert loss.derivative(f, target) == pytest.approx(slow_fm.SLOPE[loss.name](f, target))
        assert loss.second(f, target) == pytest.approx(slow_fm.BEND[loss.name](f, target))


@pytest.mark.parametrize("loss", [*LOSSES.values(), Huber(0.8), *OTHERS], ids=repr)
def test_slope_is_the_finite_difference(loss):
    f, h = np.linspace(-3, 3, 61) + 0.0171, 1e-6
    for y in targets_of(loss):
        target = np.full_like(f, y)
        rise = loss.value(f + h, target) - loss.value(f - h, target)
        assert loss.derivative(f, target) == pytest.approx(rise / (2 * h), abs=1e-7)
        bend = loss.derivative(f + h, target) - loss.derivative(f - h, target)
        assert loss.second(f, target) == pytest.approx(bend / (2 * h), abs=1e-6)


@pytest.mark.parametrize("loss", [*SMOOTH.values(), SquaredExcess(0.3), SquaredSlack(0.7)], ids=repr)
def test_mu_bounds_the_bend_or_the_bend_is_convex(loss):
    f = np.linspace(-20, 20, 4001)
    for y in targets_of(loss):
        if loss.mu() is None:
            bend = loss.second(f, np.full_like(f, y))
            assert (bend > 0.0).all()
            assert (np.diff(bend, 2) >= 0.0).all()
            continue
        slope = loss.derivative(f, np.full_like(f, y))
        steepest = (np.diff(slope) / np.diff(f)).max()
        assert steepest <= loss.mu() * (1 + 1e-9)
        assert steepest >= 0.99 * loss.mu()


@pytest.mark.parametrize("tau", [0.2, 0.5, 0.9])
def test_the_quantile_huber_loss_agrees_with_a_generic_solver_and_finds_the_quantile(tau):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 4)), rng.normal(size=200)
    model, penalty = get_model("qr"), get_penalty("l1")
    problem = Problem.build(
        X, y, loss=QuantileHuber(tau, 0.02), penalty=penalty, model=model, lambda_p=0.01, lambda_sparse=0.02
    )
    *_, last = iterate(problem, "exact_pgd", Budget(5_000, tol=1e-10, report_every=None))
    assert last.objective == pytest.approx(generic_optimum(problem), rel=1e-6)
    assert last.certificate <= 1e-6
    below = np.mean(y <= problem.model.predict(problem.design, last.parameters))
    assert below == pytest.approx(tau, abs=0.03)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_extreme_margins_stay_finite(loss):
    f = np.array([-1e150, -800.0, -40.0, 40.0, 800.0, 1e150])
    for y in targets_of(loss):
        for function in (loss.value, loss.derivative, loss.second):
            assert np.isfinite(function(f, np.full_like(f, y))).all()
    if loss.name == "logistic":
        ones = np.ones_like(f)
        assert loss.value(f, ones) == pytest.approx([1e150, 800, 40, np.exp(-40), 0, 0])
        assert loss.derivative(f, ones) == pytest.approx([-1, -1, -1, -np.exp(-40), 0, 0])


LOGISTIC = Logistic.scalar


def exact_logistic(z: float) -> tuple[Decimal, Decimal, Decimal]:
    """Value and slopes at the margin z in many digits, each from its definition."""
    with localcontext() as context:
        context.prec = 700
        e = Decimal(z).exp()
        return (1 + 1 / e).ln(), -1 / (1 + e), e / (1 + e) ** 2


MARGINS = np.concatenate(
    [
        np.random.default_rng(0).uniform(-40, 40, 300),
        np.random.default_rng(1).uniform(-700, 700, 100),
        np.random.default_rng(2).normal(size=100) * 1e-3,
        # Where the logarithm and the exponential change their ranges.
        np.linspace(-1e-12, 1e-12, 20) - np.log(np.sqrt(2) - 1),
        np.arange(-30, 30) * np.log(2) / 2,
    ]
)


def apply_loosely(scalar):
    """Compile a loop that may reorder its arithmetic, as the sweeps do."""

    def apply(f, y, theta, out):
        for n in range(f.size):
            out[n] = scalar(f[n], y[n], theta)

    return _jit._kernel(apply, apply.__name__, exact=False)


@pytest.mark.slow
def test_logistic_is_right_to_rounding_in_every_compilation():
    exact = [exact_logistic(float(z)) for z in MARGINS]
    ones = np.ones_like(MARGINS)
    for i, scalar in enumerate((LOGISTIC.value, LOGISTIC.derivative, LOGISTIC.second)):
        loose, plain = np.empty_like(MARGINS), np.empty_like(MARGINS)
        kernel = apply_loosely(scalar)
        kernel(MARGINS, ones, (), loose)
        _jit.python_version(kernel)(MARGINS, ones, (), plain)
        for computed in (evaluate(scalar, MARGINS, ones, ()), loose, plain):
            error = [abs(Decimal(float(x)) / terms[i] - 1) for x, terms in zip(computed, exact, strict=True)]
            assert max(error) < 5e-16


def test_logistic_lets_nan_through():
    broken = np.array([np.nan, np.nan])
    for scalar in (LOGISTIC.value, LOGISTIC.derivative, LOGISTIC.second):
        assert np.isnan(evaluate(scalar, broken, np.array([1.0, -1.0]), ())).all()
        out = np.zeros(2)
        apply_loosely(scalar)(broken, np.array([1.0, -1.0]), (), out)
        assert np.isnan(out).all()


@pytest.mark.parametrize("loss", [x for x in LOSSES.values() if x.scalar.nudged], ids=repr)
def test_a_nudged_slope_is_the_slope_there(loss, rng):
    f = np.concatenate([rng.normal(size=400), rng.uniform(-30, 30, 400)])
    y = np.where(rng.random(f.size) < 0.5, -1.0, 1.0)
    step = loss.scalar.nudge_reach * np.where(
        rng.random(f.size) < 0.5, rng.uniform(-1, 1, f.size), np.sign(f)
    )

    nudged, theta = loss.scalar.nudged, loss.theta

    def nudge(slope, step, y, out):
        for n in range(slope.size):
            out[n] = nudged(slope[n], step[n], y[n], theta)

    slope = loss.derivative(f, y)
    there = loss.derivative(f + step, y)
    for kernel in (_jit._kernel(nudge, nudge.__name__, exact=False), nudge):
        out = np.empty_like(f)
        kernel(slope, step, y, out)
        # Adding the step to f costs a rounding error of f.
        assert (np.abs(out - there) <= 1e-15 * (1 + np.abs(f)) * np.abs(there)).all()
        # NaN is not lost.
        kernel(np.full_like(f, np.nan), step, y, out)
        assert np.isnan(out).all()


def test_bits_of_sizes_stand_in_order():
    x = np.array([0.0, -1e-300, 2.0, -3.5, 1e300, -np.inf, np.nan])
    bits = [int(size_bits(value)) for value in x]
    assert bits == sorted(bits)
    assert [from_bits(b) for b in bits[:-1]] == np.abs(x[:-1]).tolist()
    assert np.isnan(from_bits(bits[-1]))


# ---------------------------------------------- losses that lack what those of the registry have


@jitable
def quartic(r, unused, theta):
    return 0.25 * r * r * r * r


@jitable
def quartic_derivative(r, unused, theta):
    return r * r * r


@jitable
def quartic_second(r, unused, theta):
    return 3.0 * r * r


@jitable
def quartic_conjugate(a, y, theta):
    return 0.75 * abs(a) ** (4.0 / 3.0) + a * y


@dataclass(frozen=True)
class Quartic(Loss):
    """¼(f − y)⁴: convex, with a conjugate, and a derivative without a Lipschitz constant."""

    name = "quartic"
    label = "Quartic"
    task = "regression"
    scalar = residual_loss("quartic", quartic, quartic_derivative, quartic_second)
    jitable_conjugate = staticmethod(quartic_conjugate)

    def mu(self) -> None:
        return None


class Undeclared(Huber):
    """Convex, with μ = 1; its conjugate is not declared."""

    jitable_conjugate = None


WITHOUT_MU = [name for name, solver in SOLVERS.items() if not solver.needs_mu]


def problem_of(loss: Loss, **more) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 4))
    y = 2.0 * X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=12)
    given = {"penalty": "l2", "rank": 2, "lambda_w": 0.01, "lambda_p": 0.005, "lambda_sparse": 0.0}
    return Problem.build(X, y, loss=loss, **(given | more))


def test_without_mu_solvers_that_need_it_say_so():
    assert set(WITHOUT_MU) >= {"apgd", "pgd", "nmapgd", "lbfgs", "psgd", "pcd", "cd", "pbcd"}
    for penalty in ("l2", "l1", "ti", "cs", "omega_star"):
        for name, solver in SOLVERS.items():
            own = why_not(Formulation.build("fm", penalty), name)
            reason = why_not(Formulation.build("fm", penalty, Quartic()), name)
            if own is not None:
                assert reason is not None
            elif solver.needs_mu:
                assert reason.code == "no_mu"
            else:
                assert reason is None
        assert best_solver(Formulation.build("fm", penalty, Quartic())) in WITHOUT_MU
    reason = fmviz.why_not("l2", "gcd", loss=Quartic(), model="convex_fm")
    assert reason.startswith("Greedy coordinate descent ")
    assert "quartic loss has no Lipschitz constant" in reason
    assert "APGD" in reason
    assert fmviz.why_not("l1", "pcd", loss=Quartic()) is None
    assert fmviz.why_not("l1", loss=Quartic()) is None


@pytest.mark.parametrize(
    ("model", "solver"),
    [("qr", "exact_pgd"), ("qr", "incremental_pgd"), ("convex_fm", "gcd"), ("expansion", "lbfgs")],
)
def test_without_mu_solvers_with_a_part_that_needs_it_say_so(model, solver):
    # The fit of the weights of an expansion's columns takes steps of its own.
    penalty = "l1" if model == "qr" else "l2"
    assert why_not(Formulation.build(model, penalty), solver) is None
    assert why_not(Formulation.build(model, penalty, Quartic()), solver).code == "no_mu"


@pytest.mark.sample(2)
@pytest.mark.parametrize("solver", ["apgd", "pgd", "nmapgd", "lbfgs", "psgd", "pcd", "cd", "pbcd", "pbcd_ls"])
def test_without_mu_the_other_solvers_run(solver):
    settings = {"eta0": 0.01} if solver == "psgd" else {}
    chosen = type(SOLVERS[solver])(**settings)
    snapshots = list(
        iterate(problem_of(Quartic()), chosen, Budget(20, tol=0.0), rng=np.random.default_rng(0))
    )
    values = [snapshot.objective for snapshot in snapshots]
    assert values[-1] < values[0]
    assert np.isfinite([snapshot.certificate for snapshot in snapshots]).all()


@pytest.mark.parametrize("penalty", ["l2", "ti", "cs"])
def test_without_mu_the_certificate_is_0_at_the_optimum_alone(penalty):
    problem = problem_of(Quartic(), penalty=penalty, lambda_sparse=0.0 if penalty == "l2" else 0.005)
    assert problem.loss.mu() is None
    budget = Budget(20_000, tol=1e-13, report_every=None)
    *_, last = iterate(problem, "apgd", budget, init_scale=0.5, rng=np.random.default_rng(0))
    assert last.parameters.P.any()
    assert last.certificate < 1e-8
    moved = last.parameters.replace(P=last.parameters.P * 1.01)
    assert fmviz.engine.certificates.stationarity.certify(problem, moved) > 1e-4


@pytest.mark.parametrize(
    ("loss", "words"),
    [(Undeclared(), "no convex conjugate in closed form"), (CappedInsensitive(0.3, 0.7), "is not convex")],
    ids=repr,
)
@pytest.mark.parametrize(("model", "penalty"), [("qr", "l1"), ("convex_fm", "l2")])
def test_without_a_conjugate_models_with_a_gap_say_so(loss, words, model, penalty):
    problem = problem_of(loss, model=model, penalty=penalty)
    for solver in ("auto", *SOLVERS):
        assert why_not(problem, solver).code == "no_conjugate"
    reason = why_not(problem)
    assert words in reason
    assert "Choose another loss, or a factorization machine" in reason
    with pytest.raises(ValueError, match="duality gap"):
        iterate(problem)
    # The bound is what is known without one: losses are at least 0.
    start = problem.start(0.1, np.random.default_rng(0))
    assert loss.conjugate(np.zeros(3), np.zeros(3)) is None
    assert dual_values(problem, start)[0] == 0.0
    assert relative_gaps(problem, start)[0] == 1.0


# ------------------------------------------------------------------------------ losses with kinks and caps

KINKED = [x for x in (*LOSSES.values(), CappedInsensitive(0.3, 0.7), CappedHinge(0.2, 1.1)) if not x.smooth]


@pytest.mark.parametrize("delta", [1e-6, 0.05, 0.5, 30.0])
@pytest.mark.parametrize("loss", KINKED, ids=repr)
def test_tangents_touch_the_smoothed_loss_and_lie_nowhere_below_it(loss, delta, rng):
    y = np.where(rng.random(4000) < 0.5, -1.0, 1.0)
    here, there = rng.normal(size=(2, 4000)) * 2
    here[:200], there[:100] = y[:200], y[:100]  # Excesses of 0.
    majoriser = loss.majoriser
    weights, smooth = majoriser.weights(here, y, delta), majoriser.value(here, y, delta)
    assert np.isfinite(weights).all()
    assert ((weights == 0) == (majoriser.excess(here, y) > majoriser.cap)).all()
    rise = weights * (majoriser.half_square.value(there, y) - majoriser.half_square.value(here, y))
    assert (majoriser.value(there, y, delta) <= smooth + rise + 1e-12 * weights).all()
    gap = smooth - loss.value(here, y)
    assert gap.min() >= -1e-12
    assert gap.max() <= 0.5 * delta + 1e-12


@pytest.mark.parametrize("loss", KINKED, ids=repr)
def test_the_smoothed_loss_has_the_slope_and_the_conjugate_of_its_formula(loss):
    f, h = np.linspace(-3, 3, 61) + 0.0171, 1e-7
    smooth = Smoothed(loss, 0.4)
    for y in targets_of(loss):
        target = np.full_like(f, y)
        rise = (smooth.value(f + h, target) - smooth.value(f - h, target)) / (2 * h)
        slope = smooth.derivative(f, target)
        # Where the parabola ends beyond the cap, nothing is to be lowered.
        at_cap = smooth.value(f, target) == loss.majoriser.cap
        assert slope[~at_cap] == pytest.approx(rise[~at_cap], abs=1e-5)
        conjugate = smooth.conjugate(slope, target)
        assert (conjugate is None) == (not loss.convex)
        if conjugate is not None:
            assert smooth.value(f, target) + conjugate == pytest.approx(slope * f, abs=1e-12)


@pytest.mark.parametrize("loss", KINKED, ids=repr)
def test_what_needs_a_derivative_says_that_kinks_have_none(loss):
    assert loss.mu() is None
    for model, penalty in (("fm", "l2"), ("fm", "ti"), ("fm", "cs"), ("hofm", "ti"), ("all_subsets", "l2")):
        formulation = Formulation.build(model, penalty, loss)
        assert best_solver(formulation) == "reweighted"
        for name in ("cd", "pcd", "pbcd", "apgd", "lbfgs", "psgd"):
            reason = why_not(formulation, name)
            assert reason is not None
            assert why_not(Formulation.build(model, penalty), name) is not None or reason.code == "kinks"
    reason = why_not(Formulation.build("qr", "l1", loss), "reweighted")
    assert reason is None if loss.convex else reason.code == "no_conjugate"
    assert why_not(Formulation.build("fm", "ti"), "reweighted").code == "no_kinks"
