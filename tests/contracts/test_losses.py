"""Every loss in the registry keeps the same contract."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from oracles import slow_fm

from fmviz.engine import _jit
from fmviz.engine._exponential import from_bits, size_bits
from fmviz.engine.losses import LOSSES, Huber, Logistic, evaluate

LABELS = {"regression": (-3.0, 0.0, 2.5), "binary": (-1.0, 1.0)}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_value_and_slopes_are_the_formulae(loss):
    f = np.linspace(-4, 4, 81) + 0.0123
    for y in LABELS[loss.task]:
        target = np.full_like(f, y)
        assert loss.value(f, target) == pytest.approx(slow_fm.LOSS[loss.name](f, target))
        assert loss.derivative(f, target) == pytest.approx(slow_fm.SLOPE[loss.name](f, target))
        assert loss.second(f, target) == pytest.approx(slow_fm.BEND[loss.name](f, target))


@pytest.mark.parametrize("loss", [*LOSSES.values(), Huber(0.8)], ids=repr)
def test_slope_is_the_finite_difference(loss):
    f, h = np.linspace(-3, 3, 61) + 0.0171, 1e-6
    for y in LABELS[loss.task]:
        target = np.full_like(f, y)
        rise = loss.value(f + h, target) - loss.value(f - h, target)
        assert loss.derivative(f, target) == pytest.approx(rise / (2 * h), abs=1e-7)
        bend = loss.derivative(f + h, target) - loss.derivative(f - h, target)
        assert loss.second(f, target) == pytest.approx(bend / (2 * h), abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_mu_bounds_the_bend(loss):
    f = np.linspace(-20, 20, 4001)
    for y in LABELS[loss.task]:
        slope = loss.derivative(f, np.full_like(f, y))
        steepest = (np.diff(slope) / np.diff(f)).max()
        assert steepest <= loss.mu() * (1 + 1e-9)
        assert steepest >= 0.99 * loss.mu()


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_extreme_margins_stay_finite(loss):
    f = np.array([-1e150, -800.0, -40.0, 40.0, 800.0, 1e150])
    for y in LABELS[loss.task]:
        for function in (loss.value, loss.derivative, loss.second):
            assert np.isfinite(function(f, np.full_like(f, y))).all()
    if loss.name == "logistic":
        ones = np.ones_like(f)
        assert loss.value(f, ones) == pytest.approx([1e150, 800, 40, np.exp(-40), 0, 0])
        assert loss.derivative(f, ones) == pytest.approx([-1, -1, -1, -np.exp(-40), 0, 0])


@pytest.mark.parametrize(
    "loss", [x for x in (*LOSSES.values(), Huber(0.7)) if x.scalar.of_residual is not None], ids=repr
)
def test_residual_form_is_the_same_loss(loss):
    rng = np.random.default_rng(0)
    f, y = rng.normal(size=(2, 50)) * 2
    own, other = loss.scalar, loss.scalar.of_residual
    for one, two in zip(
        (own.value, own.derivative, own.second),
        (other.value, other.derivative, other.second),
        strict=True,
    ):
        same = evaluate(two, f - y, np.zeros(50), loss.theta)
        assert evaluate(one, f, y, loss.theta) == pytest.approx(same, abs=1e-15)


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


def test_logistic_is_right_to_rounding_in_every_compilation():
    exact = [exact_logistic(float(z)) for z in MARGINS]
    ones = np.ones_like(MARGINS)
    for i, scalar in enumerate((LOGISTIC.value, LOGISTIC.derivative, LOGISTIC.second)):
        loose, plain = np.empty_like(MARGINS), np.empty_like(MARGINS)
        kernel = apply_loosely(scalar)
        kernel(MARGINS, ones, (), loose)
        _jit.python_version(kernel)(MARGINS, ones, (), plain)
        for found in (evaluate(scalar, MARGINS, ones, ()), loose, plain):
            error = [abs(Decimal(float(x)) / one[i] - 1) for x, one in zip(found, exact, strict=True)]
            assert max(error) < 5e-16


def test_logistic_lets_nan_through():
    broken = np.array([np.nan, np.nan])
    for scalar in (LOGISTIC.value, LOGISTIC.derivative, LOGISTIC.second):
        assert np.isnan(evaluate(scalar, broken, np.array([1.0, -1.0]), ())).all()
        out = np.zeros(2)
        apply_loosely(scalar)(broken, np.array([1.0, -1.0]), (), out)
        assert np.isnan(out).all()


@pytest.mark.parametrize("loss", [x for x in LOSSES.values() if x.scalar.nudged], ids=repr)
def test_a_nudged_slope_is_the_slope_there(loss):
    rng = np.random.default_rng(0)
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
    bits = [int(size_bits(one)) for one in x]
    assert bits == sorted(bits)
    assert [from_bits(b) for b in bits[:-1]] == np.abs(x[:-1]).tolist()
    assert np.isnan(from_bits(bits[-1]))
