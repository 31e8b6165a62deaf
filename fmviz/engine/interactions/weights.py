"""The interactions of a given order of any model: entries, slices, matrices, rankings and counts.

The weight of a set S of m features is a multiple of an entry of a symmetric tensor: Σ_s c_s p_s ⊗ … ⊗ p_s,
with entries Σ_s c_s Π_{j∈S} p_js, or the symmetrized Σ_s c_s u_s¹ ⊗ … ⊗ u_s^m of a lifted model. Pairs are
read block by block without forming W.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb, factorial
from typing import Any, NamedTuple

import numpy as np

from ..counting import used_sets
from ..errors import finite_matrix, whole_number
from ..linalg.lowrank import eigenform, eigenform_of_weights
from ..models import Model, get_model
from ..parameters import Parameters
from ..penalties.higher_order import elementary_sums
from .search import check_room, largest_products

_WORK = 1.4e8
"""The maximum number of products per column in a ranking: all triples of 512 features."""


class Ranking(NamedTuple):
    """The strongest sets of features.

    Attributes
    ----------
    sets : (t, m) int ndarray
        The features of each set, ascending; from the largest |weight| to the smallest, ties by the features.
    weight : (t,) float ndarray
        Their weights.
    total : int
        The number of used pairs that pass the filters; t for larger sets.
    siblings : int
        The number of pairs excluded because both features belong to the same attribute.
    """

    sets: np.ndarray
    weight: np.ndarray
    total: int
    siblings: int = 0


def nothing() -> None:
    """Do nothing between strips of W."""


def never_zero(values: np.ndarray) -> np.ndarray:
    """Replace 0 by the smallest positive number, to keep cancelled or underflowed interactions used."""
    return np.where(values == 0, np.nextafter(0.0, 1.0), values)


def tile_edges(n_features: int, n_tiles: int) -> np.ndarray:
    """Return the first feature of every tile, followed by `n_features`, shape (n_tiles + 1,)."""
    n_tiles = max(1, min(n_tiles, n_features))
    return (np.arange(n_tiles + 1) * n_features) // n_tiles


@dataclass(frozen=True, eq=False)
class PairWeights(ABC):
    """Symmetric W that is 0 except in some rows and columns, without its diagonal.

    Attributes
    ----------
    rows : (n,) int ndarray
        The features with an entry, ascending. Methods use positions in this array.
    n_features : int
        The number d of all features.
    """

    rows: np.ndarray
    n_features: int

    def block(self, at: Any, to: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights between two lists of positions, and which of the pairs are used.

        Use is determined exactly by the structure of the parameters, even if a weight cancels to 0; a feature
        does not form a pair with itself. The weights of unused pairs are 0.
        """
        weight, used = self._entries(at, to)
        every = np.arange(self.rows.size)
        used &= every[at][:, None] != every[to]
        return np.where(used, weight, 0.0), used

    @abstractmethod
    def _entries(self, at: Any, to: Any) -> tuple[np.ndarray, np.ndarray]:
        """Like `block`, including squares; the arrays are writable."""

    def squares(self) -> np.ndarray | None:
        """Return the weight of x_j² for every row, shape (n,), or None if f has no squares."""
        return None

    def among(self, features: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the exact weights between two lists of features, and which pairs are used."""
        where = np.full(self.n_features, -1)
        where[self.rows] = np.arange(self.rows.size)
        rows, columns = where[features], where[others]
        weight = np.zeros((rows.size, columns.size))
        used = np.zeros(weight.shape, dtype=bool)
        at, to = np.flatnonzero(rows >= 0), np.flatnonzero(columns >= 0)
        if at.size and to.size:
            weight[np.ix_(at, to)], used[np.ix_(at, to)] = self.block(rows[at], columns[to])
        return weight, used

    def _strips(self, between: Callable[[], None] = nothing) -> Iterator[slice]:
        # The approximate number of entries of rows of W processed together.
        step = max(1, min(512, 2_000_000 // max(1, self.rows.size)))
        for begin in range(0, self.rows.size, step):
            between()
            yield slice(begin, min(begin + step, self.rows.size))

    def upper(
        self, between: Callable[[], None] = nothing
    ) -> Iterator[tuple[slice, slice, np.ndarray, np.ndarray]]:
        """Yield W above its diagonal in strips: positions of rows and columns, weights, and which are used.

        `between` is called before each strip, and may raise to stop.
        """
        for at in self._strips(between):
            to = slice(at.start, self.rows.size)
            weight, used = self.block(at, to)
            # On and below the diagonal of the leading square.
            used[:, : weight.shape[0]][np.tril_indices(weight.shape[0])] = False
            yield at, to, weight, used

    def ranked(
        self,
        top: int | None = None,
        codes: np.ndarray | None = None,
        hits: Sequence[np.ndarray] = (),
        between: Callable[[], None] = nothing,
    ) -> Ranking:
        """Return the used pairs of largest |weight| that pass the filters.

        Parameters
        ----------
        top : int, optional
            The maximum number; by default all.
        codes : (d,) int ndarray, optional
            The attribute of every feature; pairs within an attribute are excluded.
        hits : sequence of (d,) bool ndarray
            Masks, each of which must contain at least one feature of every pair.
        between : callable
            See `upper`.
        """
        best = np.empty((0, 2), dtype=int), np.empty(0)
        least, total, siblings = -1.0, 0, 0
        groups = None if codes is None else codes[self.rows]
        marks = [hit[self.rows] for hit in hits]
        for at, to, weight, used in self.upper(between):
            for mark in marks:
                used &= mark[at][:, None] | mark[to]
            if groups is not None:
                same = used & (groups[at][:, None] == groups[to])
                siblings += int(np.count_nonzero(same))
                used &= ~same
            total += int(np.count_nonzero(used))
            size = np.abs(weight)
            row, column = np.nonzero(used & (size >= least))
            size = size[row, column]
            if top is not None and size.size > top:
                kept = size >= np.partition(size, -top)[-top]
                row, column = row[kept], column[kept]
            pairs = np.column_stack([self.rows[at][row], self.rows[to][column]])
            sets, value = np.concatenate([best[0], pairs]), np.append(best[1], weight[row, column])
            by = np.lexsort((*sets.T[::-1], -np.abs(value)))[:top]
            best = sets[by], value[by]
            if by.size == top and top:
                least = abs(float(best[1][-1]))
        return Ranking(*best, total, siblings)

    def pooled(self, n_tiles: int) -> np.ndarray:
        """Max-pool W into at most `n_tiles` tiles along an axis.

        Returns
        -------
        (t, t) float64 ndarray
            The signed weight of largest magnitude in each tile; 0 if and only if no pair of the tile is used.
        """
        edges = tile_edges(self.n_features, n_tiles)
        high, low = np.zeros((edges.size - 1,) * 2), np.zeros((edges.size - 1,) * 2)
        tiles = np.searchsorted(edges, self.rows, side="right") - 1
        across, first = np.unique(tiles, return_index=True)
        for at in self._strips():
            weight, used = self.block(at, slice(0, self.rows.size))
            weight = np.where(used, never_zero(weight), 0.0)
            down, start = np.unique(tiles[at], return_index=True)
            place = np.ix_(down, across)
            for pool, kept in ((np.maximum, high), (np.minimum, low)):
                part = pool.reduceat(pool.reduceat(weight, first, axis=1), start, axis=0)
                kept[place] = pool(kept[place], part)
        return np.where(-low > high, low, high)


@dataclass(frozen=True, eq=False)
class GivenPairs(PairWeights):
    """Pair weights given by a parameter W; pairs with a non-zero entry are used.

    Attributes
    ----------
    rows, n_features
        See `PairWeights`.
    W : (n, n) ndarray
        The weights of the pairs of rows.
    """

    W: np.ndarray

    @classmethod
    def of(cls, W: np.ndarray) -> GivenPairs:
        """Return the weights of a symmetric matrix, shape (d, d)."""
        rows = np.flatnonzero(W.any(axis=1))
        return cls(rows, W.shape[0], W[np.ix_(rows, rows)])

    def _entries(self, at: Any, to: Any) -> tuple[np.ndarray, np.ndarray]:
        weight = self.W[at][:, to]
        return weight, weight != 0


@dataclass(frozen=True, eq=False)
class Interactions(PairWeights):
    """The interactions of an order, represented by factors; columns and rows without any are dropped.

    `PairWeights` represent order 2, or a slice at m − 2 features: a pair is used if its two rows share a
    column in which both are non-zero.

    Attributes
    ----------
    rows : (n,) int ndarray
        The features, ascending.
    n_features : int
        The number d of all features.
    order : int
        The number m of interacting features.
    factors : (f, n, k) ndarray
        The rows of the factors: of P with f = 1, or of U¹, …, U^m of a lifted model with f = m.
    coefficients : (k,) ndarray
        The coefficients c_s.
    repeats : bool
        Whether features may be repeated in a product, as in ⟨p, x⟩^m.
    multiplicity : int
        The multiplicity of a product of m distinct features: m! in ⟨p, x⟩^m, 1 for tensor entries.

    Examples
    --------
    >>> import fmviz
    >>> pairs = fmviz.Interactions.of([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0]])
    >>> ranking = pairs.ranked(top=2)
    >>> ranking.sets.tolist(), ranking.weight.tolist()
    ([[1, 2], [0, 1]], [3.0, 2.0])
    >>> pairs.entry([1, 2]), pairs.n_used()
    (3.0, 2)
    >>> triples = fmviz.Interactions.of([[1.0, 1.0], [2.0, 1.0], [0.0, 3.0]], order=3)
    >>> triples.at([0]).matrix().tolist()
    [[0.0, 0.0, 0.0], [0.0, 5.0, 3.0], [0.0, 3.0, 9.0]]
    """

    order: int
    factors: np.ndarray
    coefficients: np.ndarray
    repeats: bool = False
    multiplicity: int = 1

    def __post_init__(self) -> None:
        live = self.coefficients != 0
        factors = self.factors if live.all() else self.factors[..., live]
        kept = factors.any(axis=2).any(axis=0)
        coefficients = self.coefficients[live]
        vars(self).update(rows=self.rows[kept], factors=factors[:, kept], coefficients=coefficients)

    @classmethod
    def of(cls, P: Any, order: int = 2, coefficients: Any = None, *, repeats: bool = False) -> Interactions:
        """Return the products of `order` features in Σ_s c_s A^m(p_s, x), or in Σ_s c_s⟨p_s, x⟩^m.

        Parameters
        ----------
        P : (d, k) array_like
            The factors.
        order : int
            The order m, from 2 to 10.
        coefficients : (k,) array_like, optional
            The coefficients c_s; ones by default.
        repeats : bool
            Whether the kernel repeats features, ⟨p_s, x⟩^m, which counts products m! times.

        Raises
        ------
        ValueError
            If an argument is out of range.
        """
        values, m = finite_matrix("P", P), whole_number("order", order, 2, 10)
        d, k = values.shape
        weights = np.ones(k) if coefficients is None else np.asarray(coefficients, dtype=np.float64)
        if weights.shape != (k,) or not np.isfinite(weights).all():
            raise ValueError(
                f"coefficients have shape {weights.shape}; P has {k} column(s), and each needs one finite "
                "number."
            )
        return cls(np.arange(d), d, m, values[None], weights, repeats, factorial(m) if repeats else 1)

    def _places(self, features: Sequence[int]) -> list[int]:
        """Return the positions of distinct features among the rows; [] if one has no entry."""
        for feature in features:
            whole_number("feature", feature, 0, self.n_features - 1)
        if not len(features) or len(set(features)) < len(features):
            raise ValueError(f"{list(features)!r} must contain at least one feature, without repetition.")
        where = {int(feature): place for place, feature in enumerate(self.rows)}
        return [where[j] for j in features] if all(j in where for j in features) else []

    @property
    def _scale(self) -> float:
        """The weight of a product divided by the sum over all its assignments to the factors."""
        return self.multiplicity / factorial(len(self.factors))

    def at(self, features: Sequence[int]) -> Interactions:
        """Return the slice at some features, summed over their assignments to the factors.

        Rows of these features are omitted unless features may repeat.
        """
        places, factors = self._places(features), self.factors
        coefficients = self.coefficients if places else np.zeros_like(self.coefficients)
        for place in places:
            live = (coefficients != 0) & (factors[:, place] != 0)
            # A product that underflows still counts as non-zero.
            taken = never_zero(coefficients / len(factors) * factors[:, place])
            coefficients = np.where(live, taken, 0.0).ravel()
            if len(factors) > 1:
                others = [np.delete(factors, t, axis=0) for t in range(len(factors))]
                factors = np.concatenate(others, axis=2)
        kept = np.ones(self.rows.size, dtype=bool)
        kept[places if not self.repeats else []] = False
        return replace(
            self,
            rows=self.rows[kept],
            order=self.order - len(features),
            factors=factors[:, kept],
            coefficients=coefficients,
            multiplicity=1,
        )

    @cached_property
    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        """L and R of the pair weights L Rᵀ; L is 0 only where factors are."""
        factors = np.hstack([*self.factors])
        weights = np.tile(self.coefficients * self._scale, len(self.factors))
        return np.where(factors != 0, never_zero(factors * weights), 0.0), np.hstack([*self.factors[::-1]])

    def _entries(self, at: Any, to: Any) -> tuple[np.ndarray, np.ndarray]:
        left, right = self._sides[0][at], self._sides[1][to]
        return left @ right.T, (left != 0).astype(np.float32) @ (right != 0).astype(np.float32).T > 0

    def squares(self) -> np.ndarray | None:
        return 0.5 * np.multiply(*self._sides).sum(axis=1) if self.repeats else None

    def matrix(self) -> np.ndarray:
        """Return the weights of all pairs, shape (d, d), 0 if unused.

        The diagonal has the entries of the tensor, which are irrelevant unless features repeat.
        """
        check_room(
            f"The weights of {self.n_features:,} × {self.n_features:,} features", 3 * self.n_features**2
        )
        full, every = np.zeros((self.n_features, self.n_features)), slice(None)
        weight, used = self._entries(every, every)
        full[np.ix_(self.rows, self.rows)] = np.where(used, never_zero(0.5 * (weight + weight.T)), 0.0)
        return full

    def within(self, work: float = _WORK, most: int | None = None) -> Interactions:
        """Return the interactions of the rows with the largest entries.

        Their number is at most `most` and limited by the work of ranking them.
        """
        n = self.rows.size if most is None else min(most, self.rows.size)
        while n > self.order and comb(n, self.order - 2) * float(n) ** 2 > work:
            n = int(0.95 * n)
        kept = np.sort(np.argsort(-np.abs(self.factors).max(axis=(0, 2), initial=0.0), kind="stable")[:n])
        return replace(self, rows=self.rows[kept], factors=self.factors[:, kept])

    def entry(self, features: Sequence[int]) -> float:
        """Return the weight of a set of m distinct features."""
        return float(self._only(features).weight.sum())

    def uses(self, features: Sequence[int]) -> bool:
        """Return whether a set of m distinct features is structurally used."""
        return self._only(features).weight.size > 0

    def _only(self, features: Sequence[int]) -> Ranking:
        """Return the ranking of one set, if it is used."""
        places = sorted(self._places(features))
        return replace(self, rows=self.rows[places], factors=self.factors[:, places]).ranked()

    def n_used(self) -> int:
        """Return the number of used sets."""
        return used_sets(self.factors, self.order)

    def ranked(
        self,
        top: int | None = None,
        codes: np.ndarray | None = None,
        hits: Sequence[np.ndarray] = (),
        between: Callable[[], None] = nothing,
        *,
        repeated: bool = False,
    ) -> Ranking:
        """Return the used sets with the largest |weight|.

        Parameters
        ----------
        top, codes, hits, between
            See `PairWeights.ranked`; larger sets have no filters.
        repeated : bool
            Whether to also list products with repeated features, if the model has them.

        Raises
        ------
        ValueError
            If the result does not fit into memory, or the search takes too long; see
            `fmviz.engine.interactions.search.largest_products`. Not raised for results of `within`.
        """
        if self.order == 2 and not (repeated and self.repeats):
            return super().ranked(top, codes, hits, between)
        places, weight = largest_products(
            self.factors, self.coefficients, self.order, top, repeated=repeated and self.repeats
        )
        return Ranking(self.rows[places], weight * self._scale, weight.size)

    def total(self) -> float:
        """Return the sum of all products of the order, including those with repeated features."""
        if self.repeats:
            sums = self.factors.sum(axis=1).prod(axis=0) ** (self.order // len(self.factors))
        else:
            # Lifted models without repetition have only pairs, which are enumerated.
            sums = elementary_sums(self.factors[0], self.order)[self.order]
        return float(sums @ self.coefficients)


def interactions_of(model: Model, parameters: Any, order: int = 2, *, entries: bool = False) -> Interactions:
    """Return the interactions of an order, for the first output if there are several.

    Parameters
    ----------
    model : Model
        A model with this order among its `orders`.
    parameters : Parameters or fmviz.lab.background.thinned.Thinned
        The parameters, or the `values` of some `rows` of P.
    order : int
        The order m.
    entries : bool
        Whether weights are tensor entries even if f counts every product m! times.

    Raises
    ------
    ValueError
        If the model has no interactions of this order.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> from fmviz.engine.snapshot import Parameters
    >>> fitted = Parameters(np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0]]), np.zeros(3), 0.0)
    >>> fmviz.interactions_of(fmviz.models.FactorizationMachine(), fitted).ranked().sets.tolist()
    [[1, 2], [0, 1]]
    """
    if isinstance(parameters, Parameters):
        model, parameters = model.of_output(parameters, 0)
    if order not in model.orders:
        has = " or ".join(map(str, model.orders))
        raise ValueError(
            f"This model, {model.label.lower()}, has products of {has} features and no weights of "
            f"{'pairs' if order == 2 else f'sets of {order}'}. “One row” explains its predictions, and "
            "Train shows its sets of features."
        )
    if isinstance(parameters, Parameters):
        values, d, rows = parameters.P, len(parameters.P), np.arange(len(parameters.P))
    else:
        values, d, rows = parameters.values, parameters.n_features, parameters.rows
    weights = np.ones(values.shape[1]) if parameters.coefficients is None else parameters.coefficients
    factors, weights = model.products(values, weights, order)
    times = factorial(order) if model.repeats and not entries else 1
    return Interactions(rows, d, order, factors, weights, model.repeats, times)


def pairs_of(model: Model, parameters: Any, *, entries: bool = False) -> PairWeights:
    """Return the weights of the products of two distinct features in f; see `interactions_of`."""
    if isinstance(parameters, Parameters) and parameters.W is not None:
        return GivenPairs.of(parameters.W)
    return interactions_of(model, parameters, entries=entries)


def to_expansion(model: Model | str, parameters: Parameters) -> Parameters:
    """Return (λ, P) with orthonormal columns and P diag(λ) Pᵀ = W: the reduced eigendecomposition.

    For lifted factors and columns, W, shape (d, d), is not formed: ½(UVᵀ + VUᵀ) is P diag(±1) Pᵀ with
    P = ½[U + V, U − V], and a QR decomposition of P reduces it to the eigenproblem of a matrix with at most
    2r rows: O(d·r²) for r columns (compare [B] Section 5.2). Then Σ|λ_s|‖p_s‖² = ‖W‖_tr, the minimum cost of
    any (λ, P) or (U, V) with this W ([B] Lemmas 9 and 10): the objective of the fitted `expansion` at this
    point is at most that of the lifted model.

    Parameters
    ----------
    model : Model or str
        A second-order model, or its name for default settings.
    parameters : Parameters
        Lifted factors, columns with or without coefficients, or W.

    Returns
    -------
    fmviz.engine.snapshot.Parameters
        P, shape (d, k), where k is the rank of W, and the coefficients λ by descending |λ_s|; w and the bias
        are unchanged. Rows of unused features are exactly 0.

    Raises
    ------
    ValueError
        If the model is not a second-order model.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> from fmviz.engine.snapshot import Parameters
    >>> W = np.array([[0.0, 2.0], [2.0, 3.0]])
    >>> expansion = fmviz.to_expansion("qr", Parameters.of_weights(W))
    >>> expansion.multipliers.round(6).tolist()
    [4.0, -1.0]
    >>> np.allclose((expansion.P * expansion.multipliers) @ expansion.P.T, W)
    True
    """
    model = get_model(model)
    if model.order != 2:
        orders = "all orders" if model.order is None else f"order {model.order}"
        raise ValueError(
            f"{model.label} has interactions of {orders}, whose weights form a tensor without an "
            "eigendecomposition. Choose a model of order 2."
        )
    if parameters.W is not None:
        columns, values = eigenform_of_weights(parameters.W)
    elif len(factors := model.products(parameters.P, parameters.multipliers, 2)[0]) == 2:
        left, right = factors
        signs = np.repeat([1.0, -1.0], left.shape[1])
        columns, values = eigenform(0.5 * np.hstack([left + right, left - right]), signs)
    else:
        columns, values = eigenform(parameters.P, parameters.multipliers)
    return Parameters(columns, parameters.w.copy(), parameters.intercept, coefficients=values)
