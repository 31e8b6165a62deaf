"""Every loss in the registry keeps the same contract."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import slow_fm

from fmviz.engine.losses import LOSSES, evaluate

LABELS = {"regression": (-3.0, 0.0, 2.5), "binary": (-1.0, 1.0)}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_value_and_slopes_are_the_formulae(loss):
    f = np.linspace(-4, 4, 81) + 0.0123
    for y in LABELS[loss.task]:
        target = np.full_like(f, y)
        assert evaluate(loss.value, f, target, 1.0) == pytest.approx(slow_fm.LOSS[loss.name](f, target))
        assert evaluate(loss.derivative, f, target, 1.0) == pytest.approx(slow_fm.SLOPE[loss.name](f, target))
        assert evaluate(loss.second, f, target, 1.0) == pytest.approx(slow_fm.BEND[loss.name](f, target))


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_slope_is_the_finite_difference(loss):
    f, h = np.linspace(-3, 3, 61) + 0.0171, 1e-6
    for y in LABELS[loss.task]:
        target = np.full_like(f, y)
        rise = evaluate(loss.value, f + h, target, 0.8) - evaluate(loss.value, f - h, target, 0.8)
        assert evaluate(loss.derivative, f, target, 0.8) == pytest.approx(rise / (2 * h), abs=1e-7)
        bend = evaluate(loss.derivative, f + h, target, 0.8) - evaluate(loss.derivative, f - h, target, 0.8)
        assert evaluate(loss.second, f, target, 0.8) == pytest.approx(bend / (2 * h), abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_mu_bounds_the_bend(loss):
    f = np.linspace(-20, 20, 4001)
    for y in LABELS[loss.task]:
        slope = evaluate(loss.derivative, f, np.full_like(f, y), 1.0)
        steepest = (np.diff(slope) / np.diff(f)).max()
        assert steepest <= loss.mu * (1 + 1e-9)
        assert steepest >= 0.99 * loss.mu


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_extreme_margins_stay_finite(loss):
    f = np.array([-1e150, -800.0, -40.0, 40.0, 800.0, 1e150])
    for y in LABELS[loss.task]:
        for scalar in (loss.value, loss.derivative, loss.second):
            assert np.isfinite(evaluate(scalar, f, np.full_like(f, y), 1.0)).all()
    if loss.name == "logistic":
        ones = np.ones_like(f)
        assert evaluate(loss.value, f, ones, 0.0) == pytest.approx([1e150, 800, 40, np.exp(-40), 0, 0])
        assert evaluate(loss.derivative, f, ones, 0.0) == pytest.approx([-1, -1, -1, -np.exp(-40), 0, 0])


@pytest.mark.parametrize("loss", [x for x in LOSSES.values() if x.of_residual])
def test_residual_form_is_the_same_loss(loss):
    rng = np.random.default_rng(0)
    f, y = rng.normal(size=(2, 50)) * 2
    other = loss.of_residual
    for one, two in zip(
        (loss.value, loss.derivative, loss.second),
        (other.value, other.derivative, other.second),
        strict=True,
    ):
        same = evaluate(two, f - y, np.zeros(50), 0.7)
        assert evaluate(one, f, y, 0.7) == pytest.approx(same, abs=1e-15)
