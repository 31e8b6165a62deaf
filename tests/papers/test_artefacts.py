"""Artefacts of papers: what all of them promise, the protocol of each, and what settles a statement."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from tiny_papers import TINY

from fmviz.lab import papers as lab
from fmviz.lab.papers import Result, full_name, path_of, shipped_result, summaries
from papers import ARTEFACTS, BUDGETS, base, reproduction
from papers.__main__ import reproduced
from papers.base import over_grid, trials_of
from papers.courses import ahead, cut_short, times_to
from papers.reproduction import Reproduction, use
from tools.results import judged, keep_shipped


@pytest.mark.parametrize("name", ARTEFACTS)
def test_an_artefact_declares_what_it_is(name):
    artefact = ARTEFACTS[name]
    keys = [said.key for said in artefact.statements if said.text and said.where]
    assert len(set(keys)) == len(artefact.statements) > 0
    assert artefact.differences
    assert all(text.endswith(".") for text in artefact.differences)
    assert set(artefact.budgets) == set(artefact.minutes) == set(BUDGETS)
    assert set(artefact.configured("quick")) == set(artefact.configured("full"))


@pytest.mark.parametrize("name", ARTEFACTS)
def test_a_shipped_result_has_the_protocol_and_the_verdicts_of_today(name):
    ours, artefact = shipped_result(name), ARTEFACTS[name]
    assert ours.settings == json.loads(json.dumps(dict(artefact.configured(ours.budget))))
    assert judged(artefact, ours) == ours
    assert ours.checks
    assert ours.state == "complete"
    assert go.Figure(ours.picture).data
    assert summaries()[name].thumbnail.startswith("<svg ")
    assert not re.search(r"(?<![\w/:.])/(work|tmp|home|root)\b", json.dumps(ours.to_dict()))


def test_shipped_results_are_in_the_order_of_the_papers():
    assert list(summaries()) == list(ARTEFACTS)


def test_shipped_results_are_small():
    assert sum(path_of(name).stat().st_size for name in ARTEFACTS) < 1_500_000


def test_a_result_is_shipped_and_read_back(monkeypatch, tmp_path):
    ours = shipped_result("atarashi2021_fig10")
    last = replace(ours, settings={"data": ["here", "elsewhere"]}, data={"here": "1f"})
    monkeypatch.setattr(lab, "FOLDER", tmp_path)
    try:
        keep_shipped(last, 5.2)
        assert shipped_result(last.artefact) == last
        (summary,) = summaries().values()
        assert (summary.created, summary.without, summary.budget) == (5, ("elsewhere",), "full")
        assert sum(summary.verdicts.values()) == len(last.checks)
    finally:
        summaries.cache_clear()


def numbers(result: Result) -> dict:
    """The tables in a known order, without what a clock says."""
    clocks = ("seconds", "settled", "microseconds")
    return {
        table: sorted(
            json.dumps({k: v for k, v in row.items() if k not in clocks}, sort_keys=True) for row in rows
        )
        for table, rows in result.tables.items()
    }


def cut_off(after: int) -> Callable[[str], None]:
    """Return a `report` that interrupts a run after so many trials."""

    def report(line: str) -> None:
        if int(line.partition("/")[0]) >= after:
            raise KeyboardInterrupt

    return report


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ARTEFACTS)
def test_a_tiny_run_is_cut_off_and_comes_to_the_same(name, tmp_path, monkeypatch):
    artefact, lines = ARTEFACTS[name], []
    run = partial(artefact.run, "quick", n_jobs=1, **TINY[name])
    last = run(report=lines.append)
    done = [int(line.partition("/")[0]) for line in lines]
    assert done == sorted(done) != []
    total = done[-1]
    assert last.state == "complete"
    assert {row["data"] for row in last.tables["data"]} == set(last.data)
    assert {check.statement for check in last.checks} == {said.key for said in last.statements}
    assert all(check.measured.endswith(".") for check in last.checks)
    assert {"python", "numpy", "fmviz"} <= set(last.versions)
    text = json.dumps(last.to_dict(), allow_nan=False)
    back = Result.from_dict(json.loads(text))
    assert json.dumps(back.to_dict(), allow_nan=False) == text
    assert tuple(artefact.judge(back.tables, back.settings)) == last.checks
    go.Figure(back.picture)

    half = run(folder=tmp_path, report=cut_off(total // 2))
    assert half.state == "stopped"
    assert {check.verdict for check in half.checks} == {"not settled"}, "a part of a run settles nothing"
    resumed = run(folder=tmp_path)
    assert resumed.state == "complete"
    assert resumed.seconds > half.seconds

    def nothing(chains, **_):
        assert not chains, "a trial was computed twice"
        yield from ()

    monkeypatch.setattr(reproduction, "carry_out", nothing)
    assert numbers(run(folder=tmp_path, report=cut_off(total // 2))) == numbers(half)
    again = run(folder=tmp_path)
    assert again.state == "complete"
    assert numbers(again) == numbers(resumed) == numbers(last)


@pytest.mark.parametrize("name", ARTEFACTS)
def test_without_numbers_nothing_is_settled(name):
    artefact = ARTEFACTS[name]
    checks = artefact.judge({}, artefact.configured("full"))
    assert {check.statement for check in checks} == {statement.key for statement in artefact.statements}
    assert {check.verdict for check in checks} == {"not settled"}


def test_settings_are_checked():
    artefact = ARTEFACTS["blondel2016_fig1"]
    with pytest.raises(ValueError, match="budget"):
        artefact.run("huge")
    with pytest.raises(ValueError, match="sedes"):
        artefact.run("quick", sedes=3)
    with pytest.raises(ValueError, match="n_jobs"):
        artefact.run("quick", n_jobs=0)


def test_published_numbers_stand_beside_ours():
    artefact = ARTEFACTS["blondel2016_fig1"]
    known, printed = {"data": "diabetes, standardised"}, {"table": "data", "source": "Table 1"}
    wrong = replace(
        artefact,
        published=(
            {**printed, "where": known, "column": "n", "value": 300, "tolerance": 0.05},
            {**printed, "where": known, "column": "d", "value": 10},
            {**printed, "where": {"data": "other"}, "column": "n", "value": 5},
        ),
    )
    first, second, third = wrong.compared({"data": [{**known, "n": 331, "d": 10}]})
    assert first["deviation"] == pytest.approx(31 / 300)
    assert first["within"] is False
    assert second["within"] is True
    assert third["ours"] is third["deviation"] is third["within"] is None


def test_data_that_are_not_here_are_said(monkeypatch):
    monkeypatch.delenv("FMVIZ_DATA", raising=False)
    table3 = ARTEFACTS["atarashi2021_table3"]
    repro = Reproduction(table3.configured("quick"), sets=table3.sets)
    assert repro.available("drawn ratings") == ["drawn ratings"]
    assert [note.split()[0] for note in repro.notes] == ["ML100K", "a9a", "RCV1", "FD", "Drawn"]
    assert all(note.endswith(".") for note in repro.notes)
    assert "FMVIZ_DATA is not set" in repro.notes[0]
    assert "Drawn ratings replace ML100K, a9a, RCV1, FD" in repro.notes[-1]


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


# What is kept of a run that was cut off


def score_by_seed(own, seed):
    if seed == own.get("broken"):
        raise ValueError("Seed 1 is too large. Take a smaller one.")
    yield "test", {"data": "x", "method": "m", "bases": 3, "seed": seed, "score": float(seed)}


def tiny(**settings):
    """An artefact of three trials."""
    artefact, settings = ARTEFACTS["blondel2016_fig3"], {"seeds": 3, "data": [], **settings}
    runner = partial(
        over_grid, work=score_by_seed, trials=partial(trials_of, grid={"seed": "seeds"}), alone=False
    )
    return replace(
        artefact, name="tiny", runner=runner, settings=settings, budgets={"quick": {}}, judging=lambda *_: ()
    )


def test_a_trial_that_fails_is_a_row_and_tried_again(tmp_path):
    last = tiny(broken=1).run("quick", n_jobs=1, folder=tmp_path)
    assert (last.state, [row["seed"] for row in last.tables["test"]]) == ("complete", [0, 2])
    (row,) = last.tables["failures"]
    assert (row["seed"], row["message"]) == (1, "Seed 1 is too large. Take a smaller one.")
    assert "see the table of failures" in last.differences[-1]
    last = tiny().run("quick", n_jobs=1, folder=tmp_path)
    assert [row["seed"] for row in last.tables["test"]] == [0, 2, 1]


def test_data_that_change_between_trials_are_noted():
    repro = Reproduction({})
    repro.add(*(use("x", np.full((2, 2), value)) for value in (1.0, 1.0, 2.0)))
    assert [row["data"] for row in repro.tables["data"]] == ["x"]
    assert repro.notes == ["x differed between trials: repeat the run."]


def test_a_stopped_command_resumes_and_a_complete_one_leaves_no_pieces(monkeypatch, tmp_path):
    monkeypatch.setattr(base, "FOLDER", tmp_path)
    pieces = tiny().pieces("quick")
    stopped = tiny().run(n_jobs=1, folder=pieces, report=cut_off(2))
    assert (stopped.state, len([*pieces.rglob("output.pkl")])) == ("stopped", 2)
    # Neither of another protocol, nor of another artefact.
    assert pieces not in (tiny(drawn=5).pieces("quick"), replace(tiny(), name="another").pieces("quick"))
    last = reproduced(tiny(), "quick", 1, tmp_path / "results")
    assert (last.state, [row["seed"] for row in last.tables["test"]]) == ("complete", [0, 1, 2])
    assert not pieces.exists()


def test_short_names():
    names = summaries()
    assert full_name("fig2", names) == full_name("atarashi2021_fig2", names) == "atarashi2021_fig2"
    assert full_name("table3a", names) == full_name("table3b", names) == "atarashi2021_table3"
    assert full_name("blondel2016_fig2", names) == "blondel2016_fig2"
    with pytest.raises(ValueError, match=r"no 'fig99'; there are atarashi2021_fig1, "):
        full_name("fig99", names)


# -------------------------------------------------------------------------------------- courses of objectives


def test_times_are_read_off_the_way_down():
    rows = [
        {"panel": "p", "method": m, "epoch": e, "seconds": float(e), "objective": o}
        for m, path in (("a", (1.0, 0.109, 0.1)), ("b", (1.0, 0.5, 0.2)))
        for e, o in enumerate(path)
    ]
    times = times_to({"trace": rows}, panel="p")
    assert times.T.to_dict() == {"early": {"a": 1.0, "b": np.inf}, "late": {"a": 2.0, "b": np.inf}}
    assert times_to({}, panel="p").empty


def test_what_nobody_reached_settles_nothing():
    never, once = {"a": np.inf, "b": np.inf}, {"a": 1.0, "b": np.inf}
    assert ahead(pd.DataFrame([never, never]), ["a"], ["b"]) == "not settled"
    times = pd.DataFrame([once, never])
    assert ahead(times, ["a"], ["b"], 100.0) == "holds"
    assert ahead(times, ["b"], ["a"]) == "does not hold"
    assert ahead(pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.0]}), ["a"], ["b"]) == "not settled"


def test_runs_are_cut_short_while_their_objective_falls():
    courses = {"fast": (1.0, 0.5, 0.5, 0.5, 0.5), "slow": (1.0, 0.9, 0.8, 0.7, 0.6)}
    rows = [
        {"panel": "p", "seed": 0, "method": m, "seconds": float(e), "objective": o}
        for m, path in courses.items()
        for e, o in enumerate(path)
    ]
    assert cut_short({"trace": rows}, "p", "all")
    assert not cut_short({"trace": rows}, "p", "lowest"), "the lowest objective is known"
    assert cut_short({"trace": [{**row, "objective": -row["seconds"]} for row in rows]}, "p", "lowest")
    assert not cut_short({}, "p", "all")
