"""The entry point of the command line, and ``fmviz paper``."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace

import pytest
from fmviz.lab.papers.results import Kept, kept_results

from fmviz.__main__ import main
from fmviz.cli import COMMANDS, paper
from fmviz.lab import papers
from fmviz.lab.papers import Artefact, Result, Statement
from fmviz.lab.store import RunStore, default_path


def runner(repro):
    repro.total = 2
    for seed in range(2):
        repro.add(("test", {"data": "x", "method": "m", "bases": 3, "seed": seed, "score": 0.5 + seed}))
        repro.done += 1
        yield f"start {seed}"


def judge(tables, settings):
    best = max((row["score"] for row in tables.get("test", ())), default=0.0)
    yield "high", "x", ("holds" if best > 1 else "not settled", f"The best score is {best}.")


MADE_UP = Artefact(
    name="made_up",
    paper="Nobody, Nowhere",
    title="A title",
    statements=(Statement("high", "Scores are high.", "1"),),
    differences=("Nothing is the same.",),
    settings={"k": 3},
    budgets={"quick": {}, "full": {}},
    minutes={"quick": 0.1, "full": 0.1},
    runner=runner,
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
def registry(monkeypatch, tmp_path):
    monkeypatch.setattr(papers, "ARTEFACTS", {"made_up": MADE_UP})
    monkeypatch.setenv("FMVIZ_STORE", str(tmp_path / "runs.sqlite"))


def kept() -> Kept:
    store = RunStore(default_path())
    (result,) = kept_results(store).values()
    store.close()
    return result


def test_every_command_has_help(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert all(name in said for name in COMMANDS)


def test_list(command):
    def last_row() -> list[str]:
        return re.split(" {2,}", command("paper", "list").out.splitlines()[-1])

    assert last_row() == ["made_up", "A title"]
    command("paper", "made_up", "--jobs", "1")
    *_, when, checks = last_row()
    assert when == time.strftime("%Y-%m-%d %H:%M, quick", time.localtime(kept().created))
    assert checks == "1 holds"


def test_a_paper_is_printed_and_written(command, tmp_path):
    folder = tmp_path / "new" / "folder"
    text = command("paper", "made_up", "--output", folder, "--jobs", "1").out
    assert "- HOLDS – x: The best score is 1.5." in text
    assert "| x, seed = 1, score | 1.2 | 1.5 | 0.25 | no | Table 9 |" in text
    assert "| x | m | 3 | 1 | 1.5 |" in text
    assert "- Nothing is the same." in text
    assert (folder / "made_up.md").read_text(encoding="utf-8") == text.rstrip("\n")
    result = Result.from_dict(json.loads((folder / "made_up.json").read_text(encoding="utf-8")))
    assert result.state == "complete"
    assert "plotly" in (folder / "made_up.html").read_text(encoding="utf-8")


ASKED: list[int] = []


def score(own, seed):
    ASKED.append(seed)
    if ASKED == [0, 1]:
        raise KeyboardInterrupt
    yield "test", {"data": "x", "method": "m", "bases": 3, "seed": seed, "score": 0.5 + seed}


def interrupted(repro):
    yield from repro.fill(score, [{"seed": 0}, {"seed": 1}], alone=True)


def test_ctrl_c_leaves_what_is_finished(command, monkeypatch, tmp_path):
    ASKED.clear()
    monkeypatch.setitem(papers.ARTEFACTS, "made_up", replace(MADE_UP, runner=interrupted))
    line = ("paper", "made_up", "--jobs", "1", "--output", tmp_path)
    said = command(*line, code=130)
    assert said.err.endswith("Stopped. Repeat the command to resume.\n")
    assert "Budget: quick, stopped after" in said.out
    assert "quick, 1 done" in command("paper", "list").out
    assert "The best score is 1.5." in command(*line).out
    assert ASKED == [0, 1, 1]
    kept()


def test_a_result_that_cannot_be_kept_is_printed(command, tmp_path):
    file = tmp_path / "file"
    file.write_text("no database " * 500)
    said = command("paper", "made_up", "--jobs", "1", "--store", file, code=1)
    assert "- HOLDS – x: The best score is 1.5." in said.out
    assert "is complete but could not be kept" in said.err
    assert "Traceback" not in said.err


def test_what_is_unknown_is_refused(command):
    assert "there are made_up" in command("paper", "nothing", code=2).err
    assert "n_jobs = 0" in command("paper", "made_up", "--jobs", "0", code=2).err


@pytest.mark.parametrize(("number", "printed"), [(80, True), (81, False)])
def test_long_tables_are_left_to_the_file(number, printed):
    rows = [{"a": 10_000 + i} for i in range(number)]
    *_, result = MADE_UP.run()
    text = paper.report(MADE_UP, Result.from_dict({**result.to_dict(), "tables": {"long": rows}}))
    assert (f"{number} rows." in text) is not printed
    assert text.count("| 10") == (number if printed else 0)
