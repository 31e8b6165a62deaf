"""Contract tests of losses of vectors."""

from __future__ import annotations

import numpy as np
import pytest
from small_data import differences, target

from fmviz.engine.losses import LOSSES, VECTOR_LOSSES, Separate, loss_of_outputs, vector
from fmviz.engine.target import Target


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_agree_with_finite_differences_and_blocks_with_the_whole(name, rng):
    F, Y = rng.normal(size=(5, 3)), target(rng.choice((-1.0, 1.0), size=(5, 3)), name)
    loss = Separate(LOSSES[name])
    value, gradient = loss.value_and_gradient(F, Y)
    assert value.shape == (5,)
    assert value == pytest.approx(sum(LOSSES[name].value(F[:, c].copy(), Y[:, c].copy()) for c in range(3)))
    expected = differences(lambda F: loss.value_and_gradient(F, Y)[0].sum(), F)
    assert gradient == pytest.approx(expected, abs=1e-5)
    halves = [loss.value_and_gradient(F[rows], Y[rows]) for rows in (slice(0, 2), slice(2, 5))]
    assert np.array_equal(np.concatenate([half[0] for half in halves]), value)
    assert np.array_equal(np.concatenate([half[1] for half in halves]), gradient)


@pytest.mark.parametrize("name", VECTOR_LOSSES)
def test_losses_of_classes_agree_with_their_formulas_and_conjugates(name, rng):
    loss = VECTOR_LOSSES[name]
    F, Y = 2.0 * rng.normal(size=(40, 4)), rng.integers(0, 4, 40).astype(float)
    value, gradient = loss.value_and_gradient(F, Y)
    own = np.arange(40), Y.astype(int)
    apart = F - F[own][:, None]
    others = np.ones(F.shape, dtype=bool)
    others[own] = False
    expected = {
        "multiclass_logistic": np.log1p((np.exp(apart) * others).sum(axis=1)),
        "smoothed_hinge": np.log1p((np.exp(1.0 + apart) * others).sum(axis=1)),
        "multiclass_squared_hinge": (np.maximum(1.0 + apart, 0.0) ** 2 * others).sum(axis=1),
    }[name]
    assert value == pytest.approx(expected, rel=1e-12)
    for c in range(4):
        step = np.zeros_like(F)
        step[:, c] = 1e-6
        ahead, behind = (loss.value(F + s, Y) for s in (step, -step))
        assert gradient[:, c] == pytest.approx((ahead - behind) / 2e-6, abs=1e-7)
        # The gradient does not change faster than the bounds of the curvature say.
        moved = np.linalg.norm(loss.derivative(F + step, Y) - gradient, axis=1)
        assert (moved <= 1e-6 * (loss.curvature(F, Y) + 1e-4)).all()
        assert (loss.curvature(F, Y) <= (loss.mu() or 2 * 4) + 1e-12).all()
    assert gradient.sum(axis=1) == pytest.approx(np.zeros(40), abs=1e-12)
    # Fenchel and Young: equality at the gradient, and nowhere less.
    conjugate = loss.conjugate(gradient, Y)
    assert conjugate == pytest.approx((gradient * F).sum(axis=1) - value, abs=1e-9)
    others_gradient = loss.derivative(F[::-1].copy(), Y)
    assert (loss.conjugate(others_gradient, Y) >= (others_gradient * F).sum(axis=1) - value - 1e-9).all()
    assert np.isinf(loss.conjugate(np.ones((40, 4)), Y)).all()
    if (p := loss.probability(F)) is not None:
        assert p.sum(axis=1) == pytest.approx(1.0)


def test_losses_take_the_form_that_the_target_asks_for():
    classes, numbers = Target.of_labels([0, 1, 2]), Target.of(np.ones((3, 2)) * 0.5)
    assert loss_of_outputs(LOSSES["logistic"], classes) == VECTOR_LOSSES["multiclass_logistic"]
    assert loss_of_outputs(LOSSES["squared"], numbers) == Separate(LOSSES["squared"])
    assert loss_of_outputs(LOSSES["squared"], Target.of([0.5, 1.0])) == LOSSES["squared"]
    for loss, values in ((LOSSES["huber"], classes), (VECTOR_LOSSES["smoothed_hinge"], numbers)):
        with pytest.raises(ValueError, match="choose"):
            loss_of_outputs(loss, values)


@pytest.mark.needs_jit
@pytest.mark.parametrize(
    "loss", [*(VECTOR_LOSSES[name] for name in VECTOR_LOSSES), Separate(LOSSES["logistic"])]
)
def test_kernels_agree_with_their_python_source(loss, monkeypatch, rng):
    separate = isinstance(loss, Separate)
    F = rng.normal(size=(7, 3))
    Y = rng.choice((-1.0, 1.0), size=(7, 3)) if separate else rng.integers(0, 3, 7).astype(float)
    compiled = loss.value_and_gradient(F, Y)
    for name in ("_rows", "_entries"):
        factory = getattr(vector, name)
        monkeypatch.setattr(vector, name, lambda loss, build=factory: build(loss).py_func)
    plain = loss.value_and_gradient(F, Y)
    for fast, other in zip(compiled, plain, strict=True):
        assert fast == pytest.approx(other, rel=1e-13, abs=1e-15)
