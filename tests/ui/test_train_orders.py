"""The page Train with models of higher order: parameters, interactions, exports."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from programs import printed
from streamlit.testing.v1 import AppTest
from ui.driving import address, choose, figures, press, stage, values, words

from fmviz.engine.interactions.weights import interactions_of
from fmviz.lab.catalog import load
from fmviz.lab.experiment import Experiment, changed_of, suggested
from fmviz.lab.runner import Run
from fmviz.ui.train.matrices import Look, sets_table, strongest_slice
from fmviz.ui.train.page import program_of

SMALL = {"dataset": "balance_scale", "rank": "3", "lambda_p": "0.001", "lambda_sparse": "0.001"}
HOFM = {**SMALL, "model": "hofm", "regularizer": "omega_ti", "init_scale": "0.1", "max_epochs": "4"}


def said(app: AppTest) -> Experiment:
    link = {k: v for k, v in address(app).items() if k not in ("run", "order", "slice", "subset")}
    return Experiment.from_query(link)


def test_a_set_made_for_triples_brings_its_model_and_the_models_own_parameters(open_train):
    app = open_train(dataset="planted_triples")
    assert values(app, "train_model", "train_model_order") == ("hofm", 3)
    expected = suggested("planted_triples")
    assert said(app) == dataclasses.replace(expected, start="informed", validation=0.1)
    assert not app.button(key="train_play").disabled


def test_a_link_keeps_what_it_sets_even_to_the_default(open_train):
    for model in ("all_subsets", "fm"):
        assert values(open_train(dataset="planted_triples", model=model), "train_model") == (model,)
    app = open_train(dataset="planted_triples", rank="30")
    assert app.number_input(key="train_rank").value == 30
    # It brought settings, so nothing is suggested beside them.
    assert said(app) == Experiment(dataset="planted_triples", rank=30)


def test_triples_are_trained_looked_at_and_linked(open_train, manager, sentences):
    app = open_train(**HOFM, play="1")
    (job,) = manager.jobs()
    last = job.view().last
    assert f"By order: {last['used_interactions_2']} pairs of {last['used_features_2']} features" in words(
        app
    )
    assert "The pairs: P⁽²⁾P⁽²⁾ᵀ" in words(app)
    choose(app, train_order=3)
    assert "Σₛ pᵢₛ pⱼₛ pₗₛ" in words(app)
    assert address(app)["order"] == "3"
    (table,) = app.dataframe
    assert list(table.value.columns)[:4] == ["Feature", "with feature", "and", "Weight"]
    assert len(table.value) == last["used_interactions_3"]
    view = job.view()
    at = strongest_slice(interactions_of(view.experiment.model, view.parameters, 3))
    name = view.dataset.feature_names[at[0]]
    assert f"The triples with {name}" in words(app)
    assert f"The triples with {name}" in words(open_train(**address(app)))
    assert len(manager.jobs()) == 1
    # Another order is another run, and the page goes on showing the old one.
    choose(app, train_model_order=2)
    assert address(app)["model_order"] == "2"
    sentences(app, "train", "another order")
    assert changed_of(said(app).model) == {"order": 2}


def test_what_does_not_apply_is_listed_with_its_reason(open_train, sentences):
    app = open_train(**HOFM)
    assert "Ω_*" not in app.selectbox(key="train_regularizer").options
    assert r"Ω\_\***: of order m sums" in words(app)
    assert "SGD" not in app.selectbox(key="train_solver").options
    # By order 2 of the same model it does apply.
    app = open_train(**HOFM, model_order="2")
    assert "Ω_*" in app.selectbox(key="train_regularizer").options
    app = open_train(**{**HOFM, "model_order": "5"})
    sentences(app, "train", "an order above the features")
    assert app.button(key="train_play").disabled
    press(app, "train_fix")
    assert values(app, "train_model", "train_model_order") == ("hofm", 3)
    assert not app.button(key="train_play").disabled


def test_fitted_weights_take_no_penalty_of_their_own_and_fixed_ones_do(open_train, manager, sentences):
    app = open_train(dataset="balance_scale", model="expansion")
    assert app.selectbox(key="train_regularizer").options == ["ℓ₂²"]
    assert not [item for item in app.select_slider if item.key == "train_lambda_sparse"]
    sentences(app, "train", "fitted weights")
    choose(app, train_model_kernel="anova", train_model_coefficients="signs")
    assert app.selectbox(key="train_regularizer").value == "omega_ti"
    assert app.select_slider(key="train_lambda_sparse").value > 0
    assert changed_of(said(app).model) == {"coefficients": "signs", "kernel": "anova"}
    choose(app, train_model_coefficients="fitted")
    assert app.selectbox(key="train_regularizer").value == "l2"
    assert said(app).lambda_sparse == 0
    assert not app.error
    # A link may bring a contradiction; it is explained, and one button repairs it.
    app = open_train(dataset="balance_scale", model="expansion", regularizer="ti", max_epochs="3")
    assert "could be made arbitrarily small" in words(app)
    press(app, "train_fix")
    assert (said(app).regularizer.name, said(app).lambda_sparse) == ("l2", 0)
    assert said(app).why_not() is None
    app = open_train(dataset="balance_scale", model="expansion", regularizer="l2", max_epochs="3")
    assert "lambda_sparse = 1 would multiply" in words(app)
    press(app, "train_fix")
    assert said(app).why_not() is None


@pytest.mark.parametrize("diagonal", ["0", "1"])
@pytest.mark.faultless
def test_the_convex_machine_is_looked_at_by_pairs(open_train, manager, diagonal):
    app = open_train(
        dataset="balance_scale",
        model="convex_fm",
        model_diagonal=diagonal,
        rank="5",
        max_epochs="5",
        play="1",
        lambda_p="0.01",
        regularizer="l2",
        lambda_sparse="0.0",
    )
    assert "The pairs: PΛPᵀ" in words(app)
    (job,) = manager.jobs()
    view = job.view()
    look = Look(view.experiment.model, 2)
    assert look.model.repeats == (diagonal == "1")
    parameters = view.parameters
    W = (parameters.P * parameters.coefficients) @ parameters.P.T
    assert look.interactions(view.thinned).matrix() == pytest.approx(W)
    assert figures(app)["Interactions"] == f"{view.last['used_interactions']:,}"
    assert "# P, w and the bias and λ: snapshot.parameters" in program_of(view)


def test_both_orders_are_recovered_and_measured():
    last = Run.prepare(suggested("planted_triples")).end()
    assert last.metrics["support_f1"] == last.metrics["support_f1_3"] == 1.0
    assert last.metrics["support_recovered"] == last.metrics["support_recovered_3"] == 1.0
    assert last.metrics["used_interactions_2"] == last.metrics["used_interactions_3"] == 12
    assert (last.metrics["used_features_2"], last.metrics["used_features_3"]) == (8, 12)
    assert last.metrics["estimation_error"] < 0.1
    dataset, model = load("planted_triples"), suggested("planted_triples").model
    factors = interactions_of(model, last.parameters, 3)
    table = sets_table(*factors.ranked(20)[:2], dataset)
    assert table["In truth"].all()
    assert len(table) == 12
    at = strongest_slice(factors)
    assert at[0] in dataset.true_triples[0] + dataset.true_triples[4] + dataset.true_triples[8]
    structure, sized = Look(model, 3, at).truth(dataset)
    assert not sized
    assert np.count_nonzero(np.triu(structure)) == 3


LIFTED = {
    **SMALL,
    "model": "lifted",
    "regularizer": "ti",
    "init_scale": "0.1",
    "max_epochs": "6",
    "rank": "2",
}


@pytest.mark.slow
def test_a_lifted_model_is_trained_looked_at_and_taken_away(open_train, manager, sentences):
    app = open_train(**LIFTED, play="1")
    (job,) = manager.jobs()
    view = job.view()
    assert view.state == "finished"
    sentences(app, "train", "a lifted model")
    (table,) = app.dataframe
    assert len(table.value) == view.last["used_interactions"]
    assert f"used interactions {view.last['used_interactions']}" in printed(program_of(view))
    # Of degree 3 the strongest slice of the tensor is drawn.
    app.number_input(key="train_model_degree").set_value(3).run()
    assert said(app).why_not() is None
    press(app, "train_play")
    assert "The triples with" in words(app)
    assert "𝒲ᵢⱼₗ" in words(app)
    assert not app.error
    # A product of distinct features is lifted for degree 2 alone; one button goes back to that.
    choose(app, train_model_kernel="anova")
    sentences(app, "train", "no lifted form")
    assert app.button(key="train_play").disabled
    press(app, "train_fix")
    assert app.number_input(key="train_model_degree").value == 2
    assert not app.button(key="train_play").disabled


def test_a_penalty_that_is_not_there_is_not_drawn(open_train):
    for given, formula in (
        ({"model": "convex_fm"}, r"\|W\|_{\mathrm{tr}}"),
        ({"model": "expansion"}, r"\sum_s |\lambda_s|\,\|p_{:,s}\|^{2}"),
        ({"model": "expansion", "model_degree": "3"}, r"\sum_s |\lambda_s|\,\|p_{:,s}\|^{3}"),
    ):
        app = open_train(dataset="balance_scale", **given)
        formulas = [item.value.strip("$\n") for item in app.latex]
        assert formula in formulas
        assert not any(text.startswith(r"\|P\|") for text in formulas)
        assert "Selects nothing" not in words(app)
        assert ("train_regularizer" in [box.key for box in app.selectbox]) == (given["model"] != "convex_fm")


def test_sizes_and_overflows_are_sentences(open_train, manager, monkeypatch):
    app = open_train(
        dataset="planted_interactions",
        model="all_subsets",
        regularizer="omega_ti",
        init_scale="100",
        rank="200",
        play="1",
    )
    assert "Diverged" in words(app)
    assert "grows exponentially" in words(app)
    monkeypatch.setattr("fmviz.engine.models.base.available_bytes", lambda: 1e3)
    app = open_train(**HOFM)
    assert "rank = 3 for each of 2 orders and 4 features need 1.15 kB, but only 1 kB are free" in words(app)
    assert app.button(key="train_play").disabled


@pytest.mark.parametrize("model", ["fm", "robust"])
def test_what_is_known_of_the_truth_is_the_same_before_and_after_a_run(open_train, model):
    query = {"model": model, "max_epochs": "2"}
    before, after = (stage(open_train(**query, **more))["panels"][1]["title"] for more in ({}, {"play": "1"}))
    assert before == after
    assert ("support only" in before) == (model == "robust")
