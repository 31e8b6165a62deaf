"""What `make_data` makes with the code of commit bcea1f3: small runs, links and plans of all kinds."""

from __future__ import annotations

from typing import Any

_SMALL = (("n_samples", 60), ("d_true", 12), ("b", 3), ("d_noise", 4))
_DRAWN = {
    "dataset": "synthetic",
    "dataset_params": _SMALL,
    "rank": 4,
    "lambda_p": 0.1,
    "lambda_sparse": 0.2,
    "max_epochs": 8,
}
_COLUMNS = {**_DRAWN, "rank": 3, "init_scale": 0.1, "lambda_p": 0.05, "lambda_sparse": 0.1, "max_epochs": 8}
_MONKS = {
    "dataset": "monks1",
    "loss": "logistic",
    "rank": 3,
    "init_scale": 0.1,
    "lambda_p": 1e-3,
    "lambda_sparse": 1e-3,
    "max_epochs": 8,
}
_CONVEX = {**_MONKS, "model": "convex_fm", "regularizer": "l2", "lambda_p": 0.003, "lambda_sparse": 0.0}

RUNS: dict[str, dict[str, Any]] = {
    "ti": {
        **_DRAWN,
        "seed": 3,
        "validation": 0.25,
        "changes": ((3, "lambda_sparse", 0.5), (6, "lambda_w", 0.01)),
    },
    "ti-rows": {**_DRAWN, "regularizer": "ti", "regularizer_params": (("axis", "rows"),)},
    "cs": {
        **_DRAWN,
        "regularizer": "cs",
        "solver": "pbcd",
        "solver_params": (("active_sweeps", 3), ("anderson", 4)),
    },
    "huber": {
        **_DRAWN,
        "regularizer": "l1",
        "loss": "huber",
        "loss_params": (("delta", 2.0),),
        "lambda_p": 0.01,
        "lambda_sparse": 0.02,
        "init_scale": 0.1,
        "solver": "pcd",
        "solver_params": (("order", "features"), ("active_sweeps", 2), ("anderson", 5)),
    },
    "revived": {**_DRAWN, "solver": "pcd", "lambda_sparse": 2.0, "solver_params": (("revive", True),)},
    "omega-star": {
        **_DRAWN,
        "regularizer": "omega_star",
        "regularizer_params": (("prox_steps", 5),),
        "solver": "nmapgd",
        "max_epochs": 8,
    },
    "hofm": {**_COLUMNS, "model": "hofm", "regularizer": "omega_ti"},
    "all-subsets": {**_COLUMNS, "model": "all_subsets", "regularizer": "omega_ti"},
    "expansion": {
        **_COLUMNS,
        "model": "expansion",
        "model_params": (("degree", 3),),
        "regularizer": "l2",
        "lambda_sparse": 0.0,
    },
    "lifted": {**_COLUMNS, "model": "lifted", "model_params": (("kernel", "anova"),), "regularizer": "l1"},
    "quadratic": {**_MONKS, "model": "qr", "regularizer": "l1", "lambda_p": 0.01, "lambda_sparse": 0.005},
    "convex": {**_CONVEX, "max_epochs": 6, "rank": 12},
    "psgd": {
        **_MONKS,
        "regularizer": "l21",
        "solver": "psgd",
        "solver_params": (("eta0", 0.05),),
        "seed": 7,
    },
    "powers": {
        **_MONKS,
        "regularizer": "cs_power",
        "regularizer_params": (("degree", 3),),
        "solver": "apgd",
    },
    "diverged": {
        **_DRAWN,
        "solver": "psgd",
        "init_scale": 0.3,
        "solver_params": (("eta0", 1.0), ("monotone", False)),
    },
    "failed": {**_DRAWN, "regularizer": "l21", "solver": "pcd"},
}
"""Runs that ended, by their ids in the store."""

_SWEPT = {"max_epochs": 14, "tol": 0.0}
CUT: dict[str, tuple[int, dict[str, Any]]] = {
    "cut-pcd": (10, {**_DRAWN, **_SWEPT, "solver": "pcd", "solver_params": (("anderson", 4),)}),
    "cut-pbcd": (
        10,
        {**_DRAWN, **_SWEPT, "regularizer": "cs", "solver": "pbcd", "solver_params": (("active_sweeps", 2),)},
    ),
    "cut-columns": (10, {**_COLUMNS, **_SWEPT, "model": "hofm", "regularizer": "omega_ti"}),
    "cut-expansion": (
        10,
        {**_COLUMNS, **_SWEPT, "model": "expansion", "regularizer": "l2", "lambda_sparse": 0.0},
    ),
    "cut-lifted": (10, {**_COLUMNS, **_SWEPT, "model": "lifted", "regularizer": "l1"}),
    "cut-apgd": (4, {**_MONKS, "solver": "apgd"}),
    "cut-pgd": (4, {**_MONKS, "regularizer": "l1", "solver": "pgd"}),
    "cut-nmapgd": (4, {**_DRAWN, "regularizer": "omega_star", "solver": "nmapgd", "max_epochs": 8}),
    "cut-psgd": (4, {**_MONKS, "solver": "psgd", "solver_params": (("eta0", 0.05),)}),
    "cut-katyusha": (
        4,
        {**_MONKS, "regularizer": "cs", "solver": "katyusha", "solver_params": (("eta0", 0.05),)},
    ),
    "cut-quadratic": (
        4,
        {**_MONKS, "model": "qr", "regularizer": "l1", "lambda_p": 0.01, "lambda_sparse": 0.005},
    ),
    "cut-gcd": (2, {**_CONVEX, "max_epochs": 6, "rank": 12}),
    # It keeps no checkpoint, and begins anew.
    "cut-lbfgs": (4, {**_COLUMNS, "regularizer": "l2", "solver": "lbfgs", "lambda_sparse": 0.0}),
}
"""Runs that were killed two epochs after their last checkpoint: its epoch, and the settings."""

SWEEP: dict[str, Any] = {
    "title": "TI and CS",
    "base": {"rank": 3, "max_epochs": 8, "init_scale": 0.1, "lambda_p": 0.01, "validation": 0.2},
    "dataset": [{f"dataset_{name}": value for name, value in _SMALL} | {"dataset": "synthetic"}],
    "method": [{"regularizer": "ti"}, {"regularizer": "cs"}],
    "grid": {"lambda_sparse": [0.1]},
    "seeds": 2,
}

PLAN = """\
title = "Written by hand"
seeds = [2, 5]
suggested = true

[base]
validation = 0.2

[[dataset]]
dataset = "monks1"

[[dataset]]
dataset = "synthetic"
dataset_n_samples = 50
loss = "huber"
loss_delta = 1.5

[[method]]
regularizer = "ti"
regularizer_axis = "rows"

[[method]]
model = "hofm"
model_order = 3
regularizer = "omega_ti"
solver = "pcd"
solver_order = "features"

[grid]
lambda_sparse = {from = 1e-3, to = 1e-1, count = 3}
rank = [2]
"""
"""A sweep as people write them."""

WRONG_LINKS: tuple[dict[str, str], ...] = (
    {"rank": "many", "regularizer": "l3", "lambda_sparse": "-1"},
    {"regularizer": "ti", "regularizer_axis": "sideways", "solver": "pcd", "solver_anderson": "4"},
    {"changes": "nonsense", "seed": "5"},
    {"model": "hofm", "model_order": "99", "fit_linear": "perhaps"},
)
"""Links of which a part cannot be taken: the rest holds."""

TABLE = "age,town,smoker,since,note,y\n" + "".join(
    f"{'' if i % 13 == 5 else 20 + i * 7 % 40},{('Bonn', 'Kiel', 'Ulm')[i % 3]},{('no', 'yes')[i % 7 < 3]},"
    f"{1990 + i % 20}-0{1 + i % 9}-1{i % 9},remark {i},{(i * 7 % 40) * (i % 3 - 1) / 10 + i % 5:g}\n"
    for i in range(60)
)
"""A file of one's own."""

OWN: dict[str, Any] = {
    "rank": 3,
    "lambda_p": 0.01,
    "lambda_sparse": 0.01,
    "max_epochs": 8,
    "init_scale": 0.1,
}
"""The settings of a run on it."""

SEARCHED: dict[str, Any] = {
    **_MONKS,
    "regularizer": "ti",
    "seed": 7,
    "max_epochs": 40,
    "validation": 0.2,
}
"""The settings of paths and searches."""

PAPER = "atarashi2021_fig1"
"""A figure of a paper that takes a second."""

_TI = {
    "dataset": "synthetic",
    "dataset_n_samples": "60",
    "dataset_d_true": "12",
    "dataset_b": "3",
    "dataset_d_noise": "4",
    "seed": "3",
    "rank": "4",
    "lambda_p": "0.1",
    "lambda_sparse": "0.2",
    "max_epochs": "8",
    "validation": "0.25",
    "changes": "3:lambda_sparse:0.5,6:lambda_w:0.01",
}
_FEW = {"dataset": "monks1", "rank": "3", "lambda_p": "0.001", "seed": "4"}

PAGES: tuple[tuple[str, dict[str, str], tuple[str | float, ...]], ...] = (
    ("", {"log2lambda": "2", "seed": "3"}, ()),
    ("prox", {"d": "40", "k": "5", "seed": "3", "regularizers": "l1,ti,ti_rows,cs", "log2lambda": "-2"}, ()),
    (
        "prox",
        {
            "source": "pasted",
            "matrix": "3 0.5\n-2 1\n0.5 -0.2\n0.1 2.5\n",
            "column": "1",
            "y": "log",
            "log2lambda": "0",
            "size": "large",
            "regularizers": "ti_power",
            "degree": "5",
        },
        (),
    ),
    ("prox", {"lesson": "ti", "step": "2", "matrix": "3\n2.5\n1\n0.2", "source": "pasted", "hide": "k"}, ()),
    ("geometry", {"plane": "row", "penalties": "l1,ti", "a": "-0.4", "strength": "1.1", "flow": "0"}, ()),
    ("geometry", {"dims": "3", "solid": "column", "c": "0.5", "entry": "c", "tau": "0.3", "e2": "3.0"}, ()),
    (
        "train",
        {
            "dataset": "synthetic",
            "dataset_n_samples": "50",
            "regularizer_axis": "rows",
            "solver": "apgd",
            "solver_restart": "gradient",
            "loss": "huber",
            "loss_delta": "2.0",
            "x": "seconds",
        },
        (),
    ),
    ("train", {"dataset": "balance_scale", "model": "hofm", "model_order": "4", "lock": "model"}, ()),
    ("train", {**_TI, "play": "1", "speed": "full", "parts": "1"}, ("ti",)),
    ("train", {**_TI, "run": "ti", "support": "1"}, ("ti",)),
    ("train", {"run": "cut-pbcd"}, (10.0,)),
    ("train", {"dataset": "OWN", "rank": "3", "lambda_sparse": "0.01", "hide": "exports"}, ()),
    ("interactions", {"run": "psgd", "find": "a1", "sort": "support", "edges": "10"}, ()),
    ("interactions", {"run": "hofm", "view": "matrix", "compact": "1"}, ()),
    ("interactions", {"run": "quadratic", "view": "row", "row": "3"}, ()),
    (
        "path",
        {
            **_FEW,
            "penalties": "ti,cs",
            "low": "0.001",
            "high": "0.1",
            "points": "3",
            "order": "cold",
            "counts": "log",
            "metric": "train_auc",
            "run": "1",
        },
        (),
    ),
    ("path", {**_FEW, "target": "15", "seeker": "cs", "accept": "5", "seek": "1", "penalties": "cs"}, ()),
    ("sweeps", {"penalties": "l1,ti", "low": "0.001", "points": "4", "seeds": "2", "dataset": "monks1"}, ()),
    ("sweeps", {"own": "1", "plan": PLAN}, ()),
    ("compare", {"runs": "ti,cs,hofm", "only": "0", "curve": "used_interactions", "other": "2"}, ("cs",)),
    ("compare", {"dataset": "monks1", "fighters": "l1,ti,cs", "target": "3"}, ()),
    ("runs", {"data": "synthetic", "penalty": "ti,omega_ti", "find": "hofm"}, ("hofm",)),
    ("runs", {"origin": "sweep"}, ()),
    ("paper", {"artefact": PAPER}, ()),
    ("paper", {"artefact": "blondel2016_fig3", "budget": "full"}, ()),
    (
        "data",
        {
            "file": "FILE",
            "title": "people",
            "target": "smoker",
            "positive": "no",
            "columns": '{"town":["ignored","drop"]}',
            "scaling": "range",
            "rank": "7",
        },
        (60.0,),
    ),
    ("lessons", {"seed": "2"}, ()),
    ("about", {"dataset": "monks1"}, ()),
)
"""Links: the page, its settings, and the runs whose figures it shows, or a number that it shows."""
