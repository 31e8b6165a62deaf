"""The interactions of one order of any model: entries, slices, matrices, rankings and counts.

Throughout, the weight of a set S of m features is multiplicity times an entry of a symmetric tensor: of
Σ_s c_s p_s ⊗ … ⊗ p_s, so Σ_s c_s Π_{j∈S} p_js, or of a lifted model's symmetrised Σ_s c_s u_s¹ ⊗ … ⊗ u_s^m.
Pair weights W that are parameters have no columns; `pairs_of` reads the pairs of every model.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import comb, factorial
from typing import Any, ClassVar, Protocol

import numpy as np

from ..counting import used_matchings, used_subsets
from ..models import Model, SharedBasis
from ..models.columns import Polynomial
from ..parameters import Parameters
from .matchings import contracted_factors, matching_weight, ranked_matchings
from .pairs import FactoredPairs, GivenPairs, PairWeights, never_zero
from .tensors import ranked_subsets

_WORK = 1.4e8
"""The most products a column in a ranking: all triples of 512 features."""


class KeptRows(Protocol):
    """Some rows of P."""

    @property
    def rows(self) -> np.ndarray:
        """Their features, ascending."""

    @property
    def values(self) -> np.ndarray:
        """The rows."""

    @property
    def n_features(self) -> int:
        """The number of rows of P."""

    @property
    def coefficients(self) -> np.ndarray | None:
        """The weights of the columns, where they are not 1."""


@dataclass(frozen=True, eq=False)
class Interactions:
    """The interactions of one order, represented by columns of P.

    Attributes
    ----------
    order : int
        The number m of features that interact.
    rows : (n,) int ndarray
        The features, ascending.
    values : (n, k) ndarray
        Their rows of P, in the columns of this order.
    coefficients : (k,) ndarray
        c_s.
    n_features : int
        The number of rows of the full P.
    repeats : bool
        Whether a feature may occur in a product several times, as in ⟨p, x⟩^m.
    """

    order: int
    rows: np.ndarray
    values: np.ndarray
    coefficients: np.ndarray
    n_features: int
    repeats: bool = False

    # The axes of `values` besides the rows.
    _within_rows: ClassVar[Any] = 1

    @property
    def multiplicity(self) -> int:
        """How often the product of m distinct features occurs in a kernel: m! in ⟨p, x⟩^m, else once."""
        return factorial(self.order) if self.repeats else 1

    def places(self, features: Sequence[int]) -> list[int] | None:
        """Return the positions of features among the rows, or None where one is missing."""
        where = {int(feature): place for place, feature in enumerate(self.rows)}
        return [where[j] for j in features] if all(j in where for j in features) else None

    def at(self, features: Sequence[int]) -> Interactions:
        """Return the slice at some features, with p_fs of each multiplied into c_s.

        Rows of these features are left out, unless features may repeat.
        """
        places = self.places(features)
        if places is None:
            return replace(self, values=np.zeros((self.rows.size, 0)), coefficients=np.zeros(0))
        coefficients, live = self.coefficients, (self.values[places] != 0).all(axis=0)
        for place in places:
            coefficients = coefficients * self.values[place]
        # A product that underflows still counts as non-zero.
        coefficients = np.where(live & (self.coefficients != 0), never_zero(coefficients), 0.0)
        kept = np.ones(self.rows.size, dtype=bool)
        if not self.repeats:
            kept[places] = False
        return replace(self, rows=self.rows[kept], values=self.values[kept], coefficients=coefficients)

    def weights(self) -> np.ndarray:
        """Return the entries for all pairs of rows, shape (n, n), of order 2 or of a slice at m − 2 features.

        They are Σ_s c_s p_is p_js, or ½ Σ_s c_s (u_is v_js + v_is u_js): zero if and only if every summand
        has a factor 0.
        """
        left, right = self._sides()
        met = (left != 0).astype(np.float32) @ (right != 0).astype(np.float32).T > 0
        half = 0.5 * (left @ right.T)
        return np.where(met, never_zero(half + half.T), 0.0)

    def matrix(self) -> np.ndarray:
        """Return `weights` over all features, shape (n_features, n_features)."""
        full = np.zeros((self.n_features, self.n_features))
        full[np.ix_(self.rows, self.rows)] = self.weights()
        return full

    def pairs(self, times: float = 1.0) -> PairWeights:
        """Return `weights` times a number, off the diagonal, as pair weights read block by block."""
        left, right = self._sides()
        left = _weighed(left, times)
        kept = left.any(axis=1)
        return FactoredPairs(self.rows[kept], self.n_features, left[kept], right[kept], self.repeats)

    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Return L and R, with `weights` = L Rᵀ."""
        live = self.coefficients != 0
        values = self.values[:, live]
        return _weighed(values, self.coefficients[live]), values

    def within(self, work: float = _WORK, most: int | None = None) -> Interactions:
        """Return the interactions of as many of the largest rows as can be ranked with this much work."""
        n = self.rows.size if most is None else min(most, self.rows.size)
        while n > self.order and comb(n, self.order - 2) * float(n) ** 2 > work:
            n = int(0.95 * n)
        return self.largest_rows(n)

    def largest_rows(self, most: int) -> Interactions:
        """Return the factors of the rows with the largest entries, at most so many."""
        if self.rows.size <= most:
            return self
        size = np.abs(self.values).max(axis=self._within_rows, initial=0.0)
        kept = np.sort(np.argsort(-size, kind="stable")[:most])
        return replace(self, rows=self.rows[kept], values=self.values[..., kept, :])

    def entry(self, features: Sequence[int]) -> float:
        """Return the weight of a set of distinct features, multiplicity included.

        Its size is the order, except for all subsets, whose columns include sets of every size.
        """
        places = self.places(features)
        return 0.0 if places is None else self._entry(places) * self.multiplicity

    def _entry(self, places: Sequence[int]) -> float:
        """Return the tensor's entry at some distinct places among the rows."""
        return float(self.values[places].prod(axis=0) @ self.coefficients)

    def uses(self, features: Sequence[int]) -> bool:
        """Return whether a set of distinct features is used: in some live column no entry is 0."""
        places = self.places(features)
        return places is not None and self._uses(places)

    def _uses(self, places: Sequence[int]) -> bool:
        return bool(((self.values[places] != 0).all(axis=0) & (self.coefficients != 0)).any())

    def n_used(self) -> int:
        """Return the number of used sets."""
        live = self.values[:, self.coefficients != 0]
        return used_subsets(live, self.order)[self.order] if live.size else 0

    def n_features_used(self) -> int:
        """Return the number of features with a non-zero entry in a live column."""
        return int((self.values[..., self.coefficients != 0] != 0).any(axis=self._within_rows).sum())

    def recovery(self, true: Collection[tuple[int, ...]]) -> tuple[float, bool]:
        """Return the F1 score of the used sets against the true ones, and whether both are the same."""
        hits = sum(self.uses(features) for features in true)
        used = self.n_used()
        if not used and not true:
            return 1.0, True
        return 2 * hits / (used + len(true)), hits == used == len(true)

    def ranked(self, top: int | None = None, *, repeated: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return the used sets with the largest |weight|.

        Parameters
        ----------
        top : int, optional
            The most sets; without it all.
        repeated : bool
            Whether to list products in which a feature is repeated, too, where there are such.

        Returns
        -------
        features : (t, order) int ndarray
            Each ascending; the sets from the largest |weight| to the smallest, ties by the features.
        weight : (t,) ndarray
            Their weights, multiplicity included.

        Raises
        ------
        ValueError
            If the result does not fit into memory, or the search takes long; see
            `fmviz.engine.interactions.tensors.ranked_subsets`. Results of `within` need neither.
        """
        if top is not None and top < 1:
            return np.empty((0, self.order), dtype=int), np.empty(0)
        every = repeated and self.repeats
        places, weight = self._ranked(top, every)
        return self.rows[places], weight * (1 if every else self.multiplicity)

    def _ranked(self, top: int | None, repeated: bool) -> tuple[np.ndarray, np.ndarray]:
        return ranked_subsets(self.values, self.order, self.coefficients, top, repeated=repeated)

    def times(self, x: np.ndarray) -> Interactions:
        """Return the interactions whose weights are the terms of f at a row x, shape (d,), of the data."""
        return replace(self, values=self.values * x[self.rows][:, None])

    def total(self) -> float:
        """Return the sum of all products of the order, those with repeated features included."""
        if self.repeats:
            return float((self.values.sum(axis=0) ** self.order) @ self.coefficients)
        return float(elementary(self.values, self.order)[self.order] @ self.coefficients)


@dataclass(frozen=True, eq=False)
class LiftedInteractions(Interactions):
    """The interactions of a lifted model, represented by its factors U¹, …, U^m.

    Attributes
    ----------
    values : (m, n, k) ndarray
        The kept rows of U¹, …, U^m; of a slice at some features, of as many factors fewer.
    """

    _within_rows: ClassVar[Any] = (0, 2)

    def at(self, features: Sequence[int]) -> Interactions:
        """Return the slice at some features, which every factor takes in turn."""
        places = self.places(features)
        remaining = len(self.values) - len(features)
        if places is None:
            return replace(self, values=np.zeros((remaining, self.rows.size, 0)), coefficients=np.zeros(0))
        values, coefficients = self.values, self.coefficients
        for place in places:
            live = np.concatenate([(coefficients != 0) & (u[place] != 0) for u in values])
            values, coefficients = contracted_factors(values, coefficients / len(values), place)
            coefficients = np.where(live, never_zero(coefficients), 0.0)
        kept = np.ones(self.rows.size, dtype=bool)
        if not self.repeats:
            kept[places] = False
        return replace(self, rows=self.rows[kept], values=values[:, kept], coefficients=coefficients)

    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        live = self.coefficients != 0
        U, V = self.values[:, :, live]
        return _weighed(np.hstack([U, V]), 0.5 * np.tile(self.coefficients[live], 2)), np.hstack([V, U])

    def _entry(self, places: Sequence[int]) -> float:
        return matching_weight(self.weighed(), places) / factorial(self.order)

    def _uses(self, places: Sequence[int]) -> bool:
        """Return whether these rows can be assigned to the factors of a live column without a 0."""
        return matching_weight((self.weighed() != 0).astype(float), places) > 0

    def n_used(self) -> int:
        return used_matchings(self.weighed())

    def _ranked(self, top: int | None, repeated: bool) -> tuple[np.ndarray, np.ndarray]:
        places, weight = ranked_matchings(self.weighed(), top, repeated=repeated)
        return places, weight if repeated else weight / factorial(self.order)

    def total(self) -> float:
        """Return the sum of all products; for powers only, since the distinct form has order 2."""
        return float(self.values.sum(axis=1).prod(axis=0).sum())

    def weighed(self) -> np.ndarray:
        """Return the factors with the coefficients in the first."""
        first = np.where(self.coefficients != 0, _weighed(self.values[0], self.coefficients), 0.0)
        return np.concatenate([first[None], self.values[1:]])


def _weighed(values: np.ndarray, by: np.ndarray | float) -> np.ndarray:
    """Return values times non-zero numbers, 0 only where the values are 0."""
    return np.where(values != 0, never_zero(values * by), 0.0)


def elementary(values: np.ndarray, most: int) -> np.ndarray:
    """Return the elementary symmetric polynomials of every column up to an order, shape (most + 1, k)."""
    table = np.zeros((most + 1, values.shape[1]))
    table[0] = 1.0
    for row in values:
        table[1:] += row * table[:-1]
    return table


def orders_of(model: Model) -> tuple[int, ...]:
    """Return the orders whose interactions can be listed; () for a model without factors.

    All subsets have every order; pairs and triples are shown.
    """
    if not model.factorised:
        return ()
    if model.lifted:
        return (model.degree,)  # type: ignore[attr-defined]
    if not model.columnar:
        return (2,)
    degrees = [kernel.degree for kernel in model.kernels()]  # type: ignore[attr-defined]
    return (2, 3) if None in degrees else tuple(degrees)


def interactions_of(model: Model, parameters: Parameters | KeptRows, order: int) -> Interactions:
    """Return the interactions of one order; those of the first output of a model of several.

    Parameters
    ----------
    model : Model
        A factorised model with this order among its `orders_of`.
    parameters : Parameters or KeptRows
        Its parameters, or some rows of them.
    order : int
        m.

    Raises
    ------
    ValueError
        If the model has no interactions of this order.
    """
    if isinstance(model, SharedBasis) and isinstance(parameters, Parameters):
        model, parameters = model.of_output(parameters, 0)
    if order not in orders_of(model):
        known = ", ".join(map(str, orders_of(model))) or "none"
        raise ValueError(f"order = {order} is not one of this model's: {known}.")
    if isinstance(parameters, Parameters):
        rows, d = np.flatnonzero(parameters.P.any(axis=1)), parameters.P.shape[0]
        values = parameters.P[rows]
    else:
        rows, d, values = parameters.rows, parameters.n_features, parameters.values
    weights = np.ones(values.shape[1]) if parameters.coefficients is None else parameters.coefficients
    repeats = False
    if model.lifted:
        lifted: Any = model
        parts = lifted.factors(values)
        return LiftedInteractions(order, rows, parts, np.ones(parts.shape[2]), d, not lifted.distinct)
    if model.columnar:
        for columns, kernel in model.parts(values.shape[1]):  # type: ignore[attr-defined]
            if kernel.degree in (order, None):
                values, weights = values[:, columns], weights[columns]
                repeats = isinstance(kernel, Polynomial)
                break
    return Interactions(order, rows, values, weights, d, repeats)


def pairs_of(model: Model, parameters: Parameters | KeptRows, *, entries: bool = False) -> PairWeights:
    """Return the weights of the products of two distinct features in f, without forming W.

    With `entries`, return the entries of W, which are half of that where f has xᵀWx.

    Raises
    ------
    ValueError
        If f has no such products, with a sentence.
    """
    if isinstance(parameters, Parameters) and parameters.W is not None:
        return GivenPairs.of(parameters.W)
    orders = orders_of(model)
    if 2 not in orders:
        raise ValueError(
            f"This model, {model.label.lower()}, multiplies {orders[0]} features at a time and has no "
            "weights of pairs. “One row” takes its predictions apart, and Train shows its sets of features."
        )
    interactions = interactions_of(model, parameters, 2)
    return interactions.pairs(1 if entries else interactions.multiplicity)
