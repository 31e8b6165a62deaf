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


def parametrize_with_own_checks(estimators: Iterable[BaseEstimator]) -> Any:
    """Do as `parametrize_with_checks`, the checks that are not among `OWN` being slow."""
    cases = []
    for one in estimators:
        for estimator, check in estimator_checks_generator(one):
            name = check.func.__name__
            marks = () if name in OWN else pytest.mark.slow
            shown = "".join(str(one).split())
            cases.append(pytest.param(estimator, check, marks=marks, id=f"{shown}-{name}"))
    return pytest.mark.parametrize(("estimator", "check"), cases)
