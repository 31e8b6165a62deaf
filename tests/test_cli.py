"""The entry point of the command line, and ``fmviz paper``."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from fmviz.__main__ import main
from fmviz.cli import COMMANDS, paper
from fmviz.lab.papers import Result, shipped_result, summaries

NAME = "atarashi2021_fig2"


def test_every_command_has_help(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert all(name in said for name in COMMANDS)


def test_list(command):
    _, *rows = command("paper", "list").out.splitlines()
    assert [row.split()[0] for row in rows] == list(summaries())
    (row,) = (re.split(" {2,}", row) for row in rows if row.startswith(f"{NAME} "))
    assert row[1].startswith("Fig. 2: proximal operators")
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", row[2])
    assert row[3:] == ["full", "7 holds, 1 does not hold"]


def test_a_shipped_result_is_printed_and_written(command, tmp_path):
    folder = tmp_path / "new" / "folder"
    text = command("paper", "fig2", "--output", folder).out
    assert f"`python -m papers {NAME} --budget full`" in text
    assert "- DOES NOT HOLD – TI by columns (Eq. 30): Used features: 200 at" in text
    assert "| TI by rows, seed = 0, log2_lambda = 7, features | 200 | 200 | 0 | yes |" in text
    assert "- An interaction counts as used where" in text
    assert (folder / f"{NAME}.md").read_text(encoding="utf-8") == text.rstrip("\n")
    result = Result.from_dict(json.loads((folder / f"{NAME}.json").read_text(encoding="utf-8")))
    assert result == shipped_result(NAME)
    assert "plotly" in (folder / f"{NAME}.html").read_text(encoding="utf-8")


def test_an_unknown_paper_is_refused(command):
    assert "no 'nothing'; there are atarashi2021_fig1, " in command("paper", "nothing", code=2).err


@pytest.mark.parametrize(("number", "printed"), [(80, True), (81, False)])
def test_long_tables_are_left_to_the_file(number, printed):
    rows = [{"a": 10_000 + i} for i in range(number)]
    text = paper.report(replace(shipped_result(NAME), tables={"long": rows}))
    assert (f"{number} rows." in text) is not printed
    assert text.count("| 10") == (number if printed else 0)
