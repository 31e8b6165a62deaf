"""Base class of penalties, and their views as functions of an entry, a row or the matrix P."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np

from ..errors import WhyNot
from ..settings import Bound
from .operators.lazy import Lazy


@dataclass(frozen=True)
class EntryView:
    """Ω as a function of a single entry p_js, the others fixed: quad·p² + ω(p).

    `quad` and the cache contain all numbers that depend on the parameters of the penalty; changing these
    triggers no recompilation.

    Attributes
    ----------
    name : str
        Names the compiled kernel. Views that differ only in `quad` and `cache` share it.
    quad : float
        The constant coefficient of p².
    cache : callable
        ``(d, k) -> (n,) ndarray`` of float64, n ≥ 1: a new work array for the functions below.
    begin : callable
        ``begin(P, s, cache)``: refresh the cache before column s is swept. P has shape (k, d).
    minimum : callable
        ``minimum(cache, j, p, g, h, lam_p, lam) -> q`` minimizes g(q − p) + ½h(q − p)² + lam_p·q² + lam·ω(q)
        for the entry (j, s) with the current value p; the result is p if all coefficients are 0.
    threshold : callable
        ``threshold(cache, j, p) -> t``: the slope of ω in |p| at the current value. A zero entry stays zero
        while |g| ≤ lam·t.
    update : callable
        ``update(cache, j, old, new)`` after an entry of row j has changed.
    shared : bool
        Whether all columns share a cache, filled by ``begin`` of column 0; otherwise each has its own.
    separate : bool
        Whether ω does not depend on other entries; the cache is then only read.
    """

    name: str
    quad: float = field(compare=False)
    cache: Callable[[int, int], np.ndarray] = field(compare=False)
    begin: Callable[..., None]
    minimum: Callable[..., float]
    threshold: Callable[..., float]
    update: Callable[..., None]
    shared: bool = False
    separate: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class RowView:
    """Ω as a function of a single row p_j, the others fixed: quad·‖p‖² + penalty(p) + const.

    Attributes
    ----------
    name : str
        Names the compiled kernel. Views that differ only in `quad` and `cache` share it.
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
        ``update(cache, j, P, q)`` before row j changes from P[j] to q.
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
    """The proximal operator of Ω on all of P, for kernels that apply it repeatedly.

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
        The factor by which the caller multiplies every strength; 0 if Ω is ‖P‖²_F.
    theta : tuple of float or ndarray
        Further parameters of `shrink`.
    lazy : Lazy or None
        The storage of P for steps that visit only a few rows, while all others shrink by an offset common to
        P, as with ℓ1, or to their column, as in [A] Theorem 7. None if there is no such offset and every step
        must visit all of P.
    pairs : bool
        Whether Ω is the pairwise part ½(Ω' − ‖P‖²_F) of the squared penalty Ω' for which `lazy` is defined.
    """

    name: str
    shrink: Callable[..., None]
    quad: float = field(default=0.0, compare=False)
    weight: float = field(default=1.0, compare=False)
    theta: tuple[Any, ...] = field(default=(), compare=False)
    lazy: Lazy | None = None
    pairs: bool = False


@dataclass(frozen=True)
class Penalty(Bound):
    """Sparsity-inducing penalty Ω on the factors P, shape (d, k), with its parameters.

    Subclasses are frozen dataclasses. They declare their parameters by `fmviz.engine.settings.setting` and
    the class attributes, implement `value` and `thresholds` (or `residual` if not `separable`), and those of
    `prox` and the views `entry`, `row` and `matrix` that exist. Attributes that depend on a parameter are
    properties.

    Attributes
    ----------
    name, label : str
        Identifier and display name.
    formula, prox_formula : str
        LaTeX of Ω(P) and of its operator, "" if there is none.
    selects : str
        The part it makes sparse, as a phrase.
    stands_for : str
        The meaning of the label, and Ω in words; "" if the label is clear.
    mechanism : str
        A description of how it keeps or removes feature pairs; may be "".
    parts_pairs : bool
        Whether it sets pairs of used features to zero; otherwise the mechanism describes remaining pairs.
    source : str
        Paper and equation; "" for the forms of other orders, for which pages show those of the chosen
        penalty.
    algorithms : tuple of str
        The algorithms available for `prox`.
    row_wise : bool
        Whether it shrinks whole rows (by their norms) rather than entries.
    convex : bool
        Whether Ω is convex.
    smooth : bool
        Whether Ω is differentiable everywhere and therefore induces no sparsity.
    quad : float
        The coefficient of ‖P‖²_F in Ω as a function of one entry or row.
    exact_prox : bool
        Whether `prox` is exact up to rounding. If not, its result must not be worse than its input, and
        `subgradient` must exist.
    separable : bool
        Whether Ω is quad·‖·‖² plus a weighted norm along every entry (or row), that is, whether the class
        defines `thresholds`.
    saddles : {"columns", "matrix"} or None
        The part of P that no first-order term keeps at 0, and that may therefore be a saddle point of the
        objective at 0: single columns, if Ω is a sum over columns of a function of degree 2, or all of P; see
        `fmviz.engine.solvers._saddle_escape`.
    in_weights : {"entries", "pairs", "trace"} or None
        The lower bound of Ω(P) among Σ_ij |w_ij|, Σ_{i<j} |w_ij| and tr W, W = PPᵀ, which is attained if P
        has a single column. None if Ω is homogeneous of degree 1, or unrelated to pairs; see
        `fmviz.engine.starts.zero_threshold`.
    power : int
        m for a sum of m-th powers of norms, which shrinks all entries (or rows) by λmS^(m−1); else 0.
    axis_of_sums : int
        The axis of P along which its sums run: 0 for columns.
    row_norm : float or None
        q if Ω is the sum of the ℓq norms of the rows, else None.
    beyond_pairs : str
        The name of the penalty to use instead for products of more than two features.
    why_no_entry, why_no_row, why_no_operator : str
        The mathematical reason why `entry`, `row` or any operator never exists.
    """

    noun: ClassVar[str] = "regularizer"
    label: ClassVar[str]
    formula: ClassVar[str]
    prox_formula: ClassVar[str] = ""
    selects: ClassVar[str]
    stands_for: ClassVar[str] = ""
    mechanism: ClassVar[str] = ""
    parts_pairs: ClassVar[bool] = False
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
        """Whether Ω is differentiable everywhere."""
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
        """The penalty chosen by the user: itself, unless a model has bound it to its columns."""
        return self

    def why_no_threshold(self) -> WhyNot | None:
        """Return why there is no smallest λ at which P = 0 is a minimum, with an alternative, or None."""
        if self.in_weights is not None:
            return None
        return WhyNot(
            "kink_at_zero",
            f"{self.label} is linear in the scale of P, but the gain of P is quadratic: P = 0 is a local "
            "minimum at every λ > 0, and there is no smallest such λ. Start from a fit with ℓ₂², and "
            "increase λ.",
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
            The penalty, or the mathematical reason why there is none. Penalties on single
            entries of P are the same for every order.
        """
        return self

    def for_features(self, groups: Sequence[Hashable]) -> Self:
        """Return the penalty for features in these groups, such as columns of a table; one item each.

        Most penalties do not depend on them. Raises ValueError if it has groups of other features.
        """
        return self

    def of_features(self, features: np.ndarray) -> Self:
        """Return the penalty for a subset of features, given by index."""
        return self

    def words(self) -> tuple[str, str, str]:
        """Return the LaTeX of Ω(P) and of its operator, and the selected part, for these parameters."""
        return self.formula, self.prox_formula, self.selects

    def value(self, P: np.ndarray) -> float:
        """Return Ω(P)."""
        raise NotImplementedError

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Return argmin_Q ½‖Q − P‖²_F + strength·Ω(Q) for a C-contiguous float64 P."""
        raise NotImplementedError

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float) -> np.ndarray:
        """Return G minus its Euclidean projection onto strength·∂Ω(Q), shape (d, k)."""
        if self.quad:
            G = G - 2.0 * strength * self.quad * Q
        residual = row_residual if self.row_wise else entry_residual
        return residual(G, Q, strength * self.thresholds(Q))

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return the weights of |p_js|, shape (d, k), or of ‖p_j‖ if `row_wise`, shape (d, 1)."""
        raise NotImplementedError

    def subgradient(self, P: np.ndarray) -> np.ndarray:
        """Return an element of ∂Ω(P), shape (d, k)."""
        along = unit_rows(P)[1] if self.row_wise else np.sign(P)
        return np.asarray(self.thresholds(P) * along + 2.0 * self.quad * P)

    def cost_note(self, d: int, k: int) -> str | None:
        """Return a sentence on the cost for a d × k matrix if it exceeds O(dk log d), else None."""
        return None

    @property
    def entry(self) -> EntryView | None:
        """Ω as a function of a single entry, or None if its step has no closed form."""
        return None

    @property
    def row(self) -> RowView | None:
        """Ω as a function of a single row, or None if its step has no closed form."""
        return None

    @property
    def matrix(self) -> MatrixView | None:
        """The operator on all of P for kernels, or None if it has no exact form."""
        return None


def prox_of_norms(P: np.ndarray, strength: float, prox: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Apply an operator on vectors (rows of a matrix) to the row norms ([A] Theorem 8)."""
    norms, unit = unit_rows(P)
    return P.copy() if strength == 0.0 else prox(np.ascontiguousarray(norms.T)).T * unit


def entry_residual(G: np.ndarray, Q: np.ndarray, radius: np.ndarray | float) -> np.ndarray:
    """Return G minus its projection onto {radius·sign(q) where q ≠ 0, [−radius, radius] elsewhere}."""
    return np.where(Q != 0, G - radius * np.sign(Q), G - np.clip(G, -radius, radius))


def row_residual(G: np.ndarray, Q: np.ndarray, radius: np.ndarray | float) -> np.ndarray:
    """Return G minus its projection onto {radius·q/‖q‖ where the row q ≠ 0, the ball of radius elsewhere}."""
    radius = np.broadcast_to(np.asarray(radius, dtype=float).reshape(-1, 1), (G.shape[0], 1))
    norm_q, unit_q = unit_rows(Q)
    norm_g, unit_g = unit_rows(G)
    outside = np.maximum(norm_g - radius, 0.0) * unit_g
    return np.where(norm_q > 0, G - radius * unit_q, outside)


def shrunk(u: np.ndarray, t: np.ndarray, by_norm: bool) -> np.ndarray:
    """Shrink every entry, or the norm of every row, by a threshold t, at most to 0."""
    if by_norm:
        norms, unit = unit_rows(u)
        return np.asarray(np.maximum(norms - t, 0.0) * unit)
    return np.asarray(np.sign(u) * np.maximum(np.abs(u) - t, 0.0))


def unit_rows(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the row norms, shape (d, 1), and the rows scaled to norm 1 (zero rows stay zero).

    Rows are first scaled by a power of two near their largest entry, which prevents overflow and underflow.
    """
    size = np.abs(P).max(axis=1, keepdims=True, initial=0.0)
    exponent = np.frexp(size)[1]
    scaled = np.ldexp(P, -exponent)
    norm = np.sqrt((scaled * scaled).sum(axis=1, keepdims=True))
    unit = np.divide(scaled, norm, out=np.zeros_like(scaled), where=norm > 0)
    return np.ldexp(norm, exponent), unit
