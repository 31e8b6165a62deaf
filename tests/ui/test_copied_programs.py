"""What "Copy as Python" copies, run as a program of its own, gives the numbers on the page."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from programs import run_afresh
from streamlit.testing.v1 import AppTest
from ui.driving import figures, finish, page, run_here, words

from fmviz.lab.background.workers import WORKERS

SMALL = {"dataset": "balance_scale", "rank": "3", "lambda_p": "0.001", "lambda_sparse": "0.001"}


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    monkeypatch.setattr(WORKERS, "most", 0)


def copied(app: AppTest) -> str:
    """Return the program on the page; its first lines name the data by their hash, and the versions."""
    (code,) = [block.value for block in app.code if block.language == "python"]
    assert re.search(r"^# data .+ [0-9a-f]{16,}(,|$)", code, re.MULTILINE)
    assert re.search("^# made with fmviz .*numba ", code, re.MULTILINE)
    return code


def same_counts(app: AppTest, said: str) -> None:
    interactions = re.findall(
        r"\*\*([\d,]+)\*\*", words(app).partition("Remaining interactions")[2].partition("\n")[0]
    )
    shown = zip(interactions, re.findall(r"of Q, ([\d,]+) features?", words(app)), strict=True)
    printed = re.findall(r"\) (\d+) (\d+) ", said)
    assert [tuple(x.replace(",", "") for x in pair) for pair in shown] == printed
    assert interactions


def same_figures(app: AppTest, said: str) -> None:
    shown = figures(app)
    printed = dict(re.findall(r"^(epoch|objective|used \w+) (\S+)$", said, re.MULTILINE))
    assert f"{int(printed['epoch']):,}" == shown["Epoch"]
    assert f"{float(printed['objective']):.5g}" == shown["Objective"]
    assert f"{int(printed['used features']):,}" == shown["Features"]
    assert f"{int(printed['used interactions']):,}" == shown["Interactions"]


def same_means(app: AppTest, said: str) -> None:
    table = app.dataframe[0].value
    lines = [line.split() for line in said.splitlines()[2:]]
    assert len(lines) == len(table)
    # The last four: mean, its deviation, interactions, theirs.
    for line, (_, row) in zip(lines, table.iterrows(), strict=True):
        assert float(line[-4]) == pytest.approx(row["mean"], rel=1e-4)
        assert float(line[-2]) == pytest.approx(row["interactions"])


def same_duel(app: AppTest, said: str) -> None:
    table = app.dataframe[-1].value.sort_values("label")
    printed = re.findall(r"lambda (\S+), (\d+) interactions, (\d+) features", said)
    assert len(printed) == len(table)
    for (strength, pairs, features), (_, row) in zip(printed, table.iterrows(), strict=True):
        assert float(strength) == pytest.approx(row["λ"], rel=1e-5)
        assert (int(pairs), int(features)) == (row["interactions"], row["Features"])


def same_path(app: AppTest, said: str) -> None:
    table = app.dataframe[-1].value
    lines = [line.split() for line in said.splitlines()[1:]]
    assert len(lines) == len(table) == 6
    for (_, strength, pairs, features, objective), (_, row) in zip(lines, table.iterrows(), strict=True):
        assert float(strength) == pytest.approx(row["lambda_sparse"], rel=1e-5)
        assert (int(pairs), int(features)) == (row["used_interactions"], row["used_features"])
        assert float(objective) == pytest.approx(row["objective"], rel=1e-4)


STATES: dict[str, tuple[str, dict[str, str], str, Callable[[AppTest, str], None]]] = {
    "prox": (
        "prox",
        {"d": "40", "k": "5", "seed": "3", "regularizers": "l1,ti,cs", "log2lambda": "-2"},
        "",
        same_counts,
    ),
    "pasted prox": (
        "prox",
        {"source": "pasted", "matrix": "3 0.5\n-2 1\n0.5 -0.2\n0.1 2.5\n", "log2lambda": "0"},
        "",
        same_counts,
    ),
    "two blocks, powers": (
        "prox",
        {
            "d": "30",
            "k": "4",
            "distribution": "two_blocks",
            "regularizers": "ti_power,ti_rows",
            "degree": "4",
        },
        "",
        same_counts,
    ),
    "machine": (
        "train",
        {**SMALL, "seed": "7", "changes": "5:lambda_sparse:0.01"},
        "train_play",
        same_figures,
    ),
    "machine, one epoch": (
        "train",
        {**SMALL, "regularizer": "cs", "solver": "pbcd"},
        "train_step",
        same_figures,
    ),
    "stochastic, kept-out rows": (
        "train",
        {**SMALL, "solver": "psgd", "validation": "0.3", "max_epochs": "12", "seed": "2"},
        "train_play",
        same_figures,
    ),
    "third order": ("train", {**SMALL, "model": "hofm", "max_epochs": "15"}, "train_play", same_figures),
    "convex": (
        "train",
        {**SMALL, "model": "qr", "regularizer": "l1", "max_epochs": "30"},
        "train_play",
        same_figures,
    ),
    "sweep": (
        "sweeps",
        {"dataset": "balance_scale", "penalties": "ti,l21", "points": "2", "seeds": "2", "starts": "random"},
        "sweeps_start",
        same_means,
    ),
    "duel": (
        "compare",
        {"dataset": "balance_scale", "target": "10", "fighters": "ti,cs", "seed": "1"},
        "compare_duel",
        same_duel,
    ),
    "path": (
        "path",
        {"dataset": "balance_scale", "penalties": "ti,cs", "points": "3", "high": "0.1", "seed": "1"},
        "path_start",
        same_path,
    ),
}
AFRESH = ("two blocks, powers", "machine")


@pytest.mark.sample(3)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.faultless
def test_the_copied_program_gives_the_numbers_on_the_page(store, state, tmp_path):
    name, query, press, agree = STATES[state]
    app = page(name, **query)
    if press:
        finish(app, press)
    code = copied(app)
    agree(app, run_afresh("-c", code, folder=tmp_path) if state in AFRESH else run_here(code, tmp_path))
