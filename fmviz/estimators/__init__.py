"""Scikit-learn estimators of the models of fmviz: a regressor and a classifier for each."""

from .all_subsets import AllSubsetsClassifier, AllSubsetsRegressor
from .bayesian import BayesianFMClassifier, BayesianFMRegressor
from .convex import ConvexFMClassifier, ConvexFMRegressor
from .cross_validation import FactorizationMachineClassifierCV, FactorizationMachineRegressorCV
from .factorization_machine import FactorizationMachineClassifier, FactorizationMachineRegressor
from .higher_order import HigherOrderFMClassifier, HigherOrderFMRegressor
from .lifted import LiftedClassifier, LiftedRegressor
from .ordinal import OrdinalRegressor
from .polynomial_network import PolynomialNetworkClassifier, PolynomialNetworkRegressor
from .quadratic import QuadraticClassifier, QuadraticRegressor
from .robust import RobustFMClassifier, RobustFMRegressor
from .shared_basis import SharedBasisRegressor
from .shared_basis_classifier import SharedBasisClassifier

__all__ = [
    "AllSubsetsClassifier",
    "AllSubsetsRegressor",
    "BayesianFMClassifier",
    "BayesianFMRegressor",
    "ConvexFMClassifier",
    "ConvexFMRegressor",
    "FactorizationMachineClassifier",
    "FactorizationMachineClassifierCV",
    "FactorizationMachineRegressor",
    "FactorizationMachineRegressorCV",
    "HigherOrderFMClassifier",
    "HigherOrderFMRegressor",
    "LiftedClassifier",
    "LiftedRegressor",
    "OrdinalRegressor",
    "PolynomialNetworkClassifier",
    "PolynomialNetworkRegressor",
    "QuadraticClassifier",
    "QuadraticRegressor",
    "RobustFMClassifier",
    "RobustFMRegressor",
    "SharedBasisClassifier",
    "SharedBasisRegressor",
]
