"""Figure 4 of blondel2016: non-linear regression with few bases."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from fmviz.engine.design import Design, augmented
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.models import KernelExpansion, LiftedModel
from fmviz.engine.problem import Problem
from fmviz.lab.datasets import DATASETS
from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.tuning import Kind, Means, Trial, compare, means
from fmviz.lab.papers.references import SUMS
from fmviz.lab.papers.reproduction import Reproduction, Settings
from fmviz.lab.papers.statements import Said, by_majority, listed, over, verdict
from fmviz.lab.runner import load_dataset

HOMOGENEOUS, ANOVA, NYSTROEM, RANDOM, KERNEL = (
    "Proposed, H³ (lifted)",
    "Proposed, A³ (direct)",
    "Nyström",
    "Random selection",
    "Kernel ridge",
)
METHODS = (HOMOGENEOUS, ANOVA, NYSTROEM, RANDOM)
# R² up to which two are called the same performance, and the factor that "much fewer" means.
_SAME = 0.01
_FEWER = 2.0


def _rows(data: str) -> tuple[np.ndarray, np.ndarray]:
    found = load_dataset(data)
    return np.asarray(found.X), found.y


def fit(trial: Trial, train: np.ndarray, test: np.ndarray, *, epochs: int, tol: float) -> float:
    """Return R² on the test rows, after a fit on the training rows with their mean taken off the target."""
    X, y = _rows(trial.data)
    mean = y[train].mean()
    predicted = _PREDICT[trial.method](trial, X[train], y[train] - mean, X[test], epochs=epochs, tol=tol)
    left = y[test] - mean - predicted
    return float(1.0 - np.mean(left**2) / np.var(y[test]))


def _machine(trial: Trial, X: np.ndarray, y: np.ndarray, Z: np.ndarray, *, epochs: int, tol: float) -> Any:
    """Return the predictions of H³ with r = k/3, or of A³ with k columns, on augmented features."""
    lifted = trial.method == HOMOGENEOUS
    model: dict[str, Any] = (
        {
            "model": LiftedModel("polynomial", 3),
            "rank": max(1, trial.bases // 3),
            "lambda_p": 3.0 * trial.beta / (2.0 * y.size),
        }
        if lifted
        else {
            "model": KernelExpansion("anova", 3, "ones"),
            "rank": trial.bases,
            "lambda_p": trial.beta / y.size,
        }
    )
    dummies = 1 if lifted else 2
    problem = Problem.build(
        augmented(X, dummies), y, penalty="l2", fit_linear=False, fit_intercept=False, **model
    )
    rng = np.random.default_rng([trial.seed, 1])
    budget = Budget(epochs, tol=tol, report_every=None)
    *_, last = iterate(problem, "cd", budget, init_scale=0.1, rng=rng)
    return problem.model.predict(Design(augmented(Z, dummies)), last.parameters)


def _nystroem(trial: Trial, X: np.ndarray, y: np.ndarray, Z: np.ndarray, **_: Any) -> Any:
    from sklearn.kernel_approximation import Nystroem

    features = Nystroem(
        kernel="polynomial", degree=3, coef0=1, gamma=1, n_components=trial.bases, random_state=trial.seed
    ).fit(X)
    return _ridge(trial.beta, features.transform(X), y, features.transform(Z))


def _random(trial: Trial, X: np.ndarray, y: np.ndarray, Z: np.ndarray, **_: Any) -> Any:
    bases = X[np.random.default_rng([trial.seed, 1]).choice(X.shape[0], trial.bases, replace=False)]
    return _ridge(trial.beta, (1.0 + X @ bases.T) ** 3, y, (1.0 + Z @ bases.T) ** 3)


def _ridge(beta: float, X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> Any:
    from sklearn.linear_model import Ridge

    # Σ ½(f − y)² + β/2 ‖·‖² has the minimum of scikit-learn's Σ (f − y)² + α‖·‖² at α = β.
    return Ridge(alpha=beta, fit_intercept=False, solver="svd").fit(X, y).predict(Z)


def _kernel_ridge(trial: Trial, X: np.ndarray, y: np.ndarray, Z: np.ndarray, **_: Any) -> Any:
    from sklearn.kernel_ridge import KernelRidge

    machine = KernelRidge(alpha=trial.beta, kernel="polynomial", degree=3, coef0=1, gamma=1)
    return machine.fit(X, y).predict(Z)


_PREDICT = {
    HOMOGENEOUS: _machine,
    ANOVA: _machine,
    NYSTROEM: _nystroem,
    RANDOM: _random,
    KERNEL: _kernel_ridge,
}


def _run(repro: Reproduction) -> Iterator[str]:
    settings = repro.settings
    names = list(settings["data"])
    if reason := DATASETS["abalone"].unavailable():
        repro.note(f"Abalone is not here, and diabetes stands in for it. {reason}")
        names = list(dict.fromkeys("diabetes" if name == "abalone" else name for name in names))
    low, high, count = settings["grid"]
    yield from compare(
        repro,
        {name: partial(_rows, name) for name in names},
        _kinds(settings),
        [float(beta) for beta in np.logspace(low, high, count)],
        fit,
        highest=True,
        epochs=settings["epochs"],
        tol=settings["tol"],
    )


def _kinds(settings: Settings) -> list[Kind]:
    return [*product(METHODS, settings["bases"]), (KERNEL, 0)]


def _few(found: Means) -> Said:
    goal = found[KERNEL, 0]
    needed: dict[str, float] = dict.fromkeys(METHODS, np.inf)
    for (method, bases), score in found.items():
        if method in needed and score >= goal - _SAME:
            needed[method] = min(needed[method], bases)
    ours, others = (min(needed[one] for one in group) for group in (METHODS[:2], METHODS[2:]))
    words = listed((method, "not at all" if k == np.inf else k) for method, k in needed.items())
    return verdict(ours < np.inf and _FEWER * ours <= others), (
        f"Kernel ridge reaches R² = {goal:.3f}. Bases needed to come within {_SAME:g} of it: {words} (much "
        f"fewer: by a factor of {_FEWER:g})."
    )


def _kernels(found: Means) -> Said:
    gaps = [(score - found[ANOVA, k], k) for (m, k), score in found.items() if m == HOMOGENEOUS]
    wins = sum(gap > 0 for gap, _ in gaps)
    return by_majority(wins, len(gaps)), (
        f"H³ has the higher mean R² for {wins} of {len(gaps)} numbers of bases (difference "
        f"{listed(gaps, '{:+.3f} at {}')})."
    )


ARTEFACT = figure(
    __name__,
    _run,
    {
        "few": over(means(_kinds), _few),
        "kernels": over(means(_kinds), _kernels),
    },
    sums=SUMS,
)
