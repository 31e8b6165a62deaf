"""Tables that are read, encoded and stored by batches of rows."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from pyarrow import feather

from fmviz import TableEncoder
from fmviz.lab.store import rows
from fmviz.paths.validation import finished
from fmviz.tables import batches
from fmviz.tables.batches import TableFile, TableSample
from fmviz.tables.encoded import applied
from fmviz.tables.files import read
from fmviz.tables.recipe import first_recipe, learned
from fmviz.tables.source import Source

N = 1_200


@pytest.fixture
def table():
    """Return words, numbers, dates and a target; some words are rare, and some cells missing."""
    rng = np.random.default_rng(0)
    words = pd.Series(rng.choice(["Bonn", "Kiel", "Ulm", "Kiel "], N)).mask(rng.random(N) < 0.1)
    words[[5, 300, 301, 302, 303, 304, 305]] = ["Jena", "Gera", "Gera", *["Trier"] * 4]
    moments = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "h")
    number = rng.normal(size=N).round(3)
    y = pd.Series(number + (words == "Kiel") + rng.normal(size=N)).mask(np.arange(N) < 150)
    return pd.DataFrame({"town": words, "size": number, "day": moments, "n": rng.integers(0, 40, N), "y": y})


@pytest.fixture
def parquet(table, tmp_path, monkeypatch):
    """Return a file of the table, which is read by batches of 100 rows."""
    monkeypatch.setattr(batches, "_BATCH_CELLS", 500)
    table.to_parquet(tmp_path / "big.parquet", row_group_size=250)
    return TableFile(tmp_path / "big.parquet")


def by_batches(table, n, y=None):
    encoder = TableEncoder()
    for begin in range(0, len(table), n):
        encoder.partial_fit(table[begin : begin + n], None if y is None else y[begin : begin + n])
    return encoder


def store(file, folder):
    """Return the steps of storing the rows of a file."""

    def learn(sample: TableSample):
        source, columns = Source(file.reading, sample.table), sample.columns()
        recipe = replace(first_recipe(source, columns), target="y", numbers="8 hats and 32 bins")
        return learned(source, recipe, None, columns, sample.words)

    return rows.stored_rows(file, folder, learn)


def test_batches_that_fit_into_the_sample_are_encoded_as_the_table(table):
    X, y = table.drop(columns="y")[150:], table["y"][150:].to_numpy()
    for target in (None, y, np.where(y > 0.0, "yes", "no")):
        encoder = by_batches(X, 100, target)
        assert encoder.to_dict() == TableEncoder().fit(X, target).to_dict()
    assert encoder.partial_fit(X[["town", "size", "day", "n"]]).n_features_in_ == 4
    assert encoder.fit(X[:500]).to_dict() == TableEncoder().fit(X[:500]).to_dict()
    with pytest.raises(ValueError, match="Give all batches the same columns"):
        by_batches(X, 100).partial_fit(X[["size"]])


def test_levels_are_counted_in_all_rows_and_the_sample_does_not_depend_on_the_batches(table, monkeypatch):
    table["user"] = [f"u{place % 400}" for place in range(N)]
    expected = {c.name: c for c in TableEncoder(rare=3).fit(table).columns_}
    monkeypatch.setattr(batches, "_SAMPLE_ROWS", 60)
    encoder = by_batches(table, 7).set_params(rare=3)
    assert expected["town"].levels == encoder.columns_[0].levels == ("Bonn", "Kiel", "Trier", "Ulm")
    # Every word is unique in the sample, and in three rows of the table.
    assert encoder.columns_[-1].levels == expected["user"].levels
    assert encoder.to_dict() == by_batches(table, 500).set_params(rare=3).to_dict()


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv"])
def test_cells_of_batches_are_those_of_the_file(kind, table, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "_BATCH_CELLS", 500)
    path = tmp_path / f"big.{kind}"
    table["note"] = 'He said, "so\nwhat?"'
    table["nested"] = [[1, 2]] * N if kind != "csv" else "?"
    write = {"feather": feather.write_feather, "csv": lambda t, path: t.to_csv(path, index=False)}
    write.get(kind, pd.DataFrame.to_parquet)(table, path)
    expected = table.drop(columns="nested") if kind == "feather" else read(path.read_bytes()).columns
    file = TableFile(path)
    pd.testing.assert_frame_equal(pd.concat(file.batches(), ignore_index=True), expected)
    part = pd.concat(file.batches(["town", "y"], 777), ignore_index=True)
    pd.testing.assert_frame_equal(part, expected[["town", "y"]][777:].reset_index(drop=True))
    assert file.n_rows == pytest.approx(N, rel=0.1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x1f\x8b\x08", "gzip, which cannot be read by batches. Save it as Parquet"),
        (b"1 1:2 3:4\n0 1:1\n", "libsvm, which cannot be read by batches"),
        (b"Prices of 2024\n\na,b\n1,2\n2,3\n", "has comments, titles, units or blanks around its cells"),
        (b"a, b\n1, 2\n2, 3\n", "blanks around its cells"),
        (b"PAR1broken", "cannot be read by batches .*Save it again"),
    ],
)
def test_other_files_are_refused(data, message, tmp_path):
    (tmp_path / "big").write_bytes(data)
    with pytest.raises(ValueError, match=message):
        TableFile(tmp_path / "big")


def test_stored_rows_are_those_of_the_table(table, parquet, tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "_PART_ROWS", 250)
    messages = [rows.cost(parquet)]
    stored = finished(store(parquet, tmp_path / "rows"), messages.append)
    encoded = applied(Source(parquet.reading, table), stored.target, stored.encoder)
    X = [source() for source in pickle.loads(pickle.dumps(stored.sources))]
    # The first batch has no target.
    assert [part.shape[0] for part in X] == [50, 200, 300, 200, 300]
    assert abs(sp.vstack(X) - sp.csr_array(encoded.X)).max() == 0.0
    assert np.array_equal(stored.y, encoded.y)
    assert "1,200 rows, which are read in two passes" in messages[0]
    assert messages[-1].startswith("Encoding big.parquet: 1,200 of 1,200 rows")
    stored.delete()
    assert not stored.folder.exists()


def test_an_interrupted_encoding_continues(parquet, tmp_path):
    folder, messages = rows.folder_of(parquet, {"target": "y"}), list[str]()
    expected = finished(store(parquet, tmp_path / "all"))
    steps = store(parquet, folder)
    assert any(message.startswith("Encoding big.parquet: 500 of") for message in steps)
    steps.close()
    # A batch that the end of the process cut off.
    (folder / "new_1.npz").write_bytes(b"PK")
    stored = finished(store(parquet, folder), messages.append)
    assert messages[0].startswith("Encoding big.parquet: 600 of")
    assert stored.encoder.to_dict() == expected.encoder.to_dict()
    each = zip(stored.batches, expected.batches, strict=True)
    assert all((a.name, a.read_bytes()) == (b.name, b.read_bytes()) for a, b in each)
    # Other options, and another version of the file.
    others = {rows.folder_of(parquet, {"target": "x"}), folder}
    os.utime(parquet.path, (1, 1))
    assert len({rows.folder_of(parquet, {"target": "y"}), *others}) == 3


def test_the_disk_has_a_limit(parquet, tmp_path, monkeypatch):
    monkeypatch.setenv("FMVIZ_DISK", "1 kB")
    with pytest.raises(ValueError, match=r"need about .* kB on disk, more than 1 kB.*Raise FMVIZ_DISK"):
        finished(store(parquet, tmp_path / "rows"))
