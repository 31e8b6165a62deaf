"""Base class of penalties, and their views as functions of an entry, a row or the matrix P."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from ..errors import WhyNot
from ..settings import Bound
from .operators.lazy import Lazy


@dataclass(frozen=True)
class EntryView:
    """Ω as a function of one entry p_js, the others fixed: quad·p² + ω(p).

    Numbers that depend on the penalty's parameters are in `quad` and in the cache, so that changing them
    does not recompile.

    Attributes
    ----------
    name : str
        Names the compiled kernel. Views that differ in `quad` and `cache` alone share it.
    quad : float
        The constant coefficient of p².
    cache : callable
        ``(d, k) -> (n,) ndarray`` of float64, n ≥ 1: a new work array for the functions below.
    begin : callable
        ``begin(P, s, cache)``: refresh the cache before column s is swept. P has shape (k, d).
    minimum : callable
        ``minimum(cache, j, p, g, h, lam_p, lam) -> q`` minimises g(q − p) + ½h(q − p)² + lam_p·q² + lam·ω(q)
        for the entry (j, s), whose present value is p; it is p where all are 0.
    threshold : callable
        ``threshold(cache, j, p) -> t``: the slope of ω in |p| at the present value. An entry that is 0 stays
        there while |g| ≤ lam·t.
    update : callable
        ``update(cache, j, old, new)``: an entry of row j has changed.
    shared : bool
        Whether all columns read and update one cache, made by ``begin`` of column 0; else each has its own.
    """

    name: str
    quad: float = field(compare=False)
    cache: Callable[[int, int], np.ndarray] = field(compare=False)
    begin: Callable[..., None]
    minimum: Callable[..., float]
    threshold: Callable[..., float]
    update: Callable[..., None]
    shared: bool = False


@dataclass(frozen=True)
class RowView:
    """Ω as a function of one row p_j, the others fixed: quad·‖p‖² + penalty(p) + const.

    Attributes
    ----------
    name : str
        Names the compiled kernel. Views that differ in `quad` and `cache` alone share it.
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
class MatrixView:
    """The proximal operator of Ω on all of P, for kernels that take many steps.

    Attributes
    ----------
    name : str
        Names the compiled kernel.
    shrink : callable
        ``shrink(M, strength, theta, work)``: replace M, the transposed factors of shape (k, d), by
        argmin_Q ½‖Q − M‖²_F + strength·(Ω(Q) − quad·‖Q‖²_F)/weight, given finite entries below 1e150. `work`
        has shape (3, max(d, k)).
    quad : float
        The coefficient of ‖P‖²_F, which the caller adds to λ_p.
    weight : float
        The factor by which the caller multiplies every strength; 0 where Ω is ‖P‖²_F alone.
    theta : tuple of float
        Further parameters of `shrink`.
    lazy : Lazy or None
        How P is stored by steps that visit a few rows, where the others meanwhile shrink by an offset common
        to all, as ℓ1 does, or to their column, as in [A] Theorem 7. None where there is no such offset, and
        every step must visit all of P.
    pairs : bool
        Whether Ω is the pairwise part ½(Ω' − ‖P‖²_F) of the square Ω' that `lazy` describes.
    """

    name: str
    shrink: Callable[..., None]
    quad: float = field(default=0.0, compare=False)
    weight: float = field(default=1.0, compare=False)
    theta: tuple[float, ...] = field(default=(), compare=False)
    lazy: Lazy | None = None
    pairs: bool = False


@dataclass(frozen=True)
class Penalty(Bound):
    """A sparsity-inducing penalty Ω on the factors P, shape (d, k), with its parameters.

    Subclasses are frozen dataclasses that declare their parameters by `fmviz.engine.settings.setting` and the
    class attributes, implement `value` and `thresholds`, or `residual` where not `separable`, and whichever
    of `prox` and of the views `entry`, `row` and `matrix` the mathematics allows. An attribute
    that depends on a parameter is a property.

    Attributes
    ----------
    name, label : str
        Identifier and display name.
    formula, prox_formula : str
        LaTeX of Ω(P) and of its operator, "" where it has none.
    selects : str
        What it makes sparse, as a phrase.
    stands_for : str
        What the label stands for, and Ω in words; "" where the label is clear.
    mechanism : str
        How it keeps or removes pairs of features, in words; may be "".
    source : str
        Paper and equation; "" for the forms of other orders, which pages show under the chosen penalty's.
    algorithms : tuple of str
        The algorithms that `prox` can take.
    row_wise : bool
        Whether it shrinks whole rows (by their norms) rather than entries.
    convex : bool
        Whether Ω is convex.
    smooth : bool
        Whether Ω has a gradient everywhere, so that it makes nothing sparse.
    quad : float
        The coefficient of ‖P‖²_F in Ω as a function of one entry or row.
    exact_prox : bool
        Whether `prox` solves its problem to rounding. Where not, it must not be worse than its input, and
        `subgradient` exists.
    separable : bool
        Whether Ω is quad·‖·‖² plus a weighted norm along every entry (or row), as where a class defines
        `thresholds`.
    saddles : {"columns", "matrix"} or None
        Where no first-order term keeps P at 0, which may then be a saddle point of the objective: in single
        columns, where Ω is a sum over the columns of one function of degree 2, or in all of P;
        see `fmviz.engine.solvers._saddle_escape`.
    in_weights : {"entries", "pairs", "trace"} or None
        Which of Σ_ij |w_ij|, Σ_{i<j} |w_ij| and tr W, W = PPᵀ, is a lower bound of Ω(P), attained where P
        has a single column. None where Ω is homogeneous of degree 1, or unrelated to pairs; see
        `fmviz.engine.starts.zero_threshold`.
    power : int
        m of a sum of m-th powers of norms, all of whose entries (or rows) are lowered by λmS^(m−1); else 0.
    axis_of_sums : int
        The axis of P along which its sums run: 0 for columns.
    row_norm : float or None
        q where Ω is the sum of the ℓq norms of the rows, else None.
    beyond_pairs : str
        The name of the penalty to use instead for products of more than two features.
    why_no_entry, why_no_row, why_no_operator : str
        The mathematical reason where `entry`, `row` or any operator never exists.
    """

    noun: ClassVar[str] = "regularizer"
    label: ClassVar[str]
    formula: ClassVar[str]
    prox_formula: ClassVar[str] = ""
    selects: ClassVar[str]
    stands_for: ClassVar[str] = ""
    mechanism: ClassVar[str] = ""
    source: ClassVar[str] = ""
    algorithms: ClassVar[tuple[str, ...]] = ()
    row_wise: ClassVar[bool] = False
    exact_prox: ClassVar[bool] = True
    row_norm: ClassVar[float | None] = None
    beyond_pairs: ClassVar[str] = ""
    why_no_entry: ClassVar[str] = ""
    why_no_row: ClassVar[str] = ""
    why_no_operator: ClassVar[str] = ""

    @property
    def convex(self) -> bool:
        """Whether Ω is convex."""
        return True

    @property
    def smooth(self) -> bool:
        """Whether Ω has a gradient everywhere."""
        return False

    @property
    def power(self) -> int:
        """The power m of a sum of powers of norms, else 0."""
        return 0

    @property
    def axis_of_sums(self) -> int:
        """The axis of P along which its sums run."""
        return int(self.settings.get("axis") == "rows")

    @property
    def separable(self) -> bool:
        """Whether `thresholds` exists."""
        return type(self).thresholds is not Penalty.thresholds

    @property
    def quad(self) -> float:
        """The coefficient of ‖P‖²_F in Ω as a function of one entry or row."""
        view = self.entry or self.row
        return view.quad if view else 0.0

    @property
    def saddles(self) -> Literal["columns", "matrix"] | None:
        """The part of P that may be a saddle point at 0."""
        if self.in_weights is None or not self.separable:
            return None
        return "matrix" if self.row_wise or self.axis_of_sums else "columns"

    @property
    def in_weights(self) -> Literal["entries", "pairs", "trace"] | None:
        """The function of W = PPᵀ that bounds Ω(P) from below."""
        return None

    @property
    def chosen(self) -> Penalty:
        """The penalty that the user chose: itself, unless a model has bound it to its columns."""
        return self

    def why_no_threshold(self) -> WhyNot | None:
        """Return why no λ is the first to make P = 0 a minimum, with an alternative, or None."""
        if self.in_weights is not None:
            return None
        return WhyNot(
            "kink_at_zero",
            f"{self.label} grows in proportion to P, what P can gain only to its square: P = 0 is a local "
            "minimum at every λ > 0, and no λ is the first to make it one. Start from a fit with ℓ₂², and "
            "follow λ upwards.",
        )

    def of_order(self, order: int | None) -> Penalty | WhyNot:
        """Return the form of this penalty for columns of interactions of one order.

        Parameters
        ----------
        order : int or None
            m ≥ 2, or None for all subsets of features.

        Returns
        -------
        Penalty or WhyNot
            The penalty, or the mathematical reason why there is none. A penalty on single
            entries of P is the same for every order.
        """
        return self

    def words(self) -> tuple[str, str, str]:
        """Return the LaTeX of Ω(P) and of its operator, and what it selects, for these parameters."""
        return self.formula, self.prox_formula, self.selects

    def value(self, P: np.ndarray) -> float:
        """Return Ω(P)."""
        raise NotImplementedError

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Return argmin_Q ½‖Q − P‖²_F + strength·Ω(Q) for a C-contiguous float64 P."""
        raise NotImplementedError

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float) -> np.ndarray:
        """Return G minus its Euclidean projection on strength·∂Ω(Q), shape (d, k)."""
        if self.quad:
            G = G - 2.0 * strength * self.quad * Q
        residual = row_residual if self.row_wise else entry_residual
        return residual(G, Q, strength * self.thresholds(Q))

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return the weight of |p_js| (shape (d, k)), or of ‖p_j‖ where `row_wise` (shape (d, 1))."""
        raise NotImplementedError

    def subgradient(self, P: np.ndarray) -> np.ndarray:
        """Return an element of ∂Ω(P), shape (d, k)."""
        along = unit_rows(P)[1] if self.row_wise else np.sign(P)
        return np.asarray(self.thresholds(P) * along + 2.0 * self.quad * P)

    def cost_note(self, d: int, k: int) -> str | None:
        """Return a sentence on the cost for a d × k matrix, where it exceeds O(dk log d), else None."""
        return None

    @property
    def entry(self) -> EntryView | None:
        """Ω as a function of one entry, or None where its step has no closed form."""
        return None

    @property
    def row(self) -> RowView | None:
        """Ω as a function of one row, or None where its step has no closed form."""
        return None

    @property
    def matrix(self) -> MatrixView | None:
        """The operator on all of P for kernels, or None where it has no exact form."""
        return None


def prox_of_norms(P: np.ndarray, strength: float, prox: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Apply an operator of vectors, as rows of a matrix, to the row norms ([A] Theorem 8)."""
    norms, unit = unit_rows(P)
    return P.copy() if strength == 0.0 else prox(np.ascontiguousarray(norms.T)).T * unit


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


def shrunk(u: np.ndarray, t: np.ndarray, by_norm: bool) -> np.ndarray:
    """Lower the size of every entry, or of the norm of every row, by a threshold t, to 0 at the least."""
    if by_norm:
        norms, unit = unit_rows(u)
        return np.asarray(np.maximum(norms - t, 0.0) * unit)
    return np.asarray(np.sign(u) * np.maximum(np.abs(u) - t, 0.0))


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
