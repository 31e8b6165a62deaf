"""Benchmark cases, as dictionaries, for `bench.same_numbers` and `bench.same_speed`.

A case names its parts and says nothing about the engine's API, which `bench.adapter` knows. Which cases a
checkout can run it is asked itself, so the lists here hold every combination of its names.

The table of epochs (`bench.epochs`) is the six shapes of `bench.data` × every solver × every penalty. As
there, a pass over single samples is not made in full where it takes long: of shapes of 2,500 samples or more
these solvers see the first hundredth, which is what the table predicts their epochs from, and inexact steps
with Ω_* that are predicted to take longer than `LONGEST` make one epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .adapter import Case
from .data import SHAPES, Data, one_hot, planted, shapes
from .epochs import BY_SAMPLE, SMALL_STEP, pairs_seconds
from .timing import RANK

# From so many samples on, and of one in so many.
MANY, ONE_IN = 2_500, 100
LOSSES = ("squared", "logistic")
BINARY = ("logistic", "squared_hinge")
EPOCHS = 12
# Seconds that an epoch may be predicted to take.
LONGEST = 5.0
SMALL_RANK = 10

MODELS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("hofm", {"order": 3}),
    ("all_subsets", {}),
    *(
        ("expansion", {"kernel": "polynomial", "degree": degree, "coefficients": coefficients})
        for degree in (2, 3)
        for coefficients in ("fitted", "ones", "signs")
    ),
    ("expansion", {"kernel": "anova", "degree": 3, "coefficients": "ones"}),
    ("expansion", {"kernel": "anova", "degree": 3, "coefficients": "fitted"}),
    ("lifted", {"kernel": "polynomial", "degree": 2}),
    ("lifted", {"kernel": "polynomial", "degree": 3}),
    ("lifted", {"kernel": "anova", "degree": 2}),
    ("qr", {}),
    ("convex_fm", {"diagonal": False}),
    ("convex_fm", {"diagonal": True}),
)
# Some of them, for the times.
TIMED_MODELS = (
    ("hofm", {"order": 3}),
    ("all_subsets", {}),
    ("expansion", {"kernel": "polynomial", "degree": 3, "coefficients": "ones"}),
    ("expansion", {"kernel": "polynomial", "degree": 3, "coefficients": "fitted"}),
    ("lifted", {"kernel": "polynomial", "degree": 2}),
    ("lifted", {"kernel": "polynomial", "degree": 3}),
    ("lifted", {"kernel": "anova", "degree": 2}),
)
# One case for every way of stepping and every view of a penalty; where other settings are compared.
SAMPLE = (
    ("cd", "l2"),
    ("pcd", "ti"),
    ("pcd", "omega_ti"),
    ("pbcd", "cs"),
    ("pbcd", "ti"),
    ("pbcd_ls", "l21"),
    ("nmapgd", "omega_star"),
    ("apgd", "cs_power"),
    ("lbfgs", "l2"),
    ("subgd", "omega_star"),
    ("psgd", "ti"),
    ("mb_psgd", "omega_cs"),
    ("katyusha", "l1"),
)
# Penalty with its own parameters, solver with its own.
SETTINGS: tuple[tuple[str, dict[str, Any], str, dict[str, Any]], ...] = (
    *(
        ("ti", {"axis": "rows"}, solver, {})
        for solver in ("pcd", "pbcd", "nmapgd", "pgd", "psgd", "katyusha")
    ),
    *(("ti_power", {"degree": 4, "axis": "rows"}, solver, {}) for solver in ("apgd", "mb_psgd")),
    ("cs_power", {"degree": 2}, "pgd", {}),
    ("omega_star", {"prox_steps": 7, "prox_step": 0.05}, "nmapgd", {}),
    *(("ti", {}, "pcd", {"order": order}) for order in ("columns", "features", "mixed")),
    ("ti", {}, "pcd", {"revive": True}),
    ("l1", {}, "pcd", {"active_sweeps": 5}),
    ("l1", {}, "pcd", {"active_sweeps": 5, "anderson": 5}),
    ("cs", {}, "pbcd", {"active_sweeps": 5, "anderson": 5}),
    ("l21", {}, "pbcd_ls", {"sigma": 0.1, "rho": 0.7}),
    ("cs", {}, "nmapgd", {"delta": 1e-3, "eta": 0.5}),
    ("ti", {}, "apgd", {"restart": "gradient"}),
    ("l2", {}, "lbfgs", {"memory": 3}),
    *(("ti", {}, "psgd", {"schedule": name}) for name in ("constant", "optimal", "inverse_scaling")),
    *(("ti", {}, "psgd", {"operator": name}) for name in ("dense", "sparse")),
    ("omega_cs", {}, "mb_psgd", {"batch_size": 7, "monotone": False}),
    ("l1", {}, "katyusha", {"tau": 0.3, "monotone": False}),
)


@dataclass(frozen=True)
class Stored:
    """A data set in a file.

    Attributes
    ----------
    name, path : str
        What it is called and where it is.
    shape : tuple of int
        Samples and features.
    data : Data
        Where its strengths come from.
    step : float
        A step size of the stochastic solvers for the squared loss with which P moves and does not diverge:
        0.1 over the mean of ‖x_n‖² and, where that is above 1, the standard deviation of y.
    """

    name: str
    path: str
    shape: tuple[int, int]
    data: Data
    step: float

    @property
    def spread(self) -> float:
        """The standard deviation of y."""
        return float(self.data.y.std())


def save(data: Data, folder: Path) -> Stored:
    """Write a data set to a file that `bench.adapter.load` reads."""
    path = folder / f"{len(list(folder.iterdir()))}.npz"
    if sp.issparse(data.X):
        X = sp.csr_array(data.X)
        parts = {name: getattr(X, name) for name in ("data", "indices", "indptr", "shape")}
        squares = float(np.square(X.data).sum())
    else:
        X = np.ascontiguousarray(data.X)
        parts, squares = {"dense": X}, float(np.square(X).sum())
    np.savez(path, y=data.y, **parts)
    n, d = X.shape
    return Stored(data.name, str(path), (n, d), data, 0.1 * n / squares / max(1.0, float(data.y.std())))


def case(stored: Stored, loss: str, penalty: str, solver: str, **other: Any) -> Case:
    """Return a case of the second-order machine without linear term, as in the table of epochs."""
    data = stored.data
    return {
        "name": f"{stored.name}: {solver} {penalty}, {loss}",
        "data": stored.path,
        "shape": stored.shape,
        "samples": None,
        "epochs": EPOCHS,
        "loss": loss,
        "loss_settings": {},
        "binary": loss in BINARY,
        "penalty": penalty,
        "penalty_settings": {},
        "model": "fm",
        "model_settings": {},
        "solver": solver,
        "solver_settings": {},
        "rank": RANK,
        "strengths": {
            "lambda_p": data.lambda_p,
            "lambda_sparse": data.lambda_sparse.get(penalty, data.lambda_sparse[""]),
        },
        "fit_linear": False,
        "weighted": False,
        "dtype": "float64",
        "init_scale": data.init_scale,
        **other,
    }


def with_steps(case: Case, stored: Stored) -> Case:
    """Return the case with a step size with which stochastic steps are felt, where it has them."""
    if case["solver"] not in BY_SAMPLE:
        return case
    # The slope of a binary loss is at most about 1, whatever y is.
    step = stored.step * (max(1.0, stored.spread) if case["binary"] else 1.0)
    return case | {"solver_settings": {"eta0": step} | case["solver_settings"]}


def with_small_steps(case: Case) -> Case:
    """Return the case with the table's step size, where its solver has any: only the time matters."""
    if case["solver"] not in BY_SAMPLE:
        return case
    return case | {"solver_settings": {"eta0": SMALL_STEP} | case["solver_settings"]}


def thinned(case: Case) -> Case:
    """Return the case with a hundredth of the samples, where its solver visits many of them singly."""
    n = case["shape"][0]
    if case["solver"] in BY_SAMPLE and n >= MANY:
        return case | {"samples": n // ONE_IN, "name": f"{case['name']}, {n // ONE_IN:,} samples"}
    return case


def shortened(case: Case) -> Case:
    """Return the case with one epoch, where that is predicted to take long."""
    if case["penalty"] == "omega_star" and pairs_seconds(case["shape"][1], case["solver"]) > LONGEST:
        return case | {"epochs": 1, "name": f"{case['name']}, one epoch"}
    return case


def table_of_epochs(
    stored: Stored, names: Mapping[str, list[str]], losses: tuple[str, ...]
) -> Iterator[Case]:
    """Yield every solver × penalty × loss on a data set."""
    for loss, penalty, solver in product(losses, names["penalties"], names["solvers"]):
        yield case(stored, loss, penalty, solver)


def strengths_of(model: str, penalty: str) -> dict[str, float]:
    """Return strengths for standardised data; ℓ2² gets no second one, which some models refuse."""
    if model in ("qr", "convex_fm"):
        return {"lambda_w": 0.01, "lambda_p": 0.05, "lambda_sparse": 0.01 if model == "qr" else 0.0}
    return {"lambda_w": 0.01, "lambda_p": 0.01, "lambda_sparse": 0.0 if penalty == "l2" else 0.003}


def of_models(
    stored: Stored,
    names: Mapping[str, list[str]],
    models: tuple[tuple[str, dict[str, Any]], ...],
    losses: tuple[str, ...],
    rank: int = SMALL_RANK,
) -> Iterator[Case]:
    """Yield every model × solver × penalty × loss on a data set, with a linear term and a bias."""
    every = product(models, losses, names["penalties"], names["solvers"])
    for (model, settings), loss, penalty, solver in every:
        what = " ".join([model, *map(str, settings.values())])
        yield case(
            stored,
            loss,
            penalty,
            solver,
            name=f"{stored.name}: {what}, {solver} {penalty}, {loss}",
            model=model,
            model_settings=settings,
            rank=rank,
            strengths=strengths_of(model, penalty),
            fit_linear=True,
        )


def of_layouts(stored: Stored) -> Iterator[Case]:
    """Yield second-order machines with weights and a linear term."""
    for loss, (solver, penalty) in product(LOSSES, SAMPLE):
        yield case(
            stored,
            loss,
            penalty,
            solver,
            name=f"{stored.name}: {solver} {penalty}, {loss}, weighted, linear",
            strengths=strengths_of("fm", penalty),
            rank=SMALL_RANK,
            weighted=True,
            fit_linear=True,
        )


def of_settings(stored: Stored) -> Iterator[Case]:
    """Yield second-order machines with what the table of epochs leaves at its default."""
    for solver, penalty in SAMPLE:
        plain = case(
            stored, "squared", penalty, solver, strengths=strengths_of("fm", penalty), rank=SMALL_RANK
        )
        yield plain | {"dtype": "float32", "name": f"{plain['name']}, float32"}
        for loss, settings in (("squared_hinge", {}), ("huber", {"delta": 0.3})):
            other = {"loss": loss, "loss_settings": settings, "binary": loss in BINARY}
            yield plain | other | {"name": f"{stored.name}: {solver} {penalty}, {loss}"}
    for penalty, penalty_settings, solver, solver_settings in SETTINGS:
        settings = penalty_settings | solver_settings
        words = ", ".join(f"{key} = {value}" for key, value in settings.items())
        yield case(
            stored,
            "squared",
            penalty,
            solver,
            name=f"{stored.name}: {solver} {penalty}, {words}",
            strengths=strengths_of("fm", penalty),
            penalty_settings=penalty_settings,
            solver_settings=solver_settings,
            fit_linear=True,
            rank=SMALL_RANK,
        )


def _standard(name: str, X: Any, y: np.ndarray) -> Data:
    return Data(name, X, (y - y.mean()) / y.std(), 0.01, {"": 0.003}, 0.1)


def small_sets() -> list[Data]:
    """Return what models and settings are tried on: dense, sparse, of ones alone, and user-item pairs."""
    rng = np.random.default_rng(0)
    dense = planted(150, 16, 4, 4)
    signal = rng.normal(size=(30, 3))

    def target(X: Any) -> np.ndarray:
        return np.square(X @ signal).sum(axis=1) + 0.1 * rng.normal(size=X.shape[0])

    sparse = sp.random_array((400, 30), density=0.15, rng=rng, data_sampler=rng.standard_normal, format="csr")
    ones = sp.csr_array((sparse != 0).astype(float))
    user_item, rating = one_hot(600, 20, 25, rng)
    return [
        _standard("small dense", dense.X, dense.y),
        _standard(
            "small sparse", sparse, np.square(sparse @ signal).sum(axis=1) + 0.1 * rng.normal(size=400)
        ),
        _standard("small binary", ones, target(ones)),
        _standard("small pairs", user_item, rating),
    ]


def middle_sets() -> list[Data]:
    """Return what models are timed on: dense and sparse."""
    rng = np.random.default_rng(0)
    dense = planted(2_000, 40, 4, 10)
    sparse = sp.random_array(
        (5_000, 500), density=0.04, rng=rng, data_sampler=rng.standard_normal, format="csr"
    )
    y = np.square(sparse @ rng.normal(size=(500, 3))).sum(axis=1)
    return [_standard("dense 2,000 × 50", dense.X, dense.y), _standard("sparse 5,000 × 500", sparse, y)]


def stored_shapes(folder: Path, quick: bool = False) -> list[Stored]:
    """Write the shapes of the table of epochs to files; few of them if it has to be quick."""
    return [save(data, folder) for data in shapes(quick)]


def quick_shape() -> Data:
    """Return the smallest shape of the table."""
    return next(iter(SHAPES.values()))()
