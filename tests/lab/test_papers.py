"""Artefacts of papers: what all of them promise, and the protocol of each."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from lab.tiny_papers import TINY

from fmviz.figures.papers import draw
from fmviz.lab.papers import ARTEFACTS, BUDGETS, Result, base, find, results
from fmviz.lab.papers.base import over_grid, trials_of
from fmviz.lab.papers.reproduction import Reproduction, use
from fmviz.lab.papers.results import kept_results, last_kept, run_and_keep, unfinished
from tools.results import keep_shipped


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
def test_our_numbers_are_drawn_and_their_verdicts_stay(name):
    (budget,) = (budget for artefact, budget in results.shipped_results() if artefact == name)
    ours = Result.from_dict(results.shipped_result(name, budget))
    assert last_kept(ARTEFACTS[name], budget) == ours, "it is of the protocol of today, and judged alike"
    assert ours.checks
    assert draw(ours.tables, **ARTEFACTS[name].picture).data
    assert results.heads()[name]["picture"].startswith("<svg ")
    assert not re.search(r"(?<![\w/:.])/(work|tmp|home|root)\b", json.dumps(ours.to_dict()))


def test_our_results_are_of_runs_that_came_to_their_end():
    for name, head in results.heads().items():
        ours = results.shipped_result(name, head["budget"])
        assert (ours["state"], ours["done"]) == ("complete", ours["total"]), name


def test_our_results_are_small():
    assert sum(path.stat().st_size for path in results.FOLDER.glob("*.gz")) < 1_500_000


def test_a_result_is_shipped_and_read_back(monkeypatch, tmp_path):
    ours = last_kept(ARTEFACTS["atarashi2021_fig10"], "full")
    last = replace(ours, settings={"data": ["here", "elsewhere"]}, data={"here": "1f"})
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    try:
        results.heads.cache_clear()
        keep_shipped(last.to_dict(), 5.2, "<svg></svg>")
        assert results.shipped_result(last.artefact, "quick") is None
        assert Result.from_dict(results.shipped_result(last.artefact, "full")) == last
        (kept,) = results.shipped_results().values()
        assert (kept.created, kept.without, kept.shipped) == (5, ("elsewhere",), True)
        assert sum(kept.verdicts.values()) == len(last.checks)
        with pytest.raises(ValueError, match="another protocol"):
            last_kept(ARTEFACTS[last.artefact], "full")
    finally:
        results.heads.cache_clear()


def numbers(result: Result) -> dict:
    """The tables in a known order, without what a clock says."""
    clocks = ("seconds", "settled", "microseconds")
    return {
        table: sorted(
            json.dumps({k: v for k, v in row.items() if k not in clocks}, sort_keys=True) for row in rows
        )
        for table, rows in result.tables.items()
    }


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ARTEFACTS)
def test_a_tiny_run_grows_is_cut_off_and_comes_to_the_same(name, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "PAUSE", 0.0)
    artefact = ARTEFACTS[name]
    run = partial(artefact.run, "quick", n_jobs=1, **TINY[name])
    *before, last = run()
    assert [result.state for result in before] == ["running"] * len(before) != []
    assert [result.done for result in before] == sorted(result.done for result in before)
    assert (last.state, last.done) == ("complete", last.total)
    assert {row["data"] for row in last.tables["data"]} == set(last.data)
    assert {check.statement for check in last.checks} == {said.key for said in artefact.statements}
    assert all(check.measured.endswith(".") for check in last.checks)
    assert {"python", "numpy", "fmviz"} <= set(last.versions)
    text = json.dumps(last.to_dict(), allow_nan=False)
    back = Result.from_dict(json.loads(text))
    assert json.dumps(back.to_dict(), allow_nan=False) == text
    assert tuple(artefact.judge(back.tables, back.settings)) == last.checks
    draw(back.tables, **artefact.picture)

    half = []
    for result in run(folder=tmp_path, should_stop=lambda: bool(half) and half[-1] >= last.total // 2):
        half.append(result.done)
    assert (result.state, result.done < last.total) == ("stopped", True)
    assert {check.verdict for check in result.checks} == {"not settled"}, "a part of a run settles nothing"
    *_, known = run(folder=tmp_path, should_stop=lambda: True)
    assert known.state == "stopped"
    assert numbers(known) == numbers(result), "nothing is lost, and nothing made"
    resumed = [result.done for result in run(folder=tmp_path)]
    assert resumed[-1] == last.total
    *_, again = run(folder=tmp_path, should_stop=lambda: True)
    assert again.state == "complete", "nothing is made twice"
    assert numbers(again) == numbers(last)
    assert again.seconds > result.seconds


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


def test_short_names():
    assert find("fig2") is find("atarashi2021_fig2") is ARTEFACTS["atarashi2021_fig2"]
    assert find("table3a") is find("table3b") is ARTEFACTS["atarashi2021_table3"]
    assert find("blondel2016_fig2") is ARTEFACTS["blondel2016_fig2"]
    with pytest.raises(ValueError, match=r"Unknown artefact 'fig99'; available: atarashi2021_fig1, "):
        find("fig99")


def test_data_that_are_not_here_are_said(monkeypatch):
    monkeypatch.delenv("FMVIZ_DATA", raising=False)
    table3 = ARTEFACTS["atarashi2021_table3"]
    repro = Reproduction(table3.configured("quick"), sets=table3.sets)
    assert repro.available("drawn ratings") == ["drawn ratings"]
    assert [note.split()[0] for note in repro.notes] == ["ML100K", "a9a", "RCV1", "FD", "Drawn"]
    assert all(note.endswith(".") for note in repro.notes)
    assert "FMVIZ_DATA is not set" in repro.notes[0]
    assert "replace ML100K, a9a, RCV1, FD" in repro.notes[-1]


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
    *_, last = tiny(broken=1).run("quick", n_jobs=1, folder=tmp_path)
    assert (last.state, [row["seed"] for row in last.tables["test"]]) == ("complete", [0, 2])
    (row,) = last.tables["failures"]
    assert (row["seed"], row["message"]) == (1, "Seed 1 is too large. Take a smaller one.")
    assert "see the table of failures" in last.differences[-1]
    *_, last = tiny().run("quick", n_jobs=1, folder=tmp_path)
    assert [row["seed"] for row in last.tables["test"]] == [0, 2, 1]


def test_data_that_change_between_trials_are_noted():
    repro = Reproduction({})
    repro.add(*(use("x", np.full((2, 2), value)) for value in (1.0, 1.0, 2.0)))
    assert [row["data"] for row in repro.tables["data"]] == ["x"]
    assert repro.notes == ["x differed between trials: run again."]


def test_a_kept_result_takes_the_place_of_its_trials(store):
    stop = iter([False, False])
    *_, stopped = run_and_keep(tiny(), "quick", lambda: store, lambda: next(stop, True), n_jobs=1)
    assert (stopped.state, stopped.done, unfinished(tiny(), "quick", store)) == ("stopped", 2, 2)
    assert not kept_results(store)
    # Neither of another protocol, nor of another artefact.
    for other in (tiny(drawn=5), replace(tiny(), name="another")):
        assert unfinished(other, "quick", store) == 0
    *_, last = run_and_keep(tiny(), "quick", lambda: store, n_jobs=1)
    assert last.state == "complete"
    assert last_kept(tiny(), "quick", store).tables == last.to_dict()["tables"]
    assert unfinished(tiny(), "quick", store) == 0


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such permissions")
def test_trials_that_somebody_else_may_have_written_are_not_read(store, monkeypatch):
    papers = store.path.parent / "papers"
    papers.mkdir()
    papers.chmod(0o755)
    *_, last = run_and_keep(tiny(), "quick", lambda: store, n_jobs=1)
    assert (last.state, oct(papers.stat().st_mode & 0o777)) == ("complete", "0o700")
    papers.chmod(0o770)
    with pytest.raises(ValueError, match=r"writable by others.* Remove it, or choose another run store"):
        next(run_and_keep(tiny(), "quick", lambda: store, n_jobs=1))
    papers.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: papers.stat().st_uid + 1)
    with pytest.raises(ValueError, match="belongs to another user"):
        next(run_and_keep(tiny(), "quick", lambda: store, n_jobs=1))


def test_the_oldest_trials_go_first(store, monkeypatch):
    for artefact, age in ((tiny(), 100), (replace(tiny(), name="another"), 0)):
        *_, _ = artefact.run("quick", n_jobs=1, folder=results.folder_of(artefact, "quick", store))
        for path in results.folder_of(artefact, "quick", store).rglob("output.pkl"):
            os.utime(path, (time.time() - age,) * 2)
    size = sum(path.stat().st_size for path in store.path.parent.rglob("joblib/another-quick/**/[mo]*.*"))
    monkeypatch.setattr(results, "MOST_BYTES", f"{size / 1024 + 0.1}K")
    next(run_and_keep(replace(tiny(), name="third"), "quick", lambda: store, n_jobs=1))
    assert unfinished(tiny(), "quick", store) == 0
    assert unfinished(replace(tiny(), name="another"), "quick", store) == 3
