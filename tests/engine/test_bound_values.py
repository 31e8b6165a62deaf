"""Losses, penalties, models and solvers are values with their parameters, bound by name or as they are."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from by_name import iterate
from signatures import signatures
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import fmviz
from fmviz.engine.errors import WhyNot
from fmviz.engine.fit import Budget
from fmviz.engine.losses import LOSSES, Huber, Squared, get_loss
from fmviz.engine.models import MODELS, HigherOrder, get_model
from fmviz.engine.penalties import L1, PENALTIES, TI, EntryView, OmegaStar, get_penalty
from fmviz.engine.penalties._coupled import entry_penalty
from fmviz.engine.problem import Problem
from fmviz.engine.settings import ParamSpec, setting
from fmviz.engine.solvers import APGD, PCD, SOLVERS, get_solver

VALUES = [
    *LOSSES.values(),
    *PENALTIES.values(),
    *MODELS.values(),
    Huber(2.5),
    TI(axis="rows"),
    OmegaStar(prox_steps=3),
    HigherOrder(order=5),
]
LISTS = ParamSpec("items", "list", (), low=0)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 5))
Y = X[:, 0] * X[:, 1] + 0.1 * RNG.normal(size=20)


# ---------------------------------------------------------------------------------------- by name, by value


def test_a_name_with_parameters_is_the_value():
    assert get_loss("huber", {"delta": 2}) == Huber(2)
    assert repr(Huber(2)) == "Huber(delta=2.0)"
    assert get_penalty("ti", {"axis": "rows"}) == TI(axis="rows")
    assert get_model("hofm", {"order": 5}) == HigherOrder(5)
    assert get_loss("huber") == Huber() == Huber(1.0)


@pytest.mark.parametrize(
    ("get", "registry"), [(get_loss, LOSSES), (get_penalty, PENALTIES), (get_model, MODELS)]
)
def test_every_name_is_bound_and_every_value_stays_as_it_is(get, registry):
    for name, value in registry.items():
        assert get(name) == value
        assert get(value) is value
        assert get(name, value.settings) == value
        assert value.name == name


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_can_be_compared_hashed_pickled_and_not_written_to(value):
    again = type(value)(**value.settings)
    assert again == value
    assert hash(again) == hash(value)
    assert VALUES.count(value) == 1
    assert pickle.loads(pickle.dumps(value)) == value
    for name in value.settings:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, getattr(value, name))


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (np.array([0, 1, 1]), (0, 1, 1)),
        ([[0, 2], (1,)], ((0, 2), (1,))),
        (np.array(["a", "b"]), ("a", "b")),
        (("a", 1, 2.5, ["b"]), ("a", 1, 2.5, ("b",))),
    ],
)
def test_lists_become_tuples(given, value):
    assert LISTS.check(given) == value
    assert hash(LISTS.check(given)) == hash(value)


# ------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: get_loss("hubber"), r"loss = 'hubber' is not known; .*Did you mean 'huber'\?"),
        (lambda: get_penalty("omega_t"), r"regularizer = 'omega_t' is not known; .* l2, l1, .*'omega_ti'"),
        (lambda: get_model("fmm"), r"model = 'fmm' is not known; .*'fm'"),
        (lambda: get_solver("pcdd"), r"solver = 'pcdd' is not known; .*'pcd'"),
        (lambda: get_loss(None), "loss = None is not known"),
        (lambda: get_penalty(Huber()), r"regularizer = Huber\(delta=1.0\) is not known"),
        (lambda: get_penalty("ti", {"axes": "rows"}), "'ti' has no parameter 'axes'; it takes axis"),
        (lambda: get_loss("squared", {"delta": 1}), "'squared' has no parameter 'delta'; it takes none"),
        (lambda: get_solver("pcd", {"eta": 1}), "'pcd' has no parameter 'eta'; it takes order"),
        (lambda: get_model("convx"), r"model = 'convx' is not known; .*'convex'"),
        (lambda: get_model(HigherOrder), r"model = HigherOrder is a class.* Pass an instance: HigherOrder\("),
        (lambda: PCD(eta=1), "'pcd' has no parameter 'eta'"),
        (lambda: Huber(0), "delta = 0 is out of range: use a number from 1e-06 to 1e"),
        (lambda: Huber("wide"), "delta = 'wide' must be a finite number from"),
        (lambda: Huber(True), "delta = True must be a finite number"),
        (lambda: TI(axis="row"), r"axis = 'row' is not known; choose one of columns, rows.*'rows'"),
        (lambda: HigherOrder(order=1), "order = 1 must be a whole number from 2 to 10"),
        (lambda: HigherOrder(order=2.5), "order = 2.5 must be a whole number"),
        (lambda: get_model("convex_fm", {"diagonal": "yes"}), "diagonal = 'yes' is neither True nor False"),
        (lambda: PCD(anderson=-1), "anderson = -1 must be a whole number"),
        (lambda: LISTS.check("abc"), "items = 'abc' is not a list of numbers or names, or of such lists"),
        (lambda: LISTS.check([0, np.nan]), "An item of items = nan must be a finite number of at least 0"),
        (lambda: LISTS.check([True]), "An item of items = True must be a whole number"),
        (lambda: LISTS.check([[0, -1]]), "An item of items = -1 must be a whole number of at least 0"),
        (lambda: LISTS.check([[[0]]]), r"An item of items = \[0\] must be a finite number"),
        # Parameters beside a value.
        (
            lambda: get_loss(Huber(2), {"delta": 3}),
            r"Huber\(delta=2.0\) already has .* omit delta, .*'huber'",
        ),
        (lambda: get_penalty(TI(), {"axis": "rows"}), r"TI\(axis='columns'\) already has .* the name 'ti'"),
        (lambda: get_model(HigherOrder(), {"order": 4}), r"HigherOrder\(order=3\) already has"),
        (
            lambda: get_solver(PCD(anderson=5), {"order": "columns"}),
            r"PCD\(anderson=5\) already has .* omit order",
        ),
        (lambda: fmviz.prox(TI, X, 0.1), r"TI is a class.* Pass an instance: TI\("),
        (lambda: fmviz.why_not(TI), r"TI is a class.* Pass an instance: TI\("),
    ],
)
def test_what_is_not_known_or_allowed_is_named_with_a_way_out(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_reasons_are_sentences_with_a_code():
    reason = fmviz.why_not("l21", "pcd")
    assert isinstance(reason, str)
    again = pickle.loads(pickle.dumps(reason))
    assert (again, again.code) == (reason, reason.code)
    assert isinstance(again, WhyNot)


# ------------------------------------------------------------------------------------------------ whole runs


def run(penalty, loss, solver) -> np.ndarray:
    problem = Problem.build(X, Y, penalty=penalty, loss=loss, rank=2, lambda_p=0.01, lambda_sparse=0.02)
    *_, last = iterate(problem, solver, Budget(3, tol=0.0), rng=np.random.default_rng(0), init_scale=0.3)
    return last.parameters.P


def test_estimators_take_values_and_can_be_cloned():
    machine = fmviz.FactorizationMachineRegressor(
        rank=2,
        regularizer=TI(axis="rows"),
        loss=Huber(0.5),
        solver=PCD(order="features"),
        max_iter=3,
        tol=0.0,
    )
    named = fmviz.FactorizationMachineRegressor(
        rank=2,
        regularizer=get_penalty("ti", {"axis": "rows"}),
        loss=get_loss("huber", {"delta": 0.5}),
        solver=get_solver("pcd", {"order": "features"}),
        max_iter=3,
        tol=0.0,
    )
    assert machine.get_params() == named.get_params() == pickle.loads(pickle.dumps(machine)).get_params()
    assert all(words in repr(machine) for words in ("loss=Huber(delta=0.5)", "solver=PCD(order='features')"))
    first, other = (clone(each).set_params(random_state=0).fit(X, Y) for each in (machine, named))
    assert np.array_equal(first.P_, other.P_)
    choices = {"regularizer": ["l1", TI(axis="rows")], "solver": [PCD(), APGD(step=0.5)]}
    search = GridSearchCV(first, choices, cv=2).fit(X, Y)
    assert search.best_params_.items() <= search.best_estimator_.get_params().items()
    assert [list(values) for values in search.param_grid.values()] == [*choices.values()]


@dataclass(frozen=True)
class Scaled(L1):
    """weight·‖P‖₁: a penalty with a number of its own, along an entry."""

    weight: float = setting(1.0, low=0.0)
    name = "scaled"

    def value(self, P: np.ndarray) -> float:
        return self.weight * super().value(P)

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        return self.weight * super().thresholds(P)

    @property
    def entry(self) -> EntryView:
        return entry_penalty(fixed=self.weight)


def test_a_penalty_defined_elsewhere_runs_and_its_number_counts():
    assert np.array_equal(run(Scaled(1.0), Squared(), PCD()), run(L1(), Squared(), PCD()))
    assert not np.array_equal(run(Scaled(2.0), Squared(), PCD()), run(L1(), Squared(), PCD()))


@pytest.mark.needs_jit
def test_a_slider_compiles_nothing():
    run(Scaled(1.0), Huber(1.0), PCD())
    before = signatures()
    for weight, delta in ((0.5, 1.0), (1.0, 2), (3, 0.1)):
        run(Scaled(weight), Huber(delta), PCD())
    assert signatures() == before


# -------------------------------------------------------------------------------------------------- solvers


def test_solvers_show_the_settings_that_are_not_the_usual_ones():
    assert repr(PCD(anderson=5)) == "PCD(anderson=5)"
    assert repr(PCD(order="auto")) == repr(PCD()) == "PCD()"
    assert get_solver("pcd", {"anderson": 5}).settings == PCD(anderson=5).settings
    assert get_solver(SOLVERS["pcd"]) is SOLVERS["pcd"]
    again = pickle.loads(pickle.dumps(PCD(anderson=5)))
    assert (type(again), again.settings) == (PCD, PCD(anderson=5).settings)


def test_a_solver_set_to_a_problem_leaves_the_original_as_it_was():
    problems = [Problem.build(X, Y, rank=2), Problem.build(X, Y, rank=2, model="hofm", penalty="l1")]
    for solver in (PCD(anderson=5), APGD(), get_solver("nmapgd")):
        settings, attributes = dict(solver.settings), set(vars(solver))
        for problem in problems:
            method = solver.on(problem)
            method.settings["order"] = "changed"
            assert method is not solver
            assert method.problem is problem
        assert solver.settings == settings
        assert set(vars(solver)) == attributes
        assert not hasattr(solver, "problem")
    for name, solver in SOLVERS.items():
        assert solver.settings == {spec.name: spec.default for spec in solver.params}, name


def test_a_solver_is_set_only_to_what_it_can_take():
    with pytest.raises(ValueError, match="quadratic") as refused:
        get_solver("pbcd").on(Problem.build(X, Y, rank=2, penalty="omega_star"))
    assert refused.value.args[0].code == "no_row_view"
