"""What somebody gets who tunes nothing: default machines against tuned linear models.

    python -m bench.first_fit [--splits 5] [--sets diabetes,abalone] [--machines default,cv,bayes]

Every data set is split into 80 % to train and 20 % to test, five times. Regression is scored by RMSE over the
standard deviation of the target, classification by the area under the ROC curve. The linear models are
ridge and logistic regression of scikit-learn, tuned by cross-validation over 13 strengths. myFM, which
samples as our Bayesian machine does, takes part where it can be imported: rank 10, 300 samples, and the
target of regression in standard deviations, as its priors want it. Data sets that are not part of fmviz are
read from FMVIZ_DATA, and left out where they are not there.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import ShuffleSplit

import fmviz
from fmviz.lab import catalog

SETS = (
    "diabetes",
    "breast_cancer",
    "planted_interactions",
    "planted_features",
    "abalone",
    "flights",
    "a9a",
    "movielens_100k",
)
MACHINES = ("linear", "default", "cv", "bayes", *(["myfm"] if importlib.util.find_spec("myfm") else ()))
# Features that all have a bit of everything are few; categories are many.
_FEW = 50


class MyFM:
    """myFM's machines as ours are called."""

    n_draws = 300

    def __init__(self, binary: bool, seed: int) -> None:
        import myfm

        kind = myfm.MyFMClassifier if binary else myfm.MyFMRegressor
        self._machine, self._binary = kind(rank=10, random_seed=seed), binary

    def fit(self, X: Any, y: np.ndarray) -> MyFM:
        """Draw the samples."""
        self._mean, self._unit = (0.0, 1.0) if self._binary else (y.mean(), y.std())
        target = (y > 0).astype(int) if self._binary else (y - self._mean) / self._unit
        self._machine.fit(sp.csr_matrix(X), target, n_iter=self.n_draws, n_kept_samples=self.n_draws)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean over the samples."""
        return np.asarray(self._mean + self._unit * self._machine.predict(sp.csr_matrix(X)))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of both classes."""
        found = np.asarray(self._machine.predict_proba(sp.csr_matrix(X)))
        return np.column_stack([1.0 - found, found])


def machine_of(name: str, binary: bool, seed: int, X: Any) -> Any:
    """Return an estimator by its name here."""
    if name == "linear":
        # The RidgeCV of scikit-learn forms X Xᵀ or Xᵀ X; its strengths are sums over rows.
        grid = np.logspace(-4, 2, 13) * (X.shape[0] if X.shape[1] <= _FEW else 10.0)
        return (
            LogisticRegressionCV(Cs=1.0 / grid, scoring="roc_auc", max_iter=300) if binary else RidgeCV(grid)
        )
    if name == "myfm":
        return MyFM(binary, seed)
    if name == "bayes":
        kind = fmviz.BayesianFMClassifier if binary else fmviz.BayesianFMRegressor
    elif name == "cv":
        kind = fmviz.FactorizationMachineClassifierCV if binary else fmviz.FactorizationMachineRegressorCV
    else:
        kind = fmviz.FactorizationMachineClassifier if binary else fmviz.FactorizationMachineRegressor
    return kind(random_state=seed)


def score(machine: Any, X: Any, y: np.ndarray, binary: bool) -> float:
    """Return RMSE over the standard deviation of y, or the area under the ROC curve."""
    if not binary:
        return float(np.sqrt(np.mean(np.square(machine.predict(X) - y))) / np.std(y))
    found = machine.predict_proba(X)[:, 1] if hasattr(machine, "n_draws") else machine.decision_function(X)
    return float(roc_auc_score(y, found))


def main() -> None:
    """Fit, score and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--machines", default=",".join(MACHINES))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.sets.split(","):
        if (reason := catalog.dataset_spec(name).unavailable()) is not None:
            print(f"{name}: {reason}")
            continue
        data = catalog.load(name)
        X: Any = data.X.tocsr() if hasattr(data.X, "tocsr") else data.X
        binary = data.task == "binary"
        found: dict[str, list[tuple[float, float, float]]] = {}
        splits = ShuffleSplit(given.splits, test_size=0.2, random_state=0)
        for seed, (train, test) in enumerate(splits.split(np.zeros((data.y.size, 1)))):
            for kind in given.machines.split(","):
                machine = machine_of(kind, binary, seed, X[train])
                begin = time.process_time()
                machine.fit(X[train], data.y[train])
                seconds = time.process_time() - begin
                pairs = getattr(machine, "n_used_interactions_", float("nan"))
                found.setdefault(kind, []).append(
                    (score(machine, X[test], data.y[test], binary), pairs, seconds)
                )
        print(f"{name}: {X.shape[0]:,} × {X.shape[1]:,}, {'AUC' if binary else 'RMSE/sd'}")
        for kind, rows in found.items():
            values = np.array(rows)
            error = values[:, 0].std(ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else float("nan")
            print(
                f"  {kind:8s} {values[:, 0].mean():.4f} ± {error:.4f}   pairs {values[:, 1].mean():10,.0f}   "
                f"{values[:, 2].mean():7.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
