"""Runs of artefacts that were cut off, and go on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from lab.tiny_papers import TINY

from fmviz.lab.papers import ARTEFACTS, Result, results
from fmviz.lab.papers.checkpoints import Memory, key_of, resumed
from fmviz.lab.papers.reproduction import Reproduction
from fmviz.lab.papers.results import (
    last_kept,
    pieces_of,
    run_and_keep,
    unfinished,
)
from fmviz.lab.store import RunStore
from fmviz.lab.store.results import StoredPieces, kept_results

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

    seconds, added = 0.0, 0

    def put(self, key: str, value: Any, seconds: float) -> None:
        self[key] = json.loads(json.dumps(value))
        self.seconds = seconds
        self.added += 1


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs.sqlite")


def tiny_fig4():
    one = ARTEFACTS["atarashi2021_fig4"]
    return replace(one, budgets={"quick": {**one.budgets["quick"], **TINY[one.name]}})


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
    one, whole, parts = ARTEFACTS[name], Kept(), Kept()
    few = TINY[name] | FEWER.get(name, {})
    *_, uninterrupted = one.run("quick", n_jobs=1, pieces=whole, **few)
    half = max(1, whole.added // 2)
    results = one.run("quick", n_jobs=1, pieces=parts, should_stop=lambda: parts.added >= half, **few)
    *_, stopped = results
    assert stopped.state == "stopped"
    assert half <= parts.added < whole.added
    *_, known = one.run("quick", n_jobs=1, pieces=parts, so_far=True, **few)
    assert known.state == "stopped"
    assert stopped.done <= known.done < known.total
    assert half <= parts.added < whole.added, "nothing is made"
    *_, last = one.run("quick", n_jobs=1, pieces=parts, **few)
    assert (last.state, last.done) == ("complete", last.total)
    assert numbers(last) == numbers(uninterrupted)
    assert parts.added == whole.added, "nothing is done twice"
    assert last.seconds > stopped.seconds


def test_failures_are_tried_again():
    def work(items):
        for place, item in enumerate(items):
            yield place, {"failure": "lost"} if item == "bad" else {"value": item}

    kept = Kept()
    first = dict(resumed(Memory(kept), ["a", "bad", "b"], key_of, work))
    assert first == {0: {"value": "a"}, 1: {"failure": "lost"}, 2: {"value": "b"}}
    assert sorted(kept) == sorted([key_of("a"), key_of("b")])
    seen = []

    def again(items):
        seen.extend(items)
        return work(items)

    second = list(resumed(Memory(kept), ["a", "bad", "c"], key_of, again))
    assert seen == ["bad", "c"]
    assert [index for index, _ in second] == [0, 1, 2]


def test_a_piece_is_the_rows_that_it_adds():
    kept = Kept()

    def repro(stopped=False):
        return Reproduction({}, 1, lambda: stopped, Memory(kept))

    def steps(at):
        at.row("a", x=1)
        yield "one"
        at.row("b", x=2.5)

    cut = repro(stopped=True)
    assert list(cut.once("k", lambda: steps(cut))) == ["one"]
    assert not kept, "what was stopped is not kept"
    first = repro()
    first.row("a", x=0)
    assert list(first.once("k", lambda: steps(first))) == ["one"]
    assert kept == {"k": {"a": [{"x": 1}], "b": [{"x": 2.5}]}}
    second = repro()
    assert list(second.once("k", lambda: steps(second))) == []
    assert second.tables == kept["k"]
    assert second.memory.recalled == 1


def test_pieces_in_the_store(store):
    pieces = StoredPieces(store, "x", "full", "protocol")
    assert (pieces.get("k"), len(pieces), pieces.seconds) == (None, 0, 0.0)
    pieces.put("k", {"a": [0.1, np.nan]}, 3.5)
    again = StoredPieces(store, "x", "full", "protocol")
    assert again.get("k")["a"][0] == 0.1
    assert np.isnan(again.get("k")["a"][1])
    assert (len(again), again.seconds) == (1, 3.5)
    for other in (("y", "full", "protocol"), ("x", "quick", "protocol"), ("x", "full", "another")):
        assert StoredPieces(store, *other).get("k") is None
    again.drop()
    assert again.get("k") is None
    assert len(StoredPieces(store, "x", "full", "protocol")) == 0


def test_a_kept_result_takes_the_place_of_its_pieces(store, monkeypatch):
    tiny = tiny_fig4()
    stop = iter([False] * 4)
    *_, stopped = run_and_keep(tiny, "quick", lambda: store, lambda: next(stop, True), n_jobs=1)
    assert stopped.state == "stopped"
    done = unfinished(tiny, "quick", store)
    assert done == len(pieces_of(tiny, "quick", store)) > 0
    assert not kept_results(store)
    # Pieces that another version of a package has made are left alone.
    with monkeypatch.context() as patch:
        patch.setattr(results, "made_with", lambda: {"numpy": "0"})
        assert unfinished(tiny, "quick", store) == 0
    *_, last = run_and_keep(tiny, "quick", lambda: store, n_jobs=1)
    assert last.state == "complete"
    assert last_kept(tiny, "quick", store).tables == last.to_dict()["tables"]
    assert unfinished(tiny, "quick", store) == 0


def test_a_fresh_run_forgets_the_pieces(store):
    tiny = tiny_fig4()
    pieces_of(tiny, "quick", store).put("k", {}, 100.0)
    *_, stopped = run_and_keep(tiny, "quick", lambda: store, lambda: True, n_jobs=1, fresh=True)
    assert stopped.seconds < 100.0
    assert unfinished(tiny, "quick", store) == 0
