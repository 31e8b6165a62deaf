"""Steps of a fit: checks of X and y, early stopping, merged rows, unused features, warm starts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from fmviz.engine.certificates.stationarity import certify
from fmviz.engine.design import check_format
from fmviz.engine.errors import whole_number
from fmviz.engine.memory import available_bytes, in_words
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.schedule import STRENGTHS
from fmviz.engine.snapshot import Snapshot, html_table
from fmviz.engine.solvers import Solver
from fmviz.engine.target import Target
from fmviz.paths.scaling import Scale


def keep_parameters(estimator: Any, given: Mapping[str, Any]) -> None:
    """Set what a constructor was given, its `locals()`, as attributes: scikit-learn's contract."""
    vars(estimator).update({name: value for name, value in given.items() if name != "self"})


def checked_data(estimator: Any, X: Any, *y: Any, **checks: Any) -> Any:
    """Return X, or X and y, as arrays of finite numbers, or y of labels.

    Raises
    ------
    ValueError
        If the data are not allowed, with the reason.
    """
    check_format(X)
    for values in y:
        _check_present(values)
    try:
        return validate_data(
            estimator, X, *y, **{"accept_sparse": ("csc", "csr"), "dtype": np.float64, **checks}
        )
    except ValueError as error:
        words = [name for name, kind in getattr(X, "dtypes", pd.Series()).items() if kind.kind not in "biufc"]
        if not words or "could not convert" not in str(error):
            raise
        raise ValueError(
            f"X holds words in column {words[0]!r}: {error}. Encode them as numbers, with "
            "make_pipeline(fmviz.TableEncoder(), ...) for instance."
        ) from None


def _check_present(y: Any) -> None:
    """Raise ValueError where a target is None, which scikit-learn takes for a label or turns into NaN."""
    if y is None or sp.issparse(y) or isinstance(y, str):
        return
    values = np.asarray(y, dtype=None if hasattr(y, "dtype") else object)
    missing = np.flatnonzero([value is None for value in values.ravel()] if values.dtype == object else [])
    if missing.size:
        row = missing[0] * len(values) // values.size
        raise ValueError(
            f"y is None in row {row} (counted from 0), and every row needs a target. Leave out the rows "
            "without one."
        )


def one_column(y: Any) -> np.ndarray:
    """Return a checked target without a second axis of length 1, about which scikit-learn warns."""
    dense = np.asarray(y.toarray() if sp.issparse(y) else y)
    return column_or_1d(dense, warn=True) if dense.ndim == 2 and dense.shape[1] == 1 else dense


def by_output(tables: Mapping[Any, pd.DataFrame]) -> pd.DataFrame:
    """Concatenate the tables of several outputs, and name the outputs in a first column."""
    for name, table in tables.items():
        table.insert(0, "output", name)
    return pd.concat(tables.values(), ignore_index=True)


def added(table: pd.DataFrame) -> list[str]:
    """Say what every product in a table of interactions adds to f, by its weight."""
    sets = table.filter(like="feature_").astype(str).agg(" × ".join, axis=1) if len(table) else []
    whose = [f" of output {output}" for output in table["output"]] if "output" in table else repeat("")
    return [
        f"{features} adds {f'{weight:.3g}'.replace('-', '−') if weight else 'nothing'} to f{output}"
        for features, weight, output in zip(sets, table["weight"], whose, strict=False)
    ]


class Shown(BaseEstimator):
    """Base of estimators that notebooks show with a table of what was fitted, also by an estimator inside."""

    # What was fitted, by its names for people; empty before a fit.
    _described: Mapping[str, str] = MappingProxyType({})

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return what notebooks show: scikit-learn's diagram, and after a fit a table of what was fitted."""
        bundle = super()._repr_mimebundle_(**kwargs)
        machine: Any = getattr(self, "estimator_", self)
        if "text/html" in bundle and getattr(machine, "_described", None):
            bundle["text/html"] += html_table(
                {
                    **machine._described,
                    f"Strongest, {machine.step}, beside what each does alone": machine._strongest(),
                }
            )
        return bundle

    def _repr_html_inner(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    def _strongest(self) -> str:
        """Return the products of largest weight in words, none where there are too many to rank."""
        try:
            table = self.interactions(top=5).sort_values("weight", key=abs, ascending=False)[:5]
        except ValueError:
            return ""
        return "\n".join(added(table))


# Rows by which the importance of a column is measured, fewer where they have more numbers than these.
_ROWS, _NUMBERS = 256, 4_000_000


class SparseInput(Shown):
    """Base of estimators that take sparse X and several targets, and bring its columns to one scale."""

    center_: np.ndarray
    scale_: np.ndarray
    _moments: Any = None
    # f of checked rows, shape (N,), of several outputs (N, m).
    _scores: Any

    @property
    def _scale(self) -> Scale:
        return Scale(self.center_, self.scale_, self._moments)

    @_scale.setter
    def _scale(self, scale: Scale) -> None:
        self.center_, self.scale_, self._moments = scale.center, scale.scale, scale.moments

    @property
    def feature_importances_(self) -> np.ndarray:
        """What every column changes in f, shape (d,): the root of the mean square of the change.

        The column is set to its mean, in rows whose columns are a deviation above or below theirs, by turns
        that are drawn for each. So columns that go together share nothing.
        """
        check_is_fitted(self)
        mean, deviation = self._moments or (self.center_, self.scale_)
        size = max(2, min(_ROWS, _NUMBERS // mean.size))
        rows = mean + deviation * np.random.default_rng(0).choice([-1.0, 1.0], (size, mean.size))
        f, changes = self._scores(rows), np.zeros(mean.size)
        for j in np.flatnonzero(deviation):
            moved = rows.copy()
            moved[:, j] = mean[j]
            changes[j] = np.sqrt(np.square(self._scores(moved) - f).mean())
        return changes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    @property
    def step(self) -> str:
        """By how much features rise where a product adds its weight to f."""
        return "for a unit of each" if (self.scale_ == 1.0).all() else "for a deviation of each"

    def names(self) -> np.ndarray:
        """Return the names of the features, or their indices where they have none."""
        return getattr(self, "feature_names_in_", np.arange(self.n_features_in_))


LOSS = "validation_loss"


class HeldOut:
    """Early stopping: the best parameters so far, by the mean loss on a random choice of held-out rows.

    Parameters
    ----------
    problem : Problem
        The problem of all rows.
    fraction : float
        The share of the rows that are held out.
    patience : int
        The number of epochs without a lower loss that ends the fit.
    rng : numpy Generator
        Draws the rows.
    stratified : bool
        Whether they are drawn class by class.

    Attributes
    ----------
    training : Problem
        The problem of the other rows.
    """

    def __init__(
        self, problem: Problem, fraction: float, patience: int, rng: np.random.Generator, stratified: bool
    ) -> None:
        training, chosen = train_test_split(
            np.arange(problem.design.n_samples),
            test_size=fraction,
            random_state=int(rng.integers(2**31)),
            stratify=problem.y if stratified else None,
        )
        self.training, self._problem = problem.of_rows(training), problem.of_rows(chosen)
        self._patience, self._best = patience, cast(Any, None)

    def add_validation_loss(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the loss on the rows held out among its metrics."""
        loss = self._problem.risk(snapshot.parameters)
        snapshot = replace(snapshot, metrics={**snapshot.metrics, LOSS: loss})
        if self._best is None or loss < self._best.metrics[LOSS]:
            self._best = snapshot
        return snapshot

    def why_stop(self, snapshot: Snapshot) -> str | None:
        """Return why to stop after this epoch, or None."""
        if snapshot.epoch - self._best.epoch < self._patience:
            return None
        return (
            f"Stopped after {snapshot.epoch:,} epochs: in the last {self._patience} of them the loss on the "
            "rows held out did not fall."
        )

    def best_of(self, problem: Problem, end: Snapshot) -> Snapshot:
        """Return the final snapshot with the parameters of the best epoch on the held-out rows."""
        best = self._best
        assert end.status is not None
        if best.epoch == end.epoch:
            return end
        message = f"{end.status.message} The parameters are those of epoch {best.epoch:,}, the best there."
        return replace(
            best,
            certificate=certify(problem, best.parameters),
            status=replace(end.status, message=message),
        )


def merged_rows(X: Any, target: Target, sample_weight: Any) -> tuple[Any, Target, np.ndarray]:
    """Merge equal rows of X and y, in a canonical order, and sum their weights.

    Where a fit ends at a tolerance instead of its minimum, rounding decides between similar results. A row of
    weight 2 and two rows would then give different ones, unless they are the same data.

    Parameters
    ----------
    X : (N, d) ndarray or sparse matrix
        The features, checked.
    target : Target
        The target of N rows.
    sample_weight : (N,) array_like or None
        Weights, not checked: invalid ones are returned unchanged.
    """
    n = X.shape[0]
    weights = np.ones(n) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
    allowed = weights.shape == (n,) and len(target.values) == n and (weights >= 0.0).all() and weights.any()
    if not allowed:
        return X, target, weights
    if sp.issparse(X):
        rows = sp.csr_array(X)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        parts = [
            rows.indices[start:end].tobytes() + rows.data[start:end].tobytes()
            for start, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        ]
    else:
        parts = [row.tobytes() for row in np.ascontiguousarray(X) + 0.0]
    places: dict[bytes, int] = {}
    totals: dict[bytes, float] = {}
    values = np.ascontiguousarray(target.values) + 0.0
    for place in np.flatnonzero(weights).tolist():
        key = values[place].tobytes() + parts[place]
        places.setdefault(key, place)
        totals[key] = totals.get(key, 0.0) + float(weights[place])
    order = sorted(places)
    first = [places[key] for key in order]
    return X[first], replace(target, values=target.values[first]), np.array([totals[key] for key in order])


# The fewest features, and the largest share of occurring ones, for which this is worthwhile.
_MANY, _MOST = 100_000, 0.5


def drop_empty_features(X: Any, model: Model, rank: int, dummies: int) -> tuple[Any, np.ndarray | None]:
    """Drop features that are 0 in all rows; return X and the places of the others.

    No prediction of the training rows depends on the parameters of such a feature, and any penalty is least
    where these are 0.

    Parameters
    ----------
    X : (N, d) ndarray or sparse array
        Checked data.
    model : Model
    rank : int
    dummies : int
        The number of dummy features besides those of X.

    Returns
    -------
    X : (N, n) ndarray or sparse array
        All of X where there is little to drop.
    kept : (n,) int ndarray or None
        None for all of X.

    Raises
    ------
    ValueError
        If the parameters of all d features, which the fit returns, need more memory than is free.
    """
    d = X.shape[1]
    if not sp.issparse(X) or d < _MANY:
        return X, None
    kept = np.flatnonzero(np.diff(X.indptr)) if X.format == "csc" else np.unique(X.indices)
    if kept.size > _MOST * d:
        return X, None
    rank = whole_number("rank", rank, 0)
    needed = 8.0 * sum(np.prod(shape, dtype=float) for shape in model.shapes(d + dummies, rank).values())
    if needed > (free := available_bytes()):
        # For models with a matrix of all pairs, this error is more specific.
        model.check_size(d, rank)
        raise ValueError(
            f"rank = {rank:,} and {d:,} features need {in_words(needed)}, and {in_words(free)} are free. "
            "Choose a smaller rank, or leave out the features that no row has."
        )
    return X[:, kept], kept


def restore_features(end: Snapshot, model: Model, kept: np.ndarray | None, d: int) -> Snapshot:
    """Extend the final parameters from the features that were kept to all d features.

    Parameters
    ----------
    end : Snapshot
        The final snapshot, with parameters of the kept features, and of dummy features after them.
    model : Model
        Determines the axes of the arrays along which features lie.
    kept : (n,) int ndarray or None
        The places of the kept features among all d; None where all were kept.
    d : int
        The number of all features, without dummies.
    """
    if kept is None:
        return end
    few, many = model.shapes(1, 1), model.shapes(2, 1)
    arrays = {}
    for name, array in end.parameters.items():
        # Several machines have an additional first axis.
        extra = array.ndim - len(few[name])
        along = [extra + i for i, (a, b) in enumerate(zip(few[name], many[name], strict=True)) if a != b]
        dummies = array.shape[along[0]] - kept.size if along else 0
        places = np.concatenate([kept, np.arange(d, d + dummies)])
        wide = np.zeros([d + dummies if i in along else size for i, size in enumerate(array.shape)])
        wide[np.ix_(*(places if i in along else np.arange(n) for i, n in enumerate(array.shape)))] = array
        arrays[name] = wide
    return replace(end, parameters=end.parameters.replace(**arrays))


def with_arrays(start: Parameters, given: Mapping[str, Any], dummies: int) -> Parameters:
    """Replace arrays of the starting point by given ones.

    Parameters
    ----------
    start : Parameters
        A start with the shapes that the problem needs.
    given : mapping of str to array_like
        Arrays by parameter name; P and w may lack the rows of the dummy features.
    dummies : int
        The number of dummy features, the last ones.

    Raises
    ------
    ValueError
        If an array has another shape.
    """
    arrays = {}
    # For several machines the rows are the second axis.
    before = (slice(None),) * (start.n_machines is not None)
    for name, value in given.items():
        array, filled = np.asarray(value, dtype=np.float64), np.array(start[name])
        place = filled
        if filled.ndim > len(before) and array.shape != filled.shape:
            # Attributes of estimators lack the rows of dummy features, which keep their start.
            place = filled[(*before, slice(filled.shape[len(before)] - dummies))]
        if array.shape != place.shape:
            raise ValueError(
                f"A warm start from {name}_ of shape {array.shape} is not possible: this fit needs the shape "
                f"{place.shape}. Use the rank, the model and the number of features of the previous fit, or "
                "start again with warm_start=False."
            )
        place[...] = array
        arrays[name] = filled
    return start.replace(**arrays)


class Memory(NamedTuple):
    """The state of a solver at the end of a fit.

    Attributes
    ----------
    solver : str
        Its name.
    key : str
        `key_of` the problem, the solver and the final parameters; "" after a part of the rows.
    state : mapping
        The `memory` of a `fmviz.engine.checkpoint.Checkpoint`.
    """

    solver: str
    key: str
    state: Mapping[str, Any]


def key_of(problem: Problem, solver: Solver, at: Parameters) -> str:
    """Return a digest of the problem, the settings of its solver and the parameters of a fit."""
    parts = (
        *(problem.model, problem.penalty, problem.loss, problem.rank),
        *(np.asarray(getattr(problem, name)).tolist() for name in STRENGTHS),
        *(problem.fit_linear, problem.fit_intercept, problem.design.storage.name, problem.design.shape),
        *(solver.name, solver.settings, list(at)),
    )
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=16)
    for array in (*problem.design.columns, problem.y, problem.unit_weights, *at.values()):
        if array.size:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
