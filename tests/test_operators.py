"""The public face of the operators: shapes, names and messages."""

from __future__ import annotations

import numpy as np
import pytest

import fmviz


def test_public_names_are_there():
    for name in fmviz.__all__:
        assert getattr(fmviz, name) is not None
    assert set(fmviz.__all__) <= set(dir(fmviz))
    with pytest.raises(AttributeError):
        _ = fmviz.nothing


def test_vectors_lists_and_integers_are_taken():
    assert fmviz.prox("ti", [3, 1, 0], 0.5).shape == (3,)
    assert fmviz.prox("l1", [[3, -1]], 1).tolist() == [[2.0, 0.0]]
    # By hand: θ = 1, S = 3/(1 + 2·0.5) = 1.5, so q = 3 − 1.5.
    assert fmviz.prox("ti", [3.0, 1.0], 0.5).tolist() == [1.5, 0.0]


def test_input_is_not_changed():
    P = np.random.default_rng(0).normal(size=(5, 3))
    for name in fmviz.list_regularizers():
        for strength in (0.0, 0.5):
            before = P.copy()
            Q = fmviz.prox(name, P, strength)
            assert np.array_equal(P, before)
            assert not np.shares_memory(P, Q)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fmviz.prox("l3", [1.0], 1), "regularizer = 'l3' is not known"),
        (lambda: fmviz.prox("ti", [1.0], -1), "strength = -1 is out of range"),
        (lambda: fmviz.prox("ti", [1.0], np.nan), "strength = nan"),
        (lambda: fmviz.prox("ti", [np.nan], 1), "P contains NaN"),
        (lambda: fmviz.prox("ti", ["a"], 1), "not a number"),
        (lambda: fmviz.prox("ti", [], 1), "non-empty"),
        (lambda: fmviz.prox("ti", [1j], 1), "complex"),
        (lambda: fmviz.prox("ti", [[[1.0]]], 1), "shape"),
        (lambda: fmviz.prox("ti", [1.0], 1, algorithm="quick"), "algorithm = 'quick'"),
        (lambda: fmviz.prox("l1", [1.0], 1, algorithm="sort"), "no choice of algorithm"),
        (lambda: fmviz.prox(fmviz.penalties.TI(axis="depth"), [1.0], 1), "axis = 'depth'"),
        (lambda: fmviz.prox(fmviz.penalties.L1, [1.0], 1), "L1 is a class"),
        (lambda: fmviz.certificate("ti", [1.0], [1.0, 2.0], 1), "must agree"),
        (lambda: fmviz.regularizer_value("ti", [np.inf]), "infinity"),
    ],
)
def test_messages(call, words):
    with pytest.raises(ValueError, match=words):
        call()
