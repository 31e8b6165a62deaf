"""Base class of models: the interface for the objective, the driver and the solvers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..counting import used_features, used_sets
from ..design import Design
from ..errors import WhyNot
from ..memory import available_bytes, in_words
from ..parameters import Parameters
from ..penalties import Penalty
from ..penalties.blockwise import Blockwise
from ..settings import Bound
from .columns import ColumnKernel, ColumnViews


@dataclass(frozen=True)
class ObjectiveNotation:
    """LaTeX notation for the parts of the objective.

    Attributes
    ----------
    matrix, weights : str
        The matrix of parameters, and the matrix of pair weights.
    lambda_p, lambda_sparse, shrinkage, penalty : str
        LaTeX of both strengths and of their terms; `shrinkage` is empty if λ_p has no term.
    shrinkage_term, penalty_term : str
        Both terms in plain characters.
    rank : str
        The name of k.
    """

    matrix: str = "P"
    weights: str = "PPᵀ"
    lambda_p: str = r"\lambda_p"
    lambda_sparse: str = r"\lambda"
    shrinkage: str = r"\|P\|_F^2"
    penalty: str = r"\Omega(P)"
    shrinkage_term: str = "λₚ ‖P‖²"
    penalty_term: str = "λ Ω(P)"
    rank: str = "Rank"

    @property
    def objective(self) -> str:
        """LaTeX of the objective."""
        shrinkage = f"+{self.lambda_p}{self.shrinkage}" if self.shrinkage else ""
        return (
            r"\tfrac1N\sum_n \ell(f(x_n),y_n)+\lambda_w\|w\|^2"
            rf"{shrinkage}+{self.lambda_sparse}\,{self.penalty}"
        )


@dataclass(frozen=True)
class Model(Bound):
    """Model function f(x) with parameters and settings.

    Subclasses are frozen dataclasses that declare their settings by `fmviz.engine.settings.setting`.

    Attributes
    ----------
    name, label, formula : str
        Identifier, display name, and LaTeX.
    notation : ObjectiveNotation
        The notation of its objective.
    kernels : tuple of ColumnKernel
        The kernel of each block of columns of P, all of `rank` columns; () without factors. The factors of a
        lifted model form a single block.
    multilinear : bool
        Whether f is linear in every single entry of P, as coordinate steps need.
    factorised : bool
        Whether the pair weights are products of factors P instead of separate parameters W.
    convex : bool
        Whether f is linear in its parameters, so that the objective is convex.
    plain : bool
        Whether the interactions are Σ_{i<j} ⟨p_i, p_j⟩ x_i x_j, with no parameters other than P.
    columnar : bool
        Whether it is a sum of kernels of the columns of P other than the second-order machine.
    shrunk : str
        The name of the term of λ_p if it is the only penalty on W, for messages; otherwise "".
    fits_coefficients : bool
        Whether the weights of the columns of P are fitted.
    overflow_cause : str
        Why f may overflow in this model, as a sentence and a space; otherwise "".
    copies : int
        The number of matrices of the size of P in memory during a run.
    part_name : str
        The name of the blocks of P, in the plural.
    shrinkage_power : int
        The power of the column norms in the term of λ_p.
    solvers : str
        The solvers of a model without general solvers, as the end of a sentence.
    certificate : {"stationarity", "gap", "majoriser"}
        The kind of certificate computed by `fmviz.engine.certificates.stationarity.certify`.
    by_row : bool
        Whether it can predict any rows; otherwise it stores numbers of all training rows.
    multi_output : bool
        Whether it has several joint outputs, with a vector-valued loss.
    suited : mapping
        Default settings of a run, in addition to those of the data set.
    suited_loss : mapping
        The default loss by the task of the data, if it differs from that of the data set.
    no_threshold : WhyNot or None
        Why there is no λ above which P = 0 is a minimum, with an alternative; None for second-order machines,
        see `fmviz.engine.starts.zero_threshold`.
    """

    noun: ClassVar[str] = "model"
    label: ClassVar[str]
    formula: ClassVar[str]
    factorised: ClassVar[bool] = True
    convex: ClassVar[bool] = False
    solvers: ClassVar[str] = ""
    certificate: ClassVar[str] = "stationarity"
    kernels: ClassVar[Any] = ()
    plain: ClassVar[bool] = False
    columnar: ClassVar[bool] = False
    shrunk: ClassVar[str] = ""
    overflow_cause: ClassVar[str] = ""
    by_row: ClassVar[bool] = True
    multi_output: ClassVar[bool] = False
    copies: ClassVar[int] = 6
    part_name: ClassVar[str] = "orders"
    suited: ClassVar[Mapping[str, Any]] = {}
    suited_loss: ClassVar[Mapping[str, str]] = {}
    no_threshold: ClassVar[WhyNot | None]

    @property
    def notation(self) -> ObjectiveNotation:
        """The notation of the objective."""
        return ObjectiveNotation()

    @property
    def multilinear(self) -> bool:
        """Whether f is linear in every single entry of P."""
        return all(kernel.multilinear for kernel in self.kernels)

    @property
    def fits_coefficients(self) -> bool:
        """Whether the weights of the columns are fitted."""
        return False

    @property
    def capped(self) -> bool:
        """Whether the term of λ_p has a cap."""
        return False

    @property
    def shrinkage_power(self) -> int:
        """The power of ‖p_s‖ in the term of λ_p."""
        return 2

    @property
    def repeats(self) -> bool:
        """Whether products may repeat features: f then depends on the diagonal of W, or of the tensor."""
        return not all(kernel.multilinear for kernel in self.kernels)

    @property
    def orders(self) -> tuple[int, ...]:
        """The orders whose interactions can be listed; () without factors.

        All subsets have every order; pairs and triples are listed.
        """
        degrees = [kernel.degree for kernel in self.kernels]
        return (2, 3) if None in degrees else tuple(degrees)

    @property
    def order(self) -> int | None:
        """The maximum number of features in a product, None if unlimited."""
        degrees = [kernel.degree for kernel in self.kernels]
        return None if None in degrees else max(degrees, default=2)

    @property
    def least_features(self) -> int:
        """The minimum number of features in the data."""
        return 1

    def for_outputs(self, n_outputs: int) -> Model:
        """Return the model with this number of outputs; only for `multi_output` models."""
        return self

    def n_outputs_of(self, parameters: Parameters) -> int:
        """Return the number of outputs, of stacked machines or of a multi-output machine."""
        return parameters.n_machines or 1

    def of_output(self, parameters: Parameters, output: int) -> tuple[Model, Parameters]:
        """Return one output as a separate machine with its parameters."""
        return self, parameters if parameters.n_machines is None else parameters.of_output(output)

    def union(self, parameters: Parameters) -> Parameters:
        """Return parameters of a single machine that uses all features and interactions used by any machine.

        The columns of all machines are concatenated; matrices W are summed in absolute value.
        """
        if (m := parameters.n_machines) is None:
            return parameters
        _, d, columns = parameters.P.shape
        # Columns for products of different orders, and the factors of a tensor, come in blocks.
        blocks = max(1, self.shapes(1, 1)["P"][1])
        P = parameters.P.reshape(m, d, blocks, columns // blocks).transpose(1, 2, 0, 3)
        sums = {name: np.abs(array).sum(axis=0) for name, array in parameters.items() if name in ("w", "W")}
        listed = {} if parameters.coefficients is None else {"coefficients": parameters.coefficients.ravel()}
        return Parameters(P.reshape(d, m * columns), intercept=0.0, **sums, **listed)

    def further_counts(self, parameters: Parameters) -> dict[str, int]:
        """Return additional counts of a fit by their names in its record."""
        return {}

    @property
    def radius(self) -> float:
        """The bound τ of a constraint Ω ≤ τ that replaces the penalty λΩ; 0 for none."""
        return 0.0

    def why_not(self, penalty: Penalty) -> WhyNot | None:
        """Return the mathematical reason why the penalty does not apply to this model, or None."""
        forms = (penalty.of_order(order) for _, order in self.orders_of_columns(1))
        return next((form for form in forms if isinstance(form, WhyNot)), None)

    def why_no_solver(self, solver: Any) -> WhyNot | None:
        """Return why the steps of a solver do not apply to the parameters of this model, or None.

        Solvers themselves declare whether they update factors, fit column weights and support powers of
        norms.
        """
        return None

    def check_strengths(self, lambda_p: float, lambda_sparse: float) -> None:
        """Raise ValueError if a strength has no term."""

    def orders_of_columns(self, rank: int) -> list[tuple[slice, int | None]]:
        """Return the blocks of columns whose order determines the form of a penalty ([A] Eq. 42, 49)."""
        return []

    def bind(self, penalty: Penalty, rank: int) -> Penalty:
        """Return the penalty bound to the columns of P; `why_not` must be None."""
        parts: Any = [(columns, penalty.of_order(order)) for columns, order in self.orders_of_columns(rank)]
        return Blockwise(penalty, tuple(parts)) if parts else penalty

    def blocks(self, rank: int) -> list[tuple[slice, ColumnKernel]]:
        """Return the columns and the kernel of every block of P, from left to right."""
        return [(slice(b * rank, (b + 1) * rank), kernel) for b, kernel in enumerate(self.kernels)]

    def parts(self, n_columns: int) -> list[tuple[slice, ColumnKernel]]:
        """Return the `blocks` of a P with this number of columns."""
        return self.blocks(n_columns // len(self.kernels))

    def views(self, rank: int) -> tuple[ColumnViews, ...]:
        """Return the column views of P for sweeps, from left to right; only for factorized models."""
        return tuple(
            ColumnViews(columns, kernel.entries, kernel.rows) for columns, kernel in self.blocks(rank)
        )

    def products(self, P: np.ndarray, weights: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
        """Return factors U, shape (t, d, k), and coefficients c of the products of an order.

        W or its counterpart of this order is Σ_s c_s u_s ⊗ … ⊗ u_s for t = 1, and the symmetrized
        Σ_s c_s u_s¹ ⊗ … ⊗ u_s^t otherwise. `weights` are the coefficients of the columns of P, which may lack
        rows; the order is one of `orders`.
        """
        parts = self.parts(P.shape[1])
        columns = next(columns for columns, kernel in parts if kernel.degree in (order, None))
        return P[None, :, columns], weights[columns]

    def forms(self, penalty: Penalty) -> list[tuple[int | None, Penalty]]:
        """Return the order of each block of columns and the form of the penalty for it."""
        forms = [(order, penalty.of_order(order)) for _, order in self.orders_of_columns(1)]
        return [(order, form) for order, form in forms if not isinstance(form, WhyNot)]

    def penalty_words(self, penalty: Penalty) -> tuple[str, str]:
        """Return the LaTeX of the sparsity penalty for this model, and a phrase on its selection."""
        formula, _, selects = penalty.words()
        return formula, selects

    def cost_note(self, d: int) -> str | None:
        """Return a sentence on the cost of an iteration over d features, or None if it is ordinary."""
        return None

    def check_size(self, d: int, rank: int) -> None:
        """Raise ValueError with the size if the parameters of d features exceed the free memory."""
        needed, free = 8.0 * self.copies * d * self.shapes(d, rank)["P"][1], available_bytes()
        if needed > free:
            parts = self.shapes(1, rank)["P"][1] // rank
            each = f" for each of {parts} {self.part_name}" if parts > 1 else ""
            smaller = "a smaller rank" + (f" or fewer {self.part_name}" if parts > 1 else "")
            raise ValueError(
                f"rank = {rank:,}{each} and {d:,} features need {in_words(needed)}, but only "
                f"{in_words(free)} are free. Choose {smaller}."
            )

    def shapes(self, d: int, rank: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameter arrays by name, in order."""
        return {"P": (d, rank * len(self.kernels)), "w": (d,), "intercept": ()}

    def check_shapes(
        self, shapes: Mapping[str, tuple[int, ...]], d: int | None = None, rank: int | None = None
    ) -> None:
        """Raise ValueError if arrays of these shapes are not parameters of the model.

        Parameters
        ----------
        shapes : mapping of str to tuple of int
            The shape of every array by name; machines may be stacked on a first axis.
        d, rank : int, optional
            The number of features, and the maximum number of columns of P in a block.
        """
        if len(P := shapes.get("P", ())) not in (2, 3):
            raise ValueError(f"P has shape {P}, but (features, columns) is expected")
        *stacked, features, columns = P
        blocks = self.shapes(1, 1)["P"][1]
        if rank is not None and columns > rank * blocks:
            raise ValueError(f"P has shape {P}, but at most {rank * blocks:,} columns are expected")
        model = self.for_outputs(shapes["V"][-1]) if shapes.get("V") else self
        expected = model.shapes(features if d is None else d, columns // blocks if blocks else 1)
        for name in {**expected, **shapes}:
            wanted = (*stacked, *expected[name]) if name in expected else None
            # Coefficients are absent if all are 1.
            if shapes.get(name) != wanted and not (name == "coefficients" and name not in shapes):
                raise ValueError(f"{name} has shape {shapes.get(name)}, but {wanted} is expected")

    def start(self, d: int, rank: int, init_scale: float, rng: np.random.Generator) -> Parameters:
        """Return a starting point, by default with independent entries P ~ N(0, init_scale²)."""
        return Parameters(rng.normal(0.0, init_scale, self.shapes(d, rank)["P"]), np.zeros(d), 0.0)

    @staticmethod
    def linear_part(design: Design, parameters: Parameters) -> np.ndarray:
        """Return b + ⟨w, x⟩ for every row of the design, shape (N,)."""
        f = np.full(design.n_samples, float(parameters.intercept))
        return f + design.dot(parameters.w) if parameters.w.any() else f

    def predict(self, design: Design, parameters: Parameters) -> np.ndarray:
        """Return f for every row of the design, shape (N,)."""
        raise NotImplementedError

    def scores(self, design: Design, parameters: Parameters) -> np.ndarray:
        """Return `predict`, shape (N,), or shape (N, m) for parameters of m stacked machines."""
        if (m := parameters.n_machines) is None:
            return self.predict(design, parameters)
        return np.column_stack([self.predict(design, parameters.of_output(c)) for c in range(m)])

    def forward(
        self, design: Design, parameters: Parameters, keep: bool = True
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return `predict` and intermediate results for `gradient` at the same parameters, or None.

        Without `keep`, large intermediate results are not stored.
        """
        return self.predict(design, parameters), None

    def gradient(
        self, design: Design, parameters: Parameters, slope: np.ndarray, sums: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the gradient of Σ_n slope_n f(x_n) in P (or W), in w, shape (d,), and in the bias.

        `sums` are the intermediate results of `forward` at the same parameters.
        """
        raise NotImplementedError

    def curvature(
        self, design: Design, parameters: Parameters, weight: np.ndarray, sums: np.ndarray | None = None
    ) -> np.ndarray:
        """Return Σ_n weight_n (∂f(x_n)/∂p_js)² for every entry of P; `sums` as for `gradient`."""
        raise NotImplementedError

    def penalised(self, parameters: Parameters) -> np.ndarray:
        """Return the matrix to which Ω applies."""
        return parameters.P

    def gauge(
        self,
        design: Design,
        penalty: Penalty,
        parameters: Parameters,
        alpha: np.ndarray,
        strengths: tuple[float, float],
        thorough: bool,
    ) -> float:
        """Return a factor by which α, shape (N,) or (N, m), is divided to be dual feasible.

        Only for models with the certificate "gap". The factor is an upper bound on the smallest t for which
        the gradient of Σ_n α_n f(x_n) in W, divided by t, is in the subdifferential at 0 of the penalties on
        W, whose `strengths` are (λ_p, λ). `parameters` may tighten it; without `thorough` it may be looser.
        """
        raise NotImplementedError

    def gauges(
        self,
        design: Design,
        penalty: Penalty,
        parameters: Parameters,
        alpha: np.ndarray,
        strengths: tuple[float, float],
        thorough: bool,
    ) -> tuple[float, float | None]:
        """Return `gauge` and a lower bound of it, None if it is exact or no bound is known."""
        return self.gauge(design, penalty, parameters, alpha, strengths, thorough), None

    def ball(self, penalty: Penalty, parameters: Parameters) -> float:
        """Return the bound on the penalty on W in a problem without strengths."""
        return self.shrinkage(parameters)

    def dual_quadratic(
        self,
        design: Design,
        penalty: Penalty,
        parameters: Parameters,
        alpha: np.ndarray,
        strengths: tuple[float, float],
    ) -> float:
        """Return the term that a smooth penalty subtracts from the dual objective at α, if any."""
        return 0.0

    def shrinkage_weights(self, parameters: Parameters) -> np.ndarray:
        """Return the weights |λ_s| of the column norms, to the `shrinkage_power`, in the shrinkage."""
        return np.abs(parameters.multipliers)

    def column_weights(self, parameters: Parameters) -> np.ndarray:
        """Return the gradient of the shrinkage in p_:,s divided by 2p_:,s, for every column of P.

        For a shrinkage that is a sum of squared norms, this is the weight of ‖p_:,s‖².
        """
        return self.shrinkage_weights(parameters)

    def shrinkage(self, parameters: Parameters) -> float:
        """Return the term of λ_p: Σ_s ‖p_:,s‖², weighted by column."""
        return float(np.square(parameters.P).sum(axis=0) @ self.column_weights(parameters))

    def live(self, parameters: Parameters) -> np.ndarray:
        """Return P without the columns whose coefficient is 0."""
        coefficients = parameters.coefficients
        return parameters.P if coefficients is None else parameters.P[:, coefficients != 0]

    def used_features(self, parameters: Parameters) -> int:
        """Return the number of features in any used interaction: rows of P with a non-zero live entry."""
        return used_features(self.live(parameters))

    def used_interactions(self, parameters: Parameters) -> int:
        """Return the exact number of structurally non-zero products over all orders, without a tolerance."""
        return sum(self.used_by_order(parameters).values())

    def used_by_order(self, parameters: Parameters) -> dict[int, int]:
        """Return the number of used sets of distinct features for each of the `orders`."""
        P, weights = self.live(parameters), parameters.multipliers
        return {order: used_sets(self.products(P, weights, order)[0], order) for order in self.orders}
