"""Exact decomposition of a prediction into bias, linear terms, pairs, squares and higher orders.

Every model is a polynomial of its features: f(x) is a sum over products of features. For orders above two the
largest products are separate terms, and the remaining products form one term.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fmviz.engine.design import Design
from fmviz.engine.interactions.weights import interactions_of, pairs_of
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties.higher_order import elementary_sums

KINDS = {
    "bias": "bias",
    "linear": "linear",
    "column": "columns alone",
    "pair": "pairs",
    "square": "squares",
    "higher": "higher orders",
}
"""The kinds of terms, with their labels."""

_NAMED = 20
_WORK = 1e6


@dataclass(frozen=True)
class Term:
    """A term of a prediction.

    Attributes
    ----------
    kind : {"bias", "linear", "column", "pair", "square", "higher"}
        The kind of term.
    order : int
        The number of factors of the product.
    features : tuple of int
        The features; () for the bias and for the remainder of an order.
    value : float
        The value of the term.
    """

    kind: str
    order: int
    features: tuple[int, ...]
    value: float


@dataclass(frozen=True, eq=False)
class Decomposition:
    """A prediction and its terms.

    Attributes
    ----------
    terms : tuple of Term
        All terms that are not structurally zero.
    predicted : float
        f(x) as computed by the model.
    """

    terms: tuple[Term, ...]
    predicted: float

    @property
    def total(self) -> float:
        """The sum of the terms, rounded once."""
        return math.fsum(term.value for term in self.terms)

    def of_columns(self, column: np.ndarray) -> Decomposition:
        """Return one term for each column of a table, and for each pair or set of columns.

        Parameters
        ----------
        column : (d,) int ndarray
            The column of every feature.
        """
        sums: dict[tuple[int, ...], list[float]] = {}
        kept = [term for term in self.terms if not term.features]
        for term in self.terms:
            if term.features:
                sums.setdefault(tuple(sorted({int(column[j]) for j in term.features})), []).append(term.value)
        kinds = {1: "column", 2: "pair"}
        terms = [Term(kinds.get(len(c), "higher"), len(c), c, math.fsum(v)) for c, v in sums.items()]
        return Decomposition((*kept, *terms), self.predicted)

    def largest(self, most: int) -> list[tuple[str, Term]]:
        """Return the bias, the largest other terms, and the remainder of each kind, with keys.

        The key is "" for a single term and the kind for a remainder.
        """
        bias = [term for term in self.terms if term.kind == "bias"]
        others_first = sorted((t for t in self.terms if t.kind != "bias"), key=lambda t: -abs(t.value))
        largest = [("", term) for term in (*bias, *others_first[:most])]
        for kind in KINDS:
            others = [term.value for term in others_first[most:] if term.kind == kind]
            if others:
                largest.append((kind, Term(kind, len(others), (), math.fsum(others))))
        return largest


def words_of(term: Term, names: tuple[str, ...]) -> str:
    """Return a label of a term."""
    if term.kind == "bias":
        return "bias"
    if not term.features:
        return f"all other products of {term.order}"
    if term.kind == "square":
        return f"{names[term.features[0]]}²"
    return " × ".join(names[j] for j in term.features)


def decompose(model: Model, parameters: Parameters, x: np.ndarray) -> Decomposition:
    """Decompose a prediction.

    Parameters
    ----------
    model : Model
        The model with its parameters.
    parameters : Parameters
        The fitted parameters.
    x : (d,) ndarray
        The features of one row, as in X.

    Returns
    -------
    Decomposition
        Terms that sum to the prediction up to rounding.
    """
    live = np.flatnonzero(x)
    W = None if parameters.W is None else parameters.W[np.ix_(live, live)]
    here = parameters.replace(P=parameters.P[live], w=parameters.w[live], W=W)
    terms = [
        Term(term.kind, term.order, tuple(int(live[j]) for j in term.features), term.value)
        for term in _terms(model, here, x[live])
    ]
    return Decomposition(tuple(terms), float(model.predict(Design(x[None, :]), parameters)[0]))


def _terms(model: Model, parameters: Parameters, x: np.ndarray) -> Iterator[Term]:
    """Yield the terms of a row without zeros; features are indexed within it."""
    every = model.order is None
    # Sums over columns of the products of m distinct p_js x_j, for m = 0, …, n.
    sums = elementary_sums(parameters.P * x[:, None], x.size).sum(axis=1) if every else np.zeros(3)
    # Π(1 + p_j x_j) contains 1 and a linear part.
    yield Term("bias", 0, (), float(parameters.intercept) + float(sums[0]))
    linear = parameters.w + (parameters.P.sum(axis=1) if every else 0.0)
    for j in np.flatnonzero(linear):
        yield Term("linear", 1, (int(j),), float(linear[j] * x[j]))
    if not x.size:
        return
    if 2 in model.orders or parameters.W is not None:
        yield from _pairs(model, parameters, x)
    for order in range(3, sums.size) if every else model.orders:
        total = float(sums[order]) if every else None
        if order > 2 and total != 0.0:
            yield from _higher(model, parameters, x, order, total, named=order in model.orders)


def _pairs(model: Model, parameters: Parameters, x: np.ndarray) -> Iterator[Term]:
    pairs = pairs_of(model, parameters)
    for at, to, weight, used in pairs.upper():
        values = weight * x[pairs.rows[at]][:, None] * x[pairs.rows[to]]
        for i, j in np.argwhere(used):
            yield Term("pair", 2, (int(pairs.rows[at][i]), int(pairs.rows[to][j])), float(values[i, j]))
    if (squares := pairs.squares()) is not None:
        for place in np.flatnonzero(squares):
            j = int(pairs.rows[place])
            yield Term("square", 2, (j,), float(squares[place] * x[j] ** 2))


def _higher(
    model: Model, parameters: Parameters, x: np.ndarray, order: int, total: float | None, named: bool
) -> Iterator[Term]:
    """Yield the largest products of an order, and the sum of the others."""
    negated = []
    if named or total is None:
        # With x_j multiplied into the factors, weights are the terms of the row.
        products = interactions_of(model, parameters.replace(P=parameters.P * x[:, None]), order)
        total = products.total() if total is None else total
        largest = products.within(_WORK).ranked(_NAMED)
        for features, value in zip(largest.sets, largest.weight, strict=True):
            negated.append(-float(value))
            yield Term("higher", order, tuple(map(int, features)), float(value))
    if remainder := math.fsum([total, *negated]):
        yield Term("higher", order, (), remainder)
