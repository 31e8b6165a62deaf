"""The pair of features that the target follows most, and the target against the two."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from fmviz.lab.catalog import load
from fmviz.lab.interpretation.data_pair import strongest_product, target_grid
from fmviz.tables.scaling import Scaling


@pytest.fixture
def planted():
    """Return data whose target is 3 + the product of features 1 and 4, and whether sparse or not."""
    rng = np.random.default_rng(0)
    X = rng.choice([0.0, 1.0, 2.0], size=(300, 6))
    y = X[:, 1] * X[:, 4]
    names = tuple("abcdef")
    return dataclasses.replace(
        load("balance_scale"),
        task="regression",
        X=X,
        y=y,
        feature_names=names,
        groups=names,
        scaling=None,
        target_scaling=None,
    )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_planted_product_is_the_strongest(planted, form):
    dataset = dataclasses.replace(planted, X=form(planted.X))
    assert strongest_product(dataset) == (1, 4)
    grid = target_grid(dataset, 1, 4)
    assert grid.rows == grid.columns == ("0", "1", "2")
    np.testing.assert_allclose(grid.means + grid.mean, np.outer([0, 1, 2], [0, 1, 2]), atol=1e-12)
    assert grid.counts.sum() == 300


def test_values_and_targets_are_told_in_their_own_units(planted):
    rng = np.random.default_rng(1)
    X = planted.X.copy()
    X[:, 1] = rng.normal(size=300)
    own = dataclasses.replace(
        planted, X=X, scaling=(None, Scaling(10.0, 2.0), *[None] * 4), target_scaling=Scaling(100.0, 10.0)
    )
    grid = target_grid(own, 1, 4)
    assert len(grid.rows) == 6
    assert grid.rows[0] == f"up to {10 + 2 * np.quantile(X[:, 1], 1 / 6):.3g}"
    assert grid.mean == pytest.approx(100 + 10 * own.y.mean())
    classes = dataclasses.replace(planted, task="binary", y=np.where(planted.y > 1, 1.0, -1.0))
    assert target_grid(classes, 1, 4).mean == pytest.approx((planted.y > 1).mean())


def test_what_is_too_wide_or_has_several_targets_has_none(planted):
    assert strongest_product(dataclasses.replace(planted, X=planted.X[:, :1])) is None
    assert strongest_product(dataclasses.replace(planted, y=np.zeros((300, 2)))) is None
