"""Scikit-learn estimators: a regressor and a classifier for each family of models."""

from .bayesian import BayesianFMClassifier, BayesianFMRegressor
from .cross_validation import FactorizationMachineClassifierCV, FactorizationMachineRegressorCV
from .factorization_machine import FactorizationMachineClassifier, FactorizationMachineRegressor
from .ordinal import OrdinalRegressor
from .robust import RobustFMClassifier, RobustFMRegressor
from .shared_basis import SharedBasisClassifier, SharedBasisRegressor

__all__ = [
    "BayesianFMClassifier",
    "BayesianFMRegressor",
    "FactorizationMachineClassifier",
    "FactorizationMachineClassifierCV",
    "FactorizationMachineRegressor",
    "FactorizationMachineRegressorCV",
    "OrdinalRegressor",
    "RobustFMClassifier",
    "RobustFMRegressor",
    "SharedBasisClassifier",
    "SharedBasisRegressor",
]
