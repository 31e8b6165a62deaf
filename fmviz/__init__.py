"""fmviz: train and visualize sparse factorization machines.

The names below form the stable API. They are imported on first use, which keeps ``import fmviz`` fast and
lets the command line handle Ctrl-C before anything is loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fmviz import datasets, metrics, plot
    from fmviz.choices import list_losses, list_models, list_regularizers, list_solvers, why_not
    from fmviz.engine import losses, models, penalties, solvers
    from fmviz.engine.design import augmented
    from fmviz.engine.errors import CollapseWarning
    from fmviz.engine.interactions.weights import Interactions, interactions_of, to_expansion
    from fmviz.engine.parts import Parts
    from fmviz.estimators import (
        BayesianFMClassifier,
        BayesianFMRegressor,
        FactorizationMachineClassifier,
        FactorizationMachineClassifierCV,
        FactorizationMachineRegressor,
        FactorizationMachineRegressorCV,
        OrdinalRegressor,
        RobustFMClassifier,
        RobustFMRegressor,
        SharedBasisClassifier,
        SharedBasisRegressor,
    )
    from fmviz.interactive import save, show
    from fmviz.lab.experiment import Experiment
    from fmviz.operators import certificate, prox, regularizer_value
    from fmviz.paths import find_lambda, lambda_max, regularization_path, selection_frequencies
    from fmviz.plot import findings
    from fmviz.tables.encoder import TableEncoder

__version__ = "0.1.0"

__all__ = [
    "BayesianFMClassifier",
    "BayesianFMRegressor",
    "CollapseWarning",
    "Experiment",
    "FactorizationMachineClassifier",
    "FactorizationMachineClassifierCV",
    "FactorizationMachineRegressor",
    "FactorizationMachineRegressorCV",
    "Interactions",
    "OrdinalRegressor",
    "Parts",
    "RobustFMClassifier",
    "RobustFMRegressor",
    "SharedBasisClassifier",
    "SharedBasisRegressor",
    "TableEncoder",
    "augmented",
    "certificate",
    "datasets",
    "find_lambda",
    "findings",
    "interactions_of",
    "lambda_max",
    "list_losses",
    "list_models",
    "list_regularizers",
    "list_solvers",
    "losses",
    "metrics",
    "models",
    "penalties",
    "plot",
    "prox",
    "regularization_path",
    "regularizer_value",
    "save",
    "selection_frequencies",
    "show",
    "solvers",
    "to_expansion",
    "why_not",
]

_MODULES = {
    "BayesianFMClassifier": "fmviz.estimators",
    "BayesianFMRegressor": "fmviz.estimators",
    "CollapseWarning": "fmviz.engine.errors",
    "Experiment": "fmviz.lab.experiment",
    "FactorizationMachineClassifier": "fmviz.estimators",
    "FactorizationMachineClassifierCV": "fmviz.estimators",
    "FactorizationMachineRegressor": "fmviz.estimators",
    "FactorizationMachineRegressorCV": "fmviz.estimators",
    "Interactions": "fmviz.engine.interactions.weights",
    "OrdinalRegressor": "fmviz.estimators",
    "Parts": "fmviz.engine.parts",
    "RobustFMClassifier": "fmviz.estimators",
    "RobustFMRegressor": "fmviz.estimators",
    "SharedBasisClassifier": "fmviz.estimators",
    "SharedBasisRegressor": "fmviz.estimators",
    "TableEncoder": "fmviz.tables.encoder",
    "augmented": "fmviz.engine.design",
    "certificate": "fmviz.operators",
    "datasets": "fmviz.datasets",
    "find_lambda": "fmviz.paths",
    "findings": "fmviz.plot",
    "interactions_of": "fmviz.engine.interactions.weights",
    "lambda_max": "fmviz.paths",
    "list_losses": "fmviz.choices",
    "list_models": "fmviz.choices",
    "list_regularizers": "fmviz.choices",
    "list_solvers": "fmviz.choices",
    "losses": "fmviz.engine.losses",
    "metrics": "fmviz.metrics",
    "models": "fmviz.engine.models",
    "penalties": "fmviz.engine.penalties",
    "plot": "fmviz.plot",
    "prox": "fmviz.operators",
    "regularization_path": "fmviz.paths",
    "selection_frequencies": "fmviz.paths",
    "regularizer_value": "fmviz.operators",
    "save": "fmviz.interactive",
    "show": "fmviz.interactive",
    "solvers": "fmviz.engine.solvers",
    "to_expansion": "fmviz.engine.interactions.weights",
    "why_not": "fmviz.choices",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'fmviz' has no attribute {name!r}")
    module = import_module(_MODULES[name])
    return module if module.__name__.endswith(f".{name}") else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
