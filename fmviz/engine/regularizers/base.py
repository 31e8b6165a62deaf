"""What a regularizer declares; everything else in fmviz follows from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from ..params import ParamSpec, check_params


@dataclass(frozen=True)
class CoordinatePenalty:
    """Ω as a function of one entry p_js, the others held: quad·p² + t·|p| + const.

    Attributes
    ----------
    name : str
        Names the compiled kernel. Penalties that differ in `quad` and `cache` alone share it.
    quad : float
        The constant coefficient of p².
    cache : callable
        ``(d, k) -> (n,) ndarray`` of float64, n ≥ 1: a new work array for the functions below.
    begin : callable
        ``begin(P, s, cache)``: refresh the cache before column s is swept. P has shape (k, d).
    threshold : callable
        ``threshold(cache, j, p) -> t`` for the entry (j, s), whose present value is p.
    update : callable
        ``update(cache, j, old, new)``: an entry of row j has changed.
    shared : bool
        Whether all columns read and update one cache, made by ``begin`` of column 0; else each has its own.
    """

    name: str
    quad: float = field(compare=False)
    cache: Callable[[int, int], np.ndarray] = field(compare=False)
    begin: Callable[..., None]
    threshold: Callable[..., float]
    update: Callable[..., None]
    shared: bool = False


@dataclass(frozen=True)
class RowPenalty:
    """Ω as a function of one row p_j, the others held: quad·‖p‖² + penalty(p) + const.

    Attributes
    ----------
    name : str
        Names the compiled kernel. Penalties that differ in `quad` and `cache` alone share it.
    quad : float
        The constant coefficient of ‖p‖².
    cache : callable
        ``(d, k) -> (n,) ndarray`` of float64, n ≥ 1: a new work array for the functions below.
    begin : callable
        ``begin(P, cache)``: refresh the cache before a sweep. P has shape (d, k).
    shrink : callable
        ``shrink(u, strength, j, P, cache)``: replace u by argmin_q ½‖q − u‖² + strength·penalty(q).
    penalty : callable
        ``penalty(q, j, P, cache) -> float``.
    update : callable
        ``update(cache, j, P, q)``: row j is about to change from P[j] to q.
    """

    name: str
    quad: float = field(compare=False)
    cache: Callable[[int, int], np.ndarray] = field(compare=False)
    begin: Callable[..., None]
    shrink: Callable[..., None]
    penalty: Callable[..., float]
    update: Callable[..., None]


@dataclass(frozen=True)
class MatrixOperator:
    """The proximal operator of Ω on the whole of P, as kernels that take many steps call it.

    Attributes
    ----------
    name : str
        Names the compiled kernel.
    shrink : callable
        ``shrink(M, strength, work)``: replace M, the transposed factors of shape (k, d), by
        argmin_Q ½‖Q − M‖²_F + strength·(Ω(Q) − quad·‖Q‖²_F), given finite entries below 1e150. `work` has
        shape (3, max(d, k)).
    quad : float
        The coefficient of a ‖P‖²_F that is left to the caller: he adds it to λ_p.
    lazy : {"decay", "entries", "rows", "coupled_entries", "coupled_rows"} or None
        What the operator does to an entry, or to a row's norm, on which the loss has no slope: nothing
        (decay: only ‖P‖²_F is left), shrink it by the strength, or by an offset common to its column (to
        all rows) as in [A] Theorem 7. None where there is no such common offset, and every step must visit
        all of P.
    pairs : bool
        Whether Ω is the pairwise part ½(Ω' − ‖P‖²_F) of the square Ω' that `lazy` describes.
    """

    name: str
    shrink: Callable[..., None]
    quad: float = 0.0
    lazy: Literal["decay", "entries", "rows", "coupled_entries", "coupled_rows"] | None = None
    pairs: bool = False


class Regularizer:
    """A sparsity-inducing penalty Ω on the factors P, shape (d, k).

    Subclasses declare the class attributes and implement `value`, `residual` and `thresholds`, and
    whichever of `prox`, `coordinate` and `row` the mathematics allows.

    Attributes
    ----------
    name, label : str
        Identifier and words.
    formula, prox_formula : str
        LaTeX of Ω(P) and of its operator.
    selects : str
        What it makes sparse, in words.
    params : tuple of ParamSpec
        Its own parameters.
    row_wise : bool
        Whether it shrinks whole rows (by their norms) rather than entries.
    quad : float
        The coefficient of ‖P‖²_F that Ω contains as seen from one entry or row.
    exact_prox : bool
        Whether `prox` solves its problem to rounding. Where not, it must not be worse than its input, and
        `subgradient` exists.
    separable : bool
        Whether Ω is quad·‖·‖² plus a weighted norm along every entry (or row): then `thresholds` exists.
    why_no_coordinate, why_no_row, why_no_operator : str
        The mathematical reason where `coordinate`, `row` or `prox` is never there.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    formula: ClassVar[str]
    prox_formula: ClassVar[str]
    selects: ClassVar[str]
    source: ClassVar[str]
    params: ClassVar[tuple[ParamSpec, ...]] = ()
    algorithms: ClassVar[tuple[str, ...]] = ()
    row_wise: ClassVar[bool] = False
    convex: ClassVar[bool] = True
    quad: ClassVar[float] = 0.0
    exact_prox: ClassVar[bool] = True
    separable: ClassVar[bool] = True
    why_no_coordinate: ClassVar[str] = ""
    why_no_row: ClassVar[str] = ""
    why_no_operator: ClassVar[str] = ""

    def check(self, given: dict[str, Any]) -> dict[str, Any]:
        """Validate this regularizer's own parameters and fill in defaults."""
        return check_params(f"Regularizer {self.name!r}", self.params, given)

    def of_order(self, order: int | None, params: dict[str, Any]) -> tuple[Regularizer, dict[str, Any]] | str:
        """Return what this penalty is for columns that stand for interactions of one order.

        Parameters
        ----------
        order : int or None
            m ≥ 2, or None for all subsets of features.
        params : dict
            This regularizer's own parameters.

        Returns
        -------
        (Regularizer, dict) or str
            The penalty with its parameters, or the mathematical reason why there is none. A penalty on the
            entries of P, whatever they stand for, is the same for every order.
        """
        return self, params

    def words(self, **params: Any) -> tuple[str, str, str]:
        """Return the LaTeX of Ω(P) and of its operator, and what it selects, under these parameters."""
        return self.formula, self.prox_formula, self.selects

    def value(self, P: np.ndarray, **params: Any) -> float:
        """Return Ω(P)."""
        raise NotImplementedError

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None, **params: Any) -> np.ndarray:
        """Return argmin_Q ½‖Q − P‖²_F + strength·Ω(Q) for a C-contiguous float64 P."""
        raise NotImplementedError

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float, **params: Any) -> np.ndarray:
        """Return G minus its Euclidean projection on strength·∂Ω(Q), shape (d, k)."""
        raise NotImplementedError

    def thresholds(self, P: np.ndarray, **params: Any) -> np.ndarray:
        """Return the weight of |p_js| (shape (d, k)), or of ‖p_j‖ where `row_wise` (shape (d, 1))."""
        raise NotImplementedError

    def subgradient(self, P: np.ndarray, **params: Any) -> np.ndarray:
        """Return an element of ∂Ω(P), shape (d, k)."""
        along = unit_rows(P)[1] if self.row_wise else np.sign(P)
        return np.asarray(self.thresholds(P, **params) * along + 2.0 * self.quad * P)

    def cost_note(self, d: int, k: int, **params: Any) -> str | None:
        """Return a sentence on what a d × k matrix costs, where that is more than O(dk log d), else None."""
        return None

    def saddles(self, **params: Any) -> bool:
        """Return whether Ω is a sum over the columns of P of one function of degree 2.

        Nothing of first order then keeps a column at 0, which may be a saddle point of the objective; see
        `fmviz.engine.solvers._revival`.
        """
        return False

    def coordinate(self, **params: Any) -> CoordinatePenalty | None:
        """Return Ω as seen from one entry, or None where that has no closed step."""
        return None

    def row(self, **params: Any) -> RowPenalty | None:
        """Return Ω as seen from one row, or None where that has no closed step."""
        return None

    def operator(self, **params: Any) -> MatrixOperator | None:
        """Return the operator on the whole of P for kernels, or None where it has no exact form."""
        return None


def entry_residual(G: np.ndarray, Q: np.ndarray, radius: np.ndarray | float) -> np.ndarray:
    """Return G minus its projection on {radius·sign(q) where q ≠ 0, [−radius, radius] elsewhere}."""
    return np.where(Q != 0, G - radius * np.sign(Q), G - np.clip(G, -radius, radius))


def row_residual(G: np.ndarray, Q: np.ndarray, radius: np.ndarray | float) -> np.ndarray:
    """Return G minus its projection on {radius·q/‖q‖ where the row q ≠ 0, the ball of radius elsewhere}."""
    radius = np.broadcast_to(np.asarray(radius, dtype=float).reshape(-1, 1), (G.shape[0], 1))
    norm_q, unit_q = unit_rows(Q)
    norm_g, unit_g = unit_rows(G)
    outside = np.maximum(norm_g - radius, 0.0) * unit_g
    return np.where(norm_q > 0, G - radius * unit_q, outside)


def unit_rows(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the row norms, shape (d, 1), and the rows scaled to norm 1 (zero rows stay zero).

    Safe at any magnitude: each row is first scaled by a power of two near its largest entry.
    """
    size = np.abs(P).max(axis=1, keepdims=True, initial=0.0)
    exponent = np.frexp(size)[1]
    scaled = np.ldexp(P, -exponent)
    norm = np.sqrt((scaled * scaled).sum(axis=1, keepdims=True))
    unit = np.divide(scaled, norm, out=np.zeros_like(scaled), where=norm > 0)
    return np.ldexp(norm, exponent), unit
