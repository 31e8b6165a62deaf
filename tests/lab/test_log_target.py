"""The logarithm of a positive target: encoding, storage, and units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.attributes import Attributes
from fmviz.lab.interpretation.wording import Wording
from fmviz.lab.runner import prepare
from fmviz.lab.saved_model import SavedModel
from fmviz.metrics import in_units
from fmviz.tables.encoded import encode
from fmviz.tables.recipe import Choice, Recipe
from fmviz.tables.source import Source
from fmviz.tables.target import TargetEncoding

SIZES = np.arange(1.0, 31.0)
TABLE = pd.DataFrame({"size": SIZES, "price": np.exp(0.1 * SIZES + 2.0)})
LINE = {"numbers": "line", "ends": False}
RECIPE = Recipe(columns=(Choice("size", "number"),), target="price", logarithm=True, **LINE)


def test_predictions_are_in_the_targets_own_unit():
    encoded = encode(Source(RECIPE.reading, TABLE), RECIPE)
    assert TargetEncoding.from_dict(encoded.target.to_dict()) == encoded.target
    np.testing.assert_allclose(encoded.target.decode(encoded.y), TABLE["price"])
    dataset = Dataset.of_table(encoded, "houses", "Houses")
    experiment = Experiment(rank=1, regularizer="l2", lambda_sparse=0.0, lambda_w=0.0, tol=1e-10)
    end = prepare(dataset, experiment, encoded.rows).end()
    model = SavedModel(end.parameters, experiment.model, encoded.target, ("size",), encoded.encoder)
    # A straight line in the logarithm goes on beyond the rows that were seen.
    far = model.predict(pd.DataFrame({"size": [40.0]}))
    np.testing.assert_allclose(far, np.exp(0.1 * 40.0 + 2.0), rtol=1e-3)
    wording = Wording(Attributes(dataset), "squared")
    encoded_price = float(encoded.y[4])
    assert wording.prediction(encoded_price) == pytest.approx(TABLE["price"][4])
    assert wording.added(encoded_price) == pytest.approx(np.log(TABLE["price"][4]))
    assert wording.scaling.encode(TABLE["price"][4]) == pytest.approx(encoded_price)
    assert "logarithm of the prediction rises" in wording.pair(0, 0, 0.5)
    scale = encoded.target.scale
    said = in_units({"train_rmse": 1.0, "support_f1": 0.5}, dataset.unit)
    assert said == {"RMSE, training (in log price)": scale, "Support F1": 0.5}
    plain = replace(dataset, target_scaling=None)
    assert in_units({"train_rmse": 1.0}, plain.unit) == {"RMSE, training": 1.0}


def test_only_positive_numbers_have_one():
    with pytest.raises(ValueError, match="has the value 0, but only positive"):
        TargetEncoding.learn(pd.Series([0.0, 1.0, 2.0], name="price"), logarithm=True)
    with pytest.raises(ValueError, match="has classes"):
        TargetEncoding.learn(pd.Series(["a", "b", "c"], name="kind"), logarithm=True)
    # What has none, in rows that are predicted later, counts as missing.
    learned = TargetEncoding.learn(pd.Series([1.0, 2.0, 3.0], name="price"), logarithm=True)
    assert np.isnan(learned.encode(pd.DataFrame({"price": [-1.0, 1.0]}))).tolist() == [True, False]


def test_the_command_line_offers_it(tmp_path, command):
    path = tmp_path / "houses.csv"
    TABLE.to_csv(path, index=False)
    options = ["--target", "price", "--use", "size=number", "--log-target", "--set", "model=robust"]
    # Where the model finds its caps itself, no regularizer is asked for.
    assert "fitted as (log price − " in command("fit", path, *options, "--output", tmp_path / "out").out
    command("predict", tmp_path / "out" / "model.npz", path)
    model = SavedModel.load(tmp_path / "out" / "model.npz")
    assert model.target.logarithm
    np.testing.assert_allclose(model.predict(pd.read_csv(path)), TABLE["price"], rtol=0.01)
