"""Interaction weights of any order, from the columns of a factorized model.

Throughout, the weight of a set S of m features is multiplicity times an entry of a symmetric tensor: of
Σ_s c_s p_s ⊗ … ⊗ p_s, so Σ_s c_s Π_{j∈S} p_js, or of a lifted model's symmetrised Σ_s c_s u_s¹ ⊗ … ⊗ u_s^m.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, factorial
from typing import Any

import numpy as np

from fmviz.engine.counting import used_matchings, used_subsets
from fmviz.engine.interactions.matchings import held_factors, matching_weight, ranked_matchings
from fmviz.engine.linalg.lowrank import eigenform
from fmviz.engine.models import Model
from fmviz.engine.models.columns import Polynomial
from fmviz.engine.parameters import Parameters
from fmviz.lab.background.thinned import N_TILES, ThinnedFactors
from fmviz.lab.interpretation.tiles import pooled_interactions, pooled_rows

_WORK = 1.4e8
"""The most products of a column that a ranking forms: all triples of 512 features."""


@dataclass(frozen=True, eq=False)
class Factors:
    """The columns that the interactions of one order are made of.

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

    @property
    def multiplicity(self) -> int:
        """How often the product of m distinct features occurs in a kernel: m! in ⟨p, x⟩^m, else once."""
        return factorial(self.order) if self.repeats else 1

    def places(self, features: Sequence[int]) -> list[int] | None:
        """Return the positions of features among the rows, or None where one of them is not there."""
        where = {int(feature): place for place, feature in enumerate(self.rows)}
        return [where[j] for j in features] if all(j in where for j in features) else None

    def fixed(self, features: Sequence[int]) -> Factors:
        """Return the factors of the slice at some features: p_fs for each is multiplied into c_s.

        Rows of these features are left out, unless features may repeat.
        """
        places = self.places(features)
        if places is None:
            return replace(self, values=np.zeros((self.rows.size, 0)), coefficients=np.zeros(0))
        coefficients, live = self.coefficients, (self.values[places] != 0).all(axis=0)
        for place in places:
            coefficients = coefficients * self.values[place]
        # A product that underflows is still one.
        coefficients = np.where(live & (self.coefficients != 0), _never_zero(coefficients), 0.0)
        kept = np.ones(self.rows.size, dtype=bool)
        if not self.repeats:
            kept[places] = False
        return replace(self, rows=self.rows[kept], values=self.values[kept], coefficients=coefficients)

    def weights(self) -> np.ndarray:
        """Return Σ_s c_s p_is p_js for every two of the rows, shape (n, n).

        Zero if and only if no column is non-zero in both rows and in c.
        """
        live = self.coefficients != 0
        values = self.values[:, live]
        weight = (values * self.coefficients[live]) @ values.T
        mask = (values != 0).astype(np.float32)
        return np.where((mask @ mask.T) > 0, _never_zero(weight), 0.0)

    def matrix(self) -> np.ndarray:
        """Return `weights` over all features, shape (n_features, n_features)."""
        full = np.zeros((self.n_features, self.n_features))
        full[np.ix_(self.rows, self.rows)] = self.weights()
        return full

    def tiles(self) -> np.ndarray:
        """Return `weights` as tiles, by `fmviz.lab.interpretation.tiles.pooled_interactions`."""
        live = self.coefficients != 0
        return pooled_interactions(
            self.rows, self.values[:, live], self.n_features, N_TILES, self.coefficients[live]
        )

    def largest_rows(self, most: int) -> Factors:
        """Return the factors of the rows with the largest entries, at most so many."""
        if self.rows.size <= most:
            return self
        size = np.abs(self.values).max(axis=1, initial=0.0)
        kept = np.sort(np.argsort(-size, kind="stable")[:most])
        return replace(self, rows=self.rows[kept], values=self.values[kept])

    def entry(self, places: Sequence[int]) -> float:
        """Return the tensor's entry at some distinct places among the rows."""
        return float(self.values[places].prod(axis=0) @ self.coefficients)

    def uses(self, places: Sequence[int]) -> bool:
        """Return whether all rows at these places are non-zero in one live column."""
        return bool(((self.values[places] != 0).all(axis=0) & (self.coefficients != 0)).any())

    def n_used(self) -> int:
        """Return the number of used sets."""
        live = self.values[:, self.coefficients != 0]
        return used_subsets(live, self.order)[self.order] if live.size else 0

    def eigenvalues(self) -> np.ndarray:
        """Return the non-zero eigenvalues of `weights`, from the largest magnitude down, k at most."""
        R = np.asarray(np.linalg.qr(self.values, mode="r"))
        values = np.linalg.eigvalsh((R * self.coefficients) @ R.T)
        values = values[np.argsort(-np.abs(values), kind="stable")]
        largest = np.abs(values).max(initial=0.0)
        return values[np.abs(values) > 1e-12 * largest] if largest else values[:0]


@dataclass(frozen=True, eq=False)
class LiftedFactors(Factors):
    """The factors U¹, …, U^m that the interactions of a lifted model are made of.

    Attributes
    ----------
    values : (m, n, k) ndarray
        The kept rows of U¹, …, U^m; of a slice at some features, of as many factors fewer.
    """

    def fixed(self, features: Sequence[int]) -> Factors:
        """See `Factors.fixed`: every factor in turn takes a feature that is held."""
        places = self.places(features)
        left = len(self.values) - len(features)
        if places is None:
            return replace(self, values=np.zeros((left, self.rows.size, 0)), coefficients=np.zeros(0))
        values, coefficients = self.values, self.coefficients
        for place in places:
            live = np.concatenate([(coefficients != 0) & (u[place] != 0) for u in values])
            values, coefficients = held_factors(values, coefficients / len(values), place)
            coefficients = np.where(live, _never_zero(coefficients), 0.0)
        kept = np.ones(self.rows.size, dtype=bool)
        if not self.repeats:
            kept[places] = False
        return replace(self, rows=self.rows[kept], values=values[:, kept], coefficients=coefficients)

    def weights(self) -> np.ndarray:
        """Return ½ Σ_s c_s (u_is v_js + v_is u_js) for every two of the rows, shape (n, n).

        Zero if and only if all of these products have a factor 0.
        """
        left, right = self.values[:, :, self.coefficients != 0]
        half = 0.5 * (left * self.coefficients[self.coefficients != 0]) @ right.T
        met = (left != 0).astype(np.float32) @ (right != 0).astype(np.float32).T > 0
        return np.where(met | met.T, _never_zero(half + half.T), 0.0)

    def tiles(self) -> np.ndarray:
        """See `Factors.tiles`."""
        return pooled_rows(self.rows, self.weights(), self.n_features, N_TILES)

    def largest_rows(self, most: int) -> Factors:
        """See `Factors.largest_rows`."""
        if self.rows.size <= most:
            return self
        size = np.abs(self.values).max(axis=(0, 2), initial=0.0)
        kept = np.sort(np.argsort(-size, kind="stable")[:most])
        return replace(self, rows=self.rows[kept], values=self.values[:, kept])

    def entry(self, places: Sequence[int]) -> float:
        """See `Factors.entry`."""
        return matching_weight(self._weighed(), places) / factorial(self.order)

    def uses(self, places: Sequence[int]) -> bool:
        """Return whether these rows can be dealt out to the factors of a live column, no entry being 0."""
        return matching_weight((self._weighed() != 0).astype(float), places) > 0

    def n_used(self) -> int:
        """See `Factors.n_used`."""
        return used_matchings(self._weighed())

    def eigenvalues(self) -> np.ndarray:
        """See `Factors.eigenvalues`; twice k at most, as ½(UVᵀ + VUᵀ) is P diag(±1) Pᵀ, P = ½[U+V, U−V]."""
        left, right = self._weighed()
        signs = np.repeat([1.0, -1.0], left.shape[1])
        return eigenform(0.5 * np.hstack([left + right, left - right]), signs)[1]

    def ranked(self, top: int) -> tuple[np.ndarray, np.ndarray]:
        """See `ranked_sets`."""
        places, weight = ranked_matchings(self._weighed(), top)
        return self.rows[places], weight * (self.multiplicity / factorial(self.order))

    def _weighed(self) -> np.ndarray:
        """Return the factors with the coefficients in the first."""
        first = np.where(self.values[0] != 0, _never_zero(self.values[0] * self.coefficients), 0.0)
        return np.concatenate([np.where(self.coefficients != 0, first, 0.0)[None], self.values[1:]])


def _never_zero(values: np.ndarray) -> np.ndarray:
    return np.where(values == 0, np.nextafter(0.0, 1.0), values)


def orders_of(model: Model) -> tuple[int, ...]:
    """Return the orders whose interactions can be looked at; () for a model without factors.

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


def factors_of(model: Model, found: Parameters | ThinnedFactors, order: int) -> Factors:
    """Return what the interactions of one order are made of.

    Parameters
    ----------
    model : Model
        A factorised model with this order among its `orders_of`.
    found : Parameters or ThinnedFactors
        Its parameters, whole or thinned.
    order : int
        m.

    Raises
    ------
    ValueError
        If the model has no interactions of this order.
    """
    if order not in orders_of(model):
        known = ", ".join(map(str, orders_of(model))) or "none"
        raise ValueError(f"order = {order} is not one of this model's: {known}.")
    if isinstance(found, Parameters):
        # Neither the largest rows nor any other choice: all of them.
        found = ThinnedFactors.of(found.P, found.P.shape[0], found.coefficients)
    values, d = found.values, found.n_features
    weights = np.ones(values.shape[1]) if found.coefficients is None else found.coefficients
    repeats = False
    if model.lifted:
        lifted: Any = model
        parts = lifted.factors(values)
        return LiftedFactors(order, found.rows, parts, np.ones(parts.shape[2]), d, not lifted.distinct)
    if model.columnar:
        for columns, kernel in model.parts(values.shape[1]):  # type: ignore[attr-defined]
            if kernel.degree in (order, None):
                values, weights = values[:, columns], weights[columns]
                repeats = isinstance(kernel, Polynomial)
                break
    return Factors(order, found.rows, values, weights, d, repeats)


# ------------------------------------------------------------------------------------------------ ranking


def rankable(n: int, order: int, work: float = _WORK) -> int:
    """Return among how many of n rows all sets of `order` features can be ranked with so much work."""
    while n > order and comb(n, order - 2) * float(n) ** 2 > work:
        n = int(0.95 * n)
    return n


def ranked_sets(factors: Factors, top: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the used sets of distinct features with the largest |weight|.

    Parameters
    ----------
    factors : Factors
        At most `rankable` rows, or it takes long.
    top : int
        The most sets to return.

    Returns
    -------
    features : (t, order) int ndarray
        Each ascending; the sets from the largest |weight| to the smallest, ties by the features.
    weight : (t,) ndarray
        Their weights, multiplicity included.
    """
    m, n = factors.order, factors.rows.size
    best = np.empty((0, m), dtype=int), np.empty(0)
    if top < 1 or n < m:
        return best
    if isinstance(factors, LiftedFactors):
        return factors.ranked(top)
    # From the largest row to the smallest: most of what follows is then too small to be looked at.
    order = np.argsort(-np.abs(factors.values).max(axis=1, initial=0.0), kind="stable")
    sorted_ = replace(factors, rows=factors.rows[order], values=factors.values[order])
    peak = np.abs(sorted_.values).max(axis=0, initial=0.0)
    for first in combinations(range(n - 2), m - 2):
        start = first[-1] + 1 if first else 0
        prefix = sorted_.coefficients.copy()
        for place in first:
            prefix = prefix * sorted_.values[place]
        full = best[1].size == top
        if full and float(np.abs(prefix) @ peak**2) < abs(best[1][-1]):
            continue
        rest = replace(sorted_, rows=sorted_.rows[start:], values=sorted_.values[start:], coefficients=prefix)
        weight = np.triu(rest.weights(), 1)
        a, b = np.nonzero(np.abs(weight) >= abs(best[1][-1])) if full else np.nonzero(weight)
        keep = weight[a, b] != 0
        a, b = a[keep], b[keep]
        if not a.size:
            continue
        size = np.abs(weight[a, b])
        if size.size > 4 * top:
            kept = size >= np.partition(size, -top)[-top]
            a, b = a[kept], b[kept]
        head = np.tile(sorted_.rows[list(first)], (a.size, 1))
        sets = np.sort(np.column_stack([head, rest.rows[a], rest.rows[b]]).astype(int), axis=1)
        best = _largest(np.vstack([best[0], sets]), np.concatenate([best[1], weight[a, b]]), top)
    return best[0], best[1] * factors.multiplicity


def _largest(sets: np.ndarray, weight: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort((*sets.T[::-1], -np.abs(weight)))[:top]
    return sets[order], weight[order]


def weight_of(factors: Factors, features: Sequence[int]) -> float:
    """Return the weight of one set of distinct features, of whatever size, multiplicity included.

    The size is the order, except for all subsets, whose columns hold sets of every size.
    """
    places = factors.places(features)
    if places is None:
        return 0.0
    return factors.entry(places) * factors.multiplicity


# ----------------------------------------------------------------------------------------------- recovery


def used_features(factors: Factors) -> int:
    """Return the number of features with a non-zero entry in a live column of this order."""
    return int((factors.values[:, factors.coefficients != 0] != 0).any(axis=1).sum())


def recovery(factors: Factors, true: Collection[tuple[int, ...]]) -> tuple[float, bool]:
    """Return the F1 score of the used sets against the true ones, and whether both are the same.

    Used are the sets of features that share a live column in which all are non-zero (`Factors.uses`).
    """
    hits = 0
    for features in true:
        places = factors.places(features)
        hits += places is not None and factors.uses(places)
    used = factors.n_used()
    if not used and not true:
        return 1.0, True
    return 2 * hits / (used + len(true)), hits == used == len(true)
