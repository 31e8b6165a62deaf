"""Main effects and pairs of columns: exact sums, sentences, and the chance line."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_friedman1
from small_tables import learn

from fmviz.engine.parameters import Parameters
from fmviz.engine.sampling.posterior import Posterior
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation import effects
from fmviz.lab.interpretation.attributes import Attributes
from fmviz.lab.interpretation.effects import Axis, Effects, as_posterior
from fmviz.lab.interpretation.wording import Wording
from fmviz.lab.runner import prepare, split
from fmviz.lab.search import findings
from fmviz.tables.columns import NumberColumn, TextColumn, WordColumn


@pytest.fixture
def table(rng) -> pd.DataFrame:
    n = 300
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(20, 60, n)),
            "town": rng.choice(["Bonn", "Kiel", "Ulm"], n),
            "plan": rng.choice(["basic", "pro"], n),
            "pay": rng.normal(size=n),
            "y": rng.normal(size=n),
        }
    )


def test_the_parts_sum_to_the_prediction_of_every_sample(table, rng):
    encoded = learn(table, numbers="10 hats")
    columns, X = encoded.encoder.columns_, encoded.X
    d = X.shape[1]
    posterior = Posterior(rng.normal(size=(4, d, 3)), rng.normal(size=(4, d)), rng.normal(size=4), False)
    effects = Effects(posterior, X, columns, scale=2.0)
    parts = [effects._block(a) for a in range(len(columns))]
    total = sum(effects.main(a, part).mean(axis=0) for a, part in enumerate(parts))
    for pair in effects.pairs.itertuples():
        total = total + effects.pair(pair.a, pair.b, parts[pair.a], parts[pair.b])
    assert np.ptp(total - 2.0 * posterior.scores(X)) == pytest.approx(0.0, abs=1e-9)
    assert effects.pairs["size"].is_monotonic_decreasing
    assert effects.matrix.max() == effects.pairs["size"].iloc[0]
    curve = effects.curve(0)
    assert (curve["lower"] <= curve["upper"]).all()
    surface = effects.surface(0, 1)
    assert list(surface.curves) == ["Bonn", "Kiel", "Ulm"]
    assert surface.rows.sum() == table["age"].notna().sum()
    assert surface.effect.shape == (len(surface.first.labels), 3)


def test_of_many_columns_those_that_act_in_pairs_are_described(rng, monkeypatch):
    X = rng.normal(size=(300, 70))
    encoded = learn(
        pd.DataFrame(X, columns=[f"c{j}" for j in range(70)]).assign(y=X[:, 5] * X[:, 64]), numbers="line"
    )
    P = 0.01 * rng.normal(size=(1, 70, 2))
    P[0, [5, 64], 0] = 1.0
    w = np.zeros((1, 70))
    w[0, :40] = 1.0
    effects = Effects(Posterior(P, w, np.zeros(1), False), encoded.X, encoded.encoder.columns_)
    assert {*effects.coupled[:2]} == {5, 64}
    dataset = Dataset.of_table(encoded, "m", "M")
    problem = prepare(dataset, Experiment(rank=1), np.arange(300)).problem
    beyond = findings.Findings.of(effects, problem).beyond
    assert [each.columns for each in beyond if len(each.columns) == 2] == [(5, 64)]
    monkeypatch.setattr("fmviz.lab.interpretation.effects._MOST_PAIRED", 3)
    few = Effects(effects.posterior, encoded.X, encoded.encoder.columns_)
    assert few.pairs[["a", "b"]].to_numpy().tolist()[0] == [5, 64]
    assert len(few.pairs) == 3


def test_a_sentence_says_where_a_pair_counts_most(table):
    encoded = learn(table[["town", "plan", "y"]])
    names = list(encoded.encoder.get_feature_names_out())
    P = np.zeros((1, len(names), 1))
    P[0, [names.index("town=Kiel"), names.index("plan=pro")]] = [[3.0], [1.0]]
    posterior = Posterior(P, np.zeros((1, len(names))), np.zeros(1), False)
    effects = Effects(posterior, encoded.X, encoded.encoder.columns_, unit="euros")
    share = (table["town"].eq("Kiel") & table["plan"].eq("pro")).mean()
    assert effects.pair_sentence(0, 1) == (
        "Where town is Kiel and plan is pro: +3 euros beyond both alone "
        f"(both 3, first only 0, second only 0, neither 0; {100 * share:.3g} % of rows)."
    )
    assert effects.main_sentence(0).startswith("town: +")


def machine_of(x, P, w=(0.0, 0.0), intercept=0.0, **about):
    """Return the effects of a single sample on plain columns of numbers."""
    columns, fit = (
        (NumberColumn(name="x0"), NumberColumn(name="x1")),
        Parameters(*map(np.array, (P, w)), intercept),
    )
    return Effects(as_posterior(fit, False), x, columns, **about)


@pytest.mark.parametrize("factor", [1.0, 0.8])
def test_shrinkage_is_that_of_the_pairs(rng, factor):
    x = rng.normal(size=(500, 2))
    x -= x.mean(axis=0)
    y = 3.0 + 2.0 * (5.0 * x[:, 0] + 2.0 * x[:, 0] * x[:, 1])
    fit = {"w": (5.0, 0.0), "scale": 2.0, "center": 3.0, "y": y}
    effects = machine_of(x, np.full((2, 1), np.sqrt(2.0 * factor)), **fit)
    assert effects.shrinkage == pytest.approx(1.0 - factor, abs=1e-9)


def test_means_beside_no_effect_are_not_rounded(rng):
    x = rng.normal(size=(1500, 2))
    assert re.search(r"both −?0\.\d", machine_of(x, [[0.0], [0.0]], [0.3, 0.0]).pair_sentence(0, 1))


@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_counted_means_stand_beside_a_difference_that_they_contradict(table, rng, shift):
    encoded = learn(table[["town", "plan", "y"]])
    names = list(encoded.encoder.get_feature_names_out())
    P = np.zeros((40, len(names), 1))
    P[:, names.index("town=Kiel"), 0], P[:, names.index("plan=pro"), 0] = 3.0 + 0.1 * rng.normal(size=40), 1.0
    posterior = Posterior(P, np.zeros((40, len(names))), np.zeros(40), False)
    y = (3.0 + shift) * (table["town"].eq("Kiel") & table["plan"].eq("pro")).to_numpy()
    effects = Effects(posterior, encoded.X, encoded.encoder.columns_, y=y)
    assert effects.contrast(0, 1).of_counted == pytest.approx(3.0 + shift)
    assert ("; counted means give 8; " in effects.pair_sentence(0, 1)) == (shift > 0)


def test_chances_stand_beside_log_odds(rng):
    x, unit = rng.choice([-1.0, 1.0], size=(400, 2)), "log-odds of yes"
    sentence = machine_of(x, [[0.0], [0.0]], [2.0, 0.0], -1.0, unit=unit).main_sentence(0)
    assert re.sub(rf"[+−][\d.]+ {unit} ", "", sentence) == "x0: (73.1 %) at 1, (4.74 %) at -1."


@pytest.mark.parametrize("days", [("Monday", "Friday", "Saturday"), ("Feb", "Mar", "Nov"), ("Apples", "Mon")])
def test_weekdays_and_months_are_in_their_order(days):
    column = WordColumn(name="day", levels=tuple(sorted(days)))
    assert effects._levels(column, pd.Series([*sorted(days)])) == [*days]


HOUR = NumberColumn(name="at.hour", part_of="at", center=0.0, scale=1.0)
DAY = WordColumn(name="at.weekday", part_of="at", levels=("1-Mon",))
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
ENDS = np.array([[float(hour)] * 2 for hour in range(24)])


@pytest.mark.parametrize(
    ("column", "labels", "ends", "places", "words"),
    [
        (HOUR, (), ENDS, [7, 8, 9], "between 7 and 9 o'clock"),
        (HOUR, (), ENDS, [7], "at 7 o'clock"),
        (NumberColumn(name="at.trend", part_of="at"), (), 4501 + ENDS, [0], "on 28 Apr 2012"),
        (DAY, DAYS, None, [0, 1, 2, 3, 4], "on working days"),
        (DAY, DAYS, None, [5, 6], "at weekends"),
        (DAY, DAYS, None, [0, 1, 2, 3, 4, 5], "not on Sun"),
        (WordColumn(name="town", levels=("A",)), ("A", "B", "C"), None, [0, 2], "town is A or C"),
        (NumberColumn(name="x", center=0.0, scale=1.0), (), ENDS, [0, 1], "x is at most 1"),
    ],
)
def test_conditions_are_written_as_people_write_them(column, labels, ends, places, words):
    assert Axis(column, sp.csr_array((0, 0)), labels, ends).where(places) == words


def test_the_difference_of_differences_does_not_depend_on_the_coding(table):
    encoded = learn(table[["town", "plan", "y"]])
    rng, d = np.random.default_rng(0), encoded.X.shape[1]
    P, w = rng.normal(size=(30, d, 2)), rng.normal(size=(30, d))
    town = [name.startswith("town") for name in encoded.encoder.get_feature_names_out()]
    plan = np.flatnonzero(~np.array(town))
    # A constant in the factors of all towns moves from pairs to the weights of the plans.
    moved, shift = P.copy(), rng.normal(size=(30, 1, 2))
    moved[:, town] += shift
    others = w.copy()
    others[:, plan] -= np.einsum("sjk,sik->sj", P[:, plan], shift)
    each = [
        Effects(Posterior(*own, np.zeros(30), False), encoded.X, encoded.encoder.columns_).contrast(0, 1)
        for own in ((P, w), (moved, others))
    ]
    for name in ("effect", "interval", "rows", "of_first", "of_second"):
        assert getattr(each[0], name) == pytest.approx(getattr(each[1], name), rel=1e-9), name
    low, high = each[0].interval
    assert low < each[0].effect < high
    both, first, second, neither = each[0].means
    assert both - first - second + neither == pytest.approx(each[0].effect)


def test_of_friedmans_pairs_the_true_one_alone_counts():
    X, y = make_friedman1(600, n_features=6, noise=1.0, random_state=0)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)]).assign(y=y)
    dataset = Dataset.of_table(learn(table, numbers="10 hats"), "f", "F")
    experiment = Experiment(rank=6, lambda_p=1e-3, lambda_sparse=1e-4, lambda_w=1e-3, max_epochs=30)
    run = prepare(dataset, experiment, *split(600, 0.25, 0))
    *_, reading = findings.read_findings(run, run.end().parameters)
    assert reading.effects.pairs[["first", "second"]].iloc[0].tolist() == ["x0", "x1"]
    assert reading.pairs["stands_out"].tolist() == [True, *[False] * 14]
    mean, alone, *machines = reading.candidates["RMSE (in y)"]
    assert max(machines) < alone < mean
    assert reading.sentences[0] == "1 of 15 pairs of columns stands out from chance."
    assert reading.named[["first", "second"]].values.tolist() == [["x0", "x1"]]
    # The sixth column is noise.
    assert reading.columns.set_index("name")["stands_out"].sort_index().tolist() == [True] * 5 + [False]


def test_columns_without_pairs_are_fitted_with_the_loss_of_the_model(rng):
    X = rng.normal(size=(400, 3))
    table = pd.DataFrame(X, columns=list("abc")).assign(y=X[:, 0] + 40.0 * (rng.random(400) < 0.2))
    dataset = Dataset.of_table(learn(table, numbers="line"), "o", "O")
    run = prepare(dataset, Experiment(loss="absolute", rank=1, max_epochs=1), *split(400, 0.25, 0))
    # A fifth of y is wrong by 40, which moves the mean, and not the median.
    error = run.dataset.target_scaling.scale * np.abs(run.problem.y - findings._alone(run.problem)).mean()
    assert error == pytest.approx(8.0, abs=2.0)


def test_features_of_a_curve_belong_to_their_column(table):
    dataset = Dataset.of_table(learn(table, numbers="10 hats"), "t", "T")
    attributes = Attributes(dataset)
    age = attributes.all[0]
    x = attributes.row(int(np.flatnonzero(table["age"].isna())[0]))
    assert age.words_for(age.value(x)) == "(missing)"
    known = int(np.flatnonzero(table["age"].notna())[0])
    age.encode_into(x, table["age"][known])
    np.testing.assert_allclose(x[list(age.columns)], attributes.row(known)[list(age.columns)], atol=1e-12)
    hat, town = age.columns[1], attributes.all[1].columns[0]
    sentence = partial(Wording(attributes, "squared").pair, weight=1.0)
    assert sentence(hat, town).startswith("When age is about 20 and town is Bonn, the prediction rises")
    assert sentence(age.columns[-1], town).startswith("When age is missing and town is Bonn")


def test_words_of_texts_are_read_by_all_rows_that_have_them():
    rng = np.random.default_rng(0)
    has = rng.random((400, 4)) < 0.4
    word = TextColumn(name="text", words=("bad", "dull", "fine", "good"))
    lamp = WordColumn(name="product", levels=("Lamp",))
    X = np.column_stack([has, rng.random(400) < 0.5]).astype(float)
    P = np.zeros((5, 1))
    P[0], P[4] = -1.0, 1.0
    own = as_posterior(Parameters(P, np.array([-1.0, 0.0, 0.0, 1.0, 0.0]), 0.0), False)
    effects = Effects(own, X, (word, lamp))
    curve = effects.curve(0).set_index("value")["effect"]
    assert abs(curve["dull"]) < 0.15
    assert curve["good"] > 0.4
    assert "text has bad and product is Lamp" in effects.pair_sentence(0, 1)
