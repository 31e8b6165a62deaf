"""The registry of data sets: a contract for all, and properties of each."""

from __future__ import annotations

import bz2
import importlib.util
import lzma
import pickle
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from small_tables import dense

import fmviz.datasets
from fmviz.lab.catalog import dataset_spec, load
from fmviz.lab.datasets import DATASETS, Dataset, drawn, make_sparse_interactions, readers
from fmviz.lab.experiment import suggested
from fmviz.lab.runner import Run

SAMPLE_DATA = Path(__file__).resolve().parents[2] / "sample_data"
SHAPES = {
    "planted_interactions": (200, 100),
    "planted_features": (200, 100),
    "planted_triples": (500, 30),
    "planted_subsets": (500, 30),
    "planted_classes": (1_000, 24),
    "synthetic": (200, 100),
    "monks1": (432, 17),
    "balance_scale": (625, 4),
    "flights": (20_000, 155),
    "bike": (8_734, 51),
    "diabetes": (442, 10),
    "breast_cancer": (569, 30),
    "iris": (150, 4),
    "wine": (178, 13),
    "digits": (1_797, 61),
    "abalone": (4_177, 8),
    "movielens_100k": (100_000, 2_625),
    "a9a": (32_561, 123),
    "rcv1": (20_242, 47_236),
    "flight_delay": (20_000, None),  # as many levels as there are in the rows drawn
    "vowel": (528, 10),
    "segment": (2_310, 18),
    "satimage": (4_435, 36),
    "letter": (15_000, 16),
}
NAMES = list(SHAPES)


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("sample_data_build", SAMPLE_DATA / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def data_folder(monkeypatch, tmp_path):
    """Return a folder for files of data sets, which are looked for nowhere else."""
    monkeypatch.setattr(readers, "SAMPLE_DATA", tmp_path / "absent")
    monkeypatch.setenv("FMVIZ_DATA", str(tmp_path))
    return tmp_path


def write(folder, **files):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="latin-1", newline="\n")


def compress(folder, ending):
    pack = {".xz": lzma.compress, ".bz2": bz2.compress}[ending]
    for path in list(folder.iterdir()):
        (folder / f"{path.name}{ending}").write_bytes(pack(path.read_bytes()))
        path.unlink()


_loaded = cache(load)


def available(name, **params):
    reason = dataset_spec(name).unavailable()
    if reason is not None:
        pytest.skip(reason)
    return _loaded(name, **params)


# The registry


def test_registry_holds_exactly_these_sets():
    assert list(DATASETS) == NAMES
    assert fmviz.datasets.list_datasets() == NAMES
    assert (fmviz.datasets.load, fmviz.datasets.Dataset) == (load, Dataset)
    usable = fmviz.datasets.list_datasets(available_only=True)
    assert usable == [name for name in NAMES if dataset_spec(name).unavailable() is None]


@pytest.mark.parametrize("name", NAMES)
def test_spec(name):
    spec = dataset_spec(name)
    assert spec.name == name
    assert spec.title
    assert spec.description.endswith(".")
    assert spec.source
    assert spec.licence
    assert {"rank", "lambda_w", "lambda_p", "lambda_sparse", "regularizer", "solver", "loss"} <= set(
        spec.suggested
    )
    assert spec.suggested["solver"] == "auto"
    assert spec.suggested["loss"] == ("squared" if spec.task == "regression" else "logistic")
    assert all(param.help.endswith(".") for param in spec.params)
    assert all(param.check(param.default) == param.default for param in spec.params)


@pytest.mark.parametrize("name", NAMES)
def test_dataset_contract(name):
    data = available(name)
    n, d = data.X.shape
    assert SHAPES[name] in (data.X.shape, (n, None))
    assert (data.name, data.title, data.task) == (name, dataset_spec(name).title, dataset_spec(name).task)
    assert (data.source, data.licence) == (dataset_spec(name).source, dataset_spec(name).licence)
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.y.shape == (n,)
    assert np.isfinite(data.y).all()
    if sp.issparse(data.X):
        assert isinstance(data.X, sp.csr_array)
        assert data.X.has_canonical_format
        assert np.isfinite(data.X.data).all()
        assert (data.X.data != 0).all()
    else:
        assert data.X.flags.c_contiguous
        assert np.isfinite(data.X).all()
    assert len(data.feature_names) == len(set(data.feature_names)) == d
    assert len(data.groups) == d
    assert all(type(text) is str for text in (*data.feature_names, *data.groups))
    if data.task == "binary":
        assert set(data.y) == {-1.0, 1.0}
        assert len(data.class_labels) == 2
    elif data.task == "class":
        assert set(data.y) == {*range(len(data.class_labels))}
        assert data.outputs == data.class_labels
    else:
        assert data.class_labels is None
        assert len(set(data.y)) > 2
    groups = np.array(data.groups)
    columns = data.X.tocsc() if sp.issparse(data.X) else data.X
    for group in dict.fromkeys(data.groups):
        if (groups == group).sum() > 1:
            block = columns[:, np.flatnonzero(groups == group)]
            assert np.isin(dense(block), (0.0, 1.0)).all() if d < 1_000 else set(block.data) == {1.0}
            assert (block.sum(axis=1) == 1).all()
    # Training rows alone need not have every level of the test rows.
    parts = {"part": "both"} if "part" in {param.name for param in dataset_spec(name).params} else {}
    X = available(name, **parts).X
    square = X.multiply(X) if sp.issparse(X) else X**2
    assert (np.asarray(square.mean(axis=0)) > np.asarray(X.mean(axis=0)) ** 2).all()
    if data.truth is not None:
        for truth in data.truth if data.outputs else [data.truth]:
            assert truth.shape == (d, d)
            assert np.array_equal(truth, truth.T)
            assert not np.diag(truth).any()
        assert data.true_pairs is None
    if data.true_pairs is not None:
        assert all(0 <= i < j < d for i, j in data.true_pairs)
        assert len(set(data.true_pairs)) == len(data.true_pairs) > 0


@pytest.mark.parametrize("name", NAMES)
def test_loading_twice_gives_the_same(name):
    first, two = available(name), load(name)
    assert pickle.dumps((dense(first.X[:500]), first.y)) == pickle.dumps((dense(two.X[:500]), two.y))


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("monk1", {}, r"The data set = 'monk1' is not known; choose one of .*Did you mean 'monks1'"),
        ("monks1", {"seed": 1}, "has no parameter 'seed'; it takes flipped, swapped, errors_seed"),
        ("synthetic", {"n_samples": 5}, "n_samples = 5 must be a whole number from 20 to 20000"),
    ],
)
def test_unknown_names_and_parameters_are_refused(name, params, message):
    with pytest.raises(ValueError, match=message):
        load(name, **params)


# The generator, against the definition in the paper


def test_generated_target_is_the_sum_over_pairs():
    X, y, W = make_sparse_interactions(50, 12, 3, 5, noise=0.0, random_state=1)
    brute = sum(W[j, k] * X[:, j] * X[:, k] for j, k in combinations(range(17), 2))
    np.testing.assert_allclose(y, brute, rtol=0, atol=1e-12)


@pytest.mark.parametrize("correlation", [-1 / 3, -0.2, 0.0, 0.2, 0.7, 1.0])
def test_generated_moments(correlation):
    n = 40_000
    X, y, W = make_sparse_interactions(n, 12, 3, 5, correlation=correlation, random_state=2)
    expected = np.where(W > 0, correlation, 0.0) + np.eye(17)
    tolerance = 5 * np.sqrt(2 / n)  # five standard errors of a variance
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=tolerance)
    np.testing.assert_allclose(X.T @ X / n, expected, atol=tolerance)
    noise = y - 0.5 * ((X @ W) * X).sum(axis=1)
    assert abs(noise.std() - 0.1) < 5 * 0.1 / np.sqrt(2 * n)
    assert abs(noise.mean()) < 5 * 0.1 / np.sqrt(n)
    assert np.abs(X.T @ noise).max() / n < 0.1 * tolerance


def test_generator_is_seeded_and_takes_a_generator(rng):
    first = make_sparse_interactions(random_state=3)
    assert [a.shape for a in first] == [(200, 100), (200,), (100, 100)]
    for again in (np.int64(3), np.random.default_rng(3)):
        assert all(
            np.array_equal(a, b)
            for a, b in zip(first, make_sparse_interactions(random_state=again), strict=True)
        )
    make_sparse_interactions(random_state=rng)
    assert not np.array_equal(first[0], make_sparse_interactions(random_state=rng)[0])
    assert not np.array_equal(make_sparse_interactions()[0], make_sparse_interactions()[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"d_true": 80, "b": 7},
            r"d_true = 80 is not divisible by b = 7; for this d_true, b can be 1, 2, 4, 5, 8, 10",
        ),
        ({"d_true": 8, "b": 8}, "leaves one feature per group"),
        ({"n_samples": 0}, "n_samples = 0 must be a whole number of at least 1"),
        ({"n_samples": 2.5}, "n_samples = 2.5 must be a whole number"),
        ({"d_true": 1, "b": 1}, "d_true = 1 must be a whole number of at least 2"),
        ({"b": 0}, "b = 0 must be a whole number of at least 1"),
        ({"d_noise": -1}, "d_noise = -1 must be"),
        ({"noise": -0.1}, "noise = -0.1 is out of range"),
        ({"noise": np.nan}, "noise = nan must be a finite number"),
        ({"correlation": 1.1}, "correlation = 1.1 is out of range: use a number from -0.111111 to 1"),
        ({"correlation": -0.2}, "correlation = -0.2 is out of range"),
        ({"random_state": -1}, "random_state = -1 must be None, a whole number of at least 0"),
        ({"random_state": "a"}, "random_state = 'a' must be None, a whole number"),
    ],
)
def test_generator_says_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_sparse_interactions(**arguments)


def test_synthetic_takes_its_parameters():
    data = load("synthetic", n_samples=30, d_true=6, b=2, d_noise=3, noise=0.0, correlation=0.5, seed=4)
    X, y, W = make_sparse_interactions(30, 6, 2, 3, noise=0.0, correlation=0.5, random_state=4)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.y, y)
    assert np.array_equal(data.truth, W)
    assert data.feature_names == (
        "g1_1", "g1_2", "g1_3", "g2_1", "g2_2", "g2_3", "noise_1", "noise_2", "noise_3"
    )  # fmt: skip


# The files


@pytest.mark.parametrize(
    "name", ["planted_interactions.csv", "planted_features.csv", "monks1.csv", "balance_scale.csv"]
)
def test_rebuilding_changes_nothing(build, name):
    assert name in build.GENERATED
    stored = (SAMPLE_DATA / name).read_bytes().replace(b"\r\n", b"\n")  # git may have changed the line ends
    assert build.content(build.GENERATED[name]()) == stored


@pytest.mark.parametrize(("name", "pairs"), [("planted_interactions", 360), ("planted_features", 190)])
def test_planted_truth_explains_the_target(name, pairs):
    data = load(name)
    assert np.triu(data.truth, 1).sum() == pairs
    residual = data.y - 0.5 * ((data.X @ data.truth) * data.X).sum(axis=1)
    assert 0.08 < residual.std() < 0.12
    assert set(np.unique(data.truth)) == {0.0, 1.0}
    interacting = data.truth.any(axis=0)
    assert all(
        label.startswith("noise") != used for label, used in zip(data.feature_names, interacting, strict=True)
    )


# MONK's 1 and the balance scale: the claims of their descriptions


def test_monks_rule_and_what_order_two_makes_of_it():
    data = load("monks1")
    column = {name: data.X[:, j] for j, name in enumerate(data.feature_names)}
    equal = sum(data.X[:, i] * data.X[:, j] for i, j in data.true_pairs)
    red = column["jacket_color=red"]
    assert len(data.true_pairs) == 3
    assert len(np.unique(data.X, axis=0)) == 432
    assert (data.y > 0).sum() == 216
    assert np.array_equal(data.y > 0, equal + red - equal * red == 1)
    assert np.array_equal(data.y > 0, equal + red - 0.5 > 0)  # order 2 classifies every row
    i, j = np.triu_indices(17, 1)
    order_two = np.column_stack([np.ones(432), data.X, data.X[:, i] * data.X[:, j]])
    target = (data.y > 0).astype(float)
    fit = order_two @ np.linalg.lstsq(order_two, target, rcond=None)[0]
    np.testing.assert_allclose(fit, 1 / 12 + 3 / 4 * equal + 2 / 3 * red, atol=1e-12)
    for name in drawn.MONKS:
        assert name in data.groups


def test_balance_scale_classes_and_pairs():
    data = load("balance_scale")
    frame = pd.read_csv(SAMPLE_DATA / "balance_scale.csv")
    assert frame["class"].value_counts().to_dict() == {"L": 288, "B": 49, "R": 288}
    assert np.array_equal(data.y > 0, frame["class"] == "L")
    assert (data.X.min(), data.X.max(), data.X.mean()) == (-2, 2, 0)
    (i, j), (k, m) = data.true_pairs
    assert [data.feature_names[t] for t in (i, j, k, m)] == [
        "left weight", "left distance", "right weight", "right distance"
    ]  # fmt: skip
    X = data.X
    order_two = X[:, i] * X[:, j] - X[:, k] * X[:, m] + X @ np.array([3.0, 3.0, -3.0, -3.0])
    assert np.array_equal(data.y > 0, order_two - 0.5 > 0)


# Flights


def test_flights_features_come_from_the_timetable():
    data = available("flights", date="words")
    frame = pd.read_csv(SAMPLE_DATA / "flights.csv", keep_default_na=False)
    assert set(data.groups) == {
        "month", "day", "day_of_week", "hour", "minute", "carrier", "origin", "dest", "distance"
    }  # fmt: skip
    assert data.class_labels == ("on time", "late")
    assert np.array_equal(data.y > 0, frame["late"] == 1)
    column = {name: dense(data.X[:, [j]])[:, 0] for j, name in enumerate(data.feature_names)}
    assert np.array_equal(column["carrier=UA"] == 1, frame["carrier"] == "UA")
    assert np.array_equal(column["month=Dec"] == 1, frame["month"] == 12)
    assert np.array_equal(column["hour=06"] == 1, frame["sched_dep_time"] // 100 == 6)
    assert np.array_equal(column["minute=50-59"] == 1, frame["sched_dep_time"] % 100 >= 50)
    np.testing.assert_allclose(1000 * np.exp(column["log_distance"]), frame["distance"], rtol=1e-12)
    # A column made of a delay would stand out: that at departure correlates with the target by more than 0.5.
    assert max(abs(np.corrcoef(values, data.y)[0, 1]) for values in column.values()) < 0.2
    numbers = available("flights")
    for j, name in enumerate(("month", "day")):
        assert numbers.scaling[j].decode(dense(numbers.X[:, [j]])[:, 0]) == pytest.approx(frame[name])
    assert numbers.row_groups.tolist() == frame.groupby(["month", "day"]).ngroup().tolist()
    assert dense(numbers.X[:, 2:]).tolist() == dense(data.X[:, 43:]).tolist()


def test_flights_without_a_checkout(data_folder):
    with pytest.raises(ValueError, match=r"needs the file flights\.csv.*FMVIZ_DATA"):
        load("flights")
    assert "flights" not in fmviz.datasets.list_datasets(available_only=True)
    text = (
        "month,day,day_of_week,sched_dep_time,carrier,origin,dest,distance,late\n"
        "1,1,Tue,610,DL,JFK,ATL,760,0\n12,31,Tue,2359,NA,EWR,NA,1000,1\n"
    )
    write(data_folder, **{"flights.csv": text})
    data = load("flights", date="words")
    assert data.y.tolist() == [-1.0, 1.0]
    assert "carrier=NA" in data.feature_names
    assert data.X.shape == (2, 12 + 31 + 7 + 2 + 6 + 2 + 2 + 2 + 1)
    write(data_folder, **{"flights.csv": text.replace("12,31", "13,31")})
    with pytest.raises(ValueError, match=r"flights\.csv cannot be read: month = 13 is not one of its levels"):
        load("flights")


# Bike sharing


def test_bikes_are_hours_whose_dates_stay_together():
    data, frame = available("bike"), pd.read_csv(SAMPLE_DATA / "bike.csv")
    assert not {"casual", "registered", "dteday"} & {*data.groups}
    assert data.groups.count("hr") == 24
    assert data.target_scaling.decode(data.y) == pytest.approx(frame["cnt"])
    train, held_out = ({*frame["dteday"][rows]} for rows in Run.prepare(suggested("bike")).rows)
    assert not train & held_out
    assert len(train | held_out) == 366
    assert len(held_out) == round(0.25 * 366)


# The medical tables


@pytest.mark.parametrize("name", ["diabetes", "breast_cancer"])
def test_medical_columns_are_standardised(name):
    data = load(name)
    np.testing.assert_allclose(data.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(data.X.std(axis=0), 1, rtol=1e-12)


# What is read from a folder of the user: small files of the same form, made up for the purpose

USERS = "1|24|M|technician|85711\n2|25|F|other|94043\n3|34|M|writer|T8H1N\n"
RATINGS = "1\t4\t5\t880000000\n3\t1\t1\t880000001\n2\t2\t3\t880000002\n1\t3\t4\t880000003\n"
FILMS = [
    (1, 'The "First" (1994)', "01-Jan-1994", (1, 5)),
    (2, "Café (1995)", "01-Jan-1995", (8,)),
    (3, "Twice (1995)", "01-Jan-1996", (8, 14)),
    (4, "Twice (1995)", "", (0,)),
]


FILM_LINES = "".join(
    f"{number}|{title}|{date}||http://example.org|{'|'.join(str(int(g in genres)) for g in range(19))}\n"
    for number, title, date, genres in FILMS
)
TRAIN = "-1 3:1 11:1 \n+1 1:1 123:0.5\n-1 2:0 7:1\n"
TEST = "+1 5:1\n-1 3:2\n"
HEAD = "Month,DayofMonth,DayOfWeek,DepTime,UniqueCarrier,Origin,Dest,Distance,dep_delayed_15min\n"
CLASSES = {"train": "1 1:0.5 16:-1\n6 2:1\n", "test": "3 4:1\n"}
NUMBERS = [",".join(str(i + j) for j in range(19)) for i in range(3)]
FILES = {
    "ml100k": {"u.data": RATINGS, "u.user": USERS, "u.item": FILM_LINES},
    "a9a": {"a9a": TRAIN, "a9a.t": TEST},
    "rcv1": {"rcv1_train.binary": TRAIN, "rcv1_test.binary": TEST},
    "flight_delay": {
        "train-1m.csv": f"{HEAD}c-8,c-21,c-7,1934,AA,ATL,DFW,732,N\nc-4,c-20,c-3,5,US,PIT,NA,834,Y\n",
        "test.csv": f"{HEAD}c-1,c-2,c-5,2400,AA,DFW,ATL,1,N\n",
    },
    "letter": {"letter.scale": CLASSES["train"], "letter.scale.t": CLASSES["test"]},
    "satimage": {"satimage.scale": CLASSES["train"], "satimage.scale.t": CLASSES["test"]},
    "vowel": {
        "vowel.arff": "% a comment\n@relation vowel\n@attribute 'Class' { hid, had}\n@DATA\n"
        f"Train,Andrew,Male,{NUMBERS[0][:19]},hid\nTrain,Bill,Male,{NUMBERS[1][:20]},had\n"
        f"Test,Jo,Female,{NUMBERS[2][:21]},hid\n"
    },
    "segment": {"segment.arff": f"@data\n{NUMBERS[0]},sky\n{NUMBERS[2]},grass\n"},
    "abalone": {
        "abalone.data": "".join(
            f"{'MFI'[i % 3]},{','.join(str(0.1 * ((i + 1) * j % 11)) for j in range(1, 8))},{i}\n"
            for i in range(9)
        )
    },
}
FOLDERS = {"movielens_100k": "ml100k", **{name: name for name in FILES if name != "ml100k"}}


@pytest.fixture
def made_up(data_folder):
    for folder, files in FILES.items():
        write(data_folder / folder, **files)
    return data_folder


@pytest.mark.parametrize(("name", "folder"), FOLDERS.items())
def test_what_is_missing_is_said(name, folder, made_up, monkeypatch):
    first, *others = FILES[folder]
    (made_up / folder / first).unlink()
    with pytest.raises(ValueError, match=rf"lacks {first}\. (Download|Create) .* folder named {folder},"):
        load(name)
    for other in others:
        (made_up / folder / other).unlink()
    with pytest.raises(ValueError, match=f"lacks {' and '.join([first, *others])}\\."):
        load(name)
    (made_up / folder).rmdir()
    with pytest.raises(ValueError, match=f"has no folder {folder}\\."):
        load(name)
    monkeypatch.delenv("FMVIZ_DATA")
    with pytest.raises(ValueError, match="FMVIZ_DATA is not set"):
        load(name)


@pytest.mark.parametrize("ending", [".xz", ".bz2"])
@pytest.mark.parametrize(("name", "folder"), FOLDERS.items())
def test_compressed_files_are_read(name, folder, ending, made_up):
    plain = load(name)
    compress(made_up / folder, ending)
    packed = load(name)
    assert np.array_equal(dense(packed.X), dense(plain.X))
    assert np.array_equal(packed.y, plain.y)
    assert packed.feature_names == plain.feature_names


@pytest.mark.parametrize(
    ("place", "text", "message"),
    [
        ("ml100k/u.data", "1\t2\t3\n", "it has 3 columns; MovieLens 100K has 4"),
        ("ml100k/u.data", "", "No columns"),
        ("ml100k/u.data", "1\t1\tgood\t0\n", "invalid literal for int.*good"),
        ("ml100k/u.user", USERS.replace("24", "old"), "invalid literal for int.*old"),
        ("ml100k/u.item", FILM_LINES.replace("01-Jan-1994", "01-Jan-19xx"), "invalid literal"),
        ("rcv1/rcv1_train.binary", "", r"its labels must be -1 and \+1"),
        ("rcv1/rcv1_train.binary", "0 1:1\n+1 2:1\n", r"its labels must be -1 and \+1"),
        ("rcv1/rcv1_train.binary", "+1 1:1 x\n", ""),
        ("rcv1/rcv1_train.binary", "+1 0:1\n", ""),
        ("rcv1/rcv1_train.binary", "+1 47237:1\n", ""),
        ("letter/letter.scale", "27 1:1\n", "its labels must be 1 to 26"),
        ("flight_delay/train-1m.csv", "Month\nc-1\n", "its columns are Month instead of Month, Day"),
        ("flight_delay/test.csv", f"{HEAD}c-8,c-21,c-7,1934,AA,A,D,7,maybe\n", "other than Y and N"),
        ("flight_delay/train-1m.csv", f"{HEAD}August,c-21,c-7,1934,AA,ATL,DFW,732,N\n", "invalid literal"),
        ("vowel/vowel.arff", "@data\n1,2,had\n", ""),
        ("segment/segment.arff", f"@data\n{NUMBERS[0]},sea\n", "sea"),
        ("abalone/abalone.data", "X,1\n", "it has 2 columns instead of 9"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(place, text, message, made_up):
    folder, file = place.split("/")
    write(made_up / folder, **{file: text})
    name = next(name for name, other in FOLDERS.items() if other == folder)
    with pytest.raises(ValueError, match=rf"{file} cannot be read: .*{message}.*(Download|Create)"):
        load(name, **({"side_features": True} if folder == "ml100k" else {}))


def test_a_broken_archive_is_refused(made_up):
    (made_up / "a9a" / "a9a").unlink()
    (made_up / "a9a" / "a9a.xz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"a9a\.xz cannot be read"):
        load("a9a")


def test_movielens_ids(made_up):
    data = load("movielens_100k")
    expected = np.zeros((4, 7))
    expected[range(4), [0, 2, 1, 0]] = expected[range(4), [6, 3, 4, 5]] = 1  # users, films
    assert np.array_equal(data.X.toarray(), expected)
    assert data.y.tolist() == [5, 1, 3, 4]
    assert data.feature_names == (
        "user 1", "user 2", "user 3",
        'The "First" (1994)', "Café (1995)", "Twice (1995) #3", "Twice (1995) #4",
    )  # fmt: skip
    assert data.groups == ("user",) * 3 + ("item",) * 4


def test_movielens_side_features(made_up):
    data = load("movielens_100k", side_features=True)
    assert data.feature_names[7:] == (
        "age=15-24", "age=25-34", "gender=F", "gender=M",
        "occupation=other", "occupation=technician", "occupation=writer",
        "zip=8", "zip=9", "zip=T",
        "year=1985-1994", "year=1995-2004", "year=unknown",
        *(f"genre={name}" for name in readers.GENRES),
    )  # fmt: skip
    first, second, *_ = data.X.toarray()
    on = [{name for name, x in zip(data.feature_names, row, strict=True) if x} for row in (first, second)]
    assert on[0] == {
        "user 1", "Twice (1995) #4", "age=15-24", "gender=M", "occupation=technician", "zip=8",
        "year=unknown", "genre=unknown",
    }  # fmt: skip
    assert on[1] == {
        "user 3", 'The "First" (1994)', "age=25-34", "gender=M", "occupation=writer", "zip=T",
        "year=1985-1994", "genre=Action", "genre=Comedy",
    }  # fmt: skip
    assert data.groups[-1] == "genre=Western"  # a film has several genres: each flag is its own attribute


@pytest.mark.parametrize(("name", "d"), [("a9a", 123), ("rcv1", 47_236)])
def test_libsvm_text_is_read(name, d, made_up):
    data = load(name)
    assert data.X.shape == (3, d)
    assert data.y.tolist() == [-1.0, 1.0, -1.0]
    places = zip(*(indices.tolist() for indices in data.X.nonzero()), strict=True)
    assert list(places) == [(0, 2), (0, 10), (1, 0), (1, 122), (2, 6)]
    assert data.X[1, 122] == 0.5
    assert data.X.nnz == 5  # the stored zero is gone
    assert data.feature_names[122] == "feature 123"
    assert load(name, part="test").y.tolist() == [1.0, -1.0]
    both = load(name, part="both")
    assert both.y.tolist() == [-1.0, 1.0, -1.0, 1.0, -1.0]
    assert both.X[4, 2] == 2.0
    with pytest.raises(ValueError, match="part = 'all' is not known; choose one of train, test, both"):
        load(name, part="all")


def test_flight_delay_is_encoded(made_up):
    data = load("flight_delay", part="both")
    assert data.feature_names == (
        "Month=1", "Month=4", "Month=8", "DayofMonth=2", "DayofMonth=20", "DayofMonth=21",
        "DayOfWeek=3", "DayOfWeek=5", "DayOfWeek=7", "hour=0", "hour=19", "hour=24",
        "minute, tens=0", "minute, tens=3", "UniqueCarrier=AA", "UniqueCarrier=US",
        "Origin=ATL", "Origin=DFW", "Origin=PIT", "Dest=ATL", "Dest=DFW", "Dest=NA", "log_distance",
    )  # fmt: skip
    rows = {
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
    assert rows[late] == (pytest.approx(1.0), 1.0)
    assert sorted(y for _, y in rows.values()) == [-1.0, -1.0, 1.0]


def test_classes_of_libsvm_text_are_numbered_from_one(made_up):
    data = load("letter", part="both")
    assert data.X.shape == (3, 16)
    assert data.X[0, 15] == -1.0
    assert [data.class_labels[int(c)] for c in data.y] == ["A", "F", "C"]


def test_classes_of_arff_text_are_scaled_and_parted(made_up):
    data = load("vowel")
    assert data.y.tolist() == [0.0, 5.0]
    assert data.X.tolist() == [[-1.0] * 10, [0.0] * 10]
    assert data.scaling[3].decode(1.0) == 5.0
    assert load("vowel", part="test").X.tolist() == [[1.0] * 10]


def test_abalone_is_read(made_up):
    data = load("abalone")
    assert data.X.shape == (9, 8)
    assert data.X[:3, 0] == pytest.approx(np.array([-1.0, 0.0, 1.0]) * np.sqrt(1.5))
    assert data.y.tolist() == list(range(9))


def test_planted_triples_explain_the_target():
    dataset = load("planted_triples")
    pairs = np.argwhere(np.triu(dataset.truth))
    assert len(pairs) == len(dataset.true_triples) == 12
    y = sum(dataset.X[:, list(indices)].prod(axis=1) for indices in (*pairs, *dataset.true_triples))
    assert np.std(dataset.y - y) == pytest.approx(0.1, rel=0.1)
    used = {j for triple in dataset.true_triples for j in triple} | set(pairs.ravel().tolist())
    assert used == set(range(20))
    assert all(name.startswith("noise") for name in dataset.feature_names[20:])


def test_planted_subsets_explain_the_target():
    dataset = load("planted_subsets")
    pairs = np.argwhere(np.triu(dataset.truth))
    assert (len(pairs), len(dataset.true_triples)) == (24, 16)
    groups = [range(4 * g, 4 * g + 4) for g in range(4)]
    y = sum((1 + dataset.X[:, group]).prod(axis=1) for group in groups)
    assert np.std(dataset.y - y) == pytest.approx(0.05, rel=0.1)
    for indices in (*pairs.tolist(), *dataset.true_triples):
        assert any(set(indices) <= set(group) for group in groups)
    assert all(name.startswith("noise") for name in dataset.feature_names[16:])
