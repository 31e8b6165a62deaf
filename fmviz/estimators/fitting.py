"""Steps of a fit: validation of X and y, early stopping, merging of rows, unused features, warm starts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted, check_X_y, column_or_1d, validate_data

from fmviz.engine.checkpoint import Checkpoint
from fmviz.engine.design import DTYPES, check_format
from fmviz.engine.errors import one_of, whole_number
from fmviz.engine.fit import Fit
from fmviz.engine.memory import available_bytes, in_words
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.engine.parts import Parts
from fmviz.engine.problem import Problem
from fmviz.engine.schedule import STRENGTHS
from fmviz.engine.snapshot import Snapshot, html_table
from fmviz.engine.stopping import HeldOut
from fmviz.engine.target import Target
from fmviz.paths.scaling import Scale

from .cluster import dask_parts


def keep_parameters(estimator: Any, given: Mapping[str, Any]) -> None:
    """Store constructor arguments, from its `locals()`, as attributes, as scikit-learn requires."""
    vars(estimator).update({name: value for name, value in given.items() if name != "self"})


def checked_data(estimator: Any, X: Any, *y: Any, **checks: Any) -> Any:
    """Return X, or X and y, as arrays of finite numbers, or y as labels.

    Raises
    ------
    ValueError
        If the data are invalid.
    """
    dtype = one_of("dtype", getattr(estimator, "dtype", "float64"), DTYPES)
    if hasattr(X, "__dask_graph__") or isinstance(X, Parts):
        return _checked_parts(estimator, X, dtype, *y, **checks)
    check_format(X)
    for values in y:
        _check_present(values)
    try:
        return validate_data(estimator, X, *y, accept_sparse=("csc", "csr"), dtype=dtype, **checks)
    except ValueError as error:
        words = [name for name, kind in getattr(X, "dtypes", pd.Series()).items() if kind.kind not in "biufc"]
        if not words or "could not convert" not in str(error):
            raise
        raise ValueError(
            f"X has text in column {words[0]!r}: {error}. Encode it as numbers, for example with "
            "make_pipeline(fmviz.TableEncoder(), ...)."
        ) from None


def _checked_parts(
    estimator: Any, X: Any, dtype: str, *y: Any, reset: bool = True, **checks: Any
) -> Parts | tuple[Parts, np.ndarray]:
    """Return X in parts, and y in memory."""
    if not getattr(estimator, "_takes_parts", False):
        raise ValueError(
            f"{type(estimator).__name__} needs all rows in one memory. For X in parts or on a cluster, use "
            "FactorizationMachineRegressor or FactorizationMachineClassifier."
        )
    parts = X if isinstance(X, Parts) else dask_parts(X, dtype)
    like, names = np.zeros((1, parts.n_features)), getattr(X, "columns", None)
    validate_data(estimator, like if names is None else pd.DataFrame(like, columns=[*names]), reset=reset)
    if not y:
        return parts
    rows = np.broadcast_to(0.0, (parts.n_samples, 1))
    return parts, check_X_y(rows, *map(np.asarray, y), **checks)[1]


def _check_present(y: Any) -> None:
    """Raise ValueError if a target is None, which scikit-learn treats as a label or converts to NaN."""
    if y is None or sp.issparse(y) or isinstance(y, str):
        return
    values = np.asarray(y, dtype=None if hasattr(y, "dtype") else object)
    missing = np.flatnonzero([value is None for value in values.ravel()] if values.dtype == object else [])
    if missing.size:
        row = missing[0] * len(values) // values.size
        raise ValueError(
            f"y is None in row {row} (counted from 0), but every row needs a target. Remove the rows "
            "without one."
        )


def one_column(y: Any) -> np.ndarray:
    """Return a checked target without a second axis of length 1, which scikit-learn warns about."""
    dense = np.asarray(y.toarray() if sp.issparse(y) else y)
    return column_or_1d(dense, warn=True) if dense.ndim == 2 and dense.shape[1] == 1 else dense


def by_output(tables: Mapping[Any, pd.DataFrame]) -> pd.DataFrame:
    """Concatenate the tables of several outputs, with the output as the first column."""
    for name, table in tables.items():
        table.insert(0, "output", name)
    return pd.concat(tables.values(), ignore_index=True)


def added(table: pd.DataFrame) -> list[str]:
    """Describe the contribution of every product in a table of interactions to f, by its weight."""
    sets = table.filter(like="feature_").astype(str).agg(" × ".join, axis=1) if len(table) else []
    whose = [f" of output {output}" for output in table["output"]] if "output" in table else repeat("")
    return [
        f"{features} adds {f'{weight:.3g}'.replace('-', '−') if weight else 'nothing'} to f{output}"
        for features, weight, output in zip(sets, table["weight"], whose, strict=False)
    ]


class Shown(BaseEstimator):
    """Base of estimators with a notebook display: a table of their fit, or of a wrapped estimator's."""

    # Facts about the fit by their labels; empty before a fit.
    _described: Mapping[str, str] = MappingProxyType({})

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return the notebook display: scikit-learn's diagram and, after a fit, a table of the fit."""
        bundle = super()._repr_mimebundle_(**kwargs)
        machine: Any = getattr(self, "estimator_", self)
        if "text/html" in bundle and getattr(machine, "_described", None):
            bundle["text/html"] += html_table(
                {
                    **machine._described,
                    f"Strongest, {machine.step}, beyond the effects of each feature "
                    "alone": machine._strongest(),
                }
            )
        return bundle

    def _repr_html_inner(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    def _strongest(self) -> str:
        """Return sentences on the products of largest weight, none if there are too many to rank."""
        try:
            table = self.interactions(top=5).sort_values("weight", key=abs, ascending=False)[:5]
        except ValueError:
            return ""
        return "\n".join(added(table))


# The numbers of rows and of entries that limit the sample for measuring feature importances.
_ROWS, _NUMBERS = 256, 4_000_000


class SparseInput(Shown):
    """Base of estimators that accept sparse X and several targets, and scale the columns."""

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
        """The effect of every column on f, shape (d,): the root mean square change.

        The column is set to its mean, in rows whose columns are independently one standard deviation above
        or below their means. Correlated columns therefore do not share importance.
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
        """The increase of each feature for which a product adds its weight to f."""
        return "for one unit of each" if (self.scale_ == 1.0).all() else "for one standard deviation of each"

    def names(self) -> np.ndarray:
        """Return the names of the features, or their indices if they have none."""
        return getattr(self, "feature_names_in_", np.arange(self.n_features_in_))


def held_out_rows(
    problem: Problem, fraction: float, patience: int, rng: np.random.Generator, stratified: bool
) -> HeldOut:
    """Hold out a random `fraction` of the rows of a problem for early stopping; `stratified` by class."""
    each = train_test_split(
        np.arange(problem.design.n_samples),
        test_size=fraction,
        random_state=int(rng.integers(2**31)),
        stratify=problem.y if stratified else None,
    )
    training, held_out = (problem.of_rows(np.sort(rows)) for rows in each)
    return HeldOut(training, held_out, patience)


def merged_rows(X: Any, target: Target, sample_weight: Any) -> tuple[Any, Target, np.ndarray]:
    """Merge equal rows of X and y, in a canonical order, and sum their weights.

    A fit that stops at a tolerance, before its minimum, depends on rounding. A row of weight 2 and two equal
    rows would then give different results unless they are merged.

    Parameters
    ----------
    X : (N, d) ndarray or sparse matrix
        The features, checked.
    target : Target
        The target of N rows.
    sample_weight : (N,) array_like or None
        Weights, unchecked; invalid ones are returned unchanged.
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


# The minimum number of features, and the maximum share of non-empty ones, for which this is worthwhile.
_MANY, _MOST = 100_000, 0.5


def drop_empty_features(X: Any, model: Model, rank: int, dummies: int) -> tuple[Any, np.ndarray | None]:
    """Drop features that are 0 in all rows; return X and the indices of the others.

    Predictions on the training rows do not depend on the parameters of such features, and any penalty is
    lowest if these are 0.

    Parameters
    ----------
    X : (N, d) ndarray or sparse array
        Checked data.
    model : Model
    rank : int
    dummies : int
        The number of dummy features in addition to those of X.

    Returns
    -------
    X : (N, n) ndarray or sparse array
        X itself if there is little to drop.
    kept : (n,) int ndarray or None
        None for all of X.

    Raises
    ------
    ValueError
        If the parameters of all d features, which the fit returns, exceed the free memory.
    """
    d = X.shape[1]
    if not sp.issparse(X) or d < _MANY:
        return X, None
    counts = np.diff(X.indptr) if X.format == "csc" else np.bincount(X.indices, minlength=d)
    kept = np.flatnonzero(counts)
    if kept.size > _MOST * d:
        return X, None
    rank = whole_number("rank", rank, 0)
    needed = 8.0 * sum(np.prod(shape, dtype=float) for shape in model.shapes(d + dummies, rank).values())
    if needed > (free := available_bytes()):
        # For models with a matrix of all pairs, the error of the model is more specific.
        model.check_size(d, rank)
        raise ValueError(
            f"rank = {rank:,} and {d:,} features need {in_words(needed)}, but only {in_words(free)} are "
            "free. Choose a smaller rank, or remove features that are 0 in all rows."
        )
    return X[:, kept], kept


def restore_features(end: Snapshot, model: Model, kept: np.ndarray | None, d: int) -> Snapshot:
    """Extend the final parameters from the kept features to all d features.

    Parameters
    ----------
    end : Snapshot
        The final snapshot, with parameters of the kept features, and of dummy features after them.
    model : Model
        Defines the feature axes of the arrays.
    kept : (n,) int ndarray or None
        The indices of the kept features among all d; None if all were kept.
    d : int
        The number of all features, without dummies.
    """
    if kept is None:
        return end
    few, many = model.shapes(1, 1), model.shapes(2, 1)
    arrays = {}
    for name, array in end.parameters.items():
        # With several machines there is an additional first axis.
        extra = array.ndim - len(few[name])
        along = [extra + i for i, (a, b) in enumerate(zip(few[name], many[name], strict=True)) if a != b]
        dummies = array.shape[along[0]] - kept.size if along else 0
        places = np.concatenate([kept, np.arange(d, d + dummies)])
        wide = np.zeros([d + dummies if i in along else size for i, size in enumerate(array.shape)])
        wide[np.ix_(*(places if i in along else np.arange(n) for i, n in enumerate(array.shape)))] = array
        arrays[name] = wide
    return replace(end, parameters=end.parameters.replace(**arrays))


def with_arrays(start: Parameters, given: Mapping[str, Any], dummies: int) -> Parameters:
    """Replace arrays of the starting point.

    Parameters
    ----------
    start : Parameters
        A start with the shapes of the problem.
    given : mapping of str to array_like
        Arrays by parameter name; P and w may lack the rows of the dummy features.
    dummies : int
        The number of dummy features, which come last.

    Raises
    ------
    ValueError
        If an array has the wrong shape.
    """
    arrays = {}
    # With several machines the rows are the second axis.
    before = (slice(None),) * (start.n_machines is not None)
    for name, value in given.items():
        array, filled = np.asarray(value, dtype=np.float64), np.array(start[name])
        place = filled
        if filled.ndim > len(before) and array.shape != filled.shape:
            # Attributes of estimators lack the rows of dummy features, which keep their initial values.
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
        The `key_of` the fit from its final parameters; "" after `partial_fit`.
    state : Checkpoint or None
        The final state; None if nothing of it stays valid for other rows.
    """

    solver: str
    key: str
    state: Checkpoint | None


def key_of(fit: Fit) -> str:
    """Return a hash of the problem of a fit, the settings of its solver and its start."""
    problem, solver, start = fit.problem, fit.solver, fit.start
    parts = (
        *(problem.model, problem.penalty, problem.loss, problem.rank),
        *(np.asarray(getattr(problem, name)).tolist() for name in STRENGTHS),
        *(problem.fit_linear, problem.fit_intercept, problem.design.storage.name, problem.design.shape),
        *(solver.name, solver.settings, list(start)),
    )
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=16)
    for array in (*problem.design.columns, problem.y, problem.unit_weights, *start.values()):
        if array.size:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
