from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from fmviz import RobustFMClassifier, RobustFMRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
CLEAN = (X[:, 0] + X[:, 1]) ** 2 + X[:, 2] + 0.05 * RNG.normal(size=200)
WRONG = np.arange(200) < 30
Y = np.where(WRONG, CLEAN + 15.0, CLEAN)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_outliers_are_set_aside_and_the_rank_is_found():
    fitted = RobustFMRegressor(standardize=False, random_state=0).fit(X, Y)
    assert fitted.rank_ == 1
    assert fitted.outlier_mask_[WRONG].all()
    assert fitted.outlier_mask_[~WRONG].mean() < 0.05
    assert ((fitted.sample_weight_ == 0) == fitted.outlier_mask_).all()
    assert fitted.sample_weight_.max() == 1.0
    assert np.abs(fitted.predict(X) - CLEAN).mean() < 0.1
    Z = (fitted.P_ * fitted.coefficients_) @ fitted.P_.T
    assert fitted.squares_ == pytest.approx(np.diagonal(Z))
    assert fitted.interactions(top=1).weight[0] == pytest.approx(2 * Z[0, 1]) == pytest.approx(2.0, abs=0.1)
    caps = fitted.eps_insensitive_, fitted.cap_loss_, fitted.cap_spectrum_, fitted.lambda_spectrum_
    names = "eps_insensitive", "cap_loss", "cap_spectrum", "lambda_spectrum"
    again = clone(fitted).set_params(**dict(zip(names, caps, strict=True))).fit(X, Y)
    assert again.predict(X) == pytest.approx(fitted.predict(X), abs=0.02)


def test_without_caps_it_is_convex_and_its_optimum_is_proved():
    given = {"eps_insensitive": 0.1, "cap_loss": None, "cap_spectrum": None, "lambda_spectrum": 0.01}
    fitted = RobustFMRegressor(**given).fit(sp.csr_array(X), Y)
    assert fitted.status_.converged
    assert fitted.certificate_ < 1e-6
    assert not fitted.outlier_mask_.any()
    assert (fitted.cap_loss_, fitted.cap_spectrum_) == (np.inf, np.inf)


@pytest.mark.slow
def test_flipped_labels_are_set_aside():
    labels = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 > 2.0, "out", "in")
    flipped = np.where(WRONG, np.where(labels == "in", "out", "in"), labels)
    fitted = RobustFMClassifier(cap_spectrum=1.0, lambda_spectrum=0.01, max_iter=10).fit(X, flipped)
    assert fitted.classes_.tolist() == ["in", "out"]
    assert fitted.score(X, labels) > 0.9
    assert fitted.outlier_mask_[WRONG].mean() > 0.6
    assert fitted.outlier_mask_[~WRONG].mean() < 0.06
    assert not hasattr(fitted, "predict_proba")


def test_many_features_are_fitted_by_mini_batches():
    wide = sp.random_array((120, 600), density=0.02, format="csr", rng=np.random.default_rng(0))
    given = {"eps_insensitive": 0.1, "cap_loss": 1.0, "cap_spectrum": 0.1, "lambda_spectrum": 0.01}
    fitted = RobustFMRegressor(3, max_iter=3, random_state=0, **given).fit(wide, RNG.normal(size=120))
    assert fitted.P_.shape == (600, 3)
    assert np.isfinite(fitted.predict(wide)).all()


@pytest.mark.parametrize(("machine", "y"), [(RobustFMRegressor, Y), (RobustFMClassifier, Y > 2.0)])
def test_features_that_are_all_zero_have_the_weight_zero(machine, y):
    fitted = machine(random_state=0).fit(0.0 * X, y)
    assert not fitted.w_.any()
    assert np.unique(fitted.predict(X[:1] * 0.0)).size == 1
