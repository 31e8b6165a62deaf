"""Settings, plans of sweeps and models that commit bcea1f3 has written, read by the present code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from compatibility import present
from compatibility.comparing import differences

DATA = Path(__file__).parent / "data"


def read(name: str) -> Any:
    return json.loads((DATA / name).read_text(encoding="utf-8"))


DEFAULTS, *_REST = read("experiments.json")
LINKS = [one for one in _REST if "query" in one]
TEXTS = [one["json"] for one in _REST if "json" in one]


@pytest.mark.parametrize("link", LINKS, ids=lambda link: ",".join(link["query"].values())[:60])
def test_a_link_means_the_same_experiment(link):
    experiment, notices = present.of_link(link["query"])
    assert not differences(present.told(experiment), DEFAULTS | link["settings"])
    assert notices == link["notices"]
    assert present.of_link(experiment.to_query()) == (experiment, 0)
    assert present.of_json(json.dumps(link["settings"])) == experiment


def test_settings_that_are_not_told_have_the_same_defaults():
    assert not differences(present.told(present.of_link({})[0]), DEFAULTS)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_json_means_the_same_experiment(text):
    experiment = present.of_json(text)
    assert not differences(present.told(experiment), json.loads(text))
    assert present.of_json(experiment.to_json()) == experiment


@pytest.mark.parametrize("form", ["by hand", "toml", "json"])
def test_a_plan_means_the_same_fits(form):
    plan = read("plans.json")
    assert not differences(present.cells_of(plan["texts"][form]), [DEFAULTS | one for one in plan["cells"]])


@pytest.mark.parametrize("target", ["y", "smoker"])
def test_a_saved_model_predicts_the_same(target):
    (table,) = (DATA / "store-data").glob("file_*")
    found = present.predicted(DATA / f"fit-{target}" / "model.npz", table)
    assert not differences(found, read("predictions.json")[target])
    ranked = pd.read_csv(DATA / f"fit-{target}" / "interactions.csv")
    assert list(ranked) == ["feature_i", "feature_j", "weight", "rows_with_both"]
