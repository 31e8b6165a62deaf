"""The command ``python -m papers``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from fmviz.lab.papers import Result
from papers import ARTEFACTS, Artefact, Claim, __main__, base
from papers.base import over_grid, trials_of

ASKED: list[int] = []


def score(own, seed):
    ASKED.append(seed)
    if own["interrupted"] and ASKED == [0, 1]:
        raise KeyboardInterrupt
    yield "test", {"data": "x", "method": "m", "bases": 3, "seed": seed, "score": 0.5 + seed}


def judge(tables, settings):
    best = max((row["score"] for row in tables.get("test", ())), default=0.0)
    yield "high", "x", ("holds" if best > 1 else "not settled", f"The best score is {best}.")


EXAMPLE = Artefact(
    name="example",
    paper="Nobody, Nowhere",
    title="A title",
    statements=(Claim("high", "Scores are high.", "1"),),
    differences=("Nothing is the same.",),
    settings={"seeds": 2, "interrupted": False},
    budgets={"quick": {}, "full": {}},
    minutes={"quick": 0.1, "full": 0.1},
    runner=partial(over_grid, work=score, trials=partial(trials_of, grid={"seed": "seeds"}), alone=True),
    judging=judge,
    picture={
        "kind": "lines",
        "table": "test",
        **{"panel": "data", "x": "bases", "y": "score", "x_title": "k", "y_title": "score"},
    },
    published=(
        {
            "table": "test",
            "where": {"data": "x", "seed": 1},
            "column": "score",
            "value": 1.2,
            "source": "Table 9",
        },
    ),
)


@pytest.fixture(autouse=True)
def example(monkeypatch, tmp_path):
    monkeypatch.setitem(ARTEFACTS, "example", EXAMPLE)
    monkeypatch.setattr(base, "FOLDER", tmp_path)
    ASKED.clear()


@pytest.fixture
def command(capsys, tmp_path) -> Callable[..., Any]:
    def run(*line: str, code: int = 0) -> Any:
        assert __main__.main([*line, "--jobs", "1", "--output", str(tmp_path / "new" / "folder")]) == code
        return capsys.readouterr()

    return run


def test_a_result_is_printed_and_written(command, tmp_path):
    printed = command("example")
    assert printed.err.startswith("A title: ")
    text = printed.out
    assert "`python -m papers example --budget quick`" in text
    assert "- HOLDS – x: The best score is 1.5." in text
    assert "| x, seed = 1, score | 1.2 | 1.5 | 0.25 | no | Table 9 |" in text
    assert "| x | m | 3 | 1 | 1.5 |" in text
    assert "- Nothing is the same." in text
    stem = tmp_path / "new" / "folder" / "example"
    assert stem.with_suffix(".md").read_text(encoding="utf-8") == text.rstrip("\n")
    result = Result.from_dict(json.loads(stem.with_suffix(".json").read_text(encoding="utf-8")))
    assert result.state == "complete"
    assert "plotly" in stem.with_suffix(".html").read_text(encoding="utf-8")


def test_ctrl_c_leaves_what_is_finished(command, monkeypatch):
    settings = {**EXAMPLE.settings, "interrupted": True}
    monkeypatch.setitem(ARTEFACTS, "example", replace(EXAMPLE, settings=settings))
    said = command("example", code=130)
    assert said.err.endswith("Stopped. Repeat the command to resume.\n")
    assert "Budget: quick, stopped after" in said.out
    assert "The best score is 0.5." in said.out
    assert "The best score is 1.5." in command("example").out
    assert ASKED == [0, 1, 1]


def test_what_is_unknown_is_refused(command, tmp_path):
    assert "there are atarashi2021_fig1, " in command("nothing", code=2).err
    (tmp_path / "new").write_text("a file")
    assert "new" in command("example", code=2).err


def test_a_number_of_workers_is_refused(capsys, tmp_path):
    assert __main__.main(["example", "--jobs", "0", "--output", str(tmp_path)]) == 2
    assert "n_jobs = 0" in capsys.readouterr().err
