"""Gibbs sampling: each draw has the distribution that it should have, whatever the storage of X."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fmviz
from fmviz.engine.design import BINARY, DENSE, SPARSE, Design
from fmviz.engine.sampling.gibbs import GibbsSampler, factor_draws, linear_draws

RNG = np.random.default_rng(0)
PRECISION, CENTERS, SPREADS = 2.5, np.array([[0.3, -0.2], [0.1, 0.4]]), np.array([[0.7, 1.5], [2.0, 0.4]])
GROUPS = np.array([0, 1, 0, 1])


def predictions(X, P, w):
    pairs = 0.5 * (np.square(X @ P.T).sum(axis=1) - np.square(X) @ np.square(P).sum(axis=0))
    return X @ w + pairs


@pytest.mark.parametrize("storage", [DENSE, SPARSE, BINARY], ids=lambda s: s.name)
def test_draws_follow_the_conditional_distributions(storage):
    """A draw is the mean plus noise over the root of the precision, both read off the log posterior."""
    X = RNG.normal(size=(12, 4)) * (RNG.random((12, 4)) < 0.6)
    X = (X != 0).astype(float) if storage is BINARY else X
    y, P, w = RNG.normal(size=12), RNG.normal(size=(2, 4)), RNG.normal(size=4)
    noise_w, noise_P = RNG.normal(size=4), RNG.normal(size=(2, 4))
    design = Design(X if storage is DENSE else sp.csc_array(X))
    assert design.storage is storage

    def log_posterior(P, w):
        misfit = -0.5 * PRECISION * np.square(y - predictions(X, P, w)).sum()
        prior = -0.5 * (SPREADS[0, GROUPS] * np.square(w - CENTERS[0, GROUPS])).sum()
        return misfit + prior - 0.5 * (SPREADS[:, GROUPS] * np.square(P - CENTERS[:, GROUPS])).sum()

    def drawn(at, noise):
        """Draw from exp of a quadratic function of one number."""
        below, here, above = at(-1.0), at(0.0), at(1.0)
        precision = 2.0 * here - below - above
        return 0.5 * (above - below) / precision + noise / np.sqrt(precision)

    wanted_w, wanted_P = w.copy(), P.copy()
    for j in range(4):
        wanted_w[j] += drawn(lambda t, j=j: log_posterior(P, wanted_w + t * np.eye(4)[j]), noise_w[j])
    for s in range(2):
        for j in range(4):
            unit = np.outer(np.eye(2)[s], np.eye(4)[j])
            wanted_P[s, j] += drawn(
                lambda t, u=unit: log_posterior(wanted_P + t * u, wanted_w), noise_P[s, j]
            )
    moments = np.square(X).sum(axis=0)
    for linear, factors in (
        (linear_draws(storage), factor_draws(storage)),
        (linear_draws(storage).py_func, factor_draws(storage).py_func),
    ):
        found_w, found_P = w.copy(), P.copy()
        e, sums = predictions(X, P, w) - y, P @ X.T
        linear(*design.columns, e, found_w, moments, PRECISION, GROUPS, CENTERS[0], SPREADS[0], noise_w)
        factors(*design.columns, e, found_P, sums, PRECISION, GROUPS, CENTERS, SPREADS, noise_P)
        np.testing.assert_allclose(found_w, wanted_w, rtol=1e-9)
        np.testing.assert_allclose(found_P, wanted_P, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(e, predictions(X, found_P, found_w) - y, atol=1e-12)
        np.testing.assert_allclose(sums, found_P @ X.T, atol=1e-12)


def test_the_linear_posterior_is_that_of_bayesian_regression():
    """Without factors, samples agree with the closed form given their own mean precisions."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.5 * rng.normal(size=300)
    machine = fmviz.BayesianFMRegressor(
        rank=0, n_draws=600, burn_in=50, standardize=False, random_state=0
    ).fit(X, y)
    centred = X - X.mean(axis=0)
    exact = np.linalg.solve(centred.T @ centred, centred.T @ (y - y.mean()))
    error = np.sqrt(np.diag(np.linalg.inv(centred.T @ centred))) * machine.noise_.mean()
    assert np.abs(machine.w_.mean(axis=0) - exact).max() < 0.3 * error.max()
    assert machine.w_.std(axis=0) == pytest.approx(error, rel=0.15)
    # The prior of the noise weighs as much as one row whose error is a standard deviation of y.
    errors = y - y.mean() - centred @ exact
    assert machine.noise_.mean() == pytest.approx(np.sqrt((np.var(y) + errors @ errors) / y.size), rel=0.03)


@pytest.mark.parametrize("binary", [False, True])
def test_units_change_nothing_and_predictions_are_kept_up_to_date(binary, rng):
    X = rng.normal(size=(40, 5))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=40)
    y = np.sign(y) if binary else y

    def draws(a, b):
        design = Design(a * X)
        sampler = GibbsSampler(
            design, b * y, 3, binary, True, True, np.zeros(5, int), np.random.default_rng(1)
        )
        return [draw for draw, _ in zip(sampler.draws(), range(25), strict=False)]

    plain = draws(1.0, 1.0)
    for draw in plain:
        P, w = draw.parameters.P.T, draw.parameters.w
        np.testing.assert_allclose(
            draw.f, predictions(X, np.ascontiguousarray(P), w) + draw.parameters.intercept, atol=1e-10
        )
    scaled = draws(16.0, 1.0 if binary else 64.0)
    np.testing.assert_allclose(scaled[-1].f / (1.0 if binary else 64.0), plain[-1].f, rtol=1e-9)


def test_latent_scores_have_the_sign_of_y_and_the_mean_of_a_truncated_normal():
    y = np.tile([1.0, -1.0], 20_000)
    sampler = GibbsSampler(
        Design(np.ones((y.size, 1))), y, 0, True, False, False, np.zeros(1, int), np.random.default_rng(2)
    )
    for f in (0.3, -40.0):
        latent = sampler._latent(np.full(y.size, f))
        assert (latent * y > 0).all()
    latent = sampler._latent(np.full(y.size, 0.3))
    # E[N(0.3, 1) | > 0] = 0.3 + φ(0.3)/Φ(0.3).
    assert latent[y > 0].mean() == pytest.approx(0.3 + 0.38139 / 0.61791, abs=0.02)


def test_samples_tell_which_pairs_are_there():
    X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    machine = fmviz.BayesianFMRegressor(n_draws=60, burn_in=40, random_state=0).fit(X[:150], y[:150])
    mean, spread = machine.predict(X[150:], return_std=True)
    assert np.mean(np.square(mean - y[150:])) < 0.05 * np.var(y)
    assert np.mean(np.abs(mean - y[150:]) < 2.0 * spread) > 0.8
    pairs = machine.interactions(top=30)
    true = W[pairs["feature_i"], pairs["feature_j"]] != 0
    assert true[:18].all()
    assert not true[18:].any()
    assert (pairs["probability"][:18] == 1.0).all()
    assert (pairs["lower"] <= pairs["weight"]).all()
    assert (pairs["weight"] <= pairs["upper"]).all()
