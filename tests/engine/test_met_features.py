from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fmviz

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
MET = np.sort(RNG.choice(200_000, 8, replace=False))
FEW = RNG.normal(size=(30, 8)) * (RNG.random((30, 8)) < 0.6)
Y = FEW[:, 0] * FEW[:, 1] + FEW[:, 2] + 0.1 * RNG.normal(size=30)
CASES = {
    "one output": (fmviz.FactorizationMachineRegressor, {"rank": 2}, Y),
    "several": (fmviz.FactorizationMachineRegressor, {"rank": 2}, np.stack([Y, -Y], axis=1)),
    "dummy features": (
        fmviz.PolynomialNetworkRegressor,
        {"rank": 2, "augment": True, "fit_linear": False},
        Y,
    ),
}


def wide(form):
    where = np.nonzero(FEW)
    return form((FEW[where], (where[0], MET[where[1]])), shape=(30, 200_000))


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("case", CASES)
def test_the_others_have_parameters_of_0(case, form):
    make, settings, y = CASES[case]
    machine = make(**settings, max_iter=5, random_state=0)
    found = machine.fit(wide(form), y)
    P, w, predicted = found.P_, found.w_, found.predict(wide(form))
    few = machine.fit(form(FEW), y)
    np.testing.assert_array_equal(P[..., MET, :], few.P_[..., :8, :])
    np.testing.assert_array_equal(w[..., MET], few.w_)
    assert np.count_nonzero(P[..., :200_000, :]) == np.count_nonzero(few.P_[..., :8, :])
    np.testing.assert_allclose(predicted, few.predict(form(FEW)), rtol=1e-12)


def test_a_warm_start_keeps_all_features():
    machine = fmviz.FactorizationMachineRegressor(rank=2, max_iter=2, warm_start=True, random_state=0)
    first = machine.fit(wide(sp.csr_array), Y).P_
    assert machine.fit(wide(sp.csr_array), Y).P_.shape == first.shape == (200_000, 2)


def test_what_cannot_be_given_back_is_refused_at_once(monkeypatch):
    monkeypatch.setattr("fmviz.estimators.fitting.available_bytes", lambda: 1e6)
    with pytest.raises(ValueError, match=r"rank = 10 and 200,000 features need 17\.6 MB, and 1 MB are free"):
        fmviz.FactorizationMachineRegressor().fit(wide(sp.csr_array), Y)
