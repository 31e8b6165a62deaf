"""Artefacts of papers: what all of them promise, and the protocol of each."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from lab.tiny_papers import TINY

from fmviz.figures.papers import KINDS
from fmviz.lab.papers import ARTEFACTS, BUDGETS, Published, Result, find, shipped
from fmviz.lab.papers.reproduction import Reproduction
from fmviz.lab.papers.results import last_shipped
from fmviz.lab.papers.verdicts import agreed, by_balance, by_majority, by_margin
from fmviz.lab.values import plain

# Those of other artefacts compile many kernels of their own.
CHEAP = ("atarashi2021_fig3",)
RUN = [pytest.param(name, marks=() if name in CHEAP else pytest.mark.slow) for name in ARTEFACTS]


@functools.cache
def tiny_results(name: str) -> list[Result]:
    return list(ARTEFACTS[name].run("quick", n_jobs=1, **TINY[name]))


@pytest.mark.parametrize("name", ARTEFACTS)
def test_an_artefact_tells_what_it_is(name):
    artefact = ARTEFACTS[name]
    assert artefact.name == name
    assert artefact.paper
    assert artefact.title
    assert artefact.statements
    assert len({statement.key for statement in artefact.statements}) == len(artefact.statements)
    assert all(statement.text and statement.where for statement in artefact.statements)
    assert artefact.differences
    assert all(text.endswith(".") for text in artefact.differences)
    assert set(artefact.budgets) == set(BUDGETS)
    assert set(artefact.minutes) == set(BUDGETS)
    assert set(artefact.configured("quick")) == set(artefact.configured("full"))
    assert artefact.picture["kind"] in KINDS


def test_our_results_are_of_the_protocols_of_today():
    assert shipped.shipped_results()
    for name, budget in shipped.shipped_results():
        result = last_shipped(ARTEFACTS[name], budget)
        assert result is not None
        assert result.checks
        assert KINDS[ARTEFACTS[name].picture["kind"]]
        assert shipped.shipped_picture(name).startswith("<svg ")
        assert not re.search(r"(?<![\w/:.])/(work|tmp|home|root)\b", json.dumps(result.to_dict()))
    assert sum(path.stat().st_size for path in shipped.FOLDER.glob("*.gz")) < 1_500_000


@pytest.mark.parametrize("name", ARTEFACTS)
def test_the_verdicts_on_our_numbers_stay(name):
    (budget,) = (budget for artefact, budget in shipped.shipped_results() if artefact == name)
    ours = Result.from_dict(shipped.shipped_result(name, budget))
    assert tuple(ARTEFACTS[name].judge(ours.tables, ours.settings)) == ours.checks


def test_a_result_is_shipped_and_read_back(monkeypatch, tmp_path):
    ours = last_shipped(ARTEFACTS["atarashi2021_fig10"], "full")
    last = replace(ours, settings={"data": ["here", "elsewhere"]}, data={"here": "1f"})
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    try:
        shipped._heads.cache_clear()
        shipped.keep_shipped(last.to_dict(), 5.2, "<svg></svg>")
        assert shipped.shipped_result(last.artefact, "quick") is None
        assert Result.from_dict(shipped.shipped_result(last.artefact, "full")) == last
        (kept,) = shipped.shipped_results().values()
        assert (kept.created, kept.without, kept.shipped) == (5, ("elsewhere",), True)
        assert sum(kept.verdicts.values()) == len(last.checks)
        with pytest.raises(ValueError, match="another protocol"):
            last_shipped(ARTEFACTS[last.artefact], "full")
    finally:
        shipped._heads.cache_clear()


@pytest.mark.sample(1)
@pytest.mark.xdist_group("papers")  # One process makes the results.
@pytest.mark.parametrize("name", RUN)
def test_a_tiny_run_grows_and_completes(name):
    *before, last = tiny_results(name)
    assert before
    assert all(result.state == "running" for result in before)
    assert last.state == "complete"
    assert last.done == last.total > 0
    done = [result.done for result in tiny_results(name)]
    assert done == sorted(done)
    assert last.tables["data"]
    assert set(last.data) == {row["data"] for row in last.tables["data"]}
    assert {check.statement for check in last.checks} == {
        statement.key for statement in ARTEFACTS[name].statements
    }
    assert all(check.measured.endswith(".") for check in last.checks)
    assert {"python", "numpy", "fmviz"} <= set(last.versions)


@pytest.mark.xdist_group("papers")  # One process makes the results.
@pytest.mark.parametrize("name", RUN)
def test_results_survive_json(name):
    last = tiny_results(name)[-1]
    text = json.dumps(last.to_dict(), allow_nan=False)
    back = Result.from_dict(json.loads(text))
    assert json.dumps(back.to_dict(), allow_nan=False) == text
    assert tuple(ARTEFACTS[name].judge(back.tables, back.settings)) == last.checks
    with pytest.raises(ValueError, match="unexpected keyword argument 'odd'"):
        Result.from_dict({**last.to_dict(), "odd": 1})
    with pytest.raises(ValueError, match="missing 1 required positional argument: 'seconds'"):
        Result.from_dict({k: v for k, v in last.to_dict().items() if k != "seconds"})


@pytest.mark.parametrize("name", ARTEFACTS)
def test_without_numbers_nothing_is_settled(name):
    artefact = ARTEFACTS[name]
    checks = artefact.judge({}, artefact.configured("full"))
    assert {check.statement for check in checks} == {statement.key for statement in artefact.statements}
    assert {check.verdict for check in checks} == {"not settled"}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ARTEFACTS)
def test_a_run_stops_when_asked(name):
    results = list(ARTEFACTS[name].run("quick", n_jobs=1, should_stop=lambda: True, **TINY[name]))
    assert results[-1].state == "stopped"
    assert results[-1].done < results[-1].total


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["blondel2016_fig1", "blondel2016_fig2"])
def test_a_fit_that_was_stopped_counts_for_nothing(name):
    asked = iter([False] * 4)
    results = list(ARTEFACTS[name].run("quick", should_stop=lambda: next(asked, True), **TINY[name]))
    assert results[-1].state == "stopped"
    assert results[-1].tables["trace"]
    assert "ends" not in results[-1].tables
    assert {check.verdict for check in results[-1].checks} == {"not settled"}


def test_settings_are_checked():
    artefact = ARTEFACTS["blondel2016_fig1"]
    with pytest.raises(ValueError, match="budget"):
        artefact.run("huge")
    with pytest.raises(ValueError, match="sedes"):
        artefact.run("quick", sedes=3)
    with pytest.raises(ValueError, match="n_jobs"):
        artefact.run("quick", n_jobs=0)


def test_published_numbers_stand_beside_ours():
    last = tiny_results("blondel2016_fig1")[-1]
    artefact = ARTEFACTS["blondel2016_fig1"]
    known = {"data": "diabetes, standardised"}
    wrong = replace(
        artefact,
        published=(
            Published("data", known, "n", 300, "Table 1", 0.05),
            Published("data", known, "d", 10, "Table 1"),
            Published("data", {"data": "other"}, "n", 5, "Table 1"),
        ),
    )
    first, second, third = wrong.compared(last.tables)
    assert first["deviation"] == pytest.approx(31 / 300)
    assert first["within"] is False
    assert second["within"] is True
    assert third["ours"] is third["deviation"] is third["within"] is None


def test_plain_values():
    given = {"a": np.float64("nan"), "b": [np.int64(2), (np.bool_(True), None)], 3: 1.5}
    assert plain(given) == {"a": None, "b": [2, [True, None]], "3": 1.5}


@pytest.mark.parametrize(
    ("wins", "total", "verdict"),
    [
        (0, 0, "not settled"),
        (3, 4, "holds"),
        (2, 4, "does not hold"),
        (2, 3, "not settled"),
        (5, 5, "holds"),
        (0, 1, "does not hold"),
    ],
)
def test_majorities(wins, total, verdict):
    assert by_majority(wins, total) == verdict


def test_ties_settle_nothing():
    assert by_balance([0.2, 0.3, -0.2, 0.4], 0.1) == ("holds", 3, 1)
    assert by_balance([0.2, 0.05, 0.05, 0.05], 0.1) == ("not settled", 1, 0)
    assert by_balance([-0.2, -0.3, 0.05], 0.1) == ("does not hold", 0, 2)
    assert by_balance([], 0.1) == ("not settled", 0, 0)
    assert [agreed(each) for each in ([True], [True, False], [False, False], [])] == [
        "holds", "not settled", "does not hold", "not settled"
    ]  # fmt: skip


def test_margins_need_three_splits_and_their_error():
    assert by_margin([]) is None
    assert by_margin([1.0, 1.0])[0] == "not settled"
    assert by_margin([1.0, 1.2, 0.8])[0] == "holds"
    assert by_margin([1.0, 1.2, 0.8], least=2.0)[0] == "does not hold"
    assert by_margin([3.0, -3.0, 0.1])[0] == "not settled"


def test_short_names():
    assert find("fig2") is find("atarashi2021_fig2") is ARTEFACTS["atarashi2021_fig2"]
    assert find("table3a") is find("table3b") is ARTEFACTS["atarashi2021_table3"]
    assert find("blondel2016_fig2") is ARTEFACTS["blondel2016_fig2"]
    with pytest.raises(ValueError, match=r"no 'fig99'; there are atarashi2021_fig1, "):
        find("fig99")


def test_data_that_are_not_here_are_said(monkeypatch):
    monkeypatch.delenv("FMVIZ_DATA", raising=False)
    table3 = ARTEFACTS["atarashi2021_table3"]
    repro = Reproduction(table3.configured("quick"), sets=table3.sets)
    assert repro.available("drawn ratings") == ["drawn ratings"]
    assert [note.split()[0] for note in repro.notes] == ["ML100K", "a9a", "RCV1", "FD", "Drawn"]
    assert all(note.endswith(".") for note in repro.notes)
    assert "FMVIZ_DATA is not set" in repro.notes[0]
    assert "stand in for ML100K, a9a, RCV1, FD" in repro.notes[-1]


def test_stand_ins_settle_nothing():
    table3 = ARTEFACTS["atarashi2021_table3"]
    tables = {"data": [{"data": "drawn ratings", "score": "RMSE", "features_in_training": 20}]}
    for table in ("table3a", "table3b"):
        for n, method in enumerate(("TI", "CS", "L1", "L21", "FM")):
            row = {"data": "drawn ratings", "method": method, "score": 0.9 + 0.01 * n, "used": 190.0}
            tables.setdefault(table, []).append({**row, "reached": 1, "starts": 1})
    checks = table3.judge(tables, table3.configured("quick"))
    assert {check.verdict for check in checks} == {"not settled"}
    assert any("Ahead by" in check.measured for check in checks)


# Data
