from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import build_problem
from oracles import slow_fm
from small_data import target

from fmviz.engine.losses import LOSSES, Huber
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 4))
Y = np.where(RNG.random(9) < 0.5, -1.0, 1.0)
HERE = Parameters(RNG.normal(size=(4, 3)), RNG.normal(size=4), 0.7)


@pytest.mark.pairwise
@pytest.mark.parametrize("regularizer", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weights", [None, np.arange(9.0)])
def test_objective_is_the_definition(loss, regularizer, weights):
    y = target(Y, loss)
    for table in (X, sp.csr_array(X)):
        problem = build_problem(
            table,
            y,
            loss=loss,
            regularizer=regularizer,
            rank=3,
            lambda_w=0.1,
            lambda_p=0.2,
            lambda_sparse=0.3,
            sample_weight=weights,
        )
        expected = slow_fm.objective(
            X,
            y,
            HERE.w,
            HERE.P,
            HERE.intercept,
            loss=loss,
            penalty=regularizer,
            lam_w=0.1,
            lam_p=0.2,
            lam=0.3,
            weights=weights,
        )
        assert problem.objective(HERE) == pytest.approx(expected, rel=1e-12)
        assert sum(problem.parts(HERE).values()) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"loss": "cubic"}, "loss = 'cubic' is not known; choose one of squared"),
        ({"regularizer": "L1"}, "Did you mean 'l1'"),
        ({"model": "fmm"}, "model"),
        ({"rank": -1}, "rank = -1 must be a whole number from 0"),
        ({"rank": 2.5}, "rank = 2.5"),
        ({"rank": True}, "rank = True"),
        ({"lambda_p": -1}, "lambda_p = -1 is out of range"),
        ({"lambda_w": float("nan")}, "lambda_w = nan"),
        ({"lambda_sparse": "big"}, "lambda_sparse = 'big'"),
        ({"loss": Huber}, "loss = Huber is a class"),
        ({"regularizer_params": {"axes": "rows"}}, "no parameter 'axes'"),
        ({"regularizer_params": {"axis": "diagonal"}}, "axis = 'diagonal'"),
        ({"sample_weight": -Y}, "sample_weight"),
        ({"sample_weight": [1.0]}, "sample_weight has shape"),
        ({"sample_weight": 0 * Y}, "zero"),
        ({"y": Y[:3]}, "y has shape"),
        ({"y": np.r_[np.nan, Y[1:]]}, "y contains NaN"),
        ({"y": ["a"] * 9}, "y contains a value that is not a number"),
        ({"loss": "logistic", "y": np.arange(9.0)}, "needs labels -1 and"),
        ({"model": "hofm", "model_params": {"order": 6}}, "order 6"),
        ({"model": "hofm", "model_params": {"order": 11}}, "order"),
        ({"model": "hofm", "model_params": {"degree": 3}}, "no parameter 'degree'"),
        ({"model": "all_subsets", "regularizer": "ti"}, "open problem"),
        ({"model": "expansion", "regularizer": "l1"}, "scale of a column is free"),
        ({"model": "expansion", "regularizer": "l2", "lambda_sparse": 1.0}, "lambda_sparse"),
        (
            {"model": "lifted", "model_params": {"kernel": "anova", "degree": 3}},
            "degree = 3 with kernel 'anova'",
        ),
        ({"model": "lifted", "model_params": {"degree": 1}}, "degree"),
        ({"model": "lifted", "model_params": {"kernel": "rbf"}}, "rbf"),
        ({"model": "qr", "regularizer": "ti"}, "trace norm of W"),
        (
            {"model": "convex_fm", "regularizer": "l2", "lambda_sparse": 0.5},
            r"lambda_sparse = 0.5 has no penalty term",
        ),
    ],
)
def test_bad_settings_get_a_sentence(change, words):
    settings = {"y": Y, **change}
    with pytest.raises(ValueError, match=words):
        build_problem(X, **settings)
