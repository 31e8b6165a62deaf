"""Iris, wine and digits: three, three and ten classes that scikit-learn carries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ._tables import standardise
from .base import Dataset, DatasetSpec, Scaling


def _spec(
    name: str,
    title: str,
    description: str,
    *,
    read: Callable[[], Any],
    target_name: str,
    source: str,
    licence: str,
    scaling: Scaling | None = None,
    suggested: Mapping[str, Any],
    shared_basis: Mapping[str, Any],
) -> DatasetSpec:
    def load() -> Dataset:
        bunch = read()
        # Some pixels at the edges of digits are never inked.
        differs = np.ptp(bunch.data, axis=0) > 0
        data = bunch.data[:, differs]
        if scaling is None:
            X, scalings = standardise(data)
        else:
            X, scalings = (data - scaling.mean) / scaling.scale, (scaling,) * data.shape[1]
        words = [str(feature).removesuffix(" (cm)") for feature in bunch.feature_names]
        names = tuple(word for word, kept in zip(words, differs, strict=True) if kept)
        return spec.dataset(
            X=np.ascontiguousarray(X, dtype=np.float64),
            y=bunch.target.astype(np.float64),
            feature_names=names,
            groups=names,
            scaling=scalings,
            target_name=target_name,
            class_labels=tuple(str(label) for label in bunch.target_names),
        )

    spec = DatasetSpec(
        name=name,
        title=title,
        description=description,
        task="class",
        load=load,
        source=source,
        licence=licence,
        suggested={
            "rank": 5,
            "regularizer": "ti",
            "lambda_w": 1e-2,
            "lambda_p": 1e-3,
            "lambda_sparse": 2e-3,
            "solver": "auto",
            "loss": "logistic",
            "fit_linear": True,
            "fit_intercept": True,
            "init_scale": 0.1,
            "validation": 0.25,
            "max_epochs": 1_000,
            "tol": 1e-3,
            **suggested,
        },
        suited={"shared_basis": shared_basis},
    )
    return spec


def _iris() -> Any:
    from sklearn.datasets import load_iris

    return load_iris()


def _wine() -> Any:
    from sklearn.datasets import load_wine

    found = load_wine()
    found.feature_names = [name.replace("_", " ") for name in found.feature_names]
    found.target_names = [f"cultivar {c}" for c in (1, 2, 3)]
    return found


def _digits() -> Any:
    from sklearn.datasets import load_digits

    found = load_digits()
    found.feature_names = [f"row {i} column {j}" for i in range(1, 9) for j in range(1, 9)]
    return found


IRIS = _spec(
    "iris",
    "Iris",
    "150 flowers of three species of iris, 50 of each, with four measurements, standardised.",
    read=_iris,
    target_name="species",
    source="Fisher (1936); UCI Machine Learning Repository; carried by scikit-learn",
    licence="CC BY 4.0 (UCI)",
    suggested={},
    shared_basis={"lambda_sparse": 0.02},
)
WINE = _spec(
    "wine",
    "Wine",
    "178 wines of three cultivars from one region of Italy, with thirteen chemical measurements, "
    "standardised.",
    read=_wine,
    target_name="cultivar",
    source="Aeberhard & Forina (1991); UCI Machine Learning Repository; carried by scikit-learn",
    licence="CC BY 4.0 (UCI)",
    suggested={},
    shared_basis={"lambda_sparse": 0.01},
)
DIGITS = _spec(
    "digits",
    "Digits",
    "1,797 handwritten digits as 8 × 8 pixels, each from 0 (empty) to 1 (full), but for three that are "
    "always empty; the target is the digit.",
    read=_digits,
    target_name="digit",
    source="Alpaydin & Kaynak (1998), optical recognition of handwritten digits; carried by scikit-learn",
    licence="CC BY 4.0 (UCI)",
    # Pixels count ink from 0 to 16.
    scaling=Scaling(0.0, 16.0, deviations=False),
    suggested={"rank": 10, "lambda_sparse": 1e-3, "lambda_w": 1e-3, "max_epochs": 300},
    shared_basis={"lambda_sparse": 5e-3},
)
