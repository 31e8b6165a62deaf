"""One function in several forms: lifted factors, (λ, P), W and machines predict alike."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fmviz
from fmviz.engine.design import Design
from fmviz.engine.interactions.weights import interactions_of, to_expansion
from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters


def some(model: str, d: int, rank: int) -> Parameters:
    """Return parameters of a model of pairs in which one feature is out of use."""
    rng = np.random.default_rng(0)
    P = rng.normal(size=(d, 2 * rank if model == "lifted" else rank))
    P[d // 2] = 0.0
    w, c = rng.normal(size=d), rng.normal(size=rank)
    if model == "qr":
        return Parameters.of_weights((P * c) @ P.T, w, 0.3)
    return Parameters(P, w, 0.3, coefficients=np.append(0.0, c[1:]) if model == "convex_fm" else None)


@pytest.mark.parametrize(
    ("name", "params", "kernel"),
    [
        *(("lifted", {"kernel": kernel}, kernel) for kernel in ("polynomial", "anova")),
        ("convex_fm", {"diagonal": True}, "polynomial"),
        ("convex_fm", {"diagonal": False}, "anova"),
        ("qr", {}, "anova"),
        ("fm", {}, "anova"),
    ],
)
@pytest.mark.parametrize(("d", "rank"), [(1, 1), (3, 5), (7, 2), (40, 3)])
def test_models_of_pairs_become_columns_that_predict_alike(name, params, kernel, d, rank):
    here, model = some(name, d, rank), get_model(name, params)
    result, direct = to_expansion(model, here), get_model("expansion", {"kernel": kernel})
    design = Design(np.random.default_rng(1).normal(size=(9, d)))
    assert direct.predict(design, result) == pytest.approx(model.predict(design, here), abs=1e-10)
    U, V = here.P[:, :rank], here.P[:, rank:]
    W = {"lifted": lambda: 0.5 * (U @ V.T + V @ U.T), "qr": lambda: here.W}.get(
        name, lambda: (here.P * here.multipliers) @ here.P.T
    )()
    assert name == "qr" or interactions_of(model, here, entries=True).matrix() == pytest.approx(W, abs=1e-12)
    assert interactions_of(direct, result, entries=True).matrix() == pytest.approx(W, abs=1e-11)
    assert result.P.shape[1] <= min(2 * rank, d)
    assert pytest.approx(np.eye(result.P.shape[1]), abs=1e-12) == result.P.T @ result.P
    assert (np.diff(np.abs(result.coefficients)) <= 0).all()
    # The trace norm is the expansion's shrinkage at its least.
    assert np.abs(result.coefficients).sum() == pytest.approx(np.linalg.norm(W, "nuc"))
    assert direct.shrinkage(result) <= model.shrinkage(here) * (1 + 1e-12)
    if name == "convex_fm":
        assert model.shrinkage(result) == pytest.approx(model.shrinkage(here))
        assert direct.shrinkage(result) == pytest.approx(model.shrinkage(here))
    # Features out of use stay so, to the bit.
    assert not result.P[d // 2].any()
    assert name != "fm" or (result.coefficients > 0).all()


@pytest.mark.parametrize("name", ["lifted", "fm", "qr"])
def test_nothing_becomes_no_column(name):
    nothing = Parameters.of_weights(np.zeros((4, 4)))
    nothing = nothing if name == "qr" else Parameters(np.zeros((4, 6)), np.ones(4), 1.0)
    assert to_expansion(name, nothing).P.shape == (4, 0)


def test_many_features_need_no_square_matrix(rng):
    d = 300_000
    P = np.zeros((d, 6))
    P[rng.choice(d, 1_000, replace=False)] = rng.normal(size=(1_000, 6))
    P[-5:] = rng.normal(size=(5, 6))
    here = Parameters(P, np.zeros(d), 0.0)
    result = fmviz.to_expansion("lifted", here)
    X = sp.random_array((20, d), density=1e-3, rng=rng, format="csr")
    design = Design(X)
    assert get_model("expansion").predict(design, result) == pytest.approx(
        get_model("lifted").predict(design, here), abs=1e-9
    )


@pytest.mark.parametrize("model", [("hofm", {"order": 3}), ("lifted", {"degree": 3}), ("all_subsets", {})])
def test_tensors_are_refused_with_a_sentence(model):
    name, params = model
    with pytest.raises(ValueError, match="tensor without"):
        to_expansion(get_model(name, params), Parameters(np.ones((4, 6)), np.zeros(4), 0.0))
