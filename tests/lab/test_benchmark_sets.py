"""a9a, RCV1 and flight delay: read from files of their form, made up for the purpose."""

from __future__ import annotations

import bz2
import lzma

import numpy as np
import pytest

from fmviz.lab.catalog import load
from fmviz.lab.datasets import DATASETS, flight_delay
from fmviz.lab.papers.atarashi2021 import A9A, parts

SETS = {
    "a9a": ("a9a", ("a9a", "a9a.t"), 123),
    "rcv1": ("rcv1", ("rcv1_train.binary", "rcv1_test.binary"), 47_236),
}
TRAIN = "-1 3:1 11:1 \n+1 1:1 123:0.5\n-1 2:0 7:1\n"
TEST = "+1 5:1\n-1 3:2\n"


@pytest.fixture(params=SETS)
def libsvm(request, tmp_path, monkeypatch):
    folder, files, d = SETS[request.param]
    place = tmp_path / folder
    place.mkdir()
    for name, text in zip(files, (TRAIN, TEST), strict=True):
        (place / name).write_text(text, newline="\n")
    monkeypatch.setenv("FMVIZ_DATA", str(tmp_path))
    return request.param, place, files, d


def test_libsvm_text_is_read(libsvm):
    name, _, _, d = libsvm
    data = load(name)
    assert data.X.shape == (3, d)
    assert data.y.tolist() == [-1.0, 1.0, -1.0]
    rows, columns = data.X.nonzero()
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == [
        (0, 2),
        (0, 10),
        (1, 0),
        (1, 122),
        (2, 6),
    ]
    assert data.X[1, 122] == 0.5
    assert data.X.nnz == 5  # the stored zero is gone
    assert data.feature_names[122] == "feature 123"


def test_libsvm_parts(libsvm):
    name, *_ = libsvm
    assert load(name, part="test").y.tolist() == [1.0, -1.0]
    both = load(name, part="both")
    assert both.y.tolist() == [-1.0, 1.0, -1.0, 1.0, -1.0]
    assert both.X[4, 2] == 2.0
    with pytest.raises(ValueError, match="part = 'all' is not known; choose one of train, test, both"):
        load(name, part="all")


@pytest.mark.parametrize(("ending", "pack"), [(".xz", lzma.compress), (".bz2", bz2.compress)])
def test_libsvm_compressed(libsvm, ending, pack):
    name, place, files, _ = libsvm
    plain = load(name, part="both")
    for file in files:
        (place / f"{file}{ending}").write_bytes(pack((place / file).read_bytes()))
        (place / file).unlink()
    packed = load(name, part="both")
    assert (packed.X != plain.X).nnz == 0
    assert np.array_equal(packed.y, plain.y)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"must hold rows with the labels -1 and \+1 alone"),
        ("0 1:1\n+1 2:1\n", r"must hold rows with the labels -1 and \+1 alone"),
        ("+1 1:1 x\n", "cannot be read as LIBSVM text"),
        ("+1 0:1\n", "cannot be read as LIBSVM text"),
        ("+1 47237:1\n", "cannot be read as LIBSVM text"),
    ],
)
def test_libsvm_says_what_is_wrong(libsvm, text, message):
    name, place, files, _ = libsvm
    (place / files[0]).write_text(text, newline="\n")
    with pytest.raises(ValueError, match=message):
        load(name)
    (place / files[0]).unlink()
    (place / f"{files[0]}.xz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match="cannot be read as LIBSVM text"):
        load(name)


def test_libsvm_says_what_is_missing(libsvm):
    name, place, files, _ = libsvm
    (place / files[1]).unlink()
    with pytest.raises(ValueError, match=rf"lacks {files[1]}\. Download .* folder named {place.name}"):
        load(name)


def test_a9a_as_distributed():
    if (reason := DATASETS["a9a"].unavailable()) is not None:
        pytest.skip(reason)
    known, unseen = load("a9a"), load("a9a", part="test")
    assert (known.X.shape, unseen.X.shape) == ((32_561, 123), (16_281, 123))
    assert ((known.y > 0).sum(), (unseen.y > 0).sum()) == (7_841, 3_846)
    assert set(np.unique(known.X.data)) == {1.0}
    split = parts(A9A, 0, 0)
    assert [y.size for _, y in split[1:]] == [26_048, 6_513, 16_281]


# Flight delay

HEAD = ",".join(flight_delay.COLUMNS)
FLIGHTS = {
    "train-1m.csv": ("c-8,c-21,c-7,1934,AA,ATL,DFW,732,N", "c-4,c-20,c-3,5,US,PIT,NA,834,Y"),
    "test.csv": ("c-1,c-2,c-5,2400,AA,DFW,ATL,1,N",),
}


@pytest.fixture
def flights(tmp_path, monkeypatch):
    place = tmp_path / "flight_delay"
    place.mkdir()
    for name, lines in FLIGHTS.items():
        (place / name).write_text("\n".join([HEAD, *lines, ""]), newline="\n")
    monkeypatch.setenv("FMVIZ_DATA", str(tmp_path))
    return place


def test_flight_delay_is_encoded(flights):
    data = load("flight_delay", part="both")
    assert data.feature_names == (
        "Month=1", "Month=4", "Month=8", "DayofMonth=2", "DayofMonth=20", "DayofMonth=21",
        "DayOfWeek=3", "DayOfWeek=5", "DayOfWeek=7", "hour=0", "hour=19", "hour=24",
        "minute, tens=0", "minute, tens=3", "UniqueCarrier=AA", "UniqueCarrier=US",
        "Origin=ATL", "Origin=DFW", "Origin=PIT", "Dest=ATL", "Dest=DFW", "Dest=NA", "log_distance",
    )  # fmt: skip
    told = {
        frozenset(name for name, x in zip(data.feature_names, row, strict=True) if x): (row[-1], y)
        for row, y in zip(data.X.toarray(), data.y, strict=True)
    }
    late = frozenset(
        {
            "Month=4", "DayofMonth=20", "DayOfWeek=3", "hour=0", "minute, tens=0", "UniqueCarrier=US",
            "Origin=PIT", "Dest=NA", "log_distance",
        }
    )  # fmt: skip
    # The logarithms of 732 and 834 miles, standardised by the two training rows.
    assert told[late] == (pytest.approx(1.0), 1.0)
    assert sorted(y for _, y in told.values()) == [-1.0, -1.0, 1.0]


def test_flight_delay_has_the_same_columns_in_all_parts(flights):
    known, unseen = load("flight_delay"), load("flight_delay", part="test")
    assert (known.X.shape, unseen.X.shape) == ((2, 23), (1, 23))
    assert known.feature_names == unseen.feature_names
    assert unseen.y.tolist() == [-1.0]


def test_flight_delay_draws_rows(flights, monkeypatch):
    lines = [f"c-8,c-{1 + i % 28},c-7,1934,AA,ATL,DFW,{i + 2},N" for i in range(60)]
    (flights / "train-1m.csv").write_text("\n".join([HEAD, *lines]), newline="\n")
    monkeypatch.setattr(flight_delay, "FILES", {"train-1m.csv": 20, "test.csv": 5})
    one, same, other = load("flight_delay"), load("flight_delay"), load("flight_delay", seed=1)
    assert one.X.shape[0] == 20
    assert np.array_equal(one.X.toarray(), same.X.toarray())
    distances = [set(data.X.toarray()[:, -1]) for data in (one, other)]
    assert len(distances[0]) == 20
    assert distances[0] != distances[1]


def test_flight_delay_reads_compressed_files(flights):
    plain = load("flight_delay", part="both")
    for path in list(flights.iterdir()):
        (flights / f"{path.name}.bz2").write_bytes(bz2.compress(path.read_bytes()))
        path.unlink()
    assert np.array_equal(load("flight_delay", part="both").X.toarray(), plain.X.toarray())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Month\nc-1\n", "its columns are Month"),
        (f"{HEAD}\nc-8,c-21,c-7,1934,AA,ATL,DFW,732,maybe\n", "something other than Y and N"),
        (f"{HEAD}\nAugust,c-21,c-7,1934,AA,ATL,DFW,732,N\n", r"train-1m\.csv cannot be read"),
        (f"{HEAD}\nc-8,c-21,c-7,1934,AA,ATL,DFW,0,N\n", "Distance = 0 has no logarithm"),
        (f"{HEAD}\nc-8,c-21,c-7,1975,AA,ATL,DFW,9,N\n", "hours and minutes, HHMM"),
    ],
)
def test_flight_delay_says_what_is_wrong(flights, text, message):
    (flights / "train-1m.csv").write_text(text, newline="\n")
    with pytest.raises(ValueError, match=message):
        load("flight_delay")


def test_flight_delay_says_what_is_missing(flights):
    (flights / "test.csv").unlink()
    with pytest.raises(ValueError, match=r"lacks test\.csv\. Make train-1m\.csv and test\.csv"):
        load("flight_delay")


def test_classes_of_libsvm_text_are_numbered_from_one(tmp_path, monkeypatch):
    monkeypatch.setenv("FMVIZ_DATA", str(tmp_path))
    (tmp_path / "letter").mkdir()
    for name, text in (("letter.scale", "1 1:0.5 16:-1\n26 2:1\n"), ("letter.scale.t", "3 4:1\n")):
        (tmp_path / "letter" / name).write_text(text)
    data = load("letter", part="both")
    assert data.X.shape == (3, 16)
    assert data.X[0, 15] == -1.0
    assert [data.class_labels[int(c)] for c in data.y] == ["A", "Z", "C"]
    (tmp_path / "letter" / "letter.scale").write_text("27 1:1\n")
    with pytest.raises(ValueError, match="must hold rows with the labels 1 to 26 alone"):
        load("letter")


def test_classes_of_arff_text_are_scaled_and_parted(tmp_path, monkeypatch):
    monkeypatch.setenv("FMVIZ_DATA", str(tmp_path))
    (tmp_path / "vowel").mkdir()
    numbers = [",".join(str(i + j) for j in range(10)) for i in range(3)]
    rows = [f"Train,Andrew,Male,{numbers[0]},hid", f"Train,Bill,Male,{numbers[1]},had"]
    rows.append(f"Test,Jo,Female,{numbers[2]},hid")
    text = "\n".join(["% a comment", "@relation vowel", "@attribute 'Class' { hid, had}", "@DATA", *rows, ""])
    (tmp_path / "vowel" / "vowel.arff.xz").write_bytes(lzma.compress(text.encode()))
    data = load("vowel")
    assert data.y.tolist() == [0.0, 5.0]
    assert data.X.tolist() == [[-1.0] * 10, [0.0] * 10]
    assert data.scaling_of(3).decode(1.0) == 5.0
    assert load("vowel", part="test").X.tolist() == [[1.0] * 10]
    (tmp_path / "vowel" / "vowel.arff.xz").write_bytes(lzma.compress(b"@data\n1,2,had\n"))
    with pytest.raises(ValueError, match=r"vowel\.arff\.xz cannot be read"):
        load("vowel")
