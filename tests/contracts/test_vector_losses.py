"""Losses of vectors: values that add up and gradients against finite differences, block by block."""

from __future__ import annotations

import numpy as np
import pytest

from fmviz.engine.losses import LOSSES
from fmviz.engine.losses.vector import Separate


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_agree_with_finite_differences_and_blocks_with_the_whole(name):
    rng = np.random.default_rng(0)
    F, Y = rng.normal(size=(5, 3)), rng.choice((-1.0, 1.0), size=(5, 3))
    loss = Separate(LOSSES[name])
    value, gradient = loss.value_and_gradient(F, Y)
    assert value.shape == (5,)
    assert value == pytest.approx(sum(LOSSES[name].value(F[:, c].copy(), Y[:, c].copy()) for c in range(3)))
    for c in range(3):
        step = np.zeros_like(F)
        step[:, c] = 1e-6
        ahead, behind = (loss.value_and_gradient(F + s, Y)[0] for s in (step, -step))
        assert gradient[:, c] == pytest.approx((ahead - behind) / 2e-6, abs=1e-5)
    halves = [loss.value_and_gradient(F[rows], Y[rows]) for rows in (slice(0, 2), slice(2, 5))]
    assert np.array_equal(np.concatenate([one[0] for one in halves]), value)
    assert np.array_equal(np.concatenate([one[1] for one in halves]), gradient)
