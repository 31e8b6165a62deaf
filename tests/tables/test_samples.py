"""Random samples of the rows of large tables, and the progress of their fits."""

from __future__ import annotations

import io
import time

import numpy as np
import pandas as pd
import pytest

from fmviz.cli._terminal import Progress
from fmviz.paths import validation
from fmviz.tables import limits
from fmviz.tables.files import read

N = 4_000


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, b, noise = rng.normal(size=(3, N))
    words = [f'a "{i}",\nb' if i % 7 == 0 else f"w{i}" for i in range(N)]
    return pd.DataFrame({"row": range(N), "a": a, "b": b, "word": words, "y": a * b + 0.1 * noise})


def parquet_of(table: pd.DataFrame) -> bytes:
    sink = io.BytesIO()
    table.to_parquet(sink, row_group_size=700)
    return sink.getvalue()


def csv_of(table: pd.DataFrame) -> bytes:
    return b"# from a register\nA title\n" + table.to_csv(index=False).encode()


def libsvm_of(table: pd.DataFrame) -> bytes:
    return "".join(f"{y} 1:{i} 2:{a}\n" for i, a, y in zip(table.row, table.a, table.y, strict=True)).encode()


@pytest.mark.parametrize("written", [parquet_of, csv_of, libsvm_of])
@pytest.mark.parametrize("limit", [{"rows": 1_000}, {"cells": 5_000}])
def test_a_large_table_is_read_by_a_random_sample_of_its_rows(table, written, limit):
    within, data = limits.Limits(**limit, samples=True), written(table)
    source = read(data, within=within)
    n = len(source)
    assert n in (1_000, 2_500)
    assert source.notes[0] == f"{n:,} of 4,000 rows, drawn at random."
    drawn = source.table if source.X is None else pd.DataFrame(source.X.toarray(), columns=["row", "a"])
    rows = drawn["row"].astype(int).to_numpy()
    assert drawn["a"].astype(float).to_numpy() == pytest.approx(table["a"][rows].to_numpy())
    if source.X is None:
        assert drawn["word"].tolist() == table["word"][rows].tolist()
    # In ascending order, from all parts of the file, and the same each time.
    assert (np.diff(rows) > 0).all()
    assert np.histogram(rows, 4, (0, N))[0] == pytest.approx(n / 4, rel=0.15)
    assert read(data, within=within).notes == source.notes
    with pytest.raises(ValueError, match="more than"):
        read(data, within=limits.Limits(**limit))


def test_a_sample_is_reported_and_its_size_is_an_option(table, tmp_path, monkeypatch, command):
    table.iloc[:, 1:].drop(columns="word").to_parquet(tmp_path / "data.parquet")
    monkeypatch.setattr(limits, "COMMAND", limits.Limits(rows=500, samples=True))
    fit = "fit", tmp_path / "data.parquet", "--target", "y", "--lambda-sparse", "0.01", "--max-epochs", "5"
    for option, rows in (((), 500), (("--no-limits", "--rows", "900"), 900), (("--rows", "900"), 900)):
        said = command(*fit, *option, "--output", tmp_path / "out").out
        assert f"{rows:,} of 4,000 rows, drawn at random." in said
    assert "drawn at random" not in command(*fit, "--no-limits").out
    assert "--rows 0 is too small" in command(*fit, "--rows", "0", code=2).err
    # A prediction is made for every row.
    assert "more than 500 rows" in command("predict", tmp_path / "out", tmp_path / "data.parquet", code=2).err
    assert len(command("predict", tmp_path / "out", fit[1], "--no-limits").out.splitlines()) == N + 1


def test_a_log_gets_a_line_at_intervals(capsys):
    with Progress(0.01) as progress:
        progress.tell("Encoding")
        printed = ""
        while printed.count("s: Encoding\n") < 2:
            time.sleep(0.01)
            printed += capsys.readouterr().err
    assert "\r" not in printed


@pytest.mark.parametrize("groups", [None, np.arange(N) // 4])
@pytest.mark.parametrize("stratified", [False, True])
def test_strengths_are_chosen_on_a_random_sample_of_many_rows(groups, stratified, monkeypatch):
    monkeypatch.setattr(validation, "_MANY_ROWS", 500)
    monkeypatch.setattr(validation, "MOST_ROWS", 1_000)
    y = np.where(np.arange(N) % 3, 1.0, -1.0)
    folds = validation.default_folds(y, stratified, np.random.default_rng(0), groups)
    assert [(train.size, held_out.size) for train, held_out in folds] == [(750, 250)]
    for part in folds[0]:
        assert part.mean() == pytest.approx(N / 2, rel=0.25)
