"""What can be combined with what, and why not otherwise: a code, a sentence, and a way out that is one."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from by_name import best_solver, build_problem, make_solver

import fmviz
from fmviz.choices import list_models, why_not
from fmviz.engine.compatibility import cost_note
from fmviz.engine.losses import Huber
from fmviz.engine.models import MODELS, get_model
from fmviz.engine.penalties import PENALTIES, get_penalty
from fmviz.engine.problem import Formulation
from fmviz.engine.solvers import SOLVERS

READINGS = [(r, {}) for r in PENALTIES] + [("ti", {"axis": "rows"})]
OF_W = {"qr": "l1", "convex_fm": "l2"}
FITTED, A3 = {"kernel": "anova", "degree": 3}, {"kernel": "anova", "degree": 3, "coefficients": "signs"}


@pytest.mark.parametrize(
    ("regularizer", "solver", "model", "params", "code"),
    [
        ("ti", "lbfgs", "fm", {}, "not_smooth"),
        ("ti", "cd", "fm", {}, "not_smooth"),
        ("ti", "sgd", "fm", {}, "not_smooth"),
        ("l1", "subgd", "fm", {}, "exact_operator"),
        ("l2", "subgd", "fm", {}, "smooth"),
        ("omega_star", "apgd", "fm", {}, "inexact_operator"),
        ("omega_star", "pcd", "fm", {}, "no_entry_view"),
        ("omega_star", "pbcd", "fm", {}, "no_row_view"),
        ("omega_star", "nmapgd", "fm", {}, None),
        ("omega_ti", "katyusha", "fm", {}, "not_convex"),
        ("l21", "pcd", "fm", {}, "no_entry_view"),
        ("ti", "exact_pgd", "fm", {}, "factors"),
        ("ti", "incremental_pgd", "fm", {}, "factors"),
        ("l2", "two_stage", "fm", {}, "robust_only"),
        ("ti", "psgd", "hofm", {}, "no_common_shrinkage"),
        ("l21", "psgd", "all_subsets", {}, "no_common_shrinkage"),
        ("l1", "sgd", "hofm", {}, "not_smooth"),
        ("l2", "katyusha", "hofm", {}, "no_sample_steps"),
        ("l2", "mb_psgd", "expansion", {}, "fitted_coefficients"),
        ("l2", "sgd", "expansion", FITTED, "powers_of_norms"),
        ("l2", "psgd", "expansion", FITTED, "powers_of_norms"),
        ("l2", "lbfgs", "expansion", FITTED, None),
        ("l2", "sgd", "expansion", A3, None),
        ("l2", "psgd", "expansion", A3, None),
        ("l2", "pbcd", "lifted", {}, "rows_not_linear"),
        ("omega_ti", "auto", "lifted", {}, "pairs_within_columns"),
        ("l2", "sgd", "lifted", {}, "no_sample_steps"),
        *(("l1", solver, "qr", {}, "no_factors") for solver in ("cd", "pcd", "pbcd")),
        *(
            (name, solver, model, {}, None if name == OF_W.get(model) else code)
            for model, solvers, code in (
                ("qr", ("exact_pgd",), "no_factors"),
                ("convex_fm", ("gcd",), "trace_norm_only"),
                ("robust", ("two_stage",), "trace_norm_only"),
            )
            for name, solver in product(PENALTIES, solvers)
            if model in OF_W or name == "ti"
        ),
        *(
            (OF_W.get(model, "l2"), "gcd", model, {}, None if model == "convex_fm" else "convex_fm_only")
            for model in MODELS
        ),
        ("l2", "auto", "convex_fm", {"diagonal": True}, None),
        ("l1", "auto", "qr", {}, None),
        ("l2", "pcd", "robust", {}, "convex_in_w"),
    ],
)
def test_reasons_have_a_code(regularizer, solver, model, params, code):
    reason = why_not(regularizer, solver, model=get_model(model, params))
    assert getattr(reason, "code", None) == code
    assert reason is None or reason.endswith(".")


@pytest.mark.parametrize(
    ("regularizer", "given", "solver"),
    [
        *((name, {}, solver) for name, solver in zip(("l2", "l1", "ti"), ("cd", "pcd", "pcd"), strict=True)),
        *((name, {}, "pbcd") for name in ("l21", "cs")),
        ("l1", {"model": "qr"}, "exact_pgd"),
        ("l2", {"model": "convex_fm"}, "gcd"),
        ("l2", {"model": "lifted"}, "cd"),
        ("ti", {"model": "hofm", "loss": Huber(2)}, "nmapgd"),
        ("l2", {"model": "expansion", "model_params": FITTED}, "cd"),
    ],
)
def test_the_best_solver(regularizer, given, solver):
    assert best_solver(regularizer, **given) == solver


def test_auto_finds_a_solver_for_whatever_can_be_run():
    assert set(list_models()) == set(MODELS)
    for name, regularizer in product(MODELS, PENALTIES):
        reason = why_not(regularizer, model=name)
        if reason is None:
            assert why_not(regularizer, best_solver(regularizer, model=name), model=name) is None
        else:
            assert len(reason) > 40, name
    for name, penalty in PENALTIES.items():
        assert why_not(name, "auto") is None
        for solver in ("psgd", "mb_psgd"):
            assert (why_not(name, solver) is None) == penalty.exact_prox


def test_no_reason_recommends_a_solver_that_refuses():
    labels = {solver.label: name for name, solver in SOLVERS.items()}
    for (regularizer, params), solver in product(READINGS, SOLVERS):
        reason = why_not(get_penalty(regularizer, params), solver)
        assert reason is None or reason.endswith(".")
        named = re.split(r"\W+", reason.rsplit("Use ", 1)[1]) if reason and "Use " in reason else []
        takers = [labels[word] for word in named if word in labels]
        reasons = [why_not(get_penalty(regularizer, params), name) for name in takers]
        assert not takers or None in reasons, (regularizer, solver, reason)


@pytest.mark.parametrize(
    ("given", "size", "words"),
    [
        ({"penalty": "omega_star"}, (200, 30, "nmapgd"), ("19,900 pairs", "1.2e+06")),
        ({"model": "convex_fm", "penalty": "l2"}, (100_000, 30, "gcd"), ("80 GB", "never formed")),
        ({"model": "qr", "penalty": "l1"}, (200_000, 30, "exact_pgd"), ("19,999,900,000 pairs", "320 GB")),
        ({"penalty": "ti"}, (200, 30), None),
        ({"penalty": "ti"}, (200_000, 30), None),
    ],
)
def test_the_cost_is_told_before_the_start(given, size, words):
    note = cost_note(Formulation.build(**given), *size)
    assert (note is None) == (words is None)
    assert words is None or all(word in note for word in words)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fmviz.why_not("ti", "sgdd"), "solver = 'sgdd'"),
        (lambda: make_solver("cd", build_problem(np.eye(3), np.ones(3))), "no gradient"),
        (lambda: get_model("convex_fm", {"diagonal": "yes"}), "neither True nor False"),
        (
            lambda: build_problem(
                np.ones((3, 1)), np.ones(3), model="lifted", model_params={"kernel": "anova"}
            ),
            "two distinct features",
        ),
        (
            lambda: make_solver(
                "psgd", build_problem(np.eye(5), np.ones(5), model="hofm", regularizer="l1"), operator="dense"
            ),
            "operator = 'dense'",
        ),
    ],
)
def test_what_is_not_known_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
