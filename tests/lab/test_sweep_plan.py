from __future__ import annotations

import datetime

import pytest

from fmviz.lab.experiment import name_of, suggested
from fmviz.lab.search import sweep_plan
from fmviz.lab.search.sweep_plan import SweepPlan

TEXT = """
title = "A small one"
seeds = 3
[base]
rank = 5
max_epochs = 20
[[dataset]]
dataset = "planted_interactions"
[[dataset]]
dataset = "planted_features"
[[method]]
regularizer = "ti"
[[method]]
regularizer = "cs"
solver = "pbcd"
[grid]
lambda_sparse = [0.1, 1.0]
lambda_p = {from = 1e-3, to = 1e-1, count = 3}
"""


def test_a_plan_is_the_product_of_its_parts():
    plan = SweepPlan.from_text(TEXT)
    assert len(plan.cells) == len(set(plan.cells)) == 2 * 2 * 2 * 3 * 3
    assert {cell.seed for cell in plan.cells} == {0, 1, 2}
    assert {cell.rank for cell in plan.cells} == {5}
    assert {(cell.regularizer.name, name_of(cell.solver)) for cell in plan.cells} == {
        ("ti", "auto"),
        ("cs", "pbcd"),
    }
    assert sorted({cell.lambda_p for cell in plan.cells}) == pytest.approx([1e-3, 1e-2, 1e-1])


def test_plans_travel_as_json_and_files(tmp_path):
    plan = SweepPlan.from_text(TEXT)
    again = SweepPlan.from_text(plan.to_json())
    assert again == plan
    assert again.cells == plan.cells
    path = tmp_path / "plan.toml"
    path.write_text(TEXT, encoding="utf-8")
    assert SweepPlan.from_file(path) == plan
    path.write_text(TEXT, encoding="utf-8-sig")
    assert SweepPlan.from_file(path) == plan


def test_equal_cells_are_fitted_once():
    plan = SweepPlan(methods=[{"regularizer": "ti"}, {"regularizer": "ti", "solver": "auto"}])
    assert len(plan.cells) == 1


def test_suggestions_fill_in_what_is_not_said():
    (cell,) = SweepPlan(datasets=[{"dataset": "monks1"}], methods=[{"rank": 7}], suggested=True).cells
    expected = suggested("monks1")
    assert cell.rank == 7
    assert cell.lambda_sparse == expected.lambda_sparse
    assert cell.loss == expected.loss


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ({"sede": 3}, "Unknown part 'sede' of a sweep; available: title"),
        ({"seeds": "three"}, "seeds = 'three'; give a number of seeds"),
        ({"seeds": []}, "This sweep has 0 fits"),
        ({"seeds": 0}, "This sweep has 0 fits"),
        ({"seeds": 10**12}, "This sweep has 1,000,000,000,000 fits"),
        ({"grid": {"tol": {"from": 1, "to": 2, "count": 10**12}}}, "This sweep has 1,000,000,000,000 fits"),
        ({"grid": {"seed": [1, 2]}}, "is not a setting of a sweep; use seeds"),
        ({"base": {"seed": 3}}, "seed = 3 is not a setting of a sweep"),
        ({"method": {"seed": 3}}, "seed = 3 is not a setting of a sweep"),
        ({"suggested": "no"}, "suggested = 'no'; give true or false"),
        ({"base": {"max_epochs": datetime.date(2020, 5, 27)}}, "must be a whole number from 1"),
        ({"method": [{"regularizer": "tii"}]}, "'tii'"),
        ({"method": [{"regulariser": "ti"}]}, "Unknown setting 'regulariser'"),
        ({"method": "ti"}, "method = 'ti'; give settings"),
        ({"method": ["ti"]}, "method = 'ti'; give settings with their values"),
        (
            {"method": [{"regularizer": "ti", "solver": "cd"}]},
            "solver = cd.* cannot be fitted: CD takes plain",
        ),
        ({"grid": {"lambda_sparse": 1.0}}, "grid.lambda_sparse = 1.0; give a list of values"),
        ({"grid": {"lambda_sparse": []}}, "grid.lambda_sparse = .*; give a list of values"),
        ({"grid": {"lambda_sparse": {"from": 0, "to": 1, "count": 3}}}, "from and to, positive, and count"),
        ({"grid": {"lambda_sparse": [-1.0]}}, "lambda_sparse"),
        ({"dataset": {"dataset": "nothing"}}, "'nothing'"),
        ({"dataset": {"dataset": "nothing"}, "suggested": True}, "The data set = 'nothing'"),
    ],
)
def test_bad_plans_get_a_sentence(plan, sentence):
    with pytest.raises(ValueError, match=sentence):
        SweepPlan.from_dict(plan)


@pytest.mark.parametrize("text", ["[[", "{", "= 3"])
def test_what_is_no_plan_is_answered_with_an_example(text):
    with pytest.raises(ValueError, match=r"This is not a sweep[\s\S]*\[grid\]"):
        SweepPlan.from_text(text)


def test_the_example_of_the_messages_is_a_plan():
    assert len(SweepPlan.from_text(sweep_plan._EXAMPLE).cells) == 2 * 3 * 5


def test_too_large_sweeps_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr(sweep_plan, "MOST_CELLS", 5)
    with pytest.raises(ValueError, match="This sweep has 6 fits; the range is 1 to 5"):
        SweepPlan(seeds=range(6))
