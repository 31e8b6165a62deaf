"""Scikit-learn's checks for estimators that share the fit of one that passes all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import estimator_checks_generator

# What depends on an estimator's own parameters, attributes, labels and kinds of input.
OWN = {
    "check_classifiers_train",
    "check_estimator_cloneable",
    "check_estimator_sparse_array",
    "check_estimators_pickle",
    "check_fit_idempotent",
    "check_n_features_in_after_fitting",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_regressors_train",
    "check_sample_weight_equivalence_on_dense_data",
}


def own_checks(estimators: Iterable[BaseEstimator], *marks: pytest.MarkDecorator) -> list[Any]:
    """Return estimators and their checks as cases with these marks, those that are not among `OWN` slow."""
    return [
        pytest.param(
            estimator,
            check,
            marks=marks or (() if check.func.__name__ in OWN else pytest.mark.slow),
            id=f"{name}-{check.func.__name__}",
        )
        for kind in estimators
        for name in ["".join(str(kind).split())]
        for estimator, check in estimator_checks_generator(kind)
    ]
