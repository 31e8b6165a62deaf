"""Runs of artefacts that were cut off, and go on."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from lab.tiny_papers import TINY

from fmviz.lab.papers import ARTEFACTS, Result, results
from fmviz.lab.papers.reproduction import Reproduction, Stopped, key_of
from fmviz.lab.papers.results import StoredPieces, last_kept, run_and_keep, unfinished
from fmviz.lab.store import RunStore
from fmviz.lab.store.results import kept_results

LONG = [
    *(f"atarashi2021_{name}" for name in ("fig3", "fig4", "fig5", "fig7", "fig8", "fig9", "table3")),
    "blondel2016_fig3",
    "blondel2016_fig4",
]

FEWER = {
    "atarashi2021_fig3": {"settings": ["feature selection"], "n_samples": [20], "methods": ["TI", "SLQR"]}
}


class Kept(dict):
    """Pieces in memory, which count what is added."""

    added = 0

    def keep(self, key: str, value: Any) -> None:
        self[key] = json.loads(json.dumps(value))
        self.added += 1


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs.sqlite")


def tiny_fig4():
    artefact = ARTEFACTS["atarashi2021_fig4"]
    return replace(artefact, budgets={"quick": {**artefact.budgets["quick"], **TINY[artefact.name]}})


def numbers(result: Result) -> dict:
    """The tables without what a clock says."""
    clocks = ("seconds", "settled")
    return {
        name: [{k: v for k, v in row.items() if k not in clocks} for row in rows]
        for name, rows in result.tables.items()
    }


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", LONG)
def test_a_run_that_was_cut_off_comes_to_the_same(name):
    artefact, full, parts = ARTEFACTS[name], Kept(), Kept()
    few = TINY[name] | FEWER.get(name, {})
    *_, uninterrupted = artefact.run("quick", n_jobs=1, pieces=full, **few)
    half = max(1, full.added // 2)
    results = artefact.run("quick", n_jobs=1, pieces=parts, should_stop=lambda: parts.added >= half, **few)
    *_, stopped = results
    assert stopped.state == "stopped"
    assert half <= parts.added < full.added
    *_, known = artefact.run("quick", n_jobs=1, pieces=parts, so_far=True, **few)
    assert known.state == "stopped"
    assert stopped.done <= known.done < known.total
    assert half <= parts.added < full.added, "nothing is made"
    *_, last = artefact.run("quick", n_jobs=1, pieces=parts, **few)
    assert (last.state, last.done) == ("complete", last.total)
    assert numbers(last) == numbers(uninterrupted)
    assert parts.added == full.added, "nothing is done twice"
    assert last.seconds > stopped.seconds


def test_failures_are_tried_again():
    def work(items):
        for place, item in enumerate(items):
            yield place, {"failure": "lost"} if item == "bad" else {"value": item}

    kept = Kept()
    artefact = dict(Reproduction({}, pieces=kept).resumed(["a", "bad", "b"], key_of, work))
    assert artefact == {0: {"value": "a"}, 1: {"failure": "lost"}, 2: {"value": "b"}}
    assert sorted(kept) == sorted([key_of("a"), key_of("b")])
    seen = []

    def again(items):
        seen.extend(items)
        return work(items)

    second = list(Reproduction({}, pieces=kept).resumed(["a", "bad", "c"], key_of, again))
    assert seen == ["bad", "c"]
    assert [index for index, _ in second] == [0, 1, 2]


def test_a_piece_is_the_rows_that_it_adds():
    kept = Kept()

    def repro(stopped=False):
        return Reproduction({}, should_stop=lambda: stopped, pieces=kept)

    def steps(at):
        at.row("a", x=1)
        yield "message"
        at.row("b", x=2.5)

    cut = repro(stopped=True)
    with pytest.raises(Stopped):
        list(cut.once(("k",), lambda: steps(cut)))
    assert not kept, "what was stopped is not kept"
    artefact = repro()
    artefact.row("a", x=0)
    assert list(artefact.once(("k",), lambda: steps(artefact))) == ["message"]
    second = repro()
    assert list(second.once(("k",), lambda: steps(second))) == []
    assert second.tables == {"a": [{"x": 1}], "b": [{"x": 2.5}]}


def test_pieces_lie_beside_the_run_store(store):
    tiny = tiny_fig4()
    pieces = StoredPieces(tiny, "quick", store)
    assert len(pieces) == 0
    assert not (store.path.parent / "papers").exists(), "to look makes no folder"
    assert pieces.get("k") is None
    pieces.keep("k", {"a": [0.1, np.nan]})
    again = StoredPieces(tiny, "quick", store)
    assert again.get("k")["a"][0] == 0.1
    assert np.isnan(again.get("k")["a"][1])
    assert (again.get("another"), len(again)) == (None, 1)
    # Neither of another protocol, nor of another version of the program, nor of another artefact.
    for other in (
        replace(tiny, settings={**tiny.settings, "lambda_p": 3.0}),
        replace(tiny, version=2),
        replace(tiny, name="another"),
    ):
        assert StoredPieces(other, "quick", store).get("k") is None
    again.drop()
    assert (again.get("k"), len(pieces)) == (None, 0)


def test_the_oldest_pieces_go_first(store, monkeypatch):
    tiny = tiny_fig4()
    for artefact, age in ((tiny, 100), (replace(tiny, name="another"), 0)):
        pieces = StoredPieces(artefact, "quick", store)
        pieces.keep("k", "x" * 10_000)
        for path in pieces._folder.rglob("output.pkl"):
            os.utime(path, (time.time() - age,) * 2)
    monkeypatch.setattr(results, "MOST_BYTES", "15K")
    pieces.trim()
    assert (unfinished(tiny, "quick", store), len(pieces)) == (0, 1)


def test_a_store_with_a_table_of_pieces_opens(tmp_path):
    path = tmp_path / "old.sqlite"
    RunStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE pieces (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    store = RunStore(path)
    assert unfinished(tiny_fig4(), "quick", store) == 0
    store.close()


def test_a_kept_result_takes_the_place_of_its_pieces(store):
    tiny = tiny_fig4()
    stop = iter([False] * 4)
    *_, stopped = run_and_keep(tiny, "quick", lambda: store, lambda: next(stop, True), n_jobs=1)
    assert stopped.state == "stopped"
    assert unfinished(tiny, "quick", store) > 0
    assert not kept_results(store)
    *_, last = run_and_keep(tiny, "quick", lambda: store, n_jobs=1)
    assert last.state == "complete"
    assert last_kept(tiny, "quick", store).tables == last.to_dict()["tables"]
    assert unfinished(tiny, "quick", store) == 0


def test_a_fresh_run_forgets_the_pieces(store):
    tiny = tiny_fig4()
    StoredPieces(tiny, "quick", store).keep("k", {"seconds": 100.0, "value": {}})
    *_, stopped = run_and_keep(tiny, "quick", lambda: store, lambda: True, n_jobs=1, fresh=True)
    assert stopped.seconds < 100.0
    assert unfinished(tiny, "quick", store) == 0
