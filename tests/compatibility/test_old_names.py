"""What ``import fmviz`` offered at commit bcea1f3 is there, takes the same parameters and gives the same."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from compatibility.calls import CALLS, ESTIMATORS
from compatibility.comparing import PRINTED, differences

import fmviz
from fmviz.lab import MOVED

DATA = Path(__file__).parent / "data"
NAMES: dict[str, Any] = json.loads((DATA / "names.json").read_text(encoding="utf-8"))
RETURNED: dict[str, Any] = json.loads((DATA / "calls.json").read_text(encoding="utf-8"))
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
# Defaults that have become others on purpose: strengths and starts follow the data. What is named is taken as
# before.
_FOLLOW_THE_DATA = {"lambda_w", "lambda_p", "lambda_sparse", "init_scale", "max_iter"}
CHANGED = {
    "FactorizationMachineRegressor": _FOLLOW_THE_DATA,
    "FactorizationMachineClassifier": _FOLLOW_THE_DATA,
    **{
        f"{model}{kind}": _FOLLOW_THE_DATA
        for model in ("AllSubsets", "HigherOrderFM", "Lifted", "PolynomialNetwork")
        for kind in ("Classifier", "Regressor")
    },
    **{
        f"{model}{kind}": _FOLLOW_THE_DATA | {"lambda_trace"}
        for model in ("ConvexFM", "Quadratic")
        for kind in ("Classifier", "Regressor")
    },
    "regularization_path": {"orders", "init_scale"},
}


def named(name: str) -> Any:
    found: Any = fmviz
    for part in name.split("."):
        found = getattr(found, part)
    return found


def then(text: str) -> inspect.Signature:
    """Return a signature that was written down as text."""
    space: dict[str, Any] = {"inf": float("inf"), "nan": float("nan")}
    exec(f"def function{text}: pass", space)
    return inspect.signature(space["function"])


@pytest.mark.parametrize("name", NAMES["all"])
def test_every_name_is_there(name):
    space: dict[str, Any] = {}
    exec(f"from fmviz import {name}", space)
    assert space[name] is getattr(fmviz, name)
    assert name in fmviz.__all__
    assert name in dir(fmviz)


@pytest.mark.parametrize("name", NAMES["signatures"])
def test_every_parameter_is_taken_as_before(name):
    found = inspect.signature(named(name)).parameters
    takes_all = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in found.values())
    places = [one.name for one in found.values() if one.kind in _POSITIONAL and one.name != "self"]
    for place, (parameter, one) in enumerate(then(NAMES["signatures"][name]).parameters.items()):
        if one.kind is inspect.Parameter.VAR_KEYWORD:
            # What these are, the calls below say.
            assert takes_all or len(found) > place
            continue
        assert parameter in found or takes_all, parameter
        if one.kind in _POSITIONAL:
            assert places[place] == parameter
        if one.default is not one.empty and parameter in found and parameter not in CHANGED.get(name, ()):
            assert repr(found[parameter].default) == repr(one.default), parameter
    optional = {one.name for one in found.values() if one.default is not one.empty}
    fixed = {
        one.name for one in found.values() if one.kind not in (*_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)
    }
    added = set(found) - {"self"} - set(then(NAMES["signatures"][name]).parameters)
    assert added <= optional | fixed, "a parameter that was added has no default"


def test_every_keyword_of_every_estimator_is_tried():
    for name, given in ESTIMATORS.items():
        assert given.keys() == set(then(NAMES["signatures"][name]).parameters), name
        assert set(given) <= set(getattr(fmviz, name)().get_params()), name


# Those that compile for many seconds are for `make test-all`.
DEAR = {"estimators", "operators", "conversions", "sweep", "path", "search"}


@pytest.mark.parametrize(
    "call", [pytest.param(call, marks=pytest.mark.slow if call in DEAR else ()) for call in CALLS]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_call_gives_what_it_gave(call):
    found = json.loads(json.dumps(CALLS[call]()))
    if call == "combinations":
        # What could be fitted can be fitted; more may have become possible.
        lost = [
            (name, place)
            for name, signs in RETURNED[call].items()
            for place, sign in enumerate(signs)
            if sign == "+" and found[name][place] != "+"
        ]
        assert not lost
    elif call == "registries":
        assert all(set(RETURNED[call][name]) <= set(found[name]) for name in RETURNED[call])
    else:
        assert not differences(found, RETURNED[call], call, PRINTED)


@pytest.mark.parametrize(("module", "name"), [(old, name) for old, names in MOVED.items() for name in names])
def test_copied_programs_find_what_has_moved(module, name):
    space: dict[str, Any] = {}
    exec(f"from fmviz.lab.{module} import {name}\nimport fmviz.lab.{module} as moved", space)
    assert space[name] is getattr(space["moved"], name)
    assert not hasattr(space["moved"], "nothing")
