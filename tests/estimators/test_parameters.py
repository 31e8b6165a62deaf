"""The parameters of the estimators are written out, stored as given and documented with their defaults."""

from __future__ import annotations

import inspect
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fmviz import estimators

ESTIMATORS = [getattr(estimators, name) for name in estimators.__all__]
X = np.random.default_rng(0).normal(size=(30, 4))
LABELS = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")

# Short fits: what is asked of them does not need their end.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::fmviz.CollapseWarning"),
]


def parameters_of(estimator: type) -> dict[str, inspect.Parameter]:
    _, *listed = inspect.signature(estimator.__init__).parameters.values()
    return {item.name: item for item in listed}


SHORT = {
    # Caps that are given need not be searched for.
    **{"cap_loss": 1.0, "cap_spectrum": 1.0, "eps_insensitive": 0.1},
    **{"burn_in": 1, "max_iter": 2, "max_levels": 2, "n_draws": 3},
}


def short(estimator: type) -> dict[str, float]:
    """Return parameters that make a fit short."""
    return {name: value for name, value in SHORT.items() if name in parameters_of(estimator)}


def documented(estimator: type) -> dict[str, str]:
    """Return the parameters of a docstring with their types and defaults, empty where it refers to others."""
    body = inspect.getdoc(estimator).split("Parameters\n----------\n")[1].split("\n\n")[0]
    result = {}
    for names, about in re.findall(r"^(\w+(?:, \w+)*)(?: : (.*))?$", body, re.M):
        result |= dict.fromkeys(names.split(", "), about)
    return result


def as_written(default: object) -> str:
    """Return a default as a docstring writes it."""
    if isinstance(default, str):
        return f'"{default}"'
    small = isinstance(default, float) and 0 < default < 0.01
    return f"{default:.0e}".replace("e-0", "e-") if small else str(default)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_written_out_and_stored_as_given(estimator):
    assert "__init__" in vars(estimator)
    listed = parameters_of(estimator)
    for item in listed.values():
        # Values have their parameters.
        assert not item.name.endswith(("_param", "_params"))
        assert item.kind in (item.KEYWORD_ONLY, item.POSITIONAL_OR_KEYWORD)
        assert item.annotation is not item.empty
        assert item.default is not item.empty
    given = {name: object() for name in listed}
    stored = estimator(**given)
    assert all(stored.get_params(deep=False)[name] is value for name, value in given.items())


@pytest.mark.parametrize(
    "estimator", [estimator for estimator in ESTIMATORS if estimator.__name__.endswith("Classifier")]
)
def test_a_classifier_has_the_defaults_of_its_regressor_but_for_loss_and_class_weight(estimator):
    regressor = getattr(estimators, estimator.__name__.replace("Classifier", "Regressor"))
    expected = {name: item.default for name, item in parameters_of(regressor).items()}
    if "loss" in expected:
        expected["loss"] = "logistic"
    result = {name: item.default for name, item in parameters_of(estimator).items()}
    assert result.pop("class_weight", None) is None
    assert result == expected
    assert list(result) == list(expected)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_documented_with_its_default(estimator):
    listed, about = parameters_of(estimator), documented(estimator)
    assert about.keys() == listed.keys()
    for name, text in about.items():
        if text:
            expected = "optional" if listed[name].default is None else as_written(listed[name].default)
            assert text.endswith((f", {expected}", f"default={expected}")), f"{name} : {text}"


MODELS = ("hofm", "all_subsets", "expansion", "lifted", "quadratic", "convex")


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        *((estimator, {}) for estimator in ESTIMATORS),
        *((estimators.FactorizationMachineRegressor, {"model": name}) for name in MODELS),
    ],
)
def test_every_public_attribute_of_a_fit_is_documented(estimator, settings):
    target = LABELS if is_classifier(estimator()) else X[:, 0]
    fitted = estimator(**settings, **short(estimator)).fit(X, target)
    text = inspect.getdoc(estimator)
    if is_classifier(fitted):
        text += inspect.getdoc(getattr(estimators, estimator.__name__.replace("Classifier", "Regressor")))
    named = [name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")]
    assert not [name for name in named if not re.search(rf"\b{name}\b", text)]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_copies_and_pipelines(estimator):
    given = {"lambda_w": 0.5} if "lambda_w" in parameters_of(estimator) else {}
    given |= short(estimator)
    original = estimator(**given)
    copy = clone(original)
    assert copy.get_params() == original.get_params()
    listed = ", ".join(f"{name}={value}" for name, value in sorted(given.items()))
    assert " ".join(repr(copy).split()) == f"{estimator.__name__}({listed})"
    target = LABELS if is_classifier(original) else X[:, 0]
    chain = make_pipeline(StandardScaler(), original)
    chain.set_params(**{f"{estimator.__name__.lower()}__{[*short(estimator)][-1]}": 4}).fit(X, target)
    assert getattr(original, "n_iter_", 0) <= 4
    assert (pickle.loads(pickle.dumps(chain)).predict(X) == chain.predict(X)).all()
