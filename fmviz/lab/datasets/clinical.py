"""Diabetes and breast cancer: two classical medical tables that scikit-learn carries."""

from __future__ import annotations

import numpy as np

from ._tables import standardise
from .base import Dataset, DatasetSpec

DIABETES_COLUMNS = (
    "age", "sex", "bmi", "blood pressure", "cholesterol", "LDL", "HDL", "cholesterol/HDL",
    "log triglycerides", "glucose",
)  # fmt: skip


def _load_diabetes() -> Dataset:
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True, scaled=False)
    X, scaling = standardise(X)
    spec = DIABETES
    return spec.dataset(
        X=X,
        y=np.ascontiguousarray(y, dtype=np.float64),
        feature_names=DIABETES_COLUMNS,
        groups=DIABETES_COLUMNS,
        scaling=scaling,
        target_name="disease progression after one year",
    )


def _load_breast_cancer() -> Dataset:
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    X, scaling = standardise(bunch.data)
    spec = BREAST_CANCER
    names = tuple(str(name) for name in bunch.feature_names)
    return spec.dataset(
        X=X,
        y=np.where(bunch.target == 0, 1.0, -1.0),  # scikit-learn codes malignant as 0
        feature_names=names,
        groups=names,
        scaling=scaling,
        target_name="the tumour is malignant",
        class_labels=("benign", "malignant"),
    )


DIABETES = DatasetSpec(
    name="diabetes",
    title="Diabetes",
    description=(
        "442 patients with ten measurements, standardised; the target is a measure of how far the disease "
        "has progressed a year later, from 25 to 346, in its own units."
    ),
    task="regression",
    load=_load_diabetes,
    source="Efron, Hastie, Johnstone & Tibshirani (2004), Least angle regression; carried by scikit-learn",
    licence="As distributed with scikit-learn (BSD-3-Clause)",
    suggested={
        "rank": 5,
        "regularizer": "ti",
        "lambda_w": 1e-1,
        "lambda_p": 0.1,
        "lambda_sparse": 2.0,
        "solver": "auto",
        "loss": "squared",
        "fit_linear": True,
        "fit_intercept": True,
        "init_scale": 1.0,
        "validation": 0.25,
    },
)

BREAST_CANCER = DatasetSpec(
    name="breast_cancer",
    title="Breast cancer (Wisconsin)",
    description=(
        "569 tumours with thirty measurements of their cell nuclei (mean, standard error and worst value of "
        "ten quantities), standardised; 212 are malignant."
    ),
    task="binary",
    load=_load_breast_cancer,
    source="Street, Wolberg & Mangasarian (1993); UCI Machine Learning Repository; carried by scikit-learn",
    licence="CC BY 4.0 (UCI)",
    suggested={
        "rank": 5,
        "regularizer": "ti",
        "lambda_w": 1e-3,
        "lambda_p": 1e-3,
        "lambda_sparse": 2e-3,
        "solver": "auto",
        "loss": "logistic",
        "fit_linear": True,
        "fit_intercept": True,
        "init_scale": 0.1,
        "validation": 0.25,
        "max_epochs": 1_000,
    },
)
