"""What people write who know nothing but ``import fmviz``: a call of every public name, with every keyword.

Each function of `CALLS` uses what commit bcea1f3 offered and returns plain data. `make_data` has kept what
they returned then; `test_old_names` makes the same calls today.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fmviz


def plain(value: Any) -> Any:
    """Return numbers, texts, arrays and tables as JSON takes them."""
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return {str(name): plain(value[name].tolist()) for name in value}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def rows(binary: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return 50 rows of six features, and a target that two pairs, a triple and one feature make."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 6)).round(3)
    f = 2 * X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3] + X[:, 0] * X[:, 2] * X[:, 4] + 0.5 * X[:, 4]
    y = (f + 0.1 * rng.normal(size=50)).round(3)
    return X, np.where(y > 0, "yes", "no") if binary else y


# ----------------------------------------------------------------------------------------------- estimators

_RUN: dict[str, Any] = {
    "solver": "auto",
    "lambda_w": 0.01,
    "fit_linear": True,
    "fit_intercept": True,
    "max_iter": 12,
    "tol": 1e-5,
    "warm_start": False,
    "callback": None,
}
_FACTORS: dict[str, Any] = {
    **_RUN,
    "rank": 3,
    "lambda_p": 0.002,
    "lambda_sparse": 0.03,
    "init_scale": 0.5,
    "random_state": 4,
    "regularizer_params": {},
    "solver_params": {},
    "dtype": "float64",
}
_TRACE: dict[str, Any] = {**_RUN, "lambda_trace": 0.02, "max_iter": 6}
_POLYNOMIAL: dict[str, Any] = {
    "degree": 3,
    "coefficients": "fitted",
    "augment": True,
    "regularizer": "l2",
    "lambda_sparse": 0.0,
}
_HUBER: dict[str, Any] = {"loss": "huber", "loss_param": 1.5}
_SQUARED: dict[str, Any] = {"loss": "squared", "loss_param": None}
_LOGISTIC: dict[str, Any] = {"loss": "logistic", "loss_param": None, "lambda_sparse": 0.002}

ESTIMATORS: dict[str, dict[str, Any]] = {
    "FactorizationMachineRegressor": {
        **_FACTORS,
        **_HUBER,
        "regularizer": "ti",
        "regularizer_params": {"axis": "columns"},
        "solver": "pcd",
        "solver_params": {"anderson": 5, "active_sweeps": 2},
        "degree": 2,
    },
    "FactorizationMachineClassifier": {**_FACTORS, **_LOGISTIC, "regularizer": "cs", "degree": 2},
    "HigherOrderFMRegressor": {
        **_FACTORS,
        **_SQUARED,
        "regularizer": "omega_ti",
        "order": 3,
        "shared": True,
        "coefficients": "signs",
    },
    "HigherOrderFMClassifier": {
        **_FACTORS,
        **_LOGISTIC,
        "regularizer": "omega_cs",
        "order": 3,
        "shared": False,
        "coefficients": "ones",
    },
    "AllSubsetsRegressor": {**_FACTORS, **_SQUARED, "regularizer": "omega_ti"},
    "AllSubsetsClassifier": {**_FACTORS, **_LOGISTIC, "regularizer": "l21"},
    "PolynomialNetworkRegressor": {**_FACTORS, **_SQUARED, **_POLYNOMIAL, "coefficients": "fitted"},
    "PolynomialNetworkClassifier": {**_FACTORS, **_LOGISTIC, **_POLYNOMIAL, "degree": 2, "augment": False},
    "LiftedRegressor": {
        **_FACTORS,
        **_SQUARED,
        "regularizer": "l1",
        "kernel": "polynomial",
        "degree": 2,
        "augment": True,
    },
    "LiftedClassifier": {
        **_FACTORS,
        **_LOGISTIC,
        "regularizer": "l2",
        "lambda_sparse": 0.0,
        "kernel": "anova",
        "degree": 2,
        "augment": False,
    },
    "QuadraticRegressor": {**_TRACE, **_SQUARED, "lambda_sparse": 0.03, "max_iter": 20},
    "QuadraticClassifier": {**_TRACE, **_LOGISTIC, "max_iter": 20},
    "ConvexFMRegressor": {
        **_TRACE,
        **_SQUARED,
        "rank": 6,
        "diagonal": True,
        "random_state": 0,
        "solver_params": {"refit": "factors"},
    },
    "ConvexFMClassifier": {
        **_TRACE,
        "loss": "logistic",
        "loss_param": None,
        "rank": 6,
        "diagonal": False,
        "random_state": 0,
        "solver_params": {},
    },
}
"""Every estimator with every keyword that it had, none of them left to its default."""


def _fit(name: str) -> Any:
    binary = name.endswith("Classifier")
    X, y = rows(binary)
    seen: list[Any] = []
    given = {**ESTIMATORS[name], "callback": seen.append}
    kind = getattr(fmviz, name)
    if "start" in kind().get_params():
        # Fits leave P = 0 since. As published, and as they were, is a setting.
        given["start"] = "random"
    machine = kind(**given).fit(X, y, sample_weight=np.linspace(0.5, 1.5, y.size))
    found = {
        "objectives": [one.objective for one in seen],
        "w": machine.w_,
        "intercept": machine.intercept_,
        "used_features": machine.used_features_,
        "n_used_interactions": machine.n_used_interactions_,
        "certificate": machine.certificate_,
        "status": str(machine.status_.reason),
        "n_iter": machine.n_iter_,
        "history": machine.history_[["epoch"]],
        "interactions": machine.interactions(top=3),
        "predict": machine.predict(X[:8]),
        "score": machine.score(X, y),
    }
    if hasattr(machine, "interaction_weight"):
        found["interaction_weight"] = machine.interaction_weight([0, 1])
    if binary:
        found |= {"classes": machine.classes_, "decision_function": machine.decision_function(X[:8])}
        found["predict_proba"] = machine.predict_proba(X[:8])
    return plain(found)


def estimators() -> Any:
    return {name: _fit(name) for name in ESTIMATORS}


# ------------------------------------------------------------------------------------------------ operators

_P = [[1.5, -0.2, 0.4], [0.3, 2.0, -1.0], [-0.7, 0.1, 0.0], [0.05, -1.2, 0.9], [0.6, 0.25, -0.35]]
OPERATORS: list[tuple[str, dict[str, Any]]] = [
    ("l2", {}),
    ("l1", {}),
    ("l21", {}),
    ("ti", {"axis": "columns"}),
    ("ti", {"axis": "rows"}),
    ("cs", {}),
    ("omega_ti", {}),
    ("omega_cs", {}),
    ("omega_star", {"prox_steps": 4, "prox_step": 0.05}),
    ("ti_power", {"degree": 4, "axis": "rows"}),
    ("cs_power", {"degree": 4}),
]


def operators() -> Any:
    found = []
    for name, params in OPERATORS:
        Q = fmviz.prox(name, _P, 0.3, **params)
        found.append(
            {
                "prox": Q,
                "certificate": fmviz.certificate(name, _P, Q, 0.3, **params),
                "of_P": fmviz.certificate(name=name, P=_P, Q=_P, strength=0.3, **params),
                "value": fmviz.regularizer_value(name, _P, **params),
            }
        )
    named = {
        one: fmviz.prox(name="ti", P=_P, strength=0.3, algorithm=one) for one in ("filter", "sort", "random")
    }
    return plain({"by_name": found, "algorithms": named, "vector": fmviz.prox("l1", [3.0, -1.0], 1.0)})


MODELS = ("fm", "hofm", "all_subsets", "expansion", "lifted", "qr", "convex_fm")
REGULARIZERS = ("l2", "l1", "l21", "ti", "cs", "omega_ti", "omega_cs", "omega_star", "ti_power", "cs_power")
LOSSES = ("squared", "logistic")
SOLVERS = (
    *("cd", "pcd", "pbcd", "pbcd_ls", "nmapgd", "apgd", "pgd", "subgd", "lbfgs", "sgd", "psgd", "mb_psgd"),
    *("katyusha", "mb_katyusha", "exact_pgd", "incremental_pgd", "gcd"),
)


def combinations() -> Any:
    """Return, for every model, regularizer and loss, one sign a solver: + where it takes the three."""
    return {
        f"{model} {regularizer} {loss}": "".join(
            "-+"[
                fmviz.why_not(
                    regularizer=regularizer,
                    solver=solver,
                    loss=loss,
                    model=model,
                    regularizer_params={},
                    model_params={},
                )
                is None
            ]
            for solver in ("auto", *SOLVERS)
        )
        for model in MODELS
        for regularizer in REGULARIZERS
        for loss in LOSSES
    }


def registries() -> Any:
    return {
        "losses": fmviz.list_losses(),
        "models": fmviz.list_models(),
        "regularizers": fmviz.list_regularizers(),
        "solvers": fmviz.list_solvers(),
        "datasets": fmviz.datasets.list_datasets(available_only=False),
    }


# -------------------------------------------------------------------------------------- weights and measures


def tensors() -> Any:
    P, coefficients = np.array(_P), [1.0, -0.5, 2.0]
    return plain(
        {
            "weight_matrix": [fmviz.weight_matrix(P), fmviz.weight_matrix(P=P, coefficients=coefficients)],
            # The signs of eigenvectors are nobody's choice.
            "weight_spectrum": [np.abs(one) for one in fmviz.weight_spectrum(P=P, coefficients=coefficients)],
            "tensor_slice": fmviz.tensor_slice(P=P, feature=1, coefficients=coefficients, repeated=True),
            "subset_weight": fmviz.subset_weight(P=P, subset=[0, 1, 3], coefficients=coefficients),
            "ranked_subsets": fmviz.ranked_subsets(
                P=P, degree=3, coefficients=coefficients, top=4, repeated=False, effort=1e9
            ),
            "augmented": fmviz.augmented(X=P, n=2),
        }
    )


def conversions() -> Any:
    X, y = rows()
    found = {}
    for name, model, settings in (
        ("PolynomialNetworkRegressor", "expansion", {"degree": 2, "augment": False}),
        ("LiftedRegressor", "lifted", {"augment": False}),
    ):
        seen: list[Any] = []
        given = {**ESTIMATORS[name], **settings, "callback": seen.append}
        machine = getattr(fmviz, name)(**given).fit(X, y)
        parameters = seen[-1].parameters
        as_expansion = fmviz.to_expansion(model=model, parameters=parameters)
        found[model] = {
            "weights": fmviz.to_weights(model=model, parameters=parameters),
            "expansion": fmviz.to_weights("expansion", as_expansion),
            "absorbed": fmviz.to_weights(
                "expansion", fmviz.absorb_coefficients(parameters=as_expansion, degree=2, into="signs")
            ),
            "predict": machine.predict(X[:3]),
        }
    return plain(found)


def measures() -> Any:
    W = fmviz.weight_matrix(_P)
    truth = np.where(np.abs(W) > 0.5, W, 0.0)
    one = fmviz.metrics
    return plain(
        {
            "estimation_error": one.estimation_error(W=truth, P=_P),
            "interaction_weights": one.interaction_weights(parameters=_P),
            "support_f1": one.support_f1(W=truth, P=_P),
            "support_recovered": one.support_recovered(W=truth, P=_P),
            "used_pairs": one.used_pairs(parameters=_P),
        }
    )


def datasets() -> Any:
    X, y, W = fmviz.datasets.make_sparse_interactions(
        n_samples=12, d_true=6, b=2, d_noise=2, noise=0.2, correlation=0.1, random_state=3
    )
    monks = fmviz.datasets.load("monks1")
    drawn = fmviz.datasets.load("synthetic", n_samples=20, d_true=6, b=2, d_noise=2, seed=3)
    return plain(
        {
            "made": [X[0], X.sum(axis=0), y, W.sum(axis=0)],
            "monks1": {
                "shape": monks.X.shape,
                "sum": monks.X.sum(axis=0),
                "y": monks.y.sum(),
                "task": monks.task,
                "feature_names": monks.feature_names,
                "class_labels": monks.class_labels,
                "target_name": monks.target_name,
                "true_pairs": sorted(monks.true_pairs),
            },
            "synthetic": [drawn.X[0], drawn.X.sum(axis=0), drawn.y, drawn.truth.sum(axis=0)],
        }
    )


# -------------------------------------------------------------------------------------------------- searches

_PROBLEM: dict[str, Any] = {
    "loss": "huber",
    "regularizer": "ti",
    "rank": 3,
    "lambda_w": 0.01,
    "lambda_p": 0.02,
    "fit_linear": True,
    "fit_intercept": True,
    "regularizer_params": {"axis": "columns"},
    "loss_param": 1.5,
}


def path() -> Any:
    X, y = rows()
    table = fmviz.regularization_path(
        X=X[:40],
        y=y[:40],
        lambdas=[0.5, 0.1, 0.02],
        orders=("cold", "up", "down"),
        validation=(X[40:], y[40:]),
        solver="pcd",
        max_iter=8,
        tol=1e-5,
        init_scale=0.2,
        random_state=4,
        sample_weight=np.linspace(0.5, 1.5, 40),
        **_PROBLEM,
    )
    return plain(table.drop(columns="seconds"))


def search() -> Any:
    X, y = rows()
    probes = fmviz.find_lambda(
        X=X,
        y=y,
        target_interactions=3,
        accept=(2, 4),
        grid=(0.01, 0.1, 1.0),
        narrowest=1e-6,
        solver="pcd",
        max_iter=30,
        tol=1e-5,
        init_scale=0.2,
        random_state=4,
        should_stop=lambda: False,
        **_PROBLEM,
    )
    return [[one.lambda_sparse, one.used_interactions, one.status] for one in probes]


def sweep() -> Any:
    base = {"dataset": "monks1", "rank": 2, "loss": "logistic", "max_epochs": 4, "lambda_p": 0.001}
    experiments = [
        fmviz.Experiment(**base, regularizer=name, lambda_sparse=0.001, init_scale=0.1)
        for name in ("ti", "cs", "l1")
    ]
    found = fmviz.sweep(experiments=experiments, n_jobs=1, seconds=600.0, backend=None)
    told = {row.index: row.record() for row in found}
    return {str(index): _without(told[index], "seconds", "message") for index in sorted(told)}


def _without(record: dict[str, Any], *names: str) -> Any:
    return plain({name: value for name, value in record.items() if name not in names})


def experiment() -> Any:
    one = fmviz.Experiment(
        dataset="synthetic",
        seed=5,
        model="hofm",
        regularizer="omega_ti",
        solver="pcd",
        loss="huber",
        rank=7,
        lambda_w=0.5,
        lambda_p=0.25,
        lambda_sparse=0.125,
        fit_linear=False,
        fit_intercept=False,
        init_scale=0.1,
        max_epochs=40,
        tol=1e-3,
        validation=0.2,
        dataset_params=(("n_samples", 50),),
        model_params=(("order", 4),),
        regularizer_params=(),
        loss_params=(("delta", 3.0),),
        solver_params=(("anderson", 4),),
        changes=((3, "lambda_sparse", 0.5), (9, "lambda_p", 0.75)),
    )
    return {
        "json": one.to_json(),
        "query": one.to_query(),
        "why_not": one.why_not() is None,
        "strengths": [one.strengths(epoch) for epoch in (0, 3, 9)],
        "changed": one.changed(12, lambda_w=0.0).to_json(),
        "applicable": fmviz.Experiment(model="qr", solver="pcd").applicable().to_json(),
    }


CALLS: dict[str, Callable[[], Any]] = {
    one.__name__: one
    for one in (
        *(combinations, conversions, datasets, estimators, experiment, measures),
        *(operators, path, registries, search, sweep, tensors),
    )
}
